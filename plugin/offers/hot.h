/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which sightings lead to an offer, and which answers are refreshed, by the popularity sketch of a resolver thread and the
 * table of what has been offered. No clock and no I/O, so that the simulator runs this very code.
 */
#ifndef PLUGIN_OFFERS_HOT_H
#define PLUGIN_OFFERS_HOT_H

#include "offload-policy/policy.h"

#define HYDNS_CACHE_LINE 64

/* -- offered.c: which answers have been offered ------------------------------------------------------- */
struct hydns_offered;
struct hydns_offered *hydns_offered_new(uint32_t capacity);
void hydns_offered_free(struct hydns_offered *t);
size_t hydns_offered_bytes(const struct hydns_offered *t);
/* Prefetches the key's place, which will be looked up soon. */
void hydns_offered_prefetch(const struct hydns_offered *t, uint64_t key);
/* Only the part of it that hydns_offered_first_sight() needs for most keys. */
void hydns_offered_prefetch_tag(const struct hydns_offered *t, uint64_t key);
/* True when this answer (question and expiry) was offered under this store serial and it is too soon to
 * repeat it; it is not if there are clearly more sightings than then (count; 0: unknown). now_ms: of any
 * clock, but always of the same. */
bool hydns_offered_lately(struct hydns_offered *t, uint64_t key, uint32_t expires, uint32_t store_serial,
			  uint32_t now_ms, uint32_t count);
/* count: sightings in the offer; 0: the answer is not offloadable, which need not be found out again at
 * once. generation: of the answer's stamp. */
void hydns_offered_record(struct hydns_offered *t, uint64_t key, uint32_t expires, uint32_t store_serial,
			uint32_t now_ms, uint64_t generation, uint32_t count);
/* True when the question was neither offered under this store serial nor given to this function lately. */
bool hydns_offered_first_sight(struct hydns_offered *t, uint64_t key, uint32_t store_serial);
/* True when the question was offered under this store serial, whatever became of it. */
bool hydns_offered_before(struct hydns_offered *t, uint64_t key, uint32_t store_serial);
/* True when the question was offered under this store serial, from generation withdrawn or later, and the answer
 * ends after now (seconds, as expires). */
bool hydns_offered_stands(struct hydns_offered *t, uint64_t key, uint32_t store_serial, uint32_t now,
			  uint64_t withdrawn);
/* True when the question was offered under this store serial and no refresh was claimed in the last rearm_ms. */
bool hydns_offered_claim_refresh(struct hydns_offered *t, uint64_t key, uint32_t store_serial, uint32_t now_ms,
				 uint32_t rearm_ms);

/* -- hot.c ------------------------------------------------------------------------------------------------ */
/* Octets of a thread's sketch for a store of this many rules (0: hydnsd's limit, taken for HYDNS_HOT_CAPACITY). */
#define HYDNS_HOT_CAPACITY (1U << 17)
uint32_t hydns_hot_sketch_width(uint32_t capacity);

/*
 * The sample, which sightings are counted: all of them while a thread has few, else one of several, chosen at random (else
 * of clients that alternate between A and AAAA only one of the two might be counted). Counting a sighting costs some cache
 * misses; with the sample it costs a small share of the thread's time at any rate of queries.
 */
#define HYDNS_SAMPLE_PER_S 10000U  /* sightings that are counted a second, at most twice as many */
#define HYDNS_SAMPLE_MAX   64U     /* queries that a sighting stands for */
#define HYDNS_SAMPLE_MS    10U     /* in which a rate is measured, at least */
struct hydns_sample {
	uint32_t left;         /* sightings until the next one is counted, ... */
	uint32_t gap;          /* ... of so many that are not */
	uint32_t second;       /* of the last one that was counted */
	uint32_t weight;       /* what that one stands for; at least 1 */
	uint32_t next_weight;
	uint32_t seen;         /* since since_ms */
	uint64_t since_ms;
	uint32_t random;       /* not 0 */
};
void hydns_sample_start(struct hydns_sample *k, uint32_t seed);
/* A sighting in this second of any clock. True: it need not be counted. False: hydns_sample_take() follows. */
bool hydns_sample_skips(struct hydns_sample *k, uint32_t now_s);
/* Counts this one. now_ms: of another clock. */
void hydns_sample_take(struct hydns_sample *k, uint32_t now_s, uint64_t now_ms);

struct hydns_hot {
	struct hydns_sketch *sketch;   /* the thread's own */
	struct hydns_offered *offered; /* shared by the threads */
};
/*
 * Counts a sighting of the question at now_ms, which stands for this many. Returns the sightings when it is hot, else 0:
 * it was seen at least admission times lately, and promises more than threshold (hydns_policy_threshold(), from hydnsd) or
 * was offered before, in which case hydnsd may know more of it.
 */
uint32_t hydns_hot_sighted(const struct hydns_hot *h, uint64_t key, uint32_t store_serial, uint32_t admission,
			   uint32_t threshold, uint32_t times, uint64_t now_ms);
/* The same; true when it is hot and its answer, which ends at expires, was not offered a moment ago. */
bool hydns_hot_seen(const struct hydns_hot *h, uint64_t key, uint32_t expires, uint32_t store_serial,
		    uint32_t admission, uint32_t threshold, uint32_t times, uint64_t now_ms);
/* True when an answer that ends at expires (seconds, as now) after lifetime seconds is in the last percent of its life. */
bool hydns_hot_near_end(uint64_t expires, uint64_t lifetime, uint64_t now, uint32_t percent);
/* True when the question was offered before: its answer, which is near its end, should be refreshed now. True once per re-arm
 * time. */
bool hydns_hot_refresh_due(const struct hydns_hot *h, uint64_t key, uint32_t store_serial, uint64_t now_ms);

#endif
