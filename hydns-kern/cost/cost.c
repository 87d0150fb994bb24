/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads the copies and runs them in turns. Since a turn's runs follow one another within milliseconds, whatever else the host does
 * affects a copy as much as the one that it is compared with; the median of the turns' differences leaves out the rest.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hydns-kern/cost/cost.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/cost/ground.h"
#include "hydns-kern/cost/timed.h"
#include "again.skel.h"

#define CAPACITY   64                  /* rules of the copies' store */
#define MAPS       64                  /* of a program, more than hydns_xdp has */
#define NO_LIMIT   100000000U          /* queries a second of the guard's client network */
#define WARM       1000                /* runs that count for nothing */
#define RUNS       20000               /* in a turn: some milliseconds */
#define TURNS      31
#define TURNS_LEAST 3                  /* even if the time is over */
#define WHOLE      HYDNS_PARTS         /* the copy that has all parts; the others are numbered as the part that they lack */
#define COPIES     (HYDNS_PARTS + 1)

struct measuring {
	const struct hydns_cost_setup *s;
	struct hydns_bpf__rodata running;      /* configuration of the running program, but for sizes and the guard's limit */
	struct hydns_geometry geometry;
	struct again_bpf *again;
	struct hydns_ground ground;
	struct hydns_bpf *copy[COPIES];        /* NULL: not loaded */
	int ns[TURNS][HYDNS_COST_QUERIES][COPIES + 1]; /* the last: nothing under test */
	unsigned turns;
	struct timespec begun;
	char *why;
};

/* -- the running program ------------------------------------------------------------------------------------ */
static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len >= n && !strcmp(name + len - n, end);
}

/* 0: the map is the program's configuration, and `to` has it. */
static int read_if_rodata(__u32 id, struct hydns_bpf__rodata *to)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info), zero = 0;
	int fd = bpf_map_get_fd_by_id(id), err;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (!err && !ends_with(info.name, ".rodata"))
		err = -ENOENT;
	if (!err && info.value_size != sizeof(*to))
		err = -EPROTO;
	if (!err)
		err = bpf_map_lookup_elem(fd, &zero, to);
	close(fd);
	return err;
}

static int read_running(struct measuring *m)
{
	__u32 ids[MAPS], len = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = { .nr_map_ids = MAPS, .map_ids = (__u64)(unsigned long)ids };
	int err = bpf_obj_get_info_by_fd(m->s->prog_fd, &info, &len);

	for (__u32 i = 0, found = 0; !err && !found; i++) {
		err = i < info.nr_map_ids && i < MAPS ? read_if_rodata(ids[i], &m->running) : -EPROTO;
		found = !err;
		err = err == -ENOENT ? 0 : err;
	}
	if (!err && m->running.hydns_geometry.abi_version != HYDNS_ABI_VERSION)
		err = -EPROTO;
	if (err == -EPROTO)
		return hydns_fail(m->why, err, "the program is of another version: use the hydnsctl that came with the hydnsd that loaded it");
	return err ? hydns_fail(m->why, err, "can't read the running program's configuration: %s", strerror(-err)) : 0;
}

/* The copies' own sizes; and their one client must not reach the guard's limit. */
static void adapt(struct measuring *m)
{
	struct hydns_guard_config guard;
	int cpus = libbpf_num_possible_cpus();

	hydns_geometry_for(CAPACITY, (__u32)cpus, (__u32)cpus, &m->geometry);
	memcpy(m->geometry.seed, (const void *)m->running.hydns_geometry.seed, sizeof(m->geometry.seed));
	memcpy((void *)&m->running.hydns_geometry, &m->geometry, sizeof(m->geometry));
	memcpy(&guard, (const void *)&m->running.hydns_guard, sizeof(guard));
	guard.queries = guard.queries ? NO_LIMIT : 0;
	memcpy((void *)&m->running.hydns_guard, &guard, sizeof(guard));
}

