/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies of a program over the same maps and with the same configuration. */
#include <errno.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* The configuration is copied. Shared are the pinned maps, but for those of a part that were made without it, and .bss, which hydnsd
 * writes while the program runs. */
static bool is_shared(const struct hydns_bpf *copy, const struct bpf_map *map, bool own_scratch)
{
	if (own_scratch && map == copy->maps.hydns_scratch)
		return false;
	return hydns_map_is_pinned(map) || map == copy->maps.bss;
}

int hydns_maps_share(struct hydns_bpf *copy, const struct hydns_bpf *of, bool own_scratch)
{
	struct bpf_map *from, *to;

	bpf_object__for_each_map(to, copy->obj) {
		if (!is_shared(copy, to, own_scratch))
			continue;
		from = bpf_object__find_map_by_name(of->obj, bpf_map__name(to));
		if (from && hydns_map_is_of_part(copy, to) && bpf_map__max_entries(from) < bpf_map__max_entries(to))
			continue;
		if (!from || bpf_map__reuse_fd(to, bpf_map__fd(from)))
			return -errno;
	}
	return 0;
}

struct hydns_bpf *hydns_copy_open(const struct hydns_bpf *of, enum hydns_hook hook, bool own_scratch)
{
	struct hydns_bpf *copy = hydns_bpf__open();

	if (!copy)
		return NULL;
	*copy->rodata = *of->rodata;
	hydns_programs_only(copy, hook);
	hydns_analysers_make(copy, false);
	if (hydns_parts_size(copy, &(struct hydns_composition){ 0 }) || hydns_maps_share(copy, of, own_scratch)) {
		hydns_bpf__destroy(copy);
		return NULL;
	}
	return copy;
}
