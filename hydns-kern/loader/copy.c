/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies of the program over the same maps and with the same configuration. */
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* The configuration is a copy of its own; what hydnsd goes on writing is shared. */
static bool is_shared(const struct hydns_bpf *copy, const struct bpf_map *map, bool own_scratch)
{
	if (own_scratch && map == copy->maps.hydns_scratch)
		return false;
	return hydns_map_is_pinned(map) || map == copy->maps.bss;
}

struct hydns_bpf *hydns_copy_open(const struct hydns_bpf *of, bool own_scratch)
{
	struct hydns_bpf *copy = hydns_bpf__open();
	struct bpf_map *from, *to;

	if (!copy)
		return NULL;
	*copy->rodata = *of->rodata;
	copy->rodata->hydns_miss_stage = false;
	bpf_program__set_autoload(copy->progs.hydns_miss, false);
	bpf_object__for_each_map(to, copy->obj) {
		if (!is_shared(copy, to, own_scratch))
			continue;
		from = bpf_object__find_map_by_name(of->obj, bpf_map__name(to));
		if (!from || bpf_map__reuse_fd(to, bpf_map__fd(from))) {
			hydns_bpf__destroy(copy);
			return NULL;
		}
	}
	return copy;
}
