/* SPDX-License-Identifier: GPL-2.0-only */
/* Internal to the store: the hash table of buckets. */
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

/* The store instruction that publishes: a reader that sees the entry sees the whole slot. */
static inline void hydns_index_set(__u64 *at, __u64 entry)
{
	__atomic_store_n(at, entry, __ATOMIC_RELEASE);
}

/* The entry with this handle in one of the hash's two buckets, or NULL. */
__u64 *hydns_index_find(const struct hydns_index *x, __u64 hash, __u32 handle);

/*
 * An empty entry in one of the hash's two buckets; moves other entries if both are full. NULL: no chain of moves was found.
 * A moved entry is written to its new bucket before it is removed from the old one. A reader that looked at the new bucket
 * before the move and at the old one after it finds neither: a miss.
 */
__u64 *hydns_index_room(const struct hydns_index *x, __u64 hash);

#endif
