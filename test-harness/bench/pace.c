/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What hydns-bench needs to be near the kernel for: rules in a store, queries made in the kernel, a program
 * under test. Writes one JSON object a line. The caller chooses the processor (taskset); everything but the
 * resolver's heartbeat stays on it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "counter.h"
#include "generator.h"
#include "installs.h"
#include "rules.h"
#include "streams.h"

#define NS_PER_S 1e9
#define BEAT_US  (HYDNS_HEARTBEAT_BEAT_NS / 1000)

struct options {
	struct questions q;
	const char *sequence, *client, *server, *second_client, *second_server;
	unsigned queries, rounds, installs, window, first;
	double rate, seconds;
	bool xdp_sink, on_demand;
};

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
	{ "--sequence FILE", "which name each query asks for: 32-bit numbers, a power of two of them" },
	{ "--queries N", "in one run [1000000]" },
	{ "--rounds N", "runs of each contender, taking turns [3]" },
	{ "--installs N", "rules installed, renewed and removed in a round [100000]" },
	{ "--rate N", "queries a second at most [no limit]" },
	{ "--window N", "flood: queries without reply at most, at least 2 [no limit]" },
	{ "--first N", "flood: added to the numbers of the sequence [0]" },
	{ "--seconds S", "that scaling measures a contender in a round [0.5]" },
	{ "--on-demand", "flood: a run for each line of standard input, which is its --first, and no other rounds" },
	{ "--client IF, --server IF", "ends of a veth: live frames leave by the first for the second" },
	{ "--second-client IF, --second-server IF", "the same for scaling's second processor" },
};

static void usage(FILE *to)
{
	fputs("usage: pace cost|capacity|scaling|publish|flood OPTION...\n"
	      "  cost      nanoseconds of the program by how far a query comes\n"
	      "  capacity  replies a second of echo and hydns, on a veth\n"
	      "  scaling   the same on one processor and on two at once, each with a veth of its own\n"
	      "  publish   rules installed, renewed and removed a second, while the program answers\n"
	      "  flood     replies a second of whoever answers behind a veth by a socket\n", to);
	for (size_t i = 0; i < sizeof(options_help) / sizeof(*options_help); i++)
		fprintf(to, "  %-28s %s\n", options_help[i].name, options_help[i].help);
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "pace: %s: %s\n", what, why);
	return 1;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / NS_PER_S;
}

/* -- the resolver's heartbeat, on whatever processor is free --------------------------------------------- */
static cpu_set_t everywhere;

static void *beat(void *k)
{
	sched_setaffinity(0, sizeof(everywhere), &everywhere);
	for (;;) {
		kernel_beat(k);
		usleep(BEAT_US);
	}
	return NULL;
}

static bool start_beating(struct kernel *k)
{
	pthread_t thread;

	return !pthread_create(&thread, NULL, beat, k);
}

/* -- what all measurements begin with --------------------------------------------------------------------- */
struct bench {
	struct kernel *k;
	struct generator *g;
};

static int begin(const struct options *o, bool live, struct bench *b)
{
	double begun = seconds();
	const char *why;

	b->k = rules_open(&o->q, &why);
	if (!b->k)
		return fail("the program under test", why);
	printf("{\"filled\": %u, \"seconds\": %.4f}\n", o->q.rules, seconds() - begun);
	b->g = generator_open(o->sequence, live, o->q.port);
	if (!b->g)
		return 1;
	question_template(&o->q, generator_template(b->g));
	return start_beating(b->k) ? 0 : fail("a thread", strerror(errno));
}

/* -- cost ---------------------------------------------------------------------------------------------------- */
/* Each ends the query's way at another stage, by changing its template or what the program finds. */
enum way { ANSWERED, MISSED, EPOCH_OVER, NOT_ORDINARY, NOT_A_SERVICE, NOT_IP, EMPTY, PAUSED, WAYS };
static const struct { const char *name, *stages; __u32 reason; } ways[WAYS] = {
	[PAUSED] = { "paused", "entry, counter", HYDNS_R_PAUSED },
	[EMPTY] = { "empty store", "switch of the store", HYDNS_R_EMPTY },
	[NOT_IP] = { "not IP", "Ethernet header", HYDNS_R_NOT_IP },
	[NOT_A_SERVICE] = { "not a service", "IP, UDP, service look-up", HYDNS_R_NOT_SERVICE },
	[NOT_ORDINARY] = { "not an ordinary query", "message copied, checksum verified", HYDNS_R_DNS_UNUSUAL },
	[MISSED] = { "no rule", "question, EDNS, access list, hash, index", HYDNS_R_MISS },
	[EPOCH_OVER] = { "rule of another epoch", "rule found, key compared", HYDNS_R_EPOCH },
	[ANSWERED] = { "answered", "reply written", HYDNS_R_ANSWERED },
};

