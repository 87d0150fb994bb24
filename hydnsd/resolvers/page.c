/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/page.h"

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/daemon.h"

static uint32_t page_epoch(const struct hydnsd *d, uint32_t i)
{
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);

	return page ? page->epoch : 0;
}

uint32_t hydnsd_resolver_epoch(const struct hydnsd *d, uint32_t i)
{
	return page_epoch(d, i) & ~HYDNS_EPOCH_FLAGS;
}

bool hydnsd_resolver_suspended(const struct hydnsd *d, uint32_t i)
{
	return page_epoch(d, i) & HYDNS_EPOCH_FLAGS;
}

/* A rule without places has too many dependencies for them: any mark may concern it. */
static bool marked(const volatile struct hydns_resolver_page *page, const struct hydns_rule *rule)
{
	for (unsigned n = 0; n < rule->place_count; n++) {
		__u16 place = hydns_rule_place(rule, n);

		if (page->marks[place / 64] >> place % 64 & 1)
			return true;
	}
	return rule->place_count == 0;
}

bool hydnsd_resolver_suspends(const struct hydnsd *d, const struct hydns_rule *rule)
{
	uint32_t epoch = page_epoch(d, rule->resolver);

	return epoch & HYDNS_EPOCH_SUSPENDED ||
	       (epoch & HYDNS_EPOCH_MARKED && marked(hydns_kern_page(d->kern, rule->resolver), rule));
}

uint64_t hydnsd_resolver_age(const struct hydnsd *d, uint32_t i)
{
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);
	uint64_t beat = page ? page->heartbeat_ns : 0, now = hydnsd_now_ns();

	if (!beat)
		return UINT64_MAX;
	return now > beat ? now - beat : 0;
}

bool hydnsd_resolver_fresh(const struct hydnsd *d, uint32_t i)
{
	return hydnsd_resolver_age(d, i) < HYDNS_HEARTBEAT_STALE_NS;
}

/* At the end of a process the kernel unmaps its memory before it closes its sockets. So when another process can bind
 * the ended one's address, the page is abandoned already. */
bool hydnsd_resolver_ended(const struct hydnsd *d, uint32_t i)
{
	return hydns_kern_page_abandoned(d->kern, i);
}
