/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet rings of a worker: queries that come by them are handled as if the worker's own UDP socket had received them, and
 * replies to them leave by the ring.
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include "hydns_daemon.h"
#include "daemon/daemon.h"
#include "daemon/worker.h"
#include "plugin/queue/lanes.h"
#include "services/listen_dnsport.h"
#include "sldns/sbuffer.h"
#include "util/config_file.h"
#include "util/fptr_wlist.h"
#include "util/log.h"
#include "util/netevent.h"
#include "util/ub_event.h"

#define BATCH 64 /* datagrams in one turn of the event loop: as few as keep the sockets from starving */

/* A UDP socket of the worker. */
struct listener {
	struct comm_point* c;
	int family;
	uint16_t port;            /* host order */
	int any;                  /* bound to the wildcard address */
	uint8_t addr[16];         /* as in struct hydns_path */
};

struct hydns_queue {
	struct hydns_lane_thread* lanes;
	struct comm_base* base;
	struct comm_point* watch;
	uint8_t dscp;
	size_t count;
	struct listener listener[];
};

/* --- the worker's sockets ------------------------------------------------------------------------------ */
static int is_udp(const struct comm_point* c)
{
	return c->type == comm_udp && !c->pp2_enabled && c->socket && c->socket->addr;
}

static void set_listener(struct listener* l, struct comm_point* c)
{
	const struct sockaddr_in* v4 = (const struct sockaddr_in*)c->socket->addr;
	const struct sockaddr_in6* v6 = (const struct sockaddr_in6*)c->socket->addr;
	static const uint8_t zero[16];

	l->c = c;
	l->family = c->socket->addr->sa_family;
	if(l->family == AF_INET) {
		l->port = ntohs(v4->sin_port);
		memcpy(l->addr, &v4->sin_addr, 4);
	} else {
		l->port = ntohs(v6->sin6_port);
		memcpy(l->addr, &v6->sin6_addr, 16);
	}
	l->any = memcmp(l->addr, zero, sizeof(zero)) == 0;
}

/* The socket that would have received it. One that is bound to the address comes before the wildcard. */
static struct comm_point* find_socket(const struct hydns_queue* q, const struct hydns_path* p)
{
	const int family = p->ipv6 ? AF_INET6 : AF_INET;
	struct comm_point* any = NULL;
	size_t i;

	for(i = 0; i < q->count; i++) {
		const struct listener* l = &q->listener[i];

		if(l->family != family || l->port != p->local_port || l->c->fd == -1)
			continue;
		if(memcmp(l->addr, p->local, sizeof(l->addr)) == 0)
			return l->c;
		if(l->any)
			any = l->c;
	}
	return any;
}

/* --- queries ------------------------------------------------------------------------------------------- */
static socklen_t set_address(struct sockaddr_storage* a, const struct hydns_way* way)
{
	const struct hydns_path* p = &way->path;
	struct sockaddr_in* v4 = (struct sockaddr_in*)a;
	struct sockaddr_in6* v6 = (struct sockaddr_in6*)a;

	if(p->ipv6) {
		memset(v6, 0, sizeof(*v6));
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(p->remote_port);
		memcpy(&v6->sin6_addr, p->remote, 16);
		if(IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
			v6->sin6_scope_id = way->ifindex;
		return (socklen_t)sizeof(*v6);
	}
	memset(v4, 0, sizeof(*v4));
	v4->sin_family = AF_INET;
	v4->sin_port = htons(p->remote_port);
	memcpy(&v4->sin_addr, p->remote, 4);
	return (socklen_t)sizeof(*v4);
}

/* As comm_point_udp_callback() does it. */
static void take_query(void* context, const struct hydns_datagram* d, const struct hydns_way* way)
{
	struct hydns_context* h = (struct hydns_context*)context;
	struct comm_reply rep;

	rep.c = find_socket(h->queue, &d->path);
	if(!rep.c || d->len > sldns_buffer_capacity(rep.c->buffer))
		return;
	sldns_buffer_clear(rep.c->buffer);
	sldns_buffer_write(rep.c->buffer, d->payload, d->len);
	sldns_buffer_flip(rep.c->buffer);
	rep.remote_addrlen = set_address(&rep.remote_addr, way);
	rep.client_addrlen = rep.remote_addrlen;
	memcpy(&rep.client_addr, &rep.remote_addr, rep.remote_addrlen);
	rep.srctype = 0;
	rep.is_proxied = 0;
	rep.way = *way;
	fptr_ok(fptr_whitelist_comm_point(rep.c->callback));
	if((*rep.c->callback)(rep.c, rep.c->cb_arg, NETEVENT_NOERROR, &rep) &&
		!hydns_queue_send(h, &rep, rep.c->buffer))
		(void)comm_point_send_udp_msg(rep.c, rep.c->buffer, (struct sockaddr*)&rep.remote_addr,
			rep.remote_addrlen, 0);
}

void hydns_queue_receive(struct hydns_context* h)
{
	ub_comm_base_now(h->queue->base);
	(void)hydns_lanes_receive(h->queue->lanes, BATCH, take_query, h);
}

int hydns_queue_send(struct hydns_context* h, struct comm_reply* repinfo, struct sldns_buffer* pkt)
{
	return h->queue && hydns_lanes_send(h->queue->lanes, &repinfo->way, h->queue->dscp, sldns_buffer_begin(pkt),
		sldns_buffer_remaining(pkt)) == HYDNS_SENT;
}

/* --- life ---------------------------------------------------------------------------------------------- */
static struct hydns_queue* new_queue(struct hydns_lane_thread* lanes, struct worker* worker)
{
	struct listen_list* l;
	struct hydns_queue* q;
	size_t n = 0;

	for(l = worker->front->cps; l; l = l->next)
		n += is_udp(l->com);
	q = (struct hydns_queue*)calloc(1, sizeof(*q) + n * sizeof(q->listener[0]));
	if(!q)
		return NULL;
	q->lanes = lanes;
	q->base = worker->base;
	q->dscp = (uint8_t)worker->daemon->cfg->ip_dscp;
	for(l = worker->front->cps; l; l = l->next)
		if(is_udp(l->com))
			set_listener(&q->listener[q->count++], l->com);
	return q;
}

int hydns_queue_start(struct hydns_context* h, struct worker* worker)
{
	struct hydns_lane_thread* lanes = h ? hydns_plugin_lanes(h->thread) : NULL;

	if(!lanes)
		return 1;
	h->queue = new_queue(lanes, worker);
	if(h->queue)
		h->queue->watch = comm_point_create_raw(worker->base, hydns_lanes_fd(lanes), 0, &hydns_queue_ready, h);
	if(h->queue && h->queue->watch)
		return 1;
	free(h->queue);
	h->queue = NULL;
	return 0;
}

void hydns_queue_stop(struct hydns_context* h)
{
	if(!h->queue)
		return;
	comm_point_delete(h->queue->watch);
	free(h->queue);
	h->queue = NULL;
}
