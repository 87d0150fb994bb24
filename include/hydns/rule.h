/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The rule store, as hydnsd writes it and the program reads it: slots with rules, the index, words per rule, sizes.
 * doc/store.md has the picture.
 */
#ifndef HYDNS_RULE_H
#define HYDNS_RULE_H

#include "hydns/common.h"

#define HYDNS_RECORDS_MAX      64    /* in one answer */
#define HYDNS_TTLS_MAX         32    /* of those, the first so many have a TTL that may count down, and may be rotated */
#define HYDNS_ROTATIONS_MAX    2     /* rotated RRsets in one answer */
#define HYDNS_RULE_PLACES_MAX  8     /* dependencies of one rule; one with more is suspended by any mark */

/* --- slots -------------------------------------------------------------------------------------------- */
/*
 * Slots of all sizes stand in one array, the map hydns_slots. A handle is the number of a slot's first unit, plus one;
 * 0 means none. An element of the map is a chunk. No slot begins in a chunk's last HYDNS_SLOT_MOST octets, so a reader
 * may read that many octets from where a slot begins, whatever its size. hydns-kern/store/slots.h has the sizes.
 */
#define HYDNS_UNIT             16        /* octets; slots begin and end at multiples of it */
#define HYDNS_SLOT_MOST        1536      /* octets of the largest slot */
#define HYDNS_CHUNK            (1U << 18)
#define HYDNS_CHUNK_UNITS      (HYDNS_CHUNK / HYDNS_UNIT)
#define HYDNS_SPAN             (1U << 14) /* octets that hold slots of one size at a time */
#define HYDNS_SPAN_UNITS       (HYDNS_SPAN / HYDNS_UNIT)
#define HYDNS_ORDINALS_MOST    (1U << 27)

/* --- a rule ------------------------------------------------------------------------------------------- */
#define HYDNS_RULE_SECURE      0x01  /* validated: AD is set when the query has AD or DO */
#define HYDNS_RULE_STATIC_TTL  0x02  /* from a zone: TTLs are sent as they stand, so there may be more records than
				      * HYDNS_TTLS_MAX; and a client whose EDNS size is 512 or less passes, for an
				      * authoritative server leaves more out for it */
#define HYDNS_RULE_LEFT_OUT    0x04  /* left-out names follow the answer */
#define HYDNS_RULE_ERRORS      0x08  /* extended errors follow the answer, for clients with EDNS */
#define HYDNS_RULE_BOGUS       0x10  /* a failure because validation has failed: for the resolver's counters */
#define HYDNS_RULE_COUNTED     0x20  /* its responses are counted: an account follows the answer (rates.h) */
#define HYDNS_RULE_KEPT        0x40  /* preloaded: popularity does not evict it; for hydnsd */
#define HYDNS_RULE_TEMPLATE    0x80  /* the answer to other names or types, too (names.h); its pointers follow */
#define HYDNS_KEPT_LIFE        (49U * 24 * 3600) /* seconds that such a rule may live: as much as expire_ms holds */

/*
 * An RRset that the program rotates: len octets from start on in the answer, the RRs whose TTLs are those from number
 * first to number last of the rule. Their owner names are equally long, so that each RR begins as far before its TTL as
 * the first one; their RDATA may differ in length. len 0: unused.
 */
struct hydns_rotation {
	__u32 start:11;
	__u32 len:11;
	__u32 first:5;
	__u32 last:5;
};
#define HYDNS_ROTATION_LEN     4

/*
 * One rule, where a slot begins. After it stand:
 *   name      name_len octets, wire format, lower case, with the root label
 *   type      2 octets, network order;   class  2 octets, network order (IN)
 *   answer    answer_len octets: the resolver's message after the question, without its OPT; each TTL holds the seconds
 *             that are left at base_ns
 *   ttl       from the next even offset in the slot on: ttl_count __u16, each the offset of a TTL in the answer
 *   rotation  rotation_count struct hydns_rotation, at an even offset
 *   place     place_count __u16: HYDNS_PLACE() of each dependency
 *   account   with HYDNS_RULE_COUNTED alone: HYDNS_RULE_ACCOUNT octets, HYDNS_RATE_ACCOUNT()
 *   pointers  with HYDNS_RULE_TEMPLATE alone, which excludes ERRORS and goes with HYDNS_VARIANT_TEMPLATE: struct hydns_pointers
 *   errors    with HYDNS_RULE_ERRORS alone: struct hydns_errors
 *   left out  with HYDNS_RULE_LEFT_OUT alone: one octet, how many names follow (never 0), and these, wire format, lower
 *             case: owner names of RRsets that the cached answer has and the reply does not show (proofs without DO,
 *             additional data). Without one of them the resolver would ask anew. The program does not read them.
 * From its publication in the index until a grace period after its removal a rule does not change, but for hits, and
 * refresh_ms, hits_end and any octet of a TTL, each of which hydnsd may change by one store.
 */
