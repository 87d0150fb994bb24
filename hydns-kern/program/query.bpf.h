/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The query in work: what each stage leaves to the next ones, and what a CPU caches from one query to the next. It is in a
 * map and not on the stack, because the message alone is larger than a BPF stack. The verifier also tracks no values in a
 * map, so it has fewer states to follow. The map is per CPU and a program runs to its end on one CPU with softirqs off, so
 * there is no other writer.
 */
#ifndef HYDNS_KERN_PROGRAM_QUERY_BPF_H
#define HYDNS_KERN_PROGRAM_QUERY_BPF_H

#include "hydns-kern/program/bounded.bpf.h"
#include "hydns-kern/program/maps.bpf.h"
#include "hydns-kern/program/packet/fold.bpf.h"
#include "hydns/names.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hash.h and the masks of a name's last word need little-endian words"
#endif

/* Outcomes, a bit each, of queries that have come as far as the look-up of a rule; HYDNS_R_ANSWERED is another. */
#define HYDNS_LOOKED_UP \
	(1ULL << HYDNS_R_MISS | 1ULL << HYDNS_R_EPOCH | 1ULL << HYDNS_R_EXPIRED | 1ULL << HYDNS_R_REFRESH | 1ULL << HYDNS_R_TOO_BIG | \
	 1ULL << HYDNS_R_NO_ROOM | 1ULL << HYDNS_R_NO_ROUTE | 1ULL << HYDNS_R_COOKIE | 1ULL << HYDNS_R_LETTER_CASE | 1ULL << HYDNS_R_LOG_FULL | \
	 1ULL << HYDNS_R_TYPE_ANY)

#define HYDNS_DNS_HEADER       12
#define HYDNS_NAME_WORDS       32  /* 8-octet words of a name of 255 octets */

/* The service that was found last. */
struct hydns_known_service {
	struct hydns_service_key key;
	__u32 resolver;
	__u64 serial;        /* hydns_svcserial at that time, inverted: zeroed scratch matches no serial */
};

/* What a CPU keeps between queries. Counting comes first in the map's value, where the loader writes it. */
struct hydns_cpu {
	struct hydns_counting hits;
	struct hydns_known_service known[2];  /* IPv4's, IPv6's */
	__u64 tick;          /* jiffies of the last query */
	__u64 tick_ns;       /* monotonic time of that tick */
	__u32 reason;        /* for the stages behind a tail call: how the packet would end without them */
	__u32 replaying;     /* not 0: the frame in work is a parked one */
	__u32 tried;         /* of a parked frame: struct hydns_replay_frame */
	__u32 counted;       /* not 0: the query in work is counted in its client's budget */
	__u64 asked_ns;      /* of a parked frame: at_ns */
	__s64 action;        /* with which a query that was analysed ends, if it was answered */
	__u32 analysers;     /* by bit: those that the query is still to go through */
	__u32 second;        /* of the wall clock, at ... */
	__u64 second_tick;   /* ... this tick */
	__u64 draws;         /* random numbers of this CPU so far */
	__u64 guard_tick;    /* at this tick ... */
	__u32 guard_second;  /* ... of the monotonic clock */
	__u32 guarded;       /* not 0: the guard has looked at the suffix of the query in work */
};

/* The headers before the message. */
struct hydns_packet {
	struct hydns_service_key service;  /* destination */
	struct hydns_acl_key client;       /* source, prefixlen 128 */
	__u64 addr_sum;      /* sum of both addresses, for pseudo-headers; the reply's is the same */
	__u32 frame_len;     /* octets, with any padding */
	__u16 l3_off;        /* from the frame's start */
	__u16 dns_off;
	__u16 message_len;
	__u16 sport;         /* network order */
	__u8  ipv6;
};

/* The message, the question in it, and the resolver that it is for. */
struct hydns_question {
	__u64 name_sum;      /* sum of the name as received, as if it began at an even offset */
	__u64 hash;          /* of the key */
	__u64 name_state;    /* for the monitor: of the keyed hash, behind the name */
	__u32 resolver;
	__u16 qtype;         /* network order */
	__u16 edns_size;     /* client's, host order; 0 without EDNS */
	__u16 cookie_at;     /* offset of the COOKIE option's data in the message */
	__u8  cookie_len;    /* length of these data; 0: no option, or the resolver ignores cookies */
	__u8  action;        /* HYDNS_ACL_*: of the client's ACL entry */
	__u8  name_len;
	__u8  variant;       /* HYDNS_VARIANT_* */
	__u8  edns;          /* there is an OPT record */
	__u8  ad;            /* the AD bit is set */
	__u8  capitals;      /* the name has capital letters */
	__u64 name[HYDNS_NAME_WORDS];      /* lower case, zero-padded */
	__u8  align[4];                    /* the question in message begins at a multiple of 8 */
	__u8  message[HYDNS_QUERY_MAX + 12];
};

