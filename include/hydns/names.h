/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The names of a resolver's preloaded zones: the set by which the program knows that a name does not exist. The plugin writes it, and
 * the program reads it, without a lock.
 *
 * A name that is not in the set does not exist, so a name must be in it before the resolver serves data of it; one too many costs an
 * answer of the kernel and no more. Names are kept as hashes of 104 bits, keyed with a secret of the set: that one is taken for
 * another is as probable as that a key of that length is guessed. With a name stands which types it has no data of.
 *
 * What is answered for a name or a type that does not exist stands in a rule, the template: for a name that of the name
 * HYDNS_BELOW_LABEL below the closest encloser's zone or delegation, for a type that of HYDNS_NODATA_TYPE at the zone's origin. Queries
 * that the resolver answers in the same way but for the names' lengths can have that rule's answer, its compression pointers moved
 * (HYDNS_RULE_TEMPLATE, rule.h).
 */
#ifndef HYDNS_NAMES_H
#define HYDNS_NAMES_H

#include <stdbool.h>
#include "hydns/common.h"
#include "hydns/dns.h"
#include "hydns/hash.h"

/* The first label of a template's name, a word of a name in wire format, in memory order; and its type. */
#define HYDNS_BELOW_LABEL      "\7+below+"
#define HYDNS_BELOW_LABEL_LEN  8
#define HYDNS_BELOW_WORD       0x2b776f6c65622b07ULL    /* little-endian: hash.h */
#define HYDNS_BELOW_TYPE       HYDNS_TYPE_A
#define HYDNS_NODATA_TYPE      HYDNS_TYPE_NULL         /* an origin has no data of it (RFC 1035 section 3.3.10: experimental) */

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
 * length: octets of the last part of the name, itself if it is all, where the templates stand: its zone's origin, or a delegation.
 * 0: the set says nothing, of this name and of those below it.
 * types: the sum of hydns_names_types() of the types that the name has data of. ALL: of the name itself the set says nothing.
 */
#define HYDNS_NAMES_SAYS(types, length) ((__u32)(types) << 8 | (length))
#define HYDNS_NAMES_LENGTH(says)        ((__u32)(says) & 0xff)
#define HYDNS_NAMES_TYPES(says)         ((__u32)(says) >> 8 & HYDNS_NAMES_TYPES_ALL)
#define HYDNS_NAMES_TYPES_ALL           0xffffU
#define HYDNS_NAMES_WHAT(check, says)   ((__u64)(check) << 24 | (says))
#define HYDNS_NAMES_CHECK(what)         ((what) >> 24)
#define HYDNS_NAMES_SAID(what)          ((__u32)(what) & 0xffffff)

#define HYDNS_NAMES_BUCKETS_LEAST       512U
#define HYDNS_NAMES_BUCKETS_MOST        (1U << 23)     /* 32 million names */

struct hydns_names_hash {
	__u64 tag;           /* never 0; its halves choose the buckets */
	__u64 check;         /* 40 bits */
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
	h.check = (s->v0 ^ s->v1 ^ s->v2 ^ s->v3) >> 24;
	return h;
}

/*
 * The bit of a type, host order; no two types that are often asked for have the same. Of an alias ALL, for it answers for the other
 * types. 0: of questions for this type the set says nothing, because they are not about a name's own data, or
 * not answered as those for other types: meta-types (RFC 6895), signatures and proofs, SOA (BIND denies it with a TTL of 0,
 * zero-no-soa-ttl), DS (at an origin the parent is asked).
 */
HYDNS_INLINE __u32 hydns_names_types(__u16 type)
{
	switch (type) {
	case HYDNS_TYPE_CNAME:
		return HYDNS_NAMES_TYPES_ALL;
	case HYDNS_TYPE_NONE:
	case HYDNS_TYPE_SOA:
	case HYDNS_TYPE_SIG:
	case HYDNS_TYPE_OPT:
	case HYDNS_TYPE_DS:
	case HYDNS_TYPE_RRSIG:
	case HYDNS_TYPE_NSEC:
	case HYDNS_TYPE_NSEC3:
		return 0;
	default:
		return type >= HYDNS_TYPE_META_FIRST && type <= HYDNS_TYPE_META_LAST ? 0 : 1U << ((type * 20721U & 0xffff) >> 12);
	}
}

/* Whether the name has no data of the type, which is for the zone's template to say. */
HYDNS_INLINE bool hydns_names_lacks(__u32 says, __u16 type)
{
	const __u32 bits = hydns_names_types(type);

	return bits && !(HYDNS_NAMES_TYPES(says) & bits);
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
