/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Round-trip times and health of upstream servers. */
#include <string.h>

#include "hydnsd/forwarding/forwarding.h"

#define TIMEOUT_UNKNOWN_MS 400         /* Unbound's is 376 */
#define TIMEOUT_LEAST_MS   50
#define TIMEOUT_MOST_MS    1000
#define FAILURES_MOST      3           /* in a row: then it is down */
#define DOWN_LEAST_MS      1000
#define DOWN_SHIFT_MOST    5           /* down for 32 s at most */
#define BAND_US            400000      /* Unbound chooses among servers that are no more than this slower than the fastest */

void hydnsd_upstreams_set(struct hydnsd_forward_resolver *r, const struct hydnsd_zones *z)
{
	struct hydnsd_upstream former[HYDNS_FORWARD_UPSTREAMS];

	memcpy(former, r->upstream, sizeof(former));
	memset(r->upstream, 0, sizeof(r->upstream));
	for (uint32_t i = 0; i < HYDNS_FORWARD_UPSTREAMS; i++) {
		struct hydnsd_upstream *u = &r->upstream[i];

		for (uint32_t k = 0; z && i < z->servers && k < HYDNS_FORWARD_UPSTREAMS; k++)
			if (!memcmp(&former[k].server, &z->server[i], sizeof(u->server)))
				*u = former[k];
		if (z && i < z->servers)
			u->server = z->server[i];
		u->way = HYDNSD_WAY_UNKNOWN;
		u->looked_ms = 0;
		u->open_count = 0;
		TAILQ_INIT(&u->open);
	}
}

uint32_t hydnsd_upstream_timeout_ms(const struct hydnsd_upstream *u)
{
	uint32_t ms = 4 * u->variation_us / 1000;

	if (!u->srtt_us)
		return TIMEOUT_UNKNOWN_MS;
	/* The least is what comes above the mean: a server that always takes as long may once take a little longer. */
	ms = u->srtt_us / 1000 + (ms > TIMEOUT_LEAST_MS ? ms : TIMEOUT_LEAST_MS);
	/* RFC 6298 section 5.5: else a server that has become slow would never be heard again */
	ms <<= u->failures < FAILURES_MOST ? u->failures : FAILURES_MOST;
	return ms < TIMEOUT_MOST_MS ? ms : TIMEOUT_MOST_MS;
}

void hydnsd_upstream_answered(struct hydnsd_upstream *u, uint64_t rtt_ns)
{
	uint32_t us = rtt_ns / 1000 < UINT32_MAX / 8 ? (uint32_t)(rtt_ns / 1000) : UINT32_MAX / 8;
	uint32_t apart = us > u->srtt_us ? us - u->srtt_us : u->srtt_us - us;

	u->answers++;
	u->failures = 0;
	u->down_until_ms = 0;
	if (!u->srtt_us) {
		u->srtt_us = us ? us : 1;
		u->variation_us = us / 2;
		return;
	}
	u->variation_us = (u->variation_us * 3 + apart) / 4;
	u->srtt_us = (u->srtt_us * 7 + us) / 8;
	u->srtt_us += !u->srtt_us;
}

void hydnsd_upstream_timed_out(struct hydnsd_upstream *u, uint64_t now_ms)
{
	uint32_t more;

	u->timeouts++;
	if (++u->failures < FAILURES_MOST)
		return;
	more = u->failures - FAILURES_MOST;
	/* requests that were open when it went down say nothing new */
	if (u->down_until_ms > now_ms) {
		u->failures--;
		return;
	}
	u->down_until_ms = now_ms + ((uint64_t)DOWN_LEAST_MS << (more < DOWN_SHIFT_MOST ? more : DOWN_SHIFT_MOST));
}

uint32_t hydnsd_upstreams_usable(struct hydnsd_forward_resolver *r, uint64_t now_ms)
{
	uint32_t usable = 0, best = UINT32_MAX;

	for (uint32_t i = 0; i < HYDNS_FORWARD_UPSTREAMS; i++) {
		const struct hydnsd_upstream *u = &r->upstream[i];

		if (u->way == HYDNSD_WAY_FOUND && u->down_until_ms <= now_ms) {
			usable |= 1U << i;
			best = u->srtt_us < best ? u->srtt_us : best;
		}
	}
	for (uint32_t i = 0; i < HYDNS_FORWARD_UPSTREAMS; i++)
		if ((usable >> i & 1) && r->upstream[i].srtt_us - best > BAND_US)
			usable &= ~(1U << i);
	return usable;
}
