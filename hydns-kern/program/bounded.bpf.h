/* SPDX-License-Identifier: GPL-2.0-only */
/* A length that the verifier of Linux 6.1 believes, also for programs that time others. */
#ifndef HYDNS_KERN_PROGRAM_BOUNDED_BPF_H
#define HYDNS_KERN_PROGRAM_BOUNDED_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

/*
 * True when len is 1..max; the verifier then knows these bounds wherever the value is kept. The comparison alone does not
 * give them: clang may compare a copy of a spilled value, and the verifier of Linux 6.1 derives no lower bound of 1 from
 * "is not 0". The inline assembly clamps the value again, where clang can't optimise it away.
 */
static __always_inline bool hydns_bounded(__u64 *len, __u64 max)
{
	__u64 n = *len - 1;

	if (n >= max)
		return false;
#ifdef __BPF__
	asm volatile("if %[n] < %[max] goto +1\n\t%[n] = 0" : [n] "+r"(n) : [max] "r"(max));
#endif
	*len = n + 1;
	return true;
}

#endif