/* -- copies ------------------------------------------------------------------------------------------------- */
/* of: whose maps it uses; NULL: it has maps of its own. without: parts to leave out, by bit. */
static int load_copy(struct measuring *m, const struct hydns_bpf *of, __u32 without, struct hydns_bpf **out)
{
	struct hydns_bpf *b = hydns_bpf__open();
	int err;

	if (!b)
		return hydns_fail(m->why, -errno, "can't open the XDP program: %s", strerror(errno));
	*b->rodata = m->running;
	hydns_composition_leave_out(b, without);
	bpf_program__set_autoload(hydns_program_at(b, HYDNS_HOOK_SK_LOOKUP), false);
	bpf_program__set_autoload(hydns_program_at(b, HYDNS_HOOK_RAW_TRACEPOINT), false);
	err = of ? hydns_set_share(b, of) : hydns_maps_size(b, &m->geometry);
	if (!err)
		err = hydns_bpf__load(b);
	if (!err)
		err = hydns_stages_fill(b);
	if (err) {
		hydns_bpf__destroy(b);
		return hydns_explain_load(err, m->why);
	}
	*out = b;
	return 0;
}

static int prog_fd(const struct hydns_bpf *b)
{
	return bpf_program__fd(hydns_program_at(b, HYDNS_HOOK_XDP));
}

static int run_copy(struct measuring *m, int fd, enum hydns_cost_query q, unsigned runs)
{
	const struct hydns_timed t = {
		.maker_fd = bpf_program__fd(m->again->progs.hydns_again), .next_fd = bpf_map__fd(m->again->maps.hydns_again_next),
		.len = m->s->query[q].len };

	m->again->bss->hydns_again_frame = m->s->query[q];
	hydns_ground_refresh(&m->ground);
	return hydns_timed_run(&t, fd, runs);
}

static __u64 counted(const struct measuring *m, const struct hydns_bpf *b, enum hydns_cost_query q)
{
	__u64 sum = 0;

	hydns_percpu_sum(bpf_map__fd(b->maps.hydns_stats), m->geometry.cpus, q == HYDNS_COST_ANSWERED ? HYDNS_R_ANSWERED : HYDNS_R_MISS, 1,
			 &sum);
	return sum;
}

/* Whether both queries end as they are to. */
static bool does_its_work(struct measuring *m, const struct hydns_bpf *b)
{
	for (unsigned q = 0; q < HYDNS_COST_QUERIES; q++) {
		__u64 before = counted(m, b, q);

		if (run_copy(m, prog_fd(b), q, WARM) < 0 || counted(m, b, q) - before != WARM)
			return false;
	}
	return true;
}

/* 0 and *works is false: replies find no way. */
static int try_whole(struct measuring *m, bool *works)
{
	int err = load_copy(m, NULL, 0, &m->copy[WHOLE]);

	if (err)
		return err;
	err = hydns_ground_open(&m->ground, m->copy[WHOLE], &m->geometry, m->s);
	if (err)
		return hydns_fail(m->why, err, "can't fill the copies' maps: %s", strerror(-err));
	*works = does_its_work(m, m->copy[WHOLE]);
	return *works || m->running.hydns_fib ? 0 : hydns_fail(m->why, -EPROTO, "the copy of the program does not answer its query");
}

/* The copy with all parts, but for routing of replies where the host has no neighbour to whom one would go. */
static int load_whole(struct measuring *m)
{
	bool works = false;
	int err = try_whole(m, &works);

	if (err || works)
		return err;
	hydns_ground_close(&m->ground);
	hydns_bpf__destroy(m->copy[WHOLE]);
	m->copy[WHOLE] = NULL;
	m->running.hydns_fib = false;
	return try_whole(m, &works);
}

static bool time_is_over(const struct measuring *m)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - m->begun.tv_sec >= (time_t)m->s->seconds;
}

/* Not of logs: the queries' resolver keeps none, and one that does has its queries passed by a program without the stage. */
static bool may_measure(struct measuring *m, enum hydns_part part)
{
	return part != HYDNS_PART_logs && hydns_composition_has(m->copy[WHOLE], part);
}

/* The copy without this part. */
static int load_without(struct measuring *m, enum hydns_part part)
{
	int err = load_copy(m, m->copy[WHOLE], 1U << part, &m->copy[part]);

	if (!err && !does_its_work(m, m->copy[part]))
		err = hydns_fail(m->why, -EPROTO, "a copy of the program does not answer its query");
	return err;
}

