/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/messages.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/loop.h"
#include "hydnsd/resolvers/hold.h"
#include "hydnsd/resolvers/porter.h"
#include "hydnsd/resolvers/requests.h"
#include "hydnsd/resolvers/session_internal.h"

#define MESSAGES_PER_EVENT 16

static void close_fds(struct hydnsd_request *m)
{
	while (m->fds)
		close(m->fd[--m->fds]);
}

static void handle(struct hydnsd_session *s, struct hydnsd_request *m)
{
	bool good = hydnsd_request_handle(s, m);

	close_fds(m);
	explicit_bzero(m->payload, m->head.len); /* it may have had secrets */
	if (!good)
		hydnsd_session_end(s, "it does not read its replies");
}

static bool length_wrong(const struct hydnsd_request *m, ssize_t n)
{
	return n < (ssize_t)sizeof(m->head) || m->head.len != (size_t)n - sizeof(m->head);
}

static void drop_broken(struct hydnsd_session *s)
{
	s->daemon->sessions_dropped++;
	hydnsd_session_end(s, "a message whose length is wrong");
}

/* 1 a message, 0 none now, -1 the end of the connection or a broken message. */
static int receive(struct hydnsd_session *s, struct hydnsd_request *m)
{
	struct iovec part[] = { { &m->head, sizeof(m->head) }, { m->payload, sizeof(m->payload) } };
	struct msghdr h = { .msg_iov = part, .msg_iovlen = 2 };
	ssize_t n = recvmsg(s->fd, &h, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	m->fds = 0;
	m->delivery = NULL;
	if (n == 0)
		return -1;
	if (h.msg_flags & MSG_TRUNC || length_wrong(m, n)) {
		drop_broken(s);
		return -1;
	}
	return 1;
}

static void delivered(void *arg, uint32_t events)
{
	static struct hydnsd_delivery d; /* large; one thread */
	static struct hydnsd_request m;
	struct hydnsd_session *s = arg;
	int fds = hydnsd_porter_receive(s->porter, &d, m.fd);

	(void)events;
	if (fds == -EAGAIN)
		return;
	if (fds < 0) {
		hydnsd_session_end(s, "the process that takes its descriptors has ended");
		return;
	}
	m.fds = (unsigned)fds;
	m.delivery = &d;
	s->asked_ms = 0;
	if (d.len <= sizeof(m.head) + sizeof(m.payload)) {
		memcpy(&m.head, d.message, sizeof(m.head));
		memcpy(m.payload, d.message + sizeof(m.head), sizeof(m.payload));
	}
	if (d.rc == -EPROTO || length_wrong(&m, (ssize_t)d.len)) {
		close_fds(&m);
		drop_broken(s);
		return;
	}
	handle(s, &m);
	hydnsd_hold_update(s);
}

/* The porter receives the next message, for it brings descriptors. */
static bool ask_porter(struct hydnsd_session *s)
{
	if (!s->porter) {
		s->porter = hydnsd_porter_new(s->fd);
		if (s->porter)
			s->porter_watch = hydnsd_loop_watch(s->daemon->loop, hydnsd_porter_fd(s->porter), EPOLLIN,
							    delivered, s);
	}
	s->asked_ms = hydnsd_now_ms();
	return s->porter_watch && hydnsd_porter_ask(s->porter);
}

/* False for messages that cost little. The others walk all rules, fill maps, start a process, or write lines. */
static bool costs_much(const struct hydnsd_session *s, uint32_t type, bool has_fds)
{
	switch (type) {
	case HYDNS_MSG_WITHDRAW:
	case HYDNS_MSG_WITHDRAW_NAMES:
	case HYDNS_MSG_PRELOAD:
	case HYDNS_MSG_ACL:
	case HYDNS_MSG_NOTE:
	case HYDNS_MSG_OPEN:
	case HYDNS_MSG_CLOSE:
		return has_fds;
	case HYDNS_MSG_SERVICE:
		return s->resolver < 0;
	default:
		return true;
	}
}

/* A message that costs much is the last of its round. */
static void read_messages(struct hydnsd_session *s)
{
	static struct hydnsd_request m; /* large; one thread */
	bool last = false;

	for (int n = 0; n < MESSAGES_PER_EVENT && !last && !s->dead && !hydnsd_hold_now(s); n++) {
		bool has_fds;
		uint32_t type;
		int got;

		if (hydnsd_connection_peek(s->fd, &type, &has_fds)) {
			last = costs_much(s, type, has_fds);
			if (last && hydnsd_hold_rests(s))
				return;
		} else {
			has_fds = false;
		}
		if (has_fds) {
			if (!ask_porter(s))
				hydnsd_session_end(s, "cannot start a process that takes its descriptors: try again");
			return;
		}
		got = receive(s, &m);
		if (got == 0)
			return;
		if (got < 0) {
			hydnsd_session_end(s, NULL);
			return;
		}
		handle(s, &m);
	}
}

void hydnsd_messages_readable(void *arg, uint32_t events)
{
	struct hydnsd_session *s = arg;

	if (hydnsd_hold_now(s) && events & (EPOLLHUP | EPOLLERR)) {
		hydnsd_session_end(s, NULL);
		return;
	}
	read_messages(s);
	hydnsd_hold_update(s);
}
