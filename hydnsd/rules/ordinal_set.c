/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/ordinal_set.h"

#include <stdlib.h>

#define PLACES_MIN 16

static uint32_t home_of(const struct hydnsd_ordinal_set *c, uint32_t value)
{
	return (uint32_t)((uint64_t)(value * 0x9e3779b1U) * c->places >> 32);
}

/* Where the value stands, or the empty place where it would. */
static uint32_t find(const struct hydnsd_ordinal_set *c, uint32_t value)
{
	uint32_t at = home_of(c, value);

	while (c->place[at] && c->place[at] != value)
		at = (at + 1) & (c->places - 1);
	return at;
}

static void put(struct hydnsd_ordinal_set *c, uint32_t value)
{
	uint32_t at = home_of(c, value);

	while (c->place[at])
		at = (at + 1) & (c->places - 1);
	c->place[at] = value;
}

static bool resize(struct hydnsd_ordinal_set *c, uint32_t places)
{
	struct hydnsd_ordinal_set to = { .place = calloc(places, sizeof(*to.place)), .places = places, .count = c->count };

	if (!to.place)
		return false;
	for (uint32_t i = 0; i < c->places; i++)
		if (c->place[i])
			put(&to, c->place[i]);
	free(c->place);
	*c = to;
	return true;
}

bool hydnsd_ordinal_set_add(struct hydnsd_ordinal_set *c, uint32_t ordinal)
{
	/* three quarters at most */
	if (c->count >= c->places / 4 * 3 && !resize(c, c->places ? c->places * 2 : PLACES_MIN))
		return false;
	put(c, ordinal + 1);
	c->count++;
	return true;
}

/* Those behind the place that has become empty come nearer to where they are looked for. */
static void close_gap(struct hydnsd_ordinal_set *c, uint32_t gap)
{
	uint32_t mask = c->places - 1;

	for (uint32_t at = (gap + 1) & mask; c->place[at]; at = (at + 1) & mask) {
		uint32_t home = home_of(c, c->place[at]);

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		c->place[gap] = c->place[at];
		gap = at;
	}
	c->place[gap] = 0;
}

bool hydnsd_ordinal_set_drop(struct hydnsd_ordinal_set *c, uint32_t ordinal)
{
	uint32_t at;

	if (!c->count)
		return false;
	at = find(c, ordinal + 1);
	if (!c->place[at])
		return false;
	close_gap(c, at);
	c->count--;
	/* an eighth at least; where no smaller table can be had the larger one does */
	if (c->places > PLACES_MIN && c->count < c->places / 8)
		(void)resize(c, c->places / 2);
	return true;
}

void hydnsd_ordinal_set_list(const struct hydnsd_ordinal_set *c, uint32_t *out)
{
	for (uint32_t i = 0; i < c->places; i++)
		if (c->place[i])
			*out++ = c->place[i] - 1;
}

void hydnsd_ordinal_set_clear(struct hydnsd_ordinal_set *c)
{
	free(c->place);
	*c = (struct hydnsd_ordinal_set){ 0 };
}
