/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the program has answered for a resolver since its page was made. */
#ifndef HYDNSD_RESOLVERS_COUNTS_H
#define HYDNSD_RESOLVERS_COUNTS_H

#include <stdint.h>
#include "hydns/session.h"

struct hydnsd;
struct hydnsd_rules;

/* Exact at the time of the call: sweeps the resolver's rules. */
void hydnsd_resolver_counts(struct hydnsd *d, uint32_t i, struct hydns_counts *out);
/* As of the last sweep, for one who has just swept the rules of all resolvers. */
void hydnsd_resolver_counts_swept(const struct hydnsd *d, uint32_t i, struct hydns_counts *out);
/* The same from given parts: rules that have been swept, and the program's counters now and when the page was made. */
void hydnsd_resolver_counts_sum(const struct hydnsd_rules *r, uint32_t i, const struct hydns_resolver_count *now,
				const struct hydns_resolver_count *base, struct hydns_counts *out);
/* What the program has redirected to the resolver's packet rings since its page was made. */
void hydnsd_resolver_queued(struct hydnsd *d, uint32_t i, struct hydns_queue_count *out);

#endif
