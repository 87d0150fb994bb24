/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The commands of hydns-sim, and what they share. Commands return an exit status. */
#ifndef HYDNS_SIM_COMMANDS_H
#define HYDNS_SIM_COMMANDS_H

#include <jansson.h>
#include "hydns-sim/options.h"

int sim_advise(const struct sim_options *o);
int sim_cost(const struct sim_options *o);

#define SIM_SOURCE_MAX 160             /* octets of a line about the trace */

/* The trace of a file, or without a path a generated one; source: what it is, for the report. */
int sim_load(const struct sim_options *o, const char *path, struct sim_trace *t, char *source, size_t room);
/* Writes the figures to the places that --json and --plot name. */
int sim_deliver(const struct sim_options *o, json_t *j);
/* Prints what is wrong and how to mend it; returns the exit status. */
int sim_complain(const char *text);

#endif
