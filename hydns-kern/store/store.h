/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule store's writer: places rules in slots, publishes them by one store in the index, removes
 * them, and reuses a slot only after a grace period. One writer per store, one thread; readers are the
 * XDP program and any mapping. Works on plain memory too, so the unit tests need no BPF.
 *
 * A handle names a slot (hydns/rule.h); 0 is none.
 */
#ifndef HYDNS_KERN_STORE_STORE_H
#define HYDNS_KERN_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include "hydns/resolver.h"
#include "hydns/rule.h"

struct hydns_store;

struct hydns_store_memory {            /* borrowed; must outlive the store */
	const struct hydns_geometry *geometry;
	__u8 *slots;                   /* geometry->spans of them, in whole chunks */
	struct hydns_bucket *index;
	const struct hydns_line *hits;
	struct hydns_line *claims;
	__u32 *empty;                  /* of hydns_meta's geometry, kept up to date; NULL: nobody reads it */
	/* Not the store's, but kept with it over a restart: hits accounted for, by ordinal, and what they add up to. */
	__u32 *seen;
	struct hydns_tallies *tallies;
};

/* What a rule is made of. Pointers are borrowed for the call. */
struct hydns_rule_parts {
	struct hydns_rule head;        /* lengths and counts must fit the arrays below; answer_sum is
					* computed by publish */
	const __u8 *name;              /* head.name_len octets, lower case */
	const __u8 *answer;            /* head.answer_len octets */
	const __u16 *ttl;              /* head.ttl_count offsets into the answer, ascending */
	struct hydns_rotation rotation[HYDNS_ROTATIONS_MAX]; /* head.rotation_count of them */
	__u64 key;                     /* hydns_store_key() of these; 0: computed when needed */
	__u16 owner[HYDNS_RULE_PLACES_MAX]; /* head.place_count of them: places below HYDNS_PLACES */
	const __u8 *left_out;          /* with HYDNS_RULE_LEFT_OUT: the names that the answer left out ... */
	__u16 left_out_len;            /* ... and their octets, with their number's; else 0 */
};

/* Takes over what the memory holds: rules that the index reaches stay, all other slots are free after
 * a grace period. NULL without memory. */
struct hydns_store *hydns_store_open(const struct hydns_store_memory *m);
void hydns_store_close(struct hydns_store *s);

/*
 * Publishes a rule; one with the same key is replaced atomically (a reader sees the old or the new).
 * Returns 0 and *handle, -ENOSPC (no slot of a fitting size free, or no ordinal: evict, or wait for the grace
 * period), -E2BIG (no size fits), -ENOBUFS (both buckets full and no entry could be moved), -EINVAL
 * (name, lengths, counts or offsets are not those of a rule).
 * *replaced is the handle of the former rule or 0.
 */
int hydns_store_publish(struct hydns_store *s, const struct hydns_rule_parts *p, __u32 *handle,
			__u32 *replaced);
/* The key's hash. */
__u64 hydns_store_key(const struct hydns_store *s, const struct hydns_rule_parts *p);
/* Asks the processor for what find and publish will look at first. */
void hydns_store_prefetch(const struct hydns_store *s, __u64 key);
/* Removes a rule from the index; its slot goes to limbo until the grace period ends. */
void hydns_store_remove(struct hydns_store *s, __u32 handle);

/* Changes when a live rule lets queries through for refresh: one aligned store. This, the next, and where
 * its hits are counted are all that changes in a published slot. */
void hydns_store_set_refresh(struct hydns_store *s, __u32 handle, __u32 refresh_ms);

/* Gives the TTL at this offset of a live rule's answer another value. False: more than one octet of it would change, which
 * a reader might see half done, and nothing was changed. (No sum counts TTLs.) */
bool hydns_store_set_ttl(struct hydns_store *s, __u32 handle, __u16 at, __u32 ttl);

/* 0 when there is none. */
__u32 hydns_store_find(const struct hydns_store *s, const __u8 *name, __u8 name_len, __u16 qtype,
		       __u8 variant, __u8 resolver);
