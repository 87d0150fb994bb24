/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How hydnsd follows the host by rtnetlink: a notice on one socket says that something has changed, and a dump on another
 * reads what holds now. hydnsd never relies on the content of notices, for some may be lost.
 */
#ifndef HYDNSD_NETDEV_NETLINK_H
#define HYDNSD_NETDEV_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hydns/netlink.h"   /* sockets for notices, and attributes */

/* Discards all notices that wait. */
void hydnsd_netlink_drain(int fd);

/* Calls fn for each of the kernel's notices that wait. True: some were lost, so read everything again. */
bool hydnsd_netlink_hear(int fd, void (*fn)(const struct nlmsghdr *h, void *arg), void *arg);

/*
 * Reads all objects that the request asks for, on a socket of its own, so that the rest of an answer disturbs no other request.
 * Tries again when a change comes in between, because objects may then be missing. Before each try it calls begin, which
 * forgets what fn has collected; for each object fn, whose negative errno ends the dump. Both get arg. 0, or a negative errno:
 * the kernel's, fn's, or -EAGAIN when changes interrupted every try.
 */
int hydnsd_netlink_dump(struct nlmsghdr *request, void (*begin)(void *arg),
			int (*fn)(const struct nlmsghdr *h, void *arg), void *arg);

/* Links or routes that change all the time interrupt every try. The former result counts for this long; then there is none. */
#define HYDNSD_NETLINK_PATIENCE_MS 1500
/* Whether the former result still counts after a look that ended with rc. *since_ms: when the first of the looks failed that
 * have failed since; 0: the last one succeeded. */
bool hydnsd_netlink_patient(uint64_t *since_ms, int rc);
/* The earliest time of the next look, after one that began at begun_ms: looks take a sixth of the time at most. */
uint64_t hydnsd_netlink_not_before(uint64_t begun_ms);

#endif
