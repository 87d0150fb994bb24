/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Counting distinct keys: the registers of a HyperLogLog (P. Flajolet, E. Fusy, O. Gandouet, F. Meunier, "HyperLogLog: the
 * analysis of a near-optimal cardinality estimation algorithm", AofA 2007), one definition for BPF and userspace. What the
 * registers say is estimated by offload-policy/distinct.c, where the error stands.
 *
 * The first HYDNS_DISTINCT_BITS bits of a key's hash choose a register, which keeps the largest rank that it has met: 1 and the
 * number of zeros at the other end of the hash. A key that comes again changes nothing, and registers are merged by taking the
 * larger one of each, so each CPU has its own.
 *
 * Hashes are keyed with a secret, so nobody who chooses keys can choose ranks.
 */
#ifndef HYDNS_DISTINCT_H
#define HYDNS_DISTINCT_H

#include <linux/types.h>

#ifndef HYDNS_INLINE
#define HYDNS_INLINE static inline __attribute__((always_inline))
#endif

#define HYDNS_DISTINCT_BITS      12
#define HYDNS_DISTINCT_REGISTERS (1 << HYDNS_DISTINCT_BITS)            /* an octet each */
#define HYDNS_DISTINCT_RANK_MOST (64 - HYDNS_DISTINCT_BITS + 1)

/* Spreads the bits of a word that is already secret, as the state of a keyed hash is (the finalizer of MurmurHash3, A. Appleby). */
HYDNS_INLINE __u64 hydns_distinct_mix(__u64 h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return h ^ h >> 33;
}

/* Hash of an address of 16 octets, read as two words in memory order. A difference in the first word has been spread by two
 * multiplications before the second is added, so that no pair of differences cancels out whatever the secret is. */
HYDNS_INLINE __u64 hydns_distinct_address(const __u64 addr[2], const __u64 secret[2])
{
	__u64 h = secret[0];

	if (addr[0])                   /* 0: the IPv4-mapped form */
		h ^= hydns_distinct_mix(addr[0] ^ secret[1]);
	return hydns_distinct_mix((h ^ addr[1]) + secret[1]);
}

/* Nearly all keys end at the first comparison: most have been met before, or one of a higher rank in their register has. */
HYDNS_INLINE void hydns_distinct_add(__u8 *registers, __u64 hash)
{
	__u8 *r = registers + (hash >> (64 - HYDNS_DISTINCT_BITS)), rank = *r;

	hash |= 1ULL << (HYDNS_DISTINCT_RANK_MOST - 1);        /* the highest rank ends there */
	if (rank >= HYDNS_DISTINCT_RANK_MOST || hash & ((1ULL << rank) - 1))
		return;
	/* The BPF machine has no instruction that counts zeros. */
	for (hash >>= rank, rank++; rank < HYDNS_DISTINCT_RANK_MOST && !(hash & 1); rank++)
		hash >>= 1;
	*r = rank;
}

/* Afterwards `into' has met what `from' has. */
HYDNS_INLINE void hydns_distinct_merge(__u8 *into, const __u8 *from)
{
	for (int i = 0; i < HYDNS_DISTINCT_REGISTERS; i++)
		into[i] = from[i] > into[i] ? from[i] : into[i];
}

#endif
