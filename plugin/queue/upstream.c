/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/queue/upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNANSWERED_MOST  16            /* queries in a row without an answer, in a silence of ... */
#define SILENCE_MS       1000U         /* ... this long at least; then sockets for a while */
#define STRAYS_MOST      8             /* answers in a second that came by the sockets; then the same */
#define SUSPEND_MIN_MS   1000U
#define SUSPEND_MAX_MS   64000U
#define PROBES_MOST      4             /* queries that try, one after the other; then a longer suspension */
#define PROBE_MS         1000U         /* how long each is waited for: servers may be dead */
#define STRAYS_AT_ONCE   (HYDNS_UPSTREAM_STRAYS / 2)
#define SEARCHES_MOST    4             /* for the queries of errors, in one tick of the caller's clock */
#define STRAYS_EACH      64            /* turns with frames after which the sockets are read, too */

struct hydns_upstream_thread {
	struct hydns_upstream *all;
	uint32_t index;
	struct hydns_lane_thread *lanes;
	struct hydns_port_thread *ports;
	unsigned unanswered;           /* queries that have ended without an answer since the last answer */
	uint64_t silent_since_ms;      /* when the first query after the last answer was sent; 0: none has been */
	unsigned strays;               /* since strays_since_ms */
	uint64_t strays_since_ms;
	uint64_t suspended_until_ms;   /* 0: not suspended; then probes try whether answers come again */
	uint16_t probe[PROBES_MOST];   /* their ports; 0: it has ended without an answer */
	unsigned probes;               /* sent since suspended_until_ms */
	uint64_t probe_sent_ms;        /* the last one */
	uint32_t suspend_ms;           /* how long the last time; 0: an answer has come since */
	unsigned turns;                /* since the sockets were read */
	unsigned searches;             /* since searched_ms */
	uint64_t searched_ms;
	_Atomic int stray[2];          /* sockets: IPv4's, IPv6's; -1: none */
} __attribute__((aligned(64)));

struct hydns_upstream {
	uint32_t threads;
	struct hydns_ports *ports;
	struct hydns_ways *ways;
	struct hydns_upstream_thread *thread;
};

struct hydns_upstream *hydns_upstream_new(struct hydns_lanes *lanes, struct hydns_ways *ways, uint32_t threads)
{
	struct hydns_upstream *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->ways = ways;
	u->ports = hydns_ports_new(threads);
	u->thread = aligned_alloc(_Alignof(struct hydns_upstream_thread), threads * sizeof(*u->thread));
	if (!u->ports || !u->thread) {
		hydns_upstream_free(u);
		return NULL;
	}
	for (u->threads = 0; u->threads < threads; u->threads++)
		u->thread[u->threads] = (struct hydns_upstream_thread){
			.all = u, .index = u->threads, .lanes = hydns_lanes_thread(lanes, u->threads),
			.ports = hydns_ports_thread(u->ports, u->threads), .stray = { -1, -1 },
		};
	return u;
}

void hydns_upstream_free(struct hydns_upstream *u)
{
	if (!u)
		return;
	for (uint32_t i = 0; i < u->threads; i++)
		for (int family = 0; family < 2; family++)
			if (u->thread[i].stray[family] >= 0)
				close(u->thread[i].stray[family]);
	hydns_ports_free(u->ports);
	free(u->thread);
	free(u);
}

struct hydns_upstream_thread *hydns_upstream_thread(struct hydns_upstream *u, uint32_t i)
{
	return i < u->threads ? &u->thread[i] : NULL;
}

struct hydns_ports *hydns_upstream_ports(struct hydns_upstream *u)
{
	return u->ports;
}

/* Onto the same number, if there is one already: a resolver thread may be reading it at this moment. */
static int use_stray(struct hydns_upstream_thread *t, int family, int fd)
{
	int error = 0;

	if (t->stray[family] >= 0) {
		if (dup3(fd, t->stray[family], O_CLOEXEC) < 0)
			error = -errno;
		close(fd);
		fd = t->stray[family];
	}
	t->stray[family] = fd;
	return error ? error : hydns_lanes_watch(t->lanes, fd);
}

