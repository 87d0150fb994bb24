/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Between a plugin and hydnsd: messages of the plugin socket (SOCK_SEQPACKET). A plugin has one request under way;
 * hydnsd answers each by one reply with the request's seq. doc/architecture.md and doc/packet-rings.md have the sequences.
 *
 * These stay in every version, so that two sides of different versions can say that they differ:
 *   a message is a struct hydns_msg and a payload, 4096 octets at most;
 *   the first is HELLO, of type 1, whose payload begins with the plugin's version; 65 descriptors come with it at most;
 *   hydnsd of another version replies REFUSED, of type 13, with its own version in the head, and a line of text for the log;
 *   and it keeps the connection, whose end tells the plugin that it may try again.
 */
#ifndef HYDNS_SESSION_H
#define HYDNS_SESSION_H

#include "hydns/forwarding.h"
#include "hydns/queue.h"
#include "hydns/resolver.h"

#define HYDNS_MSG_MAX          4096  /* octets, with the header */
enum hydns_msg_type {            /* -> from the plugin, <- from hydnsd */
	HYDNS_MSG_HELLO = 1,     /* -> struct hydns_hello + descriptors: ring[threads], then the page's map if there is one */
	HYDNS_MSG_WELCOME,       /* <- struct hydns_welcome + descriptors: doorbell (eventfd), then the page's map if new */
	HYDNS_MSG_SERVICE,       /* -> + descriptor: a bound UDP socket of the resolver */
	HYDNS_MSG_ACL,           /* -> struct hydns_acl_list; any number of them after a HELLO or RESET */
	HYDNS_MSG_RESET,         /* -> struct hydns_hello: forget services and access list, configuration follows */
	HYDNS_MSG_READY,         /* -> no payload: the configuration is complete, offers may become rules */
	HYDNS_MSG_WITHDRAW,      /* -> struct hydns_withdraw; acknowledged after a grace period */
	HYDNS_MSG_STATS,         /* -> no payload */
	HYDNS_MSG_COUNTS,        /* <- struct hydns_counts, the reply to STATS */
	HYDNS_MSG_NOTE,          /* -> struct hydns_note: what the resolver's configuration keeps from the kernel, and why */
	HYDNS_MSG_BYE,           /* -> no payload: the resolver leaves, its rules with it */
	HYDNS_MSG_ACK,           /* <- no payload */
	HYDNS_MSG_REFUSED,       /* <- text: cause and mend */
	HYDNS_MSG_COOKIES,       /* -> struct hydns_cookies; acknowledged when the program uses them */
	HYDNS_MSG_CATCH_UP,      /* -> no payload; acknowledged when hydnsd has acted upon all that is in the rings, no rule of
				  * another epoch is left, and a grace period has passed */
	/* Packet rings, after READY: queue.h */
	HYDNS_MSG_QUEUE,         /* -> struct hydns_queue_request */
	HYDNS_MSG_PLAN,          /* <- struct hydns_queue_plan + descriptors: gate, then the map of ports; also unasked */
	HYDNS_MSG_LANE,          /* -> struct hydns_lane_key */
	HYDNS_MSG_SOCKETS,       /* <- struct hydns_lane_number + descriptors: AF_XDP socket[threads] */
	HYDNS_MSG_OPEN,          /* -> struct hydns_lane_open */
	HYDNS_MSG_CLOSE,         /* -> struct hydns_lane_number; acknowledged after a grace period */
	HYDNS_MSG_STRAYS,        /* -> no payload */
	HYDNS_MSG_STRAY_SOCKETS, /* <- no payload + descriptors: UDP socket[threads][2], IPv4 and IPv6 */
	HYDNS_MSG_FORWARDS,      /* -> struct hydns_forwards: the zones that the program may forward (forwarding.h) */
	HYDNS_MSG_LOG,           /* -> struct hydns_log_request, before READY: a new log ring, in place of a former one */
	HYDNS_MSG_LOG_RING,      /* <- no payload + descriptor: the log ring; the former one gets no more records */
	HYDNS_MSG_LIMITS,        /* -> no payload, before READY: a new map of budgets, in place of a former one */
	HYDNS_MSG_BUDGETS,       /* <- no payload + descriptor: the map, HYDNS_BUDGET_BUCKETS (budgets.h) */
	HYDNS_MSG_GUARD,         /* -> struct hydns_guard_report, after READY: below this suffix resolutions fail, or wait */
	HYDNS_MSG_WITHDRAW_NAMES, /* -> struct hydns_withdraw_names; acknowledged after a grace period */
	HYDNS_MSG_PRELOAD,       /* -> no payload: what became of the offers that are to stay? */
	HYDNS_MSG_PRELOADED,     /* <- struct hydns_preloaded, when hydnsd has acted upon all that is in the rings */
	HYDNS_MSG_NAMES,         /* -> struct hydns_names_request, after READY: a new set of names, in place of a former one */
	HYDNS_MSG_NAME_SET,      /* <- no payload + descriptor: the map, empty (names.h) */
};
struct hydns_msg {
	__u32 type;              /* enum hydns_msg_type */
	__u32 seq;
	__u32 len;               /* of the payload that follows */
	__u32 abi;               /* REFUSED: hydnsd's version, if the plugin's is another; else 0 */
};

