/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Heavy hitters: which keys come most often, in fixed memory. Space-Saving (A. Metwally, D. Agrawal, A. El Abbadi, "Efficient
 * computation of frequent and top-k elements in data streams", ICDT 2005), one for BPF and userspace, in sets of a few entries
 * as a cache has them, so that an update looks at one set and not for the least entry of all. offload-policy/heavy.c merges the
 * CPUs and states the error.
 *
 * A key that has an entry is counted there. Another one takes over the entry of its set with the least count, which becomes its
 * error: so often at most may it have come before. A key's hash, keyed with a secret, chooses the set: nobody who chooses keys
 * can choose which of them meet.
 */
#ifndef HYDNS_HEAVY_H
#define HYDNS_HEAVY_H

#include <linux/types.h>
#include "hydns/distinct.h"

#define HYDNS_HEAVY_SETS    256
#define HYDNS_HEAVY_ENTRIES 8          /* of a set: two cache lines */
#define HYDNS_HEAVY_NEW     HYDNS_HEAVY_ENTRIES

struct hydns_heavy_entry {
	__u64 key;
	__u32 count;                   /* 0: free */
	__u32 error;                   /* the key came at least count - error times, and count times at most */
};
struct hydns_heavy_set {
	struct hydns_heavy_entry entry[HYDNS_HEAVY_ENTRIES];
};

HYDNS_INLINE __u32 hydns_heavy_set_of(__u64 key, const __u64 secret[2])
{
	return hydns_distinct_mix((key ^ secret[0]) + secret[1]) % HYDNS_HEAVY_SETS;
}

/* Counts one sighting. Returns the entry's number, and HYDNS_HEAVY_NEW more if the key has just taken it over. */
HYDNS_INLINE __u32 hydns_heavy_add(struct hydns_heavy_set *s, __u64 key)
{
	struct hydns_heavy_entry *e;
	__u32 least = 0;

	for (__u32 i = 0; i < HYDNS_HEAVY_ENTRIES; i++) {
		e = &s->entry[i];
		if (e->key == key && e->count) {
			e->count++;
			return i;
		}
		if (e->count < s->entry[least & (HYDNS_HEAVY_ENTRIES - 1)].count)
			least = i;
	}
	least &= HYDNS_HEAVY_ENTRIES - 1;      /* for the verifier */
	e = &s->entry[least];
	e->error = e->count++;
	e->key = key;
	return least + HYDNS_HEAVY_NEW;
}

#endif
