/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a plugin has said of its resolver's configuration, and the part of it that the program reads. */
#ifndef HYDNSD_RESOLVERS_CONFIGURATION_H
#define HYDNSD_RESOLVERS_CONFIGURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/session.h"

struct hydnsd;
struct hydnsd_resolver;

/* Writes the resolver's configuration into the program's map. live: the program may answer for it. */
void hydnsd_configuration_write(struct hydnsd *d, uint32_t i, bool live);
/* Frees access list, sockets, refusals and notes; the maps stay as they are. */
void hydnsd_configuration_forget(struct hydnsd_resolver *r);
/* Copies a note; len: octets of its text. 0, -ENOSPC or -ENOMEM. */
int hydnsd_configuration_add_note(struct hydnsd *d, uint32_t i, const struct hydns_note *n, size_t len);

#endif
