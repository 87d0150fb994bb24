/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Connections of resolver plugins, HELLO to BYE (include/hydns/abi.h has the messages). */
#ifndef HYDNSD_RESOLVERS_SESSION_H
#define HYDNSD_RESOLVERS_SESSION_H

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/resolvers/ring.h"

/* Listens on every plugin socket. 0, or a negative errno and a line in why. */
int hydnsd_sessions_start(struct hydnsd *d, char *why, size_t room);
/* Each resolver is told its counts: all of them, if the program answers no more. */
void hydnsd_sessions_stop(struct hydnsd *d);
/* Connections now. */
uint32_t hydnsd_sessions_count(const struct hydnsd *d);
/* Ends a session: the plugin is told why; its authority becomes an orphan. Unknown ids are ignored. */
void hydnsd_session_drop(struct hydnsd *d, uint64_t id, const char *why);

/* What a session's plugin has counted in its rings, all of them together; zero without a session. */
void hydnsd_session_ring_counts(struct hydnsd *d, uint64_t id, struct hydnsd_ring_counts *out);

/* As hydnsd_rings_kept(); false without a session. */
bool hydnsd_session_kept(struct hydnsd *d, uint64_t id, uint64_t key, struct hydns_kept *out);

/* Takes a bounded number of frames out of every ring; returns how long the loop may sleep, in ms: 0
 * there is more, 1 offers were flowing a moment ago, -1 every plugin will ring the doorbell. */
int hydnsd_sessions_turn(struct hydnsd *d);

#endif
