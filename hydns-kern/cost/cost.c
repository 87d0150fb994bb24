/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads the copies and runs them in turns, many short ones. Whatever else the host does delays runs and never hastens them, so of each
 * copy's times the lowest tenth ends at what is compared.
 */
#include "hydns-kern/cost/cost.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns/abi.h"
#include "hydns-kern/cost/ground.h"
#include "hydns-kern/cost/timed.h"
#include "again.skel.h"

#define CAPACITY   64                  /* rules of the copies' store */
#define MAPS       64                  /* of a program, more than hydns_xdp has */
#define NO_LIMIT   100000000U          /* queries a second of the guard's client network */
#define TURNS      200                 /* of all copies */
#define TURNS_LEAST 4                  /* even if the time is over */
#define TURNS_AT_ONCE 4                /* in a test run: it must be over long before the resolver counts as gone */
#define QUIET      10                  /* of so many turns the fastest one counts: others delay runs, and nothing hastens them */
#define WHOLE      HYDNS_PARTS         /* the copy that has all parts; the others are numbered as the part that they lack */
#define TWIN       (WHOLE + 1)         /* another one with all parts */
#define COPIES     (TWIN + 1)
#define NOTHING    COPIES              /* in the copies' place, what remains of a run without one */
_Static_assert(NOTHING < HYDNS_AGAIN_NEXT, "places for all of them");
_Static_assert((NOTHING + 1) * HYDNS_COST_QUERIES * TURNS_AT_ONCE <= HYDNS_AGAIN_BATCHES, "batches of a test run");
_Static_assert((int)HYDNS_COST_QUERIES == HYDNS_AGAIN_FRAMES, "a frame for each query");

