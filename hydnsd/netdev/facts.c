/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/facts.h"

#include <stdio.h>
#include <string.h>

static void look_at(const struct netdev_link *l, bool native, const struct netdev_link *all, size_t n, struct hydnsd_facts *out)
{
	struct netdev_tags tags = { 0 };

	if (netdev_leaves_checksums(l->name))
		snprintf(out->unfinished, sizeof(out->unfinished), "%s", l->name);
	netdev_tags(l, all, n, native, &tags);
	if (tags.vlan[0] && tags.place != NETDEV_TAGS_ASIDE)
		snprintf(out->tagged, sizeof(out->tagged), "%s", tags.vlan);
}

void hydnsd_facts_read(const struct hydnsd_list *of, bool native, const struct netdev_link *all, size_t n, struct hydnsd_facts *out)
{
	unsigned ways = 0;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < n; i++) {
		ways += (all[i].flags & IFF_UP) && !(all[i].flags & IFF_LOOPBACK) && !all[i].master;
		for (uint32_t k = 0; k < of->count; k++)
			if (!strcmp(all[i].name, of->item[k]))
				look_at(&all[i], native, all, n, out);
	}
	out->several = ways > 1;
}
