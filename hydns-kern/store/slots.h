/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internal to the store, but for the sizes: allocates slots. After Bonwick, "The slab allocator: an object-caching kernel memory
 * allocator", USENIX 1994. A span holds slots of one size while one of them is in use. Once empty it can hold any size, so that the store
 * follows the mix of sizes. The last empty spans are reserved for large slots: a store full of small ones could
 * not hold a large one otherwise. The bookkeeping is 16 octets a span; free slots are linked through their own memory.
 */
#ifndef HYDNS_KERN_STORE_SLOTS_H
#define HYDNS_KERN_STORE_SLOTS_H

#include <stdbool.h>
#include "hydns/rule.h"

/* Sizes grow by at most a fifth; below 256 octets, where most rules are, by one unit. */
#define HYDNS_SIZE_CLASSES 32
/* Octets of a slot of class 0..HYDNS_SIZE_CLASSES - 1. */
__u32 hydns_class_size(__u32 size_class);
/* The smallest class that holds space octets; HYDNS_SIZE_CLASSES: none does. */
__u32 hydns_class_for(__u32 space);

struct hydns_span {
	__u32 next, prev;      /* in the list of empty spans, or in that of its class */
	__u16 used;            /* slots taken */
	__u16 ever_used;       /* slots 0 to ever_used - 1 have been taken once */
	__u16 free;            /* first slot of the list of those given back, plus one; 0: none */
	__u8  size_class;      /* HYDNS_SIZE_CLASSES: empty */
	__u8  unknown;         /* which slots are free is unknown until hydns_slots_free_unknown() */
};

struct hydns_slots {
	__u8 *memory;          /* borrowed */
	struct hydns_span *span;
	__u32 spans;
	__u32 used;            /* units of slots taken */
	__u32 unknown;         /* how many spans are */
	__u32 empty;           /* list of empty spans ... */
	__u32 empties;         /* ... and its length */
	__u32 partial[HYDNS_SIZE_CLASSES]; /* by class: list of spans with a free slot */
};

/* A span is empty if nothing was ever written to it, else unknown. Until hydns_slots_free_unknown() no slot is taken from an
 * unknown span, and none may be given back. False: no memory. */
bool hydns_slots_open(struct hydns_slots *s, __u8 *memory, __u32 spans);
void hydns_slots_close(struct hydns_slots *s);
static inline bool hydns_slots_has_unknown(const struct hydns_slots *s)
{
	return s->unknown != 0;
}
/* Frees every slot of the unknown spans for which in_use() is false. */
void hydns_slots_free_unknown(struct hydns_slots *s, bool (*in_use)(__u32 handle, void *arg), void *arg);
/* Marks a slot as taken whose content is to stay; right after opening. False: no slot of this class begins there. */
bool hydns_slots_adopt(struct hydns_slots *s, __u32 handle, __u32 size_class);

/* Takes a slot of this class, or of the next larger one that has any; 0: there is none. Writes the slot's class. */
__u32 hydns_slots_take(struct hydns_slots *s, __u32 *size_class);
void hydns_slots_give(struct hydns_slots *s, __u32 handle);

/* Whether a slot can begin there. */
bool hydns_slots_has(const struct hydns_slots *s, __u32 handle);
static inline __u8 *hydns_slots_at(const struct hydns_slots *s, __u32 handle)
{
	return s->memory + (__u64)(handle - 1) * HYDNS_UNIT;
}

#endif
