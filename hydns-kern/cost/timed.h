/* SPDX-License-Identifier: GPL-2.0-only */
/* The time of a program's runs, without packets. */
#ifndef HYDNS_KERN_COST_TIMED_H
#define HYDNS_KERN_COST_TIMED_H

#include <linux/types.h>

/* A program that makes a frame and then calls what is in the program array. */
struct hydns_timed {
	int maker_fd, next_fd;
	__u32 len;                     /* of the first frame */
};
/* Nanoseconds of a run, the frame's making included, as the mean of so many; or a negative errno. The kernel leaves out of it the
 * time that others have had the processor. */
int hydns_timed_run(const struct hydns_timed *t, int prog_fd, unsigned repeat);

#endif
