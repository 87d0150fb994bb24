/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * hyDNS itself: the real code, with a simulated clock and simulated packets. From the resolver's plugin: sketch, threshold,
 * table of offers, refreshes (plugin/offers/hot.h). From hydnsd: rules.c with policy and rule store in plain memory, with
 * sweep, expiry and grace periods at hydnsd's own intervals (hydnsd/rules/rules.h). The XDP program's part is answer() below:
 * look-up in the store, expiry, claim of a refresh, hit counter, as in hydns-kern/program/rule/answer.bpf.h and lookup.bpf.h.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "hydns/hash.h"
#include "hydns-kern/store/geometry.h"
#include "hydns-sim/contender.h"
#include "hydns-sim/hydns.h"
#include "hydns-sim/resolver.h"
#include "hydnsd/rules/rules.h"
#include "hydnsd/rules/signature.h"
#include "plugin/offers/hot.h"

#define GRACE_MS    16                 /* of membarrier(), where CPUs are busy */
#define SESSION     1
#define NAME_LEN    10                 /* one label of eight letters */
#define ANSWER_LEN  16                 /* one address record */
#define TTL_AT      6
#define QTYPE       1

struct contender {
	struct hydns_geometry geometry;
	struct hydns_store_memory memory;
	struct hydns_line *hits;
	struct hydnsd_rules *rules;
	struct hydns_sample sample;
	struct hydns_hot hot;
	uint64_t seed[2];
	uint64_t housekeeping_ms, sweep_ms, swept_ms, grace_ms;
	bool sweeping, grace;
	uint64_t offers;
	const struct sim_hydns_options *options;
	struct hydnsd_answer answer;
};

static struct sim_hydns_options the_options = SIM_HYDNS_DEFAULTS;

struct sim_hydns_options *sim_hydns_options(void)
{
	return &the_options;
}

/* -- memory ------------------------------------------------------------------------------------------------ */
static void *zeroed(size_t count, size_t size)
{
	size_t bytes = (count * size + 63) & ~(size_t)63;
	void *p = aligned_alloc(64, bytes ? bytes : 64);

	return p ? memset(p, 0, bytes) : NULL;
}

static bool open_memory(struct contender *c, uint32_t capacity)
{
	hydns_geometry_for(capacity, 1, 1, &c->geometry);
	memcpy(c->geometry.seed, c->seed, sizeof(c->seed));
	c->hits = zeroed(c->geometry.lines, sizeof(*c->hits));
	c->memory = (struct hydns_store_memory){
		.geometry = &c->geometry, .hits = c->hits,
		.index = zeroed(c->geometry.buckets, sizeof(struct hydns_bucket)),
		.claims = zeroed(c->geometry.lines, sizeof(struct hydns_line)),
		.slots = zeroed(hydns_geometry_chunks(&c->geometry), HYDNS_CHUNK),
		.seen = zeroed(c->geometry.lines, sizeof(struct hydns_line)),
		.tallies = zeroed(1, sizeof(struct hydns_tallies)),
	};
	return c->hits && c->memory.index && c->memory.claims && c->memory.slots && c->memory.seen && c->memory.tallies;
}

static void hydns_close(struct contender *c)
{
	hydnsd_rules_close(c->rules);
	hydns_sketch_free(c->hot.sketch);
	hydns_offered_free(c->hot.offered);
	free(c->memory.slots);
	free(c->memory.index);
	free(c->memory.claims);
	free(c->memory.seen);
	free(c->memory.tallies);
	free(c->hits);
	free(c);
}

static struct contender *hydns_open(const struct sim_trace *t, uint32_t capacity)
{
	const struct hydns_policy_options policy = HYDNSD_POLICY(capacity, the_options.min_hits);
	struct contender *c = calloc(1, sizeof(*c));

	(void)t;
	if (!c)
		return NULL;
	c->options = &the_options;
	c->seed[0] = the_options.seed ^ 0x243f6a8885a308d3ULL;
	c->seed[1] = (the_options.seed + 1) * 0xa0761d6478bd642fULL;
	if (open_memory(c, capacity))
		c->rules = hydnsd_rules_open(&c->memory, &policy, c->seed[0], SIM_BASE_US * HYDNS_NS_PER_US);
	c->hot.sketch = hydns_sketch_new(hydns_hot_sketch_width(capacity), the_options.window_s * 1000, c->seed);
	c->hot.offered = hydns_offered_new(capacity);
	hydns_sample_start(&c->sample, (uint32_t)c->seed[0]);
	if (!c->rules || !c->hot.sketch || !c->hot.offered) {
		hydns_close(c);
		return NULL;
	}
	return c;
}

