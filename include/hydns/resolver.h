/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the program knows of a resolver, and what it counts for it: services, access list, resolver page, cookie secrets,
 * flags, counters. hydnsd writes all of it but the page, which is the plugin's.
 */
#ifndef HYDNS_RESOLVER_H
#define HYDNS_RESOLVER_H

#include "hydns/budgets.h"
#include "hydns/common.h"
#include "hydns/queue.h"
#include "hydns/rates.h"

/* --- services and clients ----------------------------------------------------------------------------- */
/* Key of hydns_services. An IPv4 address stands as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2). */
struct hydns_service_key {
	__u8  addr[16];     /* network order */
	__u16 port;         /* network order */
	__u16 reserved;
};
struct hydns_service {
	__u32 resolver;
};

/* Key of a resolver's access list, an LPM trie. prefixlen counts the bits of addr, which is as above. */
struct hydns_acl_key {
	__u32 prefixlen;    /* 0..128 */
	__u8  addr[16];     /* network order */
};
#define HYDNS_ACL_PASS         0     /* what only the resolver can decide */
#define HYDNS_ACL_ALLOW        1
#define HYDNS_ACL_ALLOW_COOKIE 2     /* allowed with a valid server cookie alone */
#define HYDNS_ACL_ALLOW_EXEMPT 3     /* allowed, and their responses are not counted */

/* --- resolver page ------------------------------------------------------------------------------------ */
/*
 * The flags of the page's epoch. While SUSPENDED is set no rule counts, for no rule has it. While MARKED alone is set,
 * those rules count none of whose places is marked. When the flags are cleared, all rules of the epoch count again. A
 * place is marked before the flag is set.
 */
#define HYDNS_EPOCH_SUSPENDED  0x80000000U
#define HYDNS_EPOCH_MARKED     0x40000000U
#define HYDNS_EPOCH_FLAGS      (HYDNS_EPOCH_SUSPENDED | HYDNS_EPOCH_MARKED)
/* A bit for each place; names that share one are marked together. */
#define HYDNS_MARK_WORDS       496
#define HYDNS_PLACES           (HYDNS_MARK_WORDS * 64)
/* The place of a name, from its hydns_place_hash() with the seed of HELLO. */
#define HYDNS_PLACE(hash)      ((__u16)(((hash) >> 32) * HYDNS_PLACES >> 32))

/* Written by the plugin alone, each word at once: by an aligned store, or where several of its threads write (epoch,
 * generation, marks), by an atomic operation. */
struct hydns_resolver_page {
	__u32 epoch;
	__u32 cookies;      /* set of cookie secrets that the resolver uses; 0: none */
	__u64 generation;   /* advanced after every removal from the resolver's cache */
	__u64 heartbeat_ns; /* monotonic; 0: the resolver has gone */
	__s32 tai_offset;   /* seconds that CLOCK_TAI is ahead of the wall clock */
	__u32 queue;        /* HYDNS_QUEUE_*: queue.h */
	__u32 under_way;    /* questions in the buckets behind the page; 0: the program does not look there */
	__u32 forward;      /* number of the zones that may be forwarded (forwarding.h); 0: none may */
	__s64 wall_ns;      /* nanoseconds that the wall clock is ahead of the monotonic one */
	struct hydns_limits limits;
	__u64 budget_seed[HYDNS_BUDGET_SEEDS]; /* of hydns_budget_hash(), for budgets and rates; secret */
	struct hydns_rates rates;
	__u64 marks[HYDNS_MARK_WORDS]; /* bit place % 64 of word place / 64 */
};

/* --- questions under way ------------------------------------------------------------------------------ */
/*
 * Behind the page its map has buckets of questions that clients wait for: a resolution is under way, and somebody has asked
 * again meanwhile. The plugin writes a word when that happens and clears it when the resolution has ended; queries for such
 * a question may be parked (parking.h). The key is hydns_key_hash() of the question, as of resolver 0, with the seed of
 * HELLO: the bucket comes from its lower half, the upper half is in the word. A bucket is a cache line.
 */
#define HYDNS_UNDER_WAY_BUCKETS 4096  /* power of two */
#define HYDNS_UNDER_WAY_ENTRIES 4     /* of a bucket; a question that finds them taken is not parked */
struct hydns_under_way {
	__u64 word;         /* HYDNS_UNDER_WAY_WORD(); 0: free. Plugin: by compare-and-swap */
	__u32 parked;       /* program: queries parked since the word was written, by atomic additions; plugin: 0, before that */
	__u32 reserved;
};
struct hydns_under_way_bucket {
	struct hydns_under_way entry[HYDNS_UNDER_WAY_ENTRIES];
};
/* ms: monotonic milliseconds at which the plugin wrote it, modulo 2^32. */
#define HYDNS_UNDER_WAY_WORD(key, ms) (((key) & 0xffffffff00000000ULL) | (__u32)(ms))
#define HYDNS_UNDER_WAY_BUCKET(key)   ((__u32)(key) & (HYDNS_UNDER_WAY_BUCKETS - 1))

