/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/ctl/estimate/estimate.h"

#include <unistd.h>

#include "hydns/names.h"
#include "hydns/preload.h"
#include "hydnsd/rules/kept.h"

#define CAPACITY_MOST (1U << 27)       /* that a store can have at all: HYDNS_ORDINALS_MOST, and those that wait for a grace period */

/* -- rules ------------------------------------------------------------------------------------------------------------- */
/* A rule of so many octets more. */
static void add_rule(struct ctl_estimate *e, uint32_t space)
{
	uint32_t size_class = hydns_class_for(space);

	e->rules++;
	e->rules_of[size_class]++;
	e->slot_octets += hydns_class_size(size_class);
}

static void add_answer(const struct ctl_zone *z, uint32_t name, bool below, const struct ctl_answer *a, struct ctl_estimate *e)
{
	e->questions++;
	if (a->why != CTL_KEPT) {
		e->unkept[a->why]++;
		return;
	}
	e->glue += a->a && a->aaaa;
	add_rule(e, ctl_answer_space(z, name, below, a));
}

/* variants: a bit each. */
static void ask(const struct ctl_zone *z, uint32_t name, uint16_t type, unsigned variants, struct ctl_estimate *e)
{
	for (unsigned variant = 0; variant < HYDNS_PRELOAD_VARIANTS; variant++) {
		struct ctl_answer a;

		if (!(variants >> variant & 1))
			continue;
		ctl_answer(z, name, type, variant, &a);
		add_answer(z, name, false, &a, e);
	}
}

static void ask_below(const struct ctl_zone *z, uint32_t name, struct ctl_estimate *e)
{
	for (unsigned variant = 0; variant < HYDNS_PRELOAD_VARIANTS; variant++) {
		struct ctl_answer a;

		ctl_answer_below(z, name, variant, &a);
		add_answer(z, name, true, &a, e);
	}
}

/* What is asked beside the name's own data. Where that is among these, the answer has its rule already. */
static void ask_more(const struct ctl_zone *z, uint32_t name, const struct hydns_preload_found *found, struct ctl_estimate *e)
{
	uint16_t type[HYDNS_PRELOAD_MORE];
	unsigned n = hydns_preload_more(found, name == CTL_ZONE_ORIGIN, type);

	for (unsigned i = 0; i < n; i++)
		if (ctl_zone_find(z, name, type[i]))
			e->questions += HYDNS_PRELOAD_VARIANTS;
		else
			ask(z, name, type[i], HYDNS_PRELOAD_ALL, e);
	if (hydns_preload_no_ds(found, name == CTL_ZONE_ORIGIN, ctl_zone_is_signed(z)))
		ask(z, name, HYDNS_TYPE_DS, HYDNS_PRELOAD_PROOFS, e);
}

/* All rules of one name. */
static void add_name(const struct ctl_zone *z, uint32_t name, struct ctl_estimate *e)
{
	struct hydns_preload_found found = { 0 };
	bool any = false;

	for (uint32_t i = z->name[name].sets; i != CTL_ZONE_NONE; i = z->set[i].next) {
		if (!z->set[i].records)
			continue;
		any = true;
		hydns_preload_look_at(&found, z->set[i].type);
		if (hydns_preload_asks(z->set[i].type))
			ask(z, name, z->set[i].type, HYDNS_PRELOAD_ALL, e);
	}
	ask_more(z, name, &found, e);
	if (hydns_preload_below(&found))
		ask_below(z, name, e);
	e->names += any;
}

/* Of the set of names, and of the table of children, or of hashes with NSEC3, where the zone is signed. */
static uint64_t set_octets(const struct ctl_zone *z, uint64_t names)
{
	const bool nsec = ctl_zone_find(z, CTL_ZONE_ORIGIN, HYDNS_TYPE_NSEC);
	const uint64_t children = nsec ? names : z->nsec3;
	const uint32_t buckets = hydns_names_buckets(names > children ? names : children);

	return (uint64_t)hydns_soa_element(buckets - 1, hydns_names_leaves(children, buckets), 1) * sizeof(struct hydns_names_bucket);
}

void ctl_estimate(const struct ctl_zone *z, struct ctl_estimate *out)
{
	*out = (struct ctl_estimate){ 0 };
	for (uint32_t i = 0; i < z->names; i++)
		add_name(z, i, out);
	out->set_octets = set_octets(z, out->names);
}

/* -- capacity ---------------------------------------------------------------------------------------------------------- */
void ctl_geometry(uint32_t capacity, struct hydns_geometry *out)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), present = sysconf(_SC_NPROCESSORS_ONLN);

	hydns_geometry_for(capacity, cpus > 0 ? (uint32_t)cpus : 1, present > 0 ? (uint32_t)present : 1, out);
}

/* Spans that slots of these sizes take: a span holds slots of one size. */
static uint64_t spans_of(const struct ctl_estimate *e)
{
	uint64_t spans = 0;

	for (uint32_t c = 0; c < HYDNS_SIZE_CLASSES; c++) {
		uint32_t in_span = HYDNS_SPAN / hydns_class_size(c);

		spans += (e->rules_of[c] + in_span - 1) / in_span;
	}
	return spans;
}

bool ctl_estimate_fits(const struct ctl_estimate *e, uint32_t capacity)
{
	struct hydns_geometry g;

	ctl_geometry(capacity, &g);
	return e->rules <= hydnsd_kept_share(capacity) && spans_of(e) <= hydnsd_kept_share(g.spans);
}

uint32_t ctl_estimate_capacity(const struct ctl_estimate *e)
{
	uint32_t low = 1, high = CAPACITY_MOST;

	if (!ctl_estimate_fits(e, high))
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ctl_estimate_fits(e, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
