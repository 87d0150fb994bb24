/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/cost/timed.h"
#include "test-harness/bench/kernel/generator.h"
#include "pace.skel.h"

#define BATCH 64
#define BATCHES    (1U << 14)   /* in a test run of a closed loop: a fraction of a second */
#define STREAM     (1U << 30)   /* frames of a test run that a signal ends: minutes */
#define WATCH_US   500          /* interval of checks whether a test run can end early */
/* More than the pauses after which Unbound asks a server again that has not answered: 0.4, 0.8, 1.5 and 3 s. Counted while the
 * generator runs: with SCHED_IDLE it waits longer for a processor than those that it asks. */
#define PATIENCE_S 6.0

struct generator {
	struct pace_bpf *skel;
	struct pace_template template;   /* as set: a run overwrites the program's */
	__u32 numbers;
};

static void complain(const char *what, const char *why)
{
	fprintf(stderr, "pace: %s: %s\n", what, why);
}

/* Number of octets of the file, or 0 with a message. */
static size_t sequence_size(int fd, const char *path)
{
	struct stat st;
	size_t n;

	if (fd < 0 || fstat(fd, &st)) {
		complain(path, strerror(errno));
		return 0;
	}
	n = st.st_size / sizeof(__u32);
	if (n >= PACE_BLOCK && !(n & (n - 1)) && n * sizeof(__u32) == (size_t)st.st_size)
		return st.st_size;
	complain(path, "is not a power of two of 32-bit numbers, at least 16");
	return 0;
}

static bool read_sequence(struct generator *g, int fd, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(g->skel->maps.pace_sequence), 0);
	size_t done = 0;

	if (at == MAP_FAILED)
		return false;
	while (done < size) {
		ssize_t n = read(fd, (char *)at + done, size - done);

		if (n <= 0)
			break;
		done += n;
	}
	munmap(at, size);
	return done == size;
}

struct generator *generator_open(const char *sequence, __u32 repeated, bool live, __u16 port)
{
	struct generator *g = calloc(1, sizeof(*g));
	int fd = open(sequence, O_RDONLY | O_CLOEXEC);
	size_t size = sequence_size(fd, sequence);

	if (!g || !size)
		goto fail;
	g->skel = pace_bpf__open();
	if (!g->skel)
		goto fail;
	g->numbers = size / sizeof(__u32);
	g->skel->rodata->pace_live = live;
	g->skel->rodata->pace_port = htons(port);
	g->skel->rodata->pace_repeated = repeated;
	g->skel->rodata->pace_mask = g->numbers - 1;
	bpf_map__set_max_entries(g->skel->maps.pace_sequence, g->numbers / PACE_BLOCK);
	if (pace_bpf__load(g->skel) || !read_sequence(g, fd, size)) {
		complain("the load generator could not be loaded", strerror(errno));
		goto fail;
	}
	close(fd);
	return g;
fail:
	if (fd >= 0)
		close(fd);
	generator_close(g);
	return NULL;
}

void generator_close(struct generator *g)
{
	if (g)
		pace_bpf__destroy(g->skel);
	free(g);
}

struct pace_template *generator_template(struct generator *g)
{
	return &g->template;
}

void generator_rewind(struct generator *g, __u32 offset)
{
	g->skel->bss->pace_template = g->template;
	g->skel->bss->pace_place = 0;
	g->skel->bss->pace_start = g->skel->rodata->pace_repeated ? offset : 0;
	g->skel->bss->pace_offset = offset;
}

int generator_echo(struct generator *g)
{
	return bpf_program__fd(g->skel->progs.pace_echo);
}

int generator_nothing(struct generator *g)
{
	return bpf_program__fd(g->skel->progs.pace_nothing);
}

int generator_sink(struct generator *g)
{
	return bpf_program__fd(g->skel->progs.pace_sink);
}

int generator_sink_tc(struct generator *g)
{
	return bpf_program__fd(g->skel->progs.pace_sink_tc);
}

double generator_time(struct generator *g, int prog_fd, unsigned queries)
{
	__u32 key = 0;
	int err = bpf_map_update_elem(bpf_map__fd(g->skel->maps.pace_next), &key, &prog_fd, BPF_ANY);

	return err ? err : hydns_timed_run(bpf_program__fd(g->skel->progs.pace_generate), g->template.len, queries);
}

static bool all_replied(const struct generator *g)
{
	return *(volatile __u64 *)&g->skel->bss->pace_tally.replies + g->skel->bss->pace_lost >= g->skel->bss->pace_queries;
}

struct watch {
	const struct generator *g;
	pthread_t sender;
	atomic_bool end;
};

static void interrupt(int signal)
{
	(void)signal;
}

/* Ends the test run when all replies are there: after a short loop most of its batches are still to come. Sets its thread to
 * normal priority: the generator may have been started with SCHED_IDLE. */
