/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How many rules there may be: as many as the operator set, or as many as there are octets for. Rules of large answers fill the
 * store before its capacity is reached. Then hydnsd lowers the policy's capacity, so that slots become free ahead of
 * newcomers. The policy compares these with the least valuable rules and raises its threshold, as it does at full capacity.
 *
 * Preloaded rules may take three quarters of the capacity. The policy does not know them, so it evicts none; its own capacity is what
 * they leave.
 */
#include "hydnsd/rules/kept.h"
#include "hydnsd/rules/rules_internal.h"

#define FIT_SHARE         32           /* when the store is full, allow fewer rules by this share of them ... */
#define REFIT_SHARE       64           /* ... and more again by this one after each sweep */

static uint32_t left_for_popular(const struct hydnsd_rules *r)
{
	return r->fitting > r->kept_in_all ? r->fitting - r->kept_in_all : 0;
}

void hydnsd_rules_add_kept(struct hydnsd_rules *r, uint32_t resolver, int more)
{
	r->kept[resolver] += (uint32_t)more;
	r->kept_in_all += (uint32_t)more;
	hydns_policy_set_capacity(r->policy, left_for_popular(r));
}

uint32_t hydnsd_rules_kept(const struct hydnsd_rules *r, uint32_t resolver)
{
	return r->kept[resolver];
}

uint32_t hydnsd_rules_kept_most(const struct hydnsd_rules *r)
{
	return hydnsd_kept_share(r->fitting);
}

void hydnsd_rules_set_capacity(struct hydnsd_rules *r, uint32_t capacity)
{
	r->capacity = r->fitting = capacity;
	hydns_policy_set_capacity(r->policy, left_for_popular(r));
}

void hydnsd_rules_fit(struct hydnsd_rules *r)
{
	uint32_t count = hydns_store_count(r->store), less = count - count / FIT_SHARE;

	if (less >= r->fitting || !hydns_store_nearly_full(r->store))
		return;
	r->fitting = less;
	hydns_policy_set_capacity(r->policy, left_for_popular(r));
}

void hydnsd_rules_refit(struct hydnsd_rules *r)
{
	uint32_t more = r->fitting + r->fitting / REFIT_SHARE + 1;

	if (r->fitting >= r->capacity || hydns_store_nearly_full(r->store))
		return;
	r->fitting = more < r->capacity ? more : r->capacity;
	hydns_policy_set_capacity(r->policy, left_for_popular(r));
}

uint32_t hydnsd_rules_fitting(const struct hydnsd_rules *r)
{
	return r->fitting;
}
