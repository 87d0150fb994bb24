/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hits. The program counts them in the slot, or per rule and CPU, and never resets the counters. hydnsd adds the difference
 * to what it has seen before to the policy's rates and to the tally of the rule's resolver. It looks at a retired rule twice,
 * when the rule leaves the index and after the grace period, so that no hit is lost.
 *
 * `seen` and the tallies are in memory that outlives hydnsd, and must change together. So hydnsd writes what it is about to
 * store to a journal first. If it is killed in the middle, the next one stores the same again. The `seen` of a free ordinal
 * is its counter's value, so that a new rule's count begins at zero with its publication.
 */
#include "hydnsd/rules/rules_internal.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>

#include "hydns/dns.h"
#include "hydnsd/daemon/clock.h"

/* How far ahead counters are fetched into the CPU's cache: they are in slots, and hardly one of these is there. */
#define HITS_AHEAD 16

static struct hydnsd_retired describe(const struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
				      uint64_t now_ns)
{
	return (struct hydnsd_retired){
		.ordinal = ordinal, .qtype = ntohs(rule->qtype), .resolver = rule->resolver,
		.rcode = (uint8_t)(ntohs(rule->reply_flags) & HYDNS_FLAGS_RCODE),
		.variant = rule->variant, .flags = rule->flags, .empty = rule->ancount == 0,
		.authoritative = (ntohs(rule->reply_flags) & HYDNS_FLAG_AA) != 0, .stale = hydnsd_stale_is(r, ordinal),
		.age_ns = now_ns > rule->base_ns ? now_ns - rule->base_ns : 0,
	};
}

/* -- tallies ------------------------------------------------------------------------------------------ */
/* The compiler must not move stores across. That is enough: when a signal kills hydnsd, the CPU has done all stores before. */
static void in_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void carry_out(struct hydnsd_rules *r, const struct hydns_tally_journal *e)
{
	__u64 *word = (__u64 *)&r->tallies->of[e->resolver];

	for (unsigned i = 0; i < e->words; i++)
		word[e->word[i].word] = e->word[i].value;
	r->seen[e->ordinal] = e->seen;
}

static void add(struct hydnsd_rules *r, struct hydns_tally_journal *e, size_t offset, uint32_t hits)
{
	const __u64 *word = (const __u64 *)&r->tallies->of[e->resolver];
	size_t at = offset / sizeof(*word);

	e->word[e->words].word = at;
	e->word[e->words++].value = word[at] + hits;
}

#define TALLY(field) offsetof(struct hydns_tally, field)

static unsigned type_place(uint16_t qtype)
{
	return qtype < HYDNS_COUNT_TYPES - 1 ? qtype : HYDNS_COUNT_TYPES - 1;
}

static bool from_zone(const struct hydnsd_retired *d)
{
	return (d->flags & HYDNS_RULE_STATIC_TTL) && !d->stale;
}

static void write_down(struct hydnsd_rules *r, struct hydns_tally_journal *e, const struct hydnsd_retired *d,
		       uint32_t hits)
{
	e->words = 0;
	if (!(d->flags & HYDNS_RULE_TEMPLATE))
		add(r, e, TALLY(type) + type_place(d->qtype) * sizeof(__u64), hits);
	add(r, e, TALLY(rcode) + d->rcode * sizeof(__u64), hits);
	if (d->rcode == 0 && d->empty)
		add(r, e, from_zone(d) && !d->authoritative ? TALLY(referrals) : TALLY(nodata), hits);
	if (d->authoritative)
		add(r, e, TALLY(authoritative), hits);
	if (d->variant & HYDNS_VARIANT_DO)
		add(r, e, TALLY(edns_do), hits);
	if (d->variant & HYDNS_VARIANT_NO_RD)
		add(r, e, TALLY(no_rd), hits);
	if (from_zone(d))
		add(r, e, TALLY(from_zone), hits);
	if (d->flags & HYDNS_RULE_SECURE)
		add(r, e, TALLY(secure), hits);
	if (d->flags & HYDNS_RULE_BOGUS)
		add(r, e, TALLY(bogus), hits);
}

