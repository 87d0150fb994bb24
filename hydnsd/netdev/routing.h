/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What reply-path: fib needs of the host. */
#ifndef HYDNSD_NETDEV_ROUTING_H
#define HYDNSD_NETDEV_ROUTING_H

#include <stdbool.h>
#include <stddef.h>

/* Name of a sysctl of this network namespace that keeps the kernel from looking up routes for XDP, or NULL. */
const char *hydnsd_routing_off(bool ipv6);
/* 0, or a negative errno and a line in why. */
int hydnsd_routing_check(bool ipv6, char *why, size_t room);

#endif
