/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The monitor: what each window of time had, and the conditions that are judged by it. With option monitor: no there is none. */
#ifndef HYDNSD_MONITOR_MONITOR_H
#define HYDNSD_MONITOR_MONITOR_H

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/monitor/analyses.h"
#include "hydnsd/monitor/conditions.h"
#include "hydnsd/monitor/hook.h"

#define HYDNSD_MONITOR_WINDOWS 30      /* that are kept */

struct hydnsd_window {
	uint64_t ended_ms;             /* monotonic */
	uint64_t length_ms;
	uint64_t queries, answered;    /* to resolvers; answered in the kernel */
	double clients, names;         /* estimates: offload-policy/distinct.c */
};

/* Whether the monitor could start with these options. 0, or a negative errno and a line in error. */
int hydnsd_monitor_check(const struct hydnsd_options *o, char error[HYDNSD_OPTION_ERROR]);

/* d->monitor stays NULL if the options want none. */
int hydnsd_monitor_start(struct hydnsd *d, char *why, size_t room);
void hydnsd_monitor_stop(struct hydnsd *d);
/* Once a second. */
void hydnsd_monitor_tick(struct hydnsd *d);

/* A window, 0: the one that ended last; NULL: there are not so many. */
const struct hydnsd_window *hydnsd_monitor_window(const struct hydnsd *d, uint32_t ago);
const struct hydnsd_condition *hydnsd_monitor_condition(const struct hydnsd *d, enum hydnsd_condition_id id);
const struct hydnsd_analysis *hydnsd_monitor_analysis(const struct hydnsd *d, enum hydns_analyser a);
void hydnsd_monitor_hook_counts(const struct hydnsd *d, struct hydnsd_hook_counts *out);
double hydnsd_window_rate(const struct hydnsd_window *w);      /* queries a second */
double hydnsd_window_misses(const struct hydnsd_window *w);    /* percent of them; 0 without any */

#endif
