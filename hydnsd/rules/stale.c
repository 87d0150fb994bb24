/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Rules that outlive their resolver. At its own end such a rule is replaced by one with the stale TTL, whose end is its last. The
 * program needs to know nothing of this: if hydnsd dies, the rules end as they stand.
 */
#include "hydnsd/rules/rules_internal.h"

#include <arpa/inet.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydnsd/daemon/clock.h"

#define WAIT_MS 1000                   /* for a slot; a grace period takes some milliseconds */

/* What a resolver would not give when it is stale, or what is not from its cache. */
#define NEVER_STALE (HYDNS_RULE_STATIC_TTL | HYDNS_RULE_BOGUS | HYDNS_RULE_COUNTED | HYDNS_RULE_KEPT | HYDNS_RULE_TEMPLATE)

void hydnsd_rules_stale_begin(struct hydnsd_rules *r, uint32_t resolver, const struct hydnsd_stale_terms *terms)
{
	struct hydnsd_stale *s = &r->stale[resolver];

	*s = (struct hydnsd_stale){ .terms = *terms };
	if (s->terms.longest > HYDNS_KEPT_LIFE)
		s->terms.longest = HYDNS_KEPT_LIFE;
}

uint64_t hydnsd_rules_stale_end(struct hydnsd_rules *r, uint32_t resolver)
{
	uint64_t replies = r->stale[resolver].replies;

	r->stale[resolver] = (struct hydnsd_stale){ 0 };
	return replies;
}

uint64_t hydnsd_rules_stale_replies(const struct hydnsd_rules *r, uint32_t resolver)
{
	return r->stale[resolver].replies;
}

bool hydnsd_stale_keeps(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule)
{
	uint16_t flags = ntohs(rule->reply_flags);

	if (hydnsd_stale_is(r, ordinal))
		return true;
	if (rule->flags & NEVER_STALE || flags & (HYDNS_FLAGS_RCODE | HYDNS_FLAG_AA))
		return false;
	hydns_store_set_refresh(r->store, hydns_store_handle(r->store, ordinal), rule->expire_ms);
	return true;
}

/* Makes the answer stale: from the rule's end on, for so long as the terms say. */
static bool make_stale(const struct hydnsd_stale_terms *terms, const struct hydns_rule *rule, struct hydnsd_answer *out)
{
	struct hydns_rule *head = &out->parts.head;
	uint32_t ttl = htonl(terms->ttl);

	if (!hydnsd_rule_copy(rule, out))
		return false;
	for (unsigned i = 0; i < rule->ttl_count; i++)
		memcpy(out->data + rule->name_len + 4U + out->ttl[i], &ttl, sizeof(ttl));
	head->base_ns = rule->base_ns + rule->expire_ms * HYDNS_NS_PER_MS;
	head->expire_ms = head->refresh_ms = terms->longest * 1000U;
	head->flags |= HYDNS_RULE_STATIC_TTL;
	if (terms->error_len) {
		head->flags |= HYDNS_RULE_ERRORS;
		out->parts.errors = terms->error;
		out->parts.errors_len = terms->error_len;
	}
	return true;
}

enum hydnsd_stale_fate hydnsd_stale_renew(struct hydnsd_rules *r, uint32_t ordinal, uint64_t now_ns)
{
	static struct hydnsd_answer next; /* large; one thread */
	uint32_t handle = hydns_store_handle(r->store, ordinal);
	const struct hydns_rule *rule = hydns_store_rule(r->store, handle);
	const struct hydnsd_stale_terms *terms = rule ? &r->stale[rule->resolver].terms : NULL;

	if (!rule || !terms->longest || hydnsd_stale_is(r, ordinal) || !hydnsd_stale_keeps(r, ordinal, rule) ||
	    !make_stale(terms, rule, &next))
		return HYDNSD_STALE_ENDS;
	handle = hydnsd_rules_replace(r, handle, &next, now_ns);
	if (!handle)
		return r->retired_count && now_ns / HYDNS_NS_PER_MS < hydnsd_rule_expiry_ms(rule) + WAIT_MS ? HYDNSD_STALE_WAITS :
		       HYDNSD_STALE_ENDS;
	r->refresh_percent[hydns_store_ordinal(r->store, handle)] = HYDNSD_STALE;
	return HYDNSD_STALE_GOES_ON;
}
