/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The list of detours.def as numbers, and what a resolver thread counts of its packet rings. */
#ifndef HYDNS_DETOURS_H
#define HYDNS_DETOURS_H

#include <linux/types.h>

enum hydns_detour {
#define HYDNS_DETOUR(name, text) HYDNS_DETOUR_##name,
#include "hydns/detours.def"
#undef HYDNS_DETOUR
	HYDNS_DETOURS
};

/* Since the thread's plugin began. */
struct hydns_queue_counts {
	__u64 queries;           /* of clients, that came by a ring */
	__u64 replies;           /* to clients, that left by a ring */
	__u64 upstream;          /* queries to upstream that left by a ring */
	__u64 answers;           /* to these, that came by a ring */
	__u64 strays;            /* to these, that came by a socket */
	__u64 unwanted;          /* datagrams by a ring that nobody waited for */
	__u64 bad;               /* frames that were no datagram */
	__u64 wakeups;           /* calls of the kernel to send what is in a ring */
	__u64 detour[HYDNS_DETOURS];
};

#endif
