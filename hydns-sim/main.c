/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydns-sim: plays DNS traffic against the offload policy of hyDNS, and against others. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns-sim/commands.h"
#include "hydns-sim/options.h"
#include "hydns-sim/report.h"

#define EXIT_USAGE 2

static int play(const struct sim_options *o, const struct sim_trace *t, FILE *out, json_t *runs)
{
	struct run_options how = o->run;
	static struct run_result r;    /* large */

	for (uint32_t c = 0; c < o->capacities; c++) {
		how.capacity = o->capacity[c];
		for (uint32_t i = 0; i < o->contenders; i++) {
			if ((how.halve_at > 0 && !o->contender[i]->set_capacity) ||
			    (o->contender[i]->needs_ranks && !t->ranks))
				continue;
			if (!sim_run(o->contender[i], t, &how, &r))
				return sim_complain("out of memory: lower --capacity or --requests");
			report_line(out, &r);
			json_array_append_new(runs, report_json_run(&r, true));
		}
	}
	return 0;
}

static int run(const struct sim_options *o)
{
	bool quiet = o->json && strcmp(o->json, "-") == 0;
	FILE *out = quiet ? stderr : stdout;
	char source[SIM_SOURCE_MAX];
	struct sim_trace t;
	json_t *runs, *j;
	int rc = sim_load(o, o->words[1], &t, source, sizeof(source));

	if (rc)
		return rc;
	report_head(out, &t, source);
	runs = json_array();
	rc = play(o, &t, out, runs);
	j = json_pack("{s:o, s:o}", "trace", report_json_trace(&t, source), "runs", runs);
	if (!rc)
		rc = j ? sim_deliver(o, j) : sim_complain("out of memory for the figures");
	json_decref(j);
	sim_trace_free(&t);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct sim_options *o);
	} commands[] = { { "run", run }, { "advise", sim_advise }, { "cost", sim_cost } };
	char error[OPTIONS_ERROR];
	struct sim_options o;
	int rc = sim_options_read(argc, argv, &o, error);

	if (rc < 0) {
		fprintf(stderr, "hydns-sim: %s\n", error);
		return EXIT_USAGE;
	}
	if (rc > 0)
		return EXIT_SUCCESS;
	*sim_hydns_options() = o.hydns;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (o.word_count && strcmp(o.words[0], commands[i].name) == 0)
			return commands[i].run(&o);
	fprintf(stderr, "hydns-sim: no such command: see hydns-sim --help\n");
	return EXIT_USAGE;
}
