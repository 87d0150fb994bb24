/* SPDX-License-Identifier: GPL-2.0-only */
/* Parking (hydns/parking.h): the queries that the program has parked, and their replay. Without the miss stage none are. */
#ifndef HYDNS_KERN_LOADER_PARKING_H
#define HYDNS_KERN_LOADER_PARKING_H

#include "hydns/parking.h"
#include "hydns-kern/loader/open.h"

/* Of a resolver; mapped for writing, valid until hydns_kern_close(). */
struct hydns_parking *hydns_kern_parking(struct hydns_kern *k, __u32 resolver);
/* Frames to be replayed; mapped for writing. The secret is the loader's. */
struct hydns_replays *hydns_kern_replays(struct hydns_kern *k);

/* Readable when the program wants the ring buffer to be read soon; for epoll. */
int hydns_kern_parked_fd(const struct hydns_kern *k);
/* Calls fn for each record; p and the frame behind it are valid during the call. Returns how many, or a negative errno. */
int hydns_kern_parked_drain(struct hydns_kern *k, void (*fn)(const struct hydns_parked *p, void *arg), void *arg);

/*
 * Has the first count (1..HYDNS_REPLAYS) frames of hydns_replays come in by this interface and receive queue. Returns how many
 * have, from the first one on, or a negative errno: none has. *passed: how many of them no rule has answered; frame[].refused: the
 * link had no room for the answer, and the frame may come in once more (not known with reply-path fib). The interface
 * must be one that the program is attached to: the kernel would wait for two grace periods otherwise.
 */
int hydns_kern_replay(struct hydns_kern *k, __u32 ifindex, __u32 rx_queue, __u32 count, __u32 *passed);

/* Whether queries that come by this interface may be parked. */
int hydns_kern_park_at(struct hydns_kern *k, __u32 ifindex, bool may);
/* Whether the program must read packets though the store holds no rule: true before the first resolver may park. */
void hydns_kern_parking_exists(struct hydns_kern *k, bool any);
/* Since the maps were made, summed over CPUs. */
int hydns_kern_parking_counts(struct hydns_kern *k, __u32 resolver, struct hydns_parking_count *sum);

#endif
