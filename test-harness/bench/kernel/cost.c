/* SPDX-License-Identifier: GPL-2.0-only */
/* Nanoseconds of the program by the stage where a query ends. */
#include "test-harness/bench/kernel/measure.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include "test-harness/bench/kernel/counter.h"

/* Each makes the query end at another stage, by changing its template or what the program finds. */
enum way { ANSWERED, COUNTED, LIMITED, RATED, DROPPED, SLIPPED, MISSED, EPOCH_OVER, NOT_ORDINARY,
	   NOT_A_SERVICE, NOT_IP, EMPTY, PAUSED, WAYS };
static const struct { const char *name, *stages; __u32 reason; } ways[WAYS] = {
	[PAUSED] = { "paused", "entry, counter", HYDNS_R_PAUSED },
	[EMPTY] = { "empty store", "switch of the store", HYDNS_R_EMPTY },
	[NOT_IP] = { "not IP", "Ethernet header", HYDNS_R_NOT_IP },
	[NOT_A_SERVICE] = { "not a service", "IP, UDP, service look-up", HYDNS_R_NOT_SERVICE },
	[NOT_ORDINARY] = { "not an ordinary query", "message copied, checksum verified", HYDNS_R_DNS_UNUSUAL },
	[MISSED] = { "no rule", "question, EDNS, access list, hash, index", HYDNS_R_MISS },
	[EPOCH_OVER] = { "rule of another epoch", "rule found, key compared", HYDNS_R_EPOCH },
	[ANSWERED] = { "answered", "reply written", HYDNS_R_ANSWERED },
	[COUNTED] = { "answered, clients are limited", "client's budget, reply written", HYDNS_R_ANSWERED },
	[LIMITED] = { "above its client's limit", "client's budget", HYDNS_R_LIMITED },
	[RATED] = { "answered, responses are limited", "tail call, client's balance, reply written", HYDNS_R_ANSWERED },
	[DROPPED] = { "above the limit of responses", "tail call, client's balance", HYDNS_R_LIMITED },
	[SLIPPED] = { "above it, truncated", "tail call, client's balance, reply without records written", HYDNS_R_LIMIT_TRUNCATED },
};

/* Adds to a 16-bit word of the datagram and updates the checksum, all in network byte order (RFC 1624, equation 3). */
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

/* Limits that no client reaches, or all do at once. */
static void limit(struct bench *b, enum way w)
{
	__u32 most = w == COUNTED ? UINT32_MAX : 1;
	const struct hydns_limits l = { .queries = most, .with_cookie = most };

	kernel_limit(b->k, w == COUNTED || w == LIMITED ? &l : NULL);
}

#define IS_RATED(w) ((w) == RATED || (w) == DROPPED || (w) == SLIPPED)

/* A client that is above its limit of responses, as the resolver has logged. Such a one is answered with log-only alone. */
static bool rate(struct bench *b, const struct options *o, enum way w, int prog_fd)
{
	const struct hydns_rates r = {
		.most = { [HYDNS_RATE_ANSWER] = 1 }, .window = 1, .slip = w == SLIPPED, .flags = w == RATED ? HYDNS_RATES_LOG_ONLY : 0,
		.ipv4_prefix = 32, .ipv6_prefix = 64,
	};
	struct hydns_rate_bucket *buckets;

	if (!IS_RATED(w))
		return true;
	buckets = kernel_rate(b->k, &r);
	if (!buckets || generator_time(b->g, prog_fd, o->queries) < 0)        /* the client has a cell now */
		return false;
	kernel_log_rated(buckets, (__u32)time(NULL));
	return true;
}

static void take_way(struct bench *b, const struct options *o, enum way w)
{
	struct pace_template *t = generator_template(b->g);
	size_t udp = t->check_at - 6;

	question_template(&o->q, t);
	kernel_pause(b->k, w == PAUSED);
	kernel_empty(b->k, w == EMPTY);
	limit(b, w);
	kernel_page(b->k)->epoch = w == EPOCH_OVER ? EPOCH + 1 : EPOCH;
	if (w == NOT_IP)
		memset(t->frame + 12, 0, 2);
	if (w == NOT_A_SERVICE)
		add_to_word(t, udp + 2, 1); /* port 54 */
	if (w == NOT_ORDINARY)
		add_to_word(t, udp + 8 + 2, 0x1000); /* opcode 2 */
	generator_rewind(b->g, w == MISSED ? 1U << 31 : 0);
}

