/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the XDP program, hydnsd and the resolver plugins agree on: map values, ring frames, control
 * messages. Nothing else, and nothing twice. Integers are in the machine's own byte order unless a
 * field says "network order". "Monotonic" is CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef HYDNS_ABI_H
#define HYDNS_ABI_H

#include <linux/types.h>

#define HYDNS_ABI_VERSION      9

/* --- limits ------------------------------------------------------------------------------------ */
#define HYDNS_NAME_MAX         255   /* wire name with its root label, RFC 1035 section 3.1 */
#define HYDNS_QUESTION_MAX     (HYDNS_NAME_MAX + 4)
#define HYDNS_QUERY_MAX        512   /* longest UDP payload of a query that the kernel path reads */
#define HYDNS_OPT_LEN          11    /* an OPT record without options, RFC 6891 section 6.1.2 */
#define HYDNS_RESOLVERS      16    /* resolvers (and, later, views) on one host */
#define HYDNS_SERVICES         1024  /* address and port pairs */
#define HYDNS_INTERFACES       64    /* attached to, on one host */
#define HYDNS_ACL_ENTRIES      4096  /* prefixes of one resolver */
#define HYDNS_TTLS_MAX         32    /* records in one answer */
#define HYDNS_ROTATIONS_MAX    2     /* rotated RRsets in one answer */
/* Owner names whose places a rule can hold; a rule with more waits whenever any name is marked. */
#define HYDNS_RULE_PLACES_MAX  8
#define HYDNS_THREADS_MAX      64    /* rings of one resolver */
#define HYDNS_COOKIE_SECRETS   2     /* of one resolver: RFC 7873 section 7.1, the current and another */
#define HYDNS_COOKIE_SECRET_LEN 16   /* RFC 9018 section 4.4 */
#define HYDNS_RING_BYTES       (1U << 18)

/* A resolver writes its heartbeat every BEAT; a rule counts while the beat is younger than STALE. */
#define HYDNS_HEARTBEAT_BEAT_NS   100000000ULL
#define HYDNS_HEARTBEAT_STALE_NS  900000000ULL
/* After passing one query for refresh, the kernel answers again for this long before the next one. */
#define HYDNS_REFRESH_REARM_MS    100U
/* The last part of a rule's life, in which it is renewed, is at least this long (at most half the life):
 * an authority that needs a retransmission must still be in time. */
#define HYDNS_REFRESH_MIN_MS      2000U

/* --- rule store --------------------------------------------------------------------------------- */
/*
 * Slots of all sizes stand in one array, the map hydns_slots. A handle names a slot: the number of its first unit,
 * plus one; 0: none. An element of the map is a chunk; no slot begins in its last HYDNS_SLOT_MOST octets, so a reader
 * may look at so many octets from a slot's beginning on, whatever its size. hydns-kern/store/slots.h says which sizes there
 * are, and where.
 */
#define HYDNS_UNIT             16        /* octets; slots begin and end at multiples of it */
#define HYDNS_SLOT_MOST        1536      /* octets of the largest slot */
#define HYDNS_CHUNK            (1U << 18)
#define HYDNS_CHUNK_UNITS      (HYDNS_CHUNK / HYDNS_UNIT)
#define HYDNS_SPAN             (1U << 14) /* octets that hold slots of one size at a time */
#define HYDNS_SPAN_UNITS       (HYDNS_SPAN / HYDNS_UNIT)
#define HYDNS_ORDINALS_MOST    (1U << 27)

#define HYDNS_RULE_SECURE      0x01  /* validated: AD is set when the query has AD or DO */
#define HYDNS_RULE_STATIC_TTL  0x02  /* authoritative data: the TTLs are sent as they stand, and clients whose EDNS size is
				      * 512 or less pass, for to them such a server says less */
#define HYDNS_RULE_LEFT_OUT    0x04  /* names follow the answer */

#define HYDNS_VARIANT_DO       0x01  /* the answer to a query with EDNS DO (RFC 3225) */
#define HYDNS_VARIANT_NO_RD    0x02  /* the answer to a query that does not ask for recursion */
#define HYDNS_VARIANTS         0x03

