/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Forwarding: a query for a name in a zone that the resolver forwards, and that no rule answers, leaves from the program
 * straight to an upstream server. The client's frame is parked meanwhile (parking.h). The program hands the upstream's answer to hydnsd,
 * which makes a rule of it and replays the frame. What a plugin, hydnsd and the program agree on; doc/forwarding.md has the
 * picture.
 */
#ifndef HYDNS_FORWARDING_H
#define HYDNS_FORWARDING_H

#include "hydns/common.h"
#include "hydns/queue.h"

#define HYDNS_FORWARD_UPSTREAMS 16    /* of one resolver */
#define HYDNS_FORWARD_ZONES    512    /* of one resolver, with those that are left out */
#define HYDNS_FORWARD_TAGS     2      /* VLAN tags of a request at most */
#define HYDNS_FORWARD_LABELS   16     /* of a name at most, without the root's; longer names are not forwarded */
#define HYDNS_FORWARD_RECORDS  32     /* of a relayed answer at most */
#define HYDNS_FORWARD_OPEN     16384  /* requests of all resolvers at once */
#define HYDNS_FORWARD_ANSWER   HYDNS_UPSTREAM_EDNS_MAX /* octets of the longest answer: the UDP size that requests say */
#define HYDNS_FORWARD_ANSWERS  (1U << 20) /* octets of hydns_answered: some 6,000 answers, 800 of the longest */
/* A port word with this device is a request's (queue.h): no interface has this number. */
#define HYDNS_FORWARD_DEVICE   63

HYDNS_STATIC_ASSERT(HYDNS_FORWARD_DEVICE >= HYDNS_QUEUE_DEVICES, "no interface's number");

/* Why a query for a forwarded name was left to the resolver. */
enum hydns_forward_left {
#define HYDNS_FORWARD_LEFT(name, text) HYDNS_FORWARD_LEFT_##name,
#include "hydns/forward_left.def"
#undef HYDNS_FORWARD_LEFT
	HYDNS_FORWARD_LEFTS
};

/* --- what hydnsd tells the program -------------------------------------------------------------------- */
/* How to reach an upstream server. hydnsd writes it while the server is not usable. */
struct hydns_forward_way {
	__u8  addr[16];     /* network order, IPv4 as ::ffff:a.b.c.d */
	__u8  source[16];   /* the host's address for it, in the same form */
	__u8  macs[12];     /* destination and source Ethernet address */
	__u16 port;         /* network order */
	__u16 flags;        /* HYDNS_FORWARD_WAY_* */
	__u32 ifindex;      /* that requests leave by; the program is attached to it */
	__u16 tag[HYDNS_FORWARD_TAGS]; /* HYDNS_FORWARD_TAG(), the innermost first; 0: none */
};
/* Answers may also come, without a tag, by other interfaces with the program. */
#define HYDNS_FORWARD_WAY_ANY  0x1
/* The VLAN tag of a frame. A tag's priority says nothing about its VLAN. provider: it is an 802.1ad tag, not an 802.1Q one. */
#define HYDNS_FORWARD_TAG(id, provider) (0x8000 | ((provider) ? 0x4000 : 0) | ((id) & HYDNS_FORWARD_TAG_ID))
#define HYDNS_FORWARD_TAG_ID   0xfff
#define HYDNS_FORWARD_TAG_IS_PROVIDERS(tag) ((tag) & 0x4000)

/* Of a resolver, in the array hydns_forwarding, which hydnsd maps. */
struct hydns_forwarding {
	__u32 number;       /* of the configuration that holds; 0: none. Counts while the resolver page has the same */
	__u32 depths;       /* bit n: there are zones of n labels */
	__u32 usable;       /* bit i: upstream i may be asked now */
	__u32 reserved;
	struct hydns_forward_way way[HYDNS_FORWARD_UPSTREAMS];
};

/*
 * Key of hydns_forward_zones: the hash of a zone's name. That begins with HYDNS_FORWARD_HASH_ROOT() for the root, and takes the
 * name's labels from the last one on. A label's hash takes its octets, lower case, from the first one on. An attacker who finds two
 * names with one hash has a query forwarded that hydnsd, which knows the names, then leaves to the resolver.
 */
struct hydns_forward_zone_key {
	__u64 hash;
	__u32 number;       /* as in hydns_forwarding */
	__u32 resolver;
};
struct hydns_forward_zone {
	__u32 upstreams;    /* bit i: upstream i of the resolver; 0: names below are not forwarded */
	__u32 zone;         /* its place in the plugin's list */
};
#define HYDNS_FORWARD_PRIME             0x9e3779b97f4a7c15ULL
#define HYDNS_FORWARD_HASH_ROOT(seed)   ((seed)[0] | 1)
#define HYDNS_FORWARD_LABEL(seed)       ((seed)[1] | 1)
#define HYDNS_FORWARD_OCTET(hash, c)    ((((hash) ^ (c)) * HYDNS_FORWARD_PRIME) ^ (hash) >> 29)
#define HYDNS_FORWARD_NAME(hash, label) ((((hash) ^ (label)) * HYDNS_FORWARD_PRIME) ^ (label) >> 31)

