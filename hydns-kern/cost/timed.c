/* SPDX-License-Identifier: GPL-2.0-only */
#include "hydns-kern/cost/timed.h"

#include <stddef.h>
#include <bpf/bpf.h>

#define FRAME_MOST 512

int hydns_timed_run(const struct hydns_timed *t, int prog_fd, unsigned repeat)
{
	static const __u8 in[FRAME_MOST];
	__u32 key = 0;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in, .data_size_in = t->len, .repeat = (int)repeat);
	int err = bpf_map_update_elem(t->next_fd, &key, &prog_fd, BPF_ANY);

	if (!err)
		err = bpf_prog_test_run_opts(t->maker_fd, &opts);
	return err ? err : (int)opts.duration;
}
