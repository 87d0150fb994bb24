/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What hydnsd and a plugin share of reading rtnetlink (RFC 3549), which needs no right. Only for programs of user space;
 * not installed. Lengths in octets; numbers in messages are in host order, addresses in network order.
 */
#ifndef HYDNS_NETLINK_H
#define HYDNS_NETLINK_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bit of a group of notices: LINK for RTNLGRP_LINK. */
#define HYDNS_NOTICES(name) (1U << (RTNLGRP_##name - 1))

/* Opens a socket that does not block. groups: whose notices it gets, HYDNS_NOTICES() or RTMGRP_*; 0: it asks alone.
 * filter: what is let through; NULL: all. The descriptor, or a negative errno. */
static inline int hydns_netlink_listen(uint32_t groups, const struct sock_fprog *filter)
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

/* Receives a datagram of the kernel's into buffer, which is aligned to NLMSG_ALIGNTO and has room for room octets. flags: of
 * recv(2). Its octets; 0: another process sent it; or a negative errno. */
static inline ssize_t hydns_netlink_receive(int fd, void *buffer, size_t room, int flags)
{
	struct sockaddr_nl from = { .nl_pid = 1 };
	socklen_t len = sizeof(from);
	ssize_t n;

	do {
		n = recvfrom(fd, buffer, room, flags, (struct sockaddr *)&from, &len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return from.nl_pid ? 0 : n;
}

/* Data of the first attribute of this type in len octets; NULL: there is none, or it has fewer octets than least. */
static inline const void *hydns_netlink_attr(const struct rtattr *a, int len, unsigned short type, size_t least)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if ((a->rta_type & NLA_TYPE_MASK) == type)
			return RTA_PAYLOAD(a) >= least ? RTA_DATA(a) : NULL;
	return NULL;
}

#endif