/* --- requests ----------------------------------------------------------------------------------------- */
/* Key of hydns_forward_open: the question, as in struct hydns_parked. An element is there from before the request leaves until hydnsd has
 * acted upon its end; meanwhile queries for the question are parked. */
struct hydns_forward_question {
	__u64 key;
	__u32 resolver;
	__u32 reserved;
};
struct hydns_forward_open {
	__u32 parked;       /* program: queries parked for it, by atomic additions */
	__u32 reserved;
};

/* By port, in hydns_forwards: the request that left from there while the port's word is its own. */
struct hydns_forward_request {
	__u64 key;
	__u64 word;         /* of its port */
	__u64 letters;      /* HYDNS_FORWARD_LETTERS() */
	__u16 id;           /* network order */
	__u8  upstream;
	__u8  resolver;
	__u32 reserved;
};
/* A request's name is in lower case but for those letters of octet i for which bit i % 64 is set. The length octets are no letters. */
#define HYDNS_FORWARD_CAPITAL(letters, i) ((letters) >> ((i) & 63) & 1)

/* What the program tells hydnsd of a request, in hydns_parked before the client's query. */
struct hydns_forwarded {
	__u64 generation;   /* stamp of the resolver page, read before the request left */
	__u64 word;         /* of its port */
	__u64 letters;
	__u64 sent_ns;      /* monotonic */
	__u32 epoch;
	__u32 number;       /* of the configuration */
	__u32 zone;
	__u16 port;         /* host order */
	__u16 id;           /* network order */
	__u8  upstream;
	__u8  reserved[3];
	__u32 tried;        /* upstream servers that were asked before, in vain */
};

/* A record of hydns_answered, and then len octets, the upstream's message. Everything about it that the program knows fits the
 * request: addresses, ports, id, question, letters; its port is free. */
struct hydns_forward_answer {
	__u64 key;
	__u64 word;         /* the request's */
	__u64 at_ns;        /* monotonic */
	__u16 len;
	__u16 port;
	__u16 id;
	__u8  resolver;
	__u8  upstream;
};

/* Per CPU and resolver: map hydns_forward_count. */
struct hydns_forward_count {
	__u64 sent;
	__u64 joined;       /* queries parked because their question was open */
	__u64 answers;
	__u64 mismatched;   /* packets from an upstream's address to an open port that were not the answer */
	__u64 left[HYDNS_FORWARD_LEFTS];
};

/* --- message of a plugin ------------------------------------------------------------------------------ */
/*
 * HYDNS_MSG_FORWARDS: the zones that the program may forward, in one message or several; after READY, and again whenever they
 * change. When the last one is acknowledged, they hold for a page with their number, and no others do. Without zones: none is
 * forwarded. upstreams * struct hydns_forward_server follow, in the first message alone, and zones * struct
 * hydns_forward_name.
 */
struct hydns_forwards {
	__u32 number;       /* never 0, never used before for this page */
	__u16 flags;        /* HYDNS_FORWARDS_* */
	__u16 upstreams;
	__u16 zones;
	__u16 reserved;
	__u32 max_ttl;      /* answers with a TTL above it are the resolver's; seconds */
	__u32 max_negative_ttl;
};
#define HYDNS_FORWARDS_FIRST   0x1
#define HYDNS_FORWARDS_LAST    0x2
/* In the first message: */
#define HYDNS_FORWARDS_ADDS    0x4 /* the resolver adds addresses to answers that name hosts (MX, SRV, SVCB, HTTPS), if it has some */
#define HYDNS_FORWARDS_SOA_TTL 0x8 /* its negative answers live as long as the SOA's TTL, whatever its minimum */
struct hydns_forward_server {
	__u8  addr[16];     /* network order */
	__u16 port;         /* network order */
	__u16 reserved;
};
struct hydns_forward_name {
	__u32 upstreams;    /* bit i: server i; 0: names at and below it are not forwarded */
	__u8  name_len;
	__u8  name[HYDNS_NAME_MAX]; /* wire format, lower case */
};

HYDNS_STATIC_ASSERT(sizeof(struct hydns_forward_way) == 56 && sizeof(struct hydns_forwarding) == 16 + 16 * 56, "no padding");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_forward_zone_key) == 16 && sizeof(struct hydns_forward_question) == 16, "keys");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_forwarded) == 56 && sizeof(struct hydns_forward_answer) == 32, "records");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_forward_request) == 32, "a request");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_forward_name) == 260, "a zone");

#endif
