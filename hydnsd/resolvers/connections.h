/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Connections of resolver plugins, from the socket they come by to their end (include/hydns/session.h has the messages). */
#ifndef HYDNSD_RESOLVERS_CONNECTIONS_H
#define HYDNSD_RESOLVERS_CONNECTIONS_H

#include "hydnsd/daemon/daemon.h"

/* Listens on every plugin socket. 0, or a negative errno and a line in why. */
int hydnsd_sessions_start(struct hydnsd *d, char *why, size_t room);
/* Sends each resolver its last counts. They are final if the program does not answer any more. */
void hydnsd_sessions_stop(struct hydnsd *d);
/* Takes a bounded number of frames out of every ring. Returns how long the loop may sleep, in ms; 0: there is more to do;
 * -1: until a plugin rings its doorbell. */
int hydnsd_sessions_work(struct hydnsd *d);

#endif
