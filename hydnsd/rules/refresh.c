/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* When a rule passes a query, so that its resolver refreshes the answer in time. */
#include "hydnsd/rules/rules_internal.h"

uint32_t hydnsd_rules_refresh_at(const struct hydns_rule *head, uint64_t signature, uint32_t percent, uint64_t rate)
{
	return hydns_policy_refresh_at(head->expire_ms, percent, HYDNS_REFRESH_MIN_MS, rate,
				       signature ^ head->base_ns);
}

void hydnsd_rules_time_refresh(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule)
{
	uint32_t at;

	if (r->refresh_percent[ordinal] >= HYDNSD_STALE || r->stale[rule->resolver].terms.longest)
		return;
	at = hydnsd_rules_refresh_at(rule, r->signature[ordinal], r->refresh_percent[ordinal],
				     hydns_policy_rate(r->policy, ordinal));
	if (at != rule->refresh_ms)
		hydns_store_set_refresh(r->store, hydns_store_handle(r->store, ordinal), at);
}
