/* SPDX-License-Identifier: BSD-3-Clause */
/* A digest that tells whether what was read is the same as before, in the same process. Unbound's parser includes this. */
#ifndef HYDNS_DIGEST_H
#define HYDNS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* SipHash (hydns/hash.h) with a key of this process. Zero: nothing was added yet. */
struct hydns_digest {
	uint64_t state[4];
	uint64_t word;            /* octets that are not yet in the state */
	uint64_t len;             /* of all */
};
/* However the octets are cut. */
void hydns_digest_add(struct hydns_digest* d, const void* octets, size_t len);
/* Also between two parts, so that they are told apart. */
void hydns_digest_number(struct hydns_digest* d, uint64_t number);
uint64_t hydns_digest_value(const struct hydns_digest* d);

#endif
