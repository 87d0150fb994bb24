// SPDX-License-Identifier: GPL-2.0-only
/*
 * A resolver that only offers: registers its address with a hydnsd, as real ones do, and times its offers. It never answers a
 * query, so every reply is the kernel's.
 *
 *   offerer rate PLUGIN-SOCKET ADDRESS COUNT
 *   offerer mix PLUGIN-SOCKET ADDRESS COUNT
 *   offerer first PLUGIN-SOCKET ADDRESS COUNT CLIENT-NETNS CLIENT-ADDRESS
 *
 * rate: offers COUNT answers as fast as the ring takes them; prints when it began and when the last was in the ring
 * (CLOCK_MONOTONIC, ns), and stays until its input ends. Each line of that is a flush, "name N" of the N-th answer, "subtree" of the
 * zone, or "all"; prints how long it took. mix: the same with rules of many sizes. first: COUNT times, offers an
 * answer and asks for it until the first reply; prints each time in nanoseconds. One JSON object a line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include "frame.h"
#include "test-harness/bench/kernel/pace.h"
#include "plugin/plugin.h"

#define ADMISSION   2
#define TTL         3600
#define EDNS_SIZE   1232
#define PORT_DNS    53
#define TYPE_A      1
#define TYPE_CNAME  5
#define TYPE_TXT    16
#define PATIENCE_NS 1000000000LL   /* for a first reply */
#define ASK_NS      20000LL        /* from one query to the next */
#define READY_TRIES 60000

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "offerer: %s: %s\n", what, why);
	exit(1);
}

static void log_line(enum hydns_log_level level, const char *text)
{
	if (level <= HYDNS_LOG_WARNING)
		fprintf(stderr, "offerer: %s\n", text);
}

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		die(text, "is not an IPv4 address");
	return a;
}

