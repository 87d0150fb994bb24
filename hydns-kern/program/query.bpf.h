/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The query in work: what each stage hands on to the next ones, and what a CPU remembers from one query to the next. It
 * lives in a map and not on the stack, because the message alone is larger than a BPF stack, and because the verifier
 * forgets a map's content: fewer states to follow. A program runs to its end on one CPU with softirqs off, so nobody else
 * touches it.
 */
#ifndef HYDNS_KERN_PROGRAM_QUERY_BPF_H
#define HYDNS_KERN_PROGRAM_QUERY_BPF_H

#include "hydns-kern/program/maps.bpf.h"
#include "hydns-kern/program/packet/fold.bpf.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hash.h and the masks of the last word of a name count on little-endian words"
#endif

#define HYDNS_NS               1000000000ULL
#define HYDNS_DNS_HEADER       12
#define HYDNS_NAME_WORDS       32  /* 8-octet words of a name of 255 octets */

/* The last service of an address family that was found. */
struct hydns_known_service {
	struct hydns_service_key key;
	__u32 resolver;
	__u64 changes;       /* what hydns_svcserial held then, inverted: zeroed scratch remembers nothing */
};

/* What a CPU keeps. Counting comes first in the map's value: the loader writes it when the maps are made. */
struct hydns_cpu {
	struct hydns_counting hits;
	struct hydns_known_service known[2];  /* IPv4's, IPv6's */
	__u64 tick;          /* the tick in which a query last came, */
	__u64 tick_ns;       /* and its monotonic time */
};

/* The headers before the message. */
struct hydns_packet {
	struct hydns_service_key service;  /* destination */
	struct hydns_acl_key client;       /* source, prefixlen 128 */
	__u64 addr_sum;      /* sum of both addresses, for pseudo-headers: the same in the reply */
	__u32 frame_len;     /* octets, with any padding */
	__u16 l3_off;        /* from the frame's start */
	__u16 dns_off;
	__u16 message_len;
	__u16 sport;         /* network order */
	__u8  ipv6;
};

/* The message, and what it asks of which resolver. */
struct hydns_question {
	__u64 name_sum;      /* sum of the name as it came, as if it began at an even offset */
	__u64 hash;          /* of the key */
	__u32 resolver;
	__u16 qtype;         /* network order */
	__u16 edns_size;     /* client's, host order; 0 without EDNS */
	__u16 cookie_at;     /* of the COOKIE option, offset into the message */
	__u8  cookie_len;    /* of the COOKIE option that the resolver will read; 0: none */
	__u8  cookie_required; /* by the client's ACL entry: a valid one */
	__u8  name_len;
	__u8  variant;       /* HYDNS_VARIANT_* */
	__u8  edns;          /* there is an OPT record */
	__u8  ad;            /* the AD bit is set */
	__u8  capitals;      /* the name came with capital letters */
	__u64 name[HYDNS_NAME_WORDS];      /* lower case, zero-padded */
	__u8  align[4];                    /* puts the question at a multiple of 8 */
	__u8  message[HYDNS_QUERY_MAX + 12];
};

/* What is prepared of the reply before the frame changes, and room for moving its blocks. */
struct hydns_reply {
	__u32 out;           /* interface that the reply leaves by; 0: the one that the query came by */
	__u32 turn;          /* which RR of a rotated RRset comes first, modulo their count */
	__u8  cookie_state;  /* enum hydns_cookie_state; not 0: the reply has the option below */
	__u8  reserved[3];
	__u16 option_head[2];/* code and length of the COOKIE option, network order, right before ... */
	__u64 cookie[3];     /* ... the cookie */
	__u8  out_macs[12];  /* Ethernet addresses, with reply-path fib */
	__u8  align[4];
	__u8  group_head[HYDNS_SLOT_MOST + 8];  /* with room for the zeros behind a block to be summed */
	__u8  group_tail[HYDNS_SLOT_MOST + 8];
};

struct hydns_query {
	struct hydns_cpu cpu;
	struct hydns_packet packet;
	struct hydns_question question;
	struct hydns_reply reply;
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

/* Hides a value's origin from clang, which otherwise folds bounds away that the verifier needs to see. */
#define HYDNS_OPAQUE(x) asm volatile("" : "+r"(x))

/*
 * What was read before is not older than what is read from here on, on machines too that would read in another order
 * (arm64). BPF has no instruction for that before Linux 6.15 but an atomic one that fetches, on whatever word: one that
 * this CPU has for itself. Not for the way of every packet.
 */
static __always_inline void hydns_barrier(__u64 *own)
{
	__u64 former = __sync_fetch_and_or(own, 0);

	HYDNS_OPAQUE(former);    /* unused, clang would leave the fetching out, and the order with it */
}

/*
 * True when len is 1..max, and then the verifier knows it, wherever the value is kept. The check alone is
 * not enough: clang may make it on a copy of a spilled value, and the verifier of Linux 6.1 does not learn
 * a lower bound of 1 from "is not 0". So the value is clamped once more where clang can't reason about it.
 */
static __always_inline bool hydns_bounded(__u64 *len, __u64 max)
{
	__u64 n = *len - 1;

	if (n >= max)
		return false;
#ifdef __BPF__
	asm volatile("if %[n] < %[max] goto +1\n\t%[n] = 0" : [n] "+r"(n) : [max] "r"(max));
#endif
	*len = n + 1;
	return true;
}

/* The IPv4-mapped form of an address. By words, as it is read: the processor can't forward to a load what several
 * smaller stores have just written, and waits until they have reached the cache. The same goes wherever words are
 * put together before they are stored. */
static __always_inline void hydns_map_ipv4(__u8 addr[16], __u32 ipv4)
{
	__u64 *w = (void *)addr;

	w[0] = 0;
	w[1] = 0xffff0000ULL | (__u64)ipv4 << 32;
}

/* A sum of what begins at an odd offset counts with its octets swapped; offset tells the parity. */
static __always_inline __u64 hydns_sum_at(__u64 sum, __u64 offset)
{
	return (__u64)hydns_fold(sum) << (offset & 1 ? 8 : 0);
}

/* The 4 * words octets at p, which is even-aligned; words is a constant up to 8. Written out, because
 * clang 14 leaves a loop over a count that only inlining makes constant. */
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
