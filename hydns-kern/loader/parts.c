/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps that only one part of the program uses. While the part is out they have the least size; a set of programs that has it gets new
 * ones. They stay as large until hydnsd ends, because a ring buffer that is read can't be taken away.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

#define MAPS 7

struct part_map {
	struct bpf_map *map;
	bool in;
};

static void list(const struct hydns_bpf *b, const struct hydns_composition *with, struct part_map out[MAPS])
{
	const struct part_map maps[MAPS] = {
		{ b->maps.hydns_parked, with->parking }, { b->maps.hydns_answered, with->forwarding },
		{ b->maps.hydns_fwd_open, with->forwarding }, { b->maps.hydns_fwd_ports, with->forwarding },
		{ b->maps.hydns_windows, with->monitor }, { b->maps.hydns_gd_cells, with->guard }, { b->maps.hydns_gd_rules, with->guard },
	};

	memcpy(out, maps, sizeof(maps));
}

int hydns_parts_size(struct hydns_bpf *b, const struct hydns_composition *with)
{
	const __u32 page = (__u32)sysconf(_SC_PAGESIZE);
	struct part_map maps[MAPS];
	int err = 0;

	list(b, with, maps);
	for (unsigned i = 0; i < MAPS && !err; i++)
		if (!maps[i].in)       /* the least ring buffer is a page */
			err = bpf_map__set_max_entries(maps[i].map, bpf_map__type(maps[i].map) == BPF_MAP_TYPE_RINGBUF ? page : 1);
	return err;
}

bool hydns_map_is_of_part(const struct hydns_bpf *b, const struct bpf_map *map)
{
	struct part_map maps[MAPS];

	list(b, &(struct hydns_composition){ 0 }, maps);
	for (unsigned i = 0; i < MAPS; i++)
		if (maps[i].map == map)
			return true;
	return false;
}

int hydns_parts_follow(struct hydns_kern *k)
{
	struct hydns_mapping cells;
	int err = hydns_map_memory(bpf_map__fd(k->skel->maps.hydns_gd_cells), false, &cells);

	if (err)
		return err;
	hydns_unmap_memory(&k->mapped[HYDNS_MAPPED_GUARD]);
	k->mapped[HYDNS_MAPPED_GUARD] = cells;
	err = hydns_parked_reader_follow(k);
	return err ? err : hydns_answer_reader_follow(k);
}

int hydns_ring_follow(struct hydns_ring_reader *r, const struct bpf_map *map, ring_buffer_sample_fn fn, void *arg)
{
	int fd = bpf_map__fd(map), err = 0;
	__u32 id = hydns_map_id(fd);

	if (id == r->last)
		return 0;
	if (r->buffer)
		err = ring_buffer__add(r->buffer, fd, fn, arg);
	else
		r->buffer = ring_buffer__new(fd, fn, arg, NULL);
	if (!r->buffer)
		err = -errno;
	if (!err)
		r->last = id;
	return err;
}
