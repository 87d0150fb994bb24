/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which capacity does a resolver need? Simulates hyDNS with the operator's own traffic at several capacities, and recommends
 * the least one whose double brings hardly any more hits. */
#include <stdio.h>
#include <stdlib.h>
#include "hydns-sim/commands.h"
#include "hydns-sim/report.h"

#define FIRST        100U
#define LAST         1000000U
#define WORTH_IT     0.005             /* share of all queries that a doubled capacity must answer in addition */
#define SHORT_S      600               /* a shorter trace hardly shows TTLs and habits */

static int play(const struct sim_options *o, const struct sim_trace *t, json_t *runs, uint32_t *best)
{
	static struct run_result r;    /* large */
	struct run_options how = o->run;
	double former = -1;

	how.halve_at = 0;
	for (how.capacity = FIRST; how.capacity <= LAST; how.capacity *= 2) {
		if (!sim_run(sim_contenders[0], t, &how, &r))
			return 1;
		report_line(stdout, &r);
		json_array_append_new(runs, report_json_run(&r, false));
		if (former < 0 || run_hit_rate(&r) - former >= WORTH_IT)
			*best = how.capacity;
		former = run_hit_rate(&r);
		if (r.rules_most < how.capacity)
			break;         /* all answers had room */
	}
	return 0;
}

int sim_advise(const struct sim_options *o)
{
	json_t *runs = json_array(), *j;
	char source[SIM_SOURCE_MAX];
	struct sim_trace t;
	uint32_t best = FIRST;
	int rc;

	if (o->word_count < 2) {
		fprintf(stderr, "hydns-sim: advise needs a file: give a capture of the resolver's clients, such as "
			"tcpdump -w FILE udp port 53\n");
		json_decref(runs);
		return 2;
	}
	rc = sim_load(o, o->words[1], &t, source, sizeof(source));
	if (!rc) {
		report_head(stdout, &t, source);
		rc = play(o, &t, runs, &best);
	}
	j = json_pack("{s:o, s:I}", "runs", runs, "advised_capacity", (json_int_t)best);
	if (!rc) {
		printf("\nAdvice: capacity: %u in hydnsd.conf. Twice as many rules would answer less than %.1f %% of the "
		       "queries more.\n", best, 100 * WORTH_IT);
		if (sim_trace_seconds(&t) < SHORT_S)
			printf("The trace covers %.0f s only: take one of at least %d s, at a busy hour.\n",
			       sim_trace_seconds(&t), SHORT_S);
		rc = sim_deliver(o, j);
	} else if (t.count) {
		fprintf(stderr, "hydns-sim: out of memory: give a shorter trace\n");
	}
	json_decref(j);
	sim_trace_free(&t);
	return rc;
}
