/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Words for what the program says of a query: which line of the resolver's configuration stands behind a reason, why there is
 * no rule, why one rests. Nothing here decides: a reason that has no words of its own has those of reasons.def.
 */
#ifndef HYDNSD_CONTROL_WORDS_H
#define HYDNSD_CONTROL_WORDS_H

#include "hydnsd/control/asked.h"
#include "hydnsd/control/families.h"
#include "hydnsd/daemon/daemon.h"

#define HYDNSD_WORDS 800

struct hydnsd_verdict {
	uint32_t resolver;            /* HYDNS_RESOLVERS: there is none */
	bool asked;                    /* the program was, with these two; else said is what is known without it */
	uint8_t client[16];
	struct hydns_service_key service;
	struct hydns_outcome said;
	uint32_t handle;               /* of the rule; 0: none */
	struct hydnsd_families families; /* looked at when no client was named */
	char text[HYDNSD_WORDS];
};

/* Whether a query that ends with this reason has come as far as the rules: its client is let in. */
bool hydnsd_words_let_in(enum hydns_reason r);
/* Writes v->text, of v->said.beneath. v->authority: a resolver. */
void hydnsd_words_find(struct hydnsd *d, const struct hydnsd_asked *q, struct hydnsd_verdict *v);

#endif
