/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Clocks. All are vDSO calls: no kernel entry. */
#include <time.h>
#include "plugin/clock.h"

#define HELD_UP_NS HYDNS_NS_PER_MS

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * HYDNS_NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t hydns_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t hydns_mono_coarse_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE) / HYDNS_NS_PER_MS;
}

uint64_t hydns_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* A thread that loses its CPU between the two readings would make TTLs end late. What delay may remain after the second
 * reading makes them end early. */
struct hydns_moment hydns_moment(void)
{
	struct hydns_moment m;

	do {
		m.mono_ns = hydns_mono_ns();
		m.real_ns = hydns_real_ns();
	} while (hydns_mono_ns() - m.mono_ns > HELD_UP_NS);
	return m;
}

int32_t hydns_tai_offset(void)
{
	uint64_t before, tai, after;

	/* The two can't be read at once: again if the wall clock was set in between, or we were held up. */
	do {
		before = hydns_real_ns();
		tai = clock_ns(CLOCK_TAI);
		after = hydns_real_ns();
	} while (after - before > HYDNS_NS_PER_S / 4);
	return (int32_t)(((int64_t)(tai - before) + (int64_t)HYDNS_NS_PER_S / 2) / (int64_t)HYDNS_NS_PER_S);
}
