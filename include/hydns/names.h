/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The names of a resolver's preloaded zones: the set by which the program knows that a name does not exist. The plugin writes it, and
 * the program reads it, without a lock.
 *
 * A name that is not in the set does not exist, so a name must be in it before the resolver serves data of it; one too many costs an
 * answer of the kernel and no more. Names are kept as hashes of 100 bits, keyed with a secret of the set: that one is taken for
 * another is as probable as that a key of that length is guessed. With a name stands which types it has no data of.
 *
 * What is answered for a name or a type that does not exist stands in a rule, the template: for a name that of the name
 * HYDNS_BELOW_LABEL below the closest encloser's zone or delegation, for a type that of HYDNS_NODATA_TYPE at the zone's origin. Queries
 * that the resolver answers in the same way but for the names' lengths can have that rule's answer, its compression pointers moved
 * (HYDNS_RULE_TEMPLATE, rule.h).
 *
 * In a signed zone queries with DO get proofs, which are about less than the zone. For a type the template is that of
 * HYDNS_NODATA_TYPE at the name itself. For a name, where the zone has NSEC records, it is that of the probe: the first name in
 * canonical order (RFC 4034 section 6.1) behind the greatest name right below the closest encloser that comes before the query's. All
 * names between this and the next one right below the closest encloser are denied by the same records. So behind the set's buckets
 * stands a sorted table of the names that have another one right above them: the children.
 *
 * Where the zone has NSEC3 records, the hash of the name right below the closest encloser is looked for in that table, which has the
 * hashes of the zone's chain as children of the chain. The template is that of HYDNS_HASHED_TYPE at the name that is made of the hash
 * found and the closest encloser (nsec3.h). But where the proof begins with a name above the closest encloser, it is the same for all names
 * below this: then the template stands at HYDNS_BELOW_LABEL below the closest encloser (HYDNS_NAMES_UNPROVED).
 *
 * That a delegation has no DS says its zone, as of any type that a name lacks; but with a proof the template is that of DS at the name
 * itself, for of other types it has a referral.
 */
#ifndef HYDNS_NAMES_H
#define HYDNS_NAMES_H

#include <stdbool.h>
#include "hydns/common.h"
#include "hydns/dns.h"
#include "hydns/hash.h"
#include "hydns/nsec3.h"
#include "hydns/soa.h"

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
#define HYDNS_NAMES_NSEC3      6       /* ways of hashing names, of all zones */
struct hydns_names_head {
	__u64 seed[2];
	__u32 mask;          /* buckets, a power of two, minus 1 */
	__u32 open;          /* 0: nobody may rely on the set */
	__u32 leaves;        /* of the table of children, in use; they begin behind the buckets */
	__u32 table;         /* odd: nobody may rely on the table. Advanced when that changes */
	struct hydns_nsec3 nsec3[HYDNS_NAMES_NSEC3]; /* how zones hash their names: HYDNS_NAMES_HASHING() */
};

/*
 * length: octets of the last part of the name, itself if it is all, where the templates stand: its zone's origin, or a delegation.
 * 0: the set says nothing, of this name and of those below it.
 * types: the sum of hydns_names_types() of the types that the name has data of. ALL: of the name itself the set says nothing.
 */
#define HYDNS_NAMES_SIGNED              (1U << 24)     /* its zone is signed: queries with DO get proofs. Not of a delegation */
#define HYDNS_NAMES_HASHED(number)      ((__u32)(number) << 25) /* with SIGNED: of the head's nsec3, from 1 on; 0: none */
#define HYDNS_NAMES_HASHING(says)       ((__u32)(says) >> 25 & 7)
/* In place of such a number: proofs about names below this one, which exists by others alone, begin with a name above it. */
#define HYDNS_NAMES_UNPROVED            (HYDNS_NAMES_SIGNED | HYDNS_NAMES_HASHED(7))
/* The same without SIGNED: the name is delegated, and questions for its own types, too, have the referral for names below it. */
#define HYDNS_NAMES_CUT                 HYDNS_NAMES_HASHED(7)
/* Of a delegation in place of the types, if it has no DS; else ALL: octets of its zone's origin; and whether that zone is signed. */
#define HYDNS_NAMES_NO_DS(origin_len)   ((__u32)(origin_len))
#define HYDNS_NAMES_NO_DS_SIGNED        0x100U
#define HYDNS_NAMES_SAYS(types, length) ((__u32)(types) << 8 | (length))
#define HYDNS_NAMES_LENGTH(says)        ((__u32)(says) & 0xff)
#define HYDNS_NAMES_TYPES(says)         ((__u32)(says) >> 8 & HYDNS_NAMES_TYPES_ALL)
#define HYDNS_NAMES_TYPES_ALL           0xffffU
#define HYDNS_NAMES_WHAT(check, says)   ((__u64)(check) << 28 | (says))
#define HYDNS_NAMES_CHECK(what)         ((what) >> 28)
#define HYDNS_NAMES_SAID(what)          ((__u32)(what) & 0xfffffff)