int hydns_upstream_use_strays(struct hydns_upstream *u, const int *fd)
{
	int error = 0;

	for (uint32_t i = 0; i < u->threads; i++)
		for (int family = 0; family < 2; family++) {
			int e = use_stray(&u->thread[i], family, fd[2 * i + (uint32_t)family]);

			error = error ? error : e;
		}
	return error;
}

/* --- suspension ------------------------------------------------------------------------------------------ */
static void suspend(struct hydns_upstream_thread *t, uint64_t now_ms)
{
	t->suspend_ms = t->suspend_ms == 0 ? SUSPEND_MIN_MS : t->suspend_ms < SUSPEND_MAX_MS ? t->suspend_ms * 2 : SUSPEND_MAX_MS;
	t->suspended_until_ms = now_ms + t->suspend_ms;
	t->unanswered = 0;
	t->probes = 0;
}

static void end_suspension(struct hydns_upstream_thread *t)
{
	t->suspended_until_ms = 0;
	t->suspend_ms = 0;
	t->probes = 0;
}

/* The port's place among the probes' of now; NULL: it is no probe's. */
static uint16_t *find_probe(struct hydns_upstream_thread *t, uint16_t port)
{
	for (unsigned i = 0; i < t->probes; i++)
		if (t->probe[i] == port)
			return &t->probe[i];
	return NULL;
}

static bool probe_is_due(const struct hydns_upstream_thread *t, uint64_t now_ms)
{
	return t->probes == 0 || t->probe[t->probes - 1] == 0 || now_ms - t->probe_sent_ms >= PROBE_MS;
}

/* Otherwise the next query is sent, as a probe if there is a suspension. */
static bool suspended(struct hydns_upstream_thread *t, uint64_t now_ms)
{
	if (t->suspended_until_ms == 0)
		return false;
	if (now_ms < t->suspended_until_ms || !probe_is_due(t, now_ms))
		return true;
	if (t->probes < PROBES_MOST)
		return false;
	suspend(t, now_ms);
	return true;
}

static void note_sent(struct hydns_upstream_thread *t, uint16_t port, uint64_t now_ms)
{
	if (t->silent_since_ms == 0)
		t->silent_since_ms = now_ms;
	if (t->suspended_until_ms) {
		t->probe[t->probes++] = port;
		t->probe_sent_ms = now_ms;
	}
}

/* An answer has come by a ring. */
static void note_answer(struct hydns_upstream_thread *t, uint16_t port)
{
	t->unanswered = 0;
	t->silent_since_ms = 0;
	if (find_probe(t, port))
		end_suspension(t);
}

/* No query has been answered for so long that a server or a busy processor does not explain it. */
static bool silent(const struct hydns_upstream_thread *t, uint64_t now_ms)
{
	return t->unanswered >= UNANSWERED_MOST && t->silent_since_ms && now_ms - t->silent_since_ms >= SILENCE_MS;
}

/* A query has ended without an answer by a ring. What left before a suspension says nothing about the time after it. */
static void note_unanswered(struct hydns_upstream_thread *t, uint16_t port, uint64_t now_ms)
{
	uint16_t *probe = find_probe(t, port);

	if (t->suspended_until_ms == 0) {
		t->unanswered++;
		if (silent(t, now_ms))
			suspend(t, now_ms);
	} else if (probe) {
		*probe = 0;
		if (t->probes == PROBES_MOST && probe == &t->probe[PROBES_MOST - 1])
			suspend(t, now_ms);
	}
}

/* --- queries ---------------------------------------------------------------------------------------------- */
static bool detour(struct hydns_upstream_thread *t, enum hydns_detour why)
{
	hydns_lanes_counts(t->lanes)->detour[why]++;
	return false;
}

bool hydns_upstream_find(struct hydns_upstream_thread *t, const struct hydns_route_question *to, uint64_t now_ms,
			 struct hydns_way *way)
{
	struct hydns_way_out out;
	enum hydns_way_result found;

	if (!hydns_ports_any(t->ports))
		return detour(t, HYDNS_DETOUR_NO_RANGE);
	if (suspended(t, now_ms))
		return detour(t, HYDNS_DETOUR_SUSPENDED);
	found = hydns_way_find(t->all->ways, t->index, to, now_ms, &out);
	if (found != HYDNS_WAY_FOUND)
		return detour(t, hydns_way_detour(found));
	if (!hydns_lanes_sender(t->lanes, out.ifindex, way))
		return detour(t, HYDNS_DETOUR_OTHER_DEVICE);
	way->path = out.path;
	return true;
}

