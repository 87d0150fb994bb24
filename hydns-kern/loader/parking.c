/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading what the program has parked, and replaying it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <sys/random.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* What hydns_kern_parked_drain() hands to libbpf's callback, which is registered once. */
struct hydns_parked_reader {
	void (*fn)(const struct hydns_parked *p, void *arg);
	void *arg;
	/* of queries that were forwarded; NULL: fn */
	void (*forwarded)(const struct hydns_parked *p, const struct hydns_forwarded *f, void *arg);
	void *forwarded_arg;
	struct hydns_ring_reader ring;
};

static int read_record(void *reader, void *data, size_t len)
{
	const struct hydns_parked_reader *r = reader;
	const struct hydns_parked *p = data;

	const struct hydns_forwarded_query *q = data;

	if (len < sizeof(*p) || len - sizeof(*p) < p->frame_len)
		return 0;
	if (len == sizeof(*q) && r->forwarded && p->frame_len <= sizeof(q->frame))
		r->forwarded(p, &q->forwarded, r->forwarded_arg);
	else
		r->fn(p, r->arg);
	return 0;
}

void hydns_parked_reader_forwarded(struct hydns_kern *k, void (*fn)(const struct hydns_parked *p, const struct hydns_forwarded *f,
								   void *arg), void *arg)
{
	k->parked->forwarded = fn;
	k->parked->forwarded_arg = arg;
}

int hydns_parked_reader_follow(struct hydns_kern *k)
{
	return hydns_ring_follow(&k->parked->ring, k->skel->maps.hydns_parked, read_record, k->parked);
}

int hydns_sent_attach(const struct hydns_bpf *b)
{
	int fd = bpf_raw_tracepoint_open("xdp_devmap_xmit", bpf_program__fd(hydns_program_at(b, HYDNS_HOOK_RAW_TRACEPOINT)));

	return fd < 0 ? -errno : fd;
}

int hydns_parking_open(struct hydns_kern *k, bool used)
{
	struct hydns_replays *replays;
	int err = hydns_map_memory(bpf_map__fd(k->skel->maps.hydns_parking), true, &k->parking);

	if (!err)
		err = hydns_map_memory(bpf_map__fd(k->skel->maps.hydns_replays), true, &k->replays);
	if (err)
		return err;
	replays = k->replays.at;
	if (getrandom(replays->secret, sizeof(replays->secret), 0) != sizeof(replays->secret))
		return -EIO;
	k->parked = calloc(1, sizeof(*k->parked));
	if (!k->parked)
		return -ENOMEM;
	err = hydns_parked_reader_follow(k);
	if (err)
		return err;
	if (used)
		k->sent_fd = hydns_sent_attach(k->skel);
	return k->sent_fd < 0 && used ? k->sent_fd : 0;
}

void hydns_parking_close(struct hydns_kern *k)
{
	if (k->sent_fd >= 0)
		close(k->sent_fd);
	if (k->parked)
		ring_buffer__free(k->parked->ring.buffer);
	free(k->parked);
	k->parked = NULL;
	hydns_unmap_memory(&k->parking);
	hydns_unmap_memory(&k->replays);
}

struct hydns_parking *hydns_kern_parking(struct hydns_kern *k, __u32 resolver)
{
	return (struct hydns_parking *)k->parking.at + resolver;
}

struct hydns_replays *hydns_kern_replays(struct hydns_kern *k)
{
	return k->replays.at;
}

int hydns_kern_parked_fd(const struct hydns_kern *k)
{
	return ring_buffer__epoll_fd(k->parked->ring.buffer);
}

int hydns_kern_parked_drain(struct hydns_kern *k, void (*fn)(const struct hydns_parked *p, void *arg), void *arg)
{
	k->parked->fn = fn;
	k->parked->arg = arg;
	return ring_buffer__consume(k->parked->ring.buffer);
}

void hydns_carrier(const struct hydns_replays *r, __u8 carrier[HYDNS_CARRIER_LEN])
{
	struct ethhdr *eth = (struct ethhdr *)carrier;

	memset(carrier, 0, HYDNS_CARRIER_LEN);
	eth->h_proto = htons(HYDNS_CARRIER_TYPE);
	memcpy(eth + 1, r->secret, sizeof(r->secret));
}

/* Says of each of the first n frames whether the link has refused its answer. Answers leave in the order of the frames, in bulks of
 * which a driver takes the first. What stands in no bulk was refused before; what comes after the last frame is somebody
 * else's. */
static void read_bulks(struct hydns_replays *r, __u32 n)
{
	__u32 bulk = 0, sent = 0, dropped = 0;

	for (__u32 i = 0; i < n; i++) {
		if (r->frame[i].passed)
			continue;
		while (!sent && !dropped && bulk < r->bulks && bulk <= HYDNS_REPLAYS) {
			sent = r->bulk[bulk].sent;
			dropped = r->bulk[bulk++].dropped;
		}
		r->frame[i].refused = !sent;
		if (sent)
			sent--;
		else if (dropped)
			dropped--;
	}
}

/* The carriers are one batch: they run on one CPU, and each has a page that none before it has used. */
int hydns_replay_run(int prog_fd, struct hydns_replays *r, bool watched, __u32 ifindex, __u32 rx_queue, __u32 count, __u32 *passed)
{
	__u8 carrier[HYDNS_CARRIER_LEN];
	struct xdp_md from = { .data_end = sizeof(carrier), .ingress_ifindex = ifindex, .rx_queue_index = rx_queue };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = carrier, .data_size_in = sizeof(carrier), .ctx_in = &from,
		    .ctx_size_in = sizeof(from), .repeat = (int)count + 1, .batch_size = count + 1,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	__u32 next;
	int err;

	hydns_carrier(r, carrier);
	for (__u32 i = 0; i < count; i++)
		r->frame[i].passed = r->frame[i].refused = 0;
	r->next = r->passed = r->bulks = r->on_cpu = r->link = 0;
	__atomic_store_n(&r->count, count, __ATOMIC_RELEASE);
	err = bpf_prog_test_run_opts(prog_fd, &o);
	__atomic_store_n(&r->count, 0, __ATOMIC_RELEASE);
	next = __atomic_load_n(&r->next, __ATOMIC_ACQUIRE);
	*passed = __atomic_load_n(&r->passed, __ATOMIC_ACQUIRE);
	__atomic_store_n(&r->on_cpu, 0, __ATOMIC_RELEASE);
	if (next > count)
		next = count;
	if (watched)
		read_bulks(r, next);
	return next ? (int)next : err;
}

int hydns_kern_replay(struct hydns_kern *k, __u32 ifindex, __u32 rx_queue, __u32 count, __u32 *passed)
{
	return hydns_replay_run(hydns_kern_prog_fd(k), hydns_kern_replays(k), k->sent_fd >= 0, ifindex, rx_queue, count, passed);
}

int hydns_kern_park_at(struct hydns_kern *k, __u32 ifindex, bool may)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_park_at), err;
	__u32 one = 1;

	if (may)
		return bpf_map_update_elem(fd, &ifindex, &one, BPF_ANY);
	err = bpf_map_delete_elem(fd, &ifindex);
	return err == -ENOENT ? 0 : err;
}

void hydns_kern_parking_exists(struct hydns_kern *k, bool any)
{
	struct hydns_geometry *meta = k->mapped[HYDNS_MAPPED_META].at;

	__atomic_store_n(&meta->parking, any, __ATOMIC_RELEASE);
}

int hydns_kern_parking_counts(struct hydns_kern *k, __u32 resolver, struct hydns_parking_count *sum)
{
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_spills), hydns_kern_geometry(k)->cpus, resolver,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}
