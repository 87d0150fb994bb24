/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "test-harness/bench/kernel/counter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

int counter_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_hv = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

__u64 counter_read(int fd)
{
	__u64 value;

	return fd >= 0 && read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}
