/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/signature.h"

#include "hydns/abi.h"

#define LABELS_MAX (HYDNS_NAME_MAX / 2 + 1)

static unsigned label_starts(const uint8_t *name, size_t len, uint8_t start[LABELS_MAX])
{
	unsigned n = 0;

	for (size_t at = 0; at < len && name[at]; at += 1 + name[at])
		start[n++] = (uint8_t)at;
	return n;
}

/* FNV-1a over a label with its length octet, going on from its parent's hash. */
static uint64_t hash_label(uint64_t hash, const uint8_t *label)
{
	for (unsigned i = 0; i <= label[0]; i++)
		hash = (hash ^ label[i]) * 0x100000001b3ULL;
	return hash;
}

static uint64_t mix(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* Two of 64 bits, by 12 bits of the hash. */
static uint64_t two_bits(uint64_t mixed)
{
	return 1ULL << (mixed & 63) | 1ULL << (mixed >> 6 & 63);
}

static uint64_t hash_name(const uint8_t *name, const uint8_t *start, unsigned labels, uint64_t seed)
{
	uint64_t hash = seed;

	while (labels-- > 0)
		hash = hash_label(hash, name + start[labels]);
	return mix(hash);
}

uint64_t hydnsd_signature_with_ancestors(const uint8_t *name, size_t len, uint64_t seed)
{
	uint8_t start[LABELS_MAX];
	unsigned n = label_starts(name, len, start);
	uint64_t hash = seed, bits = 0;

	while (n-- > 0) {
		hash = hash_label(hash, name + start[n]);
		bits |= two_bits(mix(hash));
	}
	return bits;
}

uint64_t hydnsd_signature_of(const uint8_t *name, size_t len, uint64_t seed)
{
	uint8_t start[LABELS_MAX];
	unsigned n = label_starts(name, len, start);

	return n == 0 ? 0 : two_bits(hash_name(name, start, n, seed));
}

uint64_t hydnsd_signature_of_owner(const uint8_t *name, size_t len, uint64_t seed)
{
	uint8_t start[LABELS_MAX];
	unsigned n = label_starts(name, len, start);

	return two_bits(hash_name(name, start, n, seed) >> 12);
}
