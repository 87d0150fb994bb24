/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Listening sockets of the daemon: paths, owners, modes, and who else may hold the path. */
#ifndef HYDNSD_DAEMON_SOCKETS_H
#define HYDNSD_DAEMON_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Binds path and listens. type: SOCK_STREAM or SOCK_SEQPACKET. A socket file that nobody listens at is
 * replaced; one that somebody does is an error. group: whose members may connect, or NULL: only root
 * and the daemon's user. Returns a non-blocking descriptor, or a negative errno and a line in why.
 */
int hydnsd_socket_listen(const char *path, int type, const char *group, char *why, size_t room);
/* The next connection, non-blocking; -1 with errno: none. *exhausted: it waits, and can't be taken for want of a descriptor or
 * of memory; the listener is to be looked at later, for it would be ready all the time. */
int hydnsd_socket_accept(int listener, bool *exhausted);
/* Owner, group and mode of a socket of ours; -1 leaves one as it is. Follows no symbolic link, and refuses (-EPERM) what is
 * no socket or not ours. 0 or a negative errno. */
int hydnsd_socket_own(const char *path, uid_t uid, gid_t gid, mode_t mode);
/* True when another process listens at path. */
int hydnsd_socket_busy(const char *path, int type);

#endif
