/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Withdrawing. The signature sorts out nearly all rules by one comparison of a word; the others are
 * asked for their real owner names. A rule published behind the cursor while a withdrawal is under way
 * was made from a later generation, so it stays rightly.
 */
#include "hydnsd/rules_internal.h"

#include <string.h>

#include "hydnsd/signature.h"

static bool name_matches(const struct hydnsd_withdrawal *w, const struct hydnsd_name *owner)
{
	if (w->scope == HYDNS_SCOPE_SUBTREE)
		return hydnsd_name_below(owner, w->name, w->name_len);
	return owner->len == w->name_len && memcmp(owner->octet, w->name, w->name_len) == 0;
}

static bool depends_on(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule)
{
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint32_t pos = HYDNSD_HEADER;
	struct hydnsd_name question;
	struct hydnsd_rr rr;

	if (!hydnsd_name_read(&m, &pos, m.end, false, &question, NULL) || name_matches(w, &question))
		return true;
	pos = hydnsd_answer_start(&m);
	while (pos < m.end)
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL) || name_matches(w, &rr.owner))
			return true;   /* unreadable: cannot be, and must not stay */
	return false;
}

static bool matches(const struct hydnsd_rules *r, const struct hydnsd_withdrawal *w, uint32_t ordinal)
{
	const struct hydns_rule *rule;

	if (r->owner[ordinal] == HYDNSD_NOBODY || (r->signature[ordinal] & w->bits) != w->bits)
		return false;
	if (w->authority != HYDNSD_ANY_AUTHORITY && w->authority != r->owner[ordinal])
		return false;
	rule = hydns_store_rule(r->store, hydns_store_handle(r->store, ordinal));
	if (!rule)
		return false;
	if (w->scope == HYDNS_SCOPE_ALL)
		return !w->keep_epoch || rule->epoch != w->keep_epoch;
	return depends_on(w, rule);
}

void hydnsd_withdraw_begin(const struct hydnsd_rules *r, struct hydnsd_withdrawal *w)
{
	w->cursor = 0;
	w->withdrawn = 0;
	w->bits = w->scope == HYDNS_SCOPE_ALL ? 0 :
		  hydnsd_signature_of(w->name, w->name_len, r->seed);
}

bool hydnsd_withdraw_step(struct hydnsd_rules *r, struct hydnsd_withdrawal *w, uint64_t now_ns,
			  uint32_t budget)
{
	for (; budget && w->cursor < r->ordinals; budget--, w->cursor++)
		if (matches(r, w, w->cursor)) {
			hydnsd_rules_remove(r, hydns_store_handle(r->store, w->cursor), now_ns);
			r->counters.withdrawn++;
			w->withdrawn++;
		}
	return w->cursor == r->ordinals;
}
