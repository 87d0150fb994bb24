/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Secrets of DNS cookies on their way from a resolver to the program. They are kept in the program's map
 * alone, two places for each resolver: what is written goes where no program looks, and gets the number
 * that makes it count after a grace period; what is wiped goes after one.
 */
#ifndef HYDNSD_RESOLVERS_COOKIES_H
#define HYDNSD_RESOLVERS_COOKIES_H

#include "hydnsd/daemon/daemon.h"

/* Told when the program uses the secrets (error 0), or that they could not be written (negative errno). */
typedef void hydnsd_cookies_done(struct hydnsd *d, uint64_t client, uint32_t tag, int error);

/* Gives the program resolver i's secrets; done is called with client and tag, now or later, unless 0 is
 * not returned (negative errno: nothing was changed) or the secrets are wiped or replaced meanwhile. */
int hydnsd_cookies_set(struct hydnsd *d, uint32_t i, const struct hydns_cookies *c,
		       hydnsd_cookies_done *done, uint64_t client, uint32_t tag);
/* Resolver i's secrets go, whatever was under way; at once when no program can be reading them. */
void hydnsd_cookies_wipe(struct hydnsd *d, uint32_t i, bool at_once);

#endif