static int load_all(struct measuring *m)
{
	unsigned of = 1, loaded = 0;
	int err = load_whole(m);

	for (unsigned part = 0; !err && part < HYDNS_PARTS; part++)
		of += may_measure(m, part);
	for (unsigned part = 0; !err && part < HYDNS_PARTS && !time_is_over(m); part++)
		if (may_measure(m, part)) {
			m->s->progress(++loaded, of, m->s->arg);
			err = load_without(m, part);
		}
	return err;
}

/* -- turns -------------------------------------------------------------------------------------------------- */
static int take_turn(struct measuring *m, unsigned turn)
{
	for (unsigned i = 0; i < COPIES + 1; i++) {
		unsigned c = (i + turn) % (COPIES + 1);
		int fd = c == COPIES ? bpf_program__fd(m->again->progs.hydns_again_nothing) : m->copy[c] ? prog_fd(m->copy[c]) : -1;

		for (unsigned q = 0; fd >= 0 && q < HYDNS_COST_QUERIES; q++) {
			int ns = run_copy(m, fd, q, RUNS);

			if (ns < 0)
				return hydns_fail(m->why, ns, "a test run failed: %s", strerror(-ns));
			m->ns[turn][q][c] = ns;
		}
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static double median_difference(const struct measuring *m, enum hydns_cost_query q, unsigned with, unsigned without)
{
	int all[TURNS];

	for (unsigned t = 0; t < m->turns; t++)
		all[t] = m->ns[t][q][with] - m->ns[t][q][without];
	qsort(all, m->turns, sizeof(*all), compare);
	return (all[(m->turns - 1) / 2] + all[m->turns / 2]) / 2.0;
}

static int instructions(const struct hydns_bpf *b)
{
	struct bpf_program *p;
	int sum = 0;

	bpf_object__for_each_program(p, b->obj) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);

		if (bpf_program__fd(p) >= 0 && !bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &len))
			sum += (int)(info.xlated_prog_len / sizeof(struct bpf_insn));
	}
	return sum;
}

/* The copy with which one without the part is compared: forwarding is not there without parking. */
static unsigned beside(const struct measuring *m, enum hydns_part part)
{
	return part == HYDNS_PART_parking && m->copy[HYDNS_PART_forwarding] ? HYDNS_PART_forwarding : WHOLE;
}

static void take_costs(const struct measuring *m, struct hydns_costs *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned c = 0; c < COPIES; c++) {
		struct hydns_cost *cost = c == WHOLE ? &out->whole : &out->part[c];
		unsigned with = c == WHOLE ? WHOLE : beside(m, c), without = c == WHOLE ? COPIES : c;

		if (!m->copy[c])
			continue;
		cost->measured = true;
		cost->instructions = instructions(m->copy[with]) - (c == WHOLE ? 0 : instructions(m->copy[c]));
		for (unsigned q = 0; q < HYDNS_COST_QUERIES; q++)
			cost->ns[q] = median_difference(m, q, with, without);
	}
}

/* -- all of it ---------------------------------------------------------------------------------------------- */
/* Runs of a turn are to find the same caches. */
static void stay_on_this_cpu(cpu_set_t *before)
{
	cpu_set_t here;

	sched_getaffinity(0, sizeof(*before), before);
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

static int measure(struct measuring *m)
{
	cpu_set_t before;
	int err;

	m->again = again_bpf__open_and_load();
	if (!m->again)
		return hydns_explain_load(-errno, m->why);
	err = load_all(m);
	stay_on_this_cpu(&before);
	for (; !err && m->turns < TURNS && (m->turns < TURNS_LEAST || !time_is_over(m)); m->turns += !err)
		err = take_turn(m, m->turns);
	sched_setaffinity(0, sizeof(before), &before);
	return err;
}

int hydns_costs_measure(const struct hydns_cost_setup *s, struct hydns_costs *out, char why[HYDNS_WHY])
{
	struct measuring *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return hydns_fail(why, -ENOMEM, "no memory");
	m->s = s;
	m->why = why;
	m->ground.page_fd = m->ground.socket_fd = -1;
	clock_gettime(CLOCK_MONOTONIC, &m->begun);
	err = read_running(m);
	if (!err) {
		adapt(m);
		err = measure(m);
	}
	if (!err)
		take_costs(m, out);
	hydns_ground_close(&m->ground);
	for (unsigned c = COPIES; c--;)
		hydns_bpf__destroy(m->copy[c]);
	again_bpf__destroy(m->again);
	free(m);
	return err;
}
