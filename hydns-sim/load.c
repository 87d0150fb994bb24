/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The input of all commands: the trace. */
#include "hydns-sim/commands.h"

#include <stdio.h>

#include "hydns-sim/read.h"

int sim_load(const struct sim_options *o, const char *path, struct sim_trace *t, char *source, size_t room)
{
	const struct sim_read_options how = { .format = o->format, .ttl = o->ttl, .rate = o->rate };
	const struct sim_workload *w = &o->workload;
	struct sim_read_counts n;
	char error[SIM_READ_ERROR];

	if (!path) {
		snprintf(source, room, "generated (seed %ju, Zipf %g over %u names, %g %% never repeated)",
			 (uintmax_t)w->seed, w->zipf, w->names, 100 * w->fresh);
		return sim_generate(w, t) ? 0 : sim_complain("out of memory: lower --requests or --names");
	}
	if (sim_read(path, &how, t, &n, error))
		return sim_complain(error);
	snprintf(source, room, "%s (%ju answers seen, %ju frames ignored)", path, (uintmax_t)n.answers,
		 (uintmax_t)n.ignored);
	return 0;
}
