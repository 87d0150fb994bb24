/* SPDX-License-Identifier: GPL-2.0-only */
/* The time of a program's runs, without packets. */
#ifndef HYDNS_KERN_COST_TIMED_H
#define HYDNS_KERN_COST_TIMED_H

#include <linux/types.h>

/* Nanoseconds of a run, as the mean of so many; or a negative errno. The program makes its frame anew each time; the first one has len
 * octets. The kernel leaves out of it the time that others have had the processor. */
int hydns_timed_run(int prog_fd, __u32 len, unsigned runs);

#endif