__u32 hydns_store_find_parts(const struct hydns_store *s, const struct hydns_rule_parts *p);
const struct hydns_rule *hydns_store_rule(const struct hydns_store *s, __u32 handle); /* NULL: not live */
/* Live rules one after the other, start with 0; returns 0 at the end. Removing the current one is fine. */
__u32 hydns_store_next(const struct hydns_store *s, __u32 handle);
__u32 hydns_store_count(const struct hydns_store *s);
/* Whether so few octets of slots are left (one of so many) that the next rules may find none of their size. */
#define HYDNS_STORE_SPARE 16
bool hydns_store_crowded(const struct hydns_store *s);
/* Octets of the writer's own tables. */
size_t hydns_store_bytes(const struct hydns_store *s);
/* 0..hydns_store_ordinals()-1, a dense number for per-rule tables of the caller; the rule's own from its publication
 * until the grace period after its removal. */
__u32 hydns_store_ordinal(const struct hydns_store *s, __u32 handle);
__u32 hydns_store_ordinals(const struct hydns_store *s);
__u32 hydns_store_handle(const struct hydns_store *s, __u32 ordinal); /* 0: nobody's */
/* Octets of the slot of a rule that is live, or was until the last grace period. */
__u32 hydns_store_slot_size(const struct hydns_store *s, __u32 handle);

/* Hits since this rule was published, modulo 2^32 (slot's and rows' counts). */
__u32 hydns_store_hits(const struct hydns_store *s, __u32 handle);
/* The same counts since an unknown beginning, also while the ordinal's rule waits for its grace period: their difference
 * between two calls is what came meanwhile, as long as the ordinal is the same rule's. */
__u32 hydns_store_hits_raw(const struct hydns_store *s, __u32 ordinal);
/* Asks the processor for the counts of whoever has this ordinal, if anybody. */
void hydns_store_prefetch_hits(const struct hydns_store *s, __u32 ordinal);
/* The next HYDNS_HITS_IN_SLOT hits of a live rule are counted in its slot: for rules with few since the last time. */
void hydns_store_count_in_slot(struct hydns_store *s, __u32 handle);

/*
 * Grace periods. Readers are XDP programs, that is RCU read-side sections: begin() notes what is in
 * limbo now and returns a ticket; after membarrier(MEMBARRIER_CMD_GLOBAL) (which waits for RCU; the
 * caller may run it on another thread) end(ticket) frees those slots.
 */
__u64 hydns_store_grace_begin(struct hydns_store *s);
void hydns_store_grace_end(struct hydns_store *s, __u64 ticket);
bool hydns_store_grace_needed(const struct hydns_store *s);

/* -- content of a rule ------------------------------------------------------------------------------ */
/* RFC 1071 sum of an answer with its TTLs as zero, as struct hydns_rule.answer_sum. */
__u16 hydns_answer_sum(const __u8 *answer, __u16 len, const __u16 *ttl, unsigned ttl_count);
const __u8 *hydns_rule_name(const struct hydns_rule *r);
const __u8 *hydns_rule_answer(const struct hydns_rule *r);
/* Of a valid rule, number i below rotation_count. */
struct hydns_rotation hydns_rule_rotation(const struct hydns_rule *r, unsigned i);
/* Of a valid rule, place of owner name number i below place_count. */
__u16 hydns_rule_place(const struct hydns_rule *r, unsigned i);
/* Octets of what follows the TTLs' offsets, for HYDNS_RULE_SPACE. */
static inline __u32 hydns_parts_rest(const struct hydns_rule_parts *p)
{
	return p->head.rotation_count * HYDNS_ROTATION_LEN + p->head.place_count * sizeof(p->owner[0]) + p->left_out_len;
}
/* The block of names that the answer left out, of a valid rule; NULL: none. */
const __u8 *hydns_rule_left_out(const struct hydns_rule *r);
/* Octets of such a block that begins here and must end within room; 0: it is none. */
size_t hydns_left_out_length(const __u8 *block, size_t room);

#endif
