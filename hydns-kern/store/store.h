/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule store's writer: writes rules into slots, publishes them by one store instruction in the index, removes
 * them, and reuses a slot only after a grace period. A store has one writer, one thread; its readers are the
 * XDP program and whoever maps the arrays. It works on plain memory, so unit tests need no BPF.
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
	__u8 *slots;                   /* geometry->spans spans, in whole chunks */
	struct hydns_bucket *index;
	const struct hydns_line *hits;
	struct hydns_line *claims;
	__u32 *empty;                  /* set to whether the store has no rule; NULL: nobody reads it */
	/* Not used by the store, but they outlive hydnsd with it: hits accounted for, by ordinal, and their tallies. */
	__u32 *seen;
	struct hydns_tallies *tallies;
};

/* What a rule is made of. Pointers are borrowed for the call. */
struct hydns_rule_parts {
	struct hydns_rule head;        /* lengths and counts must fit the arrays below; publish computes answer_sum */
	const __u8 *name;              /* head.name_len octets, lower case */
	const __u8 *answer;            /* head.answer_len octets */
	const __u16 *ttl;              /* head.ttl_count offsets into the answer, ascending */
	struct hydns_rotation rotation[HYDNS_ROTATIONS_MAX]; /* head.rotation_count of them */
	__u64 key;                     /* hydns_store_key() of these; 0: computed when needed */
	__u16 place[HYDNS_RULE_PLACES_MAX]; /* head.place_count of them: places below HYDNS_PLACES */
	__u64 account;                 /* with HYDNS_RULE_COUNTED, else 0 */
	const __u16 *pointer;          /* with HYDNS_RULE_TEMPLATE: offsets into the answer, ascending */
	__u16 pointer_count;           /* of them, else 0 */
	const struct hydns_gap *gap;   /* of a template, in whose answer zeros stand there; NULL: it has none */
	const __u8 *errors;            /* with HYDNS_RULE_ERRORS: the options of struct hydns_errors */
	__u16 errors_len;              /* octets of them, else 0 */
	const __u8 *left_out;          /* with HYDNS_RULE_LEFT_OUT: block of left-out names, which begins with their number */
	__u16 left_out_len;            /* octets of that block, else 0 */
};

/* Takes over what the memory holds: rules that the index reaches stay, all other slots become free after
 * a grace period. NULL: no memory. */
struct hydns_store *hydns_store_open(const struct hydns_store_memory *m);
void hydns_store_close(struct hydns_store *s);

/*
 * Publishes a rule. It replaces one with the same key atomically: a reader sees the old or the new one.
 * Returns 0, -ENOSPC (no free slot of a fitting size, or no ordinal: evict, or wait for the grace period), -E2BIG (larger than
 * any size), -ENOBUFS (both buckets are full and no entry could be moved), -EINVAL (name, lengths, counts or offsets are
 * not those of a rule). Sets *handle, and *replaced to the handle of the former rule or 0.
 */
int hydns_store_publish(struct hydns_store *s, const struct hydns_rule_parts *p, __u32 *handle,
			__u32 *replaced);
/* Hash of the key that these parts have. */
__u64 hydns_store_key(const struct hydns_store *s, const struct hydns_rule_parts *p);
/* Prefetches what find and publish read first. */
void hydns_store_prefetch(const struct hydns_store *s, __u64 key);
/* Removes a rule from the index; its slot is retired until the grace period ends. */
void hydns_store_remove(struct hydns_store *s, __u32 handle);

/* Sets from when on a live rule lets queries pass for refresh, by one aligned store. A published slot changes only here, in
 * hydns_store_set_ttl(), and in its hit counters. */
void hydns_store_set_refresh(struct hydns_store *s, __u32 handle, __u32 refresh_ms);

/* Changes the TTL at this offset of a live rule's answer. False: nothing was changed, because more than one octet would
 * change and a reader could see half of that. (answer_sum doesn't include TTLs.) */
bool hydns_store_set_ttl(struct hydns_store *s, __u32 handle, __u16 at, __u32 ttl);

/* Handle of the rule with this key; 0: there is none. */
__u32 hydns_store_find(const struct hydns_store *s, const __u8 *name, __u8 name_len, __u16 qtype,
		       __u8 variant, __u8 resolver);
__u32 hydns_store_find_parts(const struct hydns_store *s, const struct hydns_rule_parts *p);
const struct hydns_rule *hydns_store_rule(const struct hydns_store *s, __u32 handle); /* NULL: not live */
/* Iterates over the live rules: start with 0; returns 0 at the end. The caller may remove the current one. */
__u32 hydns_store_next(const struct hydns_store *s, __u32 handle);
__u32 hydns_store_count(const struct hydns_store *s);
/* Whether less than 1/HYDNS_STORE_SPARE of the slots' octets is free: the next rules may find no slot of their size. */
#define HYDNS_STORE_SPARE 16
bool hydns_store_nearly_full(const struct hydns_store *s);
/* Octets of the slots of live and retired rules. */
__u64 hydns_store_slot_bytes(const struct hydns_store *s);
/* Octets of the writer's own tables. */
size_t hydns_store_bytes(const struct hydns_store *s);
/* A rule's ordinal, below hydns_store_ordinals(), for the caller's tables. The rule has it from its publication
 * to the end of the grace period after its removal. */
