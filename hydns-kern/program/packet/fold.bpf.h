/* SPDX-License-Identifier: GPL-2.0-only */
/* The Internet checksum (RFC 1071): sums of octets, and its last step, also for the bench's generator. */
#ifndef HYDNS_KERN_PROGRAM_PACKET_FOLD_BPF_H
#define HYDNS_KERN_PROGRAM_PACKET_FOLD_BPF_H

/* RFC 1071: folds a 64-bit sum to 16 bits. */
static __always_inline __u16 hydns_fold(__u64 sum)
{
	__u32 half;

	/* The upper half of a value plus the same value rotated by half its width is the sum of both halves with end-around
	 * carry. */
	half = (sum + (sum << 32 | sum >> 32)) >> 32;
	return (half + (half << 16 | half >> 16)) >> 16;
}

/* Sum of len octets, most at most, as if they began at an even offset. The caller has put zeros after them. */
static __always_inline __u64 hydns_sum_octets(const __u8 *block, __u32 len, __u32 most)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < most; i += 8) {
		const __u32 *w = (const void *)(block + i);

		if (i >= len)
			break;
		sum += (__u64)w[0] + w[1];
	}
	return hydns_fold(sum);
}

#endif
