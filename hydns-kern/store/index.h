/* SPDX-License-Identifier: GPL-2.0-only */
/* Internal to the store: the table of buckets, seen as places that hold entries. */
#ifndef HYDNS_KERN_STORE_INDEX_H
#define HYDNS_KERN_STORE_INDEX_H

#include "hydns/rule.h"

struct hydns_index {
	struct hydns_bucket *bucket;
	__u32 mask;
};

static inline __u64 hydns_entry_make(__u32 fingerprint, __u32 handle)
{
	return (__u64)fingerprint << 32 | handle;
}

static inline __u32 hydns_entry_handle(__u64 entry)
{
	return (__u32)entry;
}

/* The one store that publishes: readers that see the entry see the whole slot. */
static inline void hydns_index_set(__u64 *place, __u64 entry)
{
	__atomic_store_n(place, entry, __ATOMIC_RELEASE);
}

/* The place that holds this very entry in one of the hash's two buckets, or NULL. */
__u64 *hydns_index_place_of(const struct hydns_index *x, __u64 hash, __u32 handle);

/*
 * An empty place in one of the hash's two buckets, made by moving other entries if need be; NULL when
 * none could be made. A moved entry stands in both places before it leaves the old one; a reader that
 * looked at the new place before and at the old place after finds neither, and passes its packet to
 * the resolver, as for any unknown name.
 */
__u64 *hydns_index_room(const struct hydns_index *x, __u64 hash);

#endif
