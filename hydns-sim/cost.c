/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What counting a query costs in the resolver's plugin: hydns_hot_seen(), the call that every query makes, on
 * the generated workload's questions in their order, timed in batches (a clock's reading costs as much). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "hydns-sim/commands.h"
#include "publish/hot.h"

#define BATCH    64
#define BAR      1000000000U           /* hits per 10^6 s: as with a store that is full of busier names */
#define SESSION  1
#define LIFE_S   300

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static size_t measure(const struct hydns_hot *h, const struct sim_trace *t, uint32_t *batch_ns)
{
	volatile unsigned due = 0;
	size_t batches = t->count / BATCH;

	for (size_t b = 0; b < batches; b++) {
		const struct sim_request *q = &t->request[b * BATCH];
		uint64_t begun = now_ns();

		for (int i = 0; i < BATCH; i++)
			due += hydns_hot_seen(h, q[i].id * 0x9e3779b97f4a7c15ULL, LIFE_S, SESSION, 1, BAR,
					      1000 + q[i].at_us / 1000);
		batch_ns[b] = (uint32_t)(now_ns() - begun);
	}
	return batches;
}

static int report(const struct sim_options *o, uint32_t *batch_ns, size_t batches, size_t bytes)
{
	double at[3];
	static const double part[3] = { 0.5, 0.9, 0.99 };
	json_t *j;
	int rc;

	qsort(batch_ns, batches, sizeof(*batch_ns), by_size);
	for (int i = 0; i < 3; i++)
		at[i] = (double)batch_ns[(size_t)(part[i] * (double)batches)] / BATCH;
	printf("a query in the plugin: median %.1f ns, 90 %% %.1f ns, 99 %% %.1f ns (batches of %d); sketch %zu KiB a thread\n",
	       at[0], at[1], at[2], BATCH, bytes / 1024);
	j = json_pack("{s:f, s:f, s:f, s:I}", "median_ns", at[0], "p90_ns", at[1], "p99_ns", at[2], "sketch_bytes",
		      (json_int_t)bytes);
	rc = sim_deliver(o, j);
	json_decref(j);
	return rc;
}

int sim_cost(const struct sim_options *o)
{
	const uint64_t seed[2] = { o->hydns.seed ^ 0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL };
	struct hydns_hot h = { hydns_sketch_new(hydns_hot_sketch_width(o->capacity[0]), o->hydns.window_s * 1000, seed),
			       hydns_offered_new(o->capacity[0]) };
	uint32_t *batch_ns = malloc((o->workload.requests / BATCH + 1) * sizeof(*batch_ns));
	struct sim_trace t = { 0 };
	int rc = EXIT_FAILURE;
	char source[160];

	if (h.sketch && h.offered && batch_ns && !sim_load(o, NULL, &t, source, sizeof(source)) && t.count >= BATCH)
		rc = report(o, batch_ns, measure(&h, &t, batch_ns), hydns_sketch_bytes(h.sketch));
	else
		fprintf(stderr, "hydns-sim: nothing measured: give at least %d --requests, and memory for them\n", BATCH);
	sim_trace_free(&t);
	hydns_sketch_free(h.sketch);
	hydns_offered_free(h.offered);
	free(batch_ns);
	return rc;
}
