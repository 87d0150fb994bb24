/* SPDX-License-Identifier: GPL-2.0-only */
/* Sizes of the store. */
#include <string.h>
#include "loader.h"

/*
 * Slots of each class in thousandths of the capacity. Most answers are an address or two (128 and 256
 * octets); chains, negative answers of signed zones and answers to DO take more. A rule whose class is
 * full goes to a larger one. The sum exceeds 1,000 because replaced rules wait out their grace period.
 * With index, hits of two CPUs and claims this is about 280 octets a rule.
 */
static const __u32 share[HYDNS_SLOT_CLASSES] = { 500, 450, 80, 20 };
#define SHARE_WHOLE   1000
/* So that a tiny store can hold some of every size. */
#define SLOTS_LEAST   16

static __u32 round_up(__u64 n, __u32 to)
{
	return (__u32)((n + to - 1) / to * to);
}

void hydns_geometry_for(__u32 capacity, __u32 cpus, struct hydns_geometry *out)
{
	__u32 ordinal = 0, buckets = 2;

	memset(out, 0, sizeof(*out));
	out->abi_version = HYDNS_ABI_VERSION;
	out->cpus = cpus;
	for (int c = 0; c < HYDNS_SLOT_CLASSES; c++) {
		out->base[c] = ordinal;
		out->slots[c] = round_up((__u64)capacity * share[c] / SHARE_WHOLE + SLOTS_LEAST,
					 HYDNS_LINE_WORDS);
		ordinal += out->slots[c];
	}
	out->lines = ordinal / HYDNS_LINE_WORDS;
	/* At most half full: nearly every key then stands in its first bucket. */
	while ((__u64)buckets * HYDNS_BUCKET_ENTRIES < 2ULL * capacity)
		buckets *= 2;
	out->buckets = buckets;
}
