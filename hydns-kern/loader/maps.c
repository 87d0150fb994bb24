/* SPDX-License-Identifier: GPL-2.0-only */
/* Arrays mapped into memory, and per-CPU scratch. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "hydns-kern/loader/kern.h"

int hydns_map_memory(int map_fd, bool writable, struct hydns_mapping *out)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size;
	void *at;

	if (bpf_obj_get_info_by_fd(map_fd, &info, &len))
		return -errno;
	/* The kernel aligns array elements to 8 octets and maps whole pages. */
	size = (size_t)info.max_entries * ((info.value_size + 7) & ~7U);
	size = (size + page - 1) / page * page;
	at = mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, map_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	*out = (struct hydns_mapping){ at, size };
	return 0;
}

void hydns_unmap_memory(struct hydns_mapping *m)
{
	if (m->at)
		munmap(m->at, m->len);
	*m = (struct hydns_mapping){ 0 };
}

int hydns_scratch_prepare(int scratch_fd, const struct hydns_geometry *g)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info), key = 0;
	size_t each;
	__u8 *all;
	int err;

	if (bpf_obj_get_info_by_fd(scratch_fd, &info, &len))
		return -errno;
	each = (info.value_size + 7) & ~7U;
	all = calloc(g->cpus, each);
	if (!all)
		return -ENOMEM;
	for (__u32 cpu = 0; cpu < g->cpus; cpu++)
		*(struct hydns_counting *)(all + cpu * each) = hydns_geometry_counting(g, cpu);
	err = bpf_map_update_elem(scratch_fd, &key, all, BPF_ANY);
	free(all);
	return err;
}

__u32 hydns_map_id(int map_fd)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(map_fd, &info, &len) ? 0 : info.id;
}
