/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hits. The program counts them in the slot, or per rule and CPU, and never resets them; here the difference to what was
 * seen before goes to the policy and to the tally of the rule's authority. A rule that leaves is looked
 * at twice, when it leaves and after the grace period, so no hit is lost.
 */
#include "hydnsd/rules_internal.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "hydnsd/clock.h"

#define RCODE_MASK 0x000f
#define FLAG_AA    0x0400
/* Rules whose counts are on their way while one is looked at: they stand in slots, of which none is in a cache. */
#define HITS_AHEAD 16

static uint32_t take_new(struct hydnsd_rules *r, uint32_t ordinal)
{
	uint32_t raw = hydns_store_hits_raw(r->store, ordinal), hits = raw - r->seen[ordinal];

	r->seen[ordinal] = raw;
	return hits;
}

static struct hydnsd_departed describe(uint32_t ordinal, const struct hydns_rule *rule)
{
	return (struct hydnsd_departed){
		.ordinal = ordinal, .qtype = ntohs(rule->qtype), .authority = rule->authority,
		.rcode = (uint8_t)(ntohs(rule->reply_flags) & RCODE_MASK),
		.variant = rule->variant, .flags = rule->flags, .empty = rule->ancount == 0,
		.authoritative = (ntohs(rule->reply_flags) & FLAG_AA) != 0,
	};
}

static void tally(struct hydnsd_rules *r, const struct hydnsd_departed *d, uint32_t hits)
{
	struct hydnsd_tally *t = &r->tally[d->authority];
	unsigned type = d->qtype < HYDNS_COUNT_TYPES - 1 ? d->qtype : HYDNS_COUNT_TYPES - 1;

	t->type[type] += hits;
	t->rcode[d->rcode] += hits;
	if (d->rcode == 0 && d->empty) {
		if ((d->flags & HYDNS_RULE_STATIC_TTL) && !d->authoritative)
			t->referrals += hits;
		else
			t->nodata += hits;
	}
	if (d->authoritative)
		t->authoritative += hits;
	if (d->variant & HYDNS_VARIANT_DO)
		t->edns_do += hits;
	if (d->flags & HYDNS_RULE_SECURE)
		t->secure += hits;
}

uint32_t hydnsd_hits_account(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
			     uint64_t now_ns)
{
	struct hydnsd_departed d = describe(ordinal, rule);
	uint32_t hits = take_new(r, ordinal);

	if (hits)
		tally(r, &d, hits);
	hydns_policy_hits(r->policy, ordinal, hits, now_ns / HYDNSD_NS_PER_MS);
	return hits;
}

void hydnsd_hits_depart(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
			uint64_t now_ns)
{
	hydnsd_hits_account(r, ordinal, rule, now_ns);
	if (r->departed_count == r->departed_room) {
		uint32_t room = r->departed_room ? r->departed_room * 2 : 1024;
		struct hydnsd_departed *more = realloc(r->departed, room * sizeof(*more));

		if (!more)
			return;        /* a hit between now and the grace period goes uncounted */
		r->departed = more;
		r->departed_room = room;
	}
	r->departed[r->departed_count++] = describe(ordinal, rule);
}

/* Most rules have had no hit since the last sweep: of these nothing but the count is looked at. Their rate falls, and with
 * the next hit the time of their refresh follows. */
static void sweep_one(struct hydnsd_rules *r, uint32_t ordinal, uint64_t now_ns)
{
	uint32_t handle = hydns_store_handle(r->store, ordinal);
	const struct hydns_rule *rule;

	if (hydns_store_hits_raw(r->store, ordinal) == r->seen[ordinal]) {
		hydns_policy_hits(r->policy, ordinal, 0, now_ns / HYDNSD_NS_PER_MS);
		return;
	}
	rule = hydns_store_rule(r->store, handle);
	if (!rule)
		return;
	if (hydnsd_hits_account(r, ordinal, rule, now_ns) < HYDNS_HITS_IN_SLOT)
		hydns_store_count_in_slot(r->store, handle);
	hydnsd_rules_time_refresh(r, ordinal, rule);
}

