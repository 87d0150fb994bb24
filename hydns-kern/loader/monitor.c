/* SPDX-License-Identifier: GPL-2.0-only */
/* The monitor: its windows, of which the program writes one while the other is read and cleared; and the maps of analysers. */
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

/* -- analysers ---------------------------------------------------------------------------------------- */
bool hydns_map_is_of_analysers(const struct bpf_map *map)
{
	return !strncmp(bpf_map__name(map), HYDNS_ANALYSIS_PREFIX, strlen(HYDNS_ANALYSIS_PREFIX));
}

void hydns_analysers_make(struct hydns_bpf *b, bool make)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, b->obj)
		if (hydns_map_is_of_analysers(map))
			bpf_map__set_autocreate(map, make);
}

static const struct bpf_map *analysis_map(const struct hydns_bpf *b, enum hydns_analysis_map which)
{
	const struct bpf_map *const maps[HYDNS_ANALYSIS_MAPS] = {
		[HYDNS_ANALYSIS_CLIENTS] = b->maps.hydns_an_client, [HYDNS_ANALYSIS_SUFFIXES] = b->maps.hydns_an_suffix,
		[HYDNS_ANALYSIS_FIGURES] = b->maps.hydns_an_figure, [HYDNS_ANALYSIS_SAMPLE] = b->maps.hydns_an_sample,
	};

	return maps[which];
}

void hydns_kern_analyse(struct hydns_kern *k, __u32 analysers)
{
	__atomic_store_n(&k->skel->bss->hydns_analysing, analysers, __ATOMIC_RELAXED);
}

size_t hydns_kern_analysis_octets(const struct hydns_kern *k, enum hydns_analysis_map which)
{
	const struct bpf_map *map = analysis_map(k->skel, which);

	return (size_t)bpf_map__max_entries(map) * hydns_kern_geometry(k)->cpus * bpf_map__value_size(map);
}

int hydns_analysis_take(const struct hydns_bpf *b, __u32 cpus, enum hydns_analysis_map which, void *out)
{
	const struct bpf_map *map = analysis_map(b, which);
	size_t each = (size_t)cpus * bpf_map__value_size(map);
	void *none = calloc(1, each);
	int err = none ? 0 : -ENOMEM;

	for (__u32 i = 0; i < bpf_map__max_entries(map) && !err; i++) {
		if (out)
			err = bpf_map_lookup_elem(bpf_map__fd(map), &i, (char *)out + i * each);
		if (!err)
			err = bpf_map_update_elem(bpf_map__fd(map), &i, none, BPF_ANY);
	}
	free(none);
	return err;
}

int hydns_kern_analysis_take(struct hydns_kern *k, enum hydns_analysis_map which, void *out)
{
	return hydns_analysis_take(k->skel, hydns_kern_geometry(k)->cpus, which, out);
}
