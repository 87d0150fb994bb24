/* SPDX-License-Identifier: GPL-2.0-only */
/* What the program that times others (again.bpf.c) and its user share. */
#ifndef HYDNS_KERN_COST_AGAIN_H
#define HYDNS_KERN_COST_AGAIN_H

#include <linux/types.h>

#define HYDNS_AGAIN_FRAME   512        /* octets of a frame at most */
#define HYDNS_AGAIN_FRAMES  2
#define HYDNS_AGAIN_NEXT    16         /* programs under test at most */
#define HYDNS_AGAIN_RUNS    256        /* of one program with one frame, one after the other: a batch */
#define HYDNS_AGAIN_BATCHES 256        /* of one test run at most */

struct hydns_again_frame {
	__u32 len;
	__u8 octets[HYDNS_AGAIN_FRAME];
};

#endif