/* Accounts the hits since the last time, and returns them. */
static uint32_t tally(struct hydnsd_rules *r, const struct hydnsd_retired *d)
{
	struct hydns_tally_journal *e = &r->tallies->journal;
	uint32_t raw = hydns_store_hits_raw(r->store, d->ordinal), hits = raw - r->seen[d->ordinal];

	if (!hits || d->resolver >= HYDNS_RESOLVERS)
		return 0;
	e->ordinal = d->ordinal;
	e->seen = raw;
	e->resolver = d->resolver;
	write_down(r, e, d, hits);
	in_order();
	e->begun = 1;
	in_order();
	carry_out(r, e);
	in_order();
	e->begun = 0;
	in_order();
	if (d->stale) {
		r->counters.stale_replies += hits;
		r->stale[d->resolver].replies += hits;
	}
	hydnsd_histogram_add(&r->age[d->resolver], HYDNSD_SCALE_AGE, d->age_ns, hits);
	return hits;
}

static bool entry_valid(const struct hydnsd_rules *r, const struct hydns_tally_journal *e)
{
	if (!e->begun || e->ordinal >= r->ordinals || e->resolver >= HYDNS_RESOLVERS || e->words > HYDNS_JOURNAL_WORDS)
		return false;
	for (unsigned i = 0; i < e->words; i++)
		if (e->word[i].word >= HYDNS_TALLY_WORDS)
			return false;
	return true;
}

/* For an ordinal that no program counts for any more: the next rule's count begins here. */
static void account_last(struct hydnsd_rules *r, uint32_t ordinal)
{
	r->seen[ordinal] = hydns_store_hits_raw(r->store, ordinal);
}

uint32_t hydnsd_hits_account(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
			     uint64_t now_ns)
{
	struct hydnsd_retired d = describe(r, ordinal, rule, now_ns);
	uint32_t hits = tally(r, &d);

	hydns_policy_hits(r->policy, ordinal, hits, now_ns / HYDNS_NS_PER_MS);
	return hits;
}

/* Hits from while no hydnsd ran count, but not for the policy: they say nothing of the present rates. */
void hydnsd_hits_take_over(struct hydnsd_rules *r, uint64_t now_ns)
{
	struct hydns_tally_journal *e = &r->tallies->journal;

	if (entry_valid(r, e))
		carry_out(r, e);
	e->begun = 0;
	for (uint32_t i = 0; i < r->ordinals; i++) {
		const struct hydns_rule *rule = hydns_store_rule(r->store, hydns_store_handle(r->store, i));

		if (rule && r->resolver[i] != HYDNSD_NO_RESOLVER) {
			const struct hydnsd_retired d = describe(r, i, rule, now_ns);

			tally(r, &d);
		} else {
			account_last(r, i);
		}
	}
}

static void retire(struct hydnsd_rules *r, const struct hydnsd_retired *d)
{
	if (r->retired_count == r->retired_room) {
		uint32_t room = r->retired_room ? r->retired_room * 2 : 1024;
		struct hydnsd_retired *more = realloc(r->retired, room * sizeof(*more));

		if (!more) {
			r->retired_unknown = true; /* hits from now to the end of the grace period are not counted */
			return;
		}
		r->retired = more;
		r->retired_room = room;
	}
	r->retired[r->retired_count++] = *d;
}

void hydnsd_hits_retire(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
			uint64_t now_ns)
{
	struct hydnsd_retired d = describe(r, ordinal, rule, now_ns);

	hydnsd_hits_account(r, ordinal, rule, now_ns);
	retire(r, &d);
}

void hydnsd_hits_discard(struct hydnsd_rules *r, uint32_t ordinal)
{
	const struct hydnsd_retired d = { .ordinal = ordinal, .resolver = HYDNS_RESOLVERS };

	retire(r, &d);
}

/* Most rules have had no hit since the last sweep. Of these it reads nothing but the counter. Their rate falls, and their next
 * hit sets the time of their refresh. */