/*
 * An RRset that the program sends rotated: len octets from start on in the answer, the RRs whose TTLs are
 * those from number first to number last of the rule. Their owners are equally long, so that each RR begins
 * as far before its TTL as the first one; their data may differ in length. len 0: unused.
 */
struct hydns_rotation {
	__u32 start:11;
	__u32 len:11;
	__u32 first:5;
	__u32 last:5;
};
#define HYDNS_ROTATION_LEN     4

/*
 * One rule, at the start of a slot. The slot goes on with data:
 *   name      name_len octets, wire format, lower case, root label included
 *   type      2 octets, network order;   class  2 octets, network order (IN)
 *   answer    answer_len octets: the resolver's own message after the question, without its OPT;
 *             each TTL holds the seconds left at base_ns
 *   ttl       from the next even offset in the slot on: ttl_count __u16, each the offset of a TTL field in the answer
 *   rotation  rotation_count struct hydns_rotation, at an even offset
 *   owners    place_count __u16: the places (HYDNS_PLACE) of all names that the answer depends on, which a change
 *             or a flush finds it by
 *   left out  with HYDNS_RULE_LEFT_OUT alone: 1 octet, how many names follow (never 0), and these, wire format,
 *             lower case: owners of RRsets that the resolver's cached answer has and its reply does not show (proofs
 *             without DO, additional data). Without one of them the resolver would ask anew. The program never
 *             reads them.
 * A slot is immutable from its publication in the index until a grace period after its removal, but for
 * refresh_ms, hits_end and any octet of a TTL, which hydnsd may change by one store, and hits.
 */
struct hydns_rule {
	__u64 base_ns;      /* monotonic time at which the wall clock's second began that TTLs refer to */
	__u32 expire_ms;    /* after base_ns; from then on the rule is dead */
	__u32 refresh_ms;   /* after base_ns; from then on one query per re-arm time is passed */
	__u32 epoch;        /* counts only while it equals the resolver page's */
	__u32 hits;         /* answers counted here, by the program, by atomic additions */
	__u32 ordinal:27;   /* dense number of the rule, for words and tables per rule; set by the store */
	__u32 size_class:5; /* of the slot; set by the store */
	__u16 hits_end;     /* set by the store; once hits, modulo 2^16, has come so far, each CPU counts in its own word */
	__u16 reply_flags;  /* network order: header flags of the reply without RD, AD, CD */
	__u16 answer_len;
	__u16 answer_sum;   /* folded, not inverted one's-complement sum (RFC 1071) of the answer with its
			     * TTLs as zero, as if the answer began at an even offset; memory order */
	__u16 qtype;        /* network order; again in data, where question and answer stand in one piece */
	__u8  name_len;
	__u8  variant;      /* HYDNS_VARIANT_* */
	__u8  resolver;    /* index of the owning resolver */
	__u8  flags;        /* HYDNS_RULE_* */
	__u8  ancount;      /* records in the answer, by section; ... */
	__u8  nscount;
	__u8  arcount;      /* ... the last without the OPT */
	__u8  ttl_count;
	__u8  rotation_count;
	__u8  place_count;  /* 0: there are more than HYDNS_RULE_PLACES_MAX */
	__u8  data[];
};
#define HYDNS_RULE_DATA        48

/* Where in a slot the offsets of TTLs begin, and where the rotations. */
#define HYDNS_RULE_TTLS(name_len, answer_len) \
	((HYDNS_RULE_DATA + (name_len) + 4 + (answer_len) + 1) & ~1U)
#define HYDNS_RULE_ROTATIONS(name_len, answer_len, ttl_count) \
	(HYDNS_RULE_TTLS(name_len, answer_len) + 2 * (ttl_count))
/* Octets of a slot that hold this rule; rest: octets of its rotations, of its owners' places, and of the names left out
 * with their number's. */
#define HYDNS_RULE_SPACE(name_len, answer_len, ttl_count, rest) \
	(HYDNS_RULE_ROTATIONS(name_len, answer_len, ttl_count) + (rest))

/*
 * Index: two-choice buckets of eight entries. entry = fingerprint << 32 | handle, 0 = empty.
 * With h the key's hash (hash.h): bucket 1 is h & mask, bucket 2 is hydns_bucket_other().
 */
