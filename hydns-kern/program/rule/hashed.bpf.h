/* SPDX-License-Identifier: GPL-2.0-only */
/* Hashes of names that do not exist, as NSEC3 records have them (nsec3.h). Global functions: the verifier checks each once. */
#ifndef HYDNS_KERN_PROGRAM_RULE_HASHED_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_HASHED_BPF_H

#include "hydns-kern/program/rule/names.bpf.h"

#define HYDNS_HASHING_WORDS (HYDNS_NSEC3_BLOCKS * HYDNS_SHA1_BLOCK / 8)

/* Adds this block of the message to the hash. */
__noinline int hydns_hash_block(struct hydns_query *q, __u32 block)
{
	const __u32 *word;

	if (!q || block >= HYDNS_NSEC3_BLOCKS)
		return -1;
	word = (const void *)q->hashing.message + block * HYDNS_SHA1_BLOCK;
	for (int i = 0; i < 16; i++)
		q->hashing.sha.w[i] = bpf_ntohl(word[i]);
	hydns_sha1_block(&q->hashing.sha);
	return 0;
}

/* Stores a word at any octet of the message. */
static __always_inline void hydns_hash_store(struct hydns_query *q, __u32 at, __u64 word)
{
	__u64 to = at;

	_Static_assert(sizeof(q->hashing.message) >= HYDNS_SUFFIX_BOUND + 8, "room for a word at each octet");
	HYDNS_OPAQUE(to);
	to &= HYDNS_SUFFIX_BOUND;
	*(__u64 *)((void *)q->hashing.message + to) = word;
}

/* Puts the salt, and what ends a message, behind one of len octets, HYDNS_NAME_MAX at most, that has zeros behind it. Returns how many
 * blocks it has then. */
static __always_inline __u32 hydns_hash_end(struct hydns_query *q, __u32 len)
{
	const struct hydns_nsec3 *how = &q->hashing.how;
	const __u32 all = len + how->salt_len, blocks = HYDNS_SHA1_BLOCKS(all);

	hydns_hash_store(q, len, *(const __u64 *)how->salt);
	hydns_hash_store(q, len + 8, *(const __u64 *)(how->salt + 8) & hydns_name_mask(HYDNS_NSEC3_SALT_MOST - 8));
	hydns_hash_store(q, all, 0x80);
	hydns_hash_store(q, blocks * HYDNS_SHA1_BLOCK - 8, __builtin_bswap64((__u64)all * 8));
	return blocks;
}

/* The message is the hash. */
static __always_inline __u32 hydns_hash_again(struct hydns_query *q)
{
	__u32 *word = (void *)q->hashing.message;

	for (int i = 0; i < HYDNS_SHA1_BLOCK / 4; i++)
		word[i] = i < HYDNS_SHA1_WORDS ? bpf_htonl(q->hashing.sha.h[i]) : 0;
	return HYDNS_SHA1_OCTETS;
}

/* The message is the part of the question's name that begins with octet at. */
static __always_inline __u32 hydns_hash_first(struct hydns_query *q, __u32 at)
{
	const __u32 len = q->question.name_len - at;

	for (__u32 i = 0; i < HYDNS_HASHING_WORDS; i++)
		q->hashing.message[i] = 0;
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		if (i * 8 >= len)
			break;
		q->hashing.message[i] = hydns_suffix_word(&q->question, at, i, len);
	}
	return len;
}

/* The hash of that part of the name, by q->hashing.how. */
static __always_inline int hydns_hash(struct hydns_query *q, __u32 at)
{
	for (__u32 i = 0; i <= HYDNS_NSEC3_ITERATIONS_MOST; i++) {
		__u32 blocks;

		if (i > q->hashing.how.iterations)
			return 0;
		blocks = hydns_hash_end(q, i ? hydns_hash_again(q) : hydns_hash_first(q, at));
		hydns_sha1_begin(&q->hashing.sha);
		for (__u32 n = 0; n < HYDNS_NSEC3_BLOCKS; n++) {
			if (n >= blocks)
				break;
			if (hydns_hash_block(q, n))
				return -1;
		}
	}
	return q->hashing.how.iterations > HYDNS_NSEC3_ITERATIONS_MOST ? -1 : 0;
}

/* Writes the label that a hash is in the table to q->search.key: that of the part of the question's name that begins with octet at, as
 * the head's nsec3 of this number, from 1 on, says. 0 or -1. */
__noinline int hydns_hash_name(struct hydns_query *q, __u32 at, __u32 number)
{
	const struct hydns_names_head *head;
	__u64 which = (__u64)number - 1;
	const __u32 *h;
	__u32 zero = 0;
	void *map;

	HYDNS_OPAQUE(which);           /* or what is compared is a copy of what is used, of which Linux 6.1 then knows no bound */
	if (!q || at >= q->question.name_len || which >= HYDNS_NAMES_NSEC3)
		return -1;
	map = hydns_names_of(q);
	head = map ? bpf_map_lookup_elem(map, &zero) : NULL;
	if (!head)
		return -1;
	q->hashing.how = head->nsec3[which];
	if (hydns_hash(q, at))
		return -1;
	h = q->hashing.sha.h;
	q->search.key.label[0] = (__u64)h[0] << 32 | h[1];
	q->search.key.label[1] = (__u64)h[2] << 32 | h[3];
	q->search.key.label[2] = (__u64)h[4] << 32;
	q->search.key.label[3] = HYDNS_SHA1_OCTETS;
	return 0;
}

/* Writes the hash that q->search.key is in the table to q->hashing.sha.h; found: it is there, else that is 0. False: it is none. */
static __always_inline bool hydns_hash_found(struct hydns_query *q, bool found)
{
	const struct hydns_child *c = &q->search.key;
	const __u64 mask = found ? ~0ULL : 0;
	__u32 *h = q->hashing.sha.h;

	h[0] = (c->label[0] & mask) >> 32;
	h[1] = c->label[0] & mask;
	h[2] = (c->label[1] & mask) >> 32;
	h[3] = c->label[1] & mask;
	h[4] = (c->label[2] & mask) >> 32;
	return !found || hydns_child_len(c) == HYDNS_SHA1_OCTETS;
}

#endif
