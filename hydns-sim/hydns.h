/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Options of the hyDNS contender: those of unbound.conf and hydnsd.conf that affect the policy. */
#ifndef HYDNS_SIM_HYDNS_H
#define HYDNS_SIM_HYDNS_H

#include <stdint.h>

struct sim_hydns_options {
	uint64_t seed;                 /* of the keyed hashes */
	uint32_t admission;            /* hydns-admission */
	uint32_t window_s;             /* hydns-window */
	uint32_t min_ttl;              /* hydns-min-ttl */
	uint32_t refresh_percent;      /* hydns-refresh */
	uint32_t min_hits;             /* min-hits of hydnsd */
};
/* The defaults of resolver and hydnsd. */
#define SIM_HYDNS_DEFAULTS { .seed = 1, .admission = 1, .window_s = 600, .min_ttl = 2, .refresh_percent = 10, .min_hits = 0 }
/* The options in force; change them before a contender is opened. */
struct sim_hydns_options *sim_hydns_options(void);

#endif
