/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the monitor's sketches say. The program fills them, hydnsd reads them. Pure, as policy.h. */
#ifndef HYDNS_MONITOR_H
#define HYDNS_MONITOR_H

#include <stdint.h>

/* -- distinct.c: how many different keys were there? ---------------------------------------------------- */
/* Of 95 % of the estimates, the relative error is at most this many in a thousand. */
#define HYDNS_DISTINCT_ERROR 35
/* registers: HYDNS_DISTINCT_REGISTERS of them, of one CPU or merged (include/hydns/distinct.h). 0: no key was met. */
double hydns_distinct_estimate(const uint8_t *registers);

#endif
