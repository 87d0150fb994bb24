/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lets another program judge: frames on standard input go through the XDP program, what becomes of them is
 * written to standard output. Both are records; numbers in network order:
 *   in    u16 octets, frame
 *   out   u8 XDP action (255: the kernel does not run a frame of this length), u16 octets, frame after
 * Before the first of these, the output has the ordinary query of every rule, for IPv4 and for IPv6, each
 * as an input record is, and a record of length 0.
 */
#ifndef HYDNS_TEST_FEED_H
#define HYDNS_TEST_FEED_H

#include "kernel.h"

#define FEED_NOT_RUN 255

void feed_rule(const struct query *q);
/* Until the input ends; 0, or 1 with a message if it ends within a record. */
int feed(struct kernel *k);

#endif
