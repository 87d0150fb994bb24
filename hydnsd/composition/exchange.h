/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Follows what the program is to consist of. Loading takes some tenths of a second, so a thread does it, while hydnsd withdraws and
 * replays as ever; then the loop puts the programs into place.
 */
#ifndef HYDNSD_COMPOSITION_EXCHANGE_H
#define HYDNSD_COMPOSITION_EXCHANGE_H

#include "hydnsd/daemon/daemon.h"

/* Before programs are loaded for the first time: of what they are to consist. What a former hydnsd may have needed stays for a
 * minute, until resolvers have said whether they do. */
struct hydns_composition hydnsd_composition_begin(struct hydnsd *d);
int hydnsd_composition_start(struct hydnsd *d, char *why, size_t room);
/* Waits for a load under way. */
void hydnsd_composition_stop(struct hydnsd *d);
/* Often: the same, if resolvers ask for something else. */
void hydnsd_composition_tick(struct hydnsd *d);
/* Every second, and when something has changed: begins to load, if the program is to consist of something else. */
void hydnsd_composition_follow(struct hydnsd *d);

/* True: the program consists of what it is to consist of, or can't be exchanged for one that does. */
bool hydnsd_composition_settled(const struct hydnsd *d);
/* Why the last exchange failed; "": it did not. */
const char *hydnsd_composition_fault(const struct hydnsd *d);
/* Exchanges so far. */
uint64_t hydnsd_composition_exchanges(const struct hydnsd *d);
/* Calls settled(d) once hydnsd_composition_settled(), within a second. Twice the same is once. */
void hydnsd_composition_when_settled(struct hydnsd *d, void (*settled)(struct hydnsd *d));

#endif
