/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/trace.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 4096

void sim_trace_init(struct sim_trace *t)
{
	memset(t, 0, sizeof(*t));
	t->marked = SIM_NO_ID;
}

void sim_trace_free(struct sim_trace *t)
{
	free(t->request);
	free(t->ttl);
	free(t->swap);
	sim_trace_init(t);
}

bool sim_trace_add(struct sim_trace *t, uint64_t at_us, uint32_t id)
{
	if (t->count == t->room) {
		size_t room = t->room ? t->room * 2 : ROOM_FIRST;
		struct sim_request *more = realloc(t->request, room * sizeof(*more));

		if (!more)
			return false;
		t->request = more;
		t->room = room;
	}
	if (t->count && at_us < t->request[t->count - 1].at_us)
		at_us = t->request[t->count - 1].at_us;
	t->request[t->count++] = (struct sim_request){ at_us, id };
	return true;
}

bool sim_trace_set_ttl(struct sim_trace *t, uint32_t id, uint32_t ttl)
{
	if (id >= t->id_room) {
		uint32_t room = t->id_room ? t->id_room : ROOM_FIRST;
		uint32_t *more;

		while (room <= id)
			room *= 2;
		more = realloc(t->ttl, room * sizeof(*more));
		if (!more)
			return false;
		memset(more + t->id_room, 0, (room - t->id_room) * sizeof(*more));
		t->ttl = more;
		t->id_room = room;
	}
	t->ttl[id] = ttl;
	if (id >= t->ids)
		t->ids = id + 1;
	return true;
}

bool sim_trace_swap(struct sim_trace *t, uint64_t at_us, uint32_t a, uint32_t b)
{
	if (t->swaps == t->swap_room) {
		size_t room = t->swap_room ? t->swap_room * 2 : ROOM_FIRST;
		struct sim_swap *more = realloc(t->swap, room * sizeof(*more));

		if (!more)
			return false;
		t->swap = more;
		t->swap_room = room;
	}
	t->swap[t->swaps++] = (struct sim_swap){ at_us, a, b };
	return true;
}

double sim_trace_seconds(const struct sim_trace *t)
{
	return t->count ? (double)t->request[t->count - 1].at_us / 1e6 : 0;
}
