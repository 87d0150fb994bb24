/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage 5: looks up the question's rule. The index gives candidates by fingerprint, and the program compares the whole key
 * with the rule's: a collision of fingerprints costs time, but never gives a wrong answer.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_LOOKUP_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_LOOKUP_BPF_H

#include "hydns-kern/program/dns/message.bpf.h"
#include "hydns/hash.h"

/* The octets of a rule, as an argument of functions that the verifier checks once. */
struct hydns_slot_octets {
	__u8 octet[HYDNS_SLOT_MOST];
};

/* Mask of the octets of a word that belong to the name; left: octets of the name from this word on, 1 or more. */
static __always_inline __u64 hydns_name_mask(__u32 left)
{
	return left >= 8 ? ~0ULL : ~0ULL >> (64 - 8 * left);
}

/* One pass over the name: lower case into q->name, hash of the key, sum of the octets as received. */
static __always_inline int hydns_key(struct hydns_question *q)
{
	const __u64 seed[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };
	const __u64 *word = (void *)(q->message + HYDNS_DNS_HEADER);
	__u32 len = q->name_len;
	struct hydns_sip sip;
	__u64 sum = 0, capitals = 0;

	hydns_sip_begin(&sip, seed);
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		__u64 w, lower;

		if (i * 8 >= len)
			break;
		w = word[i] & hydns_name_mask(len - i * 8);
		lower = hydns_lower8(w);
		sum += (w >> 32) + (__u32)w;
		capitals |= w ^ lower;
		q->name[i] = lower;
		hydns_sip_word(&sip, lower);
	}
	if (hydns_monitor)
		q->name_state = sip.v0 ^ sip.v1 ^ sip.v2 ^ sip.v3;
	hydns_sip_word(&sip, hydns_key_tail(len, q->qtype, q->variant, q->resolver));
	q->hash = hydns_sip_end(&sip);
	q->name_sum = sum;
	q->capitals = capitals != 0;
	return 0;
}

/*
 * The same in a function that the verifier checks once. Inline in hydns_logged, which has more states when it comes here, hash and
 * look-up cost it 940,000 instructions on Linux 6.1 instead of 175,000.
 */
__noinline int hydns_key_apart(struct hydns_query *q)
{
	return q ? hydns_key(&q->question) : 0;
}

/* The slot of a handle; the verifier allows reads of HYDNS_SLOT_MOST octets from there. */
static __always_inline const struct hydns_rule *hydns_slot(__u32 handle)
{
	__u32 unit = handle - 1, i = unit / HYDNS_CHUNK_UNITS;
	__u64 at = (__u64)(unit % HYDNS_CHUNK_UNITS) * HYDNS_UNIT;
	const void *chunk = bpf_map_lookup_elem(&hydns_slots, &i);

	if (!chunk)
		return NULL;
	HYDNS_OPAQUE(at);
	if (at > HYDNS_CHUNK - HYDNS_SLOT_MOST)
		return NULL;
	return chunk + at;
}

/* What a rule is found by. */
struct hydns_key {
	const __u64 *name;   /* lower case, zero-padded */
	__u64 hash;
	__u32 len;           /* octets of the name */
	__u32 resolver;
	__u16 qtype;         /* network order */
	__u8 variant;
};

/* Whether the rule has this key. */
static __always_inline bool hydns_rule_matches(const struct hydns_key *key, const struct hydns_rule *rule)
{
	const __u64 *word = (const void *)rule->data;
	__u32 len = key->len;

	if (rule->name_len != len || rule->qtype != key->qtype || rule->variant != key->variant || rule->resolver != key->resolver)
		return false;
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++, len -= 8) {
		__u64 differs = word[i] ^ key->name[i];

		if (len <= 8)
			return !(differs & hydns_name_mask(len));
		if (differs)
			return false;
	}
	return false;
}

/*
 * The handle of a bucket's entry with this fingerprint, or 0. Branchless, because a branch on which of the eight entries it is
 * would be mispredicted. If two entries of a bucket have the same fingerprint, the result is neither's handle and queries for
 * both go to the resolver; with a million rules there is such a pair in one of a thousand stores.
 */
