/* SPDX-License-Identifier: GPL-2.0-only */
/* Opens and closes: loads the programs over new maps, or over those of a former hydnsd. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/random.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/cpus.h"
#include "hydns-kern/loader/kern.h"

#define CAPACITY_MOST (1U << 26)       /* 64 M rules take 19 GB; ordinals have 27 bits */

/* libbpf's last warning, for our own message: an operator has no use for the verifier's whole log. */
static _Thread_local char libbpf_warning[160];

static int keep_last_warning(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(libbpf_warning, sizeof(libbpf_warning), fmt, ap);
	libbpf_warning[strcspn(libbpf_warning, "\n")] = 0;
	return 0;
}

void hydns_keep_warnings(void)
{
	libbpf_set_print(keep_last_warning);
	libbpf_warning[0] = 0;
}

/* -- sizes and configuration ------------------------------------------------------------------------- */
/* Of two of this version. */
static bool same_layout(const struct hydns_geometry *a, const struct hydns_geometry *b)
{
	return a->cpus == b->cpus;
}

static bool same_sizes(const struct hydns_geometry *a, const struct hydns_geometry *b)
{
	return same_layout(a, b) && a->buckets == b->buckets && a->lines == b->lines && a->spans == b->spans;
}

static int fresh_geometry(struct hydns_geometry *g, char why[HYDNS_WHY])
{
	if (getrandom(g->seed, sizeof(g->seed), 0) != sizeof(g->seed) ||
	    getrandom(g->tag_seed, sizeof(g->tag_seed), 0) != sizeof(g->tag_seed))
		return hydns_fail(why, -EIO, "no random numbers for the maps' secrets: %s",
				  strerror(errno));
	return 0;
}

int hydns_maps_size(struct hydns_bpf *b, const struct hydns_geometry *g)
{
	const struct { struct bpf_map *map; __u32 entries; } size[] = {
		{ b->maps.hydns_slots, hydns_geometry_chunks(g) }, { b->maps.hydns_index, g->buckets },
		{ b->maps.hydns_hits, hydns_geometry_hit_rows(g) * g->lines }, { b->maps.hydns_claims, g->lines },
		{ b->maps.hydns_seen, g->lines },
	};
	int err = 0;

	for (unsigned i = 0; i < sizeof(size) / sizeof(*size) && !err; i++)
		err = bpf_map__set_max_entries(size[i].map, size[i].entries);
	return err;
}

/* -- loading ------------------------------------------------------------------------------------------ */
int hydns_explain_load(int err, char why[HYDNS_WHY])
{
	if (err == -EPERM)
		return hydns_fail(why, err, "the kernel refused the XDP program: CAP_BPF, CAP_PERFMON and "
				  "CAP_NET_ADMIN are needed to load it (libbpf: %s)", libbpf_warning);
	if (err == -EACCES)
		return hydns_fail(why, err, "the kernel's verifier refused the XDP program: start with "
				  "CAP_PERFMON; with it, this kernel is not supported (libbpf: %s)",
				  libbpf_warning);
	if (err == -ENOMEM)
		return hydns_fail(why, err, "no memory for the rule store: lower capacity, or raise the "
				  "memory limit of the service (libbpf: %s)", libbpf_warning);
	return hydns_fail(why, err, "the kernel refused the XDP program: %s; Linux 6.1 or later with "
			  "BTF is needed (libbpf: %s)", strerror(-err), libbpf_warning);
}

/* One more than the highest number of an online CPU. A CPU that comes online later shares a row of hits. */
static __u32 present_cpus(__u32 possible)
{
	cpu_set_t online;

	if (hydns_cpus_online(&online))
		return possible;
	for (__u32 cpu = possible; cpu > 0; cpu--)
		if (CPU_ISSET(cpu - 1, &online))
			return cpu;
	return possible;
}

/* Decides between the pinned maps and new ones, and loads the program over them. */
static int load(struct hydns_kern *k, const struct hydns_loader_options *o, bool *adopted,
		char why[HYDNS_WHY])
{
	struct hydns_geometry want, pinned;
	int err, cpus = libbpf_num_possible_cpus();
	bool readable, same;

	if (cpus < 0)
		return hydns_fail(why, cpus, "can't find the number of CPUs: %s", strerror(-cpus));
	hydns_geometry_for(o->capacity, (__u32)cpus, present_cpus((__u32)cpus), &want);
	readable = hydns_pins_geometry(k->pin_dir, &pinned);
	same = readable && same_sizes(&pinned, &want);
	if (same)
		want = pinned;
	k->skel = hydns_bpf__open();
	if (!k->skel)
		return hydns_fail(why, -errno, "can't open the XDP program: %s (libbpf: %s)",
				  strerror(errno), libbpf_warning);
	err = hydns_maps_size(k->skel, &want);
	if (err)
		return hydns_fail(why, err, "can't size the maps: %s", strerror(-err));
	err = hydns_composition_set(k->skel, &o->with, why);
	if (err)
		return err;
	*adopted = same && hydns_pins_adopt(k);
	err = *adopted ? 0 : fresh_geometry(&want, why);
	if (err)
		return err;
	if (!*adopted) {
		k->former_abi = hydns_pins_abi(k->pin_dir);
		k->former = readable && same_layout(&pinned, &want) ? hydns_former_open(k->pin_dir, &pinned) : NULL;
	}
	memcpy((void *)&k->skel->rodata->hydns_geometry, &want, sizeof(want));
	err = hydns_bpf__load(k->skel);
	if (err)
		return hydns_explain_load(err, why);
	err = hydns_stages_fill(k->skel);
	if (err)
		return hydns_fail(why, err, "can't put the stages in their places: %s", strerror(-err));
	err = hydns_capture_let_go(k->skel);
	if (err)
		return hydns_fail(why, err, "can't prepare for captures: %s", strerror(-err));
	if (!*adopted) {
		__u32 key = 0;

		err = bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_meta), &key, &want, BPF_ANY);
		if (!err)
			err = hydns_scratch_prepare(bpf_map__fd(k->skel->maps.hydns_scratch), &want);
		if (err)
			return hydns_fail(why, err, "can't write hydns_meta and hydns_scratch: %s", strerror(-err));
	}
	return 0;
}