/* The cost of a query; instructions are 0 when the counter can't be read. */
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

/* The cost of one way without the cost of making the query. False when the queries ended at another stage. */
static bool way_price(struct bench *b, const struct options *o, enum way w, int counter, struct price *out)
{
	__u64 before[HYDNS_REASONS], after[HYDNS_REASONS];
	struct price base;

	take_way(b, o, w);
	if (!rate(b, o, w, kernel_prog_fd(b->k)))
		return false;
	base = price(b, o, generator_nothing(b->g), w, counter);
	kernel_reasons(b->k, before);
	*out = price(b, o, kernel_prog_fd(b->k), w, counter);
	kernel_reasons(b->k, after);
	out->ns -= base.ns;
	out->instructions -= base.instructions;
	return base.ns > 0 && after[ways[w].reason] - before[ways[w].reason] >= o->queries * 0.99;
}

/* What the program does besides. Analysers run in the monitored one, in turns. */
enum beside { NOTHING, MISS_PROGRAM, MONITOR, GUARD, RATES, PROGRAMS, ANALYSER = PROGRAMS, BESIDES = ANALYSER + HYDNS_ANALYSERS };
static const char *const besides[BESIDES] = {
	"", ", beside a miss program", ", monitored", ", guarded", "",
#define HYDNS_ANALYSER(name, by, conditions, text) ", monitored, " #name,
#include "hydns/analysers.def"
#undef HYDNS_ANALYSER
};

static void print_way(enum way w, enum beside beside, const struct price *p, int counter)
{
	printf("{\"way\": \"%s%s\", \"stages\": \"%s\", \"nanoseconds\": %.1f", ways[w].name, besides[beside], ways[w].stages, p->ns);
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

/* Whether it may affect a query that ends this way. Clients with a cookie have no limit of responses. */
static bool meets(const struct options *o, enum beside beside, enum way w)
{
	if (beside == RATES || IS_RATED(w))
		return beside == RATES && IS_RATED(w) && !o->q.cookie;
	return beside == NOTHING || w == ANSWERED || w == MISSED || (beside == MONITOR && w == NOT_ORDINARY);
}

/* The program that does this. */
static struct bench *take_beside(struct bench b[PROGRAMS], enum beside beside)
{
	kernel_analyse(b[MONITOR].k, beside >= ANALYSER ? 1U << (beside - ANALYSER) : 0);
	return &b[beside >= ANALYSER ? MONITOR : beside];
}

static int begin(const struct options *o, struct bench b[PROGRAMS])
{
	for (enum beside beside = NOTHING; beside < PROGRAMS; beside++) {
		struct options with = *o;

		with.q.miss_stage = beside == MISS_PROGRAM;
		with.q.monitor = beside == MONITOR;
		with.q.guard = beside == GUARD;
		with.q.rates = beside == RATES;
		if (bench_begin(&with, false, &b[beside]))
			return 1;
	}
	return 0;
}

int bench_cost(const struct options *o)
{
	const unsigned sides = o->analysers ? BESIDES : PROGRAMS;
	int counter = counter_open();
	struct bench b[PROGRAMS];

	if (begin(o, b))
		return 1;
	if (counter < 0)
		printf("{\"no_instructions\": \"the processor's counter: %s\"}\n", strerror(-counter));
	print_program(b[NOTHING].k);
	for (unsigned r = 0; r < o->rounds; r++)
		for (int turn = sides * WAYS - 1; turn >= 0; turn--) {
			enum beside beside = (turn + r) % sides;
			enum way w = turn / sides;
			struct price p;

			if (!meets(o, beside, w))
				continue;
			if (!way_price(take_beside(b, beside), o, w, counter, &p))
				return bench_fail(ways[w].name, "queries did not end there");
			print_way(w, beside, &p, counter);
		}
	return 0;
}