/* Adds to a 16-bit word of the datagram; the checksum follows it, all in network byte order (RFC 1624, equation 3). */
static void add_to_word(struct pace_template *t, size_t at, __u16 more)
{
	__u16 was, now;
	__u32 sum;

	memcpy(&was, t->frame + at, sizeof(was));
	now = htons(ntohs(was) + more);
	memcpy(t->frame + at, &now, sizeof(now));
	sum = (__u16)~t->check + (__u16)~was + now;
	sum = (sum >> 16) + (sum & 0xffff);
	t->check = ~((sum >> 16) + sum);
}

static void take_way(struct bench *b, const struct options *o, enum way w)
{
	struct pace_template *t = generator_template(b->g);
	size_t udp = t->check_at - 6;

	question_template(&o->q, t);
	kernel_pause(b->k, w == PAUSED);
	kernel_empty(b->k, w == EMPTY);
	kernel_page(b->k)->epoch = w == EPOCH_OVER ? EPOCH + 1 : EPOCH;
	if (w == NOT_IP)
		memset(t->frame + 12, 0, 2);
	if (w == NOT_A_SERVICE)
		add_to_word(t, udp + 2, 1); /* port 54 */
	if (w == NOT_ORDINARY)
		add_to_word(t, udp + 8 + 2, 0x1000); /* opcode 2 */
	generator_rewind(b->g, w == MISSED ? 1U << 31 : 0);
}

/* What a query takes; instructions are 0 where counter can't be read. */
struct price {
	double ns, instructions;
};

static struct price price(struct bench *b, const struct options *o, int prog_fd, enum way w, int counter)
{
	__u64 before = counter_read(counter);
	struct price p;

	generator_rewind(b->g, w == MISSED ? 1U << 31 : 0);
	p.ns = generator_time(b->g, prog_fd, o->queries);
	p.instructions = (double)(counter_read(counter) - before) / o->queries;
	return p;
}

/* The price of one way less that of making the query. False: the queries did not end where they should. */
static bool way_price(struct bench *b, const struct options *o, enum way w, int counter, struct price *out)
{
	__u64 before[HYDNS_REASONS], after[HYDNS_REASONS];
	struct price base;

	take_way(b, o, w);
	base = price(b, o, generator_nothing(b->g), w, counter);
	kernel_reasons(b->k, before);
	*out = price(b, o, kernel_prog_fd(b->k), w, counter);
	kernel_reasons(b->k, after);
	out->ns -= base.ns;
	out->instructions -= base.instructions;
	return base.ns > 0 && after[ways[w].reason] - before[ways[w].reason] >= o->queries * 0.99;
}

static void print_way(enum way w, bool staged, const struct price *p, int counter)
{
	printf("{\"way\": \"%s%s\", \"stages\": \"%s\", \"nanoseconds\": %.1f", ways[w].name,
	       staged ? ", beside a miss program" : "", ways[w].stages, p->ns);
	if (counter >= 0)
		printf(", \"instructions\": %.1f", p->instructions);
	puts("}");
	fflush(stdout);
}

static void print_program(struct kernel *k)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	if (!bpf_obj_get_info_by_fd(kernel_prog_fd(k), &info, &len))
		printf("{\"verified_instructions\": %u, \"bpf_instructions\": %zu, \"machine_code_octets\": %u}\n",
		       info.verified_insns, info.xlated_prog_len / sizeof(struct bpf_insn), info.jited_prog_len);
}

/* Whether a query that ends so may notice that there is a miss program. */
static bool meets_miss_program(enum way w)
{
	return w == ANSWERED || w == MISSED;
}

