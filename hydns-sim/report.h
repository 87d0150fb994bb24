/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The results, as text for people and as JSON for hydns-sim-plot and other programs. */
#ifndef HYDNS_SIM_REPORT_H
#define HYDNS_SIM_REPORT_H

#include <jansson.h>
#include <stdio.h>
#include "hydns-sim/run.h"

void report_head(FILE *out, const struct sim_trace *t, const char *source);
void report_line(FILE *out, const struct run_result *r);
/* New reference. intervals: with the figures over time. NULL without memory. */
json_t *report_json_run(const struct run_result *r, bool intervals);
json_t *report_json_trace(const struct sim_trace *t, const char *source);

#endif
