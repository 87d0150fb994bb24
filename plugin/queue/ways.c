/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/queue/ways.h"

#include <linux/if_ether.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "hydns/common.h"
#include "hydns/hash.h"
#include "plugin/queue/neighbours.h"

#define SET        8                   /* places that a way may have */
#define SETS       (HYDNS_WAYS / SET)
#define INTERFACES 16                  /* that each thread remembers */
#define DRAIN_MOST 4096                /* datagrams: the link thread has more to do */
#define NOTICE     32768               /* octets of a datagram of notices */
#define NOTICES    (HYDNS_NOTICES(LINK) | HYDNS_NOTICES(NEIGH) | HYDNS_NOTICES(NEXTHOP) | \
		    HYDNS_NOTICES(IPV4_IFADDR) | HYDNS_NOTICES(IPV4_ROUTE) | HYDNS_NOTICES(IPV4_RULE) | \
		    HYDNS_NOTICES(IPV6_IFADDR) | HYDNS_NOTICES(IPV6_ROUTE) | HYDNS_NOTICES(IPV6_RULE))

/* What the kernel has said to a question. */
struct way {
	uint8_t remote[16];
	uint8_t source[16];            /* of the question, or the kernel's choice */
	uint32_t changes;              /* of the network, when it was asked; 0: no way is kept here */
	uint32_t asked_ms;
	struct hydns_neighbour_place next_hop;
	uint32_t ifindex;              /* 0: there is no way */
	uint16_t port;
	uint16_t mtu;
	uint8_t own[HYDNS_ETHERNET];
	bool source_given;
} __attribute__((aligned(64)));

struct way_thread {
	struct way way[HYDNS_WAYS];
	struct hydns_rtnl rtnl;
	struct hydns_interface interface[INTERFACES];
	uint32_t interfaces_read;      /* changes of the network until then */
} __attribute__((aligned(64)));

struct hydns_ways {
	int notices;
	bool lost;                     /* some, and maybe more until all that wait are read */
	_Atomic uint32_t changes;      /* of the network so far; never 0 */
	uint64_t seed[2];
	struct hydns_neighbours *neighbours;
	struct hydns_rtnl rtnl;        /* the link thread's */
	uint32_t threads;
	struct way_thread *thread;
	char notice[NOTICE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

HYDNS_STATIC_ASSERT(sizeof(struct way) == 64, "one cache line");

static bool open_all(struct hydns_ways *w)
{
	bool good = !hydns_rtnl_open(&w->rtnl);

	for (uint32_t i = 0; i < w->threads; i++)
		good &= !hydns_rtnl_open(&w->thread[i].rtnl);
	w->notices = hydns_netlink_listen(NOTICES, NULL);
	return good && w->notices >= 0;
}

struct hydns_ways *hydns_ways_new(uint32_t threads, const uint64_t seed[2])
{
	struct hydns_ways *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->notices = w->rtnl.fd = -1;
	atomic_init(&w->changes, 1);
	memcpy(w->seed, seed, sizeof(w->seed));
	w->neighbours = hydns_neighbours_new(seed);
	w->thread = aligned_alloc(64, threads * sizeof(*w->thread));
	if (w->thread) {
		memset(w->thread, 0, threads * sizeof(*w->thread));
		w->threads = threads;
	}
	if (w->thread && w->neighbours && open_all(w))
		return w;
	hydns_ways_free(w);
	return NULL;
}

void hydns_ways_free(struct hydns_ways *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->threads; i++)
		hydns_rtnl_close(&w->thread[i].rtnl);
	hydns_rtnl_close(&w->rtnl);
	if (w->notices >= 0)
		close(w->notices);
	hydns_neighbours_free(w->neighbours);
	free(w->thread);
	free(w);
}

/* -- the link thread ------------------------------------------------------------------------------------------ */
int hydns_ways_fd(const struct hydns_ways *w)
{
	return w->notices;
}

/* True: ways may have changed. */
static bool take_notices(struct hydns_ways *w, size_t left)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)w->notice;
	bool changed = false;

	for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
		if (h->nlmsg_type == RTM_NEWNEIGH || h->nlmsg_type == RTM_DELNEIGH)
			hydns_neighbours_take(w->neighbours, h);
		else
			changed = true;
	return changed || left > 0;    /* the rest can't be read: a notice that is longer than there is room */
}

