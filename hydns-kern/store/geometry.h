/* SPDX-License-Identifier: GPL-2.0-only */
/* Sizes of the store: how many slots, buckets and counters a capacity takes. */
#ifndef HYDNS_KERN_STORE_GEOMETRY_H
#define HYDNS_KERN_STORE_GEOMETRY_H

#include <stddef.h>
#include "hydns/rule.h"

/* Computes the sizes for a capacity. cpus: possible CPUs; present: CPUs that are online. */
void hydns_geometry_for(__u32 capacity, __u32 cpus, __u32 present, struct hydns_geometry *out);
/* Rows of hit counters, of `lines` lines each. */
__u32 hydns_geometry_hit_rows(const struct hydns_geometry *g);
/* Which row this CPU counts in, and whether it shares that row. */
struct hydns_counting hydns_geometry_counting(const struct hydns_geometry *g, __u32 cpu);
/* Octets that slots, index and words per rule take: what a store of these sizes is, as hydnsd makes it. */
__u64 hydns_geometry_bytes(const struct hydns_geometry *g);
/* Chunks that the slots take. */
__u32 hydns_geometry_chunks(const struct hydns_geometry *g);

#endif