#define HYDNS_BUCKET_ENTRIES   8
struct hydns_bucket {
	__u64 entry[HYDNS_BUCKET_ENTRIES];
};

/*
 * Answers are counted in the slot, which the answer was read from, as long as they are few: it costs no other line of
 * memory. Processors that answered from one rule all the time would take that line from each other; so after this many hits
 * they count in words of their own, until hydnsd has seen that the rule is asked for less.
 */
#define HYDNS_HITS_IN_SLOT     64

/*
 * Per-rule words (hits, refresh claims) stand in lines of 16: line = ordinal / 16, for hits + row * lines. A row of hits for
 * every CPU that the kernel might ever have would take more memory than the rules. So there is one for each of those
 * that are there when the maps are made, up to HYDNS_HITS_OWN of them; the others share HYDNS_HITS_SHARED rows.
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
	__u32 shared;        /* not 0: other CPUs count there, too */
};

/* Sizes of the store, chosen at load; read by the program as rodata, kept in the map hydns_meta, where session and
 * empty change. */
struct hydns_geometry {
	__u32 abi_version;
	__u32 cpus;                          /* possible CPUs */
	__u32 buckets;                       /* power of two */
	__u32 lines;                         /* ordinals / 16 */
	__u32 spans;                         /* of slots; as many chunks as they need */
	__u32 session;                       /* resolver sessions begun so far: gives first epochs */
	__u64 seed[2];                       /* of the key hash; secret */
	__u32 empty;                         /* not 0: the store holds no rule, the program looks at nothing */
	__u32 own_hits;                      /* CPUs that have a row of hits of their own, from number 0 on */
};

/*
 * Kernel answers by resolver, kept in the map hydns_tallies so that they outlive hydnsd, which alone writes them. What
 * was accounted of each rule stands in hydns_seen, a word for each ordinal. The two change together: entry is what is
 * being done, and is done over by the next hydnsd if this one was killed meanwhile.
 */
#define HYDNS_COUNT_TYPES      258   /* by query type 0..256; the last for all others */
#define HYDNS_COUNT_RCODES     16
struct hydns_tally {
	__u64 edns_do, secure, nodata, referrals, authoritative;
	__u64 rcode[HYDNS_COUNT_RCODES];
	__u64 type[HYDNS_COUNT_TYPES];
};
#define HYDNS_TALLY_WORDS      (5 + HYDNS_COUNT_RCODES + HYDNS_COUNT_TYPES)
#define HYDNS_ENTRY_WORDS      7     /* counts that one rule's hits add to, at most */
struct hydns_tally_journal {
	__u32 begun;                         /* not 0: the rest is valid */
	__u32 ordinal;
	__u32 seen;                          /* of the ordinal, from now on */
	__u16 resolver;
	__u16 words;
	struct {
		__u64 value;                 /* from now on, */
		__u64 word;                  /* of this word of the authority's tally */
	} word[HYDNS_ENTRY_WORDS];
};

/* --- who answers for whom ------------------------------------------------------------------------ */
/* Key of hydns_services. IPv4 addresses as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2). */
struct hydns_service_key {
	__u8  addr[16];     /* network order */
	__u16 port;         /* network order */
	__u16 reserved;
};
struct hydns_service {
	__u32 resolver;
};

/* Key of a resolver's ACL, an LPM trie: prefixlen counts the bits of addr (IPv4-mapped as above). */
struct hydns_acl_key {
	__u32 prefixlen;    /* 0..128 */
	__u8  addr[16];     /* network order */
};
#define HYDNS_ACL_PASS         0     /* what only the resolver can decide */
#define HYDNS_ACL_ALLOW        1
#define HYDNS_ACL_ALLOW_COOKIE 2     /* allowed with a valid server cookie alone */

/*
 * Resolver page: written by the plugin alone, each word at once: by an aligned store, or where several of its threads
 * write, by an atomic operation (epoch, generation, touched). While HYDNS_EPOCH_SUSPENDED is set in the epoch no rule
 * counts, for none has it; with HYDNS_EPOCH_MARKED alone those rules count of whose owner names none is marked in
 * touched. Taken away, all rules of the former epoch count again. A name is marked before the flag is set.
 */
