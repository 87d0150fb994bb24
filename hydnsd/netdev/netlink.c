/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/netlink.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"

#define BUFFER         65536
#define DRAIN_MOST     16384           /* more than a socket's buffer holds */
#define ANSWER_SECONDS 1               /* time limit; the kernel answers at once */
#define TRIES          8               /* of a dump that changes interrupt */
#define SHARE          5               /* a look is followed by a pause of so many times its duration */

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

	/* strict: else the kernel ignores table and type, and sends all routes */
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
	bool interrupted;              /* a change came in between: objects may be missing */
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
		ssize_t n = hydns_netlink_receive(fd, buffer, sizeof(buffer), 0);
		size_t left = n > 0 ? (size_t)n : 0;

		if (n < 0)
			return (int)n;
		for (const struct nlmsghdr *h = (const struct nlmsghdr *)buffer; !a->ended && NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left))
			take_message(h, a);
	}
	return a->error ? a->error : a->interrupted;
}

/* 0; 1: a change came in between; or a negative errno. */
static int ask_once(struct nlmsghdr *request, int (*fn)(const struct nlmsghdr *h, void *arg), void *arg)
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

int hydnsd_netlink_dump(struct nlmsghdr *request, void (*begin)(void *arg),
			int (*fn)(const struct nlmsghdr *h, void *arg), void *arg)
{
	int rc = 1;

	for (int tries = 0; rc == 1 && tries < TRIES; tries++) {
		begin(arg);
		rc = ask_once(request, fn, arg);
	}
	return rc == 1 ? -EAGAIN : rc;
}

bool hydnsd_netlink_patient(uint64_t *since_ms, int rc)
{
	uint64_t now = hydnsd_now_ms();

	if (!rc)
		*since_ms = 0;
	else if (!*since_ms)
		*since_ms = now;
	return !rc || now - *since_ms < HYDNSD_NETLINK_PATIENCE_MS;
}

uint64_t hydnsd_netlink_not_before(uint64_t begun_ms)
{
	uint64_t now = hydnsd_now_ms();

	return now + (now - begun_ms) * SHARE;
}

bool hydnsd_netlink_hear(int fd, void (*fn)(const struct nlmsghdr *h, void *arg), void *arg)
{
	static char buffer[BUFFER] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool lost = false;

	for (int most = DRAIN_MOST; most; most--) {
		ssize_t n = hydns_netlink_receive(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		size_t left = n > 0 ? (size_t)n : 0;

		lost |= n == -ENOBUFS;
		if (n < 0 && n != -ENOBUFS)
			break;
		for (const struct nlmsghdr *h = (const struct nlmsghdr *)buffer; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left))
			fn(h, arg);
	}
	return lost;
}
