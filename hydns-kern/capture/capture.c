/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads the build of the program that watches, once for each hydns_xdp that it finds: with that one's configuration, over the same
 * maps, and with stages of its own. Its place in that one's hydns_capture is what makes it run.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns/abi.h"
#include "hydns/guard.h"
#include "hydns/monitor.h"
#include "hydns/resolver.h"
#include "hydns/switch.h"
#include "hydns-kern/capture/capture.h"
#include "hydns-kern/program/stages.h"
#include "capture.skel.h"

#define PROGRAM  "hydns_xdp"
#define CALL     "hydns_capture"       /* the map by which a program calls the one that watches */
#define WATCHED  8                     /* programs at a time; hydnsd has one, and leaves it to the next when it restarts */
#define MAPS     64                    /* of a program, more than hydns_xdp has */

struct watched {
	__u32 program;                 /* id */
	int call_fd;                   /* its hydns_capture: the kernel empties it when nobody holds it */
	struct hydns_capture_bpf *skel;
};

/* What is found of a running program. Descriptors; negative: it has none. */
struct running {
	__u32 id;
	int call_fd, rodata_fd, bss_fd;
};

struct hydns_capture {
	struct hydns_capture_options o;
	struct hydns_switch *on;       /* hydns_switch, in memory */
	__u32 switch_id;               /* of that map */
	struct hydns_capture_bpf *own; /* whose ring, filter and counts all use; its programs are not loaded */
	struct ring_buffer *ring;
	struct watched watched[WATCHED];
	unsigned n;
};

static const struct { const char *program; enum hydns_stage place; size_t called; } stages[] = {
#define HYDNS_STAGE(place, program, constant, text) \
	{ #program, HYDNS_STAGE_##place, offsetof(struct hydns_capture_bpf__rodata, constant) },
#include "hydns-kern/program/stages.def"
#undef HYDNS_STAGE
};
#define STAGES (sizeof(stages) / sizeof(stages[0]))

static int fail(char why[HYDNS_CAPTURE_WHY], int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int fail(char why[HYDNS_CAPTURE_WHY], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, HYDNS_CAPTURE_WHY, fmt, ap);
	va_end(ap);
	return err;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

/* -- loading ---------------------------------------------------------------------------------------------- */
static const char *own_maps[] = { "hydns_watched", "hydns_capture_filter", "hydns_captured", "hydns_lost" };

static bool is_own(const char *name)
{
	for (unsigned i = 0; i < sizeof(own_maps) / sizeof(*own_maps); i++)
		if (!strcmp(name, own_maps[i]))
			return true;
	return false;
}

/* Makes the map that one. */
static int use(struct bpf_map *map, int fd)
{
	return fd < 0 ? fd : bpf_map__reuse_fd(map, fd);
}

static int use_pinned(const struct hydns_capture *c, struct bpf_map *map)
{
	int fd = c->o.open_map(bpf_map__name(map), c->o.map_arg), err = use(map, fd);

	if (fd >= 0)
		close(fd);
	return err;
}

/* Pinned maps, and .bss, which hydnsd writes while the program runs, are the running program's. */
static int share_maps(const struct hydns_capture *c, struct hydns_capture_bpf *skel, const struct running *r)
{
	struct bpf_map *map, *own;
	int err = 0;

	bpf_object__for_each_map(map, skel->obj) {
		own = is_own(bpf_map__name(map)) ? bpf_object__find_map_by_name(c->own->obj, bpf_map__name(map)) : NULL;
		if (own)
			err = use(map, bpf_map__fd(own));
		else if (map == skel->maps.bss)
			err = use(map, r->bss_fd);
		else if (!strncmp(bpf_map__name(map), HYDNS_ANALYSIS_PREFIX, strlen(HYDNS_ANALYSIS_PREFIX)))
			err = bpf_map__set_autocreate(map, false);
		else if (!bpf_map__is_internal(map) && bpf_map__type(map) != BPF_MAP_TYPE_PROG_ARRAY)
			err = use_pinned(c, map);
		if (err)
			return err;
	}
	return 0;
}

/* -EPROTO: that program is of another build. */
static int copy_configuration(struct hydns_capture_bpf *skel, const struct running *r)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info), zero = 0;
	int err = bpf_obj_get_info_by_fd(r->rodata_fd, &info, &len);

	if (!err && info.value_size != sizeof(*skel->rodata))
		return -EPROTO;
	if (!err)
		err = bpf_map_lookup_elem(r->rodata_fd, &zero, skel->rodata);
	skel->rodata->hydns_analysis_stage = false;    /* nothing is analysed meanwhile */
	skel->rodata->hydns_left_stage = skel->rodata->hydns_guard_stage;
	return err ? err : skel->rodata->hydns_geometry.abi_version == hydns_abi_version() ? 0 : -EPROTO;
}

