// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sends every query to several places, many queries at a time, and reports those whose replies are not the same octets.
 * Places are connected UDP sockets that the parent made in their network namespaces: "direct" reaches the resolver past the
 * kernel path, "kernel" through it, and "reference" reaches a resolver without a kernel path.
 *
 *   twins [-w WINDOW] [-r HOPS] DIRECT:KERNEL:REFERENCE...   file descriptors; each such triple is a group
 *
 * A query goes to direct; after its reply or timeout to kernel and reference; and if kernel's reply differs from direct's, to
 * direct again: what the resolver would have sent at the time of the kernel's reply is one of its two replies. A query marked
 * TOGETHER goes to all three at once, before the resolver can know the answer, and to direct again if they differ; these may
 * wait long, and do not count for the window. All places get the same id, by which replies find their query. A reply at the
 * kernel place whose hop limit is not HOPS, the resolver's, is the kernel's own; the parent enabled IP_RECVTTL and
 * IPV6_RECVHOPLIMIT on the sockets.
 *
 * stdin: struct twins_query and its octets; stdout: struct twins_report and its octets (twins.h). It reports queries whose
 * replies differ and those marked FULL, and only counts all others, in reports without a query. Ends when stdin has ended and
 * all queries are finished.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MSG_TRUNC as a flag of recv() */
#endif
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "common.h"
#include "twins.h"

#define HEADER          12
#define QUERY_ROOM      2048
#define REPLY_ROOM      8192      /* twice what any server here sends over UDP */
#define GROUPS_MAX      64
#define WINDOW_MAX      4096
#define TOGETHER_MAX    3072      /* queries marked TOGETHER under way */
#define FLOWS           (WINDOW_MAX + TOGETHER_MAX)
#define IDS             65536U
#define ID_STEP         40503U    /* odd: walks through all ids */
#define TYPE_OPT        41
#define MS              1000000LL
#define TICK_MS         10        /* interval of checks for timeouts */
#define PATIENCE        2         /* factor of the timeout when another place has answered */

enum socket_of { TO_DIRECT, TO_KERNEL, TO_REFERENCE, SOCKETS };
static const enum socket_of socket_of_place[PLACES] = { TO_DIRECT, TO_KERNEL, TO_DIRECT, TO_REFERENCE };

struct ask {
	int64_t sent, got;
	uint16_t len;
	bool waiting;
	int hops;                     /* hop limit of the reply, 0: unknown */
	uint8_t reply[REPLY_ROOM];
};

struct flow {
	bool busy;
	struct twins_query q;
	uint8_t wire[2][QUERY_ROOM];
	struct ask ask[PLACES];
};

static struct flow flows[FLOWS];
static struct flow *by_id[IDS];
static int fds[GROUPS_MAX * SOCKETS];
static unsigned groups, window = 256, busy, waiting_together;   /* busy: without those marked TOGETHER */
static uint32_t finished, in_kernel;
static int resolver_hops;
static uint8_t input[1 << 16];
static size_t input_len;
static bool input_ended;

static uint16_t id_of(const struct flow *f)
{
	return f->q.number * ID_STEP;
}

/* --- comparison of replies ------------------------------------------------------------------------ */

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

/* Copies the reply with id and TTLs zeroed. False when it cannot be parsed to its end. */
static bool without_ttls(uint8_t *out, const struct ask *a)
{
	unsigned off = HEADER, records;

	if (a->len < HEADER)
		return false;
	memcpy(out, a->reply, a->len);
	memset(out, 0, 2);
	for (unsigned n = get16(out + 4); n; n--) {
		off = skip_name(out, a->len, off);
		if (!off)
			return false;
		off += 4;
	}
	records = get16(out + 6) + get16(out + 8) + get16(out + 10);
	for (; records; records--) {
		off = skip_name(out, a->len, off);
		if (!off || off + 10 > a->len)
			return false;
		if (get16(out + off) != TYPE_OPT)
			memset(out + off + 4, 0, 4);
		off += 10 + get16(out + off + 8);
	}
	return off <= a->len;
}

