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
#include "plugin/clock.h"
#include "plugin/queue/upstream.h"
#include "services/listen_dnsport.h"
#include "services/outside_network.h"
#include "sldns/sbuffer.h"
#include "util/config_file.h"
#include "util/fptr_wlist.h"
#include "util/log.h"
#include "util/net_help.h"
#include "util/netevent.h"
#include "util/random.h"
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
	struct hydns_upstream_thread* upstream; /* NULL: queries to upstream take sockets */
	struct outside_network* outnet;
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

/* --- addresses ----------------------------------------------------------------------------------------- */
static socklen_t set_address(struct sockaddr_storage* a, const struct hydns_path* p, uint32_t ifindex)
{
	struct sockaddr_in* v4 = (struct sockaddr_in*)a;
	struct sockaddr_in6* v6 = (struct sockaddr_in6*)a;

	if(p->ipv6) {
		memset(v6, 0, sizeof(*v6));
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(p->remote_port);
		memcpy(&v6->sin6_addr, p->remote, 16);
		if(IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
			v6->sin6_scope_id = ifindex;
		return (socklen_t)sizeof(*v6);
	}
	memset(v4, 0, sizeof(*v4));
	v4->sin_family = AF_INET;
	v4->sin_port = htons(p->remote_port);
	memcpy(&v4->sin_addr, p->remote, 4);
	return (socklen_t)sizeof(*v4);
}

/* --- queries to upstream and their answers --------------------------------------------------------------- */
static uint32_t random_below(void* rnd, uint32_t n)
{
	return (uint32_t)ub_random_max((struct ub_randstate*)rnd, (long int)n);
}

/* The outgoing interface of a query: any of its family, each as likely. NULL: none, or one that sockets alone can use. */
static struct port_if* choose_interface(struct outside_network* outnet, int ipv6)
{
	const int n = ipv6 ? outnet->num_ip6 : outnet->num_ip4;
	struct port_if* pif;

	if(n == 0)
		return NULL;
	pif = &(ipv6 ? outnet->ip6_ifs : outnet->ip4_ifs)[n == 1 ? 0 : ub_random_max(outnet->rnd, n)];
	return pif->pfxlen == 0 ? pif : NULL;
}

/* Writes address, IPv4's as ::ffff:a.b.c.d, and port (host order). 0: it is the wildcard. */
static int address_of(const struct sockaddr_storage* a, uint8_t addr[16], uint16_t* port)
{
	static const uint8_t any[16], mapped[12] = HYDNS_V4_MAPPED;
	const struct sockaddr_in* v4 = (const struct sockaddr_in*)a;
	const struct sockaddr_in6* v6 = (const struct sockaddr_in6*)a;

	if(a->ss_family == AF_INET6) {
		memcpy(addr, &v6->sin6_addr, 16);
		*port = ntohs(v6->sin6_port);
		return memcmp(addr, any, sizeof(any)) != 0;
	}
	memcpy(addr, mapped, sizeof(mapped));
	memcpy(addr + sizeof(mapped), &v4->sin_addr, 4);
	*port = ntohs(v4->sin_port);
	return v4->sin_addr.s_addr != INADDR_ANY;
}

static int send_upstream(struct hydns_queue* q, struct pending* pend, struct port_if* pif, struct sldns_buffer* pkt)
{
	struct hydns_upstream_query out;
	uint8_t source[16];
	uint16_t port;

	memset(&out, 0, sizeof(out));
	(void)address_of(&pend->addr, out.to.remote, &out.to.port);
	out.to.source = address_of(&pif->addr, source, &port) ? source : NULL;
	out.payload = sldns_buffer_begin(pkt);
	out.len = sldns_buffer_remaining(pkt);
	out.dscp = q->dscp;
	out.owner = q->outnet->unused_fds;
	out.random = random_below;
	out.random_arg = q->outnet->rnd;
	return (int)hydns_upstream_send(q->upstream, &out, hydns_mono_coarse_ms());
}

int hydns_upstream_query(struct hydns_context* h, struct pending* pend, struct sldns_buffer* pkt)
{
	struct hydns_queue* q = h->queue;
	struct port_comm* pc;
	struct port_if* pif;
	int port;

	if(!q || !q->upstream || !(pif = choose_interface(q->outnet, pend->addr.ss_family == AF_INET6)))
		return 0;
	port = send_upstream(q, pend, pif, pkt);
	if(port == 0)
		return 0;
	pc = q->outnet->unused_fds;
	q->outnet->unused_fds = pc->next;
	pc->next = NULL;
	pc->number = port;
	pc->pif = pif;
	pc->index = HYDNS_PORT_INDEX;
	pc->num_outstanding = 1;
	pend->pc = pc;
	return 1;
}

void hydns_upstream_port_end(struct hydns_context* h, int port)
{
	if(h->queue && h->queue->upstream)
		hydns_upstream_end(h->queue->upstream, (uint16_t)port, hydns_mono_coarse_ms());
}

/* As comm_point_udp_callback() would for the port's own socket. */
static void deliver(struct hydns_queue* q, struct port_comm* pc, const struct hydns_datagram* d, uint32_t ifindex)
{
	struct comm_reply rep;

	if(d->len > sldns_buffer_capacity(pc->cp->buffer))
		return;
	memset(&rep, 0, sizeof(rep));
	rep.c = pc->cp;
	sldns_buffer_clear(rep.c->buffer);
	sldns_buffer_write(rep.c->buffer, d->payload, d->len);
	sldns_buffer_flip(rep.c->buffer);
	rep.remote_addrlen = set_address(&rep.remote_addr, &d->path, ifindex);
	rep.client_addrlen = rep.remote_addrlen;
	memcpy(&rep.client_addr, &rep.remote_addr, rep.remote_addrlen);
	(void)outnet_udp_cb(pc->cp, q->outnet, NETEVENT_NOERROR, &rep);
}

static void take_answer(struct hydns_context* h, const struct hydns_datagram* d, const struct hydns_way* way)
{
	struct hydns_queue* q = h->queue;
	struct port_comm* pc = q->upstream ? (struct port_comm*)hydns_upstream_owner(q->upstream, d, way) : NULL;

	if(pc)
		deliver(q, pc, d, way->ifindex);
}

static void take_stray(void* context, void* owner, const struct hydns_datagram* d)
{
	deliver(((struct hydns_context*)context)->queue, (struct port_comm*)owner, d, 0);
}

/* --- queries of clients ---------------------------------------------------------------------------------- */
/* As comm_point_udp_callback() does it. */
static void take_query(void* context, const struct hydns_datagram* d, const struct hydns_way* way)
{
	struct hydns_context* h = (struct hydns_context*)context;
	struct comm_reply rep;

	rep.c = find_socket(h->queue, &d->path);
	if(!rep.c) {
		take_answer(h, d, way);
		return;
	}
	if(d->len > sldns_buffer_capacity(rep.c->buffer))
		return;
	sldns_buffer_clear(rep.c->buffer);
	sldns_buffer_write(rep.c->buffer, d->payload, d->len);
	sldns_buffer_flip(rep.c->buffer);
	rep.remote_addrlen = set_address(&rep.remote_addr, &d->path, way->ifindex);
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
	unsigned frames;

	ub_comm_base_now(h->queue->base);
	frames = hydns_lanes_receive(h->queue->lanes, BATCH, take_query, h);
	if(h->queue->upstream) /* Unbound's sockets ignore ICMP errors, too */
		hydns_upstream_read_strays(h->queue->upstream, frames, hydns_mono_coarse_ms(), take_stray, NULL, h);
}

int hydns_queue_send(struct hydns_context* h, struct comm_reply* repinfo, struct sldns_buffer* pkt)
{
	return h->queue && hydns_lanes_reply(h->queue->lanes, &repinfo->way, h->queue->dscp, sldns_buffer_begin(pkt),
		sldns_buffer_remaining(pkt), hydns_mono_coarse_ms());
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
	q->outnet = worker->back;
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
		h->queue->upstream = hydns_plugin_upstream(h->thread);
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
	if(h->queue->upstream)
		hydns_upstream_end_all(h->queue->upstream);
	comm_point_delete(h->queue->watch);
	free(h->queue);
	h->queue = NULL;
}
