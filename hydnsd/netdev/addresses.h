/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * This host's addresses: those that the kernel delivers to this host at this moment, by its table of local routes. A
 * tentative IPv6 address is none; all of a prefix routed to this host are.
 */
#ifndef HYDNSD_NETDEV_ADDRESSES_H
#define HYDNSD_NETDEV_ADDRESSES_H

#include "hydnsd/daemon/daemon.h"

/* Learns all of them, and follows them: changed is called, in here too, when one has come or gone. */
int hydnsd_addresses_start(struct hydnsd *d, void (*changed)(struct hydnsd *d), char *why, size_t room);
void hydnsd_addresses_stop(struct hydnsd *d);

/* IPv4-mapped, network order. Whether the host has it, by itself or as one of a prefix. */
bool hydnsd_addresses_have(const struct hydnsd *d, const uint8_t addr[16]);
/* The n-th that the host has by itself; NULL: there is none. */
const uint8_t *hydnsd_addresses_get(const struct hydnsd *d, uint32_t n);

/* Every HYDNSD_HOUSEKEEPING_MS: looks again where the kernel tells of a change before it makes it. */
void hydnsd_addresses_tick(struct hydnsd *d);

#endif
