/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Where in a denial the zone's present SOA belongs (hydns/soa.h). */
#ifndef HYDNSD_RULES_GAP_H
#define HYDNSD_RULES_GAP_H

#include "hydns/rule.h"
#include "hydnsd/rules/wire.h"

/* Finds what the gap leaves out of the message, whose records, so many of them, have passed the checks: there must be one SOA, and its
 * signature, if any, must be one. *out: offsets in the answer, without element and id. */
bool hydnsd_gap_find(const struct hydnsd_message *m, unsigned records, struct hydns_gap *out);
/* Calls fn() for each part of the answer that the gap leaves out, while that returns true. */
bool hydnsd_gap_each(const struct hydns_gap *g, bool (*fn)(void *arg, uint32_t at, uint32_t len), void *arg);

#endif