struct measuring {
	const struct hydns_cost_setup *s;
	struct hydns_bpf__rodata running;      /* configuration of the running program, but for sizes and the guard's limit */
	struct hydns_geometry geometry;
	struct again_bpf *again;
	struct hydns_ground ground;
	struct hydns_bpf *copy[COPIES];        /* NULL: not loaded */
	unsigned place[COPIES + 1];            /* under test: of the copy in hydns_again_next */
	unsigned places;
	double ns[HYDNS_COST_QUERIES][COPIES + 1][TURNS];
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
	if (!err && m->running.hydns_geometry.abi_version != hydns_abi_version())
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

/* Puts a program under test; copy: its number here. */
static int put_under_test(struct measuring *m, unsigned copy, int fd)
{
	const __u32 place = m->places++;

	m->place[copy] = place;
	return bpf_map_update_elem(bpf_map__fd(m->again->maps.hydns_again_next), &place, &fd, BPF_ANY) ? -errno : 0;
}

static __u64 counted(const struct measuring *m, enum hydns_reason reason)
{
	__u64 sum = 0;

	hydns_percpu_sum(bpf_map__fd(m->copy[WHOLE]->maps.hydns_stats), m->geometry.cpus, reason, 1, &sum);
	return sum;
}

/* Runs what is under test in so many turns, from another program on in each call. -EPROTO: a query did not end as it is to. */
static int run_turns(struct measuring *m, unsigned turns, __u32 first)
{
	const __u64 answered = counted(m, HYDNS_R_ANSWERED), missed = counted(m, HYDNS_R_MISS);
	const unsigned batches = m->places * turns * HYDNS_COST_QUERIES;
	/* all but `nothing', which is put first */
	const __u64 each = (__u64)(m->places - 1) * turns * HYDNS_AGAIN_RUNS;
	int err;

	m->again->bss->hydns_again_run = 0;
	m->again->bss->hydns_again_batches = batches;
	m->again->bss->hydns_again_programs = m->places;
	m->again->bss->hydns_again_first = first;
	hydns_ground_refresh(&m->ground);
	err = hydns_timed_run(bpf_program__fd(m->again->progs.hydns_again), m->s->query[0].len, batches * HYDNS_AGAIN_RUNS + 1);
	if (err < 0)
		return err;
	return counted(m, HYDNS_R_ANSWERED) - answered == each && counted(m, HYDNS_R_MISS) - missed == each ? 0 : -EPROTO;
}

static int explain_run(int err, char why[HYDNS_WHY])
{
	if (err == -EPROTO)
		return hydns_fail(why, err, "a copy of the program does not answer its query");
	return err ? hydns_fail(why, err, "a test run failed: %s", strerror(-err)) : 0;
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
	m->places = 0;
	err = put_under_test(m, NOTHING, bpf_program__fd(m->again->progs.hydns_again_nothing));
	if (!err)
		err = put_under_test(m, WHOLE, prog_fd(m->copy[WHOLE]));
	if (!err)
		err = run_turns(m, 1, 0);
	*works = !err;
	return err == -EPROTO && m->running.hydns_fib ? 0 : explain_run(err, m->why);
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

/* A copy over the maps of the first one; without: parts, by bit. */
static int load_beside(struct measuring *m, unsigned number, __u32 without)
{
	int err = load_copy(m, m->copy[WHOLE], without, &m->copy[number]);

	return err ? err : explain_run(put_under_test(m, number, prog_fd(m->copy[number])), m->why);
}

static int load_all(struct measuring *m)
{
	unsigned of = 2, loaded = 1;
	int err = load_whole(m);

	for (unsigned part = 0; !err && part < HYDNS_PARTS; part++)
		of += may_measure(m, part);
	for (unsigned part = 0; !err && part < HYDNS_PARTS && !time_is_over(m); part++)
		if (may_measure(m, part)) {
			m->s->progress(++loaded, of, m->s->arg);
			err = load_beside(m, part, 1U << part);
		}
	return err ? err : load_beside(m, TWIN, 0);
}

/* -- turns -------------------------------------------------------------------------------------------------- */
/* The next turns, if there is time. */
static int take_turns(struct measuring *m)
{
	const __u32 first = m->turns / TURNS_AT_ONCE % m->places;
	const __u64 *ns = m->again->bss->hydns_again_ns;
	int err = run_turns(m, TURNS_AT_ONCE, first);

	for (unsigned c = 0; !err && c <= NOTHING; c++)
		for (unsigned i = 0; i < TURNS_AT_ONCE * HYDNS_COST_QUERIES && (c == NOTHING || m->copy[c]); i++) {
			unsigned turn = i / HYDNS_COST_QUERIES, q = i % HYDNS_COST_QUERIES;
			unsigned program = (m->place[c] + m->places - first) % m->places;

			m->ns[q][c][m->turns + turn] = (double)ns[(turn * m->places + program) * HYDNS_COST_QUERIES + q] / HYDNS_AGAIN_RUNS;
		}
	m->turns += err ? 0 : TURNS_AT_ONCE;
	return explain_run(err, m->why);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sort_times(struct measuring *m)
{
	for (unsigned q = 0; q < HYDNS_COST_QUERIES; q++)
		for (unsigned c = 0; c <= NOTHING; c++)
			qsort(m->ns[q][c], m->turns, sizeof(m->ns[q][c][0]), compare);
}

static double difference(const struct measuring *m, enum hydns_cost_query q, unsigned with, unsigned without)
{
	unsigned at = m->turns / QUIET;

	return m->ns[q][with][at] - m->ns[q][without][at];
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

static void take_costs(struct measuring *m, struct hydns_costs *out)
{
	memset(out, 0, sizeof(*out));
	sort_times(m);
	for (unsigned q = 0; q < HYDNS_COST_QUERIES; q++)
		out->noise[q] = fabs(difference(m, q, WHOLE, TWIN));
	for (unsigned c = 0; c <= WHOLE; c++) {
		struct hydns_cost *cost = c == WHOLE ? &out->whole : &out->part[c];
		unsigned with = c == WHOLE ? WHOLE : beside(m, c), without = c == WHOLE ? NOTHING : c;

		if (!m->copy[c])
			continue;
		cost->measured = true;
		cost->instructions = instructions(m->copy[with]) - (c == WHOLE ? 0 : instructions(m->copy[c]));
		for (unsigned q = 0; q < HYDNS_COST_QUERIES; q++)
			cost->ns[q] = difference(m, q, with, without);
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
	for (unsigned q = 0; q < HYDNS_COST_QUERIES; q++)
		m->again->bss->hydns_again_frame[q] = m->s->query[q];
	err = load_all(m);
	stay_on_this_cpu(&before);
	while (!err && m->turns < TURNS && (m->turns < TURNS_LEAST || !time_is_over(m)))
		err = take_turns(m);
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
	hydns_keep_warnings();
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
