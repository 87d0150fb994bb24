/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/offers/hot.h"

#include "hydns/common.h"

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

void hydns_sample_start(struct hydns_sample *k, uint32_t seed)
{
	*k = (struct hydns_sample){ .weight = 1, .next_weight = 1, .random = seed | 1 };
}

/* Marsaglia's xorshift (J. Stat. Softw. 8(14), 2003). Guessing its numbers gains nothing. */
static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

bool hydns_sample_skips(struct hydns_sample *k, uint32_t now_s)
{
	/* Only within the second, so that a time without queries ends the skipping. */
	if (!k->left || now_s != k->second)
		return false;
	k->left--;
	return true;
}

/* By the rate in the time that is over. A clock that steps back makes that look long. */
static void weigh_again(struct hydns_sample *k, uint64_t now_ms)
{
	uint64_t weight = k->seen * 1000ULL / (now_ms - k->since_ms) / HYDNS_SAMPLE_PER_S;

	k->next_weight = weight < 1 ? 1 : weight > HYDNS_SAMPLE_MAX ? HYDNS_SAMPLE_MAX : (uint32_t)weight;
	k->since_ms = now_ms;
	k->seen = 0;
}

void hydns_sample_take(struct hydns_sample *k, uint32_t now_s, uint64_t now_ms)
{
	k->second = now_s;
	k->weight = k->next_weight;
	k->seen += k->gap - k->left + 1;
	if (now_ms - k->since_ms >= HYDNS_SAMPLE_MS)
		weigh_again(k, now_ms);
	k->gap = k->next_weight == 1 ? 0 : next_random(&k->random) % (2 * k->next_weight - 1);
	k->left = k->gap;
}

uint32_t hydns_hot_sighted(const struct hydns_hot *h, uint64_t key, uint32_t store_serial, uint32_t admission,
			   uint32_t threshold, uint32_t times, uint64_t now_ms)
{
	uint32_t count = hydns_sketch_weigh(h->sketch, key, times, now_ms);

	if (count < admission)
		return 0;
	if (threshold && !hydns_policy_promises(count, hydns_sketch_window_ms(h->sketch), threshold) &&
	    !hydns_offered_before(h->offered, key, store_serial))
		return 0;
	return count;
}

bool hydns_hot_seen(const struct hydns_hot *h, uint64_t key, uint32_t expires, uint32_t store_serial,
		    uint32_t admission, uint32_t threshold, uint32_t times, uint64_t now_ms)
{
	uint32_t count = hydns_hot_sighted(h, key, store_serial, admission, threshold, times, now_ms);

	return count && !hydns_offered_lately(h->offered, key, expires, store_serial, (uint32_t)now_ms, count);
}

bool hydns_hot_near_end(uint64_t expires, uint64_t lifetime, uint64_t now, uint32_t percent)
{
	uint64_t part = lifetime / 100 * percent + lifetime % 100 * percent / 100;

	if (part < REFRESH_MIN_S)
		part = REFRESH_MIN_S;
	if (part > (lifetime + 1) / 2)
		part = (lifetime + 1) / 2;
	return percent && expires > now && expires - now <= part;
}

bool hydns_hot_refresh_due(const struct hydns_hot *h, uint64_t key, uint32_t store_serial, uint64_t now_ms)
{
	return hydns_offered_claim_refresh(h->offered, key, store_serial, (uint32_t)now_ms, HYDNS_REFRESH_REARM_MS);
}
