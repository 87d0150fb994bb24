/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The porter. Every call here may block; hydnsd kills a porter that does. */
#include "hydnsd/resolvers/porter.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hydnsd/resolvers/porter_internal.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71             /* since Linux 5.14 */
#endif

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* -- sockets ------------------------------------------------------------------------------------------------- */
static int get_int(int fd, int level, int option, int *out)
{
	socklen_t len = sizeof(*out);

	return getsockopt(fd, level, option, out, &len) ? -errno : 0;
}

/* Of the socket's network namespace. */
static int get_cookie(int fd, uint64_t *out)
{
	socklen_t len = sizeof(*out);

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, out, &len) ? -errno : 0;
}

static bool is_elsewhere(int fd)
{
	int own = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t here, there;
	bool elsewhere = own < 0 || get_cookie(own, &here) || get_cookie(fd, &there) || here != there;

	if (own >= 0)
		close(own);
	return elsewhere;
}

static int check_socket(int fd, int *domain, char why[HYDNS_WHY])
{
	char device[IFNAMSIZ] = "";
	socklen_t len = sizeof(device);
	int type, protocol;

	if (get_int(fd, SOL_SOCKET, SO_DOMAIN, domain) || get_int(fd, SOL_SOCKET, SO_TYPE, &type) ||
	    get_int(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) ||
	    (*domain != AF_INET && *domain != AF_INET6) || type != SOCK_DGRAM ||
	    protocol != IPPROTO_UDP) {
		snprintf(why, HYDNS_WHY, "not a UDP socket: hand over the socket that queries arrive at");
		return -EPROTOTYPE;
	}
	if (is_elsewhere(fd)) {
		snprintf(why, HYDNS_WHY, "the socket is in another network namespace: run hydnsd in the "
			 "resolver's");
		return -EXDEV;
	}
	if (!getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &len) && device[0]) {
		snprintf(why, HYDNS_WHY, "the socket is bound to device %.15s: bind it to addresses alone",
			 device);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int socket_name(int fd, int domain, struct hydnsd_socket *out, char why[HYDNS_WHY])
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	const struct sockaddr_in *in = (const struct sockaddr_in *)&name;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&name;
	int v6only = 0;

	memset(out, 0, sizeof(*out));
	if (getsockname(fd, (struct sockaddr *)&name, &len) || name.ss_family != domain ||
	    in->sin_port == 0) {
		snprintf(why, HYDNS_WHY, "the socket is not bound: bind it before handing it over");
		return -ENOTCONN;
	}
	out->port = in->sin_port;      /* same offset in both families */
	if (domain == AF_INET) {
		memcpy(out->addr, mapped, sizeof(mapped));
		memcpy(out->addr + sizeof(mapped), &in->sin_addr, sizeof(in->sin_addr));
		out->any4 = in->sin_addr.s_addr == htonl(INADDR_ANY);
		return 0;
	}
	memcpy(out->addr, &in6->sin6_addr, sizeof(out->addr));
	out->any6 = IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
	out->any4 = out->any6 && !get_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only) && !v6only;
	return 0;
}

/* -- what hydnsd may get ------------------------------------------------------------------------------------- */
static bool is_bpf_map(int fd)
{
	static const char map[] = "anon_inode:bpf-map";
	char path[32], what[sizeof(map)];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, what, sizeof(what));
	return n == sizeof(map) - 1 && memcmp(what, map, sizeof(map) - 1) == 0;
}

/* Only files in memory have seals. */
static bool is_harmless(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0 || is_bpf_map(fd);
}

/* Fills the delivery; returns how many of the descriptors hydnsd gets. */
static unsigned judge(struct hydnsd_delivery *d, const int *fd, unsigned fds)
{
	const struct hydns_msg *head = (const struct hydns_msg *)d->message;
	int domain;

	if (head->type == HYDNS_MSG_SERVICE && fds == 1) {
		d->rc = check_socket(fd[0], &domain, d->why);
		if (!d->rc)
			d->rc = socket_name(fd[0], domain, &d->socket, d->why);
		return 0;
	}
	d->rc = -EINVAL;
	if (head->type != HYDNS_MSG_HELLO) {
		snprintf(d->why, sizeof(d->why), head->type == HYDNS_MSG_SERVICE ?
			 "a SERVICE without exactly one socket" : "descriptors with a message that has none");
		return 0;
	}
	for (unsigned i = 0; i < fds; i++)
		if (!is_harmless(fd[i])) {
			snprintf(d->why, sizeof(d->why), "a HELLO with a descriptor that is neither a ring (a sealed "
				 "memfd) nor a page (a BPF map): use a plugin of this hydnsd's version");
			return 0;
		}
	d->rc = 0;
	return fds;
}

/* -- receiving and handing on --------------------------------------------------------------------------------- */
/* Copies the descriptors of all control messages; returns how many. */
static unsigned take_fds(struct msghdr *m, int fd[HYDNSD_FDS_MAX])
{
	unsigned fds = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS ?
			   (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

		for (size_t i = 0; i < n && fds < HYDNSD_FDS_MAX; i++)
			memcpy(&fd[fds++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return fds;
}

/* False: the connection has ended. */
static bool take(struct hydnsd_delivery *d, int fd[HYDNSD_FDS_MAX], unsigned *fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(HYDNSD_FDS_MAX * sizeof(int))];
	} control;
	struct iovec part = { d->message, sizeof(d->message) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(HYDNSD_PORTER_CONNECTION, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return false;
	*fds = take_fds(&m, fd);
	d->len = (uint32_t)n;
	if (n < (ssize_t)sizeof(struct hydns_msg) || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		d->rc = -EPROTO;
	return true;
}

static bool hand_on(const struct hydnsd_delivery *d, const int *fd, unsigned fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(HYDNSD_FDS_MAX * sizeof(int))];
	} control = { .space = { 0 } };
	struct iovec part = { (void *)d, sizeof(*d) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fds) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(fds * sizeof(int)),
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fd, fds * sizeof(int));
	}
	return sendmsg(HYDNSD_PORTER_CHANNEL, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(*d);
}

static bool deliver(void)
{
	struct hydnsd_delivery d = { .rc = 0 };
	int fd[HYDNSD_FDS_MAX];
	unsigned fds, good = 0;
	bool sent;

	if (!take(&d, fd, &fds))
		return false;
	if (!d.rc)
		good = judge(&d, fd, fds);
	sent = hand_on(&d, fd, good);
	while (fds)
		close(fd[--fds]);
	explicit_bzero(&d, sizeof(d));
	return sent;
}

int hydnsd_porter_main(void)
{
	struct pollfd channel = { .fd = HYDNSD_PORTER_CHANNEL, .events = POLLIN };
	char asked;

	prctl(PR_SET_NAME, HYDNSD_PORTER);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (poll(&channel, 1, -1) > 0 || errno == EINTR)
		if (recv(HYDNSD_PORTER_CHANNEL, &asked, sizeof(asked), MSG_DONTWAIT) <= 0 || !deliver())
			break;
	/* Ends without close(): descriptors that the end of a process closes do not linger. */
	_exit(0);
}
