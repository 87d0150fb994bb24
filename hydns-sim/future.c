/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/future.h"

#include <stdlib.h>
#include <string.h>

bool future_init(struct future *f, const struct sim_trace *t, uint64_t base_us)
{
	memset(f, 0, sizeof(*f));
	f->at_us = malloc((t->count + 1) * sizeof(*f->at_us));
	f->first = calloc((size_t)t->ids + 1, sizeof(*f->first));
	f->cursor = malloc(((size_t)t->ids + 1) * sizeof(*f->cursor));
	if (!f->at_us || !f->first || !f->cursor) {
		future_free(f);
		return false;
	}
	for (size_t i = 0; i < t->count; i++)
		f->first[t->request[i].id + 1]++;
	for (uint32_t i = 0; i < t->ids; i++)
		f->first[i + 1] += f->first[i];
	memcpy(f->cursor, f->first, ((size_t)t->ids + 1) * sizeof(*f->cursor));
	for (size_t i = 0; i < t->count; i++)
		f->at_us[f->cursor[t->request[i].id]++] = base_us + t->request[i].at_us;
	memcpy(f->cursor, f->first, ((size_t)t->ids + 1) * sizeof(*f->cursor));
	return true;
}

void future_free(struct future *f)
{
	free(f->at_us);
	free(f->first);
	free(f->cursor);
	memset(f, 0, sizeof(*f));
}

uint64_t future_hits(const struct future *f, uint32_t id, uint64_t end_us, uint64_t *last_us)
{
	size_t low = f->cursor[id], high = f->first[id + 1];

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->at_us[middle] < end_us)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > f->cursor[id])
		*last_us = f->at_us[low - 1];
	return low - f->cursor[id];
}

uint64_t future_next(const struct future *f, uint32_t id)
{
	return f->cursor[id] < f->first[id + 1] ? f->at_us[f->cursor[id]] : UINT64_MAX;
}