static void sweep_one(struct hydnsd_rules *r, uint32_t ordinal, uint64_t now_ns)
{
	uint32_t handle = hydns_store_handle(r->store, ordinal);
	const struct hydns_rule *rule;

	if (hydns_store_hits_raw(r->store, ordinal) == r->seen[ordinal]) {
		hydns_policy_hits(r->policy, ordinal, 0, now_ns / HYDNS_NS_PER_MS);
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
		if (r->resolver[r->sweep_cursor] != HYDNSD_NO_RESOLVER)
			sweep_one(r, r->sweep_cursor, now_ns);
	}
	r->threshold = hydns_policy_threshold(r->policy, now_ns / HYDNS_NS_PER_MS);
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

static bool is_of(uint32_t resolver, uint32_t wanted)
{
	return wanted == HYDNSD_ANY_RESOLVER ? resolver != HYDNSD_NO_RESOLVER : resolver == wanted;
}

void hydnsd_rules_sweep_of(struct hydnsd_rules *r, uint32_t resolver, uint64_t now_ns)
{
	for (uint32_t i = 0; i < r->ordinals; i++) {
		hydns_store_prefetch_hits(r->store, i + HITS_AHEAD);
		if (is_of(r->resolver[i], resolver) && hydns_store_hits_raw(r->store, i) != r->seen[i])
			sweep_one(r, i, now_ns);
	}
	for (uint32_t i = 0; i < r->retired_count; i++)
		if (is_of(r->retired[i].resolver, resolver))
			tally(r, &r->retired[i]);
}

void hydnsd_rules_counts(const struct hydnsd_rules *r, uint32_t resolver, struct hydns_counts *out)
{
	const struct hydns_tally *t = &r->tallies->of[resolver];

	out->edns_do = t->edns_do;
	out->secure = t->secure;
	out->bogus = t->bogus;
	out->nodata = t->nodata;
	out->referrals = t->referrals;
	out->authoritative = t->authoritative;
	out->no_rd = t->no_rd;
	out->from_zone = t->from_zone;
	out->discarded = t->discarded;
	out->rules = r->live[resolver];
	for (unsigned i = 0; i < HYDNS_COUNT_RCODES; i++)
		out->rcode[i] = t->rcode[i];
	for (unsigned i = 0; i < HYDNS_COUNT_TYPES; i++)
		out->type[i] = t->type[i];
}

const struct hydnsd_histogram *hydnsd_rules_ages(const struct hydnsd_rules *r, uint32_t resolver)
{
	return &r->age[resolver];
}

void hydnsd_rules_discarded(struct hydnsd_rules *r, uint32_t resolver, uint16_t qtype, const struct hydns_discards *more)
{
	struct hydns_tally *t = &r->tallies->of[resolver];

	t->type[type_place(qtype)] += more->queries;
	t->discarded.queries += more->queries;
	t->discarded.ipv6 += more->ipv6;
	t->discarded.edns += more->edns;
	t->discarded.edns_do += more->edns_do;
	t->discarded.ad += more->ad;
}

void hydnsd_rules_counts_reset(struct hydnsd_rules *r, uint32_t resolver, uint64_t now_ns)
{
	hydnsd_rules_sweep_of(r, resolver, now_ns);
	r->tallies->of[resolver] = (struct hydns_tally){ 0 };
	r->age[resolver] = (struct hydnsd_histogram){ 0 };
}

/* For retired rules that could not be recorded. */
static void account_free(struct hydnsd_rules *r)
{
	for (uint32_t i = 0; i < r->ordinals; i++)
		if (!hydns_store_handle(r->store, i))
			account_last(r, i);
	r->retired_unknown = hydns_store_grace_needed(r->store);
}

bool hydnsd_rules_grace_needed(const struct hydnsd_rules *r)
{
	return r->retired_count || hydns_store_grace_needed(r->store);
}

void hydnsd_rules_grace_begin(struct hydnsd_rules *r)
{
	r->grace_ticket = hydns_store_grace_begin(r->store);
	r->retired_before_grace = r->retired_count;
}

void hydnsd_rules_grace_end(struct hydnsd_rules *r)
{
	uint32_t n = r->retired_before_grace, left = r->retired_count - n;

	for (uint32_t i = 0; i < n; i++)
		tally(r, &r->retired[i]);
	hydns_store_grace_end(r->store, r->grace_ticket);
	for (uint32_t i = 0; i < n; i++)
		account_last(r, r->retired[i].ordinal);
	if (r->retired_unknown)
		account_free(r);
	for (uint32_t i = 0; i < left; i++)
		r->retired[i] = r->retired[n + i];
	r->retired_count = left;
	r->retired_before_grace = 0;
}

uint32_t hydnsd_rules_retired(const struct hydnsd_rules *r)
{
	return r->retired_count;
}
