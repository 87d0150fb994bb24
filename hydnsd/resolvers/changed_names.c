/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/changed_names.h"

void hydnsd_changed_names_record(struct hydnsd_changed_names *c, uint64_t generation, uint64_t bits)
{
	uint32_t i = c->next++ % HYDNSD_CHANGED_NAMES;

	if (c->last[i].generation > c->forgotten)
		c->forgotten = c->last[i].generation;
	if (generation > c->newest)
		c->newest = generation;
	c->last[i].generation = generation;
	c->last[i].bits = bits;
}

bool hydnsd_changed_names_affect(const struct hydnsd_changed_names *c, uint64_t generation, uint64_t signature)
{
	if (generation >= c->newest)
		return false;
	if (generation < c->forgotten)
		return true;
	for (uint32_t i = 0; i < HYDNSD_CHANGED_NAMES; i++)
		if (c->last[i].generation > generation && (c->last[i].bits & ~signature) == 0)
			return true;
	return false;
}
