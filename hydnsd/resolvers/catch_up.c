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
	for (uint32_t i = 0; i < s->rings; i++)
		t->head[i] = __atomic_load_n(&s->ring[i].shared->head, __ATOMIC_ACQUIRE);
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

/* A plugin that writes nonsense to a ring's head harms itself alone: it waits without end. */
static bool taken(const struct hydnsd_session *s)
{
	for (uint32_t i = 0; i < s->rings; i++)
		if ((int32_t)(s->ring[i].tail - s->catch_up.head[i]) < 0)
			return false;
	return true;
}

void hydnsd_catch_up_work(struct hydnsd_session *s)
{
	const struct hydnsd_withdrawal_end end = { .done = caught_up, .client = s->id, .tag = s->catch_up.seq, .grace = true };
	struct hydnsd_withdrawal w = { .resolver = (uint32_t)s->resolver, .scope = HYDNS_SCOPE_ALL };

	if (s->catch_up.waits != HYDNSD_CATCH_UP_RINGS || s->dead || !taken(s))
		return;
	s->catch_up.waits = HYDNSD_CATCH_UP_RULES;
	w.keep_epoch = hydnsd_resolver_epoch(s->daemon, w.resolver);
	if (hydnsd_withdrawals_begin(s->daemon, &w, 1, &end))
		hydnsd_session_end(s, "out of memory: give hydnsd more");
}
