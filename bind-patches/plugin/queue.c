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
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <dns/view.h>
#include <isc/netmgr.h>
#include <isc/sockaddr.h>
#include <isc/util.h>
#include "compat.h"
#include "plugin.h"
#include "plugin/clock.h"
#include "plugin/queue/lanes.h"
#include "queue.h"

/* In one turn: hydns_lanes_receive() keeps its budget (test_lanes), hydns_upstream_read_strays() its bound (test_stray_bound), so
 * all that they may bring has room. */
#define FRAMES (ISC_NM_RINGBATCH - HYDNS_UPSTREAM_STRAYS)

_Static_assert(sizeof(struct hydns_way) <= ISC_NM_WAYSIZE, "a handle has room for a way");
_Static_assert(HYDNS_THREADS_MAX <= ISC_NM_RINGLOOPS, "each thread may have a ring");

/* --- datagrams ------------------------------------------------------------------------------------------------ */
struct batch {
	isc_nm_datagram_t *next, *last;           /* behind the array */
	uint8_t *room, *end;
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

static void add(struct batch *b, const struct hydns_way *way, int error)
{
	INSIST(b->next < b->last);        /* see FRAMES */
	set_address(&b->next->local, &way->path, false, way->ifindex);
	set_address(&b->next->peer, &way->path, true, way->ifindex);
	memcpy(b->next->way, way, sizeof(*way));
	b->next->payload = (isc_region_t){ .base = b->room };
	b->next->error = error;
	b->next++;
}

static void take(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	struct batch *b = arg;

	if (d->len > b->end - b->room)
		return;
	add(b, way, 0);
	memcpy(b->room, d->payload, d->len);
	b->next[-1].payload.length = d->len;
	b->room += d->len;
}

/* Whose answer it is shows again when it is handed over: that query may have ended by then. */
static void take_stray(void *arg, void *owner, const struct hydns_datagram *d)
{
	const struct hydns_way way = { .device = HYDNS_ANY_DEVICE, .path = d->path };

	(void)owner;
	take(arg, d, &way);
}

static void take_error(void *arg, const struct hydns_path *path, int error)
{
	const struct hydns_way way = { .device = HYDNS_ANY_DEVICE, .path = *path };

	add(arg, &way, error);
}

/* --- the network manager's methods: ring is a struct hydns_loop ------------------------------------------------- */
static atomic_bool paused;                /* the rings are being changed: what they hold waits, and all else takes sockets */

static size_t receive(void *ring, isc_nm_datagram_t *to, const isc_region_t *room)
{
	struct batch b = { .next = to, .last = to + ISC_NM_RINGBATCH, .room = room->base, .end = room->base + room->length };
	const unsigned fit = room->length / HYDNS_FRAME_MOST;
	struct hydns_loop *loop = ring;
	unsigned frames;

	if (atomic_load(&paused))
		return 0;
	hydns_lanes_cork(loop->lanes);
	frames = hydns_lanes_receive(loop->lanes, fit < FRAMES ? fit : FRAMES, take, &b);
	if (loop->upstream != NULL)
		hydns_upstream_read_strays(loop->upstream, frames, hydns_mono_coarse_ms(), take_stray, take_error, &b);
	return (size_t)(b.next - to);
}

static bool send_one(void *ring, const void *bytes, const isc_region_t *payload)
{
	struct hydns_loop *loop = ring;
	struct hydns_way way;

	memcpy(&way, bytes, sizeof(way));
	return !atomic_load(&paused) &&
	       hydns_lanes_reply(loop->lanes, &way, 0, payload->base, payload->length, hydns_mono_coarse_ms());
}

static void flush(void *ring)
{
	struct hydns_loop *loop = ring;

	if (!atomic_load(&paused))
		hydns_lanes_uncork(loop->lanes);
}

static bool connect_query(void *ring, const isc_sockaddr_t *local, const isc_sockaddr_t *peer, void *way)
{
	struct hydns_loop *loop = ring;

	return loop->upstream != NULL && !atomic_load(&paused) && hydns_query_connect(loop, local, peer, way);
}

static in_port_t send_query(void *ring, const void *way, const isc_region_t *payload, void *owner)
{
	struct hydns_loop *loop = ring;

	return loop->upstream != NULL && !atomic_load(&paused) ? hydns_query_send(loop, way, payload, owner) : 0;
}

/* Also while the rings are paused: the owner is going. */
static void end_query(void *ring, in_port_t port, void *owner)
{
	struct hydns_loop *loop = ring;

	if (loop->upstream != NULL)
		hydns_query_end(loop, port, owner);
}

static void *find_owner(void *ring, const isc_nm_datagram_t *datagram)
{
	struct hydns_loop *loop = ring;

	return loop->upstream != NULL && !atomic_load(&paused) ? hydns_query_owner(loop, datagram) : NULL;
}

static const isc_nm_ringmethods_t methods = { .receive = receive, .send = send_one, .flush = flush, .connect = connect_query,
					      .query = send_query, .end = end_query, .owner = find_owner };

/* --- which rings the loops use --------------------------------------------------------------------------------- */
struct rings {
	struct hydns_lane_thread *first;          /* NULL: none */
	struct hydns_loop loop[HYDNS_THREADS_MAX];
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
		struct hydns_thread *t = hydns_plugin_thread(p, i);

