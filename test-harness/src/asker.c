// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Asks DNS questions over UDP at a fixed rate and records, query by query, when each was sent and what
 * came back: what a test needs to say "no query sent after this moment got an old answer". Open loop:
 * a slow answer does not delay the next query. Times are CLOCK_MONOTONIC, as Python's
 * time.monotonic_ns(). Ends at -l seconds, or at SIGTERM or SIGINT; then waits for what is outstanding.
 *
 * Output, one line a query, in the order of sending:
 *   sent_ns latency_ns question rcode ttl rdata
 * latency_ns -1: no answer within the timeout, and the rest is "- - -". question counts the input lines
 * from 0. ttl and rdata (hex) are of the last record of the answer section, "- -" when it is empty;
 * rcode is -1 when the reply's question is not, octet for octet, the one asked.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "common.h"

#define HEADER          12
#define QUERY_ROOM      512
#define RDATA_KEPT      16        /* octets of rdata recorded: an IPv6 address */
#define IDS             65536U
#define BURST           64        /* queries sent at once to catch up: a veth holds 256 */

struct question {
	uint8_t wire[QUERY_ROOM];     /* whole query, id 0 */
	uint16_t len;                 /* of the query */
	uint16_t question_end;        /* offset of the first octet after the question */
};

struct record {
	int64_t sent, latency;        /* ns; latency -1 until answered */
	uint32_t question, ttl;
	uint16_t id;
	int16_t rcode;
	uint8_t rdata_len;            /* 0: no record in the answer section */
	uint8_t rdata[RDATA_KEPT];
	uint8_t query_name[256];      /* as sent, when letter case is mixed */
};

struct options {
	const char *server, *port, *local, *input, *output;
	double rate, seconds, timeout;
	bool edns, dnssec_ok, mixed_case;
};

struct state {
	struct options o;
	struct question *questions;
	size_t question_count;
	struct record *records;
	size_t count, room;
	uint32_t by_id[IDS];          /* 1 + number of the record that waits for this id; 0: none */
	size_t oldest;                /* no earlier record is still waiting within its timeout */
	int fd;
};

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static unsigned type_number(const char *text)
{
	static const struct { const char *name; unsigned number; } types[] = {
		{ "A", 1 }, { "NS", 2 }, { "CNAME", 5 }, { "SOA", 6 }, { "MX", 15 }, { "TXT", 16 },
		{ "AAAA", 28 }, { "HTTPS", 65 },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strcmp(types[i].name, text) == 0)
			return types[i].number;
	die("unknown query type", text);
	return 0;
}

/* Builds the query for "name type". Names without escapes only. */
static void make_query(const struct options *o, struct question *q, const char *name, const char *type)
{
	uint8_t *p = q->wire + HEADER;

	if (strlen(name) > 250)
		die("name too long", name);
	memset(q, 0, sizeof(*q));
	q->wire[2] = 0x01; /* RD */
	put16(q->wire + 4, 1);
	while (*name && strcmp(name, ".") != 0) {
		size_t len = strcspn(name, ".");

		if (len == 0 || len > 63)
			die("label of a length that does not exist", name);
		*p++ = len;
		memcpy(p, name, len);
		p += len;
		name += len + (name[len] == '.');
	}
	*p++ = 0;
	put16(p, type_number(type));
	put16(p + 2, 1); /* IN */
	p += 4;
	q->question_end = p - q->wire;
	if (o->edns) {
		static const uint8_t opt[11] = { 0, 0, 41, 1232 >> 8, 1232 & 0xff };

		memcpy(p, opt, sizeof(opt));
		if (o->dnssec_ok)
			p[7] = 0x80;
		p += sizeof(opt);
		put16(q->wire + 10, 1);
	}
	q->len = p - q->wire;
}

static void read_questions(struct state *s)
{
	FILE *f = fopen(s->o.input, "r");
	char line[512], name[260], type[16];
	size_t room = 0;

	if (!f)
		die(s->o.input, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%259s %15s", name, type) != 2)
			continue;
		if (s->question_count == room) {
			room = room ? 2 * room : 64;
			s->questions = realloc(s->questions, room * sizeof(*s->questions));
			if (!s->questions)
				die("questions", strerror(errno));
		}
		make_query(&s->o, &s->questions[s->question_count++], name, type);
	}
	fclose(f);
	if (s->question_count == 0)
		die(s->o.input, "no line with a name and a type");
}

