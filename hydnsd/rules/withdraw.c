/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Withdrawing. For a single name the dependencies mostly say at once which rules go (dependencies.h). For all else a scan of
 * the store serves many withdrawals. The bits of a rule's signature select the single names that the rule may depend on, and
 * these are compared with the names themselves. A rule that is published behind the cursor during a scan was offered after
 * the scan's withdrawals, so it stays rightly.
 */
#include "hydnsd/rules/rules_internal.h"

#include <string.h>

#include "hydnsd/rules/signature.h"

static bool name_matches(const struct hydnsd_withdrawal *w, const struct hydnsd_name *owner)
{
	if (w->scope == HYDNS_SCOPE_SUBTREE)
		return hydnsd_name_below(owner, w->name, w->name_len);
	return owner->len == w->name_len && memcmp(owner->octet, w->name, w->name_len) == 0;
}

static bool left_out_matches(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule)
{
	struct hydnsd_left_out names = hydnsd_left_out_names(hydns_rule_left_out(rule));
	struct hydnsd_name name;

	while (hydnsd_left_out_next(&names, &name))
		if (name_matches(w, &name))
			return true;
	return false;
}

static bool depends_on(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint32_t pos = HYDNSD_HEADER;
	struct hydnsd_name name;
	struct hydnsd_rr rr;

	if (!hydnsd_name_read(&m, &pos, m.end, false, &name, NULL) || name_matches(w, &name))
		return true;
	pos = hydnsd_answer_start(&m);
	while (pos < m.end)
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL) || name_matches(w, &rr.owner) ||
		    (hydnsd_rr_target(&m, &rr, &name) && name_matches(w, &name)))
			return true;   /* unreadable: cannot be, but must not stay */
	return left_out_matches(w, rule);
}

/* Low halves of generations compare as serial numbers (RFC 1982), for a rule does not live for 2^31 changes. The generation
 * of a rule that was taken over is unknown: it counts as older than every withdrawal. */
static bool offered_since(const struct hydnsd_rules *r, uint32_t ordinal, uint64_t generation)
{
	return r->refresh_percent[ordinal] != HYDNSD_UNKNOWN && r->generation[ordinal] - (uint32_t)generation <= INT32_MAX;
}

static bool may_match(const struct hydnsd_withdrawal *w, uint64_t signature)
{
	return (w->bits & ~signature) == 0 || (w->scope == HYDNS_SCOPE_SUBTREE && (w->below & ~signature) == 0);
}

static bool stays(struct hydnsd_rules *r, const struct hydnsd_withdrawal *w, uint32_t ordinal, const struct hydns_rule *rule)
{
	return w->keep_epoch && rule->epoch == w->keep_epoch && (!w->keep_stale || hydnsd_stale_keeps(r, ordinal, rule));
}

static bool matches(struct hydnsd_rules *r, const struct hydnsd_withdrawal *w, uint32_t ordinal)
{
	const struct hydns_rule *rule;

	if (!may_match(w, r->signature[ordinal]))
		return false;
	if (w->resolver != HYDNSD_ANY_RESOLVER && w->resolver != r->resolver[ordinal])
		return false;
	if (w->generation && offered_since(r, ordinal, w->generation))
		return false;
	rule = hydns_store_rule(r->store, hydns_store_handle(r->store, ordinal));
	if (!rule)
		return false;
	if (w->scope == HYDNS_SCOPE_ALL)
		return !stays(r, w, ordinal, rule);
	return w->rrtype ? hydnsd_rule_needs_ttl_update(w, rule) : depends_on(w, rule);
}

/* The withdrawals of the scan that a rule with this signature must be compared with. */
static uint64_t candidates(const struct hydnsd_scan *p, uint64_t signature)
{
	uint64_t first = 0, second = 0;

	for (uint32_t names = (uint32_t)signature; names; names &= names - 1) {
		unsigned bit = (unsigned)__builtin_ctz(names);

		first |= p->first[bit];
		second |= p->second[bit];
	}
	return (first & second) | p->others;
}

/* False: no withdrawal of the scan concerns a rule with this signature. Quick, for most scans are for a name or two. */
static bool may_concern(const struct hydnsd_scan *p, uint64_t signature)
{
	bool found = p->quick == 0;

	for (uint32_t i = 0; i < p->quick; i++)
		found |= (p->of[i]->bits & ~signature) == 0;
	return found;
}

/* A preloaded rule is about to go. */
static void record_lost(struct hydnsd_rules *r, uint32_t handle, bool with_all)
{
	const struct hydns_rule *rule = hydns_store_rule(r->store, handle);

	if (!rule || !(rule->flags & HYDNS_RULE_KEPT))
		return;
	if (with_all)
		hydnsd_lost_all(&r->lost[rule->resolver]);
	else
		hydnsd_lost_add(&r->lost[rule->resolver], hydns_rule_name(rule), rule->name_len, rule->qtype,
				rule->variant & HYDNS_VARIANTS);
}

static void withdraw_for(struct hydnsd_rules *r, struct hydnsd_withdrawal *w, uint32_t handle, uint64_t now_ns)
{
	hydnsd_rules_record_removal(r, handle, HYDNSD_REMOVAL_WITHDRAWN, now_ns);
	record_lost(r, handle, w->scope == HYDNS_SCOPE_ALL);
	hydnsd_rules_remove(r, handle, now_ns);
	r->counters.withdrawn++;
	w->withdrawn++;
}

