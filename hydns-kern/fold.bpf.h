/* SPDX-License-Identifier: GPL-2.0-only */
/* The Internet checksum's last step, for the program and for the bench's generator. */
#ifndef HYDNS_FOLD_BPF_H
#define HYDNS_FOLD_BPF_H

/* RFC 1071: adds a 64-bit sum up to 16 bits. */
static __always_inline __u16 hydns_fold(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return sum;
}

#endif
