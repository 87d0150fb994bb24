/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include "test-harness/bench/kernel/measure.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define NS_PER_S 1e9
#define BEAT_US  (HYDNS_HEARTBEAT_BEAT_NS / 1000)


int bench_fail(const char *what, const char *why)
{
	fprintf(stderr, "pace: %s: %s\n", what, why);
	return 1;
}

double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / NS_PER_S;
}

/* -- the resolver's heartbeat, on any free processor ----------------------------------------------------- */
cpu_set_t bench_cpus;

static void *beat(void *k)
{
	sched_setaffinity(0, sizeof(bench_cpus), &bench_cpus);
	for (;;) {
		kernel_beat(k);
		usleep(BEAT_US);
	}
	return NULL;
}

bool start_beating(struct kernel *k)
{
	pthread_t thread;

	return !pthread_create(&thread, NULL, beat, k);
}

/* -- the begin of all measurements ------------------------------------------------------------------------ */
int bench_begin(const struct options *o, bool live, struct bench *b)
{
	double begun = seconds();
	const char *why;

	b->k = rules_open(&o->q, &why);
	if (!b->k)
		return bench_fail("the program under test", why);
	printf("{\"filled\": %u, \"seconds\": %.4f}\n", o->q.rules, seconds() - begun);
	b->g = generator_open(o->sequence, o->repeated, live, o->q.port);
	if (!b->g)
		return 1;
	question_template(&o->q, generator_template(b->g));
	return start_beating(b->k) ? 0 : bench_fail("a thread", strerror(errno));
}

/* -- interfaces ---------------------------------------------------------------------------------------------- */
int bench_attach(int prog_fd, const char *ifname, const char *what)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	int fd = bpf_link_create(prog_fd, if_nametoindex(ifname), BPF_XDP, &opts);

	if (fd < 0)
		bench_fail(what, strerror(errno));
	return fd;
}

#define TC_PLACE .handle = 1, .priority = 1

/* The tc hook stays, without a program, until the interface is removed. */
int bench_attach_tc(int prog_fd, const char *ifname)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = if_nametoindex(ifname), .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = prog_fd, TC_PLACE, .flags = BPF_TC_F_REPLACE);
	int err = bpf_tc_hook_create(&hook);

	if (!err || err == -EEXIST)
		err = bpf_tc_attach(&hook, &opts);
	return err ? bench_fail("attaching to the client's end", strerror(-err)) : 0;
}

/* Detaches the sink: otherwise it would drop the next server's replies. */
int bench_detach_tc(const char *ifname)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = if_nametoindex(ifname), .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, TC_PLACE);
	int err = bpf_tc_detach(&hook, &opts);

	return err ? bench_fail("detaching from the client's end", strerror(-err)) : 0;
}

void bench_print_run(const char *contender, const struct generator_run *r)
{
	printf("{\"contender\": \"%s\", \"sent\": %llu, \"replies\": %llu, \"answers\": %llu, \"per_second\": %.0f}\n",
	       contender, (unsigned long long)r->sent, (unsigned long long)r->replies,
	       (unsigned long long)r->answers, r->per_second);
	fflush(stdout);
}
