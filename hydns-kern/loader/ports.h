/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ports of queries to upstream (hydns/queue.h): which there are, whose they are, and the sockets that take what comes to
 * the stack instead of a ring. All of it is pinned, so it goes on while hydnsd is away.
 */
#ifndef HYDNS_KERN_LOADER_PORTS_H
#define HYDNS_KERN_LOADER_PORTS_H

#include "hydns/queue.h"
#include "hydns-kern/loader/open.h"

/* -- ports.c ------------------------------------------------------------------------------------------- */
/* Descriptor of the map hydns_ports, which stays the loader's: a copy of it is for a plugin, which maps it for writing. */
int hydns_kern_ports_fd(const struct hydns_kern *k);
/* Sets the range; 0 ports: none. Words outside of it stay, without effect. -EINVAL: it ends beyond the last port. */
int hydns_kern_ports_range(struct hydns_kern *k, __u32 first, __u32 ports);
/* The seed of hydns_remote_tag(), as long as the maps are. */
void hydns_kern_ports_seed(const struct hydns_kern *k, __u64 seed[2]);
/* Clears all words of a resolver. A thread of it that still runs may claim others at the same time. */
void hydns_kern_ports_clear(struct hydns_kern *k, __u32 resolver);
/* Whether the program must read packets though the store holds no rule: true before the first lane is made, false after the
 * last one has gone. */
void hydns_kern_lanes_exist(struct hydns_kern *k, bool any);
/* What the program has given to the resolver's rings since the maps were made, summed over CPUs. */
int hydns_kern_queue_counts(struct hydns_kern *k, __u32 resolver, struct hydns_queue_count *sum);

/* -- stray.c ------------------------------------------------------------------------------------------- */
/* Makes fd, a bound UDP socket of the family, the one of HYDNS_STRAY(); the map holds no reference to it. */
int hydns_kern_stray_set(struct hydns_kern *k, __u32 resolver, __u32 thread, bool ipv6, int fd);
/* Removes the sockets of a resolver. */
void hydns_kern_stray_clear(struct hydns_kern *k, __u32 resolver);
/* Whether a resolver has sockets, of this hydnsd or a former one. */
bool hydns_kern_strays_used(const struct hydns_kern *k);
/*
 * Attaches hydns_stray to this process's network namespace, pinned as stray_link; 0 also if it is, or if the running set lacks it:
 * then it is attached with the next one that has it. One of a former hydnsd
 * over the same maps has been taken over by hydns_kern_open(). One over other maps stays beside it until
 * hydns_kern_stray_former_end(), so that answers under way still find its sockets.
 */
int hydns_kern_stray_attach(struct hydns_kern *k, char why[HYDNS_WHY]);
/* Whether it is attached, or is to be. */
bool hydns_kern_stray_asked(const struct hydns_kern *k);
/* 0 also when there is nothing to detach. */
int hydns_kern_stray_detach(struct hydns_kern *k, char why[HYDNS_WHY]);
void hydns_kern_stray_former_end(struct hydns_kern *k);

#endif
