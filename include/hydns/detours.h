/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The list of detours.def as numbers, and what a resolver thread counts of its packet rings. */
#ifndef HYDNS_DETOURS_H
#define HYDNS_DETOURS_H

#include <linux/types.h>
#include <string.h>
#include "hydns/waits.h"

enum hydns_detour {
#define HYDNS_DETOUR(name, text) HYDNS_DETOUR_##name,
#include "hydns/detours.def"
#undef HYDNS_DETOUR
	HYDNS_DETOURS
};

/* Of a thread, since its plugin began; in struct hydns_ring. */
struct hydns_queue_counts {
	__u64 received;          /* datagrams that came by a packet ring, */
	__u64 answers;           /* of these, answers to the resolver's own queries */
	__u64 sent;              /* datagrams that left by a packet ring, */
	__u64 upstream;          /* of these, queries to upstream */
	__u64 strays;            /* answers to those that came by a socket */
	__u64 bad;               /* frames that were no datagram */
	__u64 wakeups;           /* calls of the kernel to send what is in a ring */
	__u64 took[HYDNS_WAITS]; /* replies sent by a ring to queries that came by one, by how long the resolver took, */
	__u64 took_us;           /* and their sum */
	__u64 detour[HYDNS_DETOURS];
};

/* "NO_WAY"; "" for a number that is none. */
static inline const char *hydns_detour_name(unsigned detour)
{
	static const char *const name[] = {
#define HYDNS_DETOUR(name, text) #name,
#include "hydns/detours.def"
#undef HYDNS_DETOUR
	};

	return detour < HYDNS_DETOURS ? name[detour] : "";
}

/* For the operator. */
static inline const char *hydns_detour_text(const char *name)
{
	static const struct {
		const char *name, *text;
	} detour[] = {
#define HYDNS_DETOUR(name, text) { #name, text },
#include "hydns/detours.def"
#undef HYDNS_DETOUR
	};

	for (unsigned i = 0; i < HYDNS_DETOURS; i++)
		if (strcmp(detour[i].name, name) == 0)
			return detour[i].text;
	return "";
}

#endif