#define HYDNS_EPOCH_SUSPENDED  0x80000000U
#define HYDNS_EPOCH_MARKED    0x40000000U
#define HYDNS_EPOCH_FLAGS      (HYDNS_EPOCH_SUSPENDED | HYDNS_EPOCH_MARKED)
/* A bit for each place; names that share one are marked together. */
#define HYDNS_MARK_WORDS    496
#define HYDNS_PLACES   (HYDNS_MARK_WORDS * 64)
/* The place of a name, of its hydns_place_hash() with the seed of HELLO. */
#define HYDNS_PLACE(hash) ((__u16)(((hash) >> 32) * HYDNS_PLACES >> 32))
struct hydns_resolver_page {
	__u32 epoch;
	__u32 cookies;      /* set of cookie secrets that the resolver uses; 0: none */
	__u64 generation;   /* advanced after every removal from the resolver's cache */
	__u64 heartbeat_ns; /* monotonic; 0: the resolver has gone */
	__s32 tai_offset;   /* seconds that CLOCK_TAI is ahead of the wall clock */
	__u8  pad[128 - 28];
	__u64 touched[HYDNS_MARK_WORDS]; /* bit place % 64 of word place / 64 */
};

/*
 * Secrets of DNS cookies (RFC 9018), the active one first; written by hydnsd alone, in the place
 * HYDNS_COOKIES_INDEX(authority, set) of the map, two for each resolver. A set counts while its number is
 * the one on the resolver page, so the resolver outdates the secrets with one store. Also the payload of
 * HYDNS_MSG_COOKIES.
 */
struct hydns_cookies {
	__u32 set;          /* never 0 */
	__u32 count;        /* 0: the resolver makes no cookies */
	__u64 secret[HYDNS_COOKIE_SECRETS][HYDNS_COOKIE_SECRET_LEN / 8]; /* octets in memory order */
};
#define HYDNS_COOKIES_INDEX(resolver, set) ((resolver) * 2 + ((set) & 1))

/* What the program must know of a resolver: written by hydnsd alone. */
#define HYDNS_RESOLVER_IGNORES_COOKIE 0x01 /* the resolver answers as if a COOKIE option were not there */
#define HYDNS_RESOLVER_ROTATES        0x02 /* the resolver rotates RRsets */
#define HYDNS_RESOLVER_KEEPS_CASE     0x04 /* names are sent with the letters they were first received with */
#define HYDNS_RESOLVER_STRICT_EDNS  0x08 /* every option is checked, an invalid cookie refused, each reply's new */
#define HYDNS_RESOLVER_OWN_PROOFS   0x10 /* what authority sections show is stored with each answer, and renewed with it alone */
#define HYDNS_RESOLVER_ALLOWS_IPV4    0x20 /* the ACL gives every IPv4 client HYDNS_ACL_ALLOW, */
#define HYDNS_RESOLVER_ALLOWS_IPV6    0x40 /* and every IPv6 client: no look-up; set by hydnsd from the ACL */
#define HYDNS_RESOLVER_SHUFFLES      0x100 /* with HYDNS_RESOLVER_ROTATES: what follows the first record is turned, too */
#define HYDNS_RESOLVER_READY          0x80 /* services, ACL and this record are complete */
struct hydns_resolver_config {
	__u16 flags;
	__u16 edns_size;    /* payload size in the resolver's own OPT */
	__u16 max_udp;      /* the resolver's limit of a UDP reply */
	__u16 acl_half;     /* which of the two ACL maps is current: acl index = authority * 2 + half */
};

/* Per CPU and authority, counted with every answer: what the per-rule hit counters can't tell. */
struct hydns_resolver_count {
	__u64 answered;
	__u64 ipv6;
	__u64 edns;
	__u64 ad;           /* queries with the AD bit */
	__u64 octets;       /* of DNS payload sent */
	__u64 cookie_valid; /* queries with a valid server cookie, */
	__u64 cookie_client;/* with a client's alone, */
	__u64 cookie_invalid;/* with one that is forged, expired or from the future */
};

