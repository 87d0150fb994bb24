/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Drops rights that hydnsd does not need once the program is loaded. */
#ifndef HYDNSD_DAEMON_PRIVILEGES_H
#define HYDNSD_DAEMON_PRIVILEGES_H

#include <stddef.h>
#include <sys/types.h>
#include "hydnsd/daemon/options.h"

/* Before loading: whether this process has the rights to, and to become the user of the options. 0, or a negative errno and a line in why. */
int hydnsd_privileges_check(const struct hydnsd_options *o, char *why, size_t room);

/* The user that hydnsd becomes: that of the options, or else the present one. */
uid_t hydnsd_privileges_user(const struct hydnsd_options *o);

/*
 * Keeps only CAP_BPF (new resolver pages), CAP_NET_ADMIN (attaching when an interface comes back) and, unless the options say
 * `queue: no', CAP_NET_RAW (AF_XDP sockets for packet rings); CAP_PERFMON (loading programs) without effect; and forbids gaining
 * rights by exec. Changes to the user and group of the options; first gives that user the files to be changed later: pins, state
 * directory and sockets. Call it before any thread is started.
 */
int hydnsd_privileges_drop(const struct hydnsd_options *o, char *why, size_t room);

/* In a thread that loads programs: takes the right to, which hydnsd keeps without effect, until the thread ends. 0, or a negative errno
 * and a line in why. */
int hydnsd_privileges_to_load(char *why, size_t room);

#endif
