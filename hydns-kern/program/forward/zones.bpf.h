/* SPDX-License-Identifier: GPL-2.0-only */
/* Which forwarded zone a name is in: the one with the most labels, of those that hydnsd has written. */
#ifndef HYDNS_KERN_PROGRAM_FORWARD_ZONES_BPF_H
#define HYDNS_KERN_PROGRAM_FORWARD_ZONES_BPF_H

#include "hydns-kern/program/forward/maps.bpf.h"

/* Hashes of the labels of a name, in scratch. The count is there, too, for the verifier would follow each value of a variable. */
struct hydns_labels {
	__u64 count;
	__u64 hash[HYDNS_FORWARD_LABELS];
};

/* Writes the hash of each label; returns how many there are, without the root's; more than HYDNS_FORWARD_LABELS: too many. A
 * global function, so that the verifier checks its loop once. */
__noinline __u32 hydns_hash_labels(const struct hydns_question *q, struct hydns_labels *out)
{
	__u64 start, hash;
	__u32 left = 0;
	const __u8 *name;

	if (!q || !out)
		return HYDNS_FORWARD_LABELS + 1;
	start = HYDNS_FORWARD_LABEL(hydns_geometry.seed);
	hash = start;
	name = (const void *)q->name;
	out->count = 0;
	for (__u32 i = 0; i < HYDNS_NAME_MAX; i++) {
		__u32 octet = name[i];

		if (i >= q->name_len)
			break;
		if (left) {
			hash = HYDNS_FORWARD_OCTET(hash, octet);
			left--;
			continue;
		}
		if (i) {
			__u64 n = *(volatile __u64 *)&out->count;

			if (n >= HYDNS_FORWARD_LABELS)
				return HYDNS_FORWARD_LABELS + 1;
			out->hash[n] = hash;
			*(volatile __u64 *)&out->count = n + 1;
		}
		hash = start;
		left = octet;
	}
	return out->count;
}

/* The zone; NULL: the name is in none. */
static __always_inline const struct hydns_forward_zone *hydns_forward_zone_of(const struct hydns_question *q,
									      struct hydns_labels *scratch,
									      __u32 number, __u32 depths, __u32 labels)
{
	const struct hydns_forward_zone *found = NULL;
	struct hydns_forward_zone_key key = {
		.hash = HYDNS_FORWARD_HASH_ROOT(hydns_geometry.seed), .number = number, .resolver = q->resolver,
	};

	for (__u32 depth = 0; depth <= HYDNS_FORWARD_LABELS; depth++) {
		__u32 next = labels - depth - 1;

		if (depths >> depth & 1) {
			const struct hydns_forward_zone *z = bpf_map_lookup_elem(&hydns_fwd_zones, &key);

			found = z ? z : found;
		}
		HYDNS_OPAQUE(next);
		if (next >= HYDNS_FORWARD_LABELS)
			break;
		key.hash = HYDNS_FORWARD_NAME(key.hash, scratch->hash[next]);
	}
	return found;
}

#endif
