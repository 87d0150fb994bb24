/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packet rings: which AF_XDP sockets the program gives a resolver's queries to. The kernel takes a socket out of hydns_rings
 * and hydns_gates when its last descriptor is closed, and userspace can't read these two maps back, only ask whether an entry
 * is free.
 */
#ifndef HYDNS_KERN_LOADER_RINGS_H
#define HYDNS_KERN_LOADER_RINGS_H

#include "hydns/queue.h"
#include "hydns-kern/loader/open.h"

/* Writes the lane's record, also in place of a former one: from now on the program redirects to its sockets. */
int hydns_kern_lane_set(struct hydns_kern *k, const struct hydns_lane_key *key, const struct hydns_lane *lane);
/* A program that runs already may redirect until the end of a grace period. 0 also when there is no record. */
int hydns_kern_lane_delete(struct hydns_kern *k, const struct hydns_lane_key *key);
/* Calls fn for each record; fn may set and delete records. */
int hydns_kern_lane_each(struct hydns_kern *k,
			 void (*fn)(const struct hydns_lane_key *, const struct hydns_lane *, void *), void *arg);

/* The socket of a thread of the lane with this number. The descriptor stays the caller's. -EINVAL: out of range. */
int hydns_kern_ring_set(struct hydns_kern *k, __u32 number, __u32 thread, int xsk_fd);
/* Whether a socket of the lane with this number is open in some process: its receive queue cannot be bound by others as
 * long. spare: an AF_XDP socket of the caller's that is in no map. */
bool hydns_kern_rings_open(struct hydns_kern *k, __u32 number, __u32 threads, int spare);
/* Takes the sockets of all threads out. */
void hydns_kern_rings_delete(struct hydns_kern *k, __u32 number);

/* The gate of a resolver: an AF_XDP socket without which nothing is redirected to it. The descriptor stays the caller's. */
int hydns_kern_gate_set(struct hydns_kern *k, __u32 resolver, int xsk_fd);
void hydns_kern_gate_delete(struct hydns_kern *k, __u32 resolver);

#endif
