/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The cost of counting a query in the resolver's plugin, for the generated workload's questions in their order: the keyed hash
 * and the prefetch after the query is read, as in hydns_plugin_prefetch(), and hydns_plugin_hot() after the answer is written.
 * Each query is timed alone, without the time of reading the clock. Between the two steps this waits RESOLVER_NS for the
 * resolver. It counts every query; busy threads count a sample.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "hydns-sim/commands.h"
#include "plugin/internal.h"

#define CLOCK_READINGS 100000
#define THRESHOLD      1000000000U     /* hits per 10^6 s: as with a store that is full of busier names */
#define RESOLVER_NS 400                /* a small part of the 7 us of a cached answer in Unbound, most of which is in between */
#define LIFE_S   300
#define NAME_LEN 27                    /* www.n12345678.example.net: a usual length */

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

static void write_name(uint8_t name[NAME_LEN + 1], uint32_t id)
{
	snprintf((char *)name, NAME_LEN + 1, "%cwww%cn%08x%cexample%cnet", 3, 9, id, 7, 3);
}

/* The median time between two readings of the clock with nothing between them. */
static uint32_t clock_cost(uint32_t *ns)
{
	for (uint32_t i = 0; i < CLOCK_READINGS; i++) {
		uint64_t begun = now_ns();

		ns[i] = (uint32_t)(now_ns() - begun);
	}
	qsort(ns, CLOCK_READINGS, sizeof(*ns), by_size);
	return ns[CLOCK_READINGS / 2];
}

static void measure(struct hydns_thread *thread, const struct sim_trace *t, uint32_t clock_ns, uint32_t *ns)
{
	uint8_t name[NAME_LEN + 1];
	const struct hydns_question q = { .name = name, .name_len = NAME_LEN, .qtype = 1 };
	volatile unsigned due = 0;

	for (size_t i = 0; i < t->count; i++) {
		uint64_t at[4], key;

		write_name(name, t->request[i].id);
		at[0] = now_ns();
		key = hydns_plugin_prefetch(thread, &q);
		hydns_offered_prefetch(thread->hot.offered, key);   /* as after a first offer */
		at[1] = at[2] = now_ns();
		while (at[2] < at[1] + RESOLVER_NS)
			at[2] = now_ns();
		due += hydns_plugin_hot(thread, key, false, LIFE_S, 1000 + t->request[i].at_us / 1000);
		at[3] = now_ns();
		ns[i] = (uint32_t)(at[1] - at[0] + at[3] - at[2]);
		ns[i] = ns[i] > 2 * clock_ns ? ns[i] - 2 * clock_ns : 0;
	}
}

static int report(const struct sim_options *o, uint32_t *ns, size_t count, uint32_t clock_ns, size_t bytes)
{
	uint32_t at[3];
	static const double part[3] = { 0.5, 0.9, 0.99 };
	json_t *j;
	int rc;

	qsort(ns, count, sizeof(*ns), by_size);
	for (int i = 0; i < 3; i++)
		at[i] = ns[(size_t)(part[i] * (double)count)];
	printf("a query in the plugin: median %u ns, 90 %% %u ns, 99 %% %u ns (less %u ns for two clock readings); sketch %zu KiB a "
	       "thread\n", at[0], at[1], at[2], clock_ns, bytes / 1024);
	j = json_pack("{s:I, s:I, s:I, s:I, s:I}", "median_ns", (json_int_t)at[0], "p90_ns", (json_int_t)at[1], "p99_ns",
		      (json_int_t)at[2], "clock_ns", (json_int_t)clock_ns, "sketch_bytes", (json_int_t)bytes);
	rc = sim_deliver(o, j);
	json_decref(j);
	return rc;
}

int sim_cost(const struct sim_options *o)
{
	/* never started: there is no hydnsd to connect to */
	const struct hydns_plugin_options how = {
		.socket = "/nonexistent", .identity = "hydns-sim", .version = "0", .threads = 1,
		.capacity = o->capacity[0], .admission = o->hydns.admission, .window_ms = o->hydns.window_s * 1000,
		.max_ttl = 3600,
	};
	struct hydns_plugin *p = hydns_plugin_new(&how);
	struct sim_trace t = { 0 };
	uint32_t *ns = NULL;
	int rc = EXIT_FAILURE;
	char source[160];

	if (p && !sim_load(o, NULL, &t, source, sizeof(source)))
		ns = malloc((t.count > CLOCK_READINGS ? t.count : CLOCK_READINGS) * sizeof(*ns));
	if (ns) {
		struct hydns_thread *thread = hydns_plugin_thread(p, 0);
		uint32_t clock_ns = clock_cost(ns);

		thread->ring.ring->threshold = THRESHOLD;
		measure(thread, &t, clock_ns, ns);
		rc = report(o, ns, t.count, clock_ns, hydns_sketch_bytes(thread->hot.sketch));
	} else {
		fprintf(stderr, "hydns-sim: nothing measured: out of memory, lower --requests or --capacity\n");
	}
	sim_trace_free(&t);
	if (p)
		hydns_plugin_stop(p);
	free(ns);
	return rc;
}
