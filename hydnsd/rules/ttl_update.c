/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Renewed data in other questions' rules: the resolver now sends the later TTL, and goes on sending the rest of the
 * answer as it is, to the end of its own entry. So the rule gets that TTL, and ends when it would have. Mostly a
 * single record's TTL changes in a single octet, which is stored where it stands; else a successor takes the rule's
 * place that differs by that TTL alone. (Taking the rules out instead cost 3 % of all queries in a load with
 * never-repeated names: each denial of such a name renews the zone's SOA, which stands in every negative answer.)
 *
 * A validated answer must not go on: if the renewed data are no longer secure, the resolver tells nobody but by the end
 * that moves. Nor one with signatures of the RRset, which have TTLs of their own.
 */
#include "hydnsd/rules/rules_internal.h"

#include <arpa/inet.h>
#include <string.h>

#include "hydnsd/daemon/clock.h"

#define TYPE_RRSIG 46

static bool shown_there(const struct hydnsd_withdrawal *w, bool in_answer)
{
	return w->section == HYDNS_SECTION_ANYWHERE || in_answer == (w->section == HYDNS_SECTION_ANSWER);
}

/* rr: the rule's record of that number. */
static bool owned(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule, const struct hydnsd_rr *rr,
		  uint32_t number)
{
	return shown_there(w, number < rule->ancount) && rr->owner.len == w->name_len &&
	       memcmp(rr->owner.octet, w->name, w->name_len) == 0;
}

/* Rules and renewals get their monotonic times from a wall clock that is disciplined between them. */
static uint64_t ttl_until(const struct hydns_rule *rule, uint64_t end_ns)
{
	return end_ns < rule->base_ns ? 0 : (end_ns - rule->base_ns + HYDNSD_NS_PER_SEC / 2) / HYDNSD_NS_PER_SEC;
}

bool hydnsd_rule_needs_ttl_update(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint64_t ttl = ttl_until(rule, w->end_ns);
	uint32_t pos = hydnsd_answer_start(&m);
	struct hydnsd_rr rr;

	for (uint32_t i = 0; pos < m.end; i++)
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL) ||
		    (rr.type == w->rrtype && rr.ttl != ttl && owned(w, rule, &rr, i)))
			return true;   /* unreadable: cannot be, and must not stay */
	return false;
}

/* The rule's message with the RRset's new TTL, and where its TTLs are. False: there is none. */
static bool rewrite(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule, struct hydnsd_answer *out)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint64_t ttl = ttl_until(rule, w->end_ns);
	uint32_t start = hydnsd_answer_start(&m), pos = start, count = 0, field;
	struct hydnsd_rr rr;

	memcpy(out->data, rule->data, m.end - HYDNSD_HEADER);
	while (pos < m.end) {
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL) || count == rule->ttl_count)
			return false;
		out->ttl[count++] = (uint16_t)(rr.ttl_at - start);
		if (!owned(w, rule, &rr, count - 1))
			continue;
		if (rr.type == TYPE_RRSIG || (rr.type == w->rrtype && (ttl < rr.ttl || ttl > HYDNSD_TTL_MAX)))
			return false;
		field = htonl((uint32_t)ttl);
		if (rr.type == w->rrtype)
			memcpy(out->data + rr.ttl_at - HYDNSD_HEADER, &field, sizeof(field));
	}
	return count == rule->ttl_count;
}

/* The rule's only record of the RRset. False: there are several, which a reply must not show with different TTLs, or
 * signatures. */
static bool only_record(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule, struct hydnsd_rr *out)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint32_t pos = hydnsd_answer_start(&m), found = 0;
	struct hydnsd_rr rr;

	for (uint32_t i = 0; pos < m.end; i++) {
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL))
			return false;
		if ((rr.type != w->rrtype && rr.type != TYPE_RRSIG) || !owned(w, rule, &rr, i))
			continue;
		if (rr.type == TYPE_RRSIG || found++)
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

	return only_record(w, rule, &rr) && ttl >= rr.ttl && ttl <= HYDNSD_TTL_MAX &&
	       hydns_store_set_ttl(r->store, handle, (uint16_t)(rr.ttl_at - hydnsd_answer_start(&m)), (uint32_t)ttl);
}

uint32_t hydnsd_rules_update_ttl(struct hydnsd_rules *r, uint32_t handle, const struct hydnsd_withdrawal *w, uint64_t now_ns)
{
	static struct hydnsd_answer next; /* large; one thread */
	const struct hydns_rule *rule = hydns_store_rule(r->store, handle);
	const uint8_t *left_out = hydns_rule_left_out(rule);

	if (rule->flags & (HYDNS_RULE_SECURE | HYDNS_RULE_STATIC_TTL))
		return 0;
	if (update_in_place(r, handle, w, rule))
		return handle;
	if (!rewrite(w, rule, &next))
		return 0;
	next.parts = (struct hydns_rule_parts){
		.head = *rule, .name = next.data, .answer = next.data + rule->name_len + 4U, .ttl = next.ttl,
		.left_out = left_out, .left_out_len = left_out ? (uint16_t)hydns_left_out_length(left_out, HYDNS_SLOT_MOST) : 0,
	};
	for (unsigned i = 0; i < rule->rotation_count; i++)
		next.parts.rotation[i] = hydns_rule_rotation(rule, i);
	for (unsigned i = 0; i < rule->place_count; i++)
		next.parts.place[i] = hydns_rule_place(rule, i);
	return hydnsd_rules_replace(r, handle, &next, now_ns);
}
