/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "test-harness/bench/kernel/streams.h"

#define WARM_S 0.15      /* a test run takes tens of milliseconds to begin */

struct running {
	const struct stream *s;
	pthread_t thread;
	int err;
};

/* Only interrupts the system call. */
static void wake(int number)
{
	(void)number;
}

static void *send_on(void *arg)
{
	struct running *r = arg;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(r->s->cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	r->err = generator_stream(r->s->g, r->s->ifindex, r->s->place);
	return NULL;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void wait_for(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

static struct generator_run sum(const struct stream *s, unsigned count)
{
	struct generator_run all = { 0 };

	for (unsigned i = 0; i < count; i++) {
		struct generator_run one = generator_so_far(s[i].g);

		all.sent += one.sent;
		all.replies += one.replies;
		all.answers += one.answers;
	}
	return all;
}

/* The thread that looks may be kept waiting, for the streams have all processors: so it looks at the clock each time. */
static void measure(const struct stream *s, unsigned count, double seconds, struct generator_run *out)
{
	struct generator_run before;
	double begun;

	wait_for(WARM_S);
	before = sum(s, count);
	begun = now();
	wait_for(seconds);
	*out = sum(s, count);
	out->sent -= before.sent;
	out->replies -= before.replies;
	out->answers -= before.answers;
	out->per_second = out->replies / (now() - begun);
}

/* A signal that comes before the test run has begun is lost. */
static void stop(struct running *r)
{
	struct timespec patience;

	do {
		pthread_kill(r->thread, SIGUSR1);
		clock_gettime(CLOCK_REALTIME, &patience);
		patience.tv_sec++;
	} while (pthread_timedjoin_np(r->thread, NULL, &patience) == ETIMEDOUT);
}

int streams_run(struct stream *s, unsigned count, double seconds, struct generator_run *out)
{
	struct running *r = calloc(count, sizeof(*r));
	unsigned begun = 0;
	int err = r && !sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = wake }, NULL) ? 0 : -errno;

	while (!err && begun < count) {
		r[begun].s = &s[begun];
		err = -pthread_create(&r[begun].thread, NULL, send_on, &r[begun]);
		begun += !err;
	}
	if (!err)
		measure(s, count, seconds, out);
	for (unsigned i = 0; i < begun; i++) {
		stop(&r[i]);
		if (!err && r[i].err != -EINTR)
			err = r[i].err;
	}
	free(r);
	return err;
}
