/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Merges the heavy hitters of several CPUs (include/hydns/heavy.h: Space-Saving in sets).
 *
 * Error. Bounds are certain: a key came `least' times at least and `most' times at most. The least count of a full set of k entries
 * is at most R / (k - j), where R is what came of its keys but the j most frequent (Space-Saving's bound); a key's bounds are
 * no farther apart, on each CPU. With N sightings, R is N / 256 on average of 256 sets, and less where few keys are frequent.
 * Counts of other keys vary from set to set: so HYDNS_HEAVY_ERROR promises half of what an even spread would give, N / 1000
 * instead of N / 2048, for 95 % of all keys. The tests hold it from 100 to 10 million keys.
 *
 * Memory: 32 KiB a CPU for the 2048 entries.
 */
#include "offload-policy/monitor.h"

#include <stdlib.h>
#include <string.h>

struct candidate {
	const struct hydns_heavy_entry *entry;
	uint32_t cpu, number;
};

static int by_key(const void *a, const void *b)
{
	uint64_t x = ((const struct candidate *)a)->entry->key, y = ((const struct candidate *)b)->entry->key;

	return x < y ? -1 : x > y;
}

/* How often a key without an entry in this set may have come. */
static uint32_t least_count(const struct hydns_heavy_set *s)
{
	uint32_t least = s->entry[0].count;

	for (unsigned i = 1; i < HYDNS_HEAVY_ENTRIES; i++)
		least = s->entry[i].count < least ? s->entry[i].count : least;
	return least;
}

static size_t collect(const struct hydns_heavy_set *of_cpus, uint32_t cpus, struct candidate *c, uint64_t *unseen)
{
	size_t n = 0;

	*unseen = 0;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		*unseen += least_count(&of_cpus[cpu]);
		for (uint32_t i = 0; i < HYDNS_HEAVY_ENTRIES; i++)
			if (of_cpus[cpu].entry[i].count)
				c[n++] = (struct candidate){ &of_cpus[cpu].entry[i], cpu, i };
	}
	qsort(c, n, sizeof(*c), by_key);
	return n;
}

/* Keeps the list in order, the greatest first. */
static size_t insert(struct hydns_heavy_found *out, size_t n, size_t room, const struct hydns_heavy_found *f)
{
	size_t at = n < room ? n++ : room;

	for (; at && out[at - 1].least < f->least; at--)
		if (at < room)
			out[at] = out[at - 1];
	if (at < room)
		out[at] = *f;
	return n;
}

size_t hydns_heavy_top(const struct hydns_heavy_set *sets, uint32_t cpus, struct hydns_heavy_found *out, size_t room)
{
	struct candidate *c = calloc((size_t)cpus * HYDNS_HEAVY_ENTRIES, sizeof(*c));
	size_t found = 0;

	if (!c)
		return SIZE_MAX;
	for (uint32_t set = 0; set < HYDNS_HEAVY_SETS; set++) {
		const struct hydns_heavy_set *of_cpus = sets + (size_t)set * cpus;
		uint64_t unseen;
		size_t n = collect(of_cpus, cpus, c, &unseen);

		for (size_t i = 0; i < n; ) {
			struct hydns_heavy_found f = { .key = c[i].entry->key, .most = unseen, .set = set, .cpu = c[i].cpu,
						       .entry = c[i].number };

			for (; i < n && c[i].entry->key == f.key; i++) {
				f.least += c[i].entry->count - c[i].entry->error;
				f.most += c[i].entry->count - least_count(&of_cpus[c[i].cpu]);
			}
			found = insert(out, found, room, &f);
		}
	}
	free(c);
	return found;
}