static void note_change(struct hydns_ways *w)
{
	const uint32_t next = atomic_load_explicit(&w->changes, memory_order_relaxed) + 1;

	atomic_store_explicit(&w->changes, next ? next : 1, memory_order_release);
}

void hydns_ways_follow(struct hydns_ways *w)
{
	bool changed = false, all = false;

	for (int most = DRAIN_MOST; most && !all; most--) {
		const ssize_t n = hydns_netlink_receive(w->notices, w->notice, sizeof(w->notice), 0);

		if (n > 0)
			changed |= take_notices(w, (size_t)n);
		w->lost |= n == -ENOBUFS;
		all = n < 0 && n != -ENOBUFS;
	}
	if (w->lost)
		hydns_neighbours_forget(w->neighbours);
	if (changed || w->lost)
		note_change(w);
	/* The kernel says once that notices were lost, and goes on losing them until the last one is read. */
	if (all)
		w->lost = false;
	hydns_neighbours_ask(w->neighbours, &w->rtnl);
}

/* -- resolver threads ------------------------------------------------------------------------------------------ */
static struct way *set_of(const struct hydns_ways *w, struct way_thread *t, const struct hydns_route_question *q)
{
	struct hydns_sip s;
	uint64_t word[4] = { 0 };

	memcpy(word, q->remote, 16);
	if (q->source)
		memcpy(word + 2, q->source, 16);
	hydns_sip_begin(&s, (const __u64 *)w->seed);
	for (unsigned i = 0; i < 4; i++)
		hydns_sip_word(&s, word[i]);
	hydns_sip_word(&s, q->port);
	return &t->way[hydns_sip_end(&s) % SETS * SET];
}

static bool current(const struct way *e, uint32_t changes, uint32_t now_ms)
{
	return e->changes == changes && now_ms - e->asked_ms < HYDNS_WAY_LIFE_MS;
}

static struct way *find_kept(struct way *set, const struct hydns_route_question *q, uint32_t changes, uint32_t now_ms)
{
	for (struct way *e = set; e < set + SET; e++)
		if (current(e, changes, now_ms) && e->port == q->port && !memcmp(e->remote, q->remote, sizeof(e->remote)) &&
		    e->source_given == !!q->source && !(q->source && memcmp(e->source, q->source, sizeof(e->source))))
			return e;
	return NULL;
}

/* One whose time is over, else the oldest. */
static struct way *place_for(struct way *set, uint32_t changes, uint32_t now_ms)
{
	struct way *oldest = set;

	for (struct way *e = set; e < set + SET; e++) {
		if (!current(e, changes, now_ms))
			return e;
		if (now_ms - e->asked_ms > now_ms - oldest->asked_ms)
			oldest = e;
	}
	return oldest;
}

static const struct hydns_interface *interface_of(struct way_thread *t, uint32_t ifindex, uint32_t changes)
{
	struct hydns_interface *i = &t->interface[ifindex % INTERFACES];

	if (t->interfaces_read != changes)
		memset(t->interface, 0, sizeof(t->interface));
	t->interfaces_read = changes;
	if (i->ifindex != ifindex)
		hydns_interface_read(i, ifindex, t->rtnl.fd);
	return i;
}

/* False: the next hop has no place. */
static bool set_way(struct hydns_ways *w, struct way_thread *t, struct way *e, const struct hydns_route *r, uint32_t changes,
		    uint32_t now_ms)
{
	const struct hydns_interface *i = interface_of(t, r->ifindex, changes);

	memcpy(e->source, r->source, sizeof(e->source));
	memcpy(e->own, i->own, sizeof(e->own));
	e->mtu = r->mtu < i->mtu ? r->mtu : i->mtu;
	if (e->mtu < HYDNS_MTU_LEAST)
		return true;
	e->ifindex = r->ifindex;
	return hydns_neighbours_place(w->neighbours, r->ifindex, r->next_hop, now_ms, &e->next_hop);
}