static bool called(const struct hydns_capture_bpf *skel, unsigned stage)
{
	return *(const bool *)((const char *)skel->rodata + stages[stage].called);
}

static int fill_stages(struct hydns_capture_bpf *skel)
{
	int err = 0;

	for (unsigned i = 0; i < STAGES && !err; i++) {
		int fd = bpf_program__fd(bpf_object__find_program_by_name(skel->obj, stages[i].program));
		__u32 place = stages[i].place;

		if (called(skel, i))
			err = bpf_map_update_elem(bpf_map__fd(skel->maps.hydns_stages), &place, &fd, BPF_ANY);
	}
	return err;
}

static void load_none(struct hydns_capture_bpf *skel)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, skel->obj)
		bpf_program__set_autoload(p, false);
}

static int load(const struct hydns_capture *c, struct hydns_capture_bpf *skel, const struct running *r)
{
	int err = copy_configuration(skel, r);

	if (!err)
		err = share_maps(c, skel, r);
	if (err)
		return err;
	load_none(skel);
	bpf_program__set_autoload(skel->progs.hydns_xdp, true);
	for (unsigned i = 0; i < STAGES; i++)
		if (called(skel, i))
			bpf_program__set_autoload(bpf_object__find_program_by_name(skel->obj, stages[i].program), true);
	err = hydns_capture_bpf__load(skel);
	return err ? err : fill_stages(skel);
}

static int explain(int err, char why[HYDNS_CAPTURE_WHY])
{
	switch (err) {
	case -EPERM:
		return fail(why, err, "capturing needs the right to load programs: run as root");
	case -EPROTO:
		return fail(why, err, "the program is of another version: use the hydnsctl that came with the hydnsd that loaded it");
	case -EEXIST:
		return fail(why, -EBUSY, "another hydnsctl captures already");
	default:
		return fail(why, err, "can't load the program that captures: %s", strerror(-err));
	}
}

static int watch(struct hydns_capture *c, struct running *r, char why[HYDNS_CAPTURE_WHY])
{
	struct hydns_capture_bpf *skel;
	__u32 zero = 0;
	int err, fd;

	if (c->n == WATCHED)
		return fail(why, -ENOSPC, "more than %d programs are loaded", WATCHED);
	if (!bpf_map_lookup_elem(r->call_fd, &zero, &fd))
		return explain(-EEXIST, why);
	skel = hydns_capture_bpf__open();
	if (!skel)
		return explain(-errno, why);
	err = load(c, skel, r);
	fd = err ? -1 : bpf_program__fd(skel->progs.hydns_xdp);
	if (!err)
		err = bpf_map_update_elem(r->call_fd, &zero, &fd, BPF_ANY);
	if (err) {
		hydns_capture_bpf__destroy(skel);
		return explain(err, why);
	}
	c->watched[c->n++] = (struct watched){ .program = r->id, .call_fd = r->call_fd, .skel = skel };
	r->call_fd = -1;               /* c's from now on */
	return 0;
}

/* -- finding programs --------------------------------------------------------------------------------------- */
static __u32 map_info(int fd, char name[BPF_OBJ_NAME_LEN])
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return 0;
	memcpy(name, info.name, BPF_OBJ_NAME_LEN);
	return info.id;
}

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len >= n && !strcmp(name + len - n, end);
}

