/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* How much of hydnsd's capacity preloaded rules may take. */
#ifndef HYDNSD_RULES_KEPT_H
#define HYDNSD_RULES_KEPT_H

#include <stdint.h>

/* The share of preloaded rules: three quarters. Popular rules have the rest. */
static inline uint32_t hydnsd_kept_share(uint32_t capacity)
{
	return capacity - capacity / 4;
}

#endif
