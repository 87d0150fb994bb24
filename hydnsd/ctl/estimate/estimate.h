/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What preloading a zone takes: questions, rules, slots, and the capacity of a hydnsd that has room for them. */
#ifndef HYDNSD_CTL_ESTIMATE_ESTIMATE_H
#define HYDNSD_CTL_ESTIMATE_ESTIMATE_H

#include "hydns-kern/store/geometry.h"
#include "hydns-kern/store/slots.h"
#include "hydnsd/ctl/estimate/answer.h"

struct ctl_estimate {
	uint64_t names;                /* that have data */
	uint64_t questions;            /* each variant counted, as named's notes count them: twice where two causes ask the same */
	uint64_t rules;
	uint64_t unkept[CTL_UNKEPT_REASONS]; /* questions whose answers become no rule, by reason */
	uint64_t glue;                 /* of the rules, those that named gives to everybody only with preferred-glue */
	uint64_t rules_of[HYDNS_SIZE_CLASSES];
	uint64_t slot_octets;
	uint64_t set_octets;           /* of the set of names */
};

void ctl_estimate(const struct ctl_zone *z, struct ctl_estimate *out);

/* The sizes of a store of this capacity on this host. */
void ctl_geometry(uint32_t capacity, struct hydns_geometry *out);
/* Whether a hydnsd of this capacity has room for them: kept rules may have their share of the rules, and of the slots. */
bool ctl_estimate_fits(const struct ctl_estimate *e, uint32_t capacity);
/* The least capacity that has; 0: none. */
uint32_t ctl_estimate_capacity(const struct ctl_estimate *e);

#endif