static __always_inline __u32 hydns_bucket_handle(const struct hydns_bucket *b, __u32 fingerprint)
{
	__u64 found = 0;

#pragma unroll
	for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++) {
		__u64 entry = *(const volatile __u64 *)&b->entry[i];
		__u64 differs = (entry >> 32) ^ fingerprint; /* only 0 minus 1 has bit 63 set */

		found |= entry & (__u64)((__s64)(differs - 1) >> 63);
	}
	return (__u32)found;
}

/* 0 and *found, the rule of this key, with its handle; or why there is none. */
static __always_inline enum hydns_reason hydns_find_key(const struct hydns_key *key, const struct hydns_rule **found, __u32 *handle)
{
	__u32 mask = hydns_geometry.buckets - 1, fingerprint = hydns_fingerprint(key->hash);
	__u32 bucket = hydns_bucket_first(key->hash, mask);

	for (int choice = 0; choice < 2; choice++) {
		const struct hydns_bucket *b = bpf_map_lookup_elem(&hydns_index, &bucket);
		const struct hydns_rule *rule;

		if (!b)
			return HYDNS_R_NO_ENTRY;
		*handle = hydns_bucket_handle(b, fingerprint);
		rule = *handle ? hydns_slot(*handle) : NULL;
		if (rule && hydns_rule_matches(key, rule)) {
			*found = rule;
			return 0;
		}
		bucket = hydns_bucket_other(bucket, fingerprint, mask);
	}
	return HYDNS_R_MISS;
}

/* ... of the query. */
static __always_inline enum hydns_reason hydns_find(const struct hydns_question *q, const struct hydns_rule **found)
{
	const struct hydns_key key = {
		.name = q->name, .hash = q->hash, .len = q->name_len, .resolver = q->resolver, .qtype = q->qtype, .variant = q->variant,
	};

	__u32 handle;

	return hydns_find_key(&key, found, &handle);
}

/* The rule's word of 32 bits in the row of lines that begins with line number first. NULL: the geometry is wrong. */
static __always_inline __u32 *hydns_word(void *map, __u32 first, const struct hydns_rule *rule)
{
	__u32 ordinal = rule->ordinal, i = first + ordinal / HYDNS_LINE_WORDS;
	struct hydns_line *line = bpf_map_lookup_elem(map, &i);

	return line ? &line->word[ordinal % HYDNS_LINE_WORDS] : NULL;
}

/* True for one query per HYDNS_REFRESH_REARM_MS: it passes, and makes the resolver refresh the answer. dry: whether this
 * query would be that one. */
static __always_inline bool hydns_claim_refresh(const struct hydns_rule *rule, __u64 now, bool dry)
{
	__u32 *claim = hydns_word(&hydns_claims, 0, rule);
	__u32 ms = now / 1000000, last;

	if (!claim)
		return false;
	last = *(volatile __u32 *)claim;
	if (ms - last < HYDNS_REFRESH_REARM_MS)
		return false;
	return dry || __sync_val_compare_and_swap(claim, last, ms) == last;
}

/* The word in which this CPU counts answers from the rule. NULL: the geometry is wrong. */
static __always_inline __u32 *hydns_hits_here(const struct hydns_cpu *cpu, const struct hydns_rule *rule)
{
	return hydns_word(&hydns_hits, cpu->hits.first, rule);
}

/* Whether the next hit is counted in the slot. The numbers wrap around. */
static __always_inline bool hydns_hits_in_slot(const struct hydns_rule *rule)
{
	__u32 hits = *(const volatile __u32 *)&rule->hits, end = *(const volatile __u16 *)&rule->hits_end;

	return (__s16)(end - hits) > 0;
}

/* The reply's rotation is the number of answers counted so far in the word that will count this one. Reading it here also
 * fetches its cache line before it is needed. here: this CPU's word. */
static __always_inline void hydns_choose_rotation(const struct hydns_rule *rule, const __u32 *here, struct hydns_reply *reply)
{
	if (hydns_hits_in_slot(rule))
		reply->rotation = *(const volatile __u32 *)&rule->hits;
	else
		reply->rotation = *(const volatile __u32 *)here;
}

static __always_inline void hydns_count_hit(const struct hydns_cpu *cpu, const struct hydns_rule *rule, __u32 *here)
{
	if (hydns_hits_in_slot(rule))
		__sync_fetch_and_add((__u32 *)&rule->hits, 1);
	else if (cpu->hits.shared)
		__sync_fetch_and_add(here, 1);
	else
		++*here;
}

#endif