		r.loop[i] = (struct hydns_loop){ .lanes = hydns_plugin_lanes(t), .upstream = hydns_plugin_upstream(t) };
	}
	return r;
}

/* Has the loops use the present ones, or, watched false, only end queries there. The caller has the lock. */
static void set_rings(bool watched)
{
	void *ring[HYDNS_THREADS_MAX];
	int fd[HYDNS_THREADS_MAX];

	for (uint32_t i = 0; i < hydns_tid_count(); i++) {
		ring[i] = &present.loop[i];
		fd[i] = watched ? hydns_lanes_fd(present.loop[i].lanes) : -1;
	}
	atomic_store(&paused, !watched);
	isc_nm_setrings(&methods, ring, fd, hydns_tid_count());
}

/* The caller has the lock. */
static void change_to(const struct rings *r)
{
	isc_nm_setrings(NULL, NULL, NULL, 0);
	present = *r;
	if (r->first != NULL)
		set_rings(true);
	else
		isc_nm_setringports(0, 0);
}

bool hydns_queue_has_rings(struct hydns_plugin *p)
{
	return first_of(p) != NULL;
}

void hydns_queue_leave_ports(const struct hydns_instance *inst)
{
	const struct hydns_port_run run = hydns_own_queries_ports(inst->own);

	isc_nm_setringports((in_port_t)run.first, run.count);
}

void hydns_queue_pause(struct hydns_plugin *p)
{
	pthread_mutex_lock(&rings_lock);
	if (p != NULL && present.first != NULL && present.first == first_of(p)) {
		set_rings(false);
		/* What a loop has sent may wait for its flush(), which comes too late now. */
		for (uint32_t i = 0; i < hydns_tid_count(); i++)
			hydns_lanes_uncork(present.loop[i].lanes);
	}
	pthread_mutex_unlock(&rings_lock);
}

void hydns_queue_use(struct hydns_plugin *p)
{
	const struct rings r = rings_of(p);

	pthread_mutex_lock(&rings_lock);
	if (r.first != NULL && present.first == NULL)
		change_to(&r);
	else if (r.first != NULL && r.first == present.first)
		set_rings(true);
	else if (r.first != NULL)
		next = r;
	pthread_mutex_unlock(&rings_lock);
}

void hydns_queue_forget(struct hydns_plugin *p)
{
	pthread_mutex_lock(&rings_lock);
	if (present.first != NULL && present.first == first_of(p))
		isc_nm_timeoutrings();
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

		if (v->rdclass == dns_rdataclass_in && other != NULL && other->o.enable && hydns_options_want_rings(&other->o))
			return v;
	}
	return NULL;
}

uint32_t hydns_queue_parts(const struct hydns_instance *inst)
{
	uint32_t parts = 0;

	if (earlier_view(inst) != NULL || !isc_nm_canring(hydns_tid_count()))
		return 0;
	if (inst->o.queue != HYDNS_NO)
		parts |= HYDNS_QUEUE_CLIENTS;
	if (inst->o.queue_upstream != HYDNS_NO && hydns_own_queries_obstacle(inst->own) == NULL)
		parts |= HYDNS_QUEUE_UPSTREAM;
	return parts;
}

static void __attribute__((format(printf, 2, 3))) note(struct hydns_plugin *p, const char *format, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	hydns_named_log(HYDNS_LOG_INFO, text);
	(void)hydns_plugin_add_note(p, HYDNS_NOTE_OTHER, text);
}

void hydns_queue_note(const struct hydns_instance *inst, struct hydns_plugin *p)
{
	const dns_view_t *other = hydns_options_want_rings(&inst->o) ? earlier_view(inst) : NULL;
	const char *why = inst->o.queue_upstream != HYDNS_NO ? hydns_own_queries_obstacle(inst->own) : NULL;

	if (other != NULL)
		note(p, "view %.64s has the packet rings, so queries to other addresses than its own take sockets: for this view to "
		     "have them, set hydns-queue and hydns-queue-upstream no there", other->name);
	else if (why != NULL)
		note(p, "named's own queries take sockets: %s", why);
}
