/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Names as NSEC3 records have them (RFC 5155 section 5): SHA-1 of a name in wire format, lower case, and the salt, again and again. One
 * definition for BPF and userspace, in which the block is shared and what puts blocks together is not: only userspace has it in a row.
 *
 * The template for names that do not exist in a zone with NSEC3 (names.h) stands at a name that is made of a hash: HYDNS_HASHED_LEN
 * octets, the hash in base32hex as a label and another label, and behind them the closest encloser. Nobody can ask for it, because of
 * its type.
 */
#ifndef HYDNS_NSEC3_H
#define HYDNS_NSEC3_H

#include "hydns/common.h"
#include "hydns/dns.h"
#include "hydns/hash.h"

/* How a zone hashes its names. RFC 9276 section 3.1 wants no iterations and no salt. */
#define HYDNS_NSEC3_ITERATIONS_MOST 16     /* that the program computes */
#define HYDNS_NSEC3_SALT_MOST       14
struct hydns_nsec3 {
	__u8 iterations;
	__u8 salt_len;
	__u8 salt[HYDNS_NSEC3_SALT_MOST];  /* zero-padded */
};
#define HYDNS_NSEC3_SHA1            1      /* the only hash algorithm there is */

#define HYDNS_SHA1_OCTETS           20
#define HYDNS_SHA1_WORDS            5
#define HYDNS_SHA1_BLOCK            64
/* Blocks of a message of so many octets, with 0x80 and the length that end it. */
#define HYDNS_SHA1_BLOCKS(len)      (((len) + 8) / HYDNS_SHA1_BLOCK + 1)
#define HYDNS_NSEC3_BLOCKS          HYDNS_SHA1_BLOCKS(HYDNS_NAME_MAX + HYDNS_NSEC3_SALT_MOST)

struct hydns_sha1 {
	__u32 h[HYDNS_SHA1_WORDS];
	__u32 w[16];                       /* the block, in the machine's byte order; changes */
};

#define HYDNS_HASHED_LABEL          32     /* octets in base32hex (RFC 4648 section 7) */
#define HYDNS_HASHED_MARK           "\40+nsec3+-------------------------"
#define HYDNS_HASHED_LEN            (2U * (1 + HYDNS_HASHED_LABEL))
#define HYDNS_HASHED_TYPE           HYDNS_TYPE_NXNAME

HYDNS_INLINE __u32 hydns_rotl32(__u32 x, int b)
{
	return x << b | x >> (32 - b);
}

HYDNS_INLINE void hydns_sha1_begin(struct hydns_sha1 *s)
{
	s->h[0] = 0x67452301U;
	s->h[1] = 0xefcdab89U;
	s->h[2] = 0x98badcfeU;
	s->h[3] = 0x10325476U;
	s->h[4] = 0xc3d2e1f0U;
}

/* RFC 3174 section 6.2: word t of 80, in place of the one that it needs last. */
HYDNS_INLINE __u32 hydns_sha1_word(struct hydns_sha1 *s, int t)
{
	if (t >= 16)
		s->w[t & 15] = hydns_rotl32(s->w[(t + 13) & 15] ^ s->w[(t + 8) & 15] ^ s->w[(t + 2) & 15] ^ s->w[t & 15], 1);
	return s->w[t & 15];
}

/* Section 5: the function of twenty words each. */
HYDNS_INLINE __u32 hydns_sha1_mix(int t, __u32 b, __u32 c, __u32 d)
{
	if (t < 20)
		return ((b & c) | (~b & d)) + 0x5a827999U;
	if (t < 40)
		return (b ^ c ^ d) + 0x6ed9eba1U;
	if (t < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcU;
	return (b ^ c ^ d) + 0xca62c1d6U;
}

/* Adds the block in s->w. */
HYDNS_INLINE void hydns_sha1_block(struct hydns_sha1 *s)
{
	__u32 a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];

#ifdef __BPF__
#pragma clang loop unroll(disable)        /* words that are kept on the stack would take all of it */
#endif
	for (int t = 0; t < 80; t++) {
		const __u32 next = hydns_rotl32(a, 5) + hydns_sha1_mix(t, b, c, d) + e + hydns_sha1_word(s, t);

		e = d;
		d = c;
		c = hydns_rotl32(b, 30);
		b = a;
		a = next;
	}
	s->h[0] += a;
	s->h[1] += b;
	s->h[2] += c;
	s->h[3] += d;
	s->h[4] += e;
}

/* Eight characters of base32hex, in memory order, of 40 bits. Without branches: the verifier would follow each. */
HYDNS_INLINE __u64 hydns_base32hex(__u64 bits)
{
	const __u64 ones = 0x0101010101010101ULL;
	__u64 digits = 0, letters;

	for (int i = 0; i < 8; i++)
		digits |= (bits >> (35 - 5 * i) & 31) << 8 * i;
	letters = (digits + 22 * ones) >> 5 & ones;     /* 1 where a digit is more than 9 */
	return digits + '0' * ones + letters * ('a' - '0' - 10);
}

/* 40 bits number i of a hash, of four, from its words. */
HYDNS_INLINE __u64 hydns_hash_bits(const __u32 h[HYDNS_SHA1_WORDS], int i)
{
	const __u64 both = (__u64)h[i] << 32 | h[i + 1];

	return both >> (24 - 8 * i) & 0xffffffffffULL;
}

