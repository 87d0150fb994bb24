/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Admission: whether an offer becomes a rule, and which rule goes for it. */
#include "hydnsd/rules/rules_internal.h"

#include <errno.h>
#include <string.h>

#include "hydnsd/daemon/clock.h"

#define SAME_EXPIRY_MS    1100         /* two threads may read one answer's TTL, whole seconds, in different seconds */
#define PERCENT           100

static uint64_t ms(uint64_t ns)
{
	return ns / HYDNS_NS_PER_MS;
}

/* The flags, which same_answer() compares, say whether there are left-out names; the block itself says where it ends. */
static bool same_left_out(const struct hydns_rule *old, const struct hydns_rule_parts *new)
{
	return !new->left_out_len || (hydns_left_out_length(hydns_rule_left_out(old), new->left_out_len) ==
				      new->left_out_len &&
				      !memcmp(hydns_rule_left_out(old), new->left_out, new->left_out_len));
}

static bool same_errors(const struct hydns_rule *old, const struct hydns_rule_parts *new)
{
	const struct hydns_errors *errors = hydns_rule_errors(old);

	return !new->errors_len || (errors->len == new->errors_len && !memcmp(errors->options, new->errors, new->errors_len));
}

/* The flags say whether there are any; answers with one sum may differ in them. */
static bool same_pointers(const struct hydns_rule *old, const struct hydns_rule_parts *new)
{
	const struct hydns_pointers *pointers = hydns_rule_pointers(old);

	return !pointers || (pointers->count == hydns_parts_pointers(new) &&
			     !memcmp(pointers->at, new->pointer, new->pointer_count * sizeof(*new->pointer)) &&
			     (!new->gap || !memcmp(hydns_rule_gap(old), new->gap, sizeof(*new->gap))));
}

static bool same_answer(const struct hydns_rule *old, const struct hydns_rule_parts *parts)
{
	const struct hydns_rule *new = &parts->head;
	int64_t apart = (int64_t)hydnsd_rule_expiry_ms(new) - (int64_t)hydnsd_rule_expiry_ms(old);

	return old->epoch == new->epoch && old->reply_flags == new->reply_flags &&
	       old->answer_len == new->answer_len && old->answer_sum == new->answer_sum &&
	       old->flags == new->flags && old->ancount == new->ancount && same_errors(old, parts) && same_pointers(old, parts) &&
	       hydns_rule_account(old) == parts->account &&
	       same_left_out(old, parts) &&
	       apart < SAME_EXPIRY_MS && apart > -SAME_EXPIRY_MS;
}

struct wanted {
	const struct hydnsd_rules *rules;
	uint32_t resolver;             /* whose rules may go, or HYDNSD_ANY_RESOLVER */
	uint32_t space;                /* octets that the freed slot must have; 0: any */
};

static bool acceptable(uint32_t ordinal, void *arg)
{
	const struct wanted *w = arg;

	if (w->resolver != HYDNSD_ANY_RESOLVER && w->rules->resolver[ordinal] != w->resolver)
		return false;
	return !w->space || hydns_store_slot_size(w->rules->store, hydns_store_handle(w->rules->store, ordinal)) >= w->space;
}

static struct hydns_sighted sighted(const struct hydnsd_answer *a)
{
	return (struct hydns_sighted){
		.key = a->parts.key, .count = a->count, .window_ms = a->window_ms,
	};
}

/* True when the answer promises more hits a second than the rule has had, by a clear margin. */
static bool beats(const struct hydnsd_rules *r, const struct hydnsd_answer *a, uint32_t victim, uint64_t now_ns)
{
	const struct hydns_sighted s = sighted(a);

	return hydns_policy_expect(r->policy, &s, UINT32_MAX, ms(now_ns)) * PERCENT >
	       hydns_policy_rate(r->policy, victim) * (PERCENT + 10);
}

/* Nobody can verify what a resolver promises for an answer. So a resolver may evict rules of others only as long as it has
 * less than an equal share of all rules. */
