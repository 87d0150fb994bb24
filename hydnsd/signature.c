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

uint64_t hydnsd_name_hash(const uint8_t *name, size_t len, uint64_t seed, uint64_t *bits)
{
	uint8_t start[LABELS_MAX];
	unsigned n = label_starts(name, len, start);
	uint64_t hash = seed, mixed = mix(seed);

	while (n-- > 0) {
		hash = hash_label(hash, name + start[n]);
		mixed = mix(hash);
		*bits |= two_bits(mixed);
	}
	return mixed;
}

uint64_t hydnsd_signature_of(const uint8_t *name, size_t len, uint64_t seed)
{
	uint64_t ancestors = 0, mixed = hydnsd_name_hash(name, len, seed, &ancestors);

	return ancestors ? two_bits(mixed) : 0;
}
