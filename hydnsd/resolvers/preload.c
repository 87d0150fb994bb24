/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/preload.h"

#include "hydnsd/resolvers/rings.h"
#include "hydnsd/resolvers/session_internal.h"
#include "hydnsd/rules/lost.h"

bool hydnsd_preload_begin(struct hydnsd_session *s, uint32_t seq)
{
	struct hydnsd_preload *p = &s->preload;

	if (p->waits)
		return false;
	p->waits = true;
	p->seq = seq;
	hydnsd_rings_heads(s, p->head);
	hydnsd_rings_poll_soon(s);
	return true;
}

void hydnsd_preload_count(struct hydnsd_preload_counts *c, enum hydnsd_rejection why)
{
	if (!why || why == HYDNSD_REJECT_KNOWN)
		return;
	c->refused++;
	c->why = why;
}

static bool is_for_want_of_room(enum hydnsd_rejection why)
{
	return why == HYDNSD_REJECT_PRELOAD_FULL || why == HYDNSD_REJECT_FULL || why == HYDNSD_REJECT_RESOLVER_FULL;
}

static bool reply(struct hydnsd_session *s)
{
	struct { struct hydns_preloaded head; uint8_t lost[HYDNS_MSG_MAX - sizeof(struct hydns_msg) - sizeof(struct hydns_preloaded)]; } m;
	uint32_t i = (uint32_t)s->resolver;
	struct hydnsd_preload_counts *c = &s->daemon->resolver[i].preload;
	bool all;
	size_t lost = hydnsd_lost_take(hydnsd_rules_lost(s->daemon->rules, i), m.lost, sizeof(m.lost), &all);

	m.head = (struct hydns_preloaded){ .refused = c->refused, .full = is_for_want_of_room(c->why), .all = all,
		.names = hydns_kern_has_names(s->daemon->kern, i) };
	*c = (struct hydnsd_preload_counts){ 0 };
	return hydnsd_session_send(s, HYDNS_MSG_PRELOADED, s->preload.seq, &m, sizeof(m.head) + lost, NULL, 0);
}

void hydnsd_preload_work(struct hydnsd_session *s)
{
	struct hydnsd_preload *p = &s->preload;

	if (!p->waits || s->dead || !hydnsd_rings_taken(s, p->head))
		return;
	p->waits = false;
	if (!reply(s))
		hydnsd_session_end(s, "it does not read its replies");
}