static int bound_socket(const char *text, uint16_t port)
{
	struct sockaddr_in a = address(text, port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die(text, strerror(errno));
	return fd;
}

/* -- one question and its answer -------------------------------------------------------------------------- */
struct pair {
	char name[64];
	struct query query;
	struct answer answer;
	uint8_t wire[512], reply[HYDNS_SLOT_MOST]; /* DNS messages */
	size_t wire_len, reply_len;
	uint8_t question_name[64];
	struct hydns_question question;
	unsigned target_at[2], targets;      /* offsets of labels in the reply that change with the question's */
};

static void make_question(struct pair *p, uint16_t type)
{
	memset(p, 0, sizeof(*p));
	strcpy(p->name, "aaaaaaaa.example.net");
	p->query = (struct query){ .name = p->name, .qtype = type, .id = 0x4711 };
}

static void finish_pair(struct pair *p)
{
	struct frame f;

	frame_query(&f, &p->query);
	p->wire_len = f.len - f.dns;
	memcpy(p->wire, f.data + f.dns, p->wire_len);
	p->reply_len = answer_message(&p->answer, &p->query, 0, 0, EDNS_SIZE, p->reply);
	p->question.name_len = name_wire(p->name, p->question_name);
	p->question.name = p->question_name;
	p->question.qtype = p->query.qtype;
}

static void make_pair(struct pair *p)
{
	make_question(p, TYPE_A);
	answer_addresses(&p->answer, 1, TTL);
	finish_pair(p);
}

static void ask_for(struct pair *p, uint32_t number)
{
	uint64_t label = pace_label(number);

	memcpy(p->wire + 13, &label, PACE_LABEL);
	memcpy(p->reply + 13, &label, PACE_LABEL);
	memcpy(p->question_name + 1, &label, PACE_LABEL);
	for (unsigned i = 0; i < p->targets; i++)
		memcpy(p->reply + p->target_at[i], &label, PACE_LABEL);
}

/* -- a mix ------------------------------------------------------------------------------------------------- */
/*
 * Slots that the 100,000 rules of the demo take (addresses, service bindings, mail and text, aliases, 34 % negative
 * answers; names of 27 octets), in thousandths, and ten of a thousand larger, for validated answers. Those from ALIAS
 * on depend on two names, as half of the demo's rules do on two or more.
 */
static const struct { uint16_t octets, share; } sizes[] = {
	{ 96, 56 }, { 112, 211 }, { 128, 100 }, { 144, 163 }, { 160, 266 }, { 176, 57 }, { 192, 54 }, { 208, 31 },
	{ 224, 18 }, { 240, 16 }, { 256, 5 }, { 288, 9 }, { 352, 4 }, { 512, 8 }, { 768, 2 },
};
#define SIZES   (sizeof(sizes) / sizeof(sizes[0]))
#define SHARES  1000
#define ALIAS   144
#define SLACK   8                  /* unused octets of a slot, on average */
/* Octets of a rule of these names besides its records. */
#define BESIDE  HYDNS_RULE_SPACE(22, 0, 0, 0)

/* One TXT record of such a length that the rule takes so many octets; an address record when no length fits. */
static void make_single(struct pair *p, unsigned octets)
{
	unsigned len = octets < BESIDE + SLACK + 2 + 12 + 8 ? 0 : octets - SLACK - BESIDE - 2 - 12, at = 0;
	uint8_t rdata[HYDNS_SLOT_MOST] = { 0 };

	make_question(p, len ? TYPE_TXT : TYPE_A);
	if (!len)
		answer_addresses(&p->answer, 1, TTL);
	for (; at < len; at += rdata[at] + 1U)
		rdata[at] = len - at - 1 < 255 ? len - at - 1 : 255;
	if (len)
		answer_add(&p->answer, ANSWER, NULL, TYPE_TXT, TTL, rdata, len);
	finish_pair(p);
}

/* An alias to a name of its own, with an address. */
static void make_alias(struct pair *p, unsigned octets)
{
	unsigned len = (octets - SLACK - BESIDE - 4 - 12 - 14) / 2, parent = len - 1 - PACE_LABEL - 2;
	uint8_t target[HYDNS_NAME_MAX], address[4] = { 203, 0, 113, 1 };
	char text[HYDNS_NAME_MAX] = "aaaaaaaa.";

	memset(text + PACE_LABEL + 1, 'x', parent < 63 ? parent : 63);
	make_question(p, TYPE_A);
	len = name_wire(text, target);
	answer_add(&p->answer, ANSWER, NULL, TYPE_CNAME, TTL, target, len);
	answer_add(&p->answer, ANSWER, text, TYPE_A, TTL, address, sizeof(address));
	finish_pair(p);
	p->target_at[p->targets++] = 12 + 22 + 4 + 12 + 1;
	p->target_at[p->targets++] = 12 + 22 + 4 + 12 + len + 1;
}

static void make_mix(struct pair mix[SIZES])
{
	for (unsigned i = 0; i < SIZES; i++)
		if (sizes[i].octets < ALIAS || sizes[i].octets > 2 * ALIAS)
			make_single(&mix[i], sizes[i].octets);
		else
			make_alias(&mix[i], sizes[i].octets);
}

static unsigned size_of(uint32_t number)
{
	unsigned left = (uint32_t)(number * 2654435761U) / (UINT32_MAX / SHARES + 1), i = 0;

	while (left >= sizes[i].share)
		left -= sizes[i++].share;
	return i;
}

/* Does what a resolver thread does with each query for a hot name. Returns 0, or the not-offered reason. */
static int offer(struct hydns_plugin *p, const struct pair *q)
{
	struct hydns_thread *t = hydns_plugin_thread(p, 0);
	uint64_t now_ms = now() / 1000000;
	uint64_t key = hydns_plugin_prefetch(t, &q->question);
	time_t sent = time(NULL);

	for (int i = 0; i < ADMISSION; i++)
		hydns_plugin_hot(t, key, false, sent + TTL, now_ms);
	return hydns_plugin_offer(t, &q->question, q->reply, q->reply_len, sent, sent + TTL, false,
				   hydns_plugin_stamp(p));
}

/* -- registering ------------------------------------------------------------------------------------------- */
static struct hydns_plugin *begin(const char *socket_path, const char *service, struct pair *q)
{
	const struct hydns_plugin_options o = { .socket = socket_path, .identity = "offerer", .version = "1",
		.threads = 1, .admission = ADMISSION, .window_ms = 60000, .min_ttl = 2, .max_ttl = 86400,
		.refresh_percent = 10, .flush_timeout_ms = 1000, .edns_size = EDNS_SIZE, .max_udp = EDNS_SIZE,
		.flags = HYDNS_RESOLVER_IGNORES_COOKIE, .log = log_line };
	const struct hydns_acl_entry everybody = { .action = HYDNS_ACL_ALLOW };
	struct hydns_plugin *p = hydns_plugin_new(&o);
	int tries = 0;

	if (!p || hydns_plugin_add_service(p, bound_socket(service, PORT_DNS)) ||
	    hydns_plugin_add_acl(p, &everybody, 1) || hydns_plugin_start(p))
		die("registering", "refused");
	while (offer(p, q) == -ENOTCONN && tries++ < READY_TRIES)
		usleep(1000);
	if (tries >= READY_TRIES)
		die(socket_path, "hydnsd does not answer");
	return p;
}

/* -- rate --------------------------------------------------------------------------------------------------- */
static void flush(struct hydns_plugin *p, struct pair *q, const char *line)
{
	uint32_t number;

	if (sscanf(line, "name %u", &number) == 1) {
		ask_for(q, number);
		hydns_plugin_withdraw(p, HYDNS_SCOPE_NAME, q->question_name, q->question.name_len);
	} else if (!strcmp(line, "subtree\n")) {
		hydns_plugin_withdraw(p, HYDNS_SCOPE_SUBTREE, q->question_name + 1 + PACE_LABEL, q->question.name_len - 1 - PACE_LABEL);
	} else if (!strcmp(line, "all\n")) {
		hydns_plugin_withdraw(p, HYDNS_SCOPE_ALL, NULL, 0);
	} else {
		die(line, "is no flush");
	}
}

static void flush_on_request(struct hydns_plugin *p, struct pair *q)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		int64_t begun = now();

		flush(p, q, line);
		printf("{\"nanoseconds\": %lld}\n", (long long)(now() - begun));
		fflush(stdout);
	}
}

