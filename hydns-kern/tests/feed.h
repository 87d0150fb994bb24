/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs frames from standard input through the XDP program and writes the outcomes to standard output, for another program to
 * check. Both streams are records; numbers are in network order:
 *   in    u16 octets, frame
 *   out   u8 XDP action (255: the kernel does not run a frame of this length), u16 octets, frame afterwards
 * The output begins with the ordinary query of every rule, over IPv4 and over IPv6, each in the format of an input record, and
 * an input record of length 0.
 */
#ifndef HYDNS_TEST_FEED_H
#define HYDNS_TEST_FEED_H

#include "kernel.h"

#define FEED_NOT_RUN 255

/* Writes the queries of one rule; before feed(). */
void feed_rule(const struct query *q);
/* Runs until the input ends; 0, or 1 with a message if it ends within a record. */
int feed(struct kernel *k);

#endif
