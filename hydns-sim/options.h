/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The command line: a table, from which help, checks and the manual's test come. */
#ifndef HYDNS_SIM_OPTIONS_H
#define HYDNS_SIM_OPTIONS_H

#include "hydns-sim/contender.h"
#include "hydns-sim/generate.h"
#include "hydns-sim/hydns.h"
#include "hydns-sim/run.h"

#define OPTIONS_CAPACITIES 16
#define OPTIONS_ERROR      256

struct sim_options {
	struct sim_workload workload;
	struct sim_hydns_options hydns;
	struct run_options run;
	uint32_t capacity[OPTIONS_CAPACITIES], capacities;
	const struct contender_kind *contender[16];
	uint32_t contenders;
	uint32_t format;               /* enum sim_format */
	uint32_t ttl;                  /* of questions whose answer a trace does not show */
	double rate;                   /* of a trace without times */
	const char *json, *plot;
	const char *words[2];          /* command, file */
	uint32_t word_count;
};

/* Returns 0; negative when *error says what is wrong and how to mend it; 1 when it printed help or version. */
int sim_options_read(int argc, char **argv, struct sim_options *out, char error[OPTIONS_ERROR]);

#endif
