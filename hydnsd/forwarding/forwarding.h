/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Forwarded queries: tells the program which zones and upstream servers there are, keeps the open requests, makes rules of answers, and
 * has the parked queries replayed (doc/forwarding.md). Nothing here waits.
 */
#ifndef HYDNSD_FORWARDING_FORWARDING_H
#define HYDNSD_FORWARDING_FORWARDING_H

#include <sys/queue.h>

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/forwarding/relay.h"
#include "hydnsd/forwarding/way.h"
#include "hydnsd/forwarding/zones.h"
#include "hydnsd/rules/histogram.h"

struct hydnsd_forward_open;

/* How requests have ended. */
struct hydnsd_forward_counts {
	uint64_t relayed;              /* a rule was made of the answer */
	uint64_t rejected;             /* the answer could have been relayed, but was withdrawn meanwhile, or found no room */
	uint64_t not_relayed[HYDNSD_RELAYS];
	uint64_t timed_out;
	uint64_t again;                /* of these, sent to another upstream server */
	uint64_t ended;                /* before an answer came: its zone is not forwarded any more */
	uint64_t late;                 /* answers after that */
	struct hydnsd_histogram took;  /* from a request to its answer */
};

TAILQ_HEAD(hydnsd_forward_queue, hydnsd_forward_open);
struct hydnsd_upstream {
	struct hydns_forward_server server;
	enum hydnsd_way way;
	uint32_t device;               /* that the route to it names; 0: none */
	uint64_t looked_ms;            /* for its way */
	uint32_t srtt_us, variation_us; /* RFC 6298; 0: nothing was measured */
	uint32_t failures;             /* timeouts since the last answer */
	uint64_t down_until_ms;        /* 0: it is not */
	uint64_t sent, answers, timeouts;
	struct hydnsd_forward_queue open; /* the oldest first */
	uint32_t open_count;
};

struct hydnsd_forward_resolver {
	struct hydnsd_zones *zones;    /* that count; NULL: none */
	struct hydnsd_zones *coming;   /* whose messages come */
	struct hydnsd_upstream upstream[HYDNS_FORWARD_UPSTREAMS];
	uint32_t open;
	struct hydnsd_forward_counts counts;
	struct hydns_forward_count base; /* the program's counts when the resolver came */
};

#define HYDNSD_FORWARD_ANSWERED 256
#define HYDNSD_FORWARD_PLACES 4096     /* power of two */
LIST_HEAD(hydnsd_forward_chain, hydnsd_forward_open);
struct hydnsd_forward_open {
	LIST_ENTRY(hydnsd_forward_open) chain;
	TAILQ_ENTRY(hydnsd_forward_open) next; /* of its upstream */
	uint64_t key;
	uint32_t resolver;
	struct hydns_forwarded facts;
	uint16_t qtype;                /* network order */
	uint8_t name_len;
	uint8_t name[HYDNS_NAME_MAX];  /* lower case */
};

struct hydnsd_forwarding {
	struct hydnsd_watch *watch;
	bool ports;                    /* the program knows the range of reserved ports */
	bool any_way;                  /* answers may come by any interface with the program */
	uint64_t filter_ms;            /* when rp_filter was read for that */
	uint32_t again;                /* queries sent to another upstream server in this round */
	struct hydns_forward_question answered[HYDNSD_FORWARD_ANSWERED]; /* in this round, whose element of hydns_fwd_open is there yet */
	uint32_t answered_count;
	struct hydnsd_forward_resolver of[HYDNS_RESOLVERS];
	struct hydnsd_forward_chain place[HYDNSD_FORWARD_PLACES];
};

int hydnsd_forwarding_start(struct hydnsd *d, char *why, size_t room);
/* Before parking stops: all requests have ended. */
void hydnsd_forwarding_stop(struct hydnsd *d);

/* A resolver gets an index that another may have had. */
void hydnsd_forwarding_begin(struct hydnsd *d, uint32_t i);
/* Its zones are forgotten, and its requests end. */
void hydnsd_forwarding_forbid(struct hydnsd *d, uint32_t i);
/* A FORWARDS message of a resolver that is ready. False: refused; why says the cause. */
bool hydnsd_forwarding_message(struct hydnsd *d, uint32_t i, const void *message, size_t len, char *why, size_t room);

/* Whether the question is open: queries for it wait. */
bool hydnsd_forwarding_is_open(struct hydnsd *d, uint32_t i, uint64_t key);
/* The upstream server that it was sent to; NULL: it is not open. */
const struct hydnsd_upstream *hydnsd_forwarding_asked(struct hydnsd *d, uint32_t i, uint64_t key);
/* Each round of the loop, before parking's work: takes answers, ends requests. Returns how long the loop may sleep, in ms; -1: for
 * ever. */
int hydnsd_forwarding_work(struct hydnsd *d);
/* Every 50 ms: looks for the ways to upstream servers. */
void hydnsd_forwarding_tick(struct hydnsd *d);

/* What the program has counted for the resolver since it has its index. */
void hydnsd_forwarding_program_counts(struct hydnsd *d, uint32_t i, struct hydns_forward_count *out);

/* -- upstreams.c ------------------------------------------------------------------------------------------- */
/* The upstream servers of new zones; what is known of a server stays. */
void hydnsd_upstreams_set(struct hydnsd_forward_resolver *r, const struct hydnsd_zones *z);
/* Milliseconds after which a request to it has failed. */
uint32_t hydnsd_upstream_timeout_ms(const struct hydnsd_upstream *u);
void hydnsd_upstream_answered(struct hydnsd_upstream *u, uint64_t rtt_ns);
void hydnsd_upstream_timed_out(struct hydnsd_upstream *u, uint64_t now_ms);
/* Which may be asked now. */
uint32_t hydnsd_upstreams_usable(struct hydnsd_forward_resolver *r, uint64_t now_ms);

#endif
