/* SPDX-License-Identifier: GPL-2.0-only */
/* The last step of the Internet checksum, also for the bench's generator. */
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

#endif
