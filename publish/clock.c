/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Clocks. All are vDSO calls: no kernel entry. */
#include <time.h>
#include "publish/internal.h"

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
