/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters per CPU: packets by reason, answers by resolver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

int hydns_percpu_sum(int map_fd, __u32 cpus, __u32 key, unsigned words, __u64 *sum)
{
	__u64 *each = calloc(cpus, words * sizeof(*each));
	int err;

	if (!each)
		return -ENOMEM;
	err = bpf_map_lookup_elem(map_fd, &key, each);
	if (!err) {
		memset(sum, 0, words * sizeof(*sum));
		for (__u32 cpu = 0; cpu < cpus; cpu++)
			for (unsigned w = 0; w < words; w++)
				sum[w] += each[cpu * words + w];
	}
	free(each);
	return err;
}

int hydns_kern_stats(struct hydns_kern *k, __u64 *reasons)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_stats), err = 0;

	for (__u32 r = 0; r < HYDNS_REASONS && !err; r++)
		err = hydns_percpu_sum(fd, hydns_kern_geometry(k)->cpus, r, 1, &reasons[r]);
	return err;
}

int hydns_kern_resolver_counts(struct hydns_kern *k, __u32 resolver, struct hydns_resolver_count *sum)
{
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_answers), hydns_kern_geometry(k)->cpus, resolver,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}

int hydns_kern_below_types(struct hydns_kern *k, __u32 resolver, struct hydns_type_counts *sum)
{
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_below_types), hydns_kern_geometry(k)->cpus, resolver,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}

int hydns_kern_below_types_clear(struct hydns_kern *k, __u32 resolver)
{
	struct hydns_type_counts *zero = calloc(hydns_kern_geometry(k)->cpus, sizeof(*zero));
	int err = zero ? bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_below_types), &resolver, zero, BPF_ANY) : -ENOMEM;

	free(zero);
	return err;
}
