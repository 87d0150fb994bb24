/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Of what the program is to consist now, by the options, by what the host has, and by what resolvers ask for. */
#ifndef HYDNSD_COMPOSITION_WANTED_H
#define HYDNSD_COMPOSITION_WANTED_H

#include "hydnsd/daemon/daemon.h"

enum hydnsd_part {
#define HYDNS_PART(name, constant, text) HYDNSD_PART_##name,
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	HYDNSD_PARTS
};

/* A part that only resolvers asked for stays so long after none does: one that restarts finds it. */
#define HYDNSD_PART_STAYS_NS (60 * HYDNS_NS_PER_S)

#define HYDNSD_PART_WHY 160
struct hydnsd_wanted {
	bool part[HYDNSD_PARTS];
	char why[HYDNSD_PARTS][HYDNSD_PART_WHY]; /* why it is in, or not */
	struct hydns_loader_guard limits;        /* of the guard; all 0 without it */
};

/* What resolvers ask for, as bits that differ if it is something else; without a look at the host. */
uint32_t hydnsd_asking(const struct hydnsd *d);
/* Fills *out. Looks at the host, which takes some reads of /proc. */
void hydnsd_wanted(struct hydnsd *d, struct hydnsd_wanted *out);
struct hydns_composition hydnsd_composition_of(const struct hydnsd_wanted *w);

const char *hydnsd_part_name(enum hydnsd_part p);  /* as in composition.def */
const char *hydnsd_part_text(enum hydnsd_part p);

#endif
