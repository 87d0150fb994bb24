/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A 64-bit Bloom filter (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970) of
 * the names that a rule depends on (owners, and targets of aliases), and of all their ancestors but the
 * root: two bits a name. A withdrawal of a name or a subtree then looks only at rules whose filter has the
 * name's bits; a rule that lacks one certainly does not depend on it. A second filter holds these names
 * without ancestors, by other bits of the same hash: withdrawals of single names, by far the most, ask both.
 */
#ifndef HYDNSD_SIGNATURE_H
#define HYDNSD_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

/* Bits of a name and its ancestors. name: lower case, uncompressed, valid. seed: secret. */
uint64_t hydnsd_signature_with_ancestors(const uint8_t *name, size_t len, uint64_t seed);
/* Bits of the name alone; 0 for the root, which every rule lies below. */
uint64_t hydnsd_signature_of(const uint8_t *name, size_t len, uint64_t seed);
/* Bits of the name, the root too, in the filter of owner names alone. */
uint64_t hydnsd_signature_of_owner(const uint8_t *name, size_t len, uint64_t seed);

#endif