struct hydns_rule {
	__u64 base_ns;      /* monotonic time at which the second of the wall clock began that TTLs count from */
	__u32 expire_ms;    /* after base_ns: from then on the program does not use the rule */
	__u32 refresh_ms;   /* after base_ns: from then on it passes one query per HYDNS_REFRESH_REARM_MS */
	__u32 epoch;        /* the rule counts only while this equals the resolver page's */
	__u32 hits;         /* answers counted here by the program, by atomic additions */
	__u32 ordinal:27;   /* dense number of the rule, for words and tables per rule; set by the store */
	__u32 size_class:5; /* of the slot; set by the store */
	__u16 hits_end;     /* set by the store; once hits, modulo 2^16, is this, each CPU counts in its own word */
	__u16 reply_flags;  /* network order: header flags of the reply without RD, AD, CD */
	__u16 answer_len;
	__u16 answer_sum;   /* one's-complement sum (RFC 1071) of the answer with zeros as TTLs, as if the answer began at
			     * an even offset; folded, not inverted, memory order */
	__u16 qtype;        /* network order; a copy of the one that stands behind the name */
	__u8  name_len;
	__u8  variant;      /* HYDNS_VARIANT_* */
	__u8  resolver;     /* index of the resolver whose answer this is */
	__u8  flags;        /* HYDNS_RULE_* */
	__u8  ancount;      /* records in the answer, by section; ... */
	__u8  nscount;
	__u8  arcount;      /* ... here without the OPT */
	__u8  ttl_count;
	__u8  rotation_count;
	__u8  place_count;  /* 0: there are more than HYDNS_RULE_PLACES_MAX */
	__u8  data[];
};
#define HYDNS_RULE_DATA        48
#define HYDNS_RULE_ACCOUNT     8
#define HYDNS_RULE_ACCOUNT_AT_MOST (HYDNS_SLOT_MOST - HYDNS_RULE_ACCOUNT)
/* Octets of an account in a rule or an offer with these flags. */
#define HYDNS_ACCOUNT_LEN(flags) ((flags) & HYDNS_RULE_COUNTED ? HYDNS_RULE_ACCOUNT : 0U)

/*
 * Extended errors (RFC 8914): EDNS options as the resolver sends them, behind its cookie if there is one. They begin at an even
 * offset, no further in the slot than HYDNS_ERRORS_AT_MOST.
 */
struct hydns_errors {
	__u16 len;          /* octets of the options: 6..HYDNS_ERRORS_MOST */
	__u16 sum;          /* of the options, as answer_sum */
	__u8  options[];
};
#define HYDNS_ERRORS_HEAD      4
#define HYDNS_ERRORS_MOST      512
#define HYDNS_ERRORS_AT_MOST   (HYDNS_SLOT_MOST - HYDNS_ERRORS_HEAD - HYDNS_ERRORS_MOST)

/*
 * The compression pointers of a template's answer, at an even offset. For a name that is so many octets longer each leads so much
 * further: none leads into the first label of the question.
 */
struct hydns_pointers {
	__u16 count;        /* HYDNS_POINTERS_COUNT() of them; with HYDNS_POINTERS_GAP struct hydns_gap follows */
	__u16 at[];         /* offset of each in the answer */
};
#define HYDNS_POINTERS_MOST    96    /* of one template */
#define HYDNS_POINTERS_GAP     0x8000U
#define HYDNS_POINTERS_COUNT(count) ((count) & 0x7fffU)
#define HYDNS_POINTERS_LEN(count) (2U + 2 * HYDNS_POINTERS_COUNT(count) + ((count) & HYDNS_POINTERS_GAP ? HYDNS_GAP_LEN : 0U))
#define HYDNS_POINTERS_AT_MOST (HYDNS_SLOT_MOST - HYDNS_POINTERS_LEN(HYDNS_POINTERS_MOST | HYDNS_POINTERS_GAP))
/*
 * Where the zone's present SOA (soa.h) belongs in a template's answer, which has zeros there: the answer is no one's without it. Two
 * octets each, low ones first, for the struct stands at an even offset.
 */
struct hydns_gap {
	__u16 element[2];   /* of the map of names: where struct hydns_soa_now is; */
	__u16 id[4];        /* its id */
	__u16 numbers;      /* offset of these in the answer */
	__u16 fixed;        /* the same of those of the signature's RDATA, */
	__u16 signature;    /* and of the signature itself, */
	__u16 signature_len; /* of so many octets. 0: the answer shows none */
};
#define HYDNS_GAP_LEN          20U
#define HYDNS_BELOW_ANSWER_MOST (HYDNS_SLOT_MOST - HYDNS_RULE_DATA - HYDNS_QUESTION_MAX) /* octets of such an answer */

