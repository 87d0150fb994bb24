/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps that a former hydnsd left and that are not adopted, because their sizes differ. Its program answers from them until
 * it is replaced; then its counts are read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "hydns/abi.h"
#include "hydns-kern/loader/kern.h"
#include "hydns-kern/store/store.h"

struct hydns_former {
	struct hydns_geometry geometry;
	struct hydns_mapping mapped[HYDNS_MAPPED];
	int counts_fd;                       /* hydns_answers */
	__u32 page_id[HYDNS_RESOLVERS];    /* 0: none */
};

static int open_pinned(const char *pin_dir, const char *prefix, const char *name)
{
	char path[PATH_MAX];

	return hydns_pin_path(path, pin_dir, prefix, name) ? -1 : bpf_obj_get(path);
}

/* False: it is missing, or smaller than len. */
static bool map_pinned(const char *pin_dir, const char *name, size_t len, struct hydns_mapping *out)
{
	int fd = open_pinned(pin_dir, "", name);
	bool good = fd >= 0 && !hydns_map_memory(fd, true, out) && out->len >= len;

	if (fd >= 0)
		close(fd);
	return good;
}

static bool map_arrays(struct hydns_former *f, const char *pin_dir)
{
	const struct hydns_geometry *g = &f->geometry;
	const struct { const char *name; size_t len; } array[HYDNS_MAPPED] = {
		[HYDNS_MAPPED_SLOTS] = { "hydns_slots", (size_t)hydns_geometry_chunks(g) * HYDNS_CHUNK },
		[HYDNS_MAPPED_INDEX] = { "hydns_index", g->buckets * sizeof(struct hydns_bucket) },
		[HYDNS_MAPPED_HITS] = { "hydns_hits", (size_t)hydns_geometry_hit_rows(g) * g->lines *
					sizeof(struct hydns_line) },
		[HYDNS_MAPPED_CLAIMS] = { "hydns_claims", g->lines * sizeof(struct hydns_line) },
		[HYDNS_MAPPED_SEEN] = { "hydns_seen", g->lines * sizeof(struct hydns_line) },
		[HYDNS_MAPPED_TALLIES] = { "hydns_tallies", sizeof(struct hydns_tallies) },
		[HYDNS_MAPPED_META] = { "hydns_meta", sizeof(*g) },
	};

	/* of the guard's cells nothing is read */
	for (int i = 0; i < HYDNS_MAPPED; i++)
		if (array[i].name && !map_pinned(pin_dir, array[i].name, array[i].len, &f->mapped[i]))
			return false;
	return true;
}

static void find_pages(struct hydns_former *f, const char *pin_dir)
{
	for (int i = 0; i < HYDNS_RESOLVERS; i++) {
		char name[16];
		int fd;

		snprintf(name, sizeof(name), "%d", i);
		fd = open_pinned(pin_dir, HYDNS_PIN_PAGE, name);
		if (fd < 0)
			continue;
		f->page_id[i] = hydns_map_id(fd);
		close(fd);
	}
}

struct hydns_former *hydns_former_open(const char *pin_dir, const struct hydns_geometry *g)
{
	struct hydns_former *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->geometry = *g;
	f->counts_fd = open_pinned(pin_dir, "", "hydns_answers");
	if (f->counts_fd < 0 || !map_arrays(f, pin_dir)) {
		hydns_former_close(f);
		return NULL;
	}
	find_pages(f, pin_dir);
	return f;
}

void hydns_former_close(struct hydns_former *f)
{
	if (!f)
		return;
	for (int i = 0; i < HYDNS_MAPPED; i++)
		hydns_unmap_memory(&f->mapped[i]);
	if (f->counts_fd >= 0)
		close(f->counts_fd);
	free(f);
}

struct hydns_former *hydns_kern_former(struct hydns_kern *k, __u32 *other_abi)
{
	struct hydns_former *f = k->former;

	*other_abi = k->former_abi == hydns_abi_version() ? 0 : k->former_abi;
	k->former = NULL;
	return f;
}

void hydns_former_memory(struct hydns_former *f, struct hydns_store_memory *out)
{
	struct hydns_geometry *meta = f->mapped[HYDNS_MAPPED_META].at;
	struct hydns_line *seen = f->mapped[HYDNS_MAPPED_SEEN].at;

	*out = (struct hydns_store_memory){
		.geometry = &f->geometry, .slots = f->mapped[HYDNS_MAPPED_SLOTS].at,
		.index = f->mapped[HYDNS_MAPPED_INDEX].at, .hits = f->mapped[HYDNS_MAPPED_HITS].at,
		.claims = f->mapped[HYDNS_MAPPED_CLAIMS].at, .empty = &meta->empty, .seen = seen->word,
		.tallies = f->mapped[HYDNS_MAPPED_TALLIES].at,
	};
}

__u32 hydns_former_page(const struct hydns_former *f, __u32 i)
{
	return f->page_id[i];
}

int hydns_former_counts(const struct hydns_former *f, __u32 i, struct hydns_resolver_count *sum)
{
	return hydns_percpu_sum(f->counts_fd, f->geometry.cpus, i, sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}
