/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/former.h"

#include <stdlib.h>

#include "hydns/abi.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/resolvers/counts.h"

struct hydnsd_former {
	struct {
		uint32_t page_id;      /* the kernel's number of the page's map; 0: none, or taken */
		struct hydns_counts counts;
	} of[HYDNS_RESOLVERS];
};

/* As a hydnsd that takes the rules over: this completes the counts by type. */
static struct hydnsd_rules *open_rules(struct hydns_former *f, struct hydns_store_memory *memory)
{
	struct hydns_policy_options policy = HYDNSD_POLICY(0, 0);

	hydns_former_memory(f, memory);
	policy.capacity = memory->geometry->lines * HYDNS_LINE_WORDS;
	return hydnsd_rules_open(memory, &policy, 0, hydnsd_now_ns());
}

static struct hydnsd_former *read_counts(struct hydns_former *f)
{
	struct hydnsd_former *out = calloc(1, sizeof(*out));
	struct hydns_store_memory memory;
	struct hydnsd_rules *rules = open_rules(f, &memory);

	for (uint32_t i = 0; out && rules && i < HYDNS_RESOLVERS; i++) {
		struct hydns_resolver_count now;

		if (!hydns_former_page(f, i) || hydns_former_counts(f, i, &now))
			continue;
		hydnsd_resolver_counts_sum(rules, i, &now, &memory.tallies->base[i], &out->of[i].counts);
		out->of[i].counts.rules = 0;
		out->of[i].page_id = hydns_former_page(f, i);
	}
	if (!rules) {
		free(out);
		out = NULL;
	}
	hydnsd_rules_close(rules);
	return out;
}

void hydnsd_former_read(struct hydnsd *d)
{
	__u32 other_abi;
	struct hydns_former *f = hydns_kern_former(d->kern, &other_abi);

	if (other_abi)
		hydnsd_log(HYDNSD_LOG_WARNING, "the former hydnsd's maps have ABI %u, this one's %u: what was answered in the "
			   "kernel after the former one had ended is missing in the resolvers' statistics", other_abi,
			   hydns_abi_version());
	if (!f)
		return;
	hydnsd_grace_wait();           /* programs may still run that began before the exchange */
	d->former = read_counts(f);
	hydns_former_close(f);
	if (!d->former)
		hydnsd_log(HYDNSD_LOG_WARNING, "out of memory: what was answered in the kernel after the former hydnsd had "
			   "ended is missing in the resolvers' statistics");
}

void hydnsd_former_free(struct hydnsd *d)
{
	free(d->former);
	d->former = NULL;
}

bool hydnsd_former_take(struct hydnsd *d, int page_fd, struct hydns_counts *out)
{
	uint32_t id = d->former && page_fd >= 0 ? hydns_kern_page_id(page_fd) : 0;

	for (uint32_t i = 0; id && i < HYDNS_RESOLVERS; i++)
		if (d->former->of[i].page_id == id) {
			*out = d->former->of[i].counts;
			d->former->of[i].page_id = 0;
			return true;
		}
	return false;
}
