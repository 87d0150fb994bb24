/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* CLOCK_MONOTONIC, the clock of rules and pages. */
#ifndef HYDNSD_DAEMON_CLOCK_H
#define HYDNSD_DAEMON_CLOCK_H

#include <stdint.h>
#include <time.h>
#include "hydns/common.h"

static inline uint64_t hydnsd_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * HYDNS_NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t hydnsd_now_ms(void)
{
	return hydnsd_now_ns() / HYDNS_NS_PER_MS;
}

#endif
