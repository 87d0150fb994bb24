/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The index: two-choice buckets with partial-key cuckoo hashing (Fan, Andersen and Kaminsky, "MemC3", NSDI 2013). When both
 * buckets of a key are full, a breadth-first search finds the shortest chain of moves that ends in a bucket with room. The
 * moves are made from the chain's end, so that each goes to an empty entry.
 */
#include <stddef.h>
#include "hydns/hash.h"
#include "hydns-kern/store/index.h"

/* Buckets that a search looks at. With 8 entries a bucket that is more than two moves reach, which
 * suffices up to about 95 % load. A search takes tens of microseconds at worst. */
#define SEARCH_BUCKETS 160

struct step {
	__u32 bucket;
	__u16 from;          /* the step that an entry moves here from */
	__u8  entry;         /* which entry of that step's bucket */
};

static int entry_with(const struct hydns_bucket *b, __u64 entry)
{
	for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++)
		if (b->entry[i] == entry)
			return i;
	return -1;
}

__u64 *hydns_index_find(const struct hydns_index *x, __u64 hash, __u32 handle)
{
	__u32 fingerprint = hydns_fingerprint(hash);
	__u64 entry = hydns_entry_make(fingerprint, handle);
	__u32 b = hydns_bucket_first(hash, x->mask);

	for (int choice = 0; choice < 2; choice++) {
		int i = entry_with(&x->bucket[b], entry);

		if (i >= 0)
			return &x->bucket[b].entry[i];
		b = hydns_bucket_other(b, fingerprint, x->mask);
	}
	return NULL;
}

static int seen(const struct step *steps, unsigned n, __u32 bucket)
{
	while (n--)
		if (steps[n].bucket == bucket)
			return 1;
	return 0;
}

/* Makes the moves of the chain that leads to steps[last], whose bucket has an empty entry, from the end. Returns
 * the entry that becomes empty in the first bucket of the chain. */
static __u64 *make_moves(const struct hydns_index *x, const struct step *steps, unsigned last, int empty)
{
	__u64 *to = &x->bucket[steps[last].bucket].entry[empty];

	while (last >= 2) {
		const struct step *s = &steps[last];
		__u64 *from = &x->bucket[steps[s->from].bucket].entry[s->entry];

		hydns_index_set(to, *from);
		hydns_index_set(from, 0);
		to = from;
		last = s->from;
	}
	return to;
}

/* Appends the buckets that entries of steps[at] could move to. Each bucket is added once, so a chain has no loop. */
static unsigned expand(const struct hydns_index *x, struct step *steps, unsigned n, unsigned at)
{
	__u32 bucket = steps[at].bucket;

	for (unsigned i = 0; i < HYDNS_BUCKET_ENTRIES && n < SEARCH_BUCKETS; i++) {
		__u32 fingerprint = (__u32)(x->bucket[bucket].entry[i] >> 32);
		__u32 other = hydns_bucket_other(bucket, fingerprint, x->mask);

		if (!seen(steps, n, other))
			steps[n++] = (struct step){ other, (__u16)at, (__u8)i };
	}
	return n;
}

__u64 *hydns_index_room(const struct hydns_index *x, __u64 hash)
{
	struct step steps[SEARCH_BUCKETS];
	unsigned n = 2;

	/* Every chain begins with one of the key's two buckets. */
	steps[0].bucket = hydns_bucket_first(hash, x->mask);
	steps[1].bucket = hydns_bucket_other(steps[0].bucket, hydns_fingerprint(hash), x->mask);
	for (unsigned at = 0; at < n; at++) {
		int empty = entry_with(&x->bucket[steps[at].bucket], 0);

		if (empty >= 0)
			return make_moves(x, steps, at, empty);
		n = expand(x, steps, n, at);
	}
	return NULL;
}
