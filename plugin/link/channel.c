/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Messages and descriptors over hydnsd's SOCK_SEQPACKET socket. Nothing here waits. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include "plugin/link/link.h"

#define FDS_OUT_MAX (HYDNS_THREADS_MAX + 1)   /* HELLO: the rings and the page */

int hydns_channel_connect(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int sock;

	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, strlen(path));
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	if (connect(sock, (struct sockaddr *)&to, sizeof(to))) {
		int error = -errno;

		close(sock);
		return error;
	}
	return sock;
}

int hydns_channel_send(int sock, const struct hydns_msg *head, const void *payload, const int *fd,
		       unsigned fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FDS_OUT_MAX * sizeof(int))];
	} control;
	struct iovec part[2] = {
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(*head) },
		{ .iov_base = (void *)(uintptr_t)payload, .iov_len = head->len },
	};
	struct msghdr m = { .msg_iov = part, .msg_iovlen = 2 };

	if (fds) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		memset(&control, 0, sizeof(control));
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(fds * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fd, fds * sizeof(int));
	}
	if (sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
	return 0;
}

/* Takes what came over, closing what is more than expected. */
static void take_fds(struct msghdr *m, struct hydns_channel_message *out)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS ?
			   (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (out->fds < HYDNS_CHANNEL_FDS)
				out->fd[out->fds++] = fd;
			else
				close(fd);
		}
	}
}

void hydns_channel_close_fds(struct hydns_channel_message *m)
{
	for (unsigned i = 0; i < m->fds; i++) {
		if (m->fd[i] >= 0)
			close(m->fd[i]);
		m->fd[i] = -1;
	}
	m->fds = 0;
}

int hydns_channel_receive(int sock, struct hydns_channel_message *m)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(HYDNS_CHANNEL_FDS * sizeof(int))];
	} control;
	struct iovec part[2] = {
		{ .iov_base = &m->head, .iov_len = sizeof(m->head) },
		{ .iov_base = m->payload, .iov_len = sizeof(m->payload) },
	};
	struct msghdr h = { .msg_iov = part, .msg_iovlen = 2, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	for (unsigned i = 0; i < HYDNS_CHANNEL_FDS; i++)
		m->fd[i] = -1;
	m->fds = 0;
	if (n < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
	take_fds(&h, m);
	if (n == 0)
		return -ECONNRESET;
	if (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || (size_t)n < sizeof(m->head) ||
	    (size_t)n - sizeof(m->head) != m->head.len) {
		hydns_channel_close_fds(m);
		return -EPROTO;
	}
	return 0;
}
