/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Chooses a client for dry runs when the operator names none: one that the access list in the kernel lets in. */
#ifndef HYDNSD_CONTROL_PICK_H
#define HYDNSD_CONTROL_PICK_H

#include "hydnsd/daemon/daemon.h"

/* Whether this client gets past the access list, by a dry run. */
typedef bool (*hydnsd_pick_try)(const uint8_t client[16], void *arg);

/*
 * Tries the first hosts of the prefixes that resolver i lets in, the widest prefix first, and takes the first host for which
 * try() is true. If it is true for none, takes the first host; without any prefix, an address for documentation (RFC 5737,
 * RFC 3849). out: IPv4-mapped.
 */
void hydnsd_pick_client(struct hydnsd *d, uint32_t i, bool v4, hydnsd_pick_try try, void *arg, uint8_t out[16]);

#endif
