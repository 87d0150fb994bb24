/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* How long something took, or how old it was, in buckets: what Prometheus calls a histogram. */
#ifndef HYDNSD_RULES_HISTOGRAM_H
#define HYDNSD_RULES_HISTOGRAM_H

#include <stdint.h>

#define HYDNSD_BUCKETS 13

/* Bounds of the buckets, in seconds, as a person would write them. The last bucket has what is above the last bound. */
enum hydnsd_scale {
	HYDNSD_SCALE_AGE,              /* of answers: a second to a day */
	HYDNSD_SCALE_WAIT,             /* of clients: 0.2 ms to 5 s */
	HYDNSD_SCALES
};

struct hydnsd_histogram {
	uint64_t count[HYDNSD_BUCKETS];
	double sum_s;
};

/* n times the same duration. */
void hydnsd_histogram_add(struct hydnsd_histogram *h, enum hydnsd_scale scale, uint64_t ns, uint64_t n);
/* "0.005", the upper bound of a bucket, which counts what is equal to it too; "inf" for the last one. */
const char *hydnsd_histogram_bound(enum hydnsd_scale scale, unsigned bucket);

#endif