__u32 hydns_store_ordinal(const struct hydns_store *s, __u32 handle);
__u32 hydns_store_ordinals(const struct hydns_store *s);
__u32 hydns_store_handle(const struct hydns_store *s, __u32 ordinal); /* 0: no rule has it */
/* Octets of the slot of a live or retired rule. */
__u32 hydns_store_slot_size(const struct hydns_store *s, __u32 handle);

/* Hits since this rule was published, modulo 2^32: the counts of its slot and of all rows. */
__u32 hydns_store_hits(const struct hydns_store *s, __u32 handle);
/* The same counts from an arbitrary start, also of a retired rule: the difference between two calls is the hits between them,
 * as long as the ordinal is the same rule's. */
__u32 hydns_store_hits_raw(const struct hydns_store *s, __u32 ordinal);
/* Prefetches the counts of the rule that has this ordinal, if any. */
void hydns_store_prefetch_hits(const struct hydns_store *s, __u32 ordinal);
/* Lets the program count a live rule's next HYDNS_HITS_IN_SLOT hits in its slot: for rules with few hits between two calls. */
void hydns_store_count_in_slot(struct hydns_store *s, __u32 handle);

/*
 * Grace periods. Readers are XDP programs, that is RCU read-side sections. begin() returns a ticket for the rules that
 * are retired now. The caller then waits, on any thread, for hydns_cpus_tour() or membarrier(MEMBARRIER_CMD_GLOBAL), and calls
 * end(ticket), which frees their slots.
 */
__u64 hydns_store_grace_begin(struct hydns_store *s);
void hydns_store_grace_end(struct hydns_store *s, __u64 ticket);
bool hydns_store_grace_needed(const struct hydns_store *s);

/* -- content of a rule ------------------------------------------------------------------------------ */
/* RFC 1071 sum of an answer with its TTLs taken as zero: struct hydns_rule.answer_sum. */
__u16 hydns_answer_sum(const __u8 *answer, __u16 len, const __u16 *ttl, unsigned ttl_count);
const __u8 *hydns_rule_name(const struct hydns_rule *r);
const __u8 *hydns_rule_answer(const struct hydns_rule *r);
/* Rotation i of a valid rule; i is below rotation_count. */
struct hydns_rotation hydns_rule_rotation(const struct hydns_rule *r, unsigned i);
/* Place of dependency i of a valid rule; i is below place_count. */
__u16 hydns_rule_place(const struct hydns_rule *r, unsigned i);
/* The count of struct hydns_pointers. */
static inline __u16 hydns_parts_pointers(const struct hydns_rule_parts *p)
{
	return p->gap ? (__u16)(p->pointer_count | HYDNS_POINTERS_GAP) : p->pointer_count;
}
/* Octets of what follows the TTL offsets, for HYDNS_RULE_SPACE. */
static inline __u32 hydns_parts_rest(const struct hydns_rule_parts *p)
{
	return p->head.rotation_count * HYDNS_ROTATION_LEN + p->head.place_count * sizeof(p->place[0]) +
	       HYDNS_ACCOUNT_LEN(p->head.flags) + (p->head.flags & HYDNS_RULE_TEMPLATE ? HYDNS_POINTERS_LEN(hydns_parts_pointers(p)) : 0) +
	       (p->errors_len ? HYDNS_ERRORS_HEAD + p->errors_len : 0) + p->left_out_len;
}
/* The account of a valid rule; 0: none. */
__u64 hydns_rule_account(const struct hydns_rule *r);
/* The pointers of a valid rule; NULL: it is no template. */
const struct hydns_pointers *hydns_rule_pointers(const struct hydns_rule *r);
/* The gap of a valid rule; NULL: it has none. */
const struct hydns_gap *hydns_rule_gap(const struct hydns_rule *r);
/* The extended errors of a valid rule; NULL: none. */
const struct hydns_errors *hydns_rule_errors(const struct hydns_rule *r);
/* Whether these octets are one or more EDNS options of extended errors, and no more than a rule may have. */
bool hydns_errors_valid(const __u8 *options, size_t len);
/* The block of left-out names of a valid rule; NULL: none. */
const __u8 *hydns_rule_left_out(const struct hydns_rule *r);
/* Length of the block that begins here; 0: it is not one, or does not end within room octets. */
size_t hydns_left_out_length(const __u8 *block, size_t room);

#endif
