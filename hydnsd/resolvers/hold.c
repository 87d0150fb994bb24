/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/hold.h"

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/loop.h"
#include "hydnsd/resolvers/session_internal.h"

bool hydnsd_hold_now(const struct hydnsd_session *s)
{
	return s->asked_ms || s->pending >= s->daemon->options.plugin_requests || s->rest_until_ms;
}

/* With no events asked for, epoll still reports the end of the connection. */
void hydnsd_hold_update(struct hydnsd_session *s)
{
	bool hold = hydnsd_hold_now(s);

	if (!s->dead && s->on_hold != hold)
		hydnsd_watch_change(s->watch, hold ? 0 : EPOLLIN);
	s->on_hold = hold;
}

/* -- requests under way -------------------------------------------------------------------------------- */
void hydnsd_hold_add_pending(struct hydnsd_session *s)
{
	s->pending++;
	s->daemon->bound_counts.plugin_requests += s->pending >= s->daemon->options.plugin_requests;
}

void hydnsd_hold_end_pending(struct hydnsd_session *s, bool answered)
{
	s->pending--;
	if (!answered)
		hydnsd_session_end(s, "it does not read its replies");
	hydnsd_hold_update(s);
}

/* -- rests --------------------------------------------------------------------------------------------- */
bool hydnsd_hold_rests(struct hydnsd_session *s)
{
	const struct hydnsd_options *o = &s->daemon->options;
	uint64_t now = hydnsd_now_ns(), wait_ms;

	wait_ms = (hydnsd_user_rates_take(&s->daemon->sessions->user_rates, s->uid, o->plugin_burst,
					hydnsd_tokens_each_ns(o->plugin_rate), now) + HYDNS_NS_PER_MS - 1) / HYDNS_NS_PER_MS;
	if (!wait_ms)
		return false;
	s->daemon->bound_counts.plugin_rate++;
	s->rest_until_ms = now / HYDNS_NS_PER_MS + wait_ms;
	s->since_ms += wait_ms;        /* the message that waits may be its HELLO */
	return true;
}

int hydnsd_hold_rest_left(struct hydnsd_session *s)
{
	uint64_t now = hydnsd_now_ms();

	if (!s->rest_until_ms)
		return -1;
	if (s->rest_until_ms > now)
		return (int)(s->rest_until_ms - now);
	s->rest_until_ms = 0;
	hydnsd_hold_update(s);
	return 0;
}