static int cost(const struct options *o)
{
	struct options with_stage = *o;
	int counter = counter_open();
	struct bench b[2];

	with_stage.q.miss_stage = true;
	if (begin(o, false, &b[0]) || begin(&with_stage, false, &b[1]))
		return 1;
	if (counter < 0)
		printf("{\"no_instructions\": \"the processor's counter: %s\"}\n", strerror(-counter));
	print_program(b[0].k);
	for (unsigned r = 0; r < o->rounds; r++)
		for (int turn = 2 * WAYS - 1; turn >= 0; turn--) {
			bool staged = (turn + r) % 2;
			enum way w = turn / 2;
			struct price p;

			if (staged && !meets_miss_program(w))
				continue;
			if (!way_price(&b[staged], o, w, counter, &p))
				return fail(ways[w].name, "queries did not end there");
			print_way(w, staged, &p, counter);
		}
	return 0;
}

/* -- capacity ------------------------------------------------------------------------------------------------ */
static int attach(int prog_fd, const char *ifname, const char *what)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	int fd = bpf_link_create(prog_fd, if_nametoindex(ifname), BPF_XDP, &opts);

	if (fd < 0)
		fail(what, strerror(errno));
	return fd;
}

#define TC_PLACE .handle = 1, .priority = 1

/* The hook stays behind, without a program, and goes with the interface. */
static int attach_tc(int prog_fd, const char *ifname)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = if_nametoindex(ifname), .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = prog_fd, TC_PLACE, .flags = BPF_TC_F_REPLACE);
	int err = bpf_tc_hook_create(&hook);

	if (!err || err == -EEXIST)
		err = bpf_tc_attach(&hook, &opts);
	return err ? fail("attaching to the client's end", strerror(-err)) : 0;
}

/* A sink that stayed would drop the next server's replies. */
static int detach_tc(const char *ifname)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = if_nametoindex(ifname), .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, TC_PLACE);
	int err = bpf_tc_detach(&hook, &opts);

	return err ? fail("detaching from the client's end", strerror(-err)) : 0;
}

static void print_run(const char *contender, const struct generator_run *r)
{
	printf("{\"contender\": \"%s\", \"sent\": %llu, \"replies\": %llu, \"answers\": %llu, \"per_second\": %.0f}\n",
	       contender, (unsigned long long)r->sent, (unsigned long long)r->replies,
	       (unsigned long long)r->answers, r->per_second);
	fflush(stdout);
}

static int capacity(const struct options *o)
{
	struct { const char *name; int fd; } contender[2];
	struct generator_run run;
	struct bench b;
	int link;

	if (begin(o, true, &b))
		return 1;
	contender[0].name = "echo";
	contender[0].fd = generator_echo(b.g);
	contender[1].name = "hydns";
	contender[1].fd = kernel_prog_fd(b.k);
	link = attach(contender[0].fd, o->server, "attaching to the server's end");
	if (link < 0 || attach(generator_sink(b.g), o->client, "attaching to the client's end") < 0)
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
				return fail(contender[c].name, strerror(-err));
			print_run(contender[c].name, &run);
		}
	}
	return 0;
}

/* -- scaling -------------------------------------------------------------------------------------------------- */
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
		struct generator *g = i ? generator_open(o->sequence, true, o->q.port) : s->b.g;

		do
			cpu++;
		while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &everywhere));
		if (cpu == CPU_SETSIZE)
			return fail("scaling", "needs two processors: start it with both (taskset)");
		if (!g)
			return 1;
		question_template(&o->q, generator_template(g));
		s->stream[i] = (struct stream){ .g = g, .ifindex = if_nametoindex(client[i]), .cpu = cpu,
			.place = i * PLACES_APART };
		s->link[i] = attach(generator_echo(g), server[i], "attaching to the server's end");
		if (s->link[i] < 0 || attach(generator_sink(g), client[i], "attaching to the client's end") < 0)
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
		return fail(contender, strerror(-err));
	if (!run.replies)
		return fail(contender, "no reply came");
	printf("{\"contender\": \"%s\", \"processors\": %u, \"sent\": %llu, \"replies\": %llu, \"answers\": %llu, "
	       "\"per_second\": %.0f}\n", contender, processors, (unsigned long long)run.sent,
	       (unsigned long long)run.replies, (unsigned long long)run.answers, run.per_second);
	fflush(stdout);
	return 0;
}

