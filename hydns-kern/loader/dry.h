/* SPDX-License-Identifier: GPL-2.0-only */
/* Dry runs: with which reason the program would end a packet. */
#ifndef HYDNS_KERN_LOADER_DRY_H
#define HYDNS_KERN_LOADER_DRY_H

#include <stddef.h>
#include "hydns/reasons.h"
#include "hydns-kern/loader/open.h"

struct hydns_outcome {
	enum hydns_reason reason;
	enum hydns_reason beneath;     /* the same, as if the program were not paused and there were rules */
};

/*
 * Runs hydns_dry, which changes nothing that others see: no count, no claim of a refresh. ifindex: the interface that the
 * packet would come from; where the kernel can't run it as from there, the loopback interface, whose MTU is larger. The
 * outcome is never NO_ROOM, which only drivers cause. Needs CAP_BPF; one call at a time.
 */
int hydns_kern_dry_run(struct hydns_kern *k, const void *frame, size_t len, unsigned ifindex, struct hydns_outcome *out);

#endif
