/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Taking over the rules of a former hydnsd, removing rules, and what is known of each. */
#include "hydnsd/rules/rules_internal.h"

#include <stdlib.h>
#include <string.h>

#include "hydns/hash.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/rules/signature.h"

static uint64_t ms(uint64_t ns)
{
	return ns / HYDNS_NS_PER_MS;
}

uint64_t hydnsd_rule_expiry_ms(const struct hydns_rule *rule)
{
	return ms(rule->base_ns) + rule->expire_ms;
}

struct hydnsd_message hydnsd_rule_message(const struct hydns_rule *rule)
{
	return (struct hydnsd_message){
		.data = rule->data, .question_name = rule->name_len,
		.end = HYDNSD_HEADER + rule->name_len + 4U + rule->answer_len,
	};
}

/* -- taking over -------------------------------------------------------------------------------------- */
bool hydnsd_rules_dependencies(const struct hydnsd_rules *r, const struct hydns_rule *rule, struct hydnsd_dependency_list *out,
			 uint64_t *signature)
{
	struct hydnsd_left_out left_out = hydnsd_left_out_names(hydns_rule_left_out(rule));
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint32_t pos = hydnsd_answer_start(&m);
	struct hydnsd_name name;
	struct hydnsd_rr rr;

	*signature = 0;
	out->count = 0;
	hydnsd_dependency_list_add(out, hydnsd_name_hash(rule->data, rule->name_len, r->seed, signature));
	while (pos < m.end) {
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL))
			return false;
		if (rr.owner.len != rule->name_len || memcmp(rr.owner.octet, rule->data, rule->name_len))
			hydnsd_dependency_list_add(out, hydnsd_name_hash(rr.owner.octet, rr.owner.len, r->seed, signature));
		if (hydnsd_rr_target(&m, &rr, &name))
			hydnsd_dependency_list_add(out, hydnsd_name_hash(name.octet, name.len, r->seed, signature));
	}
	while (hydnsd_left_out_next(&left_out, &name))
		hydnsd_dependency_list_add(out, hydnsd_name_hash(name.octet, name.len, r->seed, signature));
	return out->count < HYDNSD_DEPENDENCIES_MAX;
}

static uint64_t key_of(const struct hydnsd_rules *r, const uint8_t *name, const struct hydns_rule *head)
{
	return hydns_key_hash(name, head->name_len, head->qtype, head->variant, head->resolver,
			      r->memory.geometry->seed);
}

static void adopt(struct hydnsd_rules *r, uint32_t handle, uint64_t now_ns)
{
	const struct hydns_rule *rule = hydns_store_rule(r->store, handle);
	uint32_t ordinal = hydns_store_ordinal(r->store, handle);
	uint64_t age_ms = now_ns > rule->base_ns ? ms(now_ns - rule->base_ns) : 0;
	struct hydnsd_dependency_list list;
	struct hydns_sighted known;
	uint64_t signature;

	if (rule->resolver >= HYDNS_RESOLVERS || !hydnsd_name_valid(rule->data, rule->name_len) ||
	    !hydnsd_rules_dependencies(r, rule, &list, &signature)) {
		hydnsd_hits_discard(r, ordinal);
		hydns_store_remove(r->store, handle);
		return;
	}
	hydnsd_dependencies_add(r->dependencies, &list, ordinal);
	r->signature[ordinal] = signature;
	r->resolver[ordinal] = rule->resolver;
	r->refresh_percent[ordinal] = HYDNSD_UNKNOWN;
	r->live[rule->resolver]++;
	if (rule->flags & HYDNS_RULE_KEPT) {
		hydnsd_rules_add_kept(r, rule->resolver, 1);
		return;
	}
	known = (struct hydns_sighted){
		.key = key_of(r, rule->data, rule), .count = hydns_store_hits(r->store, handle),
		.window_ms = age_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)age_ms + 1,
	};
	hydns_policy_insert(r->policy, ordinal, UINT32_MAX, &known, hydnsd_rule_expiry_ms(rule), ms(now_ns));
}

static bool allocate(struct hydnsd_rules *r, const struct hydns_policy_options *policy)
{
	r->store = hydns_store_open(&r->memory);
	if (!r->store)
		return false;
	r->ordinals = hydns_store_ordinals(r->store);
	r->policy = hydns_policy_new(policy, r->ordinals);
	r->signature = calloc(r->ordinals, sizeof(*r->signature));
	r->dependencies = hydnsd_dependencies_new(r->ordinals);
	r->generation = calloc(r->ordinals, sizeof(*r->generation));
	r->resolver = malloc(r->ordinals);
	r->refresh_percent = malloc(r->ordinals);
	return r->policy && r->signature && r->dependencies && r->generation && r->resolver && r->refresh_percent;
}

struct hydnsd_rules *hydnsd_rules_open(const struct hydns_store_memory *memory,
				       const struct hydns_policy_options *policy, uint64_t seed,
				       uint64_t now_ns)
{
	struct hydnsd_rules *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->memory = *memory;
	r->seen = memory->seen;
	r->tallies = memory->tallies;
	r->seed = seed;
	r->capacity = r->fitting = policy->capacity;
	if (!allocate(r, policy)) {
		hydnsd_rules_close(r);
		return NULL;
	}
	memset(r->resolver, HYDNSD_NO_RESOLVER, r->ordinals);
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		hydnsd_lost_all(&r->lost[i]);  /* what a former hydnsd has withdrawn is not known */
	for (uint32_t h = hydns_store_next(r->store, 0); h; h = hydns_store_next(r->store, h))
		adopt(r, h, now_ns);
	hydnsd_hits_take_over(r, now_ns);
	return r;
}

