/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Workloads from a seed: the same options give the same requests on every machine. */
#ifndef HYDNS_SIM_GENERATE_H
#define HYDNS_SIM_GENERATE_H

#include "hydns-sim/trace.h"

#define SIM_TTLS_MAX 16

struct sim_workload {
	uint64_t seed;
	uint32_t requests, names;
	double zipf, plateau;          /* weight of rank k: (k + plateau) ^ -zipf */
	double fresh;                  /* share of requests for names that never repeat */
	double rate;                   /* requests a second, Poisson */
	double churn;                  /* swaps of two names a second */
	uint32_t ttl[SIM_TTLS_MAX], ttls; /* all equally probable */
	/* events, as shares of the requests; 0: none */
	double flash_at;               /* from here on a new name has half of the requests */
	double scan_from, scan_to, scan; /* between these a scan adds requests for names that never repeat: this share of all */
	double rate_at, rate_factor;   /* from here on the rate is multiplied by the factor */
	double day;                    /* so many periods in which popularity moves to another order of the names, and back */
};
#define SIM_WORKLOAD_DEFAULTS { .seed = 1, .requests = 5000000, .names = 1000000, .zipf = 1.0, .fresh = 0.2, \
	.rate = 5000, .ttl = { 20, 60, 300, 3600 }, .ttls = 4, .rate_factor = 1 }

/* False without memory. */
bool sim_generate(const struct sim_workload *w, struct sim_trace *out);

#endif
