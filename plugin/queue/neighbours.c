/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/queue/neighbours.h"

#include <linux/neighbour.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "hydns/common.h"
#include "hydns/hash.h"
#include "plugin/queue/route.h"

#define SET      8               /* places that a neighbour may have */
#define SETS     (HYDNS_NEIGHBOURS / SET)
#define TRIES    64              /* of a resolver thread to lock; then its datagram takes a socket */
#define DOUBTFUL (NUD_STALE | NUD_DELAY | NUD_PROBE)
#define USABLE   (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP | DOUBTFUL)

/* What resolver threads read, in one word, so that they never see half of a change. Zero: unknown. */
union fact {
	struct {
		uint8_t ethernet[HYDNS_ETHERNET];
		uint16_t state;                /* NUD_* */
	};
	uint64_t word;
};

struct neighbour {
	_Atomic uint64_t fact;
	_Atomic uint32_t number;               /* changes when the place is given away; 0: it is free */
	_Atomic uint32_t used_ms;
	_Atomic uint32_t refreshed_ms;
	/* under the lock */
	bool ask;
	uint32_t ifindex;
	uint8_t address[16];
} __attribute__((aligned(64)));

struct hydns_neighbours {
	struct neighbour entry[HYDNS_NEIGHBOURS];
	pthread_mutex_t lock;
	_Atomic bool ask;                      /* some are to be asked for */
	uint32_t number;                       /* given last; under the lock */
	uint64_t seed[2];
};

HYDNS_STATIC_ASSERT(sizeof(union fact) == 8, "one word");

struct hydns_neighbours *hydns_neighbours_new(const uint64_t seed[2])
{
	struct hydns_neighbours *n = aligned_alloc(64, sizeof(*n));

	if (!n)
		return NULL;
	memset(n, 0, sizeof(*n));
	memcpy(n->seed, seed, sizeof(n->seed));
	pthread_mutex_init(&n->lock, NULL);
	return n;
}

