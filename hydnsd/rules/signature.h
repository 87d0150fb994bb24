/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Two Bloom filters (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970) of 32 bits: in the lower half
 * of a signature the names that a rule depends on (owners, and targets of aliases), three bits each, in the upper half all
 * their ancestors but the root, two bits each. A withdrawal of a name or a subtree then looks only at rules that have its
 * bits; a rule that lacks one certainly does not depend on it.
 */
#ifndef HYDNSD_RULES_SIGNATURE_H
#define HYDNSD_RULES_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

/* Hash of a name; adds its bits and its ancestors' to *signature. name: lower case, uncompressed, valid. seed: secret. */
uint64_t hydnsd_name_hash(const uint8_t *name, size_t len, uint64_t seed, uint64_t *signature);
/* What every rule has that depends on the name. */
uint64_t hydnsd_signature_of(const uint8_t *name, size_t len, uint64_t seed);
/* What every rule has that depends on a name below this one; 0 for the root. */
uint64_t hydnsd_signature_below(const uint8_t *name, size_t len, uint64_t seed);

#endif
