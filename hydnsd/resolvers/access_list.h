/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which clients a resolver's rules may answer: the prefixes that its plugin sends, combined with what the host's routes
 * say of sources (netdev/sources.h). The program's map has two halves for each resolver. hydnsd fills the half that the
 * program does not read, then the resolver's configuration names that half.
 */
#ifndef HYDNSD_RESOLVERS_ACCESS_LIST_H
#define HYDNSD_RESOLVERS_ACCESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/session.h"

struct hydnsd;

/* Appends n entries to the list of the coming configuration. 0, or a negative errno and a line in why. */
int hydnsd_access_list_add(struct hydnsd *d, uint32_t i, const struct hydns_acl_entry *e, uint32_t n, char *why,
			   size_t room);
/* Fills the half that c->acl_half names, which the program must not be reading, and sets those of c->flags that say which
 * families the list allows. 0 or a negative errno. */
int hydnsd_access_list_fill(struct hydnsd *d, uint32_t i, struct hydns_resolver_config *c);
/* The host's routes have changed: fills and switches the lists of all live resolvers. True: a list could not be filled.
 * Its resolver is not answered for until a later call succeeds. */
bool hydnsd_access_lists_refill(struct hydnsd *d);

#endif
