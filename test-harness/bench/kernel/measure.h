/* SPDX-License-Identifier: GPL-2.0-only */
/* What the measurements share: options, the program under test with its rules, the generator, and the interfaces. */
#ifndef HYDNS_BENCH_MEASURE_H
#define HYDNS_BENCH_MEASURE_H

#include <sched.h>
#include "test-harness/bench/kernel/generator.h"
#include "test-harness/bench/kernel/rules.h"

struct options {
	struct questions q;
	const char *sequence, *client, *server, *second_client, *second_server;
	unsigned queries, rounds, installs, window, first, repeated;
	double rate, seconds;
	bool xdp_sink, on_demand, analysers;
	/* of beside */
	const char *frames, *replies;
	unsigned hot, new_every, kernel_hops;
	double good_rate, settle, patience;
};

/* The processors that the caller left to this program. */
extern cpu_set_t bench_cpus;

/* The program with its rules, which a resolver's heartbeat keeps valid, and the generator. */
struct bench {
	struct kernel *k;
	struct generator *g;
};

/* Returns 0, or 1 after a message. live: frames leave by an interface. */
int bench_begin(const struct options *o, bool live, struct bench *b);
/* Prints what failed and why; returns 1. */
int bench_fail(const char *what, const char *why);
/* Returns the bpf_link's descriptor, or a negative number after a message. */
int bench_attach(int prog_fd, const char *ifname, const char *what);
/* Returns 0, or 1 after a message. */
int bench_attach_tc(int prog_fd, const char *ifname);
int bench_detach_tc(const char *ifname);
void bench_print_run(const char *contender, const struct generator_run *r);

/* The measurements; each returns an exit status. */
int bench_cost(const struct options *o);
int bench_capacity(const struct options *o);
int bench_scaling(const struct options *o);
int bench_publish(const struct options *o);
int bench_flood(const struct options *o);
int bench_beside(const struct options *o);

#endif
