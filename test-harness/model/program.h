/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYDNS_MODEL_PROGRAM_H
#define HYDNS_MODEL_PROGRAM_H

#include "hydns-kern/store/geometry.h"
#include "hydns-kern/store/store.h"

/* The store that the program reads, and its settings. */
void program_set(const struct hydns_store_memory *m);
#define PROGRAM_CPUS 2
/* The rule that the program on this CPU would answer the question from; NULL: it passes. */
const struct hydns_rule *program_find(unsigned on, const __u8 *name, __u8 len, __u16 qtype);

#endif
