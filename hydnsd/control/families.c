/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/families.h"

#include <string.h>

#include "hydnsd/resolvers/services.h"
#include "hydnsd/netdev/prefixes.h"

struct serving {
	uint32_t resolver;
	struct hydnsd_families *out;
};

static void mark_served(const struct hydns_service_key *key, uint32_t resolver, void *arg)
{
	const struct serving *s = arg;

	if (s->resolver == resolver || s->resolver == HYDNS_RESOLVERS)
		s->out->served[hydnsd_is_mapped(key->addr) ? HYDNSD_IPV4 : HYDNSD_IPV6] = true;
}

bool hydnsd_families_off(const struct hydnsd *d, uint32_t family, struct hydnsd_sources_state *why)
{
	if (family != HYDNSD_IPV6 || d->with.ipv6 || !hydnsd_sources_get(d, family, why))
		return false;
	why->note = "ipv6: no";
	why->mend = "ipv6: auto, then hydnsctl reload";
	return true;
}

static bool is_passed(const struct hydnsd *d, uint32_t family, struct hydnsd_sources_state *why)
{
	return hydnsd_families_off(d, family, why) || hydnsd_sources_none(d, family, why);
}

void hydnsd_families_of(struct hydnsd *d, uint32_t resolver, struct hydnsd_families *out)
{
	struct serving s = { resolver, out };

	memset(out, 0, sizeof(*out));
	hydnsd_services_each(d, mark_served, &s);
	for (uint32_t f = 0; f < HYDNSD_FAMILIES; f++)
		out->passed[f] = out->served[f] && is_passed(d, f, &out->why[f]);
}

bool hydnsd_families_none(const struct hydnsd_families *f)
{
	bool served = false, answered = false;

	for (uint32_t i = 0; i < HYDNSD_FAMILIES; i++) {
		served |= f->served[i];
		answered |= f->served[i] && !f->passed[i];
	}
	return served && !answered;
}

json_t *hydnsd_families_json(const struct hydnsd_families *f)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < HYDNSD_FAMILIES; i++)
		if (f->passed[i])
			json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "family", f->why[i].family, "note",
				f->why[i].note, "mend", f->why[i].mend));
	return list;
}