/* -- names ------------------------------------------------------------------------------------------------- */
static void name_of(uint32_t id, uint8_t name[NAME_LEN])
{
	name[0] = NAME_LEN - 2;
	for (int i = 0; i < NAME_LEN - 2; i++)
		name[1 + i] = (uint8_t)('a' + (id >> (4 * i) & 15));
	name[NAME_LEN - 1] = 0;
}

static uint64_t key_of(const struct contender *c, const uint8_t name[NAME_LEN])
{
	return hydns_key_hash(name, NAME_LEN, htons(QTYPE), 0, 0, c->geometry.seed);
}

/* -- hydnsd ------------------------------------------------------------------------------------------------ */
static void tick(struct contender *c, uint64_t now_ms)
{
	uint64_t now_ns = now_ms * HYDNS_NS_PER_MS;

	if (now_ms - c->housekeeping_ms >= HYDNSD_HOUSEKEEPING_MS) {
		c->housekeeping_ms = now_ms;
		hydnsd_rules_expire(c->rules, now_ns, HYDNSD_EXPIRE_RULES);
	}
	if (c->grace && now_ms - c->grace_ms >= GRACE_MS) {
		hydnsd_rules_grace_end(c->rules);
		c->grace = false;
	}
	if (!c->grace && hydnsd_rules_grace_needed(c->rules)) {
		hydnsd_rules_grace_begin(c->rules);
		c->grace = true;
		c->grace_ms = now_ms;
	}
	if (!c->sweeping && now_ms - c->swept_ms < hydnsd_rules_sweep_pause_ms(c->rules))
		return;
	if (now_ms - c->sweep_ms < HYDNSD_SWEEP_MS)
		return;
	if (!c->sweeping)
		c->swept_ms = now_ms;
	c->sweep_ms = now_ms;
	c->sweeping = !hydnsd_rules_sweep(c->rules, now_ns, HYDNSD_SWEEP_SLOTS);
}

/* The offer as hydnsd_offer_check() makes it from a frame. */
static void offer(struct contender *c, const struct sim_answer *a, const uint8_t *name, uint64_t key, uint64_t now_us)
{
	static const uint8_t record[ANSWER_LEN] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1 };
	const struct hydnsd_offerer by = { .refresh_percent = c->options->refresh_percent };
	uint64_t sent_s = now_us / 1000000;
	struct hydnsd_answer *out = &c->answer;

	c->offers++;
	out->ttl[0] = TTL_AT;
	out->parts = (struct hydns_rule_parts){
		.head = {
			.base_ns = sent_s * HYDNS_NS_PER_S, .expire_ms = (uint32_t)(a->expires_s - sent_s) * 1000,
			.ancount = 1, .answer_len = ANSWER_LEN, .name_len = NAME_LEN, .ttl_count = 1,
			.qtype = htons(QTYPE),
		},
		.name = name, .answer = record, .ttl = out->ttl,
	};
	out->signature = 0;
	out->dependencies.count = 0;
	hydnsd_dependency_list_add(&out->dependencies, hydnsd_name_hash(name, NAME_LEN, c->seed[0], &out->signature));
	out->epoch = 1;
	out->count = hydns_sketch_estimate(c->hot.sketch, key);
	if (!out->count)
		out->count = 1;
	out->window_ms = hydns_sketch_window_ms(c->hot.sketch);
	hydnsd_rules_admit(c->rules, &by, out, now_us * HYDNS_NS_PER_US);
}