bool hydnsd_rules_sweep(struct hydnsd_rules *r, uint64_t now_ns, uint32_t budget)
{
	for (; budget && r->sweep_cursor < r->ordinals; budget--, r->sweep_cursor++) {
		hydns_store_prefetch_hits(r->store, r->sweep_cursor + HITS_AHEAD);
		if (r->owner[r->sweep_cursor] != HYDNSD_NOBODY)
			sweep_one(r, r->sweep_cursor, now_ns);
	}
	r->bar = hydns_policy_bar(r->policy, now_ns / HYDNSD_NS_PER_MS);
	if (r->sweep_cursor < r->ordinals)
		return false;
	hydnsd_rules_refit(r);
	r->sweep_cursor = 0;
	return true;
}

uint32_t hydnsd_rules_sweep_pause_ms(const struct hydnsd_rules *r)
{
	uint32_t pause = r->ordinals / HYDNSD_SWEEP_SLOTS_MS;

	if (pause < HYDNSD_SWEEP_PAUSE_MIN_MS)
		return HYDNSD_SWEEP_PAUSE_MIN_MS;
	return pause > HYDNSD_SWEEP_PAUSE_MAX_MS ? HYDNSD_SWEEP_PAUSE_MAX_MS : pause;
}

void hydnsd_rules_sweep_authority(struct hydnsd_rules *r, uint32_t authority, uint64_t now_ns)
{
	for (uint32_t i = 0; i < r->ordinals; i++) {
		hydns_store_prefetch_hits(r->store, i + HITS_AHEAD);
		if (r->owner[i] == authority && hydns_store_hits_raw(r->store, i) != r->seen[i])
			sweep_one(r, i, now_ns);
	}
	for (uint32_t i = 0; i < r->departed_count; i++)
		if (r->departed[i].authority == authority)
			tally(r, &r->departed[i], take_new(r, r->departed[i].ordinal));
}

void hydnsd_rules_counts(const struct hydnsd_rules *r, uint32_t authority, struct hydns_counts *out)
{
	const struct hydnsd_tally *t = &r->tally[authority];

	out->edns_do = t->edns_do;
	out->secure = t->secure;
	out->nodata = t->nodata;
	out->referrals = t->referrals;
	out->authoritative = t->authoritative;
	out->rules = t->rules;
	for (unsigned i = 0; i < HYDNS_COUNT_RCODES; i++)
		out->rcode[i] = t->rcode[i];
	for (unsigned i = 0; i < HYDNS_COUNT_TYPES; i++)
		out->type[i] = t->type[i];
}

void hydnsd_rules_counts_reset(struct hydnsd_rules *r, uint32_t authority, uint64_t now_ns)
{
	uint32_t rules = r->tally[authority].rules;

	hydnsd_rules_sweep_authority(r, authority, now_ns);
	r->tally[authority] = (struct hydnsd_tally){ .rules = rules };
}

bool hydnsd_rules_grace_needed(const struct hydnsd_rules *r)
{
	return r->departed_count || hydns_store_grace_needed(r->store);
}

void hydnsd_rules_grace_begin(struct hydnsd_rules *r)
{
	r->grace_ticket = hydns_store_grace_begin(r->store);
	r->departed_before_grace = r->departed_count;
}

void hydnsd_rules_grace_end(struct hydnsd_rules *r)
{
	uint32_t n = r->departed_before_grace, left = r->departed_count - n;

	for (uint32_t i = 0; i < n; i++)
		tally(r, &r->departed[i], take_new(r, r->departed[i].ordinal));
	for (uint32_t i = 0; i < left; i++)
		r->departed[i] = r->departed[n + i];
	r->departed_count = left;
	r->departed_before_grace = 0;
	hydns_store_grace_end(r->store, r->grace_ticket);
}

uint32_t hydnsd_rules_limbo(const struct hydnsd_rules *r)
{
	return r->departed_count;
}
