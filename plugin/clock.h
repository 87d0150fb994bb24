/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Clocks, for the library and for the code in the resolvers. */
#ifndef PLUGIN_CLOCK_H
#define PLUGIN_CLOCK_H

#include <stdint.h>
#include "hydns/common.h"

uint64_t hydns_mono_ns(void);
uint64_t hydns_mono_coarse_ms(void);  /* a few milliseconds late, and cheap: what now_ms is in plugin.h */
uint64_t hydns_real_ns(void);
/* The wall clock and the monotonic one at the same moment, to convert times. */
struct hydns_moment {
	uint64_t real_ns, mono_ns;
};
struct hydns_moment hydns_moment(void);
/* Seconds that CLOCK_TAI is ahead of the wall clock: 0 unless a time service has set it. */
int32_t hydns_tai_offset(void);

#endif