static bool same_octets(const struct ask *a, const struct ask *b)
{
	if (!a->got || !b->got)
		return !a->got && !b->got;
	return a->len == b->len && a->len >= 2 && memcmp(a->reply + 2, b->reply + 2, a->len - 2) == 0;
}

static bool same_but_ttls(const struct ask *a, const struct ask *b)
{
	static uint8_t x[REPLY_ROOM], y[REPLY_ROOM];

	if (same_octets(a, b))
		return true;
	return a->got && b->got && a->len == b->len && without_ttls(x, a) && without_ttls(y, b) &&
	       memcmp(x, y, a->len) == 0;
}

/* --- reports --------------------------------------------------------------------------------------- */

static void put(const void *data, size_t len)
{
	if (len && fwrite(data, len, 1, stdout) != 1)
		die("standard output", strerror(errno));
}

static void report_count(void)
{
	struct twins_report r = { .finished = finished, .in_kernel = in_kernel };

	if (finished) {
		put(&r, sizeof(r));
		finished = in_kernel = 0;
	}
	if (fflush(stdout))
		die("standard output", strerror(errno));
}

static bool by_kernel(const struct flow *f)
{
	const struct ask *a = &f->ask[KERNEL];

	return a->got && a->hops && resolver_hops && a->hops != resolver_hops;
}

static void report(const struct flow *f, uint8_t differs)
{
	struct twins_report r = { .number = f->q.number, .finished = finished, .in_kernel = in_kernel,
				  .group = f->q.group, .differs = differs, .by_kernel = by_kernel(f),
				  .len = { f->q.len[0], f->q.len[1] } };

	finished = in_kernel = 0;
	for (unsigned p = 0; p < PLACES; p++) {
		r.sent[p] = f->ask[p].sent;
		r.got[p] = f->ask[p].got;
		r.reply_len[p] = f->ask[p].got ? f->ask[p].len : SILENCE;
	}
	put(&r, sizeof(r));
	put(f->wire[0], f->q.len[0]);
	put(f->wire[1], f->q.len[1]);
	for (unsigned p = 0; p < PLACES; p++)
		if (f->ask[p].got)
			put(f->ask[p].reply, f->ask[p].len);
}

/* --- the steps of a query --------------------------------------------------------------------------- */

static void ask(struct flow *f, enum place p)
{
	bool other = socket_of_place[p] != TO_KERNEL && f->q.len[1];
	const uint8_t *wire = f->wire[other];
	int fd = fds[f->q.group * SOCKETS + socket_of_place[p]];
	struct ask *a = &f->ask[p];

	a->waiting = true;
	a->sent = now();
	/* The first try may fail by an ICMP error for an earlier query; a query that cannot be sent counts as unanswered. */
	if (send(fd, wire, f->q.len[other], 0) < 0)
		(void)!send(fd, wire, f->q.len[other], 0);
}

/* How many queries of its kind are under way. */
static unsigned *under_way(const struct twins_query *q)
{
	return q->flags & TOGETHER ? &waiting_together : &busy;
}

static void finish(struct flow *f)
{
	uint8_t differs = 0;

	if (!same_octets(&f->ask[KERNEL], &f->ask[DIRECT]))
		differs |= DIFFERS_KERNEL;
	if (!(f->q.flags & ALONE) && !same_but_ttls(&f->ask[REFERENCE], &f->ask[DIRECT]))
		differs |= DIFFERS_REFERENCE;
	finished++;
	in_kernel += by_kernel(f);
	if (differs || (f->q.flags & FULL) || ((f->q.flags & TOGETHER) && !f->ask[KERNEL].got))
		report(f, differs);
	by_id[id_of(f)] = NULL;
	f->busy = false;
	--*under_way(&f->q);
}