/* Keeps what the kernel says, also that there is no way. */
static enum hydns_way_result ask(struct hydns_ways *w, struct way_thread *t, struct way *e,
				 const struct hydns_route_question *q, uint32_t changes, uint32_t now_ms)
{
	struct hydns_route r;
	const enum hydns_route_result found = hydns_route_ask(&t->rtnl, q, &r);

	*e = (struct way){ .port = q->port, .asked_ms = now_ms, .source_given = !!q->source };
	if (found == HYDNS_ROUTE_UNKNOWN)
		return HYDNS_WAY_NO_WAY;
	memcpy(e->remote, q->remote, sizeof(e->remote));
	if (q->source)
		memcpy(e->source, q->source, sizeof(e->source));
	if (found == HYDNS_ROUTE_FOUND && !set_way(w, t, e, &r, changes, now_ms))
		return HYDNS_WAY_NO_NEIGHBOUR;
	e->changes = changes;
	return HYDNS_WAY_FOUND;
}

static void set_out(struct hydns_way_out *out, const struct way *e, const uint8_t ethernet[HYDNS_ETHERNET])
{
	const bool ipv4 = hydns_address_is_ipv4(e->remote);
	const size_t from = ipv4 ? HYDNS_MAPPED : 0;
	const uint16_t type = ipv4 ? ETH_P_IP : ETH_P_IPV6;

	*out = (struct hydns_way_out){ .ifindex = e->ifindex, .mtu = e->mtu,
				       .path = { .l2_len = ETH_HLEN, .ipv6 = !ipv4, .remote_port = e->port } };
	memcpy(out->path.l2, ethernet, HYDNS_ETHERNET);
	memcpy(out->path.l2 + HYDNS_ETHERNET, e->own, HYDNS_ETHERNET);
	out->path.l2[ETH_HLEN - 2] = (uint8_t)(type >> 8);
	out->path.l2[ETH_HLEN - 1] = (uint8_t)type;
	memcpy(out->path.local, e->source + from, sizeof(e->source) - from);
	memcpy(out->path.remote, e->remote + from, sizeof(e->remote) - from);
}

enum hydns_way_result hydns_way_find(struct hydns_ways *w, uint32_t thread, const struct hydns_route_question *q,
				     uint64_t now, struct hydns_way_out *out)
{
	/* read before the kernel is asked: what changes after that has another number */
	const uint32_t changes = atomic_load_explicit(&w->changes, memory_order_acquire), now_ms = (uint32_t)now;
	struct way_thread *t = &w->thread[thread];
	struct way *set = set_of(w, t, q), *e = find_kept(set, q, changes, now_ms);
	enum hydns_way_result result = HYDNS_WAY_FOUND;
	uint8_t ethernet[HYDNS_ETHERNET];

	if (!e) {
		e = place_for(set, changes, now_ms);
		result = ask(w, t, e, q, changes, now_ms);
	}
	if (result != HYDNS_WAY_FOUND)
		return result;
	if (!e->ifindex)
		return HYDNS_WAY_NO_WAY;
	switch (hydns_neighbour_read(w->neighbours, e->next_hop, now_ms, ethernet)) {
	case HYDNS_NEIGHBOUR_USABLE:
		set_out(out, e, ethernet);
		return HYDNS_WAY_FOUND;
	case HYDNS_NEIGHBOUR_REFRESH:
		return HYDNS_WAY_REFRESH_NEIGHBOUR;
	default:
		/* the kernel may choose another router, without a notice, when this one does not answer */
		e->changes = 0;
		return HYDNS_WAY_NO_NEIGHBOUR;
	}
}

enum hydns_detour hydns_way_detour(enum hydns_way_result why)
{
	static const enum hydns_detour detour[] = {
		[HYDNS_WAY_NO_WAY] = HYDNS_DETOUR_NO_WAY,
		[HYDNS_WAY_NO_NEIGHBOUR] = HYDNS_DETOUR_NO_NEIGHBOUR,
		[HYDNS_WAY_REFRESH_NEIGHBOUR] = HYDNS_DETOUR_REFRESH_NEIGHBOUR,
	};

	return detour[why];
}
