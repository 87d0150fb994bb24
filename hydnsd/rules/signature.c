/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/signature.h"

#include "hydns/common.h"

#define LABELS_MAX (HYDNS_NAME_MAX / 2 + 1)

static unsigned label_starts(const uint8_t *name, size_t len, uint8_t start[LABELS_MAX])
{
	unsigned n = 0;

	for (size_t at = 0; at < len && name[at]; at += 1 + name[at])
		start[n++] = (uint8_t)at;
	return n;
}

/* FNV-1a over a label with its length octet, continued from its parent's hash. */
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

static uint64_t name_bits(uint64_t mixed)
{
	return 1U << (mixed & 31) | 1U << (mixed >> 5 & 31) | 1U << (mixed >> 10 & 31);
}

static uint64_t ancestor_bits(uint64_t mixed)
{
	return (uint64_t)(1U << (mixed & 31) | 1U << (mixed >> 5 & 31)) << 32;
}

/* Returns the hash of the name, and in *ancestors the bits of all names above it but the root. */
static uint64_t hash_name(const uint8_t *name, size_t len, uint64_t seed, uint64_t *ancestors)
{
	uint8_t start[LABELS_MAX];
	unsigned n = label_starts(name, len, start);
	uint64_t hash = seed, mixed = mix(seed);

	*ancestors = 0;
	while (n > 0) {
		hash = hash_label(hash, name + start[--n]);
		mixed = mix(hash);
		if (n > 0)
			*ancestors |= ancestor_bits(mixed);
	}
	return mixed;
}

uint64_t hydnsd_name_hash(const uint8_t *name, size_t len, uint64_t seed, uint64_t *signature)
{
	uint64_t ancestors, mixed = hash_name(name, len, seed, &ancestors);

	*signature |= name_bits(mixed) | ancestors;
	return mixed;
}

uint64_t hydnsd_signature_of(const uint8_t *name, size_t len, uint64_t seed)
{
	uint64_t signature = 0;

	hydnsd_name_hash(name, len, seed, &signature);
	return signature;
}

uint64_t hydnsd_signature_below(const uint8_t *name, size_t len, uint64_t seed)
{
	uint64_t ancestors, mixed = hash_name(name, len, seed, &ancestors);

	return len > 1 ? ancestors | ancestor_bits(mixed) : 0;
}