static bool may_send(struct hydns_upstream_thread *t, const struct hydns_upstream_query *q, uint64_t now_ms)
{
	if (q->len > HYDNS_UPSTREAM_QUERY_MAX)
		return detour(t, HYDNS_DETOUR_TOO_LONG);
	return !suspended(t, now_ms) || detour(t, HYDNS_DETOUR_SUSPENDED);
}

uint16_t hydns_upstream_send_by(struct hydns_upstream_thread *t, const struct hydns_way *found,
				const struct hydns_upstream_query *q, uint64_t now_ms)
{
	struct hydns_way way = *found;

	if (!may_send(t, q, now_ms))
		return 0;
	/* The word first: the answer may come before this thread goes on. */
	way.path.local_port = hydns_port_claim(t->ports, &way.path, way.device, q->owner, q->random, q->random_arg);
	if (way.path.local_port == 0) {
		detour(t, HYDNS_DETOUR_NO_PORT);
		return 0;
	}
	if (q->len >= 2)
		hydns_port_set_id(t->ports, way.path.local_port, q->payload);
	if (!hydns_lanes_send(t->lanes, &way, q->dscp, q->payload, q->len)) {
		hydns_port_release(t->ports, way.path.local_port);
		return 0;
	}
	note_sent(t, way.path.local_port, now_ms);
	hydns_lanes_counts(t->lanes)->upstream++;
	return way.path.local_port;
}

uint16_t hydns_upstream_send(struct hydns_upstream_thread *t, const struct hydns_upstream_query *q, uint64_t now_ms)
{
	struct hydns_way way;

	return hydns_upstream_find(t, &q->to, now_ms, &way) ? hydns_upstream_send_by(t, &way, q, now_ms) : 0;
}

bool hydns_upstream_is(const struct hydns_upstream_thread *t, uint16_t port, const void *owner)
{
	return hydns_port_is(t->ports, port, owner);
}

void hydns_upstream_end(struct hydns_upstream_thread *t, uint16_t port, uint64_t now_ms)
{
	hydns_port_release(t->ports, port);
	if (!hydns_port_is_answered(t->ports, port))
		note_unanswered(t, port, now_ms);
}

void hydns_upstream_end_all(struct hydns_upstream_thread *t)
{
	hydns_port_release_all(t->ports);
	t->probes = 0;
}

/* --- answers ---------------------------------------------------------------------------------------------- */
void *hydns_upstream_owner(struct hydns_upstream_thread *t, const struct hydns_datagram *d, const struct hydns_way *way)
{
	void *owner = hydns_port_owner(t->ports, &d->path, way->device);

	if (owner && way->device != HYDNS_ANY_DEVICE) {
		hydns_lanes_counts(t->lanes)->answers++;
		hydns_port_set_answered(t->ports, d->path.local_port);
		note_answer(t, d->path.local_port);
	}
	return owner;
}

/* A probe's says at once that its ring is still without answers. */
static void note_stray(struct hydns_upstream_thread *t, uint16_t port, uint64_t now_ms)
{
	if (now_ms - t->strays_since_ms >= 1000) {
		t->strays_since_ms = now_ms;
		t->strays = 0;
	}
	if ((++t->strays == STRAYS_MOST && t->suspended_until_ms == 0) || find_probe(t, port))
		suspend(t, now_ms);
}

static bool read_v4(struct hydns_path *p, const struct sockaddr_in *from, const struct sockaddr_in *to)
{
	memcpy(p->remote, &from->sin_addr, 4);
	memcpy(p->local, &to->sin_addr, 4);
	p->remote_port = ntohs(from->sin_port);
	p->local_port = ntohs(to->sin_port);
	return true;
}

static bool read_v6(struct hydns_path *p, const struct sockaddr_in6 *from, const struct sockaddr_in6 *to)
{
	p->ipv6 = true;
	memcpy(p->remote, &from->sin6_addr, 16);
	memcpy(p->local, &to->sin6_addr, 16);
	p->remote_port = ntohs(from->sin6_port);
	p->local_port = ntohs(to->sin6_port);
	return true;
}

union control {
	struct cmsghdr align;
	char space[256];
};

