/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydns-sim: plays DNS traffic against the offload policy that hyDNS runs, and against others. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hydns-sim/commands.h"
#include "hydns-sim/options.h"
#include "hydns-sim/read.h"
#include "hydns-sim/report.h"

#define EXIT_USAGE 2
#define SOURCE_MAX 160

static int complain(const char *text)
{
	fprintf(stderr, "hydns-sim: %s\n", text);
	return EXIT_FAILURE;
}

int sim_load(const struct sim_options *o, const char *path, struct sim_trace *t, char *source, size_t room)
{
	const struct sim_read_options how = { .format = o->format, .ttl = o->ttl, .rate = o->rate };
	const struct sim_workload *w = &o->workload;
	struct sim_read_counts n;
	char error[SIM_READ_ERROR];

	if (!path) {
		snprintf(source, room, "generated (seed %ju, Zipf %g over %u names, %g %% never repeated)",
			 (uintmax_t)w->seed, w->zipf, w->names, 100 * w->fresh);
		return sim_generate(w, t) ? 0 : complain("out of memory: lower --requests or --names");
	}
	if (sim_read(path, &how, t, &n, error))
		return complain(error);
	snprintf(source, room, "%s (%ju answers seen, %ju frames ignored)", path, (uintmax_t)n.answers,
		 (uintmax_t)n.ignored);
	return 0;
}

/* -- output ------------------------------------------------------------------------------------------------ */
/* The figures as a picture, by hydns-sim-plot beside this program or on the path. */
static int draw(const char *json, const char *picture)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return complain("cannot start hydns-sim-plot: no process");
	if (pid == 0) {
		execlp("hydns-sim-plot", "hydns-sim-plot", json, picture, (char *)NULL);
		fprintf(stderr, "hydns-sim: cannot run hydns-sim-plot: %s: install it, or draw from --json\n",
			strerror(errno));
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		return complain("no picture: hydns-sim-plot failed");
	return 0;
}

static int draw_through_file(json_t *j, const char *picture)
{
	char path[] = "/tmp/hydns-sim.XXXXXX";
	int fd = mkstemp(path), rc;

	if (fd < 0)
		return complain("cannot make a file in /tmp for the picture's figures: make room there");
	rc = json_dumpfd(j, fd, 0) ? complain("cannot write the picture's figures: make room in /tmp") :
	     draw(path, picture);
	close(fd);
	unlink(path);
	return rc;
}

int sim_deliver(const struct sim_options *o, json_t *j)
{
	char text[SOURCE_MAX];
	int rc = 0;

	if (o->json && (strcmp(o->json, "-") == 0 ? json_dumpf(j, stdout, JSON_INDENT(1)) :
			json_dump_file(j, o->json, JSON_INDENT(1)))) {
		snprintf(text, sizeof(text), "cannot write %.100s: see whether it can be written to", o->json);
		rc = complain(text);
	}
	if (!rc && o->plot)
		rc = draw_through_file(j, o->plot);
	return rc;
}

/* -- run --------------------------------------------------------------------------------------------------- */
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
				return complain("out of memory: lower --capacity or --requests");
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
	char source[SOURCE_MAX];
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
		rc = j ? sim_deliver(o, j) : complain("out of memory for the figures");
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
