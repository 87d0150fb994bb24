/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/counts.h"

#include <string.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/daemon.h"

void hydnsd_resolver_counts_sum(const struct hydnsd_rules *r, uint32_t i, const struct hydns_resolver_count *now,
				const struct hydns_resolver_count *base, struct hydns_counts *out)
{
	memset(out, 0, sizeof(*out));
	hydnsd_rules_counts(r, i, out);
	out->answered = now->answered - base->answered;
	out->ipv6 = now->ipv6 - base->ipv6;
	out->edns = now->edns - base->edns;
	out->ad = now->ad - base->ad;
	out->octets = now->octets - base->octets;
	out->cookie_valid = now->cookie_valid - base->cookie_valid;
	out->cookie_client = now->cookie_client - base->cookie_client;
	out->cookie_invalid = now->cookie_invalid - base->cookie_invalid;
	out->limited = now->limited - base->limited;
	out->limited_ipv6 = now->limited_ipv6 - base->limited_ipv6;
	out->limited_edns = now->limited_edns - base->limited_edns;
	out->slipped = now->slipped - base->slipped;
	out->slipped_ipv6 = now->slipped_ipv6 - base->slipped_ipv6;
	out->slipped_edns = now->slipped_edns - base->slipped_edns;
	out->slipped_aa = now->slipped_aa - base->slipped_aa;
	out->slipped_nxdomain = now->slipped_nxdomain - base->slipped_nxdomain;
}

void hydnsd_resolver_queued(struct hydnsd *d, uint32_t i, struct hydns_queue_count *out)
{
	const struct hydns_queue_count *base = &hydns_kern_tallies(d->kern)->queued_base[i];
	struct hydns_queue_count now = *base;

	hydns_kern_queue_counts(d->kern, i, &now);
	out->queries = now.queries - base->queries;
	out->answers = now.answers - base->answers;
	out->full = now.full - base->full;
}

void hydnsd_resolver_counts_swept(const struct hydnsd *d, uint32_t i, struct hydns_counts *out)
{
	const struct hydns_resolver_count *base = &hydns_kern_tallies(d->kern)->base[i];
	struct hydns_resolver_count now = *base;
	struct hydns_type_counts below;

	hydns_kern_resolver_counts(d->kern, i, &now);
	hydnsd_resolver_counts_sum(d->rules, i, &now, base, out);
	if (hydns_kern_below_types(d->kern, i, &below))
		return;
	for (unsigned type = 0; type < HYDNS_COUNT_TYPES; type++)
		out->type[type] += below.type[type];
}

void hydnsd_resolver_counts(struct hydnsd *d, uint32_t i, struct hydns_counts *out)
{
	hydnsd_rules_sweep_of(d->rules, i, hydnsd_now_ns());
	hydnsd_resolver_counts_swept(d, i, out);
}
