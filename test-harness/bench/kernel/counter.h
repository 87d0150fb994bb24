/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef TEST_HARNESS_BENCH_KERNEL_COUNTER_H
#define TEST_HARNESS_BENCH_KERNEL_COUNTER_H

#include <linux/types.h>

/* A counter of the instructions that this thread retires from now on, its own and the kernel's for it, by the processor's
 * performance counters (perf_event_open(2)). Negative errno where there are none, as in most virtual machines. */
int counter_open(void);
/* The instructions so far; 0 for a counter that could not be opened. */
__u64 counter_read(int fd);

#endif
