// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sends DNS queries over UDP at a fixed rate and records for each when it was sent and what came back, so that a test can
 * check that no query sent after a moment got an old answer. Open loop: a slow answer does not delay the next query. With -q
 * it is a closed loop instead: so many queries are under way at once. Times are CLOCK_MONOTONIC, as Python's
 * time.monotonic_ns(). Ends after -l seconds, after -n queries, or at SIGTERM or SIGINT; then waits for outstanding replies.
 *
 * Output, one line a query, in the order of sending:
 *   sent_ns latency_ns question rcode ttl rdata
 * latency_ns -1: no answer within the timeout, and the rest is "- - -". question counts the input lines
 * from 0. ttl and rdata (hex) are of the last record of the answer section, "- -" when it is empty;
 * rcode is -1 when the reply's question is not, octet for octet, the one asked.
 *
 * With -w it records everything that comes, from any address and at any time, and each line goes on:
 *   hops first_ttl
 * hops is the hop limit of the reply; first_ttl is the TTL of the answer section's first record. When there is no such
 * record it is "-", and ttl and rdata are of the SOA in the authority section, rdata its serial alone. Then come lines for
 * datagrams that answer no query:
 *   ! at_ns twice|address|unasked hops from
 * twice: a second reply to one query; address: not from the server's address; unasked: no query had this id.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
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
#define TYPE_SOA        6
#define SOA_NUMBERS     20        /* octets at the end of its data: serial, refresh, retry, expire, minimum */
#define BURST           64        /* queries sent at once to catch up: a veth holds 256 */
#define WAIT            (NS / 100)

struct question {
	uint8_t wire[QUERY_ROOM];     /* whole query, id 0 */
	uint16_t len;                 /* of the query */
	uint16_t question_end;        /* offset of the first octet after the question */
};

struct record {
	int64_t sent, latency;        /* ns; latency -1 until answered */
	uint32_t question, ttl, first_ttl;
	uint16_t id, answers;         /* answers: records in the answer section */
	int16_t rcode;
	uint8_t hops;
	uint8_t rdata_len;            /* 0: no record to show */
	uint8_t rdata[RDATA_KEPT];
};

/* A datagram that answers no query. */
struct stray {
	int64_t at;
	const char *why;
	int hops;
	struct sockaddr_storage from;
};

struct datagram {
	uint8_t m[65536];
	unsigned len;
	int hops;
	struct sockaddr_storage from;
};

struct options {
	const char *server, *port, *local, *input, *output;
	double rate, seconds, timeout;
	unsigned under_way;           /* of a closed loop; 0: by rate */
	unsigned most;                /* queries in all; 0: any number */
	bool edns, dnssec_ok, mixed_case, watch;
};

struct state {
	struct options o;
	struct question *questions;
	size_t question_count;
	struct record *records;
	size_t count, room;
	uint32_t by_id[IDS];          /* 1 + number of the record that waits for this id; 0: none */
	size_t oldest;                /* no earlier record is still waiting within its timeout */
	unsigned waiting;             /* queries neither answered nor given up */
	struct stray *strays;
	size_t stray_count;
	struct sockaddr_storage server;
	socklen_t server_len;
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

/* Makes the socket report hop limits. With -w it stays unconnected, so that it receives from any address. */
static void want_hops(const struct state *s)
{
	bool v6 = s->server.ss_family == AF_INET6;
	int yes = 1;

	if (setsockopt(s->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVHOPLIMIT : IP_RECVTTL, &yes, sizeof(yes)))
		die("hop limits", strerror(errno));
}

static void open_socket(struct state *s)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *to, *from;
	int size = 64 << 20, rc;

