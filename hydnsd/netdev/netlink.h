/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * rtnetlink as the daemon follows the host by it: a socket tells that something has changed, and what holds now is
 * asked for anew. What was told is never counted on: messages may be lost.
 */
#ifndef HYDNSD_NETDEV_NETLINK_H
#define HYDNSD_NETDEV_NETLINK_H

#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hears of changes; groups: RTMGRP_* and 1 << (RTNLGRP_* - 1). filter: what is let through, NULL: all. The
 * descriptor, or a negative errno. */
int hydnsd_netlink_listen(uint32_t groups, const struct sock_fprog *filter);
/* Takes all that waits, unread. */
void hydnsd_netlink_drain(int fd);

/* Takes all that waits and tells fn of each message of the kernel's. True: some were lost, so that what they told must be
 * asked for. */
bool hydnsd_netlink_hear(int fd, void (*fn)(const struct nlmsghdr *h, void *arg), void *arg);

/*
 * Asks for all objects of a kind, with a socket of its own, so that what is left of an answer disturbs no other question,
 * and again while changes come in between, for then some may be missing. begin forgets what was told so far and is called
 * before each try; fn is told of each object, and returns 0, or a negative errno, which ends the dump. Both have arg. 0,
 * or a negative errno: the kernel's, fn's, or -EAGAIN when every try was interrupted.
 */
int hydnsd_netlink_dump(struct nlmsghdr *request, void (*begin)(void *arg),
			int (*fn)(const struct nlmsghdr *h, void *arg), void *arg);

/*
 * A host whose links or routes change all the time interrupts every try. What was known of it counts for so long; then
 * the caller has to do without.
 */
#define HYDNSD_NETLINK_PATIENCE_MS 1500
/* Whether what was known still counts after a look that ended with rc. since_ms: of the first look that has failed, 0
 * after one that has not. */
bool hydnsd_netlink_patient(uint64_t *since_ms, int rc);
/* When the next look may be made, so that a small part of the time goes into looking. */
uint64_t hydnsd_netlink_not_before(uint64_t begun_ms);

/* The first attribute of this type among len octets; NULL: there is none with as much as this. */
const void *hydnsd_netlink_attr(const struct rtattr *a, int len, unsigned short type, size_t least);

#endif