#define HYDNS_NAMES_BUCKETS_LEAST       512U
#define HYDNS_NAMES_BUCKETS_MOST        (1U << 23)     /* 32 million names */

/* Labels between a name and its closest encloser, at most, and one more; names further below pass. */
#define HYDNS_BELOW_LABELS              12

struct hydns_names_hash {
	__u64 tag;           /* never 0; its halves choose the buckets */
	__u64 check;         /* 36 bits */
};

/*
 * A child: the tag of the name above it, and its own label, so that comparing these words as numbers, from the first on, is canonical
 * order. A label is HYDNS_CHILD_OCTETS octets, zero-padded, the first of them in a word's highest bits, and then its length. Of a
 * longer one stand the first octets, and HYDNS_CHILD_LONG as the length. A hash of the chain of NSEC3 records is a label of 20 octets
 * below HYDNS_CHAIN_OF() of the origin's tag.
 */
#define HYDNS_CHAIN_OF(tag)             (~(tag))
#define HYDNS_CHILD_WORDS               4
#define HYDNS_CHILD_OCTETS              31
#define HYDNS_CHILD_LONG                32
struct hydns_child {
	__u64 parent;
	__u64 label[HYDNS_CHILD_WORDS];
};

/* One element of the map, too. Places at the end of the last leaf that are empty have the greatest child there may be. */
#define HYDNS_LEAF_CHILDREN             3
struct hydns_leaf {
	struct hydns_child child[HYDNS_LEAF_CHILDREN];
	__u64 reserved;
};
#define HYDNS_LEAVES_MOST(buckets)      ((buckets) * HYDNS_NAMES_ENTRIES / HYDNS_LEAF_CHILDREN) /* as many children as names */
#define HYDNS_LEAVES_LEAST              512U
#define HYDNS_NAMES_ZONES_MOST          65536U         /* that have a present SOA (soa.h) */
#define HYDNS_LEAVES_STEPS              26             /* of a binary search among them */

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
	h.check = (s->v0 ^ s->v1 ^ s->v2 ^ s->v3) >> 28;
	return h;
}

/*
 * The bit of a type, host order; no two types that are often asked for have the same. Of an alias ALL, for it answers for the other
 * types. 0: of questions for this type the set says nothing, because they are not about a name's own data, or
 * not answered as those for other types: meta-types (RFC 6895), signatures and proofs, SOA (BIND denies it with a TTL of 0,
 * zero-no-soa-ttl), DS (at an origin the parent is asked), KEY (of a delegation BIND gives it itself).
 */
