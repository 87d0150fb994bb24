/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "publish/hot.h"

#include "hydns/abi.h"

#define WIDTH_MIN (1U << 11)           /* counters per row */
#define WIDTH_MAX (1U << 23)
#define REFRESH_MIN_S (HYDNS_REFRESH_MIN_MS / 1000)

uint32_t hydns_hot_sketch_width(uint32_t capacity)
{
	uint64_t width = 16ULL * (capacity ? capacity : HYDNS_HOT_CAPACITY);

	if (width < WIDTH_MIN)
		return WIDTH_MIN;
	return width > WIDTH_MAX ? WIDTH_MAX : (uint32_t)width;
}

bool hydns_hot_seen(const struct hydns_hot *h, uint64_t key, uint32_t expires, uint32_t session,
		    uint32_t admission, uint32_t bar, uint64_t now_ms)
{
	uint32_t count = hydns_sketch_touch(h->sketch, key, now_ms);

	if (count < admission)
		return false;
	if (bar && !hydns_policy_promises(count, hydns_sketch_window_ms(h->sketch), bar) &&
	    !hydns_offered_before(h->offered, key, session))
		return false;
	return !hydns_offered_lately(h->offered, key, expires, session, (uint32_t)now_ms, count);
}

bool hydns_hot_renew(const struct hydns_hot *h, uint64_t key, uint32_t session, uint64_t expires, uint64_t lifetime,
		     uint64_t now, uint32_t percent, uint64_t now_ms)
{
	uint64_t part = lifetime / 100 * percent + lifetime % 100 * percent / 100;

	if (part < REFRESH_MIN_S)
		part = REFRESH_MIN_S;
	if (part > (lifetime + 1) / 2)
		part = (lifetime + 1) / 2;
	if (!percent || expires <= now || expires - now > part)
		return false;
	return hydns_offered_claim_renewal(h->offered, key, session, (uint32_t)now_ms, HYDNS_REFRESH_REARM_MS);
}