void hydns_neighbours_free(struct hydns_neighbours *n)
{
	if (!n)
		return;
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* -- the table, under the lock ------------------------------------------------------------------------------ */
static struct neighbour *set_of(struct hydns_neighbours *n, uint32_t ifindex, const uint8_t address[16])
{
	struct hydns_sip s;
	uint64_t word[2];

	memcpy(word, address, sizeof(word));
	hydns_sip_begin(&s, (const __u64 *)n->seed);
	hydns_sip_word(&s, word[0]);
	hydns_sip_word(&s, word[1]);
	hydns_sip_word(&s, ifindex);
	return &n->entry[hydns_sip_end(&s) % SETS * SET];
}

static uint32_t number_of(const struct neighbour *e)
{
	return atomic_load_explicit(&e->number, memory_order_relaxed);
}

static struct neighbour *find(struct neighbour *set, uint32_t ifindex, const uint8_t address[16])
{
	for (struct neighbour *e = set; e < set + SET; e++)
		if (number_of(e) && e->ifindex == ifindex && !memcmp(e->address, address, sizeof(e->address)))
			return e;
	return NULL;
}

static uint32_t unused_for(const struct neighbour *e, uint32_t now_ms)
{
	return number_of(e) ? now_ms - atomic_load_explicit(&e->used_ms, memory_order_relaxed) : UINT32_MAX;
}

/* The place that was not used for longest; NULL: all were used of late. */
static struct neighbour *free_place(struct neighbour *set, uint32_t now_ms)
{
	struct neighbour *oldest = set;

	for (struct neighbour *e = set + 1; e < set + SET; e++)
		if (unused_for(e, now_ms) > unused_for(oldest, now_ms))
			oldest = e;
	return unused_for(oldest, now_ms) > HYDNS_NEIGHBOUR_KEPT_MS ? oldest : NULL;
}

static void set_fact(struct neighbour *e, union fact f)
{
	atomic_store_explicit(&e->fact, f.word, memory_order_release);
}

/* Whoever reads the fact that is stored last here sees the number that is stored first. */
static void give(struct hydns_neighbours *n, struct neighbour *e, uint32_t ifindex, const uint8_t address[16], uint32_t now_ms)
{
	if (!++n->number)
		n->number = 1;
	atomic_store_explicit(&e->number, n->number, memory_order_release);
	set_fact(e, (union fact){ .word = 0 });
	e->ifindex = ifindex;
	memcpy(e->address, address, sizeof(e->address));
	atomic_store_explicit(&e->used_ms, now_ms, memory_order_relaxed);
	atomic_store_explicit(&e->refreshed_ms, now_ms - HYDNS_NEIGHBOUR_REFRESH_MS, memory_order_relaxed);
	e->ask = true;
	atomic_store_explicit(&n->ask, true, memory_order_relaxed);
}

/* -- resolver threads ----------------------------------------------------------------------------------------- */
/* Never waits for a link thread that was stopped while it held the lock. */
static bool lock_soon(struct hydns_neighbours *n)
{
	for (int tries = 0; tries < TRIES; tries++)
		if (!pthread_mutex_trylock(&n->lock))
			return true;
	return false;
}

bool hydns_neighbours_place(struct hydns_neighbours *n, uint32_t ifindex, const uint8_t address[16], uint32_t now_ms,
			    struct hydns_neighbour_place *p)
{
	struct neighbour *set = set_of(n, ifindex, address), *e;

	if (!lock_soon(n))
		return false;
	e = find(set, ifindex, address);
	if (!e) {
		e = free_place(set, now_ms);
		if (e)
			give(n, e, ifindex, address, now_ms);
	}
	if (e)
		*p = (struct hydns_neighbour_place){ .number = number_of(e), .place = (uint16_t)(e - n->entry) };
	pthread_mutex_unlock(&n->lock);
	return e != NULL;
}

/* One thread alone in this interval: it takes the socket. */
static bool refresh_due(struct neighbour *e, uint32_t now_ms)
{
	uint32_t last = atomic_load_explicit(&e->refreshed_ms, memory_order_relaxed);

	return now_ms - last >= HYDNS_NEIGHBOUR_REFRESH_MS && atomic_compare_exchange_strong(&e->refreshed_ms, &last, now_ms);
}

enum hydns_neighbour_result hydns_neighbour_read(struct hydns_neighbours *n, struct hydns_neighbour_place p, uint32_t now_ms,
						 uint8_t *ethernet)
{
	struct neighbour *e = &n->entry[p.place];
	const union fact f = { .word = atomic_load_explicit(&e->fact, memory_order_acquire) };

	if (number_of(e) != p.number)
		return HYDNS_NEIGHBOUR_REPLACED;
	/* seldom, for all threads share the cache line */
	if (unused_for(e, now_ms) >= HYDNS_NEIGHBOUR_KEPT_MS / 10)
		atomic_store_explicit(&e->used_ms, now_ms, memory_order_relaxed);
	if (!(f.state & USABLE))
		return HYDNS_NEIGHBOUR_UNKNOWN;
	memcpy(ethernet, f.ethernet, sizeof(f.ethernet));
	return f.state & DOUBTFUL && refresh_due(e, now_ms) ? HYDNS_NEIGHBOUR_REFRESH : HYDNS_NEIGHBOUR_USABLE;
}

/* -- the link thread ------------------------------------------------------------------------------------------ */
static const void *attr(const struct nlmsghdr *h, unsigned short type, size_t least)
{
	const struct ndmsg *m = NLMSG_DATA(h);

	const struct rtattr *first = (const struct rtattr *)((const char *)m + NLMSG_ALIGN(sizeof(*m)));

	return hydns_netlink_attr(first, (int)NLMSG_PAYLOAD(h, sizeof(struct ndmsg)), type, least);
}

/* A state without an Ethernet address is none that a frame could be sent by. */
static union fact fact_of(const struct nlmsghdr *h)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	const void *ethernet = attr(h, NDA_LLADDR, HYDNS_ETHERNET);
	union fact f = { .word = 0 };

	if (h->nlmsg_type == RTM_NEWNEIGH && ethernet) {
		memcpy(f.ethernet, ethernet, sizeof(f.ethernet));
		f.state = m->ndm_state;
	}
	return f;
}

