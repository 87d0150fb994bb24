/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Input and output of twins; integers in the machine's byte order. Python gets the layouts from layouts.c. */
#ifndef HYDNS_HARNESS_TWINS_H
#define HYDNS_HARNESS_TWINS_H

#include <stdint.h>

enum place { DIRECT, KERNEL, AGAIN, REFERENCE, PLACES };

#define FULL            0x01      /* report in any case */
#define ALONE           0x02      /* do not ask the reference */
#define TOGETHER        0x04      /* ask all places at once; report also when kernel was silent */
struct twins_query {
	uint32_t number;              /* the caller's */
	uint16_t timeout_ms;          /* of a place when no other place has answered */
	uint8_t group;
	uint8_t flags;
	uint16_t len[2];              /* octets for kernel; for direct and reference, 0: the same octets */
};

#define DIFFERS_KERNEL    0x01
#define DIFFERS_REFERENCE 0x02
#define SILENCE           0xffff /* length of a reply that did not come */
struct twins_report {
	uint32_t number;
	uint32_t finished;            /* queries finished since the last report, with this one */
	uint32_t in_kernel;           /* how many of them the kernel answered */
	int64_t sent[PLACES], got[PLACES]; /* monotonic ns, 0: not asked, no reply */
	uint16_t reply_len[PLACES];
	uint16_t len[2];              /* as in the query; 0 and 0: no query */
	uint8_t group, differs;       /* DIFFERS_* */
	uint16_t by_kernel;           /* this one's reply at the kernel place is the kernel's own */
	uint32_t reserved;
};

#endif
