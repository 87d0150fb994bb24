/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * This host's addresses: those that the kernel delivers locally now, by its table of local routes. Each address of a prefix
 * that is routed to this host is one; a tentative IPv6 address is none.
 */
#ifndef HYDNSD_NETDEV_ADDRESSES_H
#define HYDNSD_NETDEV_ADDRESSES_H

#include "hydnsd/daemon/daemon.h"

/* Reads all addresses and follows changes: calls changed, in here too, when one has come or gone. 0, or a negative errno and
 * a line in why. */
int hydnsd_addresses_start(struct hydnsd *d, void (*changed)(struct hydnsd *d), char *why, size_t room);
void hydnsd_addresses_stop(struct hydnsd *d);

/* Whether the host has this address, as a whole or within a prefix. addr: IPv4-mapped, network order. */
bool hydnsd_addresses_have(const struct hydnsd *d, const uint8_t addr[16]);
/* The n-th address of 128 bits; NULL: there is none. */
const uint8_t *hydnsd_addresses_get(const struct hydnsd *d, uint32_t n);

/* Every HYDNSD_HOUSEKEEPING_MS: reads again after a notice, which may precede its change, or an error. */
void hydnsd_addresses_tick(struct hydnsd *d);

#endif
