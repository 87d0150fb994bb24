/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/missing.h"

#include <stdlib.h>
#include <string.h>

#define SETS 256                       /* power of two */
#define WAYS 4
/* A question whose rule was removed has reached its resolver for a short time only when it is offered again, so that the
 * resolver has hardly counted it. So long the former rate holds. */
#define RATE_HOLDS_MS 10000

struct entry {
	struct hydnsd_missing what;    /* name: not set */
	uint64_t rate_ms;              /* when the rate was measured */
	uint8_t name[HYDNS_NAME_MAX];
};

struct hydnsd_missing_table {
	struct entry entry[SETS][WAYS];
};

struct hydnsd_missing_table *hydnsd_missing_new(void)
{
	return calloc(1, sizeof(struct hydnsd_missing_table));
}

void hydnsd_missing_free(struct hydnsd_missing_table *a)
{
	free(a);
}

size_t hydnsd_missing_bytes(void)
{
	return sizeof(struct hydnsd_missing_table);
}

uint64_t hydnsd_missing_rate(uint32_t count, uint32_t window_ms)
{
	return (uint64_t)count * 1000000000U / (window_ms ? window_ms : 1);
}

static bool old(const struct entry *e, uint64_t now_ms)
{
	return !e->what.rate || now_ms - e->what.at_ms > HYDNSD_MISSING_MS;
}

/* The entry of the same question, else one that is old, else the coldest. */
static struct entry *find(struct entry set[WAYS], uint64_t key, uint64_t now_ms)
{
	struct entry *found = &set[0];

	for (unsigned i = 0; i < WAYS; i++) {
		if (set[i].what.rate && set[i].what.key == key)
			return &set[i];
		if (!old(found, now_ms) && (old(&set[i], now_ms) || set[i].what.rate < found->what.rate))
			found = &set[i];
	}
	return found;
}

void hydnsd_missing_record(struct hydnsd_missing_table *a, const struct hydnsd_missing *what)
{
	uint64_t rate = what->rate, rate_ms = what->at_ms;
	struct entry *e;

	if (!a)
		return;
	e = find(a->entry[what->key % SETS], what->key, what->at_ms);
	if (e->what.rate && e->what.key == what->key) {
		if (what->at_ms - e->rate_ms < RATE_HOLDS_MS && e->what.rate > rate) {
			rate = e->what.rate;
			rate_ms = e->rate_ms;
		}
	} else if (!old(e, what->at_ms) && e->what.rate >= rate) {
		return;
	}
	if (rate < HYDNSD_MISSING_RATE_MIN)
		return;
	e->what = *what;
	e->what.rate = rate;
	e->what.name = NULL;
	e->rate_ms = rate_ms;
	memcpy(e->name, what->name, what->name_len);
}

void hydnsd_missing_each(const struct hydnsd_missing_table *a, uint64_t now_ms,
			 void (*fn)(const struct hydnsd_missing *, void *), void *arg)
{
	for (unsigned set = 0; a && set < SETS; set++)
		for (unsigned i = 0; i < WAYS; i++) {
			const struct entry *e = &a->entry[set][i];
			struct hydnsd_missing what = e->what;

			if (old(e, now_ms))
				continue;
			what.name = e->name;
			fn(&what, arg);
		}
}

static const struct {
	const char *reason, *text;
} removals[] = {
	[HYDNSD_REMOVAL_WITHDRAWN] = { "WITHDRAWN",
					"its rule was withdrawn: a flush, changed data, or the resolver reloaded or ended" },
	[HYDNSD_REMOVAL_EXPIRED] = { "EXPIRED", "its rule's TTL is over" },
	[HYDNSD_REMOVAL_EVICTED] = { "EVICTED", "its rule made room for an answer worth more" },
};

const char *hydnsd_missing_reason(const struct hydnsd_missing *what)
{
	return what->removal ? removals[what->removal].reason : hydnsd_rejection_name(what->refused);
}

const char *hydnsd_missing_text(const struct hydnsd_missing *what)
{
	return what->removal ? removals[what->removal].text : hydnsd_rejection_text(what->refused);
}