#define HYDNS_IDENTITY_LEN     32
#define HYDNS_STALE_TEXT_LEN   48
struct hydns_hello {
	__u32 abi_version;       /* first for all time */
	__u32 threads;
	__u32 capacity;          /* most rules of this resolver; 0: as many as hydnsd gives */
	__u32 min_ttl;           /* seconds */
	__u32 max_ttl;           /* seconds; 0: no limit */
	__u16 flags;             /* HYDNS_RESOLVER_* except READY and ALLOWS_* */
	__u16 edns_size;         /* as in struct hydns_resolver_config */
	__u16 max_udp;
	__u16 refresh_percent;   /* last part of the TTL in which queries pass for refresh; 0: never */
	__u32 pid;
	__u32 admission;         /* sightings that make a question hot */
	__u32 park_ms;           /* how long a query may be parked; 0: none is */
	__u32 pending_max;       /* queries of this resolver that may be parked at once */
	__u32 pending_per_question; /* of them for one question */
	__u32 log_one_in;        /* as in struct hydns_resolver_config */
	__u32 stale_ttl;         /* of its rules should it crash, once their own TTL is over: in each record, seconds; ... */
	__u32 stale_longest;     /* ... how long from then, seconds; 0: its rules do not outlive it */
	__u32 stale_error;       /* not 0: with the extended error "Stale Answer" (RFC 8914) and this text */
	__u64 seed[2];           /* of the keys of struct hydns_not_offered, and of places; secret, the same as long as the
				  * page is */
	char  identity[HYDNS_IDENTITY_LEN]; /* NUL-terminated, printable: "unbound", for status */
	char  version[HYDNS_IDENTITY_LEN];  /* NUL-terminated, printable */
	char  stale_text[HYDNS_STALE_TEXT_LEN]; /* the same */
};
struct hydns_welcome {
	__u32 resolver;          /* its index */
	__u32 epoch;             /* first epoch of a new page; an adopted page keeps its own */
	__u32 adopted;           /* 1: the page of HELLO was known and stays in use */
	__u32 guard_failures;    /* what is worth a HYDNS_MSG_GUARD: failures a second, ... */
	__u32 guard_waiting;     /* ... resolutions that wait; 0: none is */
	__u32 reserved;
};

/* What a resolver has found of the names below a zone whose servers it asks. */
struct hydns_guard_report {
	__u32 failures;          /* resolutions a second that failed */
	__u32 waiting;           /* that waited at once, on average */
	__u32 len;               /* of the suffix */
	__u32 reserved;
	__u8  suffix[256];       /* wire format, lower case */
};

struct hydns_log_request {
	__u32 octets;            /* a power of two, HYDNS_LOG_RING_LEAST to HYDNS_LOG_RING_MOST (logged.h) */
	__u32 reserved;
};

struct hydns_acl_entry {
	__u8  addr[16];          /* network order, as in struct hydns_acl_key */
	__u8  prefixlen;         /* 0..128, of that form */
	__u8  action;            /* HYDNS_ACL_* */
	__u8  why;               /* place in clients.def: what the resolver's configuration says of these clients */
	__u8  reserved;
};
struct hydns_acl_list {
	__u32 count;
	struct hydns_acl_entry entry[];
};

/* What a note is about. A resolver may replace its notes of one kind: the first new one has anew set, and no text if
 * there is none. */
enum hydns_note_kind {
	HYDNS_NOTE_OBSTACLE,     /* the plugin offers nothing while this holds */
	HYDNS_NOTE_ADDRESSES,    /* where the program does not answer */
	HYDNS_NOTE_CLIENTS,      /* whom it does not answer */
	HYDNS_NOTE_OTHER,
	HYDNS_NOTE_RINGS,        /* why receive queues have no packet rings; the link thread's own */
	HYDNS_NOTE_FORWARD,      /* which zones are not forwarded though the configuration wants it, and why */
	HYDNS_NOTE_PRELOAD,      /* how far each preloaded zone is */
	HYDNS_NOTE_FORWARD_REFUSED, /* why hydnsd forwards none; the link thread's own */
	HYDNS_NOTES
};
struct hydns_note {
	__u32 kind;              /* enum hydns_note_kind */
	__u32 anew;              /* not 0: the former ones of this kind no longer hold */
	char  text[];            /* to the message's end */
};