/* --- backlogs of packet rings -------------------------------------------------------------------------- */
/*
 * Behind the buckets: how many frames lie unread in a thread's packet ring of a lane. The kernel drops what it is to put into a
 * full ring, so the program leaves that to the stack. Counters wrap at 2^32. The plugin sets all words before it opens the
 * lane with this page.
 */
struct hydns_backlog {
	__u32 given;        /* frames that the program has redirected: program, by atomic additions */
	__u32 room;         /* frames that may lie unread; 0: none. Plugin, as the others */
	__u32 taken;        /* frames that the thread has read */
	__u32 dropped;      /* frames that the kernel has dropped all the same, as of the last second */
	__u8  pad[48];      /* a cache line */
};

/* Elements of the map: the page; the buckets, HYDNS_PAGE_BUCKETS in each; the backlogs, one element for each place of a lane
 * (struct hydns_lane), in it one for each thread. */
#define HYDNS_PAGE_BUCKETS     64
#define HYDNS_PAGE_BACKLOGS    (1 + HYDNS_UNDER_WAY_BUCKETS / HYDNS_PAGE_BUCKETS)
#define HYDNS_PAGE_ELEMENTS    (HYDNS_PAGE_BACKLOGS + HYDNS_LANES_MOST)
#define HYDNS_PAGE_OCTETS      (HYDNS_PAGE_ELEMENTS * sizeof(struct hydns_resolver_page))

/* --- cookies ------------------------------------------------------------------------------------------ */
/*
 * Secrets of DNS cookies (RFC 9018), the active one first, where HYDNS_COOKIES_INDEX(resolver, set) says: two sets for
 * each resolver. A set counts while its number is the one on the resolver page, so the plugin invalidates a set by one
 * store. Also the payload of HYDNS_MSG_COOKIES.
 */
#define HYDNS_COOKIE_SECRETS   2     /* RFC 7873 section 7.1: the current one and another */
#define HYDNS_COOKIE_SECRET_LEN 16   /* octets: RFC 9018 section 4.4 */
struct hydns_cookies {
	__u32 set;          /* never 0 */
	__u32 count;        /* 0: the resolver makes no cookies */
	__u64 secret[HYDNS_COOKIE_SECRETS][HYDNS_COOKIE_SECRET_LEN / 8]; /* octets in memory order */
};
#define HYDNS_COOKIES_INDEX(resolver, set) ((resolver) * 2 + ((set) & 1))

/* --- configuration ------------------------------------------------------------------------------------ */
#define HYDNS_RESOLVER_IGNORES_COOKIE 0x01 /* it answers as if a COOKIE option were not there */
#define HYDNS_RESOLVER_ROTATES        0x02 /* it rotates RRsets */
#define HYDNS_RESOLVER_KEEPS_CASE     0x04 /* it sends names in the letters in which it first received them */
#define HYDNS_RESOLVER_STRICT_EDNS    0x08 /* it checks every option, refuses an invalid cookie, sends a new one each time */
#define HYDNS_RESOLVER_OWN_PROOFS     0x10 /* it stores authority sections with each answer, and refreshes them with it */
#define HYDNS_RESOLVER_ALLOWS_IPV4    0x20 /* the access list allows every IPv4 client: the program does not look it up; */
#define HYDNS_RESOLVER_ALLOWS_IPV6    0x40 /* every IPv6 client. Both are set by hydnsd, from the access list */
#define HYDNS_RESOLVER_READY          0x80 /* services, access list and this record are complete */
#define HYDNS_RESOLVER_SHUFFLES      0x100 /* with ROTATES: it rotates what follows the first record, too */
#define HYDNS_RESOLVER_DISCARDS      0x200 /* it drops its reply to a query that has waited longer than park_ms of HELLO */
#define HYDNS_RESOLVER_LOGS          0x400 /* it logs its clients' messages, so answers are logged, or not given (logged.h) */
#define HYDNS_RESOLVER_LOGS_ALL      0x800 /* with LOGS: what finds no room in the log ring passes; else it is counted as lost */
#define HYDNS_RESOLVER_LIMITS       0x1000 /* it limits its clients, so queries are counted, or not answered (budgets.h) */
#define HYDNS_RESOLVER_RATES        0x2000 /* it limits responses, so they are counted, or not given (rates.h); not with LIMITS */
/* Its queries are logged, counted, or both; or its responses are counted. */
#define HYDNS_RESOLVER_ACCOUNTS      (HYDNS_RESOLVER_LOGS | HYDNS_RESOLVER_LIMITS | HYDNS_RESOLVER_RATES)

/* What a plugin may say in HELLO; hydnsd adds the others. */
#define HYDNS_RESOLVER_HELLO_FLAGS (HYDNS_RESOLVER_IGNORES_COOKIE | HYDNS_RESOLVER_ROTATES | HYDNS_RESOLVER_KEEPS_CASE | \
				    HYDNS_RESOLVER_STRICT_EDNS | HYDNS_RESOLVER_OWN_PROOFS | HYDNS_RESOLVER_SHUFFLES | \
				    HYDNS_RESOLVER_DISCARDS | HYDNS_RESOLVER_LOGS | HYDNS_RESOLVER_LOGS_ALL | \
				    HYDNS_RESOLVER_LIMITS | HYDNS_RESOLVER_RATES)