/* Where in a slot the offsets of TTLs begin, and where the rotations. */
#define HYDNS_RULE_TTLS(name_len, answer_len) \
	((HYDNS_RULE_DATA + (name_len) + 4 + (answer_len) + 1) & ~1U)
#define HYDNS_RULE_ROTATIONS(name_len, answer_len, ttl_count) \
	(HYDNS_RULE_TTLS(name_len, answer_len) + 2 * (ttl_count))
/* Octets of a slot that hold this rule; rest: octets of its rotations, its places, its account, its pointers or its extended errors
 * with their head, its left-out names and their count. */
#define HYDNS_RULE_SPACE(name_len, answer_len, ttl_count, rest) \
	(HYDNS_RULE_ROTATIONS(name_len, answer_len, ttl_count) + (rest))

/* --- the index ---------------------------------------------------------------------------------------- */
/*
 * Two-choice buckets of eight entries. An entry is fingerprint << 32 | handle; 0: empty. With h, the key's hash
 * (hash.h), bucket 1 is h & mask, bucket 2 is hydns_bucket_other().
 */
#define HYDNS_BUCKET_ENTRIES   8
struct hydns_bucket {
	__u64 entry[HYDNS_BUCKET_ENTRIES];
};

/* --- words per rule ----------------------------------------------------------------------------------- */
/*
 * A hit is first counted in the slot: the answer was read from there, so it costs no other cache line. CPUs that answer
 * from one rule all the time would take that line from each other, so after this many hits each counts in a word of its
 * own, until hydnsd sees that the rule is asked for less.
 */
#define HYDNS_HITS_IN_SLOT     64

/*
 * Words per rule (hits, refresh claims) stand in lines of 16: line = ordinal / 16, for hits + row * lines. A row of hits
 * for every CPU that the kernel might ever have would take more memory than the rules, so the CPUs that are there when
 * the maps are made have one each, up to HYDNS_HITS_OWN of them; the others share HYDNS_HITS_SHARED rows.
 */
#define HYDNS_LINE_WORDS       16
#define HYDNS_HITS_OWN         32
#define HYDNS_HITS_SHARED      16
struct hydns_line {
	__u32 word[HYDNS_LINE_WORDS];
};

/* How a CPU counts hits: the beginning of its hydns_scratch, written when the maps are made. */
struct hydns_counting {
	__u32 first;         /* line in hydns_hits with which its row begins */
	__u32 shared;        /* not 0: other CPUs count in that row, too */
};

/* --- sizes -------------------------------------------------------------------------------------------- */
/* Chosen at load. The program reads them as constants; the map hydns_meta keeps them, where page_serial, empty,
 * lanes, port_range, parking and limits change. */
struct hydns_geometry {
	__u32 abi_version;                   /* first for all time: hydnsd of any version reads it */
	__u32 cpus;                          /* possible CPUs */
	__u32 buckets;                       /* power of two */
	__u32 lines;                         /* ordinals / 16 */
	__u32 spans;                         /* of slots; as many chunks as they need */
	__u32 page_serial;                   /* resolver pages made so far: gives first epochs */
	__u64 seed[2];                       /* of the key hash; secret */
	__u32 empty;                         /* not 0: the store holds no rule, the program looks nothing up */
	__u32 own_hits;                      /* CPUs that have a row of hits of their own, from number 0 on */
	__u64 tag_seed[2];                   /* of hydns_remote_tag(); plugins know it */
	__u32 lanes;                         /* not 0: there may be lanes (queue.h), so the program reads all queries */
	__u32 port_range;                    /* HYDNS_PORT_RANGE() of upstream queries, for the next hydnsd */
	__u32 parking;                       /* not 0: queries may be parked (parking.h), so the program reads all of them */
	__u32 limits;                        /* not 0: a resolver limits its clients (budgets.h), so it reads all of them, too */
};

HYDNS_STATIC_ASSERT(__builtin_offsetof(struct hydns_rule, data) == HYDNS_RULE_DATA, "rule header");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_gap) == HYDNS_GAP_LEN, "a gap");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_errors) == HYDNS_ERRORS_HEAD && !(HYDNS_ERRORS_AT_MOST & 1), "extended errors");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_rotation) == HYDNS_ROTATION_LEN && HYDNS_SLOT_MOST <= 1U << 11 &&
		    HYDNS_TTLS_MAX <= 1U << 5, "fields of a rotation");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_bucket) == 64, "a bucket is a cache line");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_line) == 64, "a line is a cache line");

#endif
