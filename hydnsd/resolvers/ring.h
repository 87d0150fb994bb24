/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One ring of a plugin (struct hydns_ring). The plugin may write anything to it at any moment. So hydnsd copies a frame before
 * it looks at it, and keeps the tail here.
 */
#ifndef HYDNSD_RESOLVERS_RING_H
#define HYDNSD_RESOLVERS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/ring.h"
#include "hydnsd/resolvers/progress.h"
#include "hydnsd/rules/offer.h"

struct hydnsd_ring {
	struct hydns_ring *shared;     /* mapped; written by the plugin at any moment */
	uint32_t tail;                 /* hydnsd never reads the shared one again */
	uint32_t head;                 /* as last read */
	struct hydnsd_progress progress;
};

/* Checks and maps a ring's memfd, which stays the caller's. begun: of the session. 0, or a negative errno and a line in why. */
int hydnsd_ring_open(struct hydnsd_ring *r, int fd, const struct hydnsd_begun *begun, char *why, size_t room);
void hydnsd_ring_close(struct hydnsd_ring *r);

union hydnsd_frame {
	struct hydns_frame head;
	struct hydns_offer offer;
	struct hydns_changed changed;
	struct hydns_over over;
	uint8_t octet[HYDNSD_OFFER_MAX];
	uint64_t align;
};

enum hydnsd_taken { HYDNSD_TAKEN_NONE, HYDNSD_TAKEN_FRAME, HYDNSD_TAKEN_BROKEN };

/* Copies the next frame that is not padding. */
enum hydnsd_taken hydnsd_ring_take(struct hydnsd_ring *r, union hydnsd_frame *out);
/* Gives frames back to the plugin that have been acted upon. */
void hydnsd_ring_give_back(struct hydnsd_ring *r, const struct hydnsd_begun *begun);

/* What the plugin has counted. It can write anything there: show it, do not rely on it. */
struct hydnsd_ring_counts {
	uint64_t queries, offered, dropped;
	struct hydns_queue_counts packet_rings;
};
/* Adds this ring's counts to *out. */
void hydnsd_ring_count(const struct hydnsd_ring *r, struct hydnsd_ring_counts *out);
/* Adds what is in this ring's thread's packet rings of a lane. As unreliable as the counts. */
void hydnsd_ring_level(const struct hydnsd_ring *r, uint32_t lane, struct hydns_lane_level *out);
/* What it says of the thread that writes logged answers. */
void hydnsd_ring_log_level(const struct hydnsd_ring *r, struct hydns_tap_level *out);
/* Why the plugin last did not offer the answer to a question. False: it has not said. As unreliable as the counts. */
bool hydnsd_ring_not_offered(const struct hydnsd_ring *r, uint64_t key, struct hydns_not_offered *out);

#endif