struct hydns_tallies {
	struct hydns_tally_journal entry;
	struct hydns_resolver_count base[HYDNS_RESOLVERS]; /* the program's counters when the page was made */
	struct hydns_tally of[HYDNS_RESOLVERS];
};

/* --- plugin -> hydnsd: one ring per resolver thread ------------------------------------------------ */
/*
 * A memfd of HYDNS_RING_SIZE octets, made and sealed (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) by the plugin: the
 * header, HYDNS_RING_DATA; the frames, HYDNS_RING_BYTES; and HYDNS_NOT_OFFERED_PLACES struct hydns_not_offered. One producer, one
 * consumer. head and tail count octets and wrap at 2^32. Frames are multiples of 8 octets, in one piece: a PAD frame
 * fills what is left at the end.
 */
#define HYDNS_RING_DATA        4096
struct hydns_ring {
	__u32 head;              /* plugin: store-release after the frame */
	__u32 pad0[15];
	__u32 tail;              /* hydnsd: store-release after it has acted upon the frame: what it withdraws is out of
				  * the index. A hydnsd that comes after a crash goes on here */
	__u32 need_wakeup;       /* hydnsd: 1 = write the doorbell (eventfd) after advancing head */
	__u32 bar;               /* hydnsd: what a newcomer must promise, in hits per 10^6 s; 0: there is room */
	__u32 pad1[13];
	__u64 dropped;           /* plugin: offers that found the ring full */
	__u64 offered;           /* plugin */
	__u64 queries;           /* plugin: queries that this thread has seen over UDP */
	__u64 pad2[5];
};

/*
 * Why an answer was kept from the kernel, for whoever asks the operator's question: the thread's last reason for each
 * question, in the place that its key says; a newer one of another question may push it out. The key is
 * hydns_key_hash() of the question, as of resolver 0, with the seed of HELLO. Written without a lock, and only where an
 * answer is not offered.
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
#define HYDNS_RING_SIZE        (HYDNS_RING_DATA + HYDNS_RING_BYTES + HYDNS_NOT_OFFERED_PLACES * sizeof(struct hydns_not_offered))

#define HYDNS_FRAME_PAD        0
#define HYDNS_FRAME_OFFER      1
#define HYDNS_FRAME_CHANGED    2   /* a name's data changed in the resolver's cache, or live longer now */
struct hydns_frame {
	__u32 len;               /* with this header; multiple of 8 */
	__u32 type;
};

/* HYDNS_FRAME_OFFER; data = name (lower case), then answer, then names left out, as in struct hydns_rule. */
struct hydns_offer {
	struct hydns_frame frame;
	__u64 generation;        /* of the resolver page, read while the cache entry was locked */
	__u64 base_ns;           /* as struct hydns_rule */
	__u32 epoch;
	__u32 ttl;               /* seconds the answer lives after base_ns */
	__u32 count;             /* sightings of this question ... */
	__u32 window_ms;         /* ... in about this time */
	__u16 reply_flags;       /* network order, as struct hydns_rule */
	__u16 ancount;           /* network order */
	__u16 nscount;           /* network order */
	__u16 arcount;           /* network order, without OPT */
	__u16 qtype;             /* network order */
	__u16 answer_len;
	__u8  name_len;
	__u8  variant;
	__u8  flags;             /* HYDNS_RULE_* */
	__u8  reserved;
	__u8  data[];
};
#define HYDNS_OFFER_DATA       56

/*
 * HYDNS_FRAME_CHANGED; name in wire format, lower case. Without a renewed type every rule built from the
 * name goes at once. With one, that RRset was renewed: the same data, ending later; rules made before count
 * down TTLs that the resolver no longer sends, and get the later ones, or go, unless their own renewal replaces them in
 * a moment.
 */
/* In which sections replies show the RRset that was renewed: a resolver may store what came in authority sections
 * by itself, with a TTL of its own (Unbound does so with a SOA: RFC 2308, section 3). */
