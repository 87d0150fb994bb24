/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * From a plugin to hydnsd: offers, changes, and why an answer was not offered. One ring for each thread of the resolver.
 */
#ifndef HYDNS_RING_H
#define HYDNS_RING_H

#include "hydns/detours.h"
#include "hydns/logged.h"
#include "hydns/queue.h"
#include "hydns/rule.h"        /* an offer has a rule's flags and its bounds */

/* What is in a thread's packet rings of one lane. */
struct hydns_lane_level {
	__u32 lane;              /* its number plus 1; 0: there is none here */
	__u32 waiting;           /* frames that the thread has not read */
	__u32 unsent;            /* frames that the interface has not taken */
	__u32 free;              /* frames of the lane, of all threads, that the kernel may receive into */
	__u64 dropped;           /* frames that the kernel has dropped: none was free, or the ring was full */
};

/*
 * A memfd of HYDNS_RING_SIZE octets, made and sealed (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) by the plugin: the
 * header, HYDNS_RING_DATA; the frames, HYDNS_RING_BYTES; and HYDNS_NOT_OFFERED_PLACES struct hydns_not_offered. It has
 * one producer and one consumer. head and tail count octets and wrap at 2^32. A frame's length is a multiple of 8
 * octets, and a frame is in one piece: a PAD frame fills what is left at the end.
 */
#define HYDNS_RING_BYTES       (1U << 18)
#define HYDNS_RING_DATA        4096
/* Which frames the plugin has to follow by a write to the doorbell (an eventfd). */
enum hydns_ring_wakeup {
	HYDNS_WAKEUP_NONE,       /* hydnsd is awake, or reads the ring in a moment */
	HYDNS_WAKEUP_ALL,
	HYDNS_WAKEUP_CHANGES,    /* all but offers, which hydnsd reads some milliseconds later, while the ring is not filled
				  * beyond HYDNS_RING_PATIENT */
};
#define HYDNS_RING_PATIENT     (HYDNS_RING_BYTES / 4)
struct hydns_ring {
	__u32 head;              /* plugin: store-release after the frame */
	__u32 pad0[15];
	__u32 tail;              /* hydnsd: store-release after it has acted upon the frame: what that withdraws is out of
				  * the index. A hydnsd that comes after a crash goes on here */
	__u32 need_wakeup;       /* hydnsd: enum hydns_ring_wakeup; plugin: NONE, before it writes to the doorbell */
	__u32 threshold;         /* hydnsd: what a newcomer must promise, in hits per 10^6 s; 0: there is room */
	__u32 pad1[13];
	__u64 dropped;           /* plugin: offers that found the ring full */
	__u64 offered;           /* plugin */
	__u64 queries;           /* plugin: queries that this thread has seen over UDP */
	__u64 pad2[5];
	struct hydns_queue_counts packet_rings; /* plugin */
	struct hydns_lane_level lane[HYDNS_LANES_MOST]; /* plugin: its own places; written once a second */
	struct hydns_tap_level log; /* plugin: in the first thread's ring alone */
};
HYDNS_STATIC_ASSERT(sizeof(struct hydns_ring) <= HYDNS_RING_DATA, "the frames come after the header");

/*
 * Why an answer was not offered, for the operator who asks: a thread's last reason for each question, in the place that
 * its key says, where a newer one of another question may replace it. The key is hydns_key_hash() of the question, as of
 * resolver 0, with the seed of HELLO. Written without a lock, and only where an answer is not offered.
 */
#define HYDNS_NOT_OFFERED_PLACES      4096  /* power of two */
struct hydns_not_offered {
	__u64 key;               /* stored last; 0: none */
	__u32 at_ms;             /* monotonic time in milliseconds, modulo 2^32 */
	__u32 what;              /* HYDNS_NOT_OFFERED_WHAT(): place in not_offered.def, and the number that its text shows */
};
#define HYDNS_NOT_OFFERED_VALUE_BITS  24
#define HYDNS_NOT_OFFERED_VALUE_MOST  ((1U << HYDNS_NOT_OFFERED_VALUE_BITS) - 1)
#define HYDNS_NOT_OFFERED_WHAT(why, value) ((__u32)(why) << HYDNS_NOT_OFFERED_VALUE_BITS | \
	((value) < HYDNS_NOT_OFFERED_VALUE_MOST ? (value) : HYDNS_NOT_OFFERED_VALUE_MOST))
