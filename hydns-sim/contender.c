/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/contender.h"

#include <string.h>

extern const struct contender_kind contender_hydns, contender_clairvoyant, contender_optimum, contender_topn,
	contender_rates, contender_lru, contender_lfu, contender_wtinylfu, contender_s3fifo, contender_sieve;

const struct contender_kind *const sim_contenders[] = {
	&contender_hydns, &contender_optimum, &contender_clairvoyant, &contender_rates, &contender_topn,
	&contender_wtinylfu, &contender_s3fifo, &contender_sieve, &contender_lru, &contender_lfu, NULL,
};

const struct contender_kind *sim_contender(const char *name)
{
	for (int i = 0; sim_contenders[i]; i++)
		if (strcmp(sim_contenders[i]->name, name) == 0)
			return sim_contenders[i];
	return NULL;
}