/* Takes the flow's next step, after one place has answered or timed out. */
static void step(struct flow *f)
{
	if (!f->ask[KERNEL].sent) {
		if (f->ask[DIRECT].waiting && !(f->q.flags & TOGETHER))
			return;
		ask(f, KERNEL);
		if (!(f->q.flags & ALONE))
			ask(f, REFERENCE);
		return;
	}
	if (!f->ask[KERNEL].waiting && !f->ask[DIRECT].waiting && !f->ask[AGAIN].sent &&
	    !same_octets(&f->ask[KERNEL], &f->ask[DIRECT]))
		ask(f, AGAIN);
	for (unsigned p = 0; p < PLACES; p++)
		if (f->ask[p].waiting)
			return;
	finish(f);
}

/* A flow for the query, or NULL while as many of its kind are under way as may be. */
static struct flow *free_flow(const struct twins_query *q)
{
	static unsigned next;

	if (*under_way(q) >= (q->flags & TOGETHER ? TOGETHER_MAX : window))
		return NULL;
	for (unsigned i = 0; i < FLOWS; i++) {
		struct flow *f = &flows[(next + i) % FLOWS];

		if (!f->busy) {
			next = (next + i + 1) % FLOWS;
			return f;
		}
	}
	return NULL;
}

static void begin(struct flow *f, const struct twins_query *q, const uint8_t *wires)
{
	f->busy = true;
	++*under_way(q);
	f->q = *q;
	for (unsigned p = 0; p < PLACES; p++) {
		f->ask[p].sent = f->ask[p].got = 0;
		f->ask[p].waiting = false;
	}
	by_id[id_of(f)] = f;
	memcpy(f->wire[0], wires, q->len[0]);
	memcpy(f->wire[1], wires + q->len[0], q->len[1]);
	for (unsigned i = 0; i < 2; i++) {
		if (q->len[i] >= 2) {
			f->wire[i][0] = id_of(f) >> 8;
			f->wire[i][1] = id_of(f);
		}
	}
	ask(f, DIRECT);
	if (q->flags & TOGETHER)
		step(f);
}

/* Begins queries that were read, as many as the window holds; true when more octets are needed. */
static bool begin_all(void)
{
	size_t used = 0;
	bool wanted = true;

	while (input_len - used >= sizeof(struct twins_query)) {
		struct twins_query q;
		struct flow *f;
		size_t size;

		memcpy(&q, input + used, sizeof(q));
		if (q.group >= groups || q.len[0] == 0 || q.len[0] > QUERY_ROOM || q.len[1] > QUERY_ROOM)
			die("standard input", "not a query for one of the groups");
		size = sizeof(q) + q.len[0] + q.len[1];
		if (input_len - used < size)
			break;
		f = free_flow(&q);
		if (!f || by_id[(uint16_t)(q.number * ID_STEP)]) {
			wanted = false;
			break;
		}
		begin(f, &q, input + used + sizeof(q));
		used += size;
	}
	memmove(input, input + used, input_len - used);
	input_len -= used;
	return wanted && !input_ended;
}

static void read_input(void)
{
	ssize_t n = read(STDIN_FILENO, input + input_len, sizeof(input) - input_len);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die("standard input", strerror(errno));
	if (n == 0)
		input_ended = true;
	if (n > 0)
		input_len += n;
}

/* --- sockets ----------------------------------------------------------------------------------------- */

static struct ask *waiting_ask(struct flow *f, unsigned socket)
{
	for (unsigned p = 0; p < PLACES; p++)
		if (f->ask[p].waiting && fds[f->q.group * SOCKETS + socket_of_place[p]] == fds[socket])
			return &f->ask[p];
	return NULL;
}

/* As recv(); also returns the packet's hop limit, 0 when the socket does not report it. */
static ssize_t receive(int fd, uint8_t *m, size_t size, int *hops)
{
	uint8_t control[CMSG_SPACE(sizeof(int))];
	struct iovec io = { .iov_base = m, .iov_len = size };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &h, MSG_TRUNC);

	*hops = 0;
	for (struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&h) : NULL; c; c = CMSG_NXTHDR(&h, c))
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
			memcpy(hops, CMSG_DATA(c), sizeof(*hops));
	return n;
}