/* q: a pair, or with mixed one of each size. */
static void rate(struct hydns_plugin *p, struct pair *q, bool mixed, uint32_t count)
{
	int64_t begun = now(), full = 0;
	int err;

	for (uint32_t i = 1; i <= count; i++) {
		struct pair *one = mixed ? &q[size_of(i)] : q;

		ask_for(one, i);
		while ((err = offer(p, one)) == -ENOBUFS) {
			full++;
			sched_yield();       /* to hydnsd, if it shares this processor */
		}
		if (err)
			die("an offer", strerror(-err));
	}
	printf("{\"began_ns\": %lld, \"offered_ns\": %lld, \"ring_full\": %lld}\n", (long long)begun,
	       (long long)now(), (long long)full);
	fflush(stdout);
	flush_on_request(p, q);
}

/* -- first reply ---------------------------------------------------------------------------------------------- */
static int client_socket(const char *netns, const char *from, const char *service)
{
	struct sockaddr_in to = address(service, PORT_DNS);
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there = open(netns, O_RDONLY | O_CLOEXEC), fd;

	if (home < 0 || there < 0 || setns(there, CLONE_NEWNET))
		die(netns, strerror(errno));
	fd = bound_socket(from, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || setns(home, CLONE_NEWNET))
		die(service, strerror(errno));
	close(home);
	close(there);
	return fd;
}

/* Asks until this question is answered; returns the time of the reply, or -1. */
static int64_t answered_at(int fd, const struct pair *q, int64_t since)
{
	uint8_t reply[512];
	int64_t asked = 0, at;

	while ((at = now()) - since < PATIENCE_NS) {
		if (at - asked >= ASK_NS) {
			if (send(fd, q->wire, q->wire_len, 0) < 0)
				die("a query", strerror(errno));
			asked = at;
		}
		if (recv(fd, reply, sizeof(reply), MSG_DONTWAIT) == (ssize_t)q->reply_len &&
		    !memcmp(reply + 12, q->reply + 12, 1 + PACE_LABEL))
			return now();
	}
	return -1;
}

static void first(struct hydns_plugin *p, struct pair *q, uint32_t count, int client)
{
	for (uint32_t i = 1; i <= count; i++) {
		int64_t offered, answered;
		int err;

		ask_for(q, i);
		offered = now();
		err = offer(p, q);
		if (err)
			die("an offer", strerror(-err));
		answered = answered_at(client, q, offered);
		if (answered < 0)
			die("an offer", "no kernel answer came within a second");
		printf("{\"nanoseconds\": %lld}\n", (long long)(answered - offered));
		usleep(1000 + i % 7 * 1000); /* let hydnsd sleep, as it does between two names that become hot */
	}
}

int main(int argc, char **argv)
{
	bool mixed = argc == 5 && !strcmp(argv[1], "mix"), firsts = argc == 7 && !strcmp(argv[1], "first");
	bool rates = mixed || (argc == 5 && !strcmp(argv[1], "rate"));
	struct hydns_plugin *p;
	static struct pair q, mix[SIZES];

	if (!rates && !firsts) {
		fputs("usage: offerer rate PLUGIN-SOCKET ADDRESS COUNT\n"
		      "       offerer mix PLUGIN-SOCKET ADDRESS COUNT\n"
		      "       offerer first PLUGIN-SOCKET ADDRESS COUNT CLIENT-NETNS CLIENT-ADDRESS\n", stderr);
		return 2;
	}
	make_pair(&q);
	make_mix(mix);
	p = begin(argv[2], argv[3], &q);
	if (rates)
		rate(p, mixed ? mix : &q, mixed, strtoul(argv[4], NULL, 10));
	else
		first(p, &q, strtoul(argv[4], NULL, 10), client_socket(argv[5], argv[6], argv[3]));
	hydns_plugin_stop(p);
	return 0;
}
