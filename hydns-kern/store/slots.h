/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internal to the store: which octets of the slot array are whose. After Bonwick, "The slab allocator: an
 * object-caching kernel memory allocator", USENIX 1994: a span holds slots of one size as long as one of them is in
 * use, and any size afterwards, so that the store fits whatever mix of sizes comes; but the last spans are kept for large
 * slots, or a store filled with small ones could never hold a large one. Besides 16 octets a span nothing is
 * kept: the next free slot is written in a free slot.
 */
#ifndef HYDNS_KERN_STORE_SLOTS_H
#define HYDNS_KERN_STORE_SLOTS_H

#include <stdbool.h>
#include "hydns/rule.h"

/* Sizes in steps of at most a fifth, below 256 octets of one unit: most rules are there. */
#define HYDNS_SIZE_CLASSES 32
/* Octets of a slot of class 0..HYDNS_SIZE_CLASSES - 1. */
__u32 hydns_class_size(__u32 size_class);
/* The least class that holds space octets; HYDNS_SIZE_CLASSES: none does. */
__u32 hydns_class_for(__u32 space);

struct hydns_span {
	__u32 next, prev;      /* in its list */
	__u16 used;            /* slots taken */
	__u16 ever_used;         /* slots 0 to touched - 1 have been taken once */
	__u16 free;            /* first of those given back, plus one; 0: none */
	__u8  size_class;      /* HYDNS_SIZE_CLASSES: empty */
	__u8  stale;           /* its free slots wait for hydns_slots_free_unknown() */
};

struct hydns_slots {
	__u8 *memory;          /* borrowed */
	struct hydns_span *span;
	__u32 spans;
	__u32 used;            /* units of slots taken */
	__u32 stale;           /* spans that are */
	__u32 empty;           /* list of spans ... */
	__u32 empties;         /* ... and how many they are */
	__u32 partial[HYDNS_SIZE_CLASSES]; /* lists of spans with a slot to give */
};

/* All is empty, or stale: until hydns_slots_free_unknown() nothing is taken that has ever been written to, and nothing may be
 * given back. False: no memory. */
bool hydns_slots_open(struct hydns_slots *s, __u8 *memory, __u32 spans);
void hydns_slots_close(struct hydns_slots *s);
static inline bool hydns_slots_stale(const struct hydns_slots *s)
{
	return s->stale != 0;
}
/* The stale slots may be taken from now on, but for those that in_use() says are. */
void hydns_slots_free_unknown(struct hydns_slots *s, bool (*in_use)(__u32 handle, void *arg), void *arg);
/* Takes a slot that something already stands in; right after opening. False: there can be none of this class here. */
bool hydns_slots_adopt(struct hydns_slots *s, __u32 handle, __u32 size_class);

/* A slot of this class, or of the next larger one that has any; 0: there is none. *size_class is its own. */
__u32 hydns_slots_take(struct hydns_slots *s, __u32 *size_class);
void hydns_slots_give(struct hydns_slots *s, __u32 handle);

/* Whether a slot can begin there. */
bool hydns_slots_has(const struct hydns_slots *s, __u32 handle);
static inline __u8 *hydns_slots_at(const struct hydns_slots *s, __u32 handle)
{
	return s->memory + (__u64)(handle - 1) * HYDNS_UNIT;
}

#endif
