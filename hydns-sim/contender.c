/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/contender.h"

#include <string.h>

#define CONTENDER(name) extern const struct contender_kind contender_##name;
#define CACHED(name, title) CONTENDER(name)
#include "hydns-sim/contenders.def"
#undef CONTENDER

const struct contender_kind *const sim_contenders[] = {
#define CONTENDER(name) &contender_##name,
#include "hydns-sim/contenders.def"
#undef CONTENDER
#undef CACHED
	NULL,
};

const struct contender_kind *sim_contender(const char *name)
{
	for (int i = 0; sim_contenders[i]; i++)
		if (strcmp(sim_contenders[i]->name, name) == 0)
			return sim_contenders[i];
	return NULL;
}