/* What is known of the reply before the frame changes, and room for rotating RRsets. */
struct hydns_reply {
	__u32 out;           /* interface that the reply leaves by; 0: the one that the query came by */
	__u32 rotation;      /* number of the RR of a rotated RRset that comes first, modulo their count */
	__u8  cookie_state;  /* enum hydns_cookie_state; not 0: the reply has the option below */
	__u8  reserved;
	__u16 slip_flags;    /* above the limit of responses: of a reply with TC, as reply_flags of a rule; 0: the resolver sends it */
	__u16 option_head[2];/* code and length of the COOKIE option, network order; adjacent to ... */
	__u64 cookie[3];     /* ... its data */
	__u8  out_macs[12];  /* destination and source Ethernet address, with reply-path fib */
	__u8  align[4];
	__u8  group_head[HYDNS_SLOT_MOST + 8];  /* 8 more for the zeros that follow a block while it is summed */
	__u8  group_tail[HYDNS_SLOT_MOST + 8];
};

/* A client's balance, of the response's kind or of all (rates.h). Not by a pointer, because global functions share it. */
struct hydns_balance {
	__u64 state;         /* now, ... */
	__u64 next;          /* ... and with this response, */
	__u32 verdict;       /* which would have this one: HYDNS_RATE_* */
	__u32 bucket;
	__u32 cell;          /* number; HYDNS_RATE_CELLS: this kind has no limit */
	__u32 kind;
};

/* A search of the table of children (names.h): here, because Linux 6.1 has no room for it on the stack. */
struct hydns_search {
	struct hydns_child key;        /* what is looked for, and then what was found */
	__u32 low, high;               /* the first leaf that begins behind the key is one of these, or the one behind them */
};

/* Names that are hashed (nsec3.h). */
struct hydns_hashing {
	struct hydns_nsec3 how;
	struct hydns_sha1 sha;
	__u32 reserved;
	__u64 message[65];             /* as many words as a name, the salt and what ends it need, and more for the verifier */
};

struct hydns_query {
	struct hydns_cpu cpu;
	struct hydns_packet packet;
	struct hydns_question question;
	struct hydns_reply reply;
	struct hydns_balance own, all;
	__u64 below[HYDNS_NAME_WORDS + 1]; /* name of the template for a name that does not exist, as that of the question */
	struct hydns_search search;
	struct hydns_hashing hashing;
	struct hydns_gap gap;              /* of the template under way; without one, all zero */
	__u32 reserved;
	struct hydns_soa_now soa;          /* a copy of what belongs there */
};
_Static_assert(__builtin_offsetof(struct hydns_query, reply.option_head) + 4 ==
	       __builtin_offsetof(struct hydns_query, reply.cookie), "an option in one piece");
_Static_assert((__builtin_offsetof(struct hydns_query, question.message) + HYDNS_DNS_HEADER) % 8 == 0,
	       "question aligned");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_query);
} hydns_scratch SEC(".maps");

/* Hides a value's origin from clang, which would otherwise remove bounds checks that the verifier needs. */
#define HYDNS_OPAQUE(x) asm volatile("" : "+r"(x))

/*
 * Returns this reason if r is it. To the verifier the result of a global function may be any number, and with any reason it follows all
 * ways out of the program: six times the instructions, more than Linux 6.1 allows where frames are captured. Opaque: so that the
 * compiler keeps the comparison, by which the verifier learns what r is.
 */
#define HYDNS_RETURN_IF(r, reason) \
	do { \
		if ((r) == (reason)) { \
			HYDNS_OPAQUE(r); \
			return (reason); \
		} \
	} while (0)

/*
 * A full memory barrier: orders the loads before it and after it on weakly ordered machines (arm64), too. Before Linux
 * 6.15 the only BPF instruction that does this is an atomic one with a fetch; own is a word that no other CPU uses. Too
 * expensive for the path of every packet.
 */
static __always_inline void hydns_barrier(__u64 *own)
{
	__u64 former = __sync_fetch_and_or(own, 0);

	HYDNS_OPAQUE(former);    /* an unused result makes clang drop the fetch, and with it the order */
}

/* The IPv4-mapped form of an address, network order. It stores words of 64 bits, because the address is read as such: a CPU
 * can't forward several smaller stores to one load and waits until they have reached the cache. Other places put words
 * together in a register before one store for the same reason. */
static __always_inline void hydns_map_ipv4(__u8 addr[16], __u32 ipv4)
{
	__u64 *w = (void *)addr;

	w[0] = 0;
	w[1] = 0xffff0000ULL | (__u64)ipv4 << 32;
}

/* What data with this sum add to the message's sum at this offset: at an odd one, the sum with its octets swapped. */
static __always_inline __u64 hydns_sum_at(__u64 sum, __u64 offset)
{
	return (__u64)hydns_fold(sum) << (offset & 1 ? 8 : 0);
}

/* Sum of the 4 * words octets at p, an even offset of the message; words is a constant up to 8. Unrolled by hand, because
 * clang 14 does not unroll a loop whose count only inlining makes constant. */
static __always_inline __u64 hydns_sum_words(const void *p, unsigned words)
{
	const __u32 *w = p;
	__u64 sum = 0;

#define HYDNS_ADD(i) (words > (i) ? sum += w[i] : 0)
	HYDNS_ADD(0); HYDNS_ADD(1); HYDNS_ADD(2); HYDNS_ADD(3);
	HYDNS_ADD(4); HYDNS_ADD(5); HYDNS_ADD(6); HYDNS_ADD(7);
#undef HYDNS_ADD
	return sum;
}

#endif
