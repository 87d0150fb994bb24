/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A 64-bit Bloom filter (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970) of
 * the names that a rule depends on (owners, and targets of aliases), and of all their ancestors but the
 * root: two bits a name. A withdrawal of a name or a subtree then looks only at rules whose filter has the
 * name's bits; a rule that lacks one certainly does not depend on it.
 */
#ifndef HYDNSD_SIGNATURE_H
#define HYDNSD_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

/* Hash of a name; adds its bits and its ancestors' to *bits. name: lower case, uncompressed, valid. seed: secret. */
uint64_t hydnsd_name_hash(const uint8_t *name, size_t len, uint64_t seed, uint64_t *bits);
/* Bits of the name alone; 0 for the root, which every rule lies below. */
uint64_t hydnsd_signature_of(const uint8_t *name, size_t len, uint64_t seed);

/* As it is kept for each rule; the same for bits of names to be compared with it. */
static inline uint32_t hydnsd_signature_folded(uint64_t bits)
{
	return (uint32_t)(bits | bits >> 32);
}

#endif
