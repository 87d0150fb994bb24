/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYDNS_KERN_COST_AGAIN_H
#define HYDNS_KERN_COST_AGAIN_H

#include <linux/types.h>

#define HYDNS_AGAIN_FRAME 512

struct hydns_again_frame {
	__u32 len;
	__u8 octets[HYDNS_AGAIN_FRAME];
};

#endif
