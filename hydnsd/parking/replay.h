/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Replaying due frames: at once where a rule answers them, else as many at a time as the resolver's socket can hold. */
#ifndef HYDNSD_PARKING_REPLAY_H
#define HYDNSD_PARKING_REPLAY_H

#include "hydnsd/parking/parking.h"

/* Replays some due frames. Returns how long the loop may sleep, in ms; -1: none is due. */
int hydnsd_replay_work(struct hydnsd *d);
/* Replays the frame behind a record that could not be kept. */
void hydnsd_replay_now(struct hydnsd *d, const struct hydns_parked *record);

/* A forwarded query, by its question, whose upstream servers so far (bits) have not answered: it comes in again, and may be forwarded to
 * another one. False: no query waits for the question. */
bool hydnsd_replay_forward(struct hydnsd *d, uint32_t i, uint64_t key, uint32_t tried);

#endif
