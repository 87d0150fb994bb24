/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which answers the kernel should hold. Pure: no I/O, no clock, no globals; times are milliseconds of any monotonic clock,
 * passed in. The plugins use the sketch, hydnsd the rest, and hydns-sim both, so it simulates what runs. One object, one
 * thread.
 */
#ifndef HYDNS_POLICY_H
#define HYDNS_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- memory.c ---------------------------------------------------------------------------------------- */
/* Zeroed memory for a table with random accesses: aligned to a cache line, and in huge pages if it is so large that each
 * access would miss the TLB as well. Release it with free(). NULL without memory. */
void *hydns_table_new(size_t size);

/* -- sketch.c: how often was a question seen lately? ------------------------------------------------- */
struct hydns_sketch;
/* width: counters per row, rounded up to 14 * 2^n (memory: 64 octets for each 14, see sketch.c);
 * half_life_ms: after this long counts are halved, and earlier when there were many; seed: secret, 16 octets.
 * NULL without memory, for half_life_ms 0, and for more than 2^26 * 14 counters. */
struct hydns_sketch *hydns_sketch_new(uint32_t width, uint32_t half_life_ms, const uint64_t seed[2]);
void hydns_sketch_free(struct hydns_sketch *s);
/* Counts one sighting; returns the estimate with it (never below the truth since the last halving,
 * saturating at 256). A clock that steps back ages nothing. Bounded time: it accesses one cache line,
 * allocates nothing, and makes no system call. */
uint32_t hydns_sketch_count(struct hydns_sketch *s, uint64_t key, uint64_t now_ms);
/* The same for a sighting in a sample, which stands for this many (at least 1). The first of a key counts as one: it goes
 * to the doorkeeper, so that a name seen once does not look hot. */
uint32_t hydns_sketch_weigh(struct hydns_sketch *s, uint64_t key, uint32_t times, uint64_t now_ms);
/* Prefetches the block of a key that will be counted soon. */
void hydns_sketch_prefetch(const struct hydns_sketch *s, uint64_t key);
/* As of the last sighting counted. */
uint32_t hydns_sketch_estimate(const struct hydns_sketch *s, uint64_t key);
/* The time in which the counted sightings came: a question asked r times a millisecond has a count of r times this, on
 * average. At least 1. */
uint32_t hydns_sketch_window_ms(const struct hydns_sketch *s);
size_t hydns_sketch_bytes(const struct hydns_sketch *s);

/* -- policy.c: admission, eviction, refresh ------------------------------------------------------------ */
/* Rates are hits per 10^6 seconds. */
struct hydns_policy_options {
	uint32_t capacity;         /* rules at most */
	uint32_t min_hits;         /* admit when at least this many hits are expected in the rule's life */
	uint32_t hysteresis;       /* percent by which a newcomer must beat a victim; 10 */
};
struct hydns_policy;
/* ids: dense numbers 0..ids-1 given by the caller to its rules; an id out of range or not inserted is
 * ignored everywhere. HYDNS_POLICY_BYTES octets an id, allocated here once. NULL without memory or ids. */
#define HYDNS_POLICY_BYTES 56
struct hydns_policy *hydns_policy_new(const struct hydns_policy_options *o, uint32_t ids);
void hydns_policy_free(struct hydns_policy *p);
size_t hydns_policy_bytes(const struct hydns_policy *p);
/* Changes options.min_hits, for newcomers from now on. */
void hydns_policy_set_min_hits(struct hydns_policy *p, uint32_t min_hits);
/* Changes options.capacity. Rules above it stay until the caller has removed them (hydns_policy_excess()). */
void hydns_policy_set_capacity(struct hydns_policy *p, uint32_t capacity);
/* Rules above capacity. */
uint32_t hydns_policy_excess(const struct hydns_policy *p);

