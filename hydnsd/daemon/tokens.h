/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A token bucket: holds `most' tokens, and gets one every each_ns nanoseconds. All zero: full. */
#ifndef HYDNSD_DAEMON_TOKENS_H
#define HYDNSD_DAEMON_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "hydnsd/daemon/clock.h"

struct hydnsd_tokens {
	uint64_t used_until_ns;        /* full: in the past; empty: most * each_ns ahead */
};

/* each_ns, from tokens a second. */
static inline uint64_t hydnsd_tokens_each_ns(uint32_t rate)
{
	return HYDNS_NS_PER_S / rate;
}

/* At most as empty as this bucket can be: tokens taken while it was larger or slower count no further. */
static inline uint64_t hydnsd_tokens_used_until(const struct hydnsd_tokens *t, uint32_t most, uint64_t each_ns, uint64_t now_ns)
{
	uint64_t empty = now_ns + most * each_ns;

	return t->used_until_ns < empty ? t->used_until_ns : empty;
}

/* Nanoseconds until there is a token; 0: now. */
static inline uint64_t hydnsd_tokens_wait(const struct hydnsd_tokens *t, uint32_t most, uint64_t each_ns, uint64_t now_ns)
{
	uint64_t used = hydnsd_tokens_used_until(t, most, each_ns, now_ns), room = (most - 1) * each_ns;

	return used > now_ns + room ? used - now_ns - room : 0;
}

static inline bool hydnsd_tokens_take(struct hydnsd_tokens *t, uint32_t most, uint64_t each_ns, uint64_t now_ns)
{
	t->used_until_ns = hydnsd_tokens_used_until(t, most, each_ns, now_ns);
	if (hydnsd_tokens_wait(t, most, each_ns, now_ns))
		return false;
	t->used_until_ns = (t->used_until_ns > now_ns ? t->used_until_ns : now_ns) + each_ns;
	return true;
}

#endif