static void *watch(void *arg)
{
	struct watch *w = arg;

	pthread_setschedparam(pthread_self(), SCHED_OTHER, &(struct sched_param){ 0 });
	while (!w->end && !all_replied(w->g))
		usleep(WATCH_US);
	/* again and again: the test run may not have begun yet when the former one's last reply came */
	for (; !w->end; usleep(WATCH_US))
		pthread_kill(w->sender, SIGUSR1);
	return NULL;
}

static double seconds_run(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * A closed loop, until the last reply is there. The kernel takes milliseconds to begin a test run, so each run is long, and
 * most of its batches are held back. Queries without a reply for PATIENCE_S are lost and make room in the window.
 */
static int send_until_replied(struct generator *g, struct bpf_test_run_opts *opts)
{
	typeof(g->skel->bss) bss = g->skel->bss;
	volatile __u64 *replies = &bss->pace_tally.replies;
	double progress = seconds_run();
	__u64 seen = 0;
	int err = 0;

	opts->repeat = opts->batch_size * BATCHES;
	while (!err && !all_replied(g)) {
		bss->pace_frame = 0;
		err = bpf_prog_test_run_opts(bpf_program__fd(g->skel->progs.pace_generate), opts);
		if (err == -EINTR)
			err = 0;
		if (*replies != seen) {
			seen = *replies;
			progress = seconds_run();
		} else if (seconds_run() - progress > PATIENCE_S) {
			bss->pace_lost = *(volatile __u32 *)&bss->pace_place - seen;
		}
	}
	return err;
}

static int send_in_window(struct generator *g, struct bpf_test_run_opts *opts)
{
	struct sigaction on_signal = { .sa_handler = interrupt };
	struct watch w = { .g = g, .sender = pthread_self() };
	pthread_t watcher;
	int err;

	sigaction(SIGUSR1, &on_signal, NULL);
	err = -pthread_create(&watcher, NULL, watch, &w);
	if (err)
		return err;
	err = send_until_replied(g, opts);
	w.end = true;
	pthread_join(watcher, NULL);
	return err;
}

/* A test run with live frames that leave by an interface. */
struct sending {
	struct xdp_md from;
	struct bpf_test_run_opts opts;
};

static void prepare(struct generator *g, unsigned ifindex, unsigned queries, unsigned window, struct sending *s)
{
	/* One octet longer than the query, so that the program changes its length each time and the kernel
	 * takes the new one over: it keeps that of the reply otherwise. */
	static __u8 in[PACE_FRAME_MAX + 1];

	s->from = (struct xdp_md){ .data_end = g->template.len + 1, .ingress_ifindex = ifindex };
	s->opts = (struct bpf_test_run_opts){ .sz = sizeof(s->opts), .data_in = in, .data_size_in = g->template.len + 1,
		.ctx_in = &s->from, .ctx_size_in = sizeof(s->from), .repeat = queries, .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
		.batch_size = BATCH };
	/* Half of a window, so that the server has work while the next batch is made. */
	if (window && window / 2 < BATCH)
		s->opts.batch_size = window / 2;
	memset(&g->skel->bss->pace_tally, 0, sizeof(g->skel->bss->pace_tally));
	g->skel->bss->pace_window = window;
	g->skel->bss->pace_queries = queries;
	g->skel->bss->pace_warm = queries < 16 * PACE_WARM ? PACE_TICK : PACE_WARM;
	g->skel->bss->pace_batch = s->opts.batch_size;
	g->skel->bss->pace_lost = 0;
}

int generator_send(struct generator *g, unsigned ifindex, unsigned queries, double per_second, unsigned window,
		   struct generator_run *out)
{
	volatile struct pace_tally *t = &g->skel->bss->pace_tally;
	struct sending s;
	int err;

	prepare(g, ifindex, queries, window, &s);
	g->skel->bss->pace_gap_ns = per_second > 0 ? (__u64)(1e9 / per_second) : 0;
	err = window ? send_in_window(g, &s.opts) :
	      bpf_prog_test_run_opts(bpf_program__fd(g->skel->progs.pace_generate), &s.opts);
	if (err)
		return err;
	*out = (struct generator_run){ .sent = queries, .replies = t->replies, .answers = t->answers };
	if (window && t->last)
		out->per_second = t->last * 1e9 / (t->last_ns - g->skel->bss->pace_begun_ns);
	else if (t->last > g->skel->bss->pace_warm)
		out->per_second = (t->last - g->skel->bss->pace_warm) * 1e9 / (t->last_ns - t->first_ns);
	return 0;
}

int generator_stream(struct generator *g, unsigned ifindex, __u32 place)
{
	struct sending s;

	prepare(g, ifindex, STREAM, 0, &s);
	g->skel->bss->pace_gap_ns = 0;
	g->skel->bss->pace_place = place;
	return bpf_prog_test_run_opts(bpf_program__fd(g->skel->progs.pace_generate), &s.opts);
}

struct generator_run generator_so_far(struct generator *g)
{
	volatile struct pace_tally *t = &g->skel->bss->pace_tally;

	return (struct generator_run){ .sent = *(volatile __u32 *)&g->skel->bss->pace_place, .replies = t->replies,
		.answers = t->answers };
}
