/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define BUFFER         65536
#define DRAIN_MOST     16384           /* more than a socket's buffer holds */
#define ANSWER_SECONDS 1               /* the kernel answers at once; for what nobody has thought of */

int hydnsd_netlink_listen(uint32_t groups, const struct sock_fprog *filter)
{
	const struct sockaddr_nl a = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int rc, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && !(filter && setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, filter, sizeof(*filter))) &&
	    !bind(fd, (const struct sockaddr *)&a, sizeof(a)))
		return fd;
	rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

void hydnsd_netlink_drain(int fd)
{
	int most = DRAIN_MOST;
	char octet;

	while (most-- && (recv(fd, &octet, sizeof(octet), MSG_DONTWAIT | MSG_TRUNC) >= 0 || errno == ENOBUFS))
		;
}

static int open_asking(void)
{
	const struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	const int yes = 1;
	int rc, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	/* strict: else the kernel would not look at table and type, and tell all routes */
	if (fd >= 0 && !setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &yes, sizeof(yes)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return fd;
	rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

struct answer {
	uint32_t seq;
	int (*fn)(const struct nlmsghdr *h, void *arg);
	void *arg;
	bool interrupted;              /* a change came in between: some may be missing */
	bool ended;
	int error;
};

static void take_message(const struct nlmsghdr *h, struct answer *a)
{
	if (h->nlmsg_seq != a->seq)
		return;
	a->interrupted |= !!(h->nlmsg_flags & NLM_F_DUMP_INTR);
	switch (h->nlmsg_type) {
	case NLMSG_DONE:               /* both begin with a negative errno, or 0 */
	case NLMSG_ERROR:
		a->ended = true;
		if (!a->error && h->nlmsg_len >= NLMSG_LENGTH(sizeof(int)))
			a->error = *(const int *)NLMSG_DATA(h);
		break;
	case NLMSG_NOOP:
		break;
	default:
		if (!a->error)
			a->error = a->fn(h, a->arg);
		a->ended |= a->error != 0;
	}
}

static int receive(int fd, struct answer *a)
{
	static char buffer[BUFFER] __attribute__((aligned(NLMSG_ALIGNTO)));

	while (!a->ended) {
		struct sockaddr_nl from = { .nl_pid = 1 };
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, buffer, sizeof(buffer), 0, (struct sockaddr *)&from, &len);
		size_t left = n > 0 ? (size_t)n : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		for (const struct nlmsghdr *h = (const struct nlmsghdr *)buffer;
		     from.nl_pid == 0 && !a->ended && NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
			take_message(h, a);
	}
	return a->error ? a->error : a->interrupted;
}

int hydnsd_netlink_dump(struct nlmsghdr *request, int (*fn)(const struct nlmsghdr *h, void *arg), void *arg)
{
	static uint32_t seq;
	struct answer a = { .seq = ++seq, .fn = fn, .arg = arg };
	int rc, fd = open_asking();

	if (fd < 0)
		return fd;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->nlmsg_seq = a.seq;
	rc = send(fd, request, request->nlmsg_len, 0) == (ssize_t)request->nlmsg_len ? 0 : -errno;
	if (!rc)
		rc = receive(fd, &a);
	close(fd);
	return rc;
}

const void *hydnsd_netlink_attr(const struct rtattr *a, int len, unsigned short type, size_t least)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if ((a->rta_type & NLA_TYPE_MASK) == type)
			return RTA_PAYLOAD(a) >= least ? RTA_DATA(a) : NULL;
	return NULL;
}
