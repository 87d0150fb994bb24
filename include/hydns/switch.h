/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What changes the program as a whole while it runs: the one value of hydns_switch. */
#ifndef HYDNS_SWITCH_H
#define HYDNS_SWITCH_H

#include "hydns/common.h"

/* Not 0: it is on. The program reads both at once. */
struct hydns_switch {
	__u32 paused;        /* the kill switch */
	__u32 capturing;     /* somebody captures (hydns-kern/capture); whoever does writes it, and again at short intervals */
} __attribute__((aligned(8)));

HYDNS_STATIC_ASSERT(sizeof(struct hydns_switch) == sizeof(__u64), "one load reads all switches");

#endif
