/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Captures: what hydnsctl tells the watching programs, and what these say of a packet. */
#ifndef HYDNS_CAPTURE_H
#define HYDNS_CAPTURE_H

#include "hydns/common.h"
#include "hydns/reasons.h"

/* Most octets of a frame, as a mask that the verifier understands: more than any query or reply of the kernel path. */
#define HYDNS_CAPTURE_MOST     2047
#define HYDNS_CAPTURE_RING     (1U << 22)
#define HYDNS_CAPTURE_LINKS    64      /* interfaces whose lost packets are counted */

/* Which packets are captured. Zeros: any interface, any name, any client. */
struct hydns_capture_filter {
	__u64 reasons;       /* a bit for each reason */
	__u64 client[2];     /* network order, IPv4 mapped, with zeros where mask has them */
	__u64 mask[2];
	__u32 ifindex;       /* where queries arrive */
	__u32 most;          /* octets of a frame that are kept */
	__u16 name_len;      /* 0: any name */
	__u8  below;         /* names below it, too */
	__u8  reserved[5];
	__u8  name[256];     /* wire format, lower case */
};

/* The frame as it came in, and as it left the program. */
enum hydns_capture_way { HYDNS_CAPTURE_IN, HYDNS_CAPTURE_OUT, HYDNS_CAPTURE_WAYS };

/* A packet. Its frames follow, one after the other; there is no second one unless the program sent it. */
struct hydns_captured {
	__u64 at_ns[HYDNS_CAPTURE_WAYS];   /* monotonic */
	__u32 ifindex[HYDNS_CAPTURE_WAYS];
	__u32 whole[HYDNS_CAPTURE_WAYS];   /* octets of the frame */
	__u32 octets[HYDNS_CAPTURE_WAYS];  /* of which follow */
	__u32 reason;
	__u32 replayed;                    /* not 0: it was parked, and came in again */
};

HYDNS_STATIC_ASSERT(HYDNS_REASONS <= 64, "a bit for each reason");

#endif
