/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What hydns-metrics' page and `hydnsctl watch' show: hydnsd's replies under the names of their commands, rates, why queries pass
 * in words, and doctor's findings. No I/O.
 */
#ifndef HYDNSD_VIEW_VIEW_H
#define HYDNSD_VIEW_VIEW_H

#include <jansson.h>

/* hydnsd's replies, in the order of view_requests(). */
enum view_reply { VIEW_STATUS, VIEW_STATS, VIEW_TOP, VIEW_PENDING, VIEW_REPLIES };

/* A line for each reply; names: the most that top lists. The same text until the next call. */
const char *view_requests(unsigned names);

/*
 * A new object, in hydnsctl(8), "watch"; NULL: out of memory. reply: takes the references; all NULL: hydnsd does not answer, and
 * why. Replies may hold anything.
 */
json_t *view_of(json_t *const reply[VIEW_REPLIES], const char *why);

/* The object's own fields. */
#define VIEW_UP        "up"            /* hydnsd has answered */
#define VIEW_WHY_NOT   "why"           /* it has not; else empty */
#define VIEW_ANSWERED  "answered_per_s"    /* null: it has not counted for a second yet */
#define VIEW_PASSED    "passed_per_s"
#define VIEW_PASSING   "passing"       /* reasons that queries passed for, most frequent first */
#define VIEW_HEALTH    "health"        /* findings, as doctor prints them */
#define VIEW_AGE       "age_ms"        /* of a rule, in the names of top */

#endif