void hydns_neighbours_take(struct hydns_neighbours *n, const struct nlmsghdr *h)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	uint8_t address[16];
	struct neighbour *e;
	const void *octets;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || (m->ndm_family != AF_INET && m->ndm_family != AF_INET6) ||
	    m->ndm_flags & NTF_PROXY)
		return;
	octets = attr(h, NDA_DST, hydns_address_len(m->ndm_family));
	if (!octets)
		return;
	hydns_address_set(address, m->ndm_family, octets);
	pthread_mutex_lock(&n->lock);
	e = find(set_of(n, (uint32_t)m->ndm_ifindex, address), (uint32_t)m->ndm_ifindex, address);
	if (e)
		set_fact(e, fact_of(h));
	pthread_mutex_unlock(&n->lock);
}

void hydns_neighbours_forget(struct hydns_neighbours *n)
{
	pthread_mutex_lock(&n->lock);
	for (struct neighbour *e = n->entry; e < n->entry + HYDNS_NEIGHBOURS; e++) {
		set_fact(e, (union fact){ .word = 0 });
		e->ask = true;
	}
	pthread_mutex_unlock(&n->lock);
	atomic_store_explicit(&n->ask, true, memory_order_relaxed);
}

/* False: it could not be asked, and stays to be asked for. */
static bool ask_for(struct hydns_neighbours *n, struct hydns_rtnl *r, uint32_t ifindex, const uint8_t address[16])
{
	const struct ndmsg m = { .ndm_ifindex = (int)ifindex,
				 .ndm_family = hydns_address_is_ipv4(address) ? AF_INET : AF_INET6 };
	const struct nlmsghdr *h;
	struct hydns_rtnl_request q;
	int rc;

	hydns_rtnl_begin(&q, RTM_GETNEIGH, &m, sizeof(m));
	hydns_rtnl_add_address(&q, NDA_DST, address);
	rc = hydns_rtnl_ask(r, &q, RTM_NEWNEIGH, sizeof(m), &h);
	if (!rc)
		hydns_neighbours_take(n, h);
	return rc != HYDNS_RTNL_LOST;
}

/* The next that is to be asked for, from *place on; false: none is. */
static bool next_to_ask(struct hydns_neighbours *n, unsigned *place, uint32_t *ifindex, uint8_t address[16])
{
	struct neighbour *e = NULL;

	pthread_mutex_lock(&n->lock);
	for (; *place < HYDNS_NEIGHBOURS && !e; ++*place)
		if (n->entry[*place].ask && number_of(&n->entry[*place]))
			e = &n->entry[*place];
	if (e) {
		e->ask = false;
		*ifindex = e->ifindex;
		memcpy(address, e->address, sizeof(e->address));
	}
	pthread_mutex_unlock(&n->lock);
	return e != NULL;
}

void hydns_neighbours_ask(struct hydns_neighbours *n, struct hydns_rtnl *r)
{
	uint8_t address[16];
	uint32_t ifindex;

	if (!atomic_exchange(&n->ask, false))
		return;
	for (unsigned place = 0; next_to_ask(n, &place, &ifindex, address);)
		if (!ask_for(n, r, ifindex, address)) {
			pthread_mutex_lock(&n->lock);
			n->entry[place - 1].ask = true;    /* given away meanwhile: it is to be asked for, too */
			pthread_mutex_unlock(&n->lock);
			atomic_store(&n->ask, true);
			return;
		}
}
