/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Stale answers of a resolver whose process has crashed (doc/coherence.md). The resolver's state is HYDNSD_RESOLVER_STALE from then on
 * until it is released: when a process listens at its address again, or when its last rule has ended.
 */
#ifndef HYDNSD_RESOLVERS_STALE_H
#define HYDNSD_RESOLVERS_STALE_H

#include <stdbool.h>
#include <stdint.h>

struct hydnsd;

/* For a resolver whose process has ended, with its session. False: its rules are to go as usual. */
bool hydnsd_stale_begin(struct hydnsd *d, uint32_t i);
/* Periodic: renews the lease, or releases the resolver. */
void hydnsd_stale_tick(struct hydnsd *d, uint32_t i);
/* Writes to the log how it was; for a resolver that is released. */
void hydnsd_stale_end(struct hydnsd *d, uint32_t i, const char *cause);

#endif
