/* SPDX-License-Identifier: GPL-2.0-only */
/* The monitor's windows: the program writes one while the other is read and cleared. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

__u32 hydns_kern_window_next(struct hydns_kern *k)
{
	__u32 *now = &k->skel->bss->hydns_window_now, ended = *now % HYDNS_WINDOWS;

	__atomic_store_n(now, (ended + 1) % HYDNS_WINDOWS, __ATOMIC_RELAXED);
	return ended;
}

int hydns_window_take(int map_fd, __u32 cpus, __u32 window, struct hydns_window *sum)
{
	struct hydns_window *each = calloc(cpus, sizeof(*each));
	int err;

	if (!each)
		return -ENOMEM;
	err = bpf_map_lookup_elem(map_fd, &window, each);
	memset(sum, 0, sizeof(*sum));
	for (__u32 cpu = 0; !err && cpu < cpus; cpu++) {
		hydns_distinct_merge(sum->clients, each[cpu].clients);
		hydns_distinct_merge(sum->names, each[cpu].names);
	}
	memset(each, 0, cpus * sizeof(*each));
	if (!err)
		err = bpf_map_update_elem(map_fd, &window, each, BPF_ANY);
	free(each);
	return err;
}

int hydns_kern_window_take(struct hydns_kern *k, __u32 window, struct hydns_window *sum)
{
	return hydns_window_take(bpf_map__fd(k->skel->maps.hydns_windows), hydns_kern_geometry(k)->cpus, window, sum);
}