/* The sightings of a question whose answer is offered. */
struct hydns_sighted {
	uint64_t key;              /* of the question: a keyed hash, the same at every offer */
	uint32_t count;            /* sightings, including the one that led to the offer ... */
	uint32_t window_ms;        /* ... in about this time; 0: unknown */
};
/* Prefetches what is kept of a question, before the functions below need it. */
void hydns_policy_prefetch(const struct hydns_policy *p, uint64_t key);
enum hydns_verdict { HYDNS_REJECT_COLD, HYDNS_REJECT_FULL, HYDNS_ADMIT, HYDNS_ADMIT_EVICT };
/*
 * Decides on a newcomer with life_ms left. HYDNS_ADMIT_EVICT sets *victim to the id that must go first (expired
 * rules first, then the lowest rate as of each rule's last hydns_policy_hits(), within 12.5 %); evictions are
 * bounded to HYDNS_EVICTIONS_S a second, after a burst of as many. The caller removes the victim. Not for
 * replacements of a rule, which need no room.
 */
#define HYDNS_EVICTIONS_S(capacity) ((capacity) / 20 > 100 ? (capacity) / 20 : 100)
enum hydns_verdict hydns_policy_offer(struct hydns_policy *p, const struct hydns_sighted *s,
				      uint32_t life_ms, uint64_t now_ms, uint32_t *victim);
/* The rate to expect of a newcomer, or of the replacement of rule from_id (UINT32_MAX: it replaces none). */
uint64_t hydns_policy_expect(const struct hydns_policy *p, const struct hydns_sighted *s, uint32_t from_id,
			     uint64_t now_ms);
/* A rule was published under id. It takes over the rate of rule from_id, which it replaces (UINT32_MAX: none);
 * that one stays until it is removed, unless it is id itself. */
void hydns_policy_insert(struct hydns_policy *p, uint32_t id, uint32_t from_id, const struct hydns_sighted *s,
			 uint64_t expire_ms, uint64_t now_ms);
/* What is known of its question is kept for a while. */
void hydns_policy_remove(struct hydns_policy *p, uint32_t id);
/* The hits of a rule since the last call for it. Call it for every rule every few seconds, with 0 too, so that
 * the rate of a rule that cools down falls. O(1). */
void hydns_policy_hits(struct hydns_policy *p, uint32_t id, uint32_t hits, uint64_t now_ms);
/* The rule to remove first, e.g. when no slot of a size is free. accept() (NULL: any) may refuse ids; it is called
 * for at most 4,096 of them, so that a call takes bounded time. UINT32_MAX: none of these was accepted. */
uint32_t hydns_policy_victim(struct hydns_policy *p, uint64_t now_ms,
			     bool (*accept)(uint32_t id, void *arg), void *arg);
/* The rule that expired first, at or before now_ms; UINT32_MAX: none. The caller removes it. */
uint32_t hydns_policy_expired(struct hydns_policy *p, uint64_t now_ms);
/* As of the last hydns_policy_hits(). */
uint64_t hydns_policy_rate(const struct hydns_policy *p, uint32_t id);
/* The rate that a newcomer must promise; 0: there is room for all. */
uint32_t hydns_policy_threshold(struct hydns_policy *p, uint64_t now_ms);
/* Whether so many sightings promise more than threshold. For the plugins. */
bool hydns_policy_promises(uint32_t count, uint32_t window_ms, uint32_t threshold);

/*
 * When, in milliseconds after its start, a rule of this life begins to let queries pass for refresh: in the last percent
 * of its life, at least min_window_ms and at most half the life before its end, spread by salt so that rules of equal
 * TTL are not refreshed together, and so early that at this rate some queries will come before the end. Returns life_ms
 * (no refresh) if the rule is too cool for that, if the look-ups that refreshed lives add outnumber the queries that would
 * come during a look-up after the end, and for percent 0.
 */
uint32_t hydns_policy_refresh_at(uint32_t life_ms, uint32_t percent, uint32_t min_window_ms, uint64_t rate,
				 uint64_t salt);

#endif
