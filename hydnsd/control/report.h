/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Replies of the control protocol (protocol.def), without `ok'; NULL: out of memory. */
#ifndef HYDNSD_CONTROL_REPORT_H
#define HYDNSD_CONTROL_REPORT_H

#include <jansson.h>
#include "hydnsd/daemon/daemon.h"
#include "hydnsd/rules/wire.h"

/* hydnsd_report_<name>() of each command without arguments */
#define REPORT(name) json_t *hydnsd_report_##name(struct hydnsd *d);
#define HANDLER(name)
#define LOCAL(name)
#define CTL_COMMAND(name, served, ...) served(name)
#include "hydnsd/control/commands.def"
#undef CTL_COMMAND
#undef REPORT
#undef HANDLER
#undef LOCAL
/* Hottest first. resolver: an index, or -1 for all. */
/* now: after a look at all rules */
json_t *hydnsd_report_stats(struct hydnsd *d, bool now);
json_t *hydnsd_report_rules(struct hydnsd *d, uint32_t limit, int resolver);
json_t *hydnsd_report_top(struct hydnsd *d, uint32_t limit);
/* Those of most queries first. */
json_t *hydnsd_report_pending(struct hydnsd *d, uint32_t limit);

/* NULL: no dry run is possible, and *fault says why; or out of memory, and *fault is NULL. */
struct hydnsd_asked;
json_t *hydnsd_report_explain(struct hydnsd *d, const struct hydnsd_asked *q, const char **fault);

/* The object histogram of protocol.def. */
json_t *hydnsd_report_histogram(const struct hydnsd_histogram *h, enum hydnsd_scale scale);

/* For explain.c and top.c: a rule; and the hottest rules, in room for limit + 1 of them, with their number. */
json_t *hydnsd_report_rule(struct hydnsd *d, uint32_t handle);
struct hydnsd_ranked {
	uint64_t rate;
	uint32_t handle;
};
uint32_t hydnsd_report_hottest(struct hydnsd *d, struct hydnsd_ranked *heap, uint32_t limit, int resolver);
#define HYDNSD_REPORT_LIMIT 10000

#endif
