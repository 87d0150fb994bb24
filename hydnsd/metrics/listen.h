/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Where hydns-metrics can be reached: at one address and port, or at one unix socket. */
#ifndef HYDNSD_METRICS_LISTEN_H
#define HYDNSD_METRICS_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#define METRICS_LISTEN_DEFAULT "127.0.0.1:10953"

/* The path, if where names a unix socket ("unix:/run/x"), else NULL. */
const char *metrics_listen_path(const char *where);
/* Only this host can reach it: a loopback address, or a unix socket. */
bool metrics_listen_is_local(const char *where);
/* Listens at "192.0.2.1:10953", "[2001:db8::1]:10953" or "unix:/run/x". group: its members may connect to the unix socket; NULL:
 * only this user. option: whose value it is. Returns a descriptor; or -EINVAL (where is wrong), or another negative errno, and a line
 * in why. */
int metrics_listen(const char *option, const char *where, const char *group, char *why, size_t room);

#endif