void hydnsd_rules_close(struct hydnsd_rules *r)
{
	if (!r)
		return;
	if (r->store)
		hydns_store_close(r->store);
	hydns_policy_free(r->policy);
	free(r->signature);
	hydnsd_dependencies_free(r->dependencies);
	free(r->generation);
	free(r->resolver);
	free(r->refresh_percent);
	free(r->retired);
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		hydnsd_lost_free(&r->lost[i]);
	free(r);
}

void hydnsd_rules_set_min_hits(struct hydnsd_rules *r, uint32_t min_hits)
{
	hydns_policy_set_min_hits(r->policy, min_hits);
}

uint32_t hydnsd_rules_threshold(const struct hydnsd_rules *r)
{
	return r->threshold;
}

/* -- leaving ------------------------------------------------------------------------------------------ */
void hydnsd_rules_forget(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule, uint64_t now_ns)
{
	struct hydnsd_dependency_list list;
	uint64_t signature;

	hydnsd_rules_dependencies(r, rule, &list, &signature);
	hydnsd_dependencies_drop(r->dependencies, &list, ordinal);
	hydnsd_hits_retire(r, ordinal, rule, now_ns);
	hydns_policy_remove(r->policy, ordinal);
	if (rule->flags & HYDNS_RULE_KEPT)
		hydnsd_rules_add_kept(r, r->resolver[ordinal], -1);
	r->live[r->resolver[ordinal]]--;
	r->resolver[ordinal] = HYDNSD_NO_RESOLVER;
	r->signature[ordinal] = 0;
}

void hydnsd_rules_remove(struct hydnsd_rules *r, uint32_t handle, uint64_t now_ns)
{
	const struct hydns_rule *rule = hydns_store_rule(r->store, handle);

	if (!rule)
		return;
	hydnsd_rules_forget(r, hydns_store_ordinal(r->store, handle), rule, now_ns);
	hydns_store_remove(r->store, handle);
}

void hydnsd_rules_set_missing(struct hydnsd_rules *r, struct hydnsd_missing_table *missing)
{
	r->missing = missing;
}

void hydnsd_rules_record_removal(struct hydnsd_rules *r, uint32_t handle, enum hydnsd_removal why, uint64_t now_ns)
{
	const struct hydns_rule *rule = r->missing ? hydns_store_rule(r->store, handle) : NULL;
	uint64_t rate = rule ? hydnsd_rules_rate(r, handle) : 0;

	if (rate < HYDNSD_MISSING_RATE_MIN)
		return;                /* most rules: a flush of everything must not cost a hash for each */
	hydnsd_missing_record(r->missing, &(struct hydnsd_missing){
		.name = hydns_rule_name(rule), .name_len = rule->name_len, .variant = rule->variant,
		.resolver = rule->resolver, .qtype = rule->qtype, .removal = why, .rate = rate,
		.key = key_of(r, hydns_rule_name(rule), rule), .at_ms = ms(now_ns),
	});
}

static void remove_ordinal(struct hydnsd_rules *r, uint32_t ordinal, enum hydnsd_removal why, uint64_t now_ns)
{
	uint32_t handle = hydns_store_handle(r->store, ordinal);

	hydnsd_rules_record_removal(r, handle, why, now_ns);
	hydnsd_rules_remove(r, handle, now_ns);
}

void hydnsd_rules_evict(struct hydnsd_rules *r, uint32_t ordinal, uint64_t now_ns)
{
	remove_ordinal(r, ordinal, HYDNSD_REMOVAL_EVICTED, now_ns);
	r->counters.evicted++;
}

void hydnsd_rules_expire(struct hydnsd_rules *r, uint64_t now_ns, uint32_t budget)
{
	for (; budget; budget--) {
		uint32_t ordinal = hydns_policy_expired(r->policy, ms(now_ns));

		enum hydnsd_stale_fate fate = ordinal == UINT32_MAX ? HYDNSD_STALE_WAITS : hydnsd_stale_renew(r, ordinal, now_ns);

		if (fate == HYDNSD_STALE_WAITS)
			break;
		if (fate == HYDNSD_STALE_GOES_ON)
			continue;
		remove_ordinal(r, ordinal, HYDNSD_REMOVAL_EXPIRED, now_ns);
		r->counters.expired++;
	}
	for (; budget && hydns_policy_excess(r->policy); budget--)
		hydnsd_rules_evict(r, hydns_policy_victim(r->policy, ms(now_ns), NULL, NULL), now_ns);
}

/* -- looking ------------------------------------------------------------------------------------------ */
struct hydns_store *hydnsd_rules_store(struct hydnsd_rules *r)
{
	return r->store;
}

const struct hydnsd_rules_counters *hydnsd_rules_counters(const struct hydnsd_rules *r)
{
	return &r->counters;
}

uint64_t hydnsd_rules_rate(const struct hydnsd_rules *r, uint32_t handle)
{
	return hydns_policy_rate(r->policy, hydns_store_ordinal(r->store, handle));
}

uint32_t hydnsd_rules_of(const struct hydnsd_rules *r, uint32_t resolver)
{
	return r->live[resolver];
}

size_t hydnsd_rules_bytes(const struct hydnsd_rules *r)
{
	return hydns_store_bytes(r->store) + hydns_policy_bytes(r->policy) + hydnsd_dependencies_bytes(r->dependencies) +
	       (size_t)r->retired_room * sizeof(*r->retired) +
	       (size_t)r->ordinals * (sizeof(*r->signature) + sizeof(*r->generation) + sizeof(*r->resolver) +
				      sizeof(*r->refresh_percent));
}

struct hydnsd_lost *hydnsd_rules_lost(struct hydnsd_rules *r, uint32_t resolver)
{
	return &r->lost[resolver];
}

uint64_t hydnsd_rules_seed(const struct hydnsd_rules *r)
{
	return r->seed;
}
