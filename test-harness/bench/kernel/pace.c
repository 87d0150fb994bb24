/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of hydns-bench that is near the kernel: rules in a store, queries made in the kernel, a program under test. Writes
 * one JSON object a line. The caller chooses the processor (taskset); everything but the resolver's heartbeat stays on it.
 */
#define _GNU_SOURCE
#include "test-harness/bench/kernel/measure.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>

static const struct { const char *name, *help; } options_help[] = {
	{ "--rules N", "rules in the store, for names number 0 to N-1 [1]" },
	{ "--capacity N", "of the store [as many as rules]" },
	{ "--octets N", "of a name in wire format, 12 to 255 [24]" },
	{ "--type A|AAAA", "[A]" },
	{ "--records N", "addresses in an answer, 1 to 32 [1]" },
	{ "--port N", "of the server, for flood [53]" },
	{ "--xdp-sink", "flood: take replies by XDP, which those sent by XDP need, and not at tc" },
	{ "--ipv6", "queries by IPv6" },
	{ "--edns, --dnssec, --cookie", "queries with EDNS, with DO, with a valid cookie" },
	{ "--analysers", "cost: also with each analyser of the monitor" },
	{ "--sequence FILE", "which name each query asks for: 32-bit numbers, a power of two of them" },
	{ "--queries N", "in one run [1000000]" },
	{ "--rounds N", "runs of each contender, taking turns [3]" },
	{ "--installs N", "rules installed, replaced and removed in a round [100000]" },
	{ "--rate N", "queries a second at most [no limit]" },
	{ "--window N", "flood: queries without reply at most, at least 2 [no limit]" },
	{ "--first N", "flood: added to the numbers of the sequence [0]" },
	{ "--repeated N", "flood: not to those below N; and the sequence begins at place --first [0]" },
	{ "--seconds S", "that scaling measures a contender in a round [0.5]" },
	{ "--on-demand", "flood: a run for each line of standard input, which is its --first, and no other rounds" },
	{ "--frames FILE", "beside: of good queries and of the flood, a line each as read_frame() has it" },
	{ "--replies FILE", "beside: to write what became of each good query" },
	{ "--good-rate N", "beside: good queries a second [1000]; --rate: of the flood [none]" },
	{ "--hot N", "beside: names that good queries ask again [1]" },
	{ "--new-every N", "beside: one of so many good queries asks a name of its own [none]" },
	{ "--settle S", "beside: seconds of load before the --seconds that count [0]" },
	{ "--patience S", "beside: for which it waits for replies in the end [1]" },
	{ "--kernel-hops N", "beside: hop limit of the kernel's replies, and of no other [64]" },
	{ "--client IF, --server IF", "ends of a veth: live frames leave by the first for the second" },
	{ "--second-client IF, --second-server IF", "the same for scaling's second processor" },
};

static void usage(FILE *to)
{
	fputs("usage: pace cost|capacity|scaling|publish|flood|beside OPTION...\n"
	      "  cost      nanoseconds of the program by how far a query comes\n"
	      "  capacity  replies a second of echo and hydns, on a veth\n"
	      "  scaling   the same on one processor and on two at once, each with a veth of its own\n"
	      "  publish   rules installed, replaced and removed a second, while the program answers\n"
	      "  flood     replies a second of a server with a socket behind a veth\n"
	      "  beside    good queries beside a flood: what came back for both, and when\n", to);
	for (size_t i = 0; i < sizeof(options_help) / sizeof(*options_help); i++)
		fprintf(to, "  %-28s %s\n", options_help[i].name, options_help[i].help);
}

static int number(const char *text, unsigned *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (!*text || *end || n > UINT32_MAX)
		return bench_fail(text, "is not a whole number");
	*out = n;
	return 0;
}

enum { RULES = 256, CAPACITY, OCTETS, TYPE, RECORDS, IPV6, EDNS, DNSSEC, COOKIE, SEQUENCE, QUERIES, ROUNDS, RATE, WINDOW, FIRST, REPEATED,
       INSTALLS, PORT, XDP_SINK, ON_DEMAND, ANALYSERS, SECONDS, CLIENT, SERVER, SECOND_CLIENT, SECOND_SERVER, FRAMES, REPLIES,
       GOOD_RATE, HOT, NEW_EVERY, SETTLE, PATIENCE, KERNEL_HOPS };