static bool has_its_share(const struct hydnsd_rules *r, uint32_t resolver)
{
	uint32_t resolvers = 0;

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		resolvers += r->live[i] != 0;
	return (uint64_t)r->live[resolver] * resolvers >= r->fitting;
}

/* Decides which rule goes so that the resolver stays within its own capacity, and evicts no rules of others beyond its share.
 * *victim: before, the rule that the policy would evict, or UINT32_MAX; after, the one to evict. */
static enum hydnsd_rejection resolver_victim(struct hydnsd_rules *r, const struct hydnsd_offerer *by,
					     const struct hydnsd_answer *a, uint64_t now_ns,
					     uint32_t *victim)
{
	struct wanted w = { .rules = r, .resolver = by->resolver };
	bool full = by->capacity && r->live[by->resolver] >= by->capacity;
	bool others = *victim != UINT32_MAX && r->resolver[*victim] != by->resolver;

	if (!full && !(others && has_its_share(r, by->resolver)))
		return HYDNSD_ACCEPTED;
	*victim = hydns_policy_victim(r->policy, ms(now_ns), acceptable, &w);
	if (*victim == UINT32_MAX || !beats(r, a, *victim, now_ns))
		return HYDNSD_REJECT_RESOLVER_FULL;
	return HYDNSD_ACCEPTED;
}

/* For an answer that somebody waits for. Where there is no room the coldest rule goes, one of this resolver's if it has its share. */
static enum hydnsd_rejection make_way(struct hydnsd_rules *r, const struct hydnsd_offerer *by, uint64_t now_ns)
{
	struct wanted w = { .rules = r, .resolver = HYDNSD_ANY_RESOLVER };
	bool full = by->capacity && r->live[by->resolver] >= by->capacity;
	uint32_t victim;

	if (!full && hydns_store_count(r->store) < r->fitting)
		return HYDNSD_ACCEPTED;
	if (full || has_its_share(r, by->resolver))
		w.resolver = by->resolver;
	victim = hydns_policy_victim(r->policy, ms(now_ns), acceptable, &w);
	if (victim == UINT32_MAX)
		return HYDNSD_REJECT_FULL;
	hydnsd_rules_evict(r, victim, now_ns);
	return HYDNSD_ACCEPTED;
}

/* Of a preloaded answer. */
static enum hydnsd_rejection keep(struct hydnsd_rules *r, const struct hydnsd_offerer *by, uint64_t now_ns)
{
	return r->kept_in_all >= hydnsd_rules_kept_most(r) ? HYDNSD_REJECT_PRELOAD_FULL : make_way(r, by, now_ns);
}

/* A preloaded rule is not replaced by what a client's query brought, which would not stay. */
static bool is_kept_for(const struct hydns_rule *old, const struct hydns_rule *new, uint64_t now_ns)
{
	return (old->flags & HYDNS_RULE_KEPT) && !(new->flags & HYDNS_RULE_KEPT) && old->epoch == new->epoch &&
	       hydnsd_rule_expiry_ms(old) > ms(now_ns);
}

static enum hydnsd_rejection ask_policy(struct hydnsd_rules *r, const struct hydnsd_offerer *by,
					const struct hydnsd_answer *a, uint64_t now_ns)
{
	uint64_t expire = hydnsd_rule_expiry_ms(&a->parts.head), now = ms(now_ns);
	const struct hydns_sighted s = sighted(a);
	uint32_t victim = UINT32_MAX;
	enum hydnsd_rejection why;

	switch (hydns_policy_offer(r->policy, &s, (uint32_t)(expire > now ? expire - now : 0), now, &victim)) {
	case HYDNS_REJECT_COLD:
		return HYDNSD_REJECT_COLD;
	case HYDNS_REJECT_FULL:
		return HYDNSD_REJECT_FULL;
	case HYDNS_ADMIT:
	case HYDNS_ADMIT_EVICT:
		break;
	}
	why = resolver_victim(r, by, a, now_ns, &victim);
	if (why)
		return why;
	if (victim != UINT32_MAX)
		hydnsd_rules_evict(r, victim, now_ns);
	return HYDNSD_ACCEPTED;
}

