/* SPDX-License-Identifier: GPL-2.0-only */
/* Replies a second of a server with a socket behind a veth. */
#include "test-harness/bench/kernel/measure.h"

#include <stdio.h>
#include <string.h>
#include <net/if.h>

static int flood_round(const struct options *o, struct generator *g, struct generator_run *run)
{
	int err;

	generator_rewind(g, o->first);
	err = generator_send(g, if_nametoindex(o->client), o->queries, o->rate, o->window, run);
	return err ? bench_fail("sending", strerror(-err)) : 0;
}

static int flood_rounds(const struct options *o, struct generator *g)
{
	struct generator_run run;

	for (unsigned r = 0; r < o->rounds; r++) {
		if (flood_round(o, g, &run))
			return 1;
		bench_print_run("flood", &run);
	}
	return 0;
}

/* Runs in turns with those of other processes on the same link. The reader of a result may start another process's run, so
 * this detaches its sink before it prints the result: later it would detach the other's, in the same place. */
static int flood_on_demand(const struct options *o, struct generator *g)
{
	struct options next = *o;
	struct generator_run run;
	int failed = 0;

	while (!failed && scanf("%u", &next.first) == 1) {
		failed = bench_attach_tc(generator_sink_tc(g), o->client) || flood_round(&next, g, &run);
		failed = bench_detach_tc(o->client) || failed;
		if (!failed)
			bench_print_run("flood", &run);
	}
	return failed;
}

int bench_flood(const struct options *o)
{
	struct generator *g = generator_open(o->sequence, o->repeated, true, o->q.port);
	int failed;

	if (!g)
		return 1;
	question_template(&o->q, generator_template(g));
	if (o->on_demand)
		return flood_on_demand(o, g);
	if (o->xdp_sink)
		return bench_attach(generator_sink(g), o->client, "attaching to the client's end") < 0 || flood_rounds(o, g);
	if (bench_attach_tc(generator_sink_tc(g), o->client))
		return 1;
	failed = flood_rounds(o, g);
	return bench_detach_tc(o->client) || failed;
}
