/* SPDX-License-Identifier: GPL-2.0-only */
/* The Internet checksum's last step, for the program and for the bench's generator. */
#ifndef HYDNS_KERN_PROGRAM_PACKET_FOLD_BPF_H
#define HYDNS_KERN_PROGRAM_PACKET_FOLD_BPF_H

/* RFC 1071: adds a 64-bit sum up to 16 bits. */
static __always_inline __u16 hydns_fold(__u64 sum)
{
	__u32 half;

	/* A value and itself with its halves exchanged: the upper half is their sum with the carry taken round. */
	half = (sum + (sum << 32 | sum >> 32)) >> 32;
	return (half + (half << 16 | half >> 16)) >> 16;
}

#endif
