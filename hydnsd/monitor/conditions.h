/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Conditions: when a measure of the monitor is out of the ordinary. Pure: no I/O, no clock. */
#ifndef HYDNSD_MONITOR_CONDITIONS_H
#define HYDNSD_MONITOR_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hydnsd/daemon/options.h"

enum hydnsd_measure { HYDNSD_MEASURE_RATE, HYDNSD_MEASURE_MISSES, HYDNSD_MEASURE_CLIENTS, HYDNSD_MEASURE_NAMES, HYDNSD_MEASURES };

enum hydnsd_condition_id {
#define MONITOR_CONDITION(name, measure, kind, begin, end, text) HYDNSD_CONDITION_##name,
#include "hydnsd/monitor/conditions.def"
#undef MONITOR_CONDITION
	HYDNSD_CONDITIONS
};

/* Unless monitor-condition says otherwise, no condition begins while there are fewer queries a second. */
#define HYDNSD_CONDITION_LEAST 1000
/* Windows before a condition about the past can begin. */
#define HYDNSD_CONDITION_WINDOWS 6

struct hydnsd_condition {
	bool off;
	double begin, end, least;      /* least: queries a second */
	double value, past;            /* past: exponentially weighted mean of the windows before */
	uint32_t windows;              /* that past is made of, up to HYDNSD_CONDITION_WINDOWS */
	bool holds;
	double worst;                  /* value while it holds, or last held */
};
enum hydnsd_condition_event { HYDNSD_CONDITION_STAYS, HYDNSD_CONDITION_BEGINS, HYDNSD_CONDITION_ENDS };

const char *hydnsd_condition_name(enum hydnsd_condition_id id);
const char *hydnsd_condition_text(enum hydnsd_condition_id id);

/* The conditions as the list and the lines of monitor-condition say: `NAME off', or `NAME BEGIN END [LEAST]'. 0, or -1 and why. */
int hydnsd_conditions_read(const struct hydnsd_list *lines, struct hydnsd_condition c[HYDNSD_CONDITIONS],
			   char error[HYDNSD_OPTION_ERROR]);
/* A window has ended. value: each measure's in it. */
enum hydnsd_condition_event hydnsd_condition_step(enum hydnsd_condition_id id, struct hydnsd_condition *c,
						  const double value[HYDNSD_MEASURES]);
/* With which value it begins, or, while it holds, below which it ends; of the past as it is now. */
double hydnsd_condition_threshold(enum hydnsd_condition_id id, const struct hydnsd_condition *c);

#endif
