/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Withdrawals: by hydnsd, and where it does not answer by the page. */
#include "plugin/internal.h"

uint64_t hydns_plugin_advance(struct hydns_plugin *p)
{
	uint64_t generation = hydns_pages_advance_generation(p->pages), old = atomic_load(&p->withdrawn);

	while (old < generation && !atomic_compare_exchange_weak(&p->withdrawn, &old, generation))
		;
	return generation;
}

/* Without hydnsd: suspends the rules concerned (for a subtree: all) until the next one has done the withdrawal. False: that
 * is not possible. */
static bool suspend_and_wait(struct hydns_plugin *p, const struct hydns_request *q)
{
	const struct hydns_withdraw *w = &q->withdraw;
	uint32_t place = w->scope == HYDNS_SCOPE_NAME ? hydns_plugin_place(p, w->name, w->name_len) : HYDNS_PENDING_ALL;
	struct hydns_suspension in;

	if (q->state != HYDNS_REQUEST_FAILED || w->scope == HYDNS_SCOPE_ALL || hydns_plugin_dead(p) ||
	    hydns_pages_fd(p->pages) < 0 || !hydns_pending_add(&p->pending, p->pages, w, place, &in))
		return false;
	hydns_requests_wake(&p->requests);     /* hydnsd may be back, and must then be asked to catch up */
	if (in.grace_over)
		return true;
	hydns_plugin_grace(p);
	if (place == HYDNS_PENDING_ALL)
		hydns_pending_grace_over(&p->pending, in.number);
	return true;
}

void hydns_plugin_withdraw_all(struct hydns_plugin *p)
{
	hydns_plugin_advance(p);
	hydns_plugin_kill_and_wait(p);
}

void hydns_plugin_withdraw(struct hydns_plugin *p, enum hydns_scope scope, const uint8_t *name,
			    size_t name_len)
{
	struct hydns_request q = { .type = HYDNS_MSG_WITHDRAW };
	bool known = scope == HYDNS_SCOPE_ALL;

	if (!known && (scope == HYDNS_SCOPE_NAME || scope == HYDNS_SCOPE_SUBTREE))
		known = name && name_len && hydns_name_length(name, name_len) == name_len;
	q.len = sizeof(q.withdraw);
	q.withdraw.generation = hydns_plugin_advance(p);
	q.withdraw.scope = scope;
	if (known && scope != HYDNS_SCOPE_ALL) {
		q.withdraw.name_len = (uint32_t)name_len;
		hydns_name_lower(q.withdraw.name, name, name_len);
	}
	if (known && (hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms) || suspend_and_wait(p, &q)))
		return;
	/* No reply in time, too many while hydnsd is away, or a broken name: a new epoch ends all rules, whatever hydnsd still
	 * does with the request. */
	hydns_plugin_kill_and_wait(p);
}

static void withdraw_subtree(struct hydns_plugin *p, const uint8_t *origin, size_t len)
{
	struct hydns_subtree_offers offers = hydns_subtrees_offers(p->subtrees, origin, len);

	hydns_plugin_advance(p);
	if (hydns_subtrees_left(p->subtrees, HYDNS_SCOPE_SUBTREE, origin, len) == HYDNS_SCOPE_NONE)
		return;
	hydns_plugin_withdraw(p, HYDNS_SCOPE_SUBTREE, origin, len);
	hydns_subtrees_withdrawn(p->subtrees, HYDNS_SCOPE_SUBTREE, origin, len, offers);
}

void hydns_plugin_zone_changing(struct hydns_plugin *p, const uint8_t *origin, size_t len)
{
	uint8_t lower[HYDNS_NAME_MAX];

	if (!p->subtrees || len == 0 || hydns_name_length(origin, len) != len) {
		hydns_plugin_withdraw_all(p);   /* no rule could be found by it */
		return;
	}
	hydns_name_lower(lower, origin, len);
	withdraw_subtree(p, lower, len);
}

void hydns_plugin_zone_changed(struct hydns_plugin *p)
{
	hydns_plugin_advance(p);
}
