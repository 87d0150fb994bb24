/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet rings of the loops: what comes by them is handed to named's network manager, as if its own UDP sockets had received
 * it, and responses leave by them. The network manager calls the methods below on each loop, never while named works on a
 * query.
 *
 * Rings belong to addresses, not to views: whichever view a query by a ring is for, named chooses it as ever. But a receive
 * queue can be one resolver's only, so of all views one has the rings.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <dns/view.h>
#include <isc/netmgr.h>
#include <isc/sockaddr.h>
#include "compat.h"
#include "plugin.h"
#include "plugin/queue/lanes.h"

_Static_assert(sizeof(struct hydns_way) <= ISC_NM_WAYSIZE, "a handle has room for a way");
_Static_assert(HYDNS_THREADS_MAX <= ISC_NM_RINGLOOPS, "each thread may have a ring");

/* --- datagrams ------------------------------------------------------------------------------------------------ */
struct batch {
	isc_nm_datagram_t *next;
	uint8_t *room;
};

static void set_address(isc_sockaddr_t *to, const struct hydns_path *path, bool remote, uint32_t ifindex)
{
	const uint8_t *addr = remote ? path->remote : path->local;
	const in_port_t port = remote ? path->remote_port : path->local_port;
	struct in6_addr v6;
	struct in_addr v4;

	if (!path->ipv6) {
		memcpy(&v4, addr, sizeof(v4));
		isc_sockaddr_fromin(to, &v4, port);
		return;
	}
	memcpy(&v6, addr, sizeof(v6));
	isc_sockaddr_fromin6(to, &v6, port);
	if (IN6_IS_ADDR_LINKLOCAL(&v6))
		to->type.sin6.sin6_scope_id = ifindex;
}

static void take(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	struct batch *b = arg;

	set_address(&b->next->local, &d->path, false, way->ifindex);
	set_address(&b->next->peer, &d->path, true, way->ifindex);
	memcpy(b->next->way, way, sizeof(*way));
	memcpy(b->room, d->payload, d->len);
	b->next->payload = (isc_region_t){ .base = b->room, .length = d->len };
	b->room += d->len;
	b->next++;
}

/* --- the network manager's methods: ring is the loop's struct hydns_lane_thread -------------------------------- */
static size_t receive(void *ring, isc_nm_datagram_t *to, const isc_region_t *room)
{
	struct batch b = { .next = to, .room = room->base };
	const unsigned fit = room->length / HYDNS_FRAME_MOST;

	hydns_lanes_cork(ring);
	(void)hydns_lanes_receive(ring, fit < ISC_NM_RINGBATCH ? fit : ISC_NM_RINGBATCH, take, &b);
	return (size_t)(b.next - to);
}

static bool send_one(void *ring, const void *bytes, const isc_region_t *payload)
{
	struct hydns_way way;

	memcpy(&way, bytes, sizeof(way));
	return hydns_lanes_send(ring, &way, 0, payload->base, payload->length);
}

static void flush(void *ring)
{
	hydns_lanes_uncork(ring);
}

static const isc_nm_ringmethods_t methods = { .receive = receive, .send = send_one, .flush = flush };

/* --- which rings the loops use --------------------------------------------------------------------------------- */
struct rings {
	struct hydns_lane_thread *first;          /* NULL: none */
	void *ring[HYDNS_THREADS_MAX];
	int fd[HYDNS_THREADS_MAX];
};

static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;
/* The loops use the next ones when the present ones end: until then queries may lie in those. */
static struct rings present, next;

static struct hydns_lane_thread *first_of(struct hydns_plugin *p)
{
	return p != NULL ? hydns_plugin_lanes(hydns_plugin_thread(p, 0)) : NULL;
}

static struct rings rings_of(struct hydns_plugin *p)
{
	struct rings r = { .first = first_of(p) };

	for (uint32_t i = 0; r.first != NULL && i < hydns_tid_count(); i++) {
		struct hydns_lane_thread *t = hydns_plugin_lanes(hydns_plugin_thread(p, i));

		r.ring[i] = t;
		r.fd[i] = hydns_lanes_fd(t);
	}
	return r;
}

/* The caller has the lock. */
static void change_to(const struct rings *r)
{
	present = *r;
	isc_nm_setrings(r->first != NULL ? &methods : NULL, present.ring, present.fd, hydns_tid_count());
}

bool hydns_queue_has_rings(struct hydns_plugin *p)
{
	return first_of(p) != NULL;
}

void hydns_queue_pause(struct hydns_plugin *p)
{
	pthread_mutex_lock(&rings_lock);
	if (p != NULL && present.first == first_of(p))
		change_to(&(struct rings){ NULL });
	pthread_mutex_unlock(&rings_lock);
}

void hydns_queue_use(struct hydns_plugin *p)
{
	const struct rings r = rings_of(p);

	pthread_mutex_lock(&rings_lock);
	if (r.first != NULL && present.first == NULL)
		change_to(&r);
	else if (r.first != NULL && r.first != present.first)
		next = r;
	pthread_mutex_unlock(&rings_lock);
}

void hydns_queue_end(const struct hydns_lane_thread *first)
{
	pthread_mutex_lock(&rings_lock);
	if (next.first == first)
		next.first = NULL;
	if (present.first == first) {
		isc_nm_emptyrings();
		change_to(&next);
		next.first = NULL;
	}
	pthread_mutex_unlock(&rings_lock);
}

/* --- who has them ---------------------------------------------------------------------------------------------- */
/* The earlier view that has the rings, or NULL. */
static const dns_view_t *earlier_view(const struct hydns_instance *inst)
{
	for (const dns_view_t *v = ISC_LIST_PREV(inst->view, link); v != NULL; v = ISC_LIST_PREV(v, link)) {
		const struct hydns_instance *other = hydns_instance_of(v);

		if (v->rdclass == dns_rdataclass_in && other != NULL && other->o.enable && other->o.queue != HYDNS_NO)
			return v;
	}
	return NULL;
}

uint32_t hydns_queue_parts(const struct hydns_instance *inst)
{
	return inst->o.queue != HYDNS_NO && earlier_view(inst) == NULL && isc_nm_canring(hydns_tid_count()) ?
		HYDNS_QUEUE_CLIENTS : 0;
}

void hydns_queue_note(const struct hydns_instance *inst, struct hydns_plugin *p)
{
	const dns_view_t *other = inst->o.queue != HYDNS_NO ? earlier_view(inst) : NULL;
	char text[256];

	if (other == NULL)
		return;
	snprintf(text, sizeof(text), "view %.64s has the packet rings, so queries to other addresses than its own take sockets: "
		 "for this view to have them, set hydns-queue no there", other->name);
	hydns_named_log(HYDNS_LOG_INFO, text);
	(void)hydns_plugin_add_note(p, HYDNS_NOTE_OTHER, text);
}