HYDNS_INLINE __u32 hydns_names_types(__u16 type)
{
	switch (type) {
	case HYDNS_TYPE_CNAME:
		return HYDNS_NAMES_TYPES_ALL;
	case HYDNS_TYPE_NONE:
	case HYDNS_TYPE_SOA:
	case HYDNS_TYPE_SIG:
	case HYDNS_TYPE_KEY:
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

HYDNS_INLINE bool hydns_names_is_cut(__u32 says)
{
	return (says & HYDNS_NAMES_UNPROVED) == HYDNS_NAMES_CUT;
}

/* Whether a question for the type at the name itself is answered as those for names below it, by a referral. */
HYDNS_INLINE bool hydns_names_refers(__u32 says, __u16 type)
{
	return hydns_names_is_cut(says) && hydns_names_types(type);
}

/* Octets of the end of the name where the template stands that denies its DS; all of it: with a proof. 0: it may have DS. */
HYDNS_INLINE __u32 hydns_names_denies_ds(__u32 says, bool wants_proof)
{
	const __u32 no_ds = HYDNS_NAMES_TYPES(says);

	if (!hydns_names_is_cut(says) || no_ds == HYDNS_NAMES_TYPES_ALL)
		return 0;
	return wants_proof && (no_ds & HYDNS_NAMES_NO_DS_SIGNED) ? HYDNS_NAMES_LENGTH(says) : no_ds & 0xff;
}

/* Whether a template of this type denies types of the name where it stands. */
HYDNS_INLINE bool hydns_denies_types(__u16 type)
{
	return type == HYDNS_NODATA_TYPE || type == HYDNS_TYPE_DS;
}

HYDNS_INLINE bool hydns_names_is_unproved(__u32 says)
{
	return (says & HYDNS_NAMES_UNPROVED) == HYDNS_NAMES_UNPROVED;
}

/* Number of the map's element that is the name's first bucket, or its second. */
HYDNS_INLINE __u32 hydns_names_bucket(__u64 tag, __u32 mask, int second)
{
	return 1 + ((__u32)(second ? tag >> 32 : tag) & mask);
}

/* Number of the map's element that is this leaf. */
HYDNS_INLINE __u32 hydns_leaf_element(__u32 mask, __u32 leaf)
{
	return mask + 2 + leaf;
}

/* Number of the map's first element that is the present SOA of a zone (soa.h), by the zone's number. room: of leaves. */
HYDNS_INLINE __u32 hydns_soa_element(__u32 mask, __u32 room, __u32 zone)
{
	return hydns_leaf_element(mask, room) + zone * HYDNS_SOA_ELEMENTS;
}

/* Word i of a child's label, of len octets. octets: those of the label from 8 * i on, in memory order; what is behind it does not
 * matter. */
HYDNS_INLINE __u64 hydns_child_word(__u64 octets, __u32 i, __u32 len)
{
	const __u32 own = len < HYDNS_CHILD_OCTETS ? len : HYDNS_CHILD_OCTETS;
	const __u32 left = own > 8 * i ? own - 8 * i : 0;
	__u64 word = left ? __builtin_bswap64(octets) & ~0ULL << (left < 8 ? 64 - 8 * left : 0) : 0;

	if (i == HYDNS_CHILD_WORDS - 1)
		word |= len < HYDNS_CHILD_LONG ? len : HYDNS_CHILD_LONG;
	return word;
}

/* Length of a child's label, or HYDNS_CHILD_LONG: it is longer than what is known of it. */
HYDNS_INLINE __u32 hydns_child_len(const struct hydns_child *c)
{
	return (__u8)c->label[HYDNS_CHILD_WORDS - 1];
}

/* Whether a comes behind b. */
HYDNS_INLINE bool hydns_child_is_behind(const struct hydns_child *a, const struct hydns_child *b)
{
	if (a->parent != b->parent)
		return a->parent > b->parent;
	for (int i = 0; i < HYDNS_CHILD_WORDS - 1; i++)
		if (a->label[i] != b->label[i])
			return a->label[i] > b->label[i];
	return a->label[HYDNS_CHILD_WORDS - 1] > b->label[HYDNS_CHILD_WORDS - 1];
}

#ifndef __BPF__
/* What a child of this parent is in the table. label: with its length octet. */
static inline struct hydns_child hydns_child_of(__u64 parent, const __u8 *label)
{
	struct hydns_child c = { .parent = parent };
	__u8 octets[8 * HYDNS_CHILD_WORDS] = { 0 };

	__builtin_memcpy(octets, label + 1, label[0] < HYDNS_CHILD_OCTETS ? label[0] : HYDNS_CHILD_OCTETS);
	for (__u32 i = 0; i < HYDNS_CHILD_WORDS; i++) {
		__u64 w;

		__builtin_memcpy(&w, octets + 8 * i, 8);
		c.label[i] = hydns_child_word(w, i, label[0]);
	}
	return c;
}

/* What a hash is in the table, of the chain of the zone whose origin has this tag. */
static inline struct hydns_child hydns_child_of_hash(__u64 tag, const __u8 hash[HYDNS_SHA1_OCTETS])
{
	__u8 label[1 + HYDNS_SHA1_OCTETS] = { HYDNS_SHA1_OCTETS };

	__builtin_memcpy(label + 1, hash, HYDNS_SHA1_OCTETS);
	return hydns_child_of(HYDNS_CHAIN_OF(tag), label);
}

/* Whether a name's first label may be that of a probe: it ends with a zero octet. */
static inline bool hydns_is_probe(const __u8 *name)
{
	return name[0] && !name[name[0]];
}

/* Whether the name, of len octets, is one at which a template for names below another one may stand. */
static inline bool hydns_is_below_name(const __u8 *name, __u32 len)
{
	return len > 1U + name[0] && (hydns_is_probe(name) || (len > HYDNS_BELOW_LABEL_LEN &&
							      !__builtin_memcmp(name, HYDNS_BELOW_LABEL, HYDNS_BELOW_LABEL_LEN)));
}

/* Leaves for so many children, and for those that come. */
static inline __u32 hydns_names_leaves(__u64 children, __u32 buckets)
{
	const __u64 leaves = (children + children / 4) / HYDNS_LEAF_CHILDREN + HYDNS_LEAVES_LEAST;

	return leaves < HYDNS_LEAVES_MOST(buckets) ? (__u32)leaves : HYDNS_LEAVES_MOST(buckets);
}

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

HYDNS_STATIC_ASSERT(sizeof(struct hydns_names_bucket) == 128 && sizeof(struct hydns_names_head) == 128 &&
		    sizeof(struct hydns_leaf) == 128 && HYDNS_SOA_ELEMENT == 128, "elements of one size");
HYDNS_STATIC_ASSERT(HYDNS_LEAVES_MOST(HYDNS_NAMES_BUCKETS_MOST) < 1U << HYDNS_LEAVES_STEPS, "a search ends");
HYDNS_STATIC_ASSERT(sizeof(HYDNS_BELOW_LABEL) == HYDNS_BELOW_LABEL_LEN + 1, "the label is a word");

#endif