enum hydns_scope { HYDNS_SCOPE_NAME = 1, HYDNS_SCOPE_SUBTREE, HYDNS_SCOPE_ALL };
struct hydns_withdraw {
	__u64 generation;        /* already advanced: hydnsd discards offers with an older one */
	__u32 scope;             /* enum hydns_scope; NAME and SUBTREE mean any dependency of a rule */
	__u32 name_len;
	__u8  name[256];         /* wire format, lower case */
};
/* Withdrawals that belong together, as those of a zone's version. */
#define HYDNS_WITHDRAW_NAMES_MOST 128
struct hydns_withdraw_names {
	__u64 generation;        /* already advanced, as above */
	__u32 count;             /* at most HYDNS_WITHDRAW_NAMES_MOST */
	__u32 reserved;
	__u8  entry[];           /* to the message's end: NAME or SUBTREE as an octet, and a name in wire format, lower case */
};

struct hydns_names_request {
	__u32 buckets;           /* a power of two, HYDNS_NAMES_BUCKETS_LEAST to HYDNS_NAMES_BUCKETS_MOST (names.h) */
	__u32 leaves;            /* of the table of children, at most HYDNS_LEAVES_MOST() of the buckets */
	__u32 zones;             /* that have a present SOA (soa.h), at most HYDNS_NAMES_ZONES_MOST */
	__u32 reserved;
};

/* Of offers with HYDNS_RULE_KEPT, and the rules that they became. */
struct hydns_preloaded {
	__u64 refused;           /* offers since the last reply that are no rules, and not among lost */
	__u8  full;              /* 1: the last was refused because there is no room for more such rules */
	__u8  all;               /* 1: any such rule may have been withdrawn since the last reply, also such as lost does not name */
	__u8  names;             /* 1: the program reads a set of names of this resolver */
	__u8  reserved[5];
	__u8  lost[];            /* to the message's end: struct hydns_lost, of rules withdrawn and offers that a withdrawal has overtaken; more may
				  * follow in the next reply */
};
struct hydns_lost {
	__u16 qtype;             /* network order */
	__u8  variant;           /* HYDNS_VARIANT_* */
	__u8  name_len;
	__u8  name[];            /* wire format, lower case; the next one begins at any octet */
} __attribute__((packed));

/*
 * Kernel answers of this resolver since its page was made. hydnsd also sends them unasked, with seq 0, when there will be
 * no more: when it has detached the program, or, before a WELCOME with a new page, when it has replaced the program that
 * counted for the former page.
 */
struct hydns_counts {
	__u64 answered;
	__u64 ipv6;
	__u64 edns;
	__u64 edns_do;
	__u64 ad;                /* queries with the AD bit */
	__u64 secure;            /* answers that were validated */
	__u64 bogus;             /* failures because validation has failed */
	__u64 nodata;            /* NOERROR without a record in the answer section, referrals left out */
	__u64 referrals;         /* from a zone: NOERROR, neither AA nor a record in the answer section */
	__u64 authoritative;     /* answers with AA */
	__u64 no_rd;             /* to queries without RD */
	__u64 from_zone;         /* from a zone, as it stands there (HYDNS_RULE_STATIC_TTL) */
	__u64 rules;             /* now */
	__u64 octets;            /* of DNS payload sent */
	__u64 cookie_valid;      /* as in struct hydns_resolver_count */
	__u64 cookie_client;
	__u64 cookie_invalid;
	__u64 limited;           /* queries that were dropped, as in struct hydns_resolver_count */
	__u64 limited_ipv6;
	__u64 limited_edns;
	__u64 slipped;           /* truncated replies, as there */
	__u64 slipped_ipv6;
	__u64 slipped_edns;
	__u64 slipped_aa;
	__u64 slipped_nxdomain;
	__u64 rcode[HYDNS_COUNT_RCODES];
	__u64 type[HYDNS_COUNT_TYPES]; /* of queries that were answered or dropped */
	struct hydns_discards discarded;
};

HYDNS_STATIC_ASSERT(HYDNS_MSG_HELLO == 1 && HYDNS_MSG_REFUSED == 13 && sizeof(struct hydns_msg) == 16 &&
		    !__builtin_offsetof(struct hydns_msg, type) && __builtin_offsetof(struct hydns_msg, seq) == 4 &&
		    __builtin_offsetof(struct hydns_msg, len) == 8 && __builtin_offsetof(struct hydns_msg, abi) == 12 &&
		    !__builtin_offsetof(struct hydns_hello, abi_version) && HYDNS_MSG_MAX <= 4096 && HYDNS_THREADS_MAX <= 64,
		    "what every version keeps");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_acl_entry) == 20, "no padding in a message");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_counts) + sizeof(struct hydns_msg) <= HYDNS_MSG_MAX, "counts fit");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_queue_plan) + sizeof(struct hydns_msg) <= HYDNS_MSG_MAX, "a plan fits");

#endif
