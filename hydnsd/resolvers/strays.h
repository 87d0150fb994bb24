/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Sockets for stray answers: UDP sockets of a resolver's threads that get what upstream servers send to a port of a ring, but
 * that comes to the stack. hydnsd makes them, since only it may tell the program of them, and keeps none: their entries go
 * with the resolver's process. The program is attached while a resolver has such sockets.
 */
#ifndef HYDNSD_RESOLVERS_STRAYS_H
#define HYDNSD_RESOLVERS_STRAYS_H

#include "hydnsd/resolvers/requests.h"

/* Answers HYDNS_MSG_STRAYS. Sockets of an earlier request have no effect any more. */
bool hydnsd_strays_request(struct hydnsd_session *s, const struct hydnsd_request *m);
/* The resolver goes: nothing comes to its sockets any more, and its ports are free. */
void hydnsd_strays_release(struct hydnsd *d, uint32_t i);
/* Periodic: detaches the program that no resolver needs, and after a while that of a former hydnsd with other maps. */
void hydnsd_strays_tick(struct hydnsd *d);

#endif
