/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a packet costs: the kernel counts runs and time of each program while somebody holds the descriptor of BPF_ENABLE_STATS, and
 * stops when that is closed, however this process ends. A stage behind a tail call is counted with the program that calls it.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "hydnsd/ctl/common.h"

struct runs {
	__u64 count, ns;
};

static bool read_runs(__u32 id, struct runs *out)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);
	int fd = id ? bpf_prog_get_fd_by_id(id) : -1;
	bool ok = fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len);

	if (fd >= 0)
		close(fd);
	*out = (struct runs){ info.run_cnt, info.run_time_ns };
	return ok;
}

/* Writes what has run since then; a program that nothing has run keeps null. */
static void take(json_t *program, const struct runs *before)
{
	struct runs now;

	if (!read_runs((__u32)ctl_int(program, FIELD(program, id)), &now) || now.count <= before->count)
		return;
	json_object_set_new(program, FIELD(program, runs), json_integer((json_int_t)(now.count - before->count)));
	json_object_set_new(program, FIELD(program, ns), json_real((double)(now.ns - before->ns) / (double)(now.count - before->count)));
}

static void wait_seconds(unsigned seconds)
{
	struct timespec left = { .tv_sec = seconds };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

int ctl_measure(json_t *programs, unsigned seconds, char why[CTL_WHY])
{
	struct runs before[CTL_PROGRAMS] = { 0 };
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	json_t *p;
	size_t n;

	if (fd < 0) {
		snprintf(why, CTL_WHY, "cannot measure: %s", errno == EPERM ? "run it as root" : strerror(errno));
		return -errno;
	}
	json_array_foreach(programs, n, p)
		if (n < CTL_PROGRAMS)
			read_runs((__u32)ctl_int(p, FIELD(program, id)), &before[n]);
	wait_seconds(seconds);
	json_array_foreach(programs, n, p)
		if (n < CTL_PROGRAMS)
			take(p, &before[n]);
	close(fd);
	return 0;
}
