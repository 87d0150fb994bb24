/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Puts the reason of a dry run into words: the resolver's setting that causes it, why there is no rule, why a rule does not
 * count now. Nothing is decided here. A reason without words of its own has those of reasons.def.
 */
#ifndef HYDNSD_CONTROL_WORDS_H
#define HYDNSD_CONTROL_WORDS_H

#include "hydnsd/control/asked.h"
#include "hydnsd/control/families.h"
#include "hydnsd/daemon/daemon.h"

#define HYDNSD_WORDS 800

struct hydnsd_verdict {
	uint32_t resolver;             /* HYDNS_RESOLVERS: there is none */
	bool asked;                    /* said is from a dry run with client and service; else it is what hydnsd knows */
	uint8_t client[16];
	struct hydns_service_key service;
	struct hydns_outcome said;
	uint32_t handle;               /* of the rule; 0: none */
	struct hydnsd_families families; /* set when no client was named */
	char text[HYDNSD_WORDS];
};

/* Whether a query that ends with this reason has got as far as the rules: its client is let in. */
bool hydnsd_words_let_in(enum hydns_reason r);
/* Writes v->text, about v->said.beneath. v->resolver: an index. */
void hydnsd_words_find(struct hydnsd *d, const struct hydnsd_asked *q, struct hydnsd_verdict *v);

#endif