	rc = getaddrinfo(s->o.server, s->o.port, &hints, &to);
	if (rc)
		die(s->o.server, gai_strerror(rc));
	s->fd = socket(to->ai_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		die("socket", strerror(errno));
	/* room for what comes while this program waits for a processor, a driver may charge a page for each reply; and for what waits in
	 * the link's queue, without which a query would not be sent */
	if (setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (s->o.local) {
		rc = getaddrinfo(s->o.local, "0", &hints, &from);
		if (rc)
			die(s->o.local, gai_strerror(rc));
		if (bind(s->fd, from->ai_addr, from->ai_addrlen))
			die(s->o.local, strerror(errno));
		freeaddrinfo(from);
	}
	memcpy(&s->server, to->ai_addr, to->ai_addrlen);
	s->server_len = to->ai_addrlen;
	if (s->o.watch)
		want_hops(s);
	else if (connect(s->fd, to->ai_addr, to->ai_addrlen))
		die(s->o.server, strerror(errno));
	freeaddrinfo(to);
}

/* Makes every other letter upper case, from the first or the second letter on alternately. */
static void mix_case(uint8_t *query, unsigned end, unsigned turn)
{
	for (unsigned i = HEADER; i < end - 4; i++)
		if (query[i] >= 'a' && query[i] <= 'z' && ((i + turn) & 1))
			query[i] -= 'a' - 'A';
}

/* The query with this number; numbers count from 1. */
static const struct question *write_query(const struct state *s, size_t number, uint8_t query[static QUERY_ROOM])
{
	const struct question *q = &s->questions[(number - 1) % s->question_count];

	memcpy(query, q->wire, q->len);
	put16(query, s->records[number - 1].id);
	if (s->o.mixed_case)
		mix_case(query, q->question_end, number);
	return q;
}

static void send_one(struct state *s)
{
	const struct question *q;
	uint8_t query[QUERY_ROOM];
	struct record *r;

	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 65536;
		s->records = realloc(s->records, s->room * sizeof(*s->records));
		if (!s->records)
			die("records", strerror(errno));
	}
	r = &s->records[s->count++];
	memset(r, 0, sizeof(*r));
	r->question = (s->count - 1) % s->question_count;
	r->id = (s->count - 1) * 40503U; /* odd: walks through all ids */
	r->latency = -1;
	if (!s->by_id[r->id])         /* else the query before gives its id up */
		s->waiting++;
	s->by_id[r->id] = s->count;
	q = write_query(s, s->count, query);
	r->sent = now();
	/* With a closed port or a link that is down the query counts as unanswered. */
	if (s->o.watch)
		(void)!sendto(s->fd, query, q->len, 0, (struct sockaddr *)&s->server, s->server_len);
	else
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

/* Stores TTL and data of a section's last record (of a SOA only the serial) and the first record's TTL. Returns the offset
 * after the section, 0 when it leaves the message. */
static unsigned keep_last(struct record *r, const uint8_t *m, unsigned len, unsigned off, unsigned count, bool soa_alone)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned rdlen, type, from, kept;

		off = skip_name(m, len, off);
		if (!off || off + 10 > len)
			return 0;
		type = get16(m + off);
		rdlen = get16(m + off + 8);
		from = off + 10;
		if (from + rdlen > len)
			return 0;
		kept = rdlen < RDATA_KEPT ? rdlen : RDATA_KEPT;
		if (soa_alone && type == TYPE_SOA && rdlen > SOA_NUMBERS) {
			from += rdlen - SOA_NUMBERS;
			kept = 4;
		}
		if (!soa_alone || type == TYPE_SOA) {
			r->ttl = get16(m + off + 4) << 16 | get16(m + off + 6);
			if (i == 0)
				r->first_ttl = r->ttl;
			r->rdata_len = kept;
			memcpy(r->rdata, m + from, kept);
		}
		off += 10 + rdlen;
	}
	return off;
}

static void keep_reply(const struct state *s, struct record *r, size_t number, const struct datagram *d)
{
	uint8_t query[QUERY_ROOM];
	unsigned end = write_query(s, number, query)->question_end, off;

	r->rcode = d->m[3] & 0x0f;
	r->hops = d->hops;
	if (d->len < end || memcmp(d->m + HEADER, query + HEADER, end - HEADER) != 0) {
		r->rcode = -1;
		return;
	}
	r->answers = get16(d->m + 6);
	off = keep_last(r, d->m, d->len, end, r->answers, false);
	if (s->o.watch && off && r->answers == 0)
		keep_last(r, d->m, d->len, off, get16(d->m + 8), true);
}

