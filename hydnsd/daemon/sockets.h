/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsd's listening sockets: paths, owners, modes, and other processes at the path. */
#ifndef HYDNSD_DAEMON_SOCKETS_H
#define HYDNSD_DAEMON_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Binds path and listens. type: SOCK_STREAM or SOCK_SEQPACKET. Replaces a socket file without a listener; one with a listener
 * is an error. group: its members may connect; NULL: only root and hydnsd's user. Returns a non-blocking descriptor, or a
 * negative errno and a line in why.
 */
int hydnsd_socket_listen(const char *path, int type, const char *group, char *why, size_t room);
/* The next connection, non-blocking; -1 and errno: none. *exhausted: one waits, but descriptors or memory ran out. Then do not
 * watch the listener for a while: it would be ready all the time. */
int hydnsd_socket_accept(int listener, bool *exhausted);
/* Changes user, group and mode of a socket of ours; -1: no change. Follows no symbolic link, and refuses (-EPERM) what is no
 * socket or not ours. 0 or a negative errno. */
int hydnsd_socket_own(const char *path, uid_t uid, gid_t gid, mode_t mode);
/* True when another process listens at path. */
int hydnsd_socket_busy(const char *path, int type);

#endif