/* -- the resolver's plugin ----------------------------------------------------------------------------------- */
static bool hydns_answered(struct contender *c, const struct sim_answer *a, uint64_t now_us)
{
	uint64_t now_ms = now_us / 1000, now_s = now_us / 1000000;
	uint32_t expires = (uint32_t)a->expires_s;
	uint8_t name[NAME_LEN];
	bool refresh = false, first, due;
	uint64_t key;

	name_of(a->id, name);
	key = key_of(c, name);
	if (!a->fresh)
		refresh = hydns_hot_near_end(expires, a->expires_s - a->begun_s, now_s, c->options->refresh_percent) &&
			hydns_hot_refresh_due(&c->hot, key, SESSION, now_ms);
	/* The first of these queries needed the look-up. */
	first = a->fresh && a->sightings && !hydnsd_rules_threshold(c->rules) &&
		hydns_offered_first_sight(c->hot.offered, key, SESSION);
	due = a->refreshed && hydns_offered_stands(c->hot.offered, key, SESSION, (uint32_t)now_s, 0) &&
	      !hydns_offered_lately(c->hot.offered, key, expires, SESSION, (uint32_t)now_ms, 0);
	for (uint32_t i = first; i < a->sightings; i++)
		if (!hydns_sample_skips(&c->sample, (uint32_t)now_s)) {
			hydns_sample_take(&c->sample, (uint32_t)now_s, now_ms);
			due |= hydns_hot_seen(&c->hot, key, expires, SESSION, c->options->admission,
					      hydnsd_rules_threshold(c->rules), c->sample.weight, now_ms);
		}
	if (due && expires - now_s >= c->options->min_ttl) {
		offer(c, a, name, key, now_us);
		hydns_offered_record(c->hot.offered, key, expires, SESSION, (uint32_t)now_ms, 1, c->answer.count);
	}
	return refresh;
}

/* -- the XDP program ----------------------------------------------------------------------------------------- */
static bool claim(struct contender *c, uint32_t ordinal, uint32_t now_ms)
{
	uint32_t *last = &c->memory.claims[ordinal / HYDNS_LINE_WORDS].word[ordinal % HYDNS_LINE_WORDS];

	if (now_ms - *last < HYDNS_REFRESH_REARM_MS)
		return false;
	*last = now_ms;
	return true;
}

static bool answer(struct contender *c, const uint8_t *name, uint64_t now_ns)
{
	const struct hydns_store *s = hydnsd_rules_store(c->rules);
	uint32_t handle = hydns_store_find(s, name, NAME_LEN, htons(QTYPE), 0, 0), ordinal;
	const struct hydns_rule *rule = handle ? hydns_store_rule(s, handle) : NULL;
	uint64_t age;

	if (!rule)
		return false;
	ordinal = hydns_store_ordinal(s, handle);
	age = now_ns > rule->base_ns ? now_ns - rule->base_ns : 0;
	if (age >= rule->expire_ms * HYDNS_NS_PER_MS ||
	    (age >= rule->refresh_ms * HYDNS_NS_PER_MS && claim(c, ordinal, (uint32_t)(now_ns / HYDNS_NS_PER_MS))))
		return false;
	c->hits[ordinal / HYDNS_LINE_WORDS].word[ordinal % HYDNS_LINE_WORDS]++;
	return true;
}

static bool hydns_query(struct contender *c, uint32_t id, uint64_t now_us)
{
	uint8_t name[NAME_LEN];

	tick(c, now_us / 1000);
	name_of(id, name);
	return answer(c, name, now_us * HYDNS_NS_PER_US);
}

static void hydns_set_capacity(struct contender *c, uint32_t capacity, uint64_t now_us)
{
	(void)now_us;
	hydnsd_rules_set_capacity(c->rules, capacity);
}

static void hydns_stats(const struct contender *c, struct contender_stats *out)
{
	const struct hydnsd_rules_counters *n = hydnsd_rules_counters(c->rules);

	*out = (struct contender_stats){
		.installs = n->admitted + n->replaced, .evictions = n->evicted, .offers = c->offers,
		.rules = hydns_store_count(hydnsd_rules_store(c->rules)),
		.bytes = hydnsd_rules_bytes(c->rules) + hydns_sketch_bytes(c->hot.sketch) +
			 hydns_offered_bytes(c->hot.offered),
	};
}

const struct contender_kind contender_hydns = {
	.name = "hydns", .title = "hyDNS", .online = true, .open = hydns_open, .close = hydns_close, .query = hydns_query,
	.answered = hydns_answered, .set_capacity = hydns_set_capacity, .stats = hydns_stats,
};