static void remember(struct hydnsd_rules *r, const struct hydnsd_offerer *by, const struct hydnsd_answer *a,
		     uint32_t handle, uint32_t former, uint64_t now_ns)
{
	uint32_t ordinal = hydns_store_ordinal(r->store, handle);
	const struct hydns_sighted s = sighted(a);

	r->resolver[ordinal] = a->parts.head.resolver;
	r->signature[ordinal] = a->signature;
	hydnsd_dependencies_add(r->dependencies, &a->dependencies, ordinal);
	r->generation[ordinal] = (uint32_t)a->generation;
	r->live[a->parts.head.resolver]++;
	r->refresh_percent[ordinal] = (uint8_t)by->refresh_percent;
	if (a->parts.head.flags & HYDNS_RULE_KEPT)
		hydnsd_rules_add_kept(r, a->parts.head.resolver, 1);
	else
		hydns_policy_insert(r->policy, ordinal, former, &s, hydnsd_rule_expiry_ms(&a->parts.head), ms(now_ns));
}

/* No slot of a fitting size is free: evicts the least valuable rule in such a slot, if it is worth less. The slot is free
 * after a grace period only, so this offer fails all the same. */
static enum hydnsd_rejection free_a_slot(struct hydnsd_rules *r, const struct hydnsd_answer *a,
					 uint64_t now_ns)
{
	const struct hydns_rule *head = &a->parts.head;
	struct wanted w = {
		.rules = r, .resolver = HYDNSD_ANY_RESOLVER,
		.space = HYDNS_RULE_SPACE(head->name_len, head->answer_len, head->ttl_count, hydns_parts_rest(&a->parts)),
	};
	uint32_t victim;

	if (r->retired_count)
		return HYDNSD_REJECT_NO_SLOT; /* slots become free soon anyhow */
	if (has_its_share(r, head->resolver))
		w.resolver = head->resolver;
	victim = hydns_policy_victim(r->policy, ms(now_ns), acceptable, &w);
	if (victim == UINT32_MAX || !(head->flags & HYDNS_RULE_KEPT || beats(r, a, victim, now_ns)))
		return HYDNSD_REJECT_FULL;
	hydnsd_rules_evict(r, victim, now_ns);
	return HYDNSD_REJECT_NO_SLOT;
}

/* As hydns_store_publish(). The new rule takes over what is known of the former one (0: there is none). */
static int put(struct hydnsd_rules *r, const struct hydnsd_offerer *by, const struct hydnsd_answer *a, uint32_t former,
	       uint64_t now_ns, uint32_t *handle)
{
	/* read before the store removes it */
	const struct hydns_rule *old = former ? hydns_store_rule(r->store, former) : NULL;
	uint32_t former_ordinal = former ? hydns_store_ordinal(r->store, former) : UINT32_MAX;
	uint32_t replaced;
	int rc;

	if (old)
		hydnsd_hits_account(r, former_ordinal, old, now_ns);
	rc = hydns_store_publish(r->store, &a->parts, handle, &replaced);
	if (rc)
		return rc;
	remember(r, by, a, *handle, former_ordinal, now_ns);
	if (old)
		hydnsd_rules_forget(r, former_ordinal, old, now_ns);
	return 0;
}

static enum hydnsd_rejection publish(struct hydnsd_rules *r, const struct hydnsd_offerer *by,
				     const struct hydnsd_answer *a, uint32_t former, uint64_t now_ns)
{
	uint32_t handle;

	switch (put(r, by, a, former, now_ns, &handle)) {
	case 0:
		return HYDNSD_ACCEPTED;
	case -ENOSPC:
		hydnsd_rules_fit(r);
		return free_a_slot(r, a, now_ns);
	case -E2BIG:
		return HYDNSD_REJECT_TOO_BIG;
	default:
		return HYDNSD_REJECT_INDEX_FULL;
	}
}

