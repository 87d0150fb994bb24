/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The host's own addresses as a Bloom filter with one hash, for hydnsd, which writes it, and the program, which reads it:
 * an address whose bit is clear is none of them; one whose bit is set may be, and must be looked up. With 100 own
 * addresses 2.4 % of all others are looked up for nothing.
 */
#ifndef HYDNS_OWN_H
#define HYDNS_OWN_H

#include <linux/types.h>

#define HYDNS_OWN_BITS  12             /* of a bit's number */
#define HYDNS_OWN_WORDS ((1U << HYDNS_OWN_BITS) / 64)

/* The bit of an address, IPv4-mapped, as two words in the order of its octets. Multiplicative hashing (Knuth, The Art of
 * Computer Programming, volume 3, section 6.4): the upper bits of the product depend on all bits of the address. */
static inline __attribute__((always_inline)) __u32 hydns_own_bit(__u64 first, __u64 second)
{
	return ((first ^ second) * 0x9e3779b97f4a7c15ULL) >> (64 - HYDNS_OWN_BITS);
}

#endif
