/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The list of waits.def as numbers. */
#ifndef HYDNS_WAITS_H
#define HYDNS_WAITS_H

#include <linux/types.h>

enum {
#define HYDNS_WAIT(us, text) HYDNS_WAIT_AT_MOST_##us,
#include "hydns/waits.def"
#undef HYDNS_WAIT
	HYDNS_WAIT_LONGER,
	HYDNS_WAITS
};

/* The bucket of a wait. */
static inline unsigned hydns_wait_bucket(__u32 microseconds)
{
	static const __u32 bound[] = {
#define HYDNS_WAIT(us, text) us,
#include "hydns/waits.def"
#undef HYDNS_WAIT
	};
	unsigned i = 0;

	while (i < HYDNS_WAIT_LONGER && microseconds > bound[i])
		i++;
	return i;
}

#endif
