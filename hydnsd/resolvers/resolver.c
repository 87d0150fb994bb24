/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/resolver.h"

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/forwarding/forwarding.h"
#include "hydnsd/guard/guard.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/resolvers/configuration.h"
#include "hydnsd/resolvers/cookies.h"
#include "hydnsd/resolvers/lanes.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/resolvers/stale.h"
#include "hydnsd/resolvers/strays.h"
#include "hydnsd/resolvers/withdrawals.h"

/* keep_epoch: rules of this epoch stay; 0: none do. */
static void withdraw_rules(struct hydnsd *d, uint32_t i, uint32_t keep_epoch,
			   const struct hydnsd_withdrawal_end *end)
{
	const struct hydnsd_withdrawal w = {
		.resolver = i, .scope = HYDNS_SCOPE_ALL, .keep_epoch = keep_epoch,
	};

	hydnsd_withdrawals_begin(d, &w, 1, end);
}

/* -- end --------------------------------------------------------------------------------------------- */
static void closed(struct hydnsd *d, uint64_t client, uint32_t i, uint32_t withdrawn)
{
	(void)client;
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u is released; %u rules withdrawn", i, withdrawn);
	hydnsd_rules_stale_end(d->rules, i);
	d->resolver[i] = (struct hydnsd_resolver){ .state = HYDNSD_RESOLVER_FREE };
}

/* What a resolver needs no more once its process has ended. */
static void release_parts(struct hydnsd *d, uint32_t i)
{
	hydnsd_guard_release(d, i);
	hydnsd_lanes_release(d, i);
	hydns_kern_log_ring_delete(d->kern, i);
	hydns_kern_budgets_delete(d->kern, i);
	hydns_kern_names_delete(d->kern, i);
	hydnsd_strays_release(d, i);
}

void hydnsd_resolver_release(struct hydnsd *d, uint32_t i, const char *cause)
{
	const struct hydnsd_withdrawal_end end = { .done = closed, .tag = i };
	struct hydnsd_resolver *r = &d->resolver[i];

	if (r->state == HYDNSD_RESOLVER_STALE)
		hydnsd_stale_end(d, i, cause);
	else
		hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u (%s) goes: %s", i, r->hello.identity, cause);
	r->state = HYDNSD_RESOLVER_CLOSING;
	r->session = 0;
	hydnsd_forwarding_forbid(d, i);
	hydnsd_parking_forbid(d, i);
	hydnsd_configuration_write(d, i, false);
	hydnsd_configuration_forget(r);
	hydnsd_services_sync(d);
	hydns_kern_page_delete(d->kern, i);
	release_parts(d, i);
	hydnsd_cookies_wipe(d, i, false);
	withdraw_rules(d, i, 0, &end);
}

/* For a newcomer: otherwise processes that connect, leave and go on beating could use up all indexes. */
void hydnsd_resolver_release_disconnected(struct hydnsd *d)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		if (d->resolver[i].state == HYDNSD_RESOLVER_DISCONNECTED || d->resolver[i].state == HYDNSD_RESOLVER_STALE) {
			hydnsd_resolver_release(d, i, "its place is needed, and its plugin is not connected");
			return;
		}
}

/* For a disconnected resolver: it has no session that would have to end first. True: its process has ended, and it is released, or its
 * answers are stale from now on. */
static bool release_if_ended(struct hydnsd *d, uint32_t i)
{
	if (!hydnsd_resolver_ended(d, i))
		return false;
	if (hydnsd_stale_begin(d, i))
		release_parts(d, i);
	else
		hydnsd_resolver_release(d, i, "its process has ended");
	return true;
}

void hydnsd_resolver_leave(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_resolver *r = &d->resolver[i];

	r->session = 0;
	hydnsd_forwarding_forbid(d, i);
	hydnsd_parking_forbid(d, i);
	if (r->state == HYDNSD_RESOLVER_READY || r->state == HYDNSD_RESOLVER_CONFIGURING)
		r->state = HYDNSD_RESOLVER_DISCONNECTED;
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u (%s) has closed its connection", i, r->hello.identity);
	if (r->state == HYDNSD_RESOLVER_DISCONNECTED)
		release_if_ended(d, i);
}

/* -- at the start ------------------------------------------------------------------------------------ */
void hydnsd_resolver_adopt(struct hydnsd *d)
{
	const struct hydnsd_withdrawal_end nobody = { .done = NULL };

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		const struct hydnsd_withdrawal_end end = { .done = closed, .tag = i };
		struct hydnsd_resolver *r = &d->resolver[i];
		struct hydns_counts left;

		hydns_kern_resolver_config_get(d->kern, i, &r->config);
		r->live = r->config.flags & HYDNS_RESOLVER_READY;
		if (hydns_kern_page(d->kern, i)) {
			r->state = HYDNSD_RESOLVER_DISCONNECTED;
			r->epoch_seen = hydnsd_resolver_epoch(d, i);
			withdraw_rules(d, i, r->epoch_seen, &nobody);
			continue;
		}
		if (r->live)
			hydnsd_configuration_write(d, i, false);
		hydnsd_cookies_wipe(d, i, true);
		hydnsd_rules_counts(d->rules, i, &left);
		if (!left.rules)
			continue;
		r->state = HYDNSD_RESOLVER_CLOSING;
		withdraw_rules(d, i, 0, &end);
	}
}

/* -- all the time ------------------------------------------------------------------------------------ */
static void withdraw_former_epochs(struct hydnsd *d, uint32_t i)
{
	const struct hydnsd_withdrawal_end nobody = { .done = NULL };
	uint32_t epoch = hydnsd_resolver_epoch(d, i);

	if (!hydns_kern_page(d->kern, i) || epoch == d->resolver[i].epoch_seen)
		return;
	d->resolver[i].epoch_seen = epoch;
	withdraw_rules(d, i, epoch, &nobody);
}

void hydnsd_resolver_tick(struct hydnsd *d)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_resolver *r = &d->resolver[i];

		if (r->state == HYDNSD_RESOLVER_FREE || r->state == HYDNSD_RESOLVER_CLOSING)
			continue;
		withdraw_former_epochs(d, i);
		if (r->state == HYDNSD_RESOLVER_STALE)
			hydnsd_stale_tick(d, i);
		if (r->state == HYDNSD_RESOLVER_DISCONNECTED && !release_if_ended(d, i) && !hydnsd_resolver_fresh(d, i))
			hydnsd_resolver_release(d, i, "no plugin and no heartbeat");
	}
}

const char *hydnsd_resolver_state_name(const struct hydnsd *d, uint32_t i)
{
	static const char *const names[] = {
		[HYDNSD_RESOLVER_FREE] = "free", [HYDNSD_RESOLVER_DISCONNECTED] = "disconnected",
		[HYDNSD_RESOLVER_CONFIGURING] = "configuring", [HYDNSD_RESOLVER_READY] = "ready",
		[HYDNSD_RESOLVER_STALE] = "stale", [HYDNSD_RESOLVER_CLOSING] = "closing",
	};
	enum hydnsd_resolver_state state = d->resolver[i].state;

	if (state == HYDNSD_RESOLVER_READY && !hydnsd_resolver_fresh(d, i))
		return "silent";
	return state == HYDNSD_RESOLVER_READY && hydnsd_resolver_suspended(d, i) ? "catching up" : names[state];
}