static void open_socket(struct state *s)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *to, *from;
	int size = 4 << 20, rc;

	rc = getaddrinfo(s->o.server, s->o.port, &hints, &to);
	if (rc)
		die(s->o.server, gai_strerror(rc));
	s->fd = socket(to->ai_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		die("socket", strerror(errno));
	setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (s->o.local) {
		rc = getaddrinfo(s->o.local, "0", &hints, &from);
		if (rc)
			die(s->o.local, gai_strerror(rc));
		if (bind(s->fd, from->ai_addr, from->ai_addrlen))
			die(s->o.local, strerror(errno));
		freeaddrinfo(from);
	}
	if (connect(s->fd, to->ai_addr, to->ai_addrlen))
		die(s->o.server, strerror(errno));
	freeaddrinfo(to);
}

/* Every other letter upper case, starting with one or the other by turns. */
static void mix_case(uint8_t *query, unsigned end, unsigned turn)
{
	for (unsigned i = HEADER; i < end - 4; i++)
		if (query[i] >= 'a' && query[i] <= 'z' && ((i + turn) & 1))
			query[i] -= 'a' - 'A';
}

static void send_one(struct state *s)
{
	uint32_t which = s->count % s->question_count;
	const struct question *q = &s->questions[which];
	uint8_t query[QUERY_ROOM];
	struct record *r;
	uint16_t id = s->count * 40503U; /* odd: walks through all ids */

	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 65536;
		s->records = realloc(s->records, s->room * sizeof(*s->records));
		if (!s->records)
			die("records", strerror(errno));
	}
	r = &s->records[s->count++];
	memset(r, 0, sizeof(*r));
	memcpy(query, q->wire, q->len);
	put16(query, id);
	if (s->o.mixed_case)
		mix_case(query, q->question_end, s->count);
	memcpy(r->query_name, query + HEADER, q->question_end - HEADER < 256 ? q->question_end - HEADER : 256);
	r->question = which;
	r->id = id;
	r->latency = -1;
	s->by_id[id] = s->count;
	r->sent = now();
	/* A refused port or a link that is down is an unanswered query, and recorded as such. */
	(void)!send(s->fd, query, q->len, 0);
}

/* Offset after the name at off, or 0 when it leaves the message. */
static unsigned skip_name(const uint8_t *m, unsigned len, unsigned off)
{
	while (off < len) {
		if (m[off] == 0)
			return off + 1;
		if (m[off] >= 0xc0)
			return off + 2;
		off += 1 + m[off];
	}
	return 0;
}

static void last_answer(struct record *r, const uint8_t *m, unsigned len, unsigned off)
{
	for (unsigned left = get16(m + 6); left; left--) {
		unsigned rdlen;

		off = skip_name(m, len, off);
		if (!off || off + 10 > len)
			return;
		rdlen = get16(m + off + 8);
		if (off + 10 + rdlen > len)
			return;
		r->ttl = get16(m + off + 4) << 16 | get16(m + off + 6);
		r->rdata_len = rdlen < RDATA_KEPT ? rdlen : RDATA_KEPT;
		memcpy(r->rdata, m + off + 10, r->rdata_len);
		off += 10 + rdlen;
	}
}

static void receive_all(struct state *s)
{
	uint8_t m[65536];
	ssize_t n;

	while ((n = recv(s->fd, m, sizeof(m), 0)) >= 0 || errno == ECONNREFUSED || errno == EHOSTUNREACH) {
		int64_t at = now();
		uint32_t number;
		struct record *r;
		const struct question *q;

		if (n < HEADER)
			continue;
		number = s->by_id[get16(m)];
		if (number == 0)
			continue; /* too late, or twice */
		r = &s->records[number - 1];
		q = &s->questions[r->question];
		s->by_id[r->id] = 0;
		r->latency = at - r->sent;
		r->rcode = m[3] & 0x0f;
		if (n < q->question_end || memcmp(m + HEADER, r->query_name, q->question_end - HEADER) != 0)
			r->rcode = -1;
		else
			last_answer(r, m, n, q->question_end);
	}
}

/* Forgets what had waited longer than the timeout when all that had come by then was read: else a reply would be late
 * when it's this program that was held up. True while something still waits. */