static int scaling(const struct options *o)
{
	struct scaling s;

	if (!o->second_client || !if_nametoindex(o->second_client) || !o->second_server || !if_nametoindex(o->second_server))
		return fail("options", "--second-client or --second-server is not an interface here");
	if (!(o->seconds > 0))
		return fail("options", "--seconds: more than 0");
	if (begin(o, true, &s.b) || open_streams(o, &s))
		return 1;
	sched_setaffinity(0, sizeof(everywhere), &everywhere);
	for (unsigned r = 0; r < o->rounds; r++)
		for (unsigned processors = 1; processors <= STREAMS; processors++) {
			rules_sweep(s.b.k);
			if (scaled(&s, o, "echo", generator_echo(s.b.g), processors) ||
			    scaled(&s, o, "hydns", kernel_prog_fd(s.b.k), processors))
				return 1;
		}
	return 0;
}

/* -- publish ------------------------------------------------------------------------------------------------- */
struct load {
	struct bench *b;
	const struct options *o;
	int cpu;
	struct generator_run run;
	int err;
};

static void stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void leave(int cpu)
{
	cpu_set_t others = everywhere;

	if (CPU_COUNT(&others) > 1)
		CPU_CLR(cpu, &others);
	sched_setaffinity(0, sizeof(others), &others);
}

static void *send_queries(void *arg)
{
	struct load *l = arg;

	stay_on(l->cpu);
	generator_rewind(l->b->g, 0);
	l->err = generator_send(l->b->g, if_nametoindex(l->o->client), l->o->queries, l->o->rate, 0,
				&l->run);
	return NULL;
}

/* Queries are sent and answered on that processor, installing goes on on the others. */
static int round_of_installs(struct bench *b, const struct options *o, int cpu)
{
	struct load l = { .b = b, .o = o, .cpu = cpu };
	struct installs i;
	pthread_t thread;
	bool room;

	if (pthread_create(&thread, NULL, send_queries, &l))
		return fail("a thread", strerror(errno));
	room = installs_run(b->k, &o->q, o->q.rules, o->installs, &i);
	pthread_join(thread, NULL);
	if (l.err)
		return fail("sending", strerror(-l.err));
	if (!room)
		return fail("installing", "the store had no room: give --capacity");
	printf("{\"installs_per_second\": %.0f, \"renewals_per_second\": %.0f, \"removals_per_second\": %.0f}\n",
	       i.installed, i.renewed, i.removed);
	print_run("hydns", &l.run);
	return 0;
}

static int publish(const struct options *o)
{
	struct bench b;
	int err = 0, cpu = sched_getcpu();

	if (begin(o, true, &b))
		return 1;
	leave(cpu);
	if (attach(kernel_prog_fd(b.k), o->server, "attaching to the server's end") < 0 ||
	    attach(generator_sink(b.g), o->client, "attaching to the client's end") < 0)
		return 1;
	for (unsigned r = 0; r < o->rounds && !err; r++)
		err = round_of_installs(&b, o, cpu);
	return err;
}

/* -- flood ---------------------------------------------------------------------------------------------------- */
static int flood_round(const struct options *o, struct generator *g, struct generator_run *run)
{
	int err;

	generator_rewind(g, o->first);
	err = generator_send(g, if_nametoindex(o->client), o->queries, o->rate, o->window, run);
	return err ? fail("sending", strerror(-err)) : 0;
}

static int flood_rounds(const struct options *o, struct generator *g)
{
	struct generator_run run;

	for (unsigned r = 0; r < o->rounds; r++) {
		if (flood_round(o, g, &run))
			return 1;
		print_run("flood", &run);
	}
	return 0;
}

/* Runs that take turns with those of others on the same link. Whoever reads the result may start the next one, so the sink
 * must have gone by then: else the other's, in the same place, would be taken away. */
static int flood_on_demand(const struct options *o, struct generator *g)
{
	struct options next = *o;
	struct generator_run run;
	int failed = 0;

	while (!failed && scanf("%u", &next.first) == 1) {
		failed = attach_tc(generator_sink_tc(g), o->client) || flood_round(&next, g, &run);
		failed = detach_tc(o->client) || failed;
		if (!failed)
			print_run("flood", &run);
	}
	return failed;
}

