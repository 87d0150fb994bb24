/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which analysers run, and what they have found in the last window. */
#ifndef HYDNSD_MONITOR_ANALYSES_H
#define HYDNSD_MONITOR_ANALYSES_H

#include "hydns-kern/loader/loader.h"
#include "hydnsd/monitor/conditions.h"
#include "hydnsd/monitor/findings.h"

#define HYDNSD_ANALYSIS_ALWAYS (1U << HYDNSD_CONDITIONS)       /* beside conditions, by bit */

struct hydnsd_analysis {
	uint32_t conditions;           /* by bit: it runs while one of them holds */
	bool running;
	uint64_t ended_ms;             /* of the window that the findings are of; 0: there was none yet */
	struct hydnsd_findings findings;
};
struct hydnsd_analyses {
	struct hydnsd_analysis of[HYDNS_ANALYSERS];
	bool failing;                  /* the log has said so */
};

const char *hydnsd_analyser_name(enum hydns_analyser a);
const char *hydnsd_analyser_text(enum hydns_analyser a);
/* When analysers run, as the list and the lines of monitor-analyser say: `NAME off', `NAME always' or `NAME CONDITION...'. 0, or -1 and
 * why. */
int hydnsd_analyses_read(const struct hydnsd_list *lines, struct hydnsd_analyses *out, char error[HYDNSD_OPTION_ERROR]);
/* A window has ended, and these conditions hold now: takes what was found, and starts and ends analysers. */
void hydnsd_analyses_window(struct hydnsd_analyses *a, struct hydns_kern *kern, uint32_t holding, uint64_t now_ms);

#endif
