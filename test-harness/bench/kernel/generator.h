/* SPDX-License-Identifier: GPL-2.0-only */
/* The load generator. */
#ifndef TEST_HARNESS_BENCH_KERNEL_GENERATOR_H
#define TEST_HARNESS_BENCH_KERNEL_GENERATOR_H

#include <stdbool.h>
#include "test-harness/bench/kernel/pace.h"

struct generator;

/* Loads it. sequence: a file of name numbers, a power of two of 32-bit numbers in the machine's byte order, at least 16;
 * repeated: numbers below it are those of names that are asked again, see generator_rewind(); live: frames leave by an
 * interface, otherwise a program is called on them; port: the server's. NULL with a message on standard error. */
struct generator *generator_open(const char *sequence, __u32 repeated, bool live, __u16 port);
void generator_close(struct generator *g);

struct pace_template *generator_template(struct generator *g);
/* Sets what is added to the sequence's numbers, but those of repeated names, and begins the sequence again; where there are
 * repeated names, at place offset. */
void generator_rewind(struct generator *g, __u32 offset);

/* Descriptors of the other programs in its object. */
int generator_echo(struct generator *g);
int generator_nothing(struct generator *g);
int generator_sink(struct generator *g);
int generator_sink_tc(struct generator *g);

/* Nanoseconds of the program for a query, with those of making the query; or negative errno. */
double generator_time(struct generator *g, int prog_fd, unsigned queries);

struct generator_run {
	__u64 sent;               /* queries that the test run was asked for */
	__u64 replies, answers;
	double per_second;        /* replies; 0: too few came. With a window from the first query to the last reply */
};
/* Sends queries out of an interface, after generator_rewind(). per_second 0: as fast as possible; window: the most queries
 * without a reply, 2 or more, 0 for any number. With a window it returns when the last reply is there, or no more come. Returns
 * 0 or negative errno. */
int generator_send(struct generator *g, unsigned ifindex, unsigned queries, double per_second, unsigned window,
		   struct generator_run *out);
/* Sends as fast as possible, from that place of the sequence on, until a signal ends the system call: -EINTR. */
int generator_stream(struct generator *g, unsigned ifindex, __u32 place);
/* The counts so far, for another thread while generator_stream() runs; sent counts from place on; per_second is not set. */
struct generator_run generator_so_far(struct generator *g);

#endif