static int flood(const struct options *o)
{
	struct generator *g = generator_open(o->sequence, true, o->q.port);
	int failed;

	if (!g)
		return 1;
	question_template(&o->q, generator_template(g));
	if (o->on_demand)
		return flood_on_demand(o, g);
	if (o->xdp_sink)
		return attach(generator_sink(g), o->client, "attaching to the client's end") < 0 || flood_rounds(o, g);
	if (attach_tc(generator_sink_tc(g), o->client))
		return 1;
	failed = flood_rounds(o, g);
	return detach_tc(o->client) || failed;
}

/* -- the command line ------------------------------------------------------------------------------------------ */
static int number(const char *text, unsigned *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (!*text || *end || n > UINT32_MAX)
		return fail(text, "is not a whole number");
	*out = n;
	return 0;
}

enum { RULES = 256, CAPACITY, OCTETS, TYPE, RECORDS, IPV6, EDNS, DNSSEC, COOKIE, SEQUENCE, QUERIES, ROUNDS, RATE, WINDOW, FIRST, INSTALLS, PORT,
       XDP_SINK, ON_DEMAND, SECONDS, CLIENT, SERVER, SECOND_CLIENT, SECOND_SERVER };
static const struct option long_options[] = {
	{ "rules", 1, NULL, RULES }, { "capacity", 1, NULL, CAPACITY }, { "octets", 1, NULL, OCTETS },
	{ "type", 1, NULL, TYPE }, { "records", 1, NULL, RECORDS }, { "ipv6", 0, NULL, IPV6 },
	{ "edns", 0, NULL, EDNS }, { "dnssec", 0, NULL, DNSSEC }, { "cookie", 0, NULL, COOKIE },
	{ "sequence", 1, NULL, SEQUENCE }, { "queries", 1, NULL, QUERIES }, { "rounds", 1, NULL, ROUNDS },
	{ "rate", 1, NULL, RATE }, { "window", 1, NULL, WINDOW }, { "first", 1, NULL, FIRST }, { "installs", 1, NULL, INSTALLS },
	{ "port", 1, NULL, PORT }, { "xdp-sink", 0, NULL, XDP_SINK }, { "on-demand", 0, NULL, ON_DEMAND },
	{ "client", 1, NULL, CLIENT }, { "server", 1, NULL, SERVER },
	{ "seconds", 1, NULL, SECONDS }, { "second-client", 1, NULL, SECOND_CLIENT }, { "second-server", 1, NULL, SECOND_SERVER },
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
	case PORT: return number(optarg, &o->q.port);
	case INSTALLS: return number(optarg, &o->installs);
	case ROUNDS: return number(optarg, &o->rounds);
	case RATE: o->rate = strtod(optarg, NULL); return 0;
	case WINDOW: return number(optarg, &o->window);
	case FIRST: return number(optarg, &o->first);
	case CLIENT: o->client = optarg; return 0;
	case SERVER: o->server = optarg; return 0;
	case SECONDS: o->seconds = strtod(optarg, NULL); return 0;
	case SECOND_CLIENT: o->second_client = optarg; return 0;
	case SECOND_SERVER: o->second_server = optarg; return 0;
	}
	usage(stderr);
	return 2;
}

static const struct { const char *name; int (*run)(const struct options *); bool live; } commands[] = {
	{ "cost", cost, false }, { "capacity", capacity, true }, { "scaling", scaling, true },
	{ "publish", publish, true }, { "flood", flood, true },
};

int main(int argc, char **argv)
{
	struct options o = { .q = { .rules = 1, .octets = 24, .type = 1, .records = 1, .port = 53 }, .queries = 1000000, .rounds = 3,
		.installs = 100000, .seconds = 0.5 };
	const char *wrong;
	int c, err;

	sched_getaffinity(0, sizeof(everywhere), &everywhere);
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
		return fail("options", wrong);
	if (o.window == 1)
		return fail("options", "--window is too small: queries leave in batches of half of it");
	if (!o.sequence)
		return fail("options", "--sequence is missing");
	for (size_t i = 0; optind + 1 == argc && i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[optind], commands[i].name))
			return commands[i].live && (!o.client || !if_nametoindex(o.client)) ?
				fail("options", "--client is not an interface here") : commands[i].run(&o);
	usage(stderr);
	return 2;
}