static void receive_all(unsigned socket)
{
	uint8_t m[REPLY_ROOM];
	ssize_t n;
	int hops;

	/* errors: no process listens on the port at the moment */
	while ((n = receive(fds[socket], m, sizeof(m), &hops)) >= 0 || (errno != EAGAIN && errno != EINTR)) {
		struct flow *f;
		struct ask *a;

		if (n > REPLY_ROOM)
			die("a reply", "longer than any server here may send");
		f = n >= 2 ? by_id[get16(m)] : NULL;
		a = f ? waiting_ask(f, socket) : NULL;
		if (!a)
			continue; /* a late or a second reply */
		a->waiting = false;
		a->got = now();
		a->len = n;
		a->hops = hops;
		memcpy(a->reply, m, n);
		step(f);
	}
}

static void expire(struct flow *f, int64_t at)
{
	bool answered = f->ask[DIRECT].got || f->ask[KERNEL].got || f->ask[REFERENCE].got;
	int64_t patience = f->q.timeout_ms * MS * (answered ? PATIENCE : 1);
	bool over = false;

	for (unsigned p = 0; p < PLACES; p++) {
		if (f->ask[p].waiting && at - f->ask[p].sent > patience) {
			f->ask[p].waiting = false;
			over = true;
		}
	}
	if (over)
		step(f);
}

/* Ends queries whose timeout was before at. All replies that had come by at must have been read since: otherwise a query
 * would time out when this program was held up. */
static void expire_all(int64_t at)
{
	static int64_t last;

	if (at - last < TICK_MS * MS)
		return;
	last = at;
	for (unsigned i = 0; i < FLOWS; i++)
		if (flows[i].busy)
			expire(&flows[i], at);
	report_count();
}

static void serve(void)
{
	struct pollfd p[GROUPS_MAX * SOCKETS + 1];
	unsigned n = groups * SOCKETS;

	for (unsigned i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	while (!input_ended || busy || waiting_together || input_len) {
		int64_t at = now();

		p[n] = (struct pollfd){ .fd = begin_all() ? STDIN_FILENO : -1, .events = POLLIN };
		if (input_ended && !busy && !waiting_together && input_len)
			die("standard input", "ends within a query");
		if (poll(p, n + 1, TICK_MS) < 0 && errno != EINTR)
			die("poll", strerror(errno));
		for (unsigned i = 0; i < n; i++)
			if (p[i].revents)
				receive_all(i);
		if (p[n].revents)
			read_input();
		expire_all(at);
	}
	report_count();
}

static void usage(FILE *f)
{
	fputs("usage: twins [-w WINDOW] [-r HOPS] DIRECT:KERNEL:REFERENCE...   file descriptors of connected UDP sockets\n", f);
}

static void add_group(const char *text)
{
	int *fd = &fds[groups * SOCKETS];

	if (groups == GROUPS_MAX || sscanf(text, "%d:%d:%d", &fd[0], &fd[1], &fd[2]) != SOCKETS)
		die(text, "not three file descriptors, or too many groups");
	for (unsigned i = 0; i < SOCKETS; i++)
		if (fcntl(fd[i], F_SETFL, O_NONBLOCK))
			die(text, strerror(errno));
	groups++;
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "w:r:h")) != -1) {
		switch (c) {
		case 'w':
			window = strtoul(optarg, NULL, 10);
			if (window < 1 || window > WINDOW_MAX)
				die(optarg, "no window from 1 to 4096");
			break;
		case 'r': resolver_hops = atoi(optarg); break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	}
	for (; optind < argc; optind++)
		add_group(argv[optind]);
	if (!groups) {
		usage(stderr);
		return 2;
	}
	if (fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK))
		die("standard input", strerror(errno));
	serve();
	return 0;
}