struct hydns_resolver_config {
	__u16 flags;        /* HYDNS_RESOLVER_* */
	__u16 edns_size;    /* UDP payload size in the resolver's OPT */
	__u16 max_udp;      /* the resolver's limit of a UDP reply */
	__u16 acl_half;     /* which of its two access lists counts: ACL index = resolver * 2 + half */
	__u32 log_one_in;   /* with LOGS and without LOGS_ALL: one in so many answers is logged; 0 and 1: all */
	__u32 reserved;
	__u64 stale_until_ns; /* monotonic: until then its rules answer although it has ended; 0: they do not. Program: 0 when a
			       * process listens again */
};

/* --- counters ----------------------------------------------------------------------------------------- */
/* Per CPU and resolver, counted with every answer: what hits per rule can't tell. */
struct hydns_resolver_count {
	__u64 answered;
	__u64 ipv6;
	__u64 edns;
	__u64 ad;           /* queries with the AD bit */
	__u64 octets;       /* of DNS payload sent */
	__u64 cookie_valid; /* queries with a valid server cookie, */
	__u64 cookie_client;/* with a client cookie alone, */
	__u64 cookie_invalid;/* with a server cookie that is forged, expired or from the future */
	__u64 limited;      /* not answered: dropped, because the client was above the resolver's limit; such queries are counted among those with
			     * a cookie, too */
	__u64 limited_ipv6; /* of those, by IPv6, */
	__u64 limited_edns; /* and with EDNS */
	__u64 slipped;      /* answered with TC instead, because the client was above the resolver's limit of responses; counted in octets,
			     * and among queries with AD, but not above */
	__u64 slipped_ipv6; /* of those, by IPv6, */
	__u64 slipped_edns; /* with EDNS, */
	__u64 slipped_aa;   /* whose reply has AA, */
	__u64 slipped_nxdomain; /* or NXDOMAIN */
};

/*
 * The tally: answers by resolver, type and response code, in the map hydns_tallies, so that it outlives hydnsd, which
 * alone writes it. The map hydns_seen holds for each ordinal how many of its hits the tally has. The two change
 * together: hydnsd writes into the journal what it is about to write, and after a kill the next hydnsd completes that.
 */
#define HYDNS_COUNT_TYPES      258   /* by query type 0..256; the last for all others */
#define HYDNS_COUNT_RCODES     16
/* Parked queries that hydnsd has dropped, since the resolver sends no reply to who has waited so long. It counts such queries. */
struct hydns_discards {
	__u64 queries, ipv6, edns, edns_do, ad;
};
struct hydns_type_counts {
	__u64 type[HYDNS_COUNT_TYPES];
};
struct hydns_tally {
	__u64 edns_do, secure, bogus, nodata, referrals, authoritative, no_rd, from_zone;
	__u64 rcode[HYDNS_COUNT_RCODES];
	__u64 type[HYDNS_COUNT_TYPES];       /* of dropped ones, too; not of answers from templates, which the program counts */
	struct hydns_discards discarded;
};
#define HYDNS_TALLY_WORDS      (8 + HYDNS_COUNT_RCODES + HYDNS_COUNT_TYPES + 5)
#define HYDNS_JOURNAL_WORDS    9     /* words of a tally that one rule's hits add to, at most */
struct hydns_tally_journal {
	__u32 begun;                         /* not 0: the rest is valid */
	__u32 ordinal;
	__u32 seen;                          /* new value of the ordinal's word in hydns_seen */
	__u16 resolver;
	__u16 words;
	struct {
		__u64 value;                 /* new value */
		__u64 word;                  /* of this word of the resolver's tally */
	} word[HYDNS_JOURNAL_WORDS];
};
struct hydns_tallies {
	struct hydns_tally_journal journal;
	struct hydns_resolver_count base[HYDNS_RESOLVERS]; /* the program's counters when the page was made, ... */
	struct hydns_queue_count queued_base[HYDNS_RESOLVERS]; /* ... and of packet rings */
	struct hydns_tally of[HYDNS_RESOLVERS];
};

HYDNS_STATIC_ASSERT(sizeof(struct hydns_resolver_page) == 4096, "a page");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_under_way_bucket) == 64 && HYDNS_PAGE_BUCKETS * 64 == 4096, "buckets fill elements");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_backlog) * HYDNS_THREADS_MAX == 4096, "backlogs fill elements");
HYDNS_STATIC_ASSERT(HYDNS_PLACES <= 1U << 16, "a place fits 16 bits");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_cookies) == 8 + HYDNS_COOKIE_SECRETS * HYDNS_COOKIE_SECRET_LEN,
		    "no padding in a message");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_service_key) == 20, "no padding in a hash key");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_acl_key) == 20, "no padding in a trie key");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_tally) == HYDNS_TALLY_WORDS * sizeof(__u64), "a tally is words");

#endif
