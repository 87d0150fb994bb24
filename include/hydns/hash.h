/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The key hash of the rule store, one definition for BPF and userspace: SipHash-1-3 (Aumasson and
 * Bernstein, "SipHash: a fast short-input PRF", 2012; one compression and three finalization rounds,
 * the strength chosen for hash tables) over the lower-cased name in little-endian 8-octet words,
 * zero-padded, and one last word with the rest of the key. Keyed with a secret, so that nobody who
 * chooses names can choose buckets. Lower-casing eight octets at a time is safe on wire names: a
 * length octet is at most 63 and so never taken for 'A'..'Z' (65..90).
 */
#ifndef HYDNS_HASH_H
#define HYDNS_HASH_H

#include <linux/types.h>

#ifndef HYDNS_INLINE
#define HYDNS_INLINE static inline __attribute__((always_inline))
#endif

/* Eight octets with every 'A'..'Z' made 'a'..'z', whatever the others hold. */
HYDNS_INLINE __u64 hydns_lower8(__u64 w)
{
	const __u64 ones = 0x0101010101010101ULL;
	__u64 low7 = w & (0x7f * ones);
	__u64 ge_a = low7 + (0x80 - 'A') * ones;
	__u64 gt_z = low7 + (0x7f - 'Z') * ones;
	__u64 upper = (ge_a & ~gt_z & ~w) & (0x80 * ones);
	return w | (upper >> 2);
}

struct hydns_sip {
	__u64 v0, v1, v2, v3;
};

HYDNS_INLINE __u64 hydns_rotl(__u64 x, int b)
{
	return (x << b) | (x >> (64 - b));
}

HYDNS_INLINE void hydns_sip_round(struct hydns_sip *s)
{
	s->v0 += s->v1; s->v1 = hydns_rotl(s->v1, 13); s->v1 ^= s->v0; s->v0 = hydns_rotl(s->v0, 32);
	s->v2 += s->v3; s->v3 = hydns_rotl(s->v3, 16); s->v3 ^= s->v2;
	s->v0 += s->v3; s->v3 = hydns_rotl(s->v3, 21); s->v3 ^= s->v0;
	s->v2 += s->v1; s->v1 = hydns_rotl(s->v1, 17); s->v1 ^= s->v2; s->v2 = hydns_rotl(s->v2, 32);
}

HYDNS_INLINE void hydns_sip_begin(struct hydns_sip *s, const __u64 seed[2])
{
	s->v0 = seed[0] ^ 0x736f6d6570736575ULL;
	s->v1 = seed[1] ^ 0x646f72616e646f6dULL;
	s->v2 = seed[0] ^ 0x6c7967656e657261ULL;
	s->v3 = seed[1] ^ 0x7465646279746573ULL;
}

HYDNS_INLINE void hydns_sip_word(struct hydns_sip *s, __u64 m)
{
	s->v3 ^= m;
	hydns_sip_round(s);
	s->v0 ^= m;
}

HYDNS_INLINE __u64 hydns_sip_end(struct hydns_sip *s)
{
	s->v2 ^= 0xff;
	hydns_sip_round(s);
	hydns_sip_round(s);
	hydns_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* The last word of a key. qtype in network order. */
HYDNS_INLINE __u64 hydns_key_tail(__u8 name_len, __u16 qtype, __u8 variant, __u8 resolver)
{
	return (__u64)name_len | (__u64)qtype << 16 | (__u64)variant << 32 | (__u64)resolver << 40;
}

/* 32-bit fingerprint in an index entry. */
HYDNS_INLINE __u32 hydns_fingerprint(__u64 hash)
{
	return (__u32)(hash >> 32);
}

HYDNS_INLINE __u32 hydns_bucket_first(__u64 hash, __u32 mask)
{
	return (__u32)hash & mask;
}

/* The other bucket of an entry, from either one and the fingerprint (partial-key cuckoo hashing, Fan et
 * al., "MemC3", NSDI 2013): its own inverse, and never the same bucket while mask is not 0. */
HYDNS_INLINE __u32 hydns_bucket_other(__u32 bucket, __u32 fingerprint, __u32 mask)
{
	return (bucket ^ (fingerprint * 0x5bd1e995U | 1U)) & mask;
}

#ifndef __BPF__
/*
 * Hash of a whole key. name: name_len octets in wire format, already lower-cased; qtype in network
 * order; seed: the store's secret.
 */
static inline __u64 hydns_key_hash(const __u8 *name, __u8 name_len, __u16 qtype, __u8 variant,
				   __u8 resolver, const __u64 seed[2])
{
	struct hydns_sip s;

	hydns_sip_begin(&s, seed);
	for (unsigned i = 0; i < name_len; i += 8) {
		__u64 w = 0;
		unsigned n = name_len - i < 8 ? name_len - i : 8;

		__builtin_memcpy(&w, name + i, n);
		hydns_sip_word(&s, w);
	}
	hydns_sip_word(&s, hydns_key_tail(name_len, qtype, variant, resolver));
	return hydns_sip_end(&s);
}

/* Hash of a name alone, as of a question that no resolver has. name: as above. */
static inline __u64 hydns_place_hash(const __u8 *name, __u8 name_len, const __u64 seed[2])
{
	return hydns_key_hash(name, name_len, 0, 0, 0xff, seed);
}
#endif

/*
 * The tag of an upstream server in a port word (queue.h): an IPv4 address and port as they are; of an IPv6 address and port
 * a hash of 48 bits. addr: 16 octets, those of IPv4 as ::ffff:a.b.c.d, read as two words in memory order; port in network
 * order. Never 0.
 */
HYDNS_INLINE __u64 hydns_remote_tag(const __u64 addr[2], __u16 port, const __u64 seed[2])
{
	struct hydns_sip s;
	__u64 tag;

	if (addr[0] == 0 && (__u32)addr[1] == 0xffff0000U)    /* ::ffff:0:0/96 */
		return (addr[1] >> 32) << 16 | port;
	hydns_sip_begin(&s, seed);
	hydns_sip_word(&s, addr[0]);
	hydns_sip_word(&s, addr[1]);
	hydns_sip_word(&s, port);
	tag = hydns_sip_end(&s) >> 16;
	return tag ? tag : 1;
}

#endif
