/* SPDX-License-Identifier: GPL-2.0-only */
/* Random letters of a request's name (draft-vixie-dnsext-dns0x20), eight octets at a time. */
#ifndef HYDNS_KERN_PROGRAM_FORWARD_LETTERS_BPF_H
#define HYDNS_KERN_PROGRAM_FORWARD_LETTERS_BPF_H

#include <linux/types.h>

#define HYDNS_EACH(octet) ((octet) * 0x0101010101010101ULL)

/* Word i of a name, lower case, with the capitals that HYDNS_FORWARD_CAPITAL() says. */
static __always_inline __u64 hydns_capitals8(__u64 lower, __u64 letters, __u32 i)
{
	__u64 low7 = lower & HYDNS_EACH(0x7f);
	__u64 letter = (low7 + HYDNS_EACH(0x80 - 'a')) & ~(low7 + HYDNS_EACH(0x7f - 'z')) & ~lower;
	__u64 bits = HYDNS_EACH(letters >> (i * 8 & 63) & 0xff) & 0x8040201008040201ULL;

	/* The upper bit of each octet whose bit is set. */
	bits += HYDNS_EACH(0x7f);
	return lower ^ (letter & bits & HYDNS_EACH(0x80)) >> 2;
}

#endif
