/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies of a program over the same maps and with the same configuration. */
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* The configuration is copied. Shared are the pinned maps, and .bss, which hydnsd writes while the program runs. */
static bool is_shared(const struct hydns_bpf *copy, const struct bpf_map *map, bool own_scratch)
{
	if (own_scratch && map == copy->maps.hydns_scratch)
		return false;
	return hydns_map_is_pinned(map) || map == copy->maps.bss;
}

struct hydns_bpf *hydns_copy_open(const struct hydns_bpf *of, enum hydns_hook hook, bool own_scratch)
{
	struct hydns_bpf *copy = hydns_bpf__open();
	struct bpf_map *from, *to;

	if (!copy)
		return NULL;
	*copy->rodata = *of->rodata;
	hydns_programs_only(copy, hook);
	hydns_analysers_make(copy, false);
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