#ifndef __BPF__
#include <stdbool.h>

static inline void hydns_sha1_octets(struct hydns_sha1 *s, const __u8 *message, unsigned len, __u8 out[HYDNS_SHA1_OCTETS])
{
	hydns_sha1_begin(s);
	for (unsigned at = 0; at < HYDNS_SHA1_BLOCKS(len) * HYDNS_SHA1_BLOCK; at += HYDNS_SHA1_BLOCK) {
		for (unsigned i = 0; i < HYDNS_SHA1_BLOCK; i++) {
			const unsigned pos = at + i;
			__u32 octet = pos < len ? message[pos] : pos == len ? 0x80 : 0;

			if (at + HYDNS_SHA1_BLOCK == HYDNS_SHA1_BLOCKS(len) * HYDNS_SHA1_BLOCK && i >= HYDNS_SHA1_BLOCK - 4)
				octet = len * 8 >> 8 * (HYDNS_SHA1_BLOCK - 1 - i) & 0xff;
			s->w[i / 4] = (i % 4 ? s->w[i / 4] << 8 : 0) | octet;
		}
		hydns_sha1_block(s);
	}
	for (unsigned i = 0; i < HYDNS_SHA1_OCTETS; i++)
		out[i] = (__u8)(s->h[i / 4] >> (24 - i % 4 * 8));
}

/* The hash of a name, lower case, in wire format, of len octets: HYDNS_NAME_MAX at most. */
static inline void hydns_nsec3_hash(const __u8 *name, unsigned len, const struct hydns_nsec3 *how, __u8 out[HYDNS_SHA1_OCTETS])
{
	__u8 message[HYDNS_NAME_MAX + HYDNS_NSEC3_SALT_MOST];
	struct hydns_sha1 s;

	__builtin_memcpy(message, name, len);
	for (unsigned i = 0; i <= how->iterations; i++) {
		__builtin_memcpy(message + len, how->salt, how->salt_len);
		hydns_sha1_octets(&s, message, len + how->salt_len, out);
		__builtin_memcpy(message, out, HYDNS_SHA1_OCTETS);
		len = HYDNS_SHA1_OCTETS;
	}
}

/* False: the parameters of a zone's NSEC3 records are none that the program computes. */
static inline bool hydns_nsec3_fits(unsigned algorithm, unsigned iterations, unsigned salt_len)
{
	return algorithm == HYDNS_NSEC3_SHA1 && iterations <= HYDNS_NSEC3_ITERATIONS_MOST && salt_len <= HYDNS_NSEC3_SALT_MOST;
}

static inline void hydns_hash_to_label(const __u8 hash[HYDNS_SHA1_OCTETS], __u8 label[1 + HYDNS_HASHED_LABEL])
{
	label[0] = HYDNS_HASHED_LABEL;
	for (int i = 0; i < 4; i++) {
		__u64 bits = 0, word;

		for (int n = 0; n < 5; n++)
			bits = bits << 8 | hash[5 * i + n];
		word = hydns_base32hex(bits);
		__builtin_memcpy(label + 1 + 8 * i, &word, 8);
	}
}

/* False: it is no label of a hash. Any case. */
static inline bool hydns_hash_of_label(const __u8 *label, __u8 hash[HYDNS_SHA1_OCTETS])
{
	if (label[0] != HYDNS_HASHED_LABEL)
		return false;
	for (int i = 0; i < 4; i++) {
		__u64 bits = 0;

		for (int n = 1; n <= 8; n++) {
			const __u8 c = label[8 * i + n];

			if (c >= '0' && c <= '9')
				bits = bits << 5 | (c - '0');
			else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'v')
				bits = bits << 5 | ((c | 0x20) - 'a' + 10);
			else
				return false;
		}
		for (int n = 4; n >= 0; n--, bits >>= 8)
			hash[5 * i + n] = (__u8)bits;
	}
	return true;
}

/* Whether the name, of len octets, is one at which a template stands that is found by a hash, which goes to hash. */
static inline bool hydns_is_hashed_name(const __u8 *name, unsigned len, __u8 hash[HYDNS_SHA1_OCTETS])
{
	return len > HYDNS_HASHED_LEN && hydns_hash_of_label(name, hash) &&
	       !__builtin_memcmp(name + 1 + HYDNS_HASHED_LABEL, HYDNS_HASHED_MARK, 1 + HYDNS_HASHED_LABEL);
}

/* Writes the first HYDNS_HASHED_LEN octets of such a name. */
static inline void hydns_hashed_name(const __u8 hash[HYDNS_SHA1_OCTETS], __u8 *out)
{
	hydns_hash_to_label(hash, out);
	__builtin_memcpy(out + 1 + HYDNS_HASHED_LABEL, HYDNS_HASHED_MARK, 1 + HYDNS_HASHED_LABEL);
}
#endif

HYDNS_STATIC_ASSERT(sizeof(struct hydns_nsec3) == 16 && sizeof(HYDNS_HASHED_MARK) == 2 + HYDNS_HASHED_LABEL, "layouts");

#endif
