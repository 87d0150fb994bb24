/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * TTL updates in rules of other questions. The resolver now sends the RRset with the later TTL, and the rest of the answer as
 * it is, until its own entry ends. So the rule gets that TTL, and its end stays. Mostly one octet of a single record's TTL
 * changes, which is stored in place. Otherwise a replacement that differs in that TTL alone takes the rule's place.
 * (Withdrawing the rules instead cost 3 % of all queries in a load with never-repeated names: each denial of such a name
 * refreshes the zone's SOA, which is in every negative answer.)
 *
 * A validated answer must go: if the refreshed data are not secure any more, a moved end is all that the resolver notifies.
 * An answer with signatures of the RRset must go, too, for these have TTLs of their own.
 */
#include "hydnsd/rules/rules_internal.h"

#include <arpa/inet.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydnsd/daemon/clock.h"

static bool shown_there(const struct hydnsd_withdrawal *w, bool in_answer)
{
	return w->section == HYDNS_SECTION_ANYWHERE || in_answer == (w->section == HYDNS_SECTION_ANSWER);
}

/* True when rr, the rule's record of that number, is one of the withdrawal's name in a section that counts. */
static bool concerns(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule, const struct hydnsd_rr *rr,
		  uint32_t number)
{
	return shown_there(w, number < rule->ancount) && rr->owner.len == w->name_len &&
	       memcmp(rr->owner.octet, w->name, w->name_len) == 0;
}

/* Rounded: rule and TTL update convert their times from a wall clock that may have been adjusted in between. */
static uint64_t ttl_until(const struct hydns_rule *rule, uint64_t end_ns)
{
	return end_ns < rule->base_ns ? 0 : (end_ns - rule->base_ns + HYDNS_NS_PER_S / 2) / HYDNS_NS_PER_S;
}

bool hydnsd_rule_needs_ttl_update(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint64_t ttl = ttl_until(rule, w->end_ns);
	uint32_t pos = hydnsd_answer_start(&m);
	struct hydnsd_rr rr;

	for (uint32_t i = 0; pos < m.end; i++)
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL) ||
		    (rr.type == w->rrtype && rr.ttl != ttl && concerns(w, rule, &rr, i)))
			return true;   /* unreadable: cannot be, but must not stay */
	return false;
}

/* Gives the RRset its new TTL in a copy of the rule. False: it cannot have that TTL. */
static bool rewrite(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule, struct hydnsd_answer *copy)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint64_t ttl = ttl_until(rule, w->end_ns);
	uint32_t pos = hydnsd_answer_start(&m), field = htonl((uint32_t)ttl);
	struct hydnsd_rr rr;

	for (uint32_t i = 0; i < rule->ttl_count; i++) {
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL))
			return false;
		if (!concerns(w, rule, &rr, i))
			continue;
		if (rr.type == HYDNS_TYPE_RRSIG || (rr.type == w->rrtype && (ttl < rr.ttl || ttl > HYDNS_TTL_MAX)))
			return false;
		if (rr.type == w->rrtype)
			memcpy(copy->data + rr.ttl_at - HYDNSD_HEADER, &field, sizeof(field));
	}
	return true;
}

/* Finds the rule's only record of the RRset. False: there are several, whose TTLs must not differ in a reply, or signatures. */
static bool only_record(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule, struct hydnsd_rr *out)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint32_t pos = hydnsd_answer_start(&m), found = 0;
	struct hydnsd_rr rr;

	for (uint32_t i = 0; pos < m.end; i++) {
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL))
			return false;
		if ((rr.type != w->rrtype && rr.type != HYDNS_TYPE_RRSIG) || !concerns(w, rule, &rr, i))
			continue;
		if (rr.type == HYDNS_TYPE_RRSIG || found++)
			return false;
		*out = rr;
	}
	return found == 1;
}

static bool update_in_place(struct hydnsd_rules *r, uint32_t handle, const struct hydnsd_withdrawal *w,
			   const struct hydns_rule *rule)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint64_t ttl = ttl_until(rule, w->end_ns);
	struct hydnsd_rr rr;

	return only_record(w, rule, &rr) && ttl >= rr.ttl && ttl <= HYDNS_TTL_MAX &&
	       hydns_store_set_ttl(r->store, handle, (uint16_t)(rr.ttl_at - hydnsd_answer_start(&m)), (uint32_t)ttl);
}

uint32_t hydnsd_rules_update_ttl(struct hydnsd_rules *r, uint32_t handle, const struct hydnsd_withdrawal *w, uint64_t now_ns)
{
	static struct hydnsd_answer next; /* large; one thread */
	const struct hydns_rule *rule = hydns_store_rule(r->store, handle);

	if (rule->flags & (HYDNS_RULE_SECURE | HYDNS_RULE_STATIC_TTL))
		return 0;
	if (update_in_place(r, handle, w, rule))
		return handle;
	if (!hydnsd_rule_copy(rule, &next) || !rewrite(w, rule, &next))
		return 0;
	return hydnsd_rules_replace(r, handle, &next, now_ns);
}
