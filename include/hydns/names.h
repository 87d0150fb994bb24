/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The names of a resolver's preloaded zones: the set by which the program knows that a name does not exist. The plugin writes it, and
 * the program reads it, without a lock.
 *
 * A name that is not in the set does not exist, so a name must be in it before the resolver serves data of it; one too many costs an
 * answer of the kernel and no more. Names are kept as hashes of 120 bits, keyed with a secret of the set: that one is taken for
 * another is as probable as that a key of that length is guessed.
 *
 * What is answered for a name that does not exist stands in a rule, the template: that of the name HYDNS_BELOW_LABEL below the closest
 * encloser's zone or delegation. Queries that the resolver answers in the same way but for the names' lengths can have that rule's
 * answer, its compression pointers moved (HYDNS_RULE_BELOW, rule.h).
 */
#ifndef HYDNS_NAMES_H
#define HYDNS_NAMES_H

#include "hydns/common.h"
#include "hydns/dns.h"
#include "hydns/hash.h"

/* The first label of a template's name, a word of a name in wire format, in memory order; and its type. */
#define HYDNS_BELOW_LABEL      "\7+below+"
#define HYDNS_BELOW_LABEL_LEN  8
#define HYDNS_BELOW_WORD       0x2b776f6c65622b07ULL    /* little-endian: hash.h */
#define HYDNS_BELOW_TYPE       HYDNS_TYPE_A

/*
 * One element of the map, 128 octets: the first is the head, and bucket i is element 1 + i. An entry stands in one of its name's two
 * buckets, and never moves.
 */
#define HYDNS_NAMES_ENTRIES    8
struct hydns_names_entry {
	__u64 tag;           /* of the hash; 0: empty. Stored last */
	__u64 what;          /* HYDNS_NAMES_WHAT() */
};
struct hydns_names_bucket {
	struct hydns_names_entry entry[HYDNS_NAMES_ENTRIES];
};
struct hydns_names_head {
	__u64 seed[2];
	__u32 mask;          /* buckets, a power of two, minus 1 */
	__u32 open;          /* 0: nobody may rely on the set */
	__u64 reserved[13];
};

/*
 * length: octets of the last part of the name, itself if it is all, below which the name's template stands: that of its zone, or of a
 * delegation. 0: of names below this one the set says nothing.
 */
#define HYDNS_NAMES_WHAT(check, length) ((__u64)(check) << 8 | (length))
#define HYDNS_NAMES_CHECK(what)         ((what) >> 8)
#define HYDNS_NAMES_LENGTH(what)        ((__u32)(what) & 0xff)

#define HYDNS_NAMES_BUCKETS_LEAST       512U
#define HYDNS_NAMES_BUCKETS_MOST        (1U << 23)     /* 32 million names */

struct hydns_names_hash {
	__u64 tag;           /* never 0; its halves choose the buckets */
	__u64 check;         /* 56 bits */
};

/* Of a name whose words, lower case and zero-padded, went into s, from hydns_sip_begin() on; len: its octets. */
HYDNS_INLINE struct hydns_names_hash hydns_names_hash_end(struct hydns_sip *s, __u32 len)
{
	struct hydns_names_hash h;

	hydns_sip_word(s, len);
	h.tag = hydns_sip_end(s);
	h.tag += !h.tag;
	s->v1 ^= 0xdd;               /* the second half of 128 bits, as SipHash-128 does it */
	hydns_sip_round(s);
	hydns_sip_round(s);
	hydns_sip_round(s);
	h.check = (s->v0 ^ s->v1 ^ s->v2 ^ s->v3) >> 8;
	return h;
}

/* Number of the map's element that is the name's first bucket, or its second. */
HYDNS_INLINE __u32 hydns_names_bucket(__u64 tag, __u32 mask, int second)
{
	return 1 + ((__u32)(second ? tag >> 32 : tag) & mask);
}

#ifndef __BPF__
/*
 * Buckets of a set for so many names, of whose places at most half are taken, if that is possible. A name takes a place of its emptier
 * bucket: with eight in each, one name in 10^21 then finds none (the fluid limit of two choices: Mitzenmacher, 1996); with four it
 * would be one in 76,000.
 */
static inline __u32 hydns_names_buckets(__u64 names)
{
	__u32 buckets = HYDNS_NAMES_BUCKETS_LEAST;

	while (buckets < HYDNS_NAMES_BUCKETS_MOST && (__u64)buckets * HYDNS_NAMES_ENTRIES / 2 < names)
		buckets *= 2;
	return buckets;
}

/* name: lower case, wire format, len octets. */
static inline struct hydns_names_hash hydns_names_hash(const __u8 *name, __u32 len, const __u64 seed[2])
{
	struct hydns_sip s;

	hydns_sip_begin(&s, seed);
	for (__u32 i = 0; i < len; i += 8) {
		__u64 w = 0;

		__builtin_memcpy(&w, name + i, len - i < 8 ? len - i : 8);
		hydns_sip_word(&s, w);
	}
	return hydns_names_hash_end(&s, len);
}
#endif

HYDNS_STATIC_ASSERT(sizeof(struct hydns_names_bucket) == 128 && sizeof(struct hydns_names_head) == 128, "elements of one size");
HYDNS_STATIC_ASSERT(sizeof(HYDNS_BELOW_LABEL) == HYDNS_BELOW_LABEL_LEN + 1, "the label is a word");

#endif
