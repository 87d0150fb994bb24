/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/catch_up.h"

#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/rings.h"
#include "hydnsd/resolvers/session_internal.h"
#include "hydnsd/resolvers/withdrawals.h"

bool hydnsd_catch_up_begin(struct hydnsd_session *s, uint32_t seq)
{
	struct hydnsd_catch_up *t = &s->catch_up;

	if (t->waits != HYDNSD_CAUGHT_UP)
		return false;
	t->waits = HYDNSD_CATCH_UP_RINGS;
	t->seq = seq;
	hydnsd_rings_heads(s, t->head);
	hydnsd_rings_poll_soon(s);
	return true;
}

static void caught_up(struct hydnsd *d, uint64_t client, uint32_t seq, uint32_t withdrawn)
{
	struct hydnsd_session *s = hydnsd_session_find(d, client);

	(void)withdrawn;
	if (!s)
		return;
	s->catch_up.waits = HYDNSD_CAUGHT_UP;
	if (!hydnsd_session_acknowledge(s, seq))
		hydnsd_session_end(s, "it does not read its replies");
}

void hydnsd_catch_up_work(struct hydnsd_session *s)
{
	const struct hydnsd_withdrawal_end end = { .done = caught_up, .client = s->id, .tag = s->catch_up.seq, .grace = true };
	struct hydnsd_withdrawal w = { .resolver = (uint32_t)s->resolver, .scope = HYDNS_SCOPE_ALL };

	if (s->catch_up.waits != HYDNSD_CATCH_UP_RINGS || s->dead || !hydnsd_rings_taken(s, s->catch_up.head))
		return;
	s->catch_up.waits = HYDNSD_CATCH_UP_RULES;
	w.keep_epoch = hydnsd_resolver_epoch(s->daemon, w.resolver);
	if (hydnsd_withdrawals_begin(s->daemon, &w, 1, &end))
		hydnsd_session_end(s, "out of memory: give hydnsd more");
}
