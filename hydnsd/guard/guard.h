/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The guard's rules for suffixes: made when a resolver reports that what it asks for names below one fails or is slow, or by order of
 * the operator; each with an end. The program counts and decides (hydns/guard.h). With option guard: off there is none.
 */
#ifndef HYDNSD_GUARD_GUARD_H
#define HYDNSD_GUARD_GUARD_H

#include "hydns/guard.h"
#include "hydnsd/daemon/daemon.h"

/* Rules that the reports of one resolver may have at once: none can fill the table. */
#define HYDNSD_GUARD_REPORTED_MOST (HYDNS_GUARD_RULES / HYDNS_RESOLVERS)

enum hydnsd_guard_why {
	HYDNSD_GUARD_ORDERED,          /* by hydnsctl */
	HYDNSD_GUARD_FAILURES,
	HYDNSD_GUARD_WAITING,
};

struct hydnsd_guard_suffix {
	__u64 key;
	uint8_t name[HYDNS_GUARD_SUFFIX_MOST];
	uint8_t len;                   /* 0: the place is free */
	uint8_t labels;
	uint8_t resolver;
	enum hydnsd_guard_why why;
	uint32_t figure;               /* what was reported last: failures a second, or recursions that wait */
	uint32_t queries, action;      /* as in struct hydns_guard_rule */
	uint64_t since_ms, until_ms;   /* monotonic */
};

struct hydnsd_guard_counts {
	uint64_t reports;              /* of resolvers */
	uint64_t refused;              /* of these: no room, or no such suffix may be guarded */
	uint64_t begun;                /* rules */
};

/* What hydnsctl orders. */
struct hydnsd_guard_order {
	uint8_t name[HYDNS_GUARD_SUFFIX_MOST];
	uint8_t len;
	uint32_t resolver;
	uint32_t queries, action, seconds;
};

/* "off", "count" or "enforce" */
const char *hydnsd_guard_mode_text(const struct hydnsd_options *o);
/* For the program; all 0: the options want no guard. */
struct hydns_loader_guard hydnsd_guard_limits(const struct hydnsd_options *o);
/* d->guard stays NULL if the program has no guard. */
int hydnsd_guard_start(struct hydnsd *d, char *why, size_t room);
void hydnsd_guard_stop(struct hydnsd *d);
/* Once a second: rules end. */
void hydnsd_guard_tick(struct hydnsd *d);
/* What resolvers are to report; 0: nothing. */
void hydnsd_guard_thresholds(const struct hydnsd *d, uint32_t *failures, uint32_t *waiting);
/* A resolver reports a suffix of its own names. */
void hydnsd_guard_report(struct hydnsd *d, uint32_t resolver, const struct hydns_guard_report *r);
/* The resolver leaves: its rules end. */
void hydnsd_guard_release(struct hydnsd *d, uint32_t resolver);
/* Makes or replaces a rule, which reports do not change. 0, or -ENOSPC or another negative errno. */
int hydnsd_guard_order(struct hydnsd *d, const struct hydnsd_guard_order *o);
/* Ends the rules of this suffix (len 0: all) at this resolver, or HYDNSD_ANY_RESOLVER. Returns how many. */
uint32_t hydnsd_guard_lift(struct hydnsd *d, const uint8_t *name, size_t len, uint32_t resolver);

/* Rule number i, or NULL when its place is free; i below HYDNS_GUARD_RULES. */
const struct hydnsd_guard_suffix *hydnsd_guard_at(const struct hydnsd *d, uint32_t i);
uint32_t hydnsd_guard_count(const struct hydnsd *d);
const struct hydnsd_guard_counts *hydnsd_guard_counts(const struct hydnsd *d);
const char *hydnsd_guard_why_text(enum hydnsd_guard_why why);

#endif