/* Returns the handle of the updated rule; 0: it had to go. */
static uint32_t update_ttl_for(struct hydnsd_rules *r, struct hydnsd_withdrawal *w, uint32_t handle, uint64_t now_ns)
{
	uint32_t next = hydnsd_rules_update_ttl(r, handle, w, now_ns);

	if (next)
		r->counters.renewed++;
	else
		withdraw_for(r, w, handle, now_ns);
	return next;
}

/* The first withdrawal that matches removes the rule. TTL updates come last: a replacement may be where the scan has been
 * already, and the scan would not compare it with the other withdrawals. */
static void look_at(struct hydnsd_rules *r, const struct hydnsd_scan *p, uint32_t ordinal, uint64_t now_ns)
{
	uint32_t handle = hydns_store_handle(r->store, ordinal);
	uint64_t ttl_updates = 0;

	if (!may_concern(p, r->signature[ordinal]) || r->resolver[ordinal] == HYDNSD_NO_RESOLVER)
		return;
	for (uint64_t left = candidates(p, r->signature[ordinal]); left; left &= left - 1) {
		struct hydnsd_withdrawal *w = p->of[__builtin_ctzll(left)];

		if (!matches(r, w, ordinal))
			continue;
		if (!w->rrtype) {
			withdraw_for(r, w, handle, now_ns);
			return;
		}
		ttl_updates |= left & -left;
	}
	for (; ttl_updates && handle; ttl_updates &= ttl_updates - 1)
		handle = update_ttl_for(r, p->of[__builtin_ctzll(ttl_updates)], handle, now_ns);
}

bool hydnsd_rules_withdraw(struct hydnsd_rules *r, struct hydnsd_withdrawal *w, uint64_t now_ns)
{
	const uint32_t *found;
	uint64_t signature = 0;
	uint32_t count;

	if (w->scope != HYDNS_SCOPE_NAME)
		return false;
	found = hydnsd_dependencies_find(r->dependencies, hydnsd_name_hash(w->name, w->name_len, r->seed, &signature), &count);
	if (!found)
		return false;
	w->bits = 0;
	w->withdrawn = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t handle = hydns_store_handle(r->store, found[i]);

		if (r->resolver[found[i]] == HYDNSD_NO_RESOLVER || !matches(r, w, found[i]))
			continue;
		if (w->rrtype)
			update_ttl_for(r, w, handle, now_ns);
		else
			withdraw_for(r, w, handle, now_ns);
	}
	return true;
}

void hydnsd_rules_withdraw_older(struct hydnsd_rules *r, uint32_t resolver, const uint8_t *name, uint8_t name_len,
			   uint16_t qtype, uint64_t generation, uint64_t now_ns)
{
	for (uint8_t variant = 0; variant <= HYDNS_VARIANTS; variant++) {
		uint32_t handle = hydns_store_find(r->store, name, name_len, qtype, variant, (uint8_t)resolver);

		if (!handle || offered_since(r, hydns_store_ordinal(r->store, handle), generation))
			continue;
		hydnsd_rules_record_removal(r, handle, HYDNSD_REMOVAL_WITHDRAWN, now_ns);
		record_lost(r, handle, false);
		hydnsd_rules_remove(r, handle, now_ns);
		r->counters.withdrawn++;
	}
}

void hydnsd_scan_begin(const struct hydnsd_rules *r, struct hydnsd_scan *p)
{
	memset(p->first, 0, sizeof(p->first));
	memset(p->second, 0, sizeof(p->second));
	p->others = 0;
	p->cursor = 0;
	for (uint32_t i = 0; i < p->count; i++) {
		struct hydnsd_withdrawal *w = p->of[i];
		uint32_t names;

		w->withdrawn = 0;
		w->bits = w->scope == HYDNS_SCOPE_ALL ? 0 : hydnsd_signature_of(w->name, w->name_len, r->seed);
		w->below = w->scope == HYDNS_SCOPE_ALL ? 0 : hydnsd_signature_below(w->name, w->name_len, r->seed);
		if (w->scope != HYDNS_SCOPE_NAME) {
			p->others |= 1ULL << i;
			continue;
		}
		/* lowest and highest of the name's own bits; they may be the same */
		names = (uint32_t)w->bits;
		p->first[__builtin_ctz(names)] |= 1ULL << i;
		p->second[31 - __builtin_clz(names)] |= 1ULL << i;
	}
	p->quick = p->others || p->count > HYDNSD_SCAN_QUICK ? 0 : p->count;
}

bool hydnsd_scan_step(struct hydnsd_rules *r, struct hydnsd_scan *p, uint64_t now_ns, uint32_t budget)
{
	uint32_t slots = budget / (1 + (uint32_t)__builtin_popcountll(p->others));

	if (slots == 0)
		slots = 1;
	for (; slots && p->cursor < r->ordinals; slots--, p->cursor++)
		look_at(r, p, p->cursor, now_ns);
	return p->cursor == r->ordinals;
}
