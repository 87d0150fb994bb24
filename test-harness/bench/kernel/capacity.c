/* SPDX-License-Identifier: GPL-2.0-only */
/* Replies a second of echo and hydns, on a veth. */
#include "test-harness/bench/kernel/measure.h"

#include <string.h>
#include <net/if.h>
#include <bpf/bpf.h>

int bench_capacity(const struct options *o)
{
	struct { const char *name; int fd; } contender[2];
	struct generator_run run;
	struct bench b;
	int link;

	if (bench_begin(o, true, &b))
		return 1;
	contender[0].name = "echo";
	contender[0].fd = generator_echo(b.g);
	contender[1].name = "hydns";
	contender[1].fd = kernel_prog_fd(b.k);
	link = bench_attach(contender[0].fd, o->server, "attaching to the server's end");
	if (link < 0 || bench_attach(generator_sink(b.g), o->client, "attaching to the client's end") < 0)
		return 1;
	for (unsigned r = 0; r < o->rounds; r++) {
		rules_sweep(b.k);
		for (int c = 0; c < 2; c++) {
			LIBBPF_OPTS(bpf_link_update_opts, opts);
			int err = bpf_link_update(link, contender[c].fd, &opts);

			generator_rewind(b.g, 0);
			if (!err)
				err = generator_send(b.g, if_nametoindex(o->client), o->queries, o->rate, 0, &run);
			if (err)
				return bench_fail(contender[c].name, strerror(-err));
			bench_print_run(contender[c].name, &run);
		}
	}
	return 0;
}