static void keep(struct running *r, int fd, const char *name)
{
	int *place = !strcmp(name, CALL) ? &r->call_fd : ends_with(name, ".rodata") ? &r->rodata_fd :
		     ends_with(name, ".bss") ? &r->bss_fd : NULL;

	if (place && *place < 0)
		*place = fd;
	else
		close(fd);
}

static void forget(struct running *r)
{
	const int fds[] = { r->call_fd, r->rodata_fd, r->bss_fd };

	for (unsigned i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Whether it is a hydns_xdp over these maps that can call another program. The ones that watch have the name as well, and can't. */
static bool examine(const struct hydns_capture *c, int program_fd, struct running *r)
{
	__u32 maps[MAPS], len = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = { .nr_map_ids = MAPS, .map_ids = (__u64)(unsigned long)maps };
	char name[BPF_OBJ_NAME_LEN];
	bool ours = false;

	if (bpf_obj_get_info_by_fd(program_fd, &info, &len) || strcmp(info.name, PROGRAM) || info.type != BPF_PROG_TYPE_XDP)
		return false;
	for (__u32 i = 0; i < info.nr_map_ids && i < MAPS; i++) {
		int fd = bpf_map_get_fd_by_id(maps[i]);

		ours = ours || maps[i] == c->switch_id;
		if (fd >= 0 && map_info(fd, name))
			keep(r, fd, name);
		else if (fd >= 0)
			close(fd);
	}
	return ours && r->call_fd >= 0;
}

static bool is_watched(const struct hydns_capture *c, __u32 program)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->watched[i].program == program)
			return true;
	return false;
}

static int take_up(struct hydns_capture *c, __u32 id, char why[HYDNS_CAPTURE_WHY])
{
	struct running r = { .id = id, .call_fd = -1, .rodata_fd = -1, .bss_fd = -1 };
	int err = 0, fd = bpf_prog_get_fd_by_id(id);

	if (fd < 0)
		return fd == -EPERM ? explain(fd, why) : 0;    /* else it has gone meanwhile */
	if (examine(c, fd, &r))
		err = watch(c, &r, why);
	forget(&r);
	close(fd);
	return err;
}

static void leave(struct hydns_capture *c, unsigned i)
{
	__u32 zero = 0;

	bpf_map_delete_elem(c->watched[i].call_fd, &zero);
	close(c->watched[i].call_fd);
	hydns_capture_bpf__destroy(c->watched[i].skel);
	c->watched[i] = c->watched[--c->n];
}

