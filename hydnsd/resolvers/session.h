/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Sessions of resolver plugins, as the rest of hydnsd sees them. */
#ifndef HYDNSD_RESOLVERS_SESSION_H
#define HYDNSD_RESOLVERS_SESSION_H

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/resolvers/ring.h"

/* How many connections there are. */
uint32_t hydnsd_sessions_count(const struct hydnsd *d);
/* What the session's plugin has counted in all its rings together; zero without a session. */
void hydnsd_session_ring_counts(struct hydnsd *d, uint64_t id, struct hydnsd_ring_counts *out);
/* As hydnsd_rings_level(); zero without a session. */
void hydnsd_session_lane_level(struct hydnsd *d, uint64_t id, uint32_t lane, struct hydns_lane_level *out);
/* What its plugin says of the thread that writes logged answers; zero without a session. */
void hydnsd_session_log_level(struct hydnsd *d, uint64_t id, struct hydns_tap_level *out);
/* As hydnsd_rings_not_offered(); false without a session. */
bool hydnsd_session_not_offered(struct hydnsd *d, uint64_t id, uint64_t key, struct hydns_not_offered *out);

#endif
