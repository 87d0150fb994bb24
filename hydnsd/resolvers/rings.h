/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* All rings of a session. hydnsd polls them until they have been empty for a while, then waits for the doorbell. */
#ifndef HYDNSD_RESOLVERS_RINGS_H
#define HYDNSD_RESOLVERS_RINGS_H

#include "hydnsd/resolvers/ring.h"

struct hydnsd_session;

/* Opens all or none; the descriptors stay the caller's. 0, or a negative errno and a line in why. */
int hydnsd_rings_open(struct hydnsd_session *s, const int *fd, uint32_t count, char *why, size_t room);
void hydnsd_rings_close(struct hydnsd_session *s);

/* need: 1, the plugin rings the doorbell at its next frame; 0: it need not. */
void hydnsd_rings_need_wakeup(struct hydnsd_session *s, enum hydns_ring_wakeup need);
/* True when a frame waits in one of them. */
bool hydnsd_rings_any_ready(const struct hydnsd_session *s);
/* Polls them again, until they have been empty for a while. */
void hydnsd_rings_poll_soon(struct hydnsd_session *s);
/* Where each ring's head is now: an entry of head for each; and whether all up to there has been taken. A plugin that writes nonsense
 * to a head harms itself alone: it waits without end. */
void hydnsd_rings_heads(const struct hydnsd_session *s, uint32_t *head);
bool hydnsd_rings_taken(const struct hydnsd_session *s, const uint32_t *head);
/* The doorbell rang. */
void hydnsd_rings_wake(struct hydnsd_session *s);
/* Writes the threshold to each ring, for the plugin. */
void hydnsd_rings_set_threshold(struct hydnsd_session *s);

/* As hydnsd_ring_count(), _level() and _not_offered(), of all rings; of several reasons the last one counts. */
void hydnsd_rings_count(const struct hydnsd_session *s, struct hydnsd_ring_counts *out);
void hydnsd_rings_level(const struct hydnsd_session *s, uint32_t lane, struct hydns_lane_level *out);
bool hydnsd_rings_not_offered(const struct hydnsd_session *s, uint64_t key, struct hydns_not_offered *out);

#endif