/* Opens what hydnsd has pinned, anew if it has made new maps. */
static int open_switch(struct hydns_capture *c, char why[HYDNS_CAPTURE_WHY])
{
	char name[BPF_OBJ_NAME_LEN];
	int fd = c->o.open_map("hydns_switch", c->o.map_arg), err = 0;
	__u32 id = fd < 0 ? 0 : map_info(fd, name);
	void *at;

	if (!id)
		return fail(why, fd < 0 ? fd : -EPROTO, "can't open hydns_switch: %s", strerror(fd < 0 ? -fd : EPROTO));
	if (id != c->switch_id) {
		hydns_capture_stop(c);
		at = mmap(NULL, sizeof(*c->on), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		err = at == MAP_FAILED ? -errno : 0;
		c->on = err ? NULL : at;
		c->switch_id = err ? 0 : id;
	}
	close(fd);
	return err ? fail(why, err, "can't map hydns_switch into memory: %s", strerror(-err)) : 0;
}

/* Programs go when hydnsd has replaced them: nothing here holds them. */
static void leave_those_gone(struct hydns_capture *c)
{
	for (unsigned i = c->n; i--;) {
		int fd = bpf_prog_get_fd_by_id(c->watched[i].program);

		if (fd >= 0)
			close(fd);
		else if (fd == -ENOENT)
			leave(c, i);
	}
}

int hydns_capture_follow(struct hydns_capture *c, char why[HYDNS_CAPTURE_WHY])
{
	int err = open_switch(c, why);
	__u32 id = 0;

	leave_those_gone(c);
	while (!err && !bpf_prog_get_next_id(id, &id))
		if (!is_watched(c, id))
			err = take_up(c, id, why);
	return err ? err : (int)c->n;
}

/* -- reading ------------------------------------------------------------------------------------------------ */
static int on_record(void *arg, void *data, size_t len)
{
	const struct hydns_captured *said = data;
	struct hydns_capture *c = arg;

	if (len >= sizeof(*said) && len - sizeof(*said) >= (size_t)said->octets[HYDNS_CAPTURE_IN] + said->octets[HYDNS_CAPTURE_OUT])
		c->o.fn(said, (const __u8 *)(said + 1), c->o.arg);
	return 0;
}

/* The flag is set again because a program that nobody watches yet clears it. Programs wake the reader only when much has come, so
 * what is there is read at the end of the wait as well. */
int hydns_capture_read(struct hydns_capture *c, int timeout_ms)
{
	int n;

	if (c->n && c->on)
		__atomic_store_n(&c->on->capturing, 1, __ATOMIC_RELAXED);
	n = ring_buffer__poll(c->ring, timeout_ms);
	if (n < 0 && n != -EINTR)
		return n;
	n = ring_buffer__consume(c->ring);
	return n < 0 ? n : 0;
}

static int lost_fd(const struct hydns_capture *c)
{
	return bpf_map__fd(c->own->maps.hydns_lost);
}

__u64 hydns_capture_lost(const struct hydns_capture *c, __u32 ifindex)
{
	const __u32 *last = NULL;
	__u64 sum = 0, n;
	__u32 link;

	while (!bpf_map_get_next_key(lost_fd(c), last, &link)) {
		if ((!ifindex || link == ifindex) && !bpf_map_lookup_elem(lost_fd(c), &link, &n))
			sum += n;
		last = &link;
	}
	return sum;
}

/* -- opening and closing -------------------------------------------------------------------------------------- */
/* The maps of captures alone: the others would be as large as hydnsd's. */
static int open_own(struct hydns_capture *c)
{
	struct bpf_map *map;
	__u32 zero = 0;
	int err;

	c->own = hydns_capture_bpf__open();
	if (!c->own)
		return -errno;
	load_none(c->own);
	bpf_object__for_each_map(map, c->own->obj)
		if (!is_own(bpf_map__name(map)) && !bpf_map__is_internal(map))
			bpf_map__set_autocreate(map, false);
	err = hydns_capture_bpf__load(c->own);
	return err ? err : bpf_map_update_elem(bpf_map__fd(c->own->maps.hydns_capture_filter), &zero, &c->o.filter, BPF_ANY);
}

int hydns_capture_open(const struct hydns_capture_options *o, struct hydns_capture **out, char why[HYDNS_CAPTURE_WHY])
{
	struct hydns_capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return fail(why, -ENOMEM, "no memory");
	libbpf_set_print(quiet);
	c->o = *o;
	err = open_own(c);
	if (!err) {
		c->ring = ring_buffer__new(bpf_map__fd(c->own->maps.hydns_captured), on_record, c, NULL);
		err = c->ring ? 0 : -errno;
	}
	if (err) {
		hydns_capture_close(c);
		return explain(err, why);
	}
	*out = c;
	return 0;
}

void hydns_capture_stop(struct hydns_capture *c)
{
	if (c->on) {
		__atomic_store_n(&c->on->capturing, 0, __ATOMIC_RELAXED);
		munmap(c->on, sizeof(*c->on));
	}
	c->on = NULL;
	c->switch_id = 0;
	while (c->n)
		leave(c, c->n - 1);
}

void hydns_capture_close(struct hydns_capture *c)
{
	if (!c)
		return;
	hydns_capture_stop(c);
	ring_buffer__free(c->ring);
	hydns_capture_bpf__destroy(c->own);
	free(c);
}
