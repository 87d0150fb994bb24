/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* One request, one reply; waiting; and leaving, which may begin during a wait. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include "plugin/link/thread.h"

bool hydns_link_await(struct hydns_link *l, short events, bool wake, uint64_t deadline_ns)
{
	struct pollfd f[] = { { .fd = l->sock, .events = events },
			      { .fd = wake ? l->p->requests.wake : -1, .events = POLLIN },
			      { .fd = l->leaving ? -1 : l->p->leave.wake, .events = POLLIN },
			      { .fd = hydns_link_uses_ways(l) ? hydns_ways_fd(l->p->ways) : -1, .events = POLLIN } };
	uint64_t now, until;
	bool come;

	for (;;) {
		until = hydns_link_beat(l, wake);
		until = until < deadline_ns ? until : deadline_ns;
		now = hydns_mono_ns();
		come = poll(f, sizeof(f) / sizeof(f[0]),
			    until <= now ? 0 : (int)((until - now) / HYDNS_NS_PER_MS) + 1) > 0;
		if (f[3].revents) {
			hydns_ways_follow(l->p->ways);
			come = f[0].revents || f[1].revents || f[2].revents;
		}
		if (atomic_load(&l->p->stopping) && !l->leaving)
			return false;
		if (come)
			return true;
		if (hydns_mono_ns() >= deadline_ns)
			return false;
	}
}

/* Before BYE, because hydnsd may be slow to acknowledge that. */
void hydns_link_leave(struct hydns_link *l)
{
	l->leaving = true;
	hydns_requests_accept(&l->p->requests, false);
	hydns_leave_go(l->p);
}

static int send_message(struct hydns_link *l, const struct hydns_msg *head, const void *payload, const int *fd,
			unsigned fds, uint64_t deadline)
{
	int error;

	while ((error = hydns_channel_send(l->sock, head, payload, fd, fds)) == -EAGAIN)
		if (!hydns_link_await(l, POLLOUT, false, deadline))
			return -ETIMEDOUT;
	return error;
}

/* What comes unasked: what a hydnsd that ends has counted, or, from the next one before its WELCOME, what the program has
 * counted meanwhile; and a new plan of lanes. */
static bool take_unasked(struct hydns_link *l)
{
	const struct hydns_msg *head = &l->in.head;

	if (head->seq != 0)
		return false;
	if (head->type == HYDNS_MSG_COUNTS && head->len == sizeof(struct hydns_counts))
		hydns_requests_take_counts(&l->p->requests, (const struct hydns_counts *)l->in.payload);
	else if (head->type == HYDNS_MSG_PLAN && head->len == sizeof(struct hydns_queue_plan))
		hydns_link_take_plan(l, (const struct hydns_queue_plan *)l->in.payload);
	else
		return false;
	hydns_channel_close_fds(&l->in);
	return true;
}

int hydns_link_read_unasked(struct hydns_link *l)
{
	int error = hydns_channel_receive(l->sock, &l->in);

	if (error)
		return error == -EAGAIN ? 0 : error;
	if (take_unasked(l))
		return 0;
	hydns_channel_close_fds(&l->in);
	return -EPROTO;
}

/* No reply has come in time. 0: the thread is to end, and waits a little longer, so that the connection ends with BYE. */
static int late(struct hydns_link *l, uint64_t *deadline)
{
	if (l->leaving || !atomic_load(&l->p->stopping))
		return -ETIMEDOUT;
	hydns_link_leave(l);
	*deadline = hydns_mono_ns() + HYDNS_BYE_TIMEOUT_MS * HYDNS_NS_PER_MS;
	return 0;
}

/* The caller takes them. */
static bool brings_descriptors(uint32_t reply)
{
	return reply == HYDNS_MSG_WELCOME || reply == HYDNS_MSG_PLAN || reply == HYDNS_MSG_SOCKETS ||
	       reply == HYDNS_MSG_STRAY_SOCKETS || reply == HYDNS_MSG_LOG_RING || reply == HYDNS_MSG_BUDGETS ||
	       reply == HYDNS_MSG_NAME_SET;
}

int hydns_link_call(struct hydns_link *l, uint32_t type, const void *payload, size_t len, const int *fd, unsigned fds,
		    uint32_t reply, uint32_t timeout_ms)
{
	struct hydns_msg head = { .type = type, .seq = ++l->seq, .len = (uint32_t)len };
	uint64_t deadline = hydns_mono_ns() + timeout_ms * HYDNS_NS_PER_MS;
	int error = l->leaving && type != HYDNS_MSG_BYE ? -ECANCELED :
		    send_message(l, &head, payload, fd, fds, deadline);

	while (!error) {
		error = hydns_channel_receive(l->sock, &l->in);
		if (!error && take_unasked(l))
			continue;
		if (error != -EAGAIN)
			break;
		error = hydns_link_await(l, POLLIN, false, deadline) ? 0 : late(l, &deadline);
	}
	if (error)
		return error;
	if (l->in.head.seq == head.seq && l->in.head.type == reply && brings_descriptors(reply))
		return 0;
	hydns_channel_close_fds(&l->in);
	if (l->in.head.seq != head.seq)
		return -EPROTO;
	if (l->in.head.type == HYDNS_MSG_REFUSED)
		return -HYDNS_EREFUSED;
	return l->in.head.type == reply ? 0 : -EPROTO;
}

int hydns_link_ask(struct hydns_link *l, uint32_t type, const void *payload, size_t len)
{
	return hydns_link_call(l, type, payload, len, NULL, 0, HYDNS_MSG_ACK, HYDNS_REPLY_TIMEOUT_MS);
}

int hydns_link_fetch(struct hydns_link *l, uint32_t type, const void *payload, size_t len, uint32_t reply, int *fd)
{
	int error = hydns_link_call(l, type, payload, len, NULL, 0, reply, HYDNS_REPLY_TIMEOUT_MS);

	if (error)
		return error;
	if (l->in.fds != 1) {
		hydns_channel_close_fds(&l->in);
		return -EPROTO;
	}
	*fd = l->in.fd[0];
	return 0;
}

const char *hydns_link_refusal(struct hydns_link *l)
{
	size_t n = l->in.head.len;
	char *text = (char *)l->in.payload;

	if (n >= sizeof(l->in.payload))
		n = sizeof(l->in.payload) - 1;
	text[n] = '\0';
	for (size_t i = 0; text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	return text;
}

void hydns_link_say_bye(struct hydns_link *l)
{
	hydns_link_leave(l);
	hydns_link_call(l, HYDNS_MSG_BYE, NULL, 0, NULL, 0, HYDNS_MSG_ACK, HYDNS_BYE_TIMEOUT_MS);
}
