/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A signature is two Bloom filters of 32 bits (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970). The
 * lower half has three bits for each name that a rule depends on, the upper half two bits for each ancestor of these names but
 * the root. A rule that lacks one of a name's bits does not depend on that name, so a withdrawal compares only rules that have
 * them all.
 */
#ifndef HYDNSD_RULES_SIGNATURE_H
#define HYDNSD_RULES_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

/* Hash of a name; adds its bits and its ancestors' to *signature. name: lower case, uncompressed, valid. seed: secret. */
uint64_t hydnsd_name_hash(const uint8_t *name, size_t len, uint64_t seed, uint64_t *signature);
/* The bits that every rule has that depends on the name. */
uint64_t hydnsd_signature_of(const uint8_t *name, size_t len, uint64_t seed);
/* The bits that every rule has that depends on a name below this one; 0 for the root. */
uint64_t hydnsd_signature_below(const uint8_t *name, size_t len, uint64_t seed);

#endif
