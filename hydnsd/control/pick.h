/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A client to ask as, where the operator names none: one that the access list in the kernel lets in. */
#ifndef HYDNSD_CONTROL_PICK_H
#define HYDNSD_CONTROL_PICK_H

#include "hydnsd/daemon/daemon.h"

/* Whether this client gets past the access list: the program's word. */
typedef bool (*hydnsd_pick_try)(const uint8_t client[16], void *arg);

/*
 * The first that try() likes among the first hosts of the prefixes that resolver i lets in, the widest first; if it likes
 * none, the first of them; if there is none, an address of nobody's (RFC 5737, RFC 3849). out: IPv4-mapped.
 */
void hydnsd_pick_client(struct hydnsd *d, uint32_t i, bool v4, hydnsd_pick_try try, void *arg, uint8_t out[16]);

#endif
