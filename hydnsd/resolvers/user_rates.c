/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/user_rates.h"

/* A new user replaces the one whose bucket of tokens is nearest to full. */
static struct hydnsd_user_rate *find(struct hydnsd_user_rates *a, uid_t uid)
{
	struct hydnsd_user_rate *idle = &a->of[0];

	for (struct hydnsd_user_rate *u = a->of; u < a->of + HYDNSD_USER_RATES; u++) {
		if (u->uid == uid && u->tokens.used_until_ns)
			return u;
		if (u->tokens.used_until_ns < idle->tokens.used_until_ns)
			idle = u;
	}
	*idle = (struct hydnsd_user_rate){ .uid = uid };
	return idle;
}

uint64_t hydnsd_user_rates_take(struct hydnsd_user_rates *a, uid_t uid, uint32_t at_once, uint64_t each_ns, uint64_t now_ns)
{
	struct hydnsd_tokens *t = &find(a, uid)->tokens;

	return hydnsd_tokens_take(t, at_once, each_ns, now_ns) ? 0 : hydnsd_tokens_wait(t, at_once, each_ns, now_ns);
}
