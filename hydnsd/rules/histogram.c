/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/histogram.h"

#include "hydns/common.h"

struct bound {
	uint64_t ns;
	const char *text;
};

#define SECONDS(n)      { (n) * HYDNS_NS_PER_S, #n }
#define MILLI(n, text)  { (n) * HYDNS_NS_PER_MS, text }
static const struct bound bounds[HYDNSD_SCALES][HYDNSD_BUCKETS] = {
	[HYDNSD_SCALE_AGE] = {
		SECONDS(1), SECONDS(5), SECONDS(10), SECONDS(30), SECONDS(60), SECONDS(120), SECONDS(300), SECONDS(900),
		SECONDS(3600), SECONDS(10800), SECONDS(43200), SECONDS(86400), { UINT64_MAX, "inf" },
	},
	[HYDNSD_SCALE_WAIT] = {
		{ HYDNS_NS_PER_MS / 5, "0.0002" }, MILLI(1, "0.001"), MILLI(2, "0.002"), MILLI(5, "0.005"), MILLI(10, "0.01"),
		MILLI(20, "0.02"), MILLI(50, "0.05"), MILLI(100, "0.1"), MILLI(200, "0.2"), MILLI(500, "0.5"), SECONDS(1), SECONDS(5),
		{ UINT64_MAX, "inf" },
	},
};

void hydnsd_histogram_add(struct hydnsd_histogram *h, enum hydnsd_scale scale, uint64_t ns, uint64_t n)
{
	unsigned i = 0;

	while (ns > bounds[scale][i].ns)
		i++;
	h->count[i] += n;
	h->sum_s += (double)ns / HYDNS_NS_PER_S * (double)n;
}

const char *hydnsd_histogram_bound(enum hydnsd_scale scale, unsigned bucket)
{
	return bounds[scale][bucket].text;
}
