/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/changes.h"

void hydnsd_changes_note(struct hydnsd_changes *c, uint64_t generation, uint64_t bits)
{
	uint32_t i = c->next++ % HYDNSD_CHANGES;

	if (c->last[i].generation > c->forgotten)
		c->forgotten = c->last[i].generation;
	if (generation > c->newest)
		c->newest = generation;
	c->last[i].generation = generation;
	c->last[i].bits = bits;
}

bool hydnsd_changes_touch(const struct hydnsd_changes *c, uint64_t generation, uint64_t signature)
{
	if (generation >= c->newest)
		return false;
	if (generation < c->forgotten)
		return true;
	for (uint32_t i = 0; i < HYDNSD_CHANGES; i++)
		if (c->last[i].generation > generation && (c->last[i].bits & ~signature) == 0)
			return true;
	return false;
}