uint32_t hydnsd_rules_replace(struct hydnsd_rules *r, uint32_t handle, struct hydnsd_answer *a, uint64_t now_ns)
{
	uint32_t ordinal = hydns_store_ordinal(r->store, handle), next;
	const struct hydnsd_offerer by = {
		.resolver = r->resolver[ordinal], .refresh_percent = r->refresh_percent[ordinal],
	};

	hydnsd_rules_dependencies(r, hydns_store_rule(r->store, handle), &a->dependencies, &a->signature);
	a->parts.key = hydns_store_key(r->store, &a->parts);
	a->generation = r->generation[ordinal];
	a->count = 0;                  /* no sightings: the former rule's rate continues */
	a->window_ms = UINT32_MAX;
	return put(r, &by, a, handle, now_ns, &next) ? 0 : next;
}

static void set_key(const struct hydnsd_rules *r, uint32_t resolver, struct hydnsd_answer *a)
{
	a->parts.head.resolver = (uint8_t)resolver;
	a->parts.key = hydns_store_key(r->store, &a->parts);
}

void hydnsd_rules_prepare(const struct hydnsd_rules *r, uint32_t resolver, struct hydnsd_answer *a)
{
	set_key(r, resolver, a);
	hydns_store_prefetch(r->store, a->parts.key);
	hydns_policy_prefetch(r->policy, a->parts.key);
	hydnsd_dependencies_prefetch(r->dependencies, &a->dependencies);
}

/* A template's question may have an ordinary rule, from when its answer was no template. It has another key, so publishing does not
 * replace it. */
static void remove_ordinary(struct hydnsd_rules *r, const struct hydnsd_answer *a, uint64_t now_ns)
{
	const struct hydns_rule *head = &a->parts.head;
	uint32_t handle = 0;

	if (head->flags & HYDNS_RULE_TEMPLATE)
		handle = hydns_store_find(r->store, a->parts.name, head->name_len, head->qtype, head->variant & HYDNS_VARIANTS, head->resolver);
	if (handle)
		hydnsd_rules_remove(r, handle, now_ns);
}

enum hydnsd_rejection hydnsd_rules_admit(struct hydnsd_rules *r, const struct hydnsd_offerer *by,
					 struct hydnsd_answer *a, uint64_t now_ns)
{
	struct hydns_rule *head = &a->parts.head;
	struct hydns_sighted s;
	enum hydnsd_rejection why;
	uint32_t former;
	uint64_t rate;

	if (!a->parts.key || head->resolver != by->resolver)
		set_key(r, by->resolver, a);
	head->epoch = a->epoch;
	former = hydns_store_find_parts(r->store, &a->parts);
	if (former && (same_answer(hydns_store_rule(r->store, former), &a->parts) ||
		       is_kept_for(hydns_store_rule(r->store, former), head, now_ns)))
		return HYDNSD_REJECT_KNOWN;
	if (!former) {
		why = head->flags & HYDNS_RULE_KEPT ? keep(r, by, now_ns) :
		      by->awaited ? make_way(r, by, now_ns) : ask_policy(r, by, a, now_ns);
		if (why)
			return why;
	}
	s = sighted(a);
	rate = hydns_policy_expect(r->policy, &s, former ? hydns_store_ordinal(r->store, former) : UINT32_MAX, ms(now_ns));
	head->refresh_ms = hydnsd_rules_refresh_at(head, a->signature, by->refresh_percent, rate);
	why = publish(r, by, a, former, now_ns);
	if (why)
		return why;
	remove_ordinary(r, a, now_ns);
	if (former)
		r->counters.replaced++;
	else
		r->counters.admitted++;
	return HYDNSD_ACCEPTED;
}
