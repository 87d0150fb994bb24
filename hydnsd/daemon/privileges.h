/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Dropping what is not needed once the program is loaded. */
#ifndef HYDNSD_DAEMON_PRIVILEGES_H
#define HYDNSD_DAEMON_PRIVILEGES_H

#include <stddef.h>
#include <sys/types.h>
#include "hydnsd/daemon/options.h"

/* Before loading: is this process allowed to? 0, or a negative errno and a line in why. */
int hydnsd_privileges_check(char *why, size_t room);

/* The user that hydnsd becomes: that of the options, or the one it is. */
uid_t hydnsd_privileges_user(const struct hydnsd_options *o);

/*
 * Keeps CAP_BPF (new resolver pages) and CAP_NET_ADMIN (attaching when an interface comes back) and
 * nothing else, forbids gaining rights by exec, and changes to the user and group of the options, to
 * whom it first gives the files that are still to be changed: pins and sockets' directories. Call it
 * before any thread is started.
 */
int hydnsd_privileges_drop(const struct hydnsd_options *o, char *why, size_t room);

#endif