static const struct option long_options[] = {
	{ "rules", 1, NULL, RULES }, { "capacity", 1, NULL, CAPACITY }, { "octets", 1, NULL, OCTETS },
	{ "type", 1, NULL, TYPE }, { "records", 1, NULL, RECORDS }, { "ipv6", 0, NULL, IPV6 },
	{ "edns", 0, NULL, EDNS }, { "dnssec", 0, NULL, DNSSEC }, { "cookie", 0, NULL, COOKIE },
	{ "sequence", 1, NULL, SEQUENCE }, { "queries", 1, NULL, QUERIES }, { "rounds", 1, NULL, ROUNDS },
	{ "rate", 1, NULL, RATE }, { "window", 1, NULL, WINDOW }, { "first", 1, NULL, FIRST },
	{ "repeated", 1, NULL, REPEATED }, { "installs", 1, NULL, INSTALLS },
	{ "port", 1, NULL, PORT }, { "xdp-sink", 0, NULL, XDP_SINK }, { "on-demand", 0, NULL, ON_DEMAND },
	{ "analysers", 0, NULL, ANALYSERS },
	{ "client", 1, NULL, CLIENT }, { "server", 1, NULL, SERVER },
	{ "seconds", 1, NULL, SECONDS }, { "second-client", 1, NULL, SECOND_CLIENT }, { "second-server", 1, NULL, SECOND_SERVER },
	{ "frames", 1, NULL, FRAMES }, { "replies", 1, NULL, REPLIES }, { "good-rate", 1, NULL, GOOD_RATE },
	{ "hot", 1, NULL, HOT }, { "new-every", 1, NULL, NEW_EVERY }, { "settle", 1, NULL, SETTLE },
	{ "patience", 1, NULL, PATIENCE }, { "kernel-hops", 1, NULL, KERNEL_HOPS },
	{ "help", 0, NULL, 'h' }, { 0 },
};

static int set_option(struct options *o, int c)
{
	switch (c) {
	case RULES: return number(optarg, &o->q.rules);
	case CAPACITY: return number(optarg, &o->q.capacity);
	case OCTETS: return number(optarg, &o->q.octets);
	case TYPE: o->q.type = !strcmp(optarg, "A") ? 1 : !strcmp(optarg, "AAAA") ? 28 : 0; return 0;
	case RECORDS: return number(optarg, &o->q.records);
	case IPV6: o->q.ipv6 = true; return 0;
	case EDNS: o->q.edns = true; return 0;
	case DNSSEC: o->q.dnssec = true; return 0;
	case COOKIE: o->q.cookie = true; return 0;
	case SEQUENCE: o->sequence = optarg; return 0;
	case QUERIES: return number(optarg, &o->queries);
	case XDP_SINK: o->xdp_sink = true; return 0;
	case ON_DEMAND: o->on_demand = true; return 0;
	case ANALYSERS: o->analysers = true; return 0;
	case PORT: return number(optarg, &o->q.port);
	case INSTALLS: return number(optarg, &o->installs);
	case ROUNDS: return number(optarg, &o->rounds);
	case RATE: o->rate = strtod(optarg, NULL); return 0;
	case WINDOW: return number(optarg, &o->window);
	case FIRST: return number(optarg, &o->first);
	case REPEATED: return number(optarg, &o->repeated);
	case CLIENT: o->client = optarg; return 0;
	case SERVER: o->server = optarg; return 0;
	case SECONDS: o->seconds = strtod(optarg, NULL); return 0;
	case SECOND_CLIENT: o->second_client = optarg; return 0;
	case SECOND_SERVER: o->second_server = optarg; return 0;
	case FRAMES: o->frames = optarg; return 0;
	case REPLIES: o->replies = optarg; return 0;
	case GOOD_RATE: o->good_rate = strtod(optarg, NULL); return 0;
	case HOT: return number(optarg, &o->hot);
	case NEW_EVERY: return number(optarg, &o->new_every);
	case SETTLE: o->settle = strtod(optarg, NULL); return 0;
	case PATIENCE: o->patience = strtod(optarg, NULL); return 0;
	case KERNEL_HOPS: return number(optarg, &o->kernel_hops);
	}
	usage(stderr);
	return 2;
}

static const struct { const char *name; int (*run)(const struct options *); bool live; } commands[] = {
	{ "cost", bench_cost, false }, { "capacity", bench_capacity, true }, { "scaling", bench_scaling, true },
	{ "publish", bench_publish, true }, { "flood", bench_flood, true },
	{ "beside", bench_beside, true },
};

int main(int argc, char **argv)
{
	struct options o = { .q = { .rules = 1, .octets = 24, .type = 1, .records = 1, .port = 53 }, .queries = 1000000, .rounds = 3,
		.installs = 100000, .seconds = 0.5, .good_rate = 1000, .hot = 1, .patience = 1, .kernel_hops = 64 };
	const char *wrong;
	int c, err;

	sched_getaffinity(0, sizeof(bench_cpus), &bench_cpus);
	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			return 0;
		}
		err = set_option(&o, c);
		if (err)
			return err;
	}
	wrong = questions_wrong(&o.q);
	if (wrong)
		return bench_fail("options", wrong);
	if (o.window == 1)
		return bench_fail("options", "--window is too small: queries leave in batches of half of it");
	if (!o.sequence && !o.frames)
		return bench_fail("options", "--sequence is missing");
	for (size_t i = 0; optind + 1 == argc && i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[optind], commands[i].name))
			return commands[i].live && (!o.client || !if_nametoindex(o.client)) ?
				bench_fail("options", "--client is not an interface here") : commands[i].run(&o);
	usage(stderr);
	return 2;
}