static bool expire(struct state *s, int64_t as_of)
{
	int64_t limit = as_of - (int64_t)(s->o.timeout * NS);

	for (; s->oldest < s->count; s->oldest++) {
		struct record *r = &s->records[s->oldest];

		if (r->latency >= 0 || s->by_id[r->id] != s->oldest + 1)
			continue;
		if (r->sent > limit)
			return true;
		s->by_id[r->id] = 0;
	}
	return false;
}

static void wait_for(struct state *s, int64_t ns)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	struct timespec t = { .tv_sec = ns / NS, .tv_nsec = ns % NS };

	if (ns > 0)
		ppoll(&p, 1, &t, NULL);
	else
		sched_yield(); /* the kernel may have left the packets to a thread of its own */
}

static void ask(struct state *s)
{
	int64_t begin = now(), gap = (int64_t)(NS / s->o.rate), due = begin;
	int64_t end = s->o.seconds > 0 ? begin + (int64_t)(s->o.seconds * NS) : INT64_MAX;

	while (!ended && due < end) {
		int64_t t = now();

		for (int n = 0; n < BURST && due <= t && due < end; n++, due += gap)
			send_one(s);
		receive_all(s);
		expire(s, t);
		wait_for(s, due - now());
	}
	for (bool waits = true; waits;) {
		int64_t t = now();

		receive_all(s);
		waits = expire(s, t);
		if (waits)
			wait_for(s, NS / 100);
	}
}

static void write_records(const struct state *s)
{
	FILE *f = fopen(s->o.output, "w");

	if (!f)
		die(s->o.output, strerror(errno));
	for (size_t i = 0; i < s->count; i++) {
		const struct record *r = &s->records[i];

		fprintf(f, "%lld %lld %u ", (long long)r->sent, (long long)r->latency, r->question);
		if (r->latency < 0) {
			fprintf(f, "- - -\n");
		} else if (r->rdata_len == 0) {
			fprintf(f, "%d - -\n", r->rcode);
		} else {
			fprintf(f, "%d %u ", r->rcode, r->ttl);
			for (unsigned k = 0; k < r->rdata_len; k++)
				fprintf(f, "%02x", r->rdata[k]);
			fputc('\n', f);
		}
	}
	if (fclose(f))
		die(s->o.output, strerror(errno));
}

static void usage(FILE *f)
{
	fputs("usage: asker -s ADDRESS -d FILE -o FILE [-p PORT] [-a LOCAL] [-r RATE] [-l SECONDS] [-t TIMEOUT] [-e] [-D] [-x]\n"
	      "  -s  server address            -p  port [53]\n"
	      "  -a  local address             -d  questions, one \"name type\" a line, asked in turn\n"
	      "  -o  records, one line a query -r  queries per second [1000]\n"
	      "  -l  seconds [until SIGTERM]   -t  seconds to wait for an answer [2]\n"
	      "  -e  with EDNS                 -D  with DNSSEC OK (implies -e)\n"
	      "  -x  letters in mixed case\n", f);
}

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	*o = (struct options){ .port = "53", .rate = 1000, .timeout = 2 };
	while ((c = getopt(argc, argv, "s:p:a:d:o:r:l:t:eDxh")) != -1) {
		switch (c) {
		case 's': o->server = optarg; break;
		case 'p': o->port = optarg; break;
		case 'a': o->local = optarg; break;
		case 'd': o->input = optarg; break;
		case 'o': o->output = optarg; break;
		case 'r': o->rate = atof(optarg); break;
		case 'l': o->seconds = atof(optarg); break;
		case 't': o->timeout = atof(optarg); break;
		case 'D': o->dnssec_ok = true; o->edns = true; break;
		case 'e': o->edns = true; break;
		case 'x': o->mixed_case = true; break;
		case 'h': usage(stdout); exit(0);
		default: usage(stderr); exit(2);
		}
	}
	if (!o->server || !o->input || !o->output || o->rate <= 0 || o->timeout <= 0 || optind != argc) {
		usage(stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct state s;
	struct sigaction action = { .sa_handler = on_signal };

	parse(argc, argv, &s.o);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	read_questions(&s);
	open_socket(&s);
	ask(&s);
	write_records(&s);
	return 0;
}