enum hydns_section {
	HYDNS_SECTION_ANYWHERE,
	HYDNS_SECTION_ANSWER,
	HYDNS_SECTION_AUTHORITY,
};
struct hydns_changed {
	struct hydns_frame frame;
	__u64 generation;        /* already advanced */
	__u64 end_ns;            /* renewed: monotonic time at which the RRset now ends */
	__u16 renewed;           /* network order: type of the renewed RRset; 0: data changed */
	__u8  shared;            /* renewed: answers to other questions than name and type may hold the RRset */
	__u8  shown;             /* renewed: enum hydns_section */
	__u8  name_len;
	__u8  data[3];           /* goes on to the frame's end */
};

/* --- plugin <-> hydnsd: control socket (SOCK_SEQPACKET) ---------------------------------------------- */
/* Every request is answered by one reply with the request's seq. A plugin has one request under way. */
#define HYDNS_MSG_MAX          4096
enum hydns_msg_type {
	HYDNS_MSG_HELLO = 1,     /* -> struct hydns_hello + fds: ring[threads], then the page map if any */
	HYDNS_MSG_WELCOME,       /* <- struct hydns_welcome + fds: doorbell eventfd, then page map if new */
	HYDNS_MSG_SERVICE,       /* -> + fd: a bound UDP socket of the resolver */
	HYDNS_MSG_ACL,           /* -> struct hydns_acl_list; any number of them after a HELLO or RESET */
	HYDNS_MSG_RESET,         /* -> struct hydns_hello: forget services and ACL, configuration follows */
	HYDNS_MSG_READY,         /* -> no payload: configuration complete, offers may be admitted */
	HYDNS_MSG_WITHDRAW,      /* -> struct hydns_withdraw; acknowledged after a grace period */
	HYDNS_MSG_STATS,         /* -> no payload */
	HYDNS_MSG_COUNTS,        /* <- struct hydns_counts, the answer to STATS */
	HYDNS_MSG_NOTE,          /* -> struct hydns_note: what this resolver's configuration keeps from the kernel, and why */
	HYDNS_MSG_BYE,           /* -> no payload: the resolver leaves, its rules with it */
	HYDNS_MSG_ACK,           /* <- no payload */
	HYDNS_MSG_REFUSED,       /* <- text: cause and mend */
	HYDNS_MSG_COOKIES,       /* -> struct hydns_cookies; acknowledged when the program uses them */
	HYDNS_MSG_CATCH_UP,        /* -> no payload: acknowledged when all that is in the rings has been acted upon, no rule of
				  * another epoch is left, and a grace period has passed */
};
struct hydns_msg {
	__u32 type;
	__u32 seq;
	__u32 len;               /* of the payload that follows */
	__u32 reserved;
};
#define HYDNS_IDENTITY_LEN     32
struct hydns_hello {
	__u32 abi_version;
	__u32 threads;
	__u32 capacity;          /* most rules of this resolver; 0: as many as hydnsd gives */
	__u32 min_ttl;           /* seconds */
	__u32 max_ttl;           /* seconds; 0: no limit */
	__u16 flags;             /* HYDNS_RESOLVER_* except READY and ALLOWS_* */
	__u16 edns_size;
	__u16 max_udp;
	__u16 refresh_percent;   /* last part of the TTL in which the kernel lets queries through; 0: never */
	__u32 pid;
	__u32 admission;         /* sightings that make a question hot */
	__u32 reserved;
	__u64 seed[2];           /* of the keys of struct hydns_not_offered, and of the places of owner names; secret, the page's
				  * for good */
	char  identity[HYDNS_IDENTITY_LEN]; /* NUL-terminated, printable: "unbound", for status */
	char  version[HYDNS_IDENTITY_LEN];  /* NUL-terminated, printable */
};
struct hydns_welcome {
	__u32 resolver;
	__u32 epoch;             /* first epoch of a new page; an adopted page keeps its own */
	__u32 adopted;           /* 1: the page handed over was known and stays in use */
	__u32 reserved;
};
struct hydns_acl_entry {
	__u8  addr[16];          /* network order, IPv4-mapped */
	__u8  prefixlen;         /* 0..128, of the mapped form */
	__u8  action;            /* HYDNS_ACL_* */
	__u8  why;               /* place in clients.def: what the resolver's configuration says of these clients */
	__u8  reserved;
};
struct hydns_acl_list {
	__u32 count;
	struct hydns_acl_entry entry[];
};
/* What a note is about. Notes of a kind are replaced while the resolver runs: the first of the new ones comes with anew,
 * and without text when there are none. */
