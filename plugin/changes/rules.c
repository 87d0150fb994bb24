/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Killing rules by the page, and suspending all or those of a name until hydnsd has caught up. */
#include "hydns/hash.h"
#include "plugin/internal.h"
#include "plugin/log.h"

static bool away(uint32_t interval)
{
	return interval % 2 == 0;
}

bool hydns_plugin_dead(struct hydns_plugin *p)
{
	uint32_t interval = atomic_load(&p->interval);

	return away(interval) && atomic_load(&p->dead_in) == interval;
}

void hydns_plugin_suspend_rules(struct hydns_plugin *p)
{
	if (!hydns_plugin_dead(p) && hydns_pages_suspend(p->pages))
		hydns_requests_wake(&p->requests);     /* hydnsd may be back, and must then be asked to catch up */
}

uint32_t hydns_plugin_place(const struct hydns_plugin *p, const uint8_t *name, size_t len)
{
	const __u64 seed[2] = { p->seed[0], p->seed[1] };

	return HYDNS_PLACE(hydns_place_hash(name, (uint8_t)len, seed));
}

void hydns_plugin_mark(struct hydns_plugin *p, const uint8_t *name, size_t len)
{
	if (!hydns_plugin_dead(p) && hydns_pages_mark(p->pages, hydns_plugin_place(p, name, len)))
		hydns_requests_wake(&p->requests);     /* as above */
}

void hydns_plugin_kill_rules(struct hydns_plugin *p)
{
	uint32_t interval = atomic_load(&p->interval);

	/* Nothing can have been published since, and changes may come fast: spare epochs. */
	if (hydns_plugin_dead(p))
		return;
	hydns_pages_advance_epoch(p->pages);
	atomic_fetch_add(&p->store_serial, 1);      /* what was offered may be offered again at once */
	if (away(interval))
		atomic_store(&p->dead_in, interval);
}

void hydns_plugin_grace(struct hydns_plugin *p)
{
	/* Without a page that a program reads, there is no rule. If a page comes now, it takes over the generation, which
	 * the caller has advanced. */
	if (hydns_pages_fd(p->pages) < 0)
		return;
	if (!hydns_grace() && !atomic_exchange(&p->grace_logged, true))
		hydns_log(p, HYDNS_LOG_INFO, "membarrier() does not wait for all CPUs here (nohz_full?): "
			  "withdrawals without hydnsd wait a fixed time instead");
}

/* No rule is alive or being sent, and none can be published: for good, or while hydnsd is away. */
static bool grace_is_over(struct hydns_plugin *p, uint32_t interval)
{
	return atomic_load(&p->grace_over) || (away(interval) && atomic_load(&p->grace_in) == interval);
}

void hydns_plugin_wait_grace(struct hydns_plugin *p)
{
	if (grace_is_over(p, atomic_load(&p->interval)))
		return;
	hydns_plugin_grace(p);
	atomic_store(&p->grace_over, true);
}

void hydns_plugin_kill_and_wait(struct hydns_plugin *p)
{
	uint32_t interval = atomic_load(&p->interval);

	if (grace_is_over(p, interval))
		return;
	hydns_plugin_kill_rules(p);
	hydns_plugin_grace(p);
	if (away(interval))
		atomic_store(&p->grace_in, interval);
}
