/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What has been answered in the kernel for a resolver. */
#ifndef HYDNSD_RESOLVERS_COUNTS_H
#define HYDNSD_RESOLVERS_COUNTS_H

#include <stdint.h>
#include "hydns/session.h"

struct hydnsd_rules;

/* Answers since the resolver's page was made: of rules that have been swept, and of the program's counters now and when the
 * page was made. */
void hydnsd_resolver_counts_sum(const struct hydnsd_rules *r, uint32_t i, const struct hydns_resolver_count *now,
			  const struct hydns_resolver_count *base, struct hydns_counts *out);

#endif
