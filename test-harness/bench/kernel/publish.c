/* SPDX-License-Identifier: GPL-2.0-only */
/* Rules installed, replaced and removed a second, while the program answers. */
#define _GNU_SOURCE
#include "test-harness/bench/kernel/measure.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <net/if.h>
#include "test-harness/bench/kernel/installs.h"

struct load {
	struct bench *b;
	const struct options *o;
	int cpu;
	struct generator_run run;
	int err;
};

static void stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void leave(int cpu)
{
	cpu_set_t others = bench_cpus;

	if (CPU_COUNT(&others) > 1)
		CPU_CLR(cpu, &others);
	sched_setaffinity(0, sizeof(others), &others);
}

static void *send_queries(void *arg)
{
	struct load *l = arg;

	stay_on(l->cpu);
	generator_rewind(l->b->g, 0);
	l->err = generator_send(l->b->g, if_nametoindex(l->o->client), l->o->queries, l->o->rate, 0,
				&l->run);
	return NULL;
}

/* Queries are sent and answered on that processor, installing goes on on the others. */
static int round_of_installs(struct bench *b, const struct options *o, int cpu)
{
	struct load l = { .b = b, .o = o, .cpu = cpu };
	struct installs i;
	pthread_t thread;
	bool room;

	if (pthread_create(&thread, NULL, send_queries, &l))
		return bench_fail("a thread", strerror(errno));
	room = installs_run(b->k, &o->q, o->q.rules, o->installs, &i);
	pthread_join(thread, NULL);
	if (l.err)
		return bench_fail("sending", strerror(-l.err));
	if (!room)
		return bench_fail("installing", "the store had no room: give --capacity");
	printf("{\"installs_per_second\": %.0f, \"renewals_per_second\": %.0f, \"removals_per_second\": %.0f}\n",
	       i.installed, i.replaced, i.removed);
	bench_print_run("hydns", &l.run);
	return 0;
}

int bench_publish(const struct options *o)
{
	struct bench b;
	int err = 0, cpu = sched_getcpu();

	if (bench_begin(o, true, &b))
		return 1;
	leave(cpu);
	if (bench_attach(kernel_prog_fd(b.k), o->server, "attaching to the server's end") < 0 ||
	    bench_attach(generator_sink(b.g), o->client, "attaching to the client's end") < 0)
		return 1;
	for (unsigned r = 0; r < o->rounds && !err; r++)
		err = round_of_installs(&b, o, cpu);
	return err;
}
