/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A limit to what each user asks for that costs hydnsd much. By user, because a client can begin a new session at will. */
#ifndef HYDNSD_RESOLVERS_USER_RATES_H
#define HYDNSD_RESOLVERS_USER_RATES_H

#include <sys/types.h>

#include "hydnsd/daemon/tokens.h"

#define HYDNSD_USER_RATES 64           /* users; of more, the one who has asked least of late is forgotten */

struct hydnsd_user_rates {
	struct hydnsd_user_rate {
		uid_t uid;
		struct hydnsd_tokens tokens;
	} of[HYDNSD_USER_RATES];
};

/* 0: allowed, and counted; else how many ns the user has to wait. at_once: so many are allowed after a pause; each_ns: then
 * one each so many ns. */
uint64_t hydnsd_user_rates_take(struct hydnsd_user_rates *a, uid_t uid, uint32_t at_once, uint64_t each_ns, uint64_t now_ns);

#endif
