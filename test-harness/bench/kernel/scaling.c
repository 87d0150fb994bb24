/* SPDX-License-Identifier: GPL-2.0-only */
/* The capacity of one processor, and of two at once, each with a veth of its own. */
#define _GNU_SOURCE
#include "test-harness/bench/kernel/measure.h"

#include <stdio.h>
#include <string.h>
#include <net/if.h>
#include <bpf/bpf.h>
#include "test-harness/bench/kernel/streams.h"

#define STREAMS      2
#define PLACES_APART (1U << 21)

struct scaling {
	struct bench b;
	struct stream stream[STREAMS];
	int link[STREAMS];       /* of the servers' ends */
};

/* One on each of the processors that the caller left to this program. */
static int open_streams(const struct options *o, struct scaling *s)
{
	const char *client[STREAMS] = { o->client, o->second_client }, *server[STREAMS] = { o->server, o->second_server };
	int cpu = -1;

	for (unsigned i = 0; i < STREAMS; i++) {
		struct generator *g = i ? generator_open(o->sequence, o->repeated, true, o->q.port) : s->b.g;

		do
			cpu++;
		while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &bench_cpus));
		if (cpu == CPU_SETSIZE)
			return bench_fail("scaling", "needs two processors: start it with both (taskset)");
		if (!g)
			return 1;
		question_template(&o->q, generator_template(g));
		s->stream[i] = (struct stream){ .g = g, .ifindex = if_nametoindex(client[i]), .cpu = cpu,
			.place = i * PLACES_APART };
		s->link[i] = bench_attach(generator_echo(g), server[i], "attaching to the server's end");
		if (s->link[i] < 0 || bench_attach(generator_sink(g), client[i], "attaching to the client's end") < 0)
			return 1;
	}
	return 0;
}

static int scaled(struct scaling *s, const struct options *o, const char *contender, int prog_fd, unsigned processors)
{
	struct generator_run run;
	int err = 0;

	for (unsigned i = 0; i < processors && !err; i++) {
		err = bpf_link_update(s->link[i], prog_fd, NULL);
		generator_rewind(s->stream[i].g, 0);
	}
	if (!err)
		err = streams_run(s->stream, processors, o->seconds, &run);
	if (err)
		return bench_fail(contender, strerror(-err));
	if (!run.replies)
		return bench_fail(contender, "no reply came");
	printf("{\"contender\": \"%s\", \"processors\": %u, \"sent\": %llu, \"replies\": %llu, \"answers\": %llu, "
	       "\"per_second\": %.0f}\n", contender, processors, (unsigned long long)run.sent,
	       (unsigned long long)run.replies, (unsigned long long)run.answers, run.per_second);
	fflush(stdout);
	return 0;
}

int bench_scaling(const struct options *o)
{
	struct scaling s;

	if (!o->second_client || !if_nametoindex(o->second_client) || !o->second_server || !if_nametoindex(o->second_server))
		return bench_fail("options", "--second-client or --second-server is not an interface here");
	if (!(o->seconds > 0))
		return bench_fail("options", "--seconds: more than 0");
	if (bench_begin(o, true, &s.b) || open_streams(o, &s))
		return 1;
	sched_setaffinity(0, sizeof(bench_cpus), &bench_cpus);
	for (unsigned r = 0; r < o->rounds; r++)
		for (unsigned processors = 1; processors <= STREAMS; processors++) {
			rules_sweep(s.b.k);
			if (scaled(&s, o, "echo", generator_echo(s.b.g), processors) ||
			    scaled(&s, o, "hydns", kernel_prog_fd(s.b.k), processors))
				return 1;
		}
	return 0;
}