enum hydns_note_kind {
	HYDNS_NOTE_OBSTACLE,     /* nothing is offered while this holds */
	HYDNS_NOTE_ADDRESSES,    /* where the kernel does not answer */
	HYDNS_NOTE_CLIENTS,      /* whom it does not answer */
	HYDNS_NOTE_OTHER,
	HYDNS_NOTES
};
struct hydns_note {
	__u32 kind;              /* enum hydns_note_kind */
	__u32 anew;              /* not 0: the former ones of this kind no longer hold */
	char  text[];            /* to the message's end */
};
enum hydns_scope { HYDNS_SCOPE_NAME = 1, HYDNS_SCOPE_SUBTREE, HYDNS_SCOPE_ALL };
struct hydns_withdraw {
	__u64 generation;        /* already advanced: offers with an older one are discarded */
	__u32 scope;             /* enum hydns_scope; NAME and SUBTREE mean any owner name of the answer */
	__u32 name_len;
	__u8  name[256];         /* wire format, lower case */
};
/* Kernel answers of this resolver since its page was made. hydnsd also sends them unasked, with seq 0, when no more can
 * come: it has detached the program; or, before WELCOME with a new page, it has replaced the program that counted for the
 * former page. */
struct hydns_counts {
	__u64 answered;
	__u64 ipv6;
	__u64 edns;
	__u64 edns_do;
	__u64 ad;
	__u64 secure;            /* answers that were validated */
	__u64 nodata;            /* NOERROR without a record in the answer section, referrals left out */
	__u64 referrals;         /* from a zone: NOERROR, neither AA nor a record in the answer section */
	__u64 authoritative;     /* answers with AA */
	__u64 rules;             /* now */
	__u64 octets;
	__u64 cookie_valid;
	__u64 cookie_client;
	__u64 cookie_invalid;
	__u64 rcode[HYDNS_COUNT_RCODES];
	__u64 type[HYDNS_COUNT_TYPES];
};

/* --- pinned names -------------------------------------------------------------------------------------- */
#define HYDNS_PIN_DIR          "/sys/fs/bpf/hydns"

#define HYDNS_STATIC_ASSERT(cond, why) _Static_assert(cond, why)
HYDNS_STATIC_ASSERT(__builtin_offsetof(struct hydns_rule, data) == HYDNS_RULE_DATA, "rule header");
HYDNS_STATIC_ASSERT(__builtin_offsetof(struct hydns_offer, data) == HYDNS_OFFER_DATA, "offer header");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_rotation) == HYDNS_ROTATION_LEN && HYDNS_SLOT_MOST <= 1U << 11 &&
		    HYDNS_TTLS_MAX <= 1U << 5, "fields of a rotation");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_bucket) == 64, "a bucket is a cache line");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_line) == 64, "a line is a cache line");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_resolver_page) == 4096, "a page");
HYDNS_STATIC_ASSERT(HYDNS_PLACES <= 1U << 16, "a place fits 16 bits");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_cookies) == 8 + HYDNS_COOKIE_SECRETS * HYDNS_COOKIE_SECRET_LEN,
		    "no padding in a message");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_service_key) == 20, "no padding in a hash key");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_acl_key) == 20, "no padding in a trie key");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_ring) <= HYDNS_RING_DATA, "ring header");
HYDNS_STATIC_ASSERT((HYDNS_RING_BYTES & (HYDNS_RING_BYTES - 1)) == 0, "ring size");
HYDNS_STATIC_ASSERT((HYDNS_NOT_OFFERED_PLACES & (HYDNS_NOT_OFFERED_PLACES - 1)) == 0, "places of kept answers");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_tally) == HYDNS_TALLY_WORDS * sizeof(__u64), "a tally is words");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_acl_entry) == 20, "no padding in a message");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_counts) + sizeof(struct hydns_msg) <= HYDNS_MSG_MAX, "counts fit");

#endif
