/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The command guard: what it shows, sets and lifts; and what status and stats say of the guard. */
#ifndef HYDNSD_CONTROL_GUARDED_H
#define HYDNSD_CONTROL_GUARDED_H

#include <jansson.h>

#include "hydnsd/daemon/daemon.h"

/* Carries the request out. NULL: *fault says why not. */
json_t *hydnsd_guard_request(struct hydnsd *d, const json_t *request, uint32_t limit, const char **fault);
/* The object guard_counts of stats. */
json_t *hydnsd_guard_figures(struct hydnsd *d);

#endif
