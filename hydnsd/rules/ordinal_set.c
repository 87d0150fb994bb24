/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/ordinal_set.h"

#include <stdlib.h>

#define ENTRIES_MIN 16

static uint32_t home_of(const struct hydnsd_ordinal_set *c, uint32_t value)
{
	return (uint32_t)((uint64_t)(value * 0x9e3779b1U) * c->entries >> 32);
}

/* The entry of the value, or the empty one where it would be. */
static uint32_t find(const struct hydnsd_ordinal_set *c, uint32_t value)
{
	uint32_t at = home_of(c, value);

	while (c->entry[at] && c->entry[at] != value)
		at = (at + 1) & (c->entries - 1);
	return at;
}

static void put(struct hydnsd_ordinal_set *c, uint32_t value)
{
	uint32_t at = home_of(c, value);

	while (c->entry[at])
		at = (at + 1) & (c->entries - 1);
	c->entry[at] = value;
}

static bool resize(struct hydnsd_ordinal_set *c, uint32_t entries)
{
	struct hydnsd_ordinal_set to = { .entry = calloc(entries, sizeof(*to.entry)), .entries = entries, .count = c->count };

	if (!to.entry)
		return false;
	for (uint32_t i = 0; i < c->entries; i++)
		if (c->entry[i])
			put(&to, c->entry[i]);
	free(c->entry);
	*c = to;
	return true;
}

bool hydnsd_ordinal_set_add(struct hydnsd_ordinal_set *c, uint32_t ordinal)
{
	/* three quarters at most */
	if (c->count >= c->entries / 4 * 3 && !resize(c, c->entries ? c->entries * 2 : ENTRIES_MIN))
		return false;
	put(c, ordinal + 1);
	c->count++;
	return true;
}

/* Moves entries behind the one that has become empty closer to their home, so that find() still reaches them. */
static void close_gap(struct hydnsd_ordinal_set *c, uint32_t gap)
{
	uint32_t mask = c->entries - 1;

	for (uint32_t at = (gap + 1) & mask; c->entry[at]; at = (at + 1) & mask) {
		uint32_t home = home_of(c, c->entry[at]);

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		c->entry[gap] = c->entry[at];
		gap = at;
	}
	c->entry[gap] = 0;
}

bool hydnsd_ordinal_set_drop(struct hydnsd_ordinal_set *c, uint32_t ordinal)
{
	uint32_t at;

	if (!c->count)
		return false;
	at = find(c, ordinal + 1);
	if (!c->entry[at])
		return false;
	close_gap(c, at);
	c->count--;
	/* an eighth at least; without memory for a smaller table the larger one stays */
	if (c->entries > ENTRIES_MIN && c->count < c->entries / 8)
		(void)resize(c, c->entries / 2);
	return true;
}

void hydnsd_ordinal_set_list(const struct hydnsd_ordinal_set *c, uint32_t *out)
{
	for (uint32_t i = 0; i < c->entries; i++)
		if (c->entry[i])
			*out++ = c->entry[i] - 1;
}

void hydnsd_ordinal_set_clear(struct hydnsd_ordinal_set *c)
{
	free(c->entry);
	*c = (struct hydnsd_ordinal_set){ 0 };
}
