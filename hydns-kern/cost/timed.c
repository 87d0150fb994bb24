/* SPDX-License-Identifier: GPL-2.0-only */
#include "hydns-kern/cost/timed.h"

#include <bpf/bpf.h>

#define FRAME_MOST 512

int hydns_timed_run(int prog_fd, __u32 len, unsigned runs)
{
	static const __u8 in[FRAME_MOST];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in, .data_size_in = len, .repeat = (int)runs);
	int err = bpf_prog_test_run_opts(prog_fd, &opts);

	return err ? err : (int)opts.duration;
}
