/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Secrets of DNS cookies, from a resolver to the program. hydnsd keeps them in the program's map alone, which has two places
 * for each resolver. It writes a set where no program looks, and after a grace period adds the number that makes the set
 * valid. It wipes secrets after a grace period, too.
 */
#ifndef HYDNSD_RESOLVERS_COOKIES_H
#define HYDNSD_RESOLVERS_COOKIES_H

#include "hydnsd/daemon/daemon.h"

/* error: 0, the program uses the secrets; negative errno: they could not be written. */
typedef void hydnsd_cookies_done(struct hydnsd *d, uint64_t client, uint32_t tag, int error);

/* Gives resolver i's secrets to the program. 0: calls done with client and tag, now or later, unless the secrets are wiped
 * or replaced meanwhile. Negative errno: nothing has changed, and done is not called. */
int hydnsd_cookies_set(struct hydnsd *d, uint32_t i, const struct hydns_cookies *c,
		       hydnsd_cookies_done *done, uint64_t client, uint32_t tag);
/* Wipes resolver i's secrets and cancels what is under way. at_once: no program can be reading them. */
void hydnsd_cookies_wipe(struct hydnsd *d, uint32_t i, bool at_once);

#endif