static bool from_server(const struct state *s, const struct datagram *d)
{
	const struct sockaddr_in *a4 = (const void *)&s->server, *b4 = (const void *)&d->from;
	const struct sockaddr_in6 *a6 = (const void *)&s->server, *b6 = (const void *)&d->from;

	if (d->from.ss_family != s->server.ss_family)
		return false;
	if (d->from.ss_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_port == b6->sin6_port && memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

static void keep_stray(struct state *s, const struct datagram *d, int64_t at, const char *why)
{
	if (!s->o.watch)
		return;
	s->strays = realloc(s->strays, (s->stray_count + 1) * sizeof(*s->strays));
	if (!s->strays)
		die("strays", strerror(errno));
	s->strays[s->stray_count++] = (struct stray){ .at = at, .why = why, .hops = d->hops, .from = d->from };
}

static bool receive_one(const struct state *s, struct datagram *d)
{
	union { struct cmsghdr aligned; char room[64]; } control;
	struct iovec iov = { d->m, sizeof(d->m) };
	struct msghdr h = { .msg_name = &d->from, .msg_namelen = sizeof(d->from), .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(s->fd, &h, 0);
	while (n < 0 && (errno == ECONNREFUSED || errno == EHOSTUNREACH));
	if (n < 0)
		return false;
	d->len = n;
	d->hops = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
			memcpy(&d->hops, CMSG_DATA(c), sizeof(d->hops));
	return true;
}

static void receive_all(struct state *s)
{
	static struct datagram d;

	while (receive_one(s, &d)) {
		int64_t at = now();
		uint32_t number;
		struct record *r;

		if (d.len < HEADER)
			continue;
		number = s->by_id[get16(d.m)];
		r = number ? &s->records[number - 1] : NULL;
		if (!from_server(s, &d)) {
			keep_stray(s, &d, at, "address");
		} else if (!r) {
			keep_stray(s, &d, at, "unasked");
		} else if (r->latency >= 0) {
			keep_stray(s, &d, at, "twice");
		} else {
			r->latency = at - r->sent;
			s->waiting--;
			keep_reply(s, r, number, &d);
			if (!s->o.watch)
				s->by_id[r->id] = 0;
		}
	}
}

/* Gives up queries that were past their timeout when all replies that had come were read; a later check would blame the
 * server when this program was held up. Returns true while a query still waits. */
static bool expire(struct state *s, int64_t as_of)
{
	int64_t limit = as_of - (int64_t)(s->o.timeout * NS);

	for (; s->oldest < s->count; s->oldest++) {
		struct record *r = &s->records[s->oldest];

		if (r->latency >= 0 || s->by_id[r->id] != s->oldest + 1)
			continue;
		if (r->sent > limit)
			return true;
		if (s->o.watch)
			continue;
		s->by_id[r->id] = 0;
		s->waiting--;
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
		sched_yield(); /* a kernel thread may have to process the packets */
}

static bool goes_on(const struct state *s, int64_t t, int64_t end)
{
	return !ended && t < end && (!s->o.most || s->count < s->o.most);
}

/* What it could not send while it had no processor it leaves out: a crowd that no test asked for would fill sockets. With -n it
 * asks later instead. */
static void ask_by_rate(struct state *s, int64_t begin, int64_t end)
{
	int64_t gap = (int64_t)(NS / s->o.rate), due = begin;

	while (goes_on(s, due, end)) {
		int64_t t = now();

		if (due < t - BURST * gap)
			due = t - BURST * gap;
		for (int n = 0; n < BURST && due <= t && goes_on(s, due, end); n++, due += gap)
			send_one(s);
		receive_all(s);
		expire(s, t);
		wait_for(s, due - now());
	}
}

static void keep_under_way(struct state *s, int64_t end)
{
	for (int64_t t = now(); goes_on(s, t, end); t = now()) {
		while (s->waiting < s->o.under_way && goes_on(s, t, end))
			send_one(s);
		wait_for(s, WAIT);
		t = now();
		receive_all(s);
		expire(s, t);
	}
}

static void ask(struct state *s)
{
	int64_t begin = now(), end = s->o.seconds > 0 ? begin + (int64_t)(s->o.seconds * NS) : INT64_MAX;

	if (s->o.under_way)
		keep_under_way(s, end);
	else
		ask_by_rate(s, begin, end);
	for (bool waits = true; waits;) {
		int64_t t = now();

		receive_all(s);
		waits = expire(s, t);
		if (waits)
			wait_for(s, WAIT);
	}
}

static void write_strays(const struct state *s, FILE *f)
{
	for (size_t i = 0; i < s->stray_count; i++) {
		const struct stray *y = &s->strays[i];
		char from[64];

		if (getnameinfo((const struct sockaddr *)&y->from, sizeof(y->from), from, sizeof(from), NULL, 0, NI_NUMERICHOST))
			strcpy(from, "-");
		fprintf(f, "! %lld %s %d %s\n", (long long)y->at, y->why, y->hops, from);
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
			fprintf(f, "- - -");
		} else if (r->rdata_len == 0) {
			fprintf(f, "%d - -", r->rcode);
		} else {
			fprintf(f, "%d %u ", r->rcode, r->ttl);
			for (unsigned k = 0; k < r->rdata_len; k++)
				fprintf(f, "%02x", r->rdata[k]);
		}
		if (s->o.watch && r->answers)
			fprintf(f, " %u %u", r->hops, r->first_ttl);
		else if (s->o.watch)
			fprintf(f, " %u -", r->hops);
		fputc('\n', f);
	}
	write_strays(s, f);
	if (fclose(f))
		die(s->o.output, strerror(errno));
}

static void usage(FILE *f)
{
	fputs("usage: asker -s ADDRESS -d FILE -o FILE [-p PORT] [-a LOCAL] [-r RATE | -q NUMBER] [-l SECONDS] [-n NUMBER]\n"
	      "             [-t TIMEOUT] [-e] [-D] [-x] [-w]\n"
	      "  -s  server address            -p  port [53]\n"
	      "  -a  local address             -d  questions, one \"name type\" a line, asked in turn\n"
	      "  -o  records, one line a query -r  queries per second [1000]\n"
	      "  -l  seconds [until SIGTERM]   -t  seconds to wait for an answer [2]\n"
	      "  -n  queries in all\n"
	      "  -q  queries under way at once, at most 32768; the next when one is answered or given up; not with -w\n"
	      "  -e  with EDNS                 -D  with DNSSEC OK (implies -e)\n"
	      "  -x  letters in mixed case     -w  watch: record all that comes, with its hop limit\n", f);
}

/* Of 1 to most; 0: the text is no such number. */
static unsigned whole_number(const char *text, unsigned most)
{
	unsigned n = 0;

	if (!*text)
		return 0;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || n > most)
			return 0;
		n = n * 10 + (unsigned)(*text - '0');
	}
	return n <= most ? n : 0;
}

static void parse(int argc, char **argv, struct options *o)
{
	bool closed = false, counted = false;
	int c;

	*o = (struct options){ .port = "53", .rate = 1000, .timeout = 2 };
	while ((c = getopt(argc, argv, "s:p:a:d:o:r:q:l:n:t:eDxwh")) != -1) {
		switch (c) {
		case 's': o->server = optarg; break;
		case 'p': o->port = optarg; break;
		case 'a': o->local = optarg; break;
		case 'd': o->input = optarg; break;
		case 'o': o->output = optarg; break;
		case 'r': o->rate = atof(optarg); break;
		case 'q': closed = true; o->under_way = whole_number(optarg, IDS / 2); break;
		case 'l': o->seconds = atof(optarg); break;
		case 'n': counted = true; o->most = whole_number(optarg, UINT32_MAX / 10 - 1); break;
		case 't': o->timeout = atof(optarg); break;
		case 'D': o->dnssec_ok = true; o->edns = true; break;
		case 'e': o->edns = true; break;
		case 'x': o->mixed_case = true; break;
		case 'w': o->watch = true; break;
		case 'h': usage(stdout); exit(0);
		default: usage(stderr); exit(2);
		}
	}
	if (!o->server || !o->input || !o->output || o->rate <= 0 || o->timeout <= 0 ||
	    (closed && (!o->under_way || o->watch)) || (counted && !o->most) || optind != argc) {
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
