/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs behind tail calls. */
#include "hydns-kern/loader/kern.h"
#include "hydns-kern/program/stages.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

int hydns_stages_fill(struct hydns_bpf *b)
{
	const struct { enum hydns_stage place; const struct bpf_program *program; bool called; } stage[] = {
		{ HYDNS_STAGE_MISS, b->progs.hydns_miss, b->rodata->hydns_miss_stage },
	};
	int err = 0;

	for (unsigned i = 0; i < sizeof(stage) / sizeof(*stage) && !err; i++) {
		__u32 place = stage[i].place;
		int fd = bpf_program__fd(stage[i].program);

		if (stage[i].called)
			err = bpf_map_update_elem(bpf_map__fd(b->maps.hydns_stages), &place, &fd, BPF_ANY);
	}
	return err;
}
