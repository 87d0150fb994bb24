/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsd's side: starts porters, talks to them, ends them. */
#include "hydnsd/resolvers/porter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/resolvers/porter_internal.h"

#define LEAVE_MS      1000             /* then by force */

struct hydnsd_porter {
	pid_t pid;
	int fd;
	uint64_t ended_ms;
	struct hydnsd_porter *next;
};

static struct hydnsd_porter *leaving;
static unsigned still_leaving;
/* Connections that no porter could be started for. As many as plugins and hydnsctl may have at most. */
#define UNCLOSED_MAX  512
static int unclosed[UNCLOSED_MAX];
static unsigned unclosed_count;

/* Starts the running program, also when its file has been replaced. It needs nothing of the environment. */
static int start(pid_t *pid, int connection, int channel)
{
	static char *const argv[] = { HYDNSD_PORTER, NULL }, *const none[] = { NULL };
	posix_spawn_file_actions_t actions;
	/* move both above the numbers that they get in the porter, so that neither dup2() overwrites the other's source */
	int a = fcntl(connection, F_DUPFD_CLOEXEC, HYDNSD_PORTER_FDS), b = fcntl(channel, F_DUPFD_CLOEXEC, HYDNSD_PORTER_FDS);
	int rc = a < 0 || b < 0 ? EMFILE : posix_spawn_file_actions_init(&actions);

	if (!rc) {
		posix_spawn_file_actions_adddup2(&actions, a, HYDNSD_PORTER_CONNECTION);
		posix_spawn_file_actions_adddup2(&actions, b, HYDNSD_PORTER_CHANNEL);
		posix_spawn_file_actions_addclosefrom_np(&actions, HYDNSD_PORTER_FDS);
		rc = posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv, none);
		posix_spawn_file_actions_destroy(&actions);
	}
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	return rc;
}

struct hydnsd_porter *hydnsd_porter_new(int connection)
{
	struct hydnsd_porter *p = calloc(1, sizeof(*p));
	int pair[2], rc;

	if (!p || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)) {
		free(p);
		return NULL;
	}
	rc = start(&p->pid, connection, pair[1]);
	close(pair[1]);
	if (rc) {
		close(pair[0]);
		free(p);
		errno = rc;
		return NULL;
	}
	p->fd = pair[0];
	return p;
}

int hydnsd_porter_fd(const struct hydnsd_porter *p)
{
	return p->fd;
}

bool hydnsd_porter_ask(struct hydnsd_porter *p)
{
	return send(p->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

int hydnsd_porter_receive(struct hydnsd_porter *p, struct hydnsd_delivery *out, int *fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(HYDNSD_FDS_MAX * sizeof(int))];
	} control;
	struct iovec part = { out, sizeof(*out) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(p->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	int fds = c ? (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n != (ssize_t)sizeof(*out) || out->len > sizeof(out->message))
		return -ECONNRESET;
	if (c)
		memcpy(fd, CMSG_DATA(c), (size_t)fds * sizeof(int));
	return fds;
}

void hydnsd_porter_end(struct hydnsd_porter *p)
{
	if (!p)
		return;
	close(p->fd);                  /* the porter sees that and ends, unless it blocks */
	p->ended_ms = hydnsd_now_ms();
	p->next = leaving;
	leaving = p;
	still_leaving++;
}

/* Another process has it then, too, and closes it last. */
static bool close_elsewhere(int connection)
{
	struct hydnsd_porter *p = hydnsd_porter_new(connection);

	if (!p)
		return false;
	close(connection);
	hydnsd_porter_end(p);
	return true;
}

void hydnsd_porters_tick(void)
{
	struct hydnsd_porter **at = &leaving;
	uint64_t now = hydnsd_now_ms();

	while (unclosed_count && close_elsewhere(unclosed[unclosed_count - 1]))
		unclosed_count--;
	while (*at) {
		struct hydnsd_porter *p = *at;

		if (waitpid(p->pid, NULL, WNOHANG) != 0) {
			*at = p->next;
			still_leaving--;
			free(p);
			continue;
		}
		if (now - p->ended_ms > LEAVE_MS)
			kill(p->pid, SIGKILL); /* in an uninterruptible wait it ends later */
		at = &p->next;
	}
}

unsigned hydnsd_porters_leaving(void)
{
	return still_leaving + unclosed_count;
}

/* -- connections --------------------------------------------------------------------------------------------- */
/* Without room for descriptors the kernel sets MSG_CTRUNC when there are some; MSG_PEEK leaves them in the message. */
bool hydnsd_connection_peek(int connection, uint32_t *type, bool *has_fds)
{
	struct hydns_msg head = { .type = 0 };
	struct iovec part = { &head, sizeof(head) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n = recvmsg(connection, &m, MSG_PEEK | MSG_DONTWAIT);

	*has_fds = n >= 0 && m.msg_flags & MSG_CTRUNC;
	*type = head.type;
	return n > 0 || *has_fds;
}

bool hydnsd_connection_has_fds(int connection)
{
	uint32_t type;
	bool fds;

	hydnsd_connection_peek(connection, &type, &fds);
	return fds;
}

enum unread { UNREAD_NOTHING, UNREAD_PLAIN, UNREAD_WITH_FDS };

/* With SO_PASSCRED even an empty message has credentials; the end of the connection has none. There is room for these alone,
 * so descriptors set MSG_CTRUNC. (A stream has no empty messages, but has credentials at its end.) */
static enum unread next_unread(int connection, bool stream)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char octet;
	struct iovec part = { &octet, sizeof(octet) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(connection, &m, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 || (n == 0 && stream) || !CMSG_FIRSTHDR(&m))
		return UNREAD_NOTHING;
	return m.msg_flags & MSG_CTRUNC ? UNREAD_WITH_FDS : UNREAD_PLAIN;
}

/* Reads messages up to the first that brings descriptors. True: nothing is left. */
static bool drain(int connection)
{
	const int yes = 1;
	char octet[HYDNS_MSG_MAX];
	enum unread next;
	int type;
	socklen_t len = sizeof(type);

	if (setsockopt(connection, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) ||
	    getsockopt(connection, SOL_SOCKET, SO_TYPE, &type, &len))
		return false;
	while ((next = next_unread(connection, type == SOCK_STREAM)) == UNREAD_PLAIN)
		if (recv(connection, octet, sizeof(octet), MSG_DONTWAIT) < 0)
			return false;
	return next == UNREAD_NOTHING;
}

/* Whoever closes it last also closes the descriptors in it. */
void hydnsd_connection_close(int connection)
{
	shutdown(connection, SHUT_RDWR);       /* nothing more comes */
	if (drain(connection))
		close(connection);
	else if (!close_elsewhere(connection) && unclosed_count < UNCLOSED_MAX) {
		hydnsd_log_client(HYDNSD_LOG_ERROR, "cannot start a process to close a connection: %s; it is tried again",
				  strerror(errno));
		unclosed[unclosed_count++] = connection;
	}
}