#define HYDNS_NOT_OFFERED_PLACE(key)  ((__u32)(key) & (HYDNS_NOT_OFFERED_PLACES - 1))
#define HYDNS_RING_SIZE        (HYDNS_RING_DATA + HYDNS_RING_BYTES + \
				HYDNS_NOT_OFFERED_PLACES * sizeof(struct hydns_not_offered))

/* --- frames ------------------------------------------------------------------------------------------- */
#define HYDNS_FRAME_PAD        0
#define HYDNS_FRAME_OFFER      1
#define HYDNS_FRAME_CHANGED    2
#define HYDNS_FRAME_OVER       3
struct hydns_frame {
	__u32 len;               /* with this header; multiple of 8 */
	__u32 type;
};

/* HYDNS_FRAME_OFFER. data: name (lower case), answer, account, extended errors, left-out names, each as in struct hydns_rule, but
 * the extended errors: with HYDNS_RULE_ERRORS two octets, their length, and the options. */
struct hydns_offer {
	struct hydns_frame frame;
	__u64 generation;        /* of the resolver page, read while the cache entry was locked */
	__u64 base_ns;           /* as in struct hydns_rule */
	__u32 epoch;
	__u32 ttl;               /* seconds that the answer lives after base_ns */
	__u32 count;             /* sightings of this question ... */
	__u32 window_ms;         /* ... in about this time */
	__u16 reply_flags;       /* network order, as in struct hydns_rule */
	__u16 ancount;           /* network order */
	__u16 nscount;           /* network order */
	__u16 arcount;           /* network order, without OPT */
	__u16 qtype;             /* network order */
	__u16 answer_len;
	__u8  name_len;
	__u8  variant;           /* HYDNS_VARIANT_* */
	__u8  flags;             /* HYDNS_RULE_* */
	__u8  gap;               /* 1: struct hydns_offer_soa stands behind the account; with HYDNS_RULE_TEMPLATE alone */
	__u8  data[];
};
#define HYDNS_OFFER_DATA       56
/*
 * The zone's present SOA belongs in place of the one that the answer has (soa.h, struct hydns_gap). Where, hydnsd finds out. It makes a
 * template of the offer, or refuses it: such an offer does not depend on the SOA.
 */
struct hydns_offer_soa {
	__u64 id;
	__u32 element;
} __attribute__((packed));

/*
 * In which sections of replies an RRset stands whose TTL was updated: a resolver may store what came in authority
 * sections apart, with another TTL (Unbound does so with a SOA: RFC 2308 section 3).
 */
enum hydns_section {
	HYDNS_SECTION_ANYWHERE,
	HYDNS_SECTION_ANSWER,
	HYDNS_SECTION_AUTHORITY,
};
/*
 * HYDNS_FRAME_CHANGED. data: name in wire format, lower case. With ttl_of 0 the name's data changed: hydnsd withdraws
 * every rule that depends on the name. Else it is a TTL update: the RRset of that type has the same data and a later
 * end. Rules that were made before count down TTLs that the resolver no longer sends; hydnsd gives them the later end, or
 * withdraws them if no newer offer replaces them in a moment.
 */
struct hydns_changed {
	struct hydns_frame frame;
	__u64 generation;        /* already advanced */
	__u64 end_ns;            /* TTL update: monotonic time at which the RRset now ends */
	__u16 ttl_of;            /* network order: type of the RRset whose TTL is updated; 0: data changed */
	__u8  shared;            /* TTL update: not 0: answers to other questions than name and type may hold the RRset */
	__u8  section;           /* TTL update: enum hydns_section */
	__u8  name_len;
	__u8  data[3];           /* goes on to the frame's end */
};

/*
 * HYDNS_FRAME_OVER: a resolution has ended for which queries may be parked. It stands behind the offer of its answer, and the
 * question's word is cleared after it was written.
 */
struct hydns_over {
	struct hydns_frame frame;
	__u64 key;               /* of the question, as in its word (resolver.h) */
};

HYDNS_STATIC_ASSERT(__builtin_offsetof(struct hydns_offer, data) == HYDNS_OFFER_DATA, "offer header");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_ring) <= HYDNS_RING_DATA, "ring header");
HYDNS_STATIC_ASSERT((HYDNS_RING_BYTES & (HYDNS_RING_BYTES - 1)) == 0, "ring size");
HYDNS_STATIC_ASSERT((HYDNS_NOT_OFFERED_PLACES & (HYDNS_NOT_OFFERED_PLACES - 1)) == 0, "places of answers not offered");

#endif
