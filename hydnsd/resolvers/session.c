/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/session_internal.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydns/abi.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/daemon/loop.h"
#include "hydnsd/resolvers/intake.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/porter.h"

struct hydnsd_session *hydnsd_session_find(struct hydnsd *d, uint64_t id)
{
	for (struct hydnsd_session *s = d->sessions->first; s; s = s->next)
		if (s->id == id && !s->dead)
			return s;
	return NULL;
}

/* -- sending ------------------------------------------------------------------------------------------- */
static void attach_fds(struct msghdr *m, const int *fd, unsigned fds)
{
	struct cmsghdr *c;

	m->msg_controllen = CMSG_SPACE(fds * sizeof(int));
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(fds * sizeof(int));
	memcpy(CMSG_DATA(c), fd, fds * sizeof(int));
}

bool hydnsd_session_send(struct hydnsd_session *s, uint32_t type, uint32_t seq, const void *payload, size_t len, const int *fd,
			 unsigned fds)
{
	struct hydns_msg head = { .type = type, .seq = seq, .len = (uint32_t)len, .abi = s->other_abi ? hydns_abi_version() : 0 };
	struct iovec part[] = { { &head, sizeof(head) }, { (void *)payload, len } };
	char control[CMSG_SPACE(HYDNSD_FDS_OUT_MAX * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct msghdr m = { .msg_iov = part, .msg_iovlen = 2, .msg_control = control };

	if (fds)
		attach_fds(&m, fd, fds);
	else
		m.msg_control = NULL;
	/* Replies are few and small: a socket that has no room for one belongs to a plugin that hangs. */
	return sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool hydnsd_session_acknowledge(struct hydnsd_session *s, uint32_t seq)
{
	return hydnsd_session_send(s, HYDNS_MSG_ACK, seq, NULL, 0, NULL, 0);
}

void hydnsd_session_complain(const struct hydnsd_session *s, const char *what, const char *why)
{
	hydnsd_log_client(HYDNSD_LOG_WARNING, "%s of process %d: %s", what, (int)s->pid, why);
}

bool hydnsd_session_send_refusal(struct hydnsd_session *s, uint32_t seq, const char *why)
{
	return hydnsd_session_send(s, HYDNS_MSG_REFUSED, seq, why, strlen(why), NULL, 0);
}

bool hydnsd_session_refuse(struct hydnsd_session *s, uint32_t seq, const char *why)
{
	hydnsd_session_complain(s, "refused a request", why);
	return hydnsd_session_send_refusal(s, seq, why);
}

/* -- ending -------------------------------------------------------------------------------------------- */
/* Ends everything but the memory: callers on the stack may still hold it, so the next round frees it. */
static void bury(struct hydnsd_session *s)
{
	s->dead = true;
	hydnsd_watch_end(s->watch);
	hydnsd_watch_end(s->bell_watch);
	hydnsd_watch_end(s->porter_watch);
	hydnsd_connection_close(s->fd);
	hydnsd_porter_end(s->porter);
	if (s->doorbell >= 0)
		close(s->doorbell);
	hydnsd_rings_close(s);
	if (s->resolver >= 0 && s->daemon->resolver[s->resolver].session == s->id)
		hydnsd_resolver_leave(s->daemon, (uint32_t)s->resolver);
}

/* An error of the connection, which is told once, must not hide what was sent before. */
static bool holds_messages(int fd)
{
	int error;
	socklen_t len = sizeof(error);
	uint32_t type;
	bool fds;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) || hydnsd_connection_peek(fd, &type, &fds);
}

/* The plugin has ended the connection, perhaps with its process: what it has left is acted upon. */
static void read_the_rest(struct hydnsd_session *s)
{
	struct hydnsd_resolver *r = s->resolver < 0 ? NULL : &s->daemon->resolver[s->resolver];

	if (!r || r->session != s->id || !r->hello.stale_longest || !hydnsd_resolver_ended(s->daemon, (uint32_t)s->resolver))
		return;
	r->all_read = !holds_messages(s->fd) && hydnsd_intake_finish(s);
}

void hydnsd_session_end(struct hydnsd_session *s, const char *why)
{
	if (!why && !s->dead)
		read_the_rest(s);
	if (s->dead)
		return;
	if (why) {
		hydnsd_session_complain(s, "dropped the connection", why);
		hydnsd_session_send(s, HYDNS_MSG_REFUSED, 0, why, strlen(why), NULL, 0);
	}
	bury(s);
}

void hydnsd_session_drop(struct hydnsd *d, uint64_t id, const char *why)
{
	struct hydnsd_session *s = hydnsd_session_find(d, id);

	if (s)
		hydnsd_session_end(s, why);
}

/* -- looking ------------------------------------------------------------------------------------------- */
uint32_t hydnsd_sessions_count(const struct hydnsd *d)
{
	return d->sessions->count;
}

void hydnsd_session_ring_counts(struct hydnsd *d, uint64_t id, struct hydnsd_ring_counts *out)
{
	const struct hydnsd_session *s = hydnsd_session_find(d, id);

	*out = (struct hydnsd_ring_counts){ 0 };
	if (s)
		hydnsd_rings_count(s, out);
}

void hydnsd_session_lane_level(struct hydnsd *d, uint64_t id, uint32_t lane, struct hydns_lane_level *out)
{
	const struct hydnsd_session *s = hydnsd_session_find(d, id);

	*out = (struct hydns_lane_level){ 0 };
	if (s)
		hydnsd_rings_level(s, lane, out);
}

void hydnsd_session_log_level(struct hydnsd *d, uint64_t id, struct hydns_tap_level *out)
{
	const struct hydnsd_session *s = hydnsd_session_find(d, id);

	*out = (struct hydns_tap_level){ 0 };
	if (s && s->rings)
		hydnsd_ring_log_level(&s->ring[0], out);
}

bool hydnsd_session_not_offered(struct hydnsd *d, uint64_t id, uint64_t key, struct hydns_not_offered *out)
{
	const struct hydnsd_session *s = hydnsd_session_find(d, id);

	return s && hydnsd_rings_not_offered(s, key, out);
}
