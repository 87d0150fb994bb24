/* SPDX-License-Identifier: GPL-2.0-only */
/* Generators that send at the same time, each on a processor of its own. */
#ifndef TEST_HARNESS_BENCH_KERNEL_STREAMS_H
#define TEST_HARNESS_BENCH_KERNEL_STREAMS_H

#include "test-harness/bench/kernel/generator.h"

struct stream {
	struct generator *g;
	unsigned ifindex;         /* that queries leave by */
	int cpu;
	__u32 place;              /* in the sequence, of the first query: streams should not ask for the same name together */
};

/* All of them send as fast as they can for so long, after generator_rewind(); what they sent and got in that time
 * together, without how it began. 0 or negative errno. Uses SIGUSR1. */
int streams_run(struct stream *s, unsigned count, double seconds, struct generator_run *out);

#endif
