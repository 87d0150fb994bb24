/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps that a former hydnsd left pinned and hydns_kern_open() did not adopt. Its program counts there until it is replaced on
 * all interfaces. */
#ifndef HYDNS_KERN_LOADER_FORMER_H
#define HYDNS_KERN_LOADER_FORMER_H

#include "hydns/resolver.h"
#include "hydns-kern/loader/open.h"

struct hydns_former;
struct hydns_store_memory;

/* To be called once; the caller closes what it returns. NULL: nothing that can be read is there.
 * *other_abi: the ABI of maps that have another than ours; else 0. */
struct hydns_former *hydns_kern_former(struct hydns_kern *k, __u32 *other_abi);
void hydns_former_close(struct hydns_former *f);
/* Its rule store, for hydns_store_open(); valid until f is closed. */
void hydns_former_memory(struct hydns_former *f, struct hydns_store_memory *out);
/* Kernel id of resolver i's page; 0: it has none. */
__u32 hydns_former_page(const struct hydns_former *f, __u32 i);
/* As hydns_kern_resolver_counts(). */
int hydns_former_counts(const struct hydns_former *f, __u32 i, struct hydns_resolver_count *sum);

#endif
