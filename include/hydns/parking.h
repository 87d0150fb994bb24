/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Parking: a query for a question whose resolution is under way (resolver.h) does not go to the resolver. The program copies
 * its frame into the ring buffer hydns_parked and drops it. When the resolution has ended, hydnsd replays the frame:
 * it comes in again, and is answered by the rule that the resolver has offered, or passes. What hydnsd and the program agree on.
 */
#ifndef HYDNS_PARKING_H
#define HYDNS_PARKING_H

#include "hydns/common.h"
#include "hydns/forwarding.h"

#define HYDNS_PARKED_FRAME     512   /* octets of the longest frame that is parked */
#define HYDNS_PARKED_RING      (1U << 22) /* octets of hydns_parked */
#define HYDNS_PENDING_MOST     65536 /* frames of one resolver at most, whatever it asks for */
/* After so long the program ignores a word: a plugin that forgot it would make each query for its question wait. */
#define HYDNS_UNDER_WAY_MS     120000U
/* hydnsd writes its heartbeat each time that it works, at least every 50 ms. While it is older nothing is parked. */
#define HYDNS_PARKING_STALE_NS (300 * HYDNS_NS_PER_MS)

enum hydns_spill {
#define HYDNS_SPILL(name, text) HYDNS_SPILL_##name,
#include "hydns/spills.def"
#undef HYDNS_SPILL
	HYDNS_SPILLS
};

/*
 * Of a resolver, in the array hydns_parking, which hydnsd maps. hydnsd writes all of it but waiting, to which the program
 * adds and from which hydnsd subtracts, and full.
 */
struct hydns_parking {
	__u64 seed[2];       /* of its plugin's keys, from HELLO */
	__u64 heartbeat_ns;  /* hydnsd's; monotonic */
	__u32 max;           /* frames that may wait; 0: nothing is parked */
	__u32 resume;        /* once there were as many, nothing is parked until so few are left */
	__u32 per_question;
	__u32 waiting;
	__u32 full;          /* not 0: there were as many; a program clears it again */
	__u32 reserved[5];
};

/* A record of hydns_parked, and then frame_len octets, the frame as it came. */
struct hydns_parked {
	__u64 key;           /* of the question, with the resolver's seed */
	__u64 rule_key;      /* the same with the store's */
	__u64 at_ns;         /* monotonic */
	__u32 ifindex;
	__u32 rx_queue;
	__u16 frame_len;
	__u16 dns_off;       /* where the message begins; the question is behind its header, in the letters of the client */
	__u8  resolver;
	__u8  name_len;
	__u8  variant;
	__u8  ipv6;
};

/* A record of hydns_parked for a query that was forwarded (forwarding.h): of this length, which no other has. */
struct hydns_forwarded_query {
	struct hydns_parked parked;
	__u8 frame[HYDNS_PARKED_FRAME];
	struct hydns_forwarded forwarded;
};

/* Per CPU and resolver: map hydns_spills. */
struct hydns_parking_count {
	__u64 parked;
	__u64 spilled[HYDNS_SPILLS];
};

/*
 * Frames that hydnsd replays, the array hydns_replays of one element, which hydnsd maps. hydnsd runs hydns_xdp over live
 * carriers: frames of an Ethernet type of their own that hold the secret, so that nobody on a link can make one. Each
 * carrier becomes the next of these frames; a carrier without one is dropped, and ends the replay on its CPU.
 */
#define HYDNS_CARRIER_TYPE     0x88b5 /* IEEE 802 local experimental Ethertype 1 */
#define HYDNS_CARRIER_LEN      64
#define HYDNS_REPLAYS          63    /* with the last carrier, as many as the kernel makes at once, so that none is used twice */
#define HYDNS_REPLAY_PASSED    1
#define HYDNS_REPLAY_FORWARDED 2     /* or parked, since its question was open again */
#define HYDNS_REPLAY_LATER     3     /* a rule answers it, by another link than those before it */
struct hydns_replay_frame {
	__u32 len;           /* 1..HYDNS_PARKED_FRAME */
	__u16 passed;        /* program: HYDNS_REPLAY_*, why no rule has answered it */
	__u16 refused;       /* loader: its answer found no room at the link */
	__u32 tried;         /* not 0: it may be forwarded to other upstream servers than these */
	__u32 reserved;
	__u64 at_ns;         /* of it: when it first came */
	__u8  octets[HYDNS_PARKED_FRAME];
};
/* Frames that were given to a link together; the last ones were dropped. */
struct hydns_bulk {
	__u16 sent, dropped;
};
struct hydns_replays {
	__u64 secret[2];     /* stands behind a carrier's Ethernet header */
	__u32 count;         /* frames below */
	__u32 next;          /* program: the next one */
	__u32 passed;        /* program: how many no rule has answered */
	__u32 on_cpu;        /* program: the CPU on which they run, plus 1 */
	__u32 bulks;         /* program: how many of these */
	__u32 link;          /* program, with routed replies: the interface that these answers leave by; 0: none has left */
	struct hydns_bulk bulk[HYDNS_REPLAYS + 1];
	struct hydns_replay_frame frame[HYDNS_REPLAYS + 1]; /* a power of two, for the verifier */
};

#ifndef __BPF__
/* "PER_QUESTION" */
static inline const char *hydns_spill_name(enum hydns_spill s)
{
	static const char *const names[] = {
#define HYDNS_SPILL(name, text) #name,
#include "hydns/spills.def"
#undef HYDNS_SPILL
	};

	return names[s];
}

static inline const char *hydns_spill_text(enum hydns_spill s)
{
	static const char *const texts[] = {
#define HYDNS_SPILL(name, text) text,
#include "hydns/spills.def"
#undef HYDNS_SPILL
	};

	return texts[s];
}
#endif

HYDNS_STATIC_ASSERT(sizeof(struct hydns_parking) == 64, "a cache line");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_parked) == 40, "no padding in a record");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_forwarded_query) == 40 + HYDNS_PARKED_FRAME + 56, "no padding in a record");
HYDNS_STATIC_ASSERT(HYDNS_FORWARD_LEFT_HYDNSD - HYDNS_FORWARD_LEFT_PER_QUESTION == HYDNS_SPILL_HYDNSD, "spills and lefts agree");
HYDNS_STATIC_ASSERT((HYDNS_REPLAYS & (HYDNS_REPLAYS + 1)) == 0, "an index is masked");

#endif
