/* SPDX-License-Identifier: GPL-2.0-only */
/* The load generator: loaded, given a sequence of name numbers, run. */
#ifndef TEST_HARNESS_BENCH_KERNEL_GENERATOR_H
#define TEST_HARNESS_BENCH_KERNEL_GENERATOR_H

#include <stdbool.h>
#include "test-harness/bench/kernel/pace.h"

struct generator;

/* sequence: a file of a power of two of 32-bit numbers in the machine's byte order, at least 16; live: frames
 * leave by an interface, else a program is called on them; port: of the server. NULL with a message on standard error. */
struct generator *generator_open(const char *sequence, bool live, __u16 port);
void generator_close(struct generator *g);

struct pace_template *generator_template(struct generator *g);
/* Added to the numbers of the sequence; the next query is the sequence's first. */
void generator_rewind(struct generator *g, __u32 offset);

/* Descriptors of the other programs that come with it. */
int generator_echo(struct generator *g);
int generator_nothing(struct generator *g);
int generator_sink(struct generator *g);
int generator_sink_tc(struct generator *g);

/* Nanoseconds that the program takes for a query, with those of making it; negative errno. */
double generator_time(struct generator *g, int prog_fd, unsigned queries);

struct generator_run {
	__u64 sent;               /* that the test run was asked for */
	__u64 replies, answers;
	double per_second;        /* replies; 0: too few came. With a window from the first query to the last reply */
};
/* Sends queries out of an interface, after generator_rewind(); per_second 0: as fast as can be; window: so many without
 * reply at most, 2 or more, 0: any number; with a window it returns when the last reply is there, or no more come.
 * 0 or negative errno. */
int generator_send(struct generator *g, unsigned ifindex, unsigned queries, double per_second, unsigned window,
		   struct generator_run *out);
/* Sends as fast as can be, from that place of the sequence on, until a signal ends the system call: -EINTR. */
int generator_stream(struct generator *g, unsigned ifindex, __u32 place);
/* Meanwhile, from another thread: counts so far, sent from place on; per_second is not set. */
struct generator_run generator_so_far(struct generator *g);

#endif
