/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/lives.h"

#include <stdlib.h>
#include <string.h>

#define WHEEL  (1U << 16)              /* seconds; a longer life takes another round */
#define NONE   UINT32_MAX
#define SECOND 1000000U

bool lives_init(struct lives *l, uint32_t ids, void (*over)(void *arg, uint32_t id), void *arg)
{
	memset(l, 0, sizeof(*l));
	l->ids = ids;
	l->over = over;
	l->arg = arg;
	l->expires_s = calloc(ids, sizeof(*l->expires_s));
	l->next = malloc(ids * sizeof(*l->next));
	l->prev = malloc(ids * sizeof(*l->prev));
	l->first = malloc(WHEEL * sizeof(*l->first));
	if (l->first)
		memset(l->first, 0xff, WHEEL * sizeof(*l->first));
	return l->expires_s && l->next && l->prev && l->first;
}

void lives_free(struct lives *l)
{
	free(l->expires_s);
	free(l->next);
	free(l->prev);
	free(l->first);
}

void lives_begin(struct lives *l, uint32_t id, uint64_t expires_s)
{
	uint32_t *first = &l->first[expires_s % WHEEL];

	lives_end(l, id);
	if (expires_s <= l->now_s)
		return;
	l->expires_s[id] = (uint32_t)expires_s;
	l->next[id] = *first;
	l->prev[id] = NONE;
	if (*first != NONE)
		l->prev[*first] = id;
	*first = id;
	l->count++;
}

void lives_end(struct lives *l, uint32_t id)
{
	if (!l->expires_s[id])
		return;
	if (l->prev[id] == NONE)
		l->first[l->expires_s[id] % WHEEL] = l->next[id];
	else
		l->next[l->prev[id]] = l->next[id];
	if (l->next[id] != NONE)
		l->prev[l->next[id]] = l->prev[id];
	l->expires_s[id] = 0;
	l->count--;
}

static void end_second(struct lives *l)
{
	uint32_t next;

	for (uint32_t id = l->first[l->now_s % WHEEL]; id != NONE; id = next) {
		next = l->next[id];
		if (l->expires_s[id] > l->now_s)
			continue;
		lives_end(l, id);
		l->over(l->arg, id);
	}
}

void lives_advance(struct lives *l, uint64_t now_us)
{
	uint64_t now_s = now_us / SECOND;

	if (!l->now_s)
		l->now_s = now_s;
	while (l->now_s < now_s) {
		l->now_s++;
		end_second(l);
	}
}
