/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/resolver.h"

#include <stdlib.h>

#define SECOND 1000000U

struct lookup {
	uint64_t done_us;
	uint32_t id;
	bool refresh;
};

struct resolver {
	const struct sim_trace *trace;
	uint32_t latency_us;
	uint32_t *begun_s, *expires_s; /* by id; 0: not in the cache */
	uint32_t *waiting;             /* by id: waiting queries; NOT_LOOKED_UP: no lookup under way */
	struct lookup *queue;          /* in the order of their ends: all take the same time */
	size_t head, count, room;
	uint64_t lookups;
};
#define NOT_LOOKED_UP UINT32_MAX

struct resolver *resolver_open(const struct sim_trace *t, uint32_t latency_ms)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->trace = t;
	r->latency_us = latency_ms * 1000;
	r->room = 1U << 16;
	r->begun_s = calloc(t->ids, sizeof(*r->begun_s));
	r->expires_s = calloc(t->ids, sizeof(*r->expires_s));
	r->waiting = malloc(t->ids * sizeof(*r->waiting));
	r->queue = malloc(r->room * sizeof(*r->queue));
	if (!r->begun_s || !r->expires_s || !r->waiting || !r->queue) {
		resolver_close(r);
		return NULL;
	}
	for (uint32_t i = 0; i < t->ids; i++)
		r->waiting[i] = NOT_LOOKED_UP;
	return r;
}

void resolver_close(struct resolver *r)
{
	free(r->begun_s);
	free(r->expires_s);
	free(r->waiting);
	free(r->queue);
	free(r);
}

static bool grow(struct resolver *r)
{
	struct lookup *more = malloc(2 * r->room * sizeof(*more));

	if (!more)
		return false;
	for (size_t i = 0; i < r->count; i++)
		more[i] = r->queue[(r->head + i) & (r->room - 1)];
	free(r->queue);
	r->queue = more;
	r->head = 0;
	r->room *= 2;
	return true;
}

static void look_up(struct resolver *r, uint32_t id, uint64_t now_us, bool refresh)
{
	/* Without memory the query stays unanswered, as at an overloaded resolver. */
	if (r->count == r->room && !grow(r))
		return;
	r->queue[(r->head + r->count++) & (r->room - 1)] = (struct lookup){ now_us + r->latency_us, id, refresh };
	r->waiting[id] = 0;
	r->lookups++;
}

bool resolver_done(struct resolver *r, uint64_t now_us, struct sim_answer *a, uint64_t *at_us)
{
	const struct lookup *l = &r->queue[r->head];
	uint64_t begun_s;

	if (!r->count || l->done_us > now_us)
		return false;
	begun_s = l->done_us / SECOND;
	*a = (struct sim_answer){
		.id = l->id, .sightings = r->waiting[l->id], .begun_s = begun_s,
		.expires_s = begun_s + r->trace->ttl[l->id], .fresh = true, .refreshed = l->refresh,
	};
	*at_us = l->done_us;
	r->begun_s[l->id] = (uint32_t)begun_s;
	r->expires_s[l->id] = (uint32_t)a->expires_s;
	r->waiting[l->id] = NOT_LOOKED_UP;
	r->head = (r->head + 1) & (r->room - 1);
	r->count--;
	return true;
}

bool resolver_query(struct resolver *r, uint32_t id, uint64_t now_us, struct sim_answer *a)
{
	if (r->expires_s[id] > now_us / SECOND) {
		*a = (struct sim_answer){ .id = id, .sightings = 1, .begun_s = r->begun_s[id],
					  .expires_s = r->expires_s[id] };
		return true;
	}
	if (r->waiting[id] == NOT_LOOKED_UP)
		look_up(r, id, now_us, false);
	if (r->waiting[id] != NOT_LOOKED_UP)
		r->waiting[id]++;
	return false;
}

void resolver_refresh(struct resolver *r, uint32_t id, uint64_t now_us)
{
	if (r->waiting[id] == NOT_LOOKED_UP)
		look_up(r, id, now_us, true);
}

uint64_t resolver_lookups(const struct resolver *r)
{
	return r->lookups;
}