/* Where a datagram has come from and where it was sent to, whatever the socket is bound to. */
static bool read_path(struct msghdr *m, struct hydns_path *p)
{
	*p = (struct hydns_path){ 0 };
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)
			return read_v4(p, m->msg_name, (const void *)CMSG_DATA(c));
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR)
			return read_v6(p, m->msg_name, (const void *)CMSG_DATA(c));
	}
	return false;
}

/* The errno of an error message; 0: none that ends a query. A path that carries less ends none, since the kernel's answer to
 * that is fragments. */
static int error_of(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		const struct sock_extended_err *e = (const void *)CMSG_DATA(c);

		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			return e->ee_errno == EMSGSIZE ? 0 : (int)e->ee_errno;
	}
	return 0;
}

static bool may_search(struct hydns_upstream_thread *t, uint64_t now_ms)
{
	if (t->searched_ms != now_ms) {
		t->searched_ms = now_ms;
		t->searches = 0;
	}
	return t->searches++ < SEARCHES_MOST;
}

/* An ICMP error, which quotes the query. The kernel does not say from which port that left, so a forger has to guess the
 * port, for the error to get here, and the id. */
static void take_error(struct hydns_upstream_thread *t, struct msghdr *m, const uint8_t id[2], uint64_t now_ms,
		       hydns_upstream_fail *fail, void *arg)
{
	static const struct sockaddr_in6 none;
	const struct sockaddr_storage *to = m->msg_name;
	struct hydns_path path = { 0 };
	const int error = error_of(m);

	if (to->ss_family == AF_INET6)
		read_v6(&path, m->msg_name, &none);
	else
		read_v4(&path, m->msg_name, (const void *)&none);
	if (error && may_search(t, now_ms) && hydns_port_find(t->ports, &path, id))
		fail(arg, &path, error);
}

/* ICMP errors wake the reader until they are read. As long as there are some, recvmsg() fails with the first one's errno. */
static void read_errors(struct hydns_upstream_thread *t, int fd, unsigned most, uint64_t now_ms, hydns_upstream_fail *fail,
			void *arg)
{
	union control control;
	struct sockaddr_storage to = { 0 };     /* not every error names where the query went */
	uint8_t id[2];
	struct iovec part = { .iov_base = id, .iov_len = sizeof(id) };

	for (unsigned i = 0; i < most; i++) {
		struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &part, .msg_iovlen = 1,
				    .msg_control = &control, .msg_controllen = sizeof(control) };
		const ssize_t n = recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);

		if (n < 0)
			return;
		if (fail && n == (ssize_t)sizeof(id))
			take_error(t, &m, id, now_ms, fail, arg);
	}
}

static void read_socket(struct hydns_upstream_thread *t, int fd, uint64_t now_ms, hydns_upstream_take *take,
			hydns_upstream_fail *fail, void *arg)
{
	union control control;
	struct sockaddr_storage from;
	uint8_t payload[65536];
	struct iovec part = { .iov_base = payload, .iov_len = sizeof(payload) };

	for (unsigned i = 0; i < STRAYS_AT_ONCE; i++) {
		struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1,
				    .msg_control = &control, .msg_controllen = sizeof(control) };
		struct hydns_datagram d = { .payload = payload };
		ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
		void *owner;

		if (n < 0) {
			if (errno != EAGAIN)
				read_errors(t, fd, STRAYS_AT_ONCE - i, now_ms, fail, arg);
			return;
		}
		d.len = (uint16_t)n;
		if (!read_path(&m, &d.path))
			continue;
		owner = hydns_port_owner(t->ports, &d.path, HYDNS_ANY_DEVICE);
		if (!owner)
			continue;
		hydns_lanes_counts(t->lanes)->strays++;
		note_stray(t, d.path.local_port, now_ms);
		take(arg, owner, &d);
	}
}

void hydns_upstream_read_strays(struct hydns_upstream_thread *t, unsigned frames, uint64_t now_ms, hydns_upstream_take *take,
				hydns_upstream_fail *fail, void *arg)
{
	if (frames && ++t->turns < STRAYS_EACH)
		return;
	t->turns = 0;
	for (int family = 0; family < 2; family++) {
		const int fd = t->stray[family];

		if (fd >= 0)
			read_socket(t, fd, now_ms, take, fail, arg);
	}
}