static int map_arrays(struct hydns_kern *k, char why[HYDNS_WHY])
{
	const struct { enum hydns_mapped as; struct bpf_map *map; bool writable; } array[] = {
		{ HYDNS_MAPPED_SLOTS, k->skel->maps.hydns_slots, true },
		{ HYDNS_MAPPED_INDEX, k->skel->maps.hydns_index, true },
		{ HYDNS_MAPPED_HITS, k->skel->maps.hydns_hits, false },
		{ HYDNS_MAPPED_CLAIMS, k->skel->maps.hydns_claims, true },
		{ HYDNS_MAPPED_SEEN, k->skel->maps.hydns_seen, true },
		{ HYDNS_MAPPED_TALLIES, k->skel->maps.hydns_tallies, true },
		{ HYDNS_MAPPED_META, k->skel->maps.hydns_meta, true },
		{ HYDNS_MAPPED_GUARD, k->skel->maps.hydns_gd_cells, false },
	};

	for (unsigned i = 0; i < sizeof(array) / sizeof(*array); i++) {
		int err = hydns_map_memory(bpf_map__fd(array[i].map), array[i].writable,
					   &k->mapped[array[i].as]);

		if (err)
			return hydns_fail(why, err, "can't map %s into memory: %s",
					  bpf_map__name(array[i].map), strerror(-err));
	}
	return 0;
}

/* Leaves the pins as they are when maps are new. */
static int prepare(struct hydns_kern *k, bool adopted, bool queue, char why[HYDNS_WHY])
{
	int err = map_arrays(k, why);

	if (err)
		return err;
	k->published = adopted;
	err = hydns_acls_open(k, adopted, why);
	if (err)
		return err;
	err = hydns_ports_open(k);
	if (err)
		return hydns_fail(why, err, "can't map hydns_ports into memory: %s", strerror(-err));
	err = hydns_parking_open(k, k->skel->rodata->hydns_miss_stage);
	if (err)
		return hydns_fail(why, err, "can't open the maps of parked queries: %s", strerror(-err));
	err = hydns_forwarding_open(k);
	if (err)
		return hydns_fail(why, err, "can't open the maps of forwarded queries: %s", strerror(-err));
	err = hydns_stray_open(k, adopted, queue, why);
	if (err)
		return err;
	if (adopted)
		hydns_pages_open(k);
	err = hydns_dry_open(k->skel, hydns_kern_geometry(k), &k->dry);
	if (err)
		return hydns_explain_load(err, why);
	return adopted ? hydns_pins_publish_parts(k, why) : 0;
}

static struct hydns_kern *kern_new(const char *pin_dir)
{
	struct hydns_kern *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	snprintf(k->pin_dir_named, sizeof(k->pin_dir_named), "%s", pin_dir);
	k->dir_fd = k->stray_fd = k->former_stray_fd = k->sent_fd = -1;
	for (int i = 0; i < HYDNS_ACL_MAPS; i++)
		k->acl_fd[i] = -1;
	for (int i = 0; i < HYDNS_RESOLVERS; i++)
		k->page[i].map_fd = k->log_fd[i] = k->budget_fd[i] = k->names_fd[i] = -1;
	return k;
}

int hydns_kern_open(const struct hydns_loader_options *o, struct hydns_kern **out, bool *adopted,
		    char why[HYDNS_WHY])
{
	struct hydns_kern *k;
	bool reused = false;
	int err;

	if (o->capacity == 0 || o->capacity > CAPACITY_MOST)
		return hydns_fail(why, -EINVAL, "capacity %u is out of range: give 1 to %u rules",
				  o->capacity, CAPACITY_MOST);
	if (strlen(o->pin_dir) + NAME_MAX >= PATH_MAX)
		return hydns_fail(why, -ENAMETOOLONG, "the pin directory's path is too long");
	k = kern_new(o->pin_dir);
	if (!k)
		return hydns_fail(why, -ENOMEM, "no memory");
	hydns_keep_warnings();
	k->dir_fd = err = hydns_pin_dir_open(o->pin_dir, o->uid, why);
	snprintf(k->pin_dir, sizeof(k->pin_dir), "/proc/self/fd/%d", k->dir_fd);
	if (err >= 0)
		err = load(k, o, &reused, why);
	if (err >= 0)
		err = prepare(k, reused, o->with.queue, why);
	if (err < 0) {
		hydns_kern_close(k);
		return err;
	}
	*out = k;
	*adopted = reused;
	return 0;
}

void hydns_kern_close(struct hydns_kern *k)
{
	if (!k)
		return;
	for (int i = 0; i < HYDNS_MAPPED; i++)
		hydns_unmap_memory(&k->mapped[i]);
	hydns_unmap_memory(&k->ports);
	hydns_parking_close(k);
	hydns_forwarding_close(k);
	hydns_stray_close(k);
	hydns_pages_close(k);
	hydns_former_close(k->former);
	for (int i = 0; i < HYDNS_ACL_MAPS; i++)
		if (k->acl_fd[i] >= 0)
			close(k->acl_fd[i]);
	hydns_resolver_maps_close(k);
	hydns_bpf__destroy(k->dry);
	hydns_bpf__destroy(k->skel);
	if (k->dir_fd >= 0)
		close(k->dir_fd);
	free(k);
}
