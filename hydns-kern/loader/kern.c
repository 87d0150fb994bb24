/* SPDX-License-Identifier: GPL-2.0-only */
/* The arrays and sizes of an open instance, and the line that says why a call has failed. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

int hydns_fail(char why[HYDNS_WHY], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, HYDNS_WHY, fmt, ap);
	va_end(ap);
	return err;
}

/* -- arrays -------------------------------------------------------------------------------------------- */
const struct hydns_geometry *hydns_kern_geometry(const struct hydns_kern *k)
{
	return k->mapped[HYDNS_MAPPED_META].at;
}

__u8 *hydns_kern_slots(struct hydns_kern *k)
{
	return k->mapped[HYDNS_MAPPED_SLOTS].at;
}

struct hydns_bucket *hydns_kern_index(struct hydns_kern *k)
{
	return k->mapped[HYDNS_MAPPED_INDEX].at;
}

const struct hydns_line *hydns_kern_hits(struct hydns_kern *k)
{
	return k->mapped[HYDNS_MAPPED_HITS].at;
}

struct hydns_line *hydns_kern_claims(struct hydns_kern *k)
{
	return k->mapped[HYDNS_MAPPED_CLAIMS].at;
}

__u32 *hydns_kern_seen(struct hydns_kern *k)
{
	struct hydns_line *lines = k->mapped[HYDNS_MAPPED_SEEN].at;

	return lines->word;
}

struct hydns_tallies *hydns_kern_tallies(struct hydns_kern *k)
{
	return k->mapped[HYDNS_MAPPED_TALLIES].at;
}

__u32 *hydns_kern_empty(struct hydns_kern *k)
{
	struct hydns_geometry *g = k->mapped[HYDNS_MAPPED_META].at;

	return &g->empty;
}

__u32 hydns_kern_next_page_serial(struct hydns_kern *k)
{
	struct hydns_geometry *g = k->mapped[HYDNS_MAPPED_META].at;

	return __atomic_add_fetch(&g->page_serial, 1, __ATOMIC_RELAXED);
}

int hydns_kern_prog_fd(const struct hydns_kern *k)
{
	return bpf_program__fd(hydns_program_at(k->skel, HYDNS_HOOK_XDP));
}

/* -- memory --------------------------------------------------------------------------------------------- */
/* Adds "memlock" of the map's fdinfo: what the kernel accounts for it. */
static int map_memory(int map_fd, __u64 *bytes)
{
	unsigned long long n;
	char path[64], line[128];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map_fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "memlock: %llu", &n) == 1;
	fclose(f);
	if (!found)
		return -ENODATA;
	*bytes += n;
	return 0;
}

/* Before 6.4 the kernel takes every access list for a full one. */
static int acl_memory(const struct hydns_kern *k, int i, __u64 *bytes)
{
	const __u64 most = (__u64)k->acl_entries[i] * HYDNS_ACL_ENTRY_MOST;
	__u64 said = 0;
	int err = map_memory(k->acl_fd[i], &said);

	*bytes += said < most ? said : most;
	return err;
}

int hydns_kern_memory(struct hydns_kern *k, __u64 *bytes)
{
	struct bpf_map *map;
	__u64 sum = 0;
	int err = 0;

	bpf_object__for_each_map(map, k->skel->obj)
		if (!err && map != k->skel->maps.hydns_capture && bpf_map__autocreate(map))
			err = map_memory(bpf_map__fd(map), &sum);
	if (!err)
		err = map_memory(bpf_map__fd(k->dry->maps.hydns_scratch), &sum);
	for (int i = 0; i < HYDNS_ACL_MAPS && !err; i++)
		err = acl_memory(k, i, &sum);
	for (int i = 0; i < HYDNS_RESOLVERS && !err; i++)
		if (k->page[i].map_fd >= 0)
			err = map_memory(k->page[i].map_fd, &sum);
	for (int i = 0; i < HYDNS_RESOLVERS && !err; i++)
		if (k->log_fd[i] >= 0)
			err = map_memory(k->log_fd[i], &sum);
	for (int i = 0; i < HYDNS_RESOLVERS && !err; i++)
		if (k->budget_fd[i] >= 0)
			err = map_memory(k->budget_fd[i], &sum);
	for (int i = 0; i < HYDNS_RESOLVERS && !err; i++)
		if (k->names_fd[i] >= 0)
			err = map_memory(k->names_fd[i], &sum);
	if (!err)
		*bytes = sum;
	return err;
}
