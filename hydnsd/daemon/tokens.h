/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A token bucket: so many at once, and one more each so many milliseconds. All zero at first: full. */
#ifndef HYDNSD_DAEMON_TOKENS_H
#define HYDNSD_DAEMON_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

struct hydnsd_tokens {
	uint64_t used_until_ms;        /* a full bucket's is in the past, an empty one's is most ahead */
};

/* From so many a second, 1 to 1000. */
static inline uint32_t hydnsd_tokens_each_ms(uint32_t rate)
{
	return 1000 / rate;
}

/* Milliseconds until there is one; 0: now. */
static inline uint64_t hydnsd_tokens_wait(const struct hydnsd_tokens *t, uint32_t most, uint32_t each_ms, uint64_t now_ms)
{
	uint64_t room = (uint64_t)(most - 1) * each_ms;

	return t->used_until_ms > now_ms + room ? t->used_until_ms - now_ms - room : 0;
}

static inline bool hydnsd_tokens_take(struct hydnsd_tokens *t, uint32_t most, uint32_t each_ms, uint64_t now_ms)
{
	if (hydnsd_tokens_wait(t, most, each_ms, now_ms))
		return false;
	t->used_until_ms = (t->used_until_ms > now_ms ? t->used_until_ms : now_ms) + each_ms;
	return true;
}

#endif
