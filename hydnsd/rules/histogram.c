/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/histogram.h"

#include "hydns/common.h"
#include "hydns/waits.h"

HYDNS_STATIC_ASSERT(HYDNS_WAITS == HYDNSD_BUCKETS, "plugins count in the same buckets");

struct bound {
	uint64_t ns;
	const char *text;
};

#define SECONDS(n)      { (n) * HYDNS_NS_PER_S, #n }
static const struct bound bounds[HYDNSD_SCALES][HYDNSD_BUCKETS] = {
	[HYDNSD_SCALE_AGE] = {
		SECONDS(1), SECONDS(5), SECONDS(10), SECONDS(30), SECONDS(60), SECONDS(120), SECONDS(300), SECONDS(900),
		SECONDS(3600), SECONDS(10800), SECONDS(43200), SECONDS(86400), { UINT64_MAX, "inf" },
	},
	[HYDNSD_SCALE_WAIT] = {
#define HYDNS_WAIT(us, text) { (us) * HYDNS_NS_PER_US, text },
#include "hydns/waits.def"
#undef HYDNS_WAIT
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
