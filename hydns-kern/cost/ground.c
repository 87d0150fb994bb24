/* SPDX-License-Identifier: GPL-2.0-only */
#include "hydns-kern/cost/ground.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns/dns.h"
#include "hydns/parking.h"
#include "hydns-kern/store/store.h"

#define RESOLVER   0
#define EPOCH      1
#define EDNS_SIZE  1232
#define LIFE_MS    3600000U
#define TYPE_A     1
#define LOOPBACK   1                   /* where test runs come from */
#define ROOM       0x40000000U         /* of a ring that nobody reads: more than a test run's packets */

/* A record of an hour, whose owner name is the question's. */
static const __u8 answer[] = { 0xc0, 12, 0, TYPE_A, 0, HYDNS_CLASS_IN, 0, 0, 0x0e, 0x10, 0, 4, 192, 0, 2, 1 };
static const __u16 ttl_at = 6;

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * HYDNS_NS_PER_S + (__u64)t.tv_nsec;
}

static int put(const struct bpf_map *map, const void *key, const void *value)
{
	return bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY) ? -errno : 0;
}

/* -- the rule --------------------------------------------------------------------------------------------- */
static int publish(struct hydns_store *store, const struct hydns_cost_setup *s)
{
	struct hydns_rule_parts p = { .name = s->name, .answer = answer, .ttl = &ttl_at };
	__u32 handle, replaced;

	p.head = (struct hydns_rule){
		.base_ns = now_ns(), .expire_ms = LIFE_MS, .refresh_ms = LIFE_MS, .epoch = EPOCH, .reply_flags = htons(HYDNS_FLAG_QR),
		.answer_len = sizeof(answer), .answer_sum = hydns_answer_sum(answer, sizeof(answer), &ttl_at, 1), .qtype = htons(TYPE_A),
		.name_len = s->name_len, .resolver = RESOLVER, .ancount = 1, .ttl_count = 1,
	};
	return hydns_store_publish(store, &p, &handle, &replaced);
}

static int lay_store(struct hydns_ground *gr, struct hydns_bpf *b, const struct hydns_geometry *g, const struct hydns_cost_setup *s)
{
	const struct { struct bpf_map *map; struct hydns_mapping *to; } maps[] = {
		{ b->maps.hydns_slots, &gr->slots }, { b->maps.hydns_index, &gr->index }, { b->maps.hydns_hits, &gr->hits },
		{ b->maps.hydns_claims, &gr->claims },
	};
	int err = 0;

	for (unsigned i = 0; i < sizeof(maps) / sizeof(*maps) && !err; i++)
		err = hydns_map_memory(bpf_map__fd(maps[i].map), true, maps[i].to);
	if (err)
		return err;
	gr->store = hydns_store_open(&(struct hydns_store_memory){
		.geometry = g, .slots = gr->slots.at, .index = gr->index.at, .hits = gr->hits.at, .claims = gr->claims.at });
	return gr->store ? publish(gr->store, s) : -ENOMEM;
}

/* -- the resolver ------------------------------------------------------------------------------------------ */
static struct hydns_resolver_page *page_of(const struct hydns_ground *gr)
{
	return gr->page.at;
}

static int lay_resolver(struct hydns_ground *gr, struct hydns_bpf *b, const struct hydns_cost_setup *s)
{
	const struct hydns_resolver_config c = {
		.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_ALLOWS_IPV4, .edns_size = EDNS_SIZE, .max_udp = EDNS_SIZE };
	const struct hydns_service service = { .resolver = RESOLVER };
	const __u32 index = RESOLVER, out = s->egress;
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	int err;

	gr->page_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hydns_page", sizeof(__u32), sizeof(struct hydns_resolver_page),
				     HYDNS_PAGE_ELEMENTS, &mapped);
	err = gr->page_fd < 0 ? gr->page_fd : hydns_map_memory(gr->page_fd, true, &gr->page);
	if (err)
		return err;
	page_of(gr)->epoch = EPOCH;
	page_of(gr)->under_way = 1;
	page_of(gr)->forward = 1;
	page_of(gr)->queue = HYDNS_QUEUE_CLIENTS;
	err = put(b->maps.hydns_pages, &index, &gr->page_fd);
	if (!err)
		err = put(b->maps.hydns_resolver, &index, &c);
	if (!err)
		err = put(b->maps.hydns_services, &s->service, &service);
	if (!err && out)
		err = put(b->maps.hydns_out, &out, &out);
	return err;
}

static int lay_parking(struct hydns_ground *gr, struct hydns_bpf *b)
{
	int err = hydns_map_memory(bpf_map__fd(b->maps.hydns_parking), true, &gr->parking);

	if (!err)
		((struct hydns_parking *)gr->parking.at)[RESOLVER].max = 1;
	return err;
}

/* A lane whose socket is never bound: the program redirects to it, and a test run sends nothing. */
static int lay_lane(struct hydns_ground *gr, struct hydns_bpf *b)
{
	const struct hydns_lane_key key = { .ifindex = LOOPBACK };
	const struct hydns_lane lane = { .frame_max = HYDNS_AGAIN_FRAME, .threads = 1, .resolver = RESOLVER };
	const __u32 gate = RESOLVER, ring = HYDNS_RING(0, 0);
	int err;

	gr->socket_fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	err = gr->socket_fd < 0 ? -errno : put(b->maps.hydns_gates, &gate, &gr->socket_fd);
	if (!err)
		err = put(b->maps.hydns_rings, &ring, &gr->socket_fd);
	return err ? err : put(b->maps.hydns_lanes, &key, &lane);
}

/* -- all of it --------------------------------------------------------------------------------------------- */
int hydns_ground_open(struct hydns_ground *gr, struct hydns_bpf *b, const struct hydns_geometry *g, const struct hydns_cost_setup *s)
{
	int err;

	*gr = (struct hydns_ground){ .page_fd = -1, .socket_fd = -1 };
	err = hydns_scratch_prepare(bpf_map__fd(b->maps.hydns_scratch), g);
	if (!err)
		err = lay_store(gr, b, g, s);
	if (!err)
		err = lay_resolver(gr, b, s);
	if (!err)
		err = lay_parking(gr, b);
	return err ? err : lay_lane(gr, b);
}

void hydns_ground_refresh(struct hydns_ground *gr)
{
	struct hydns_backlog *b = (struct hydns_backlog *)(page_of(gr) + HYDNS_PAGE_BACKLOGS);

	page_of(gr)->heartbeat_ns = now_ns();
	b->given = 0;
	b->room = ROOM;
}

void hydns_ground_close(struct hydns_ground *gr)
{
	hydns_store_close(gr->store);
	hydns_unmap_memory(&gr->slots);
	hydns_unmap_memory(&gr->index);
	hydns_unmap_memory(&gr->hits);
	hydns_unmap_memory(&gr->claims);
	hydns_unmap_memory(&gr->page);
	hydns_unmap_memory(&gr->parking);
	if (gr->page_fd >= 0)
		close(gr->page_fd);
	if (gr->socket_fd >= 0)
		close(gr->socket_fd);
}
