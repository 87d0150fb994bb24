/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which rules depend on a name: the owners of what their answers hold, targets of aliases, and names that answers left
 * out. A hash table of buckets of two cache lines, an entry of four octets (ordinal and a tag of the name) for each
 * rule and name; whoever asks compares the rules themselves. What very many rules depend on (the SOA of a zone in its
 * negative answers), or does not fit its bucket, has a table of its own (ordinal_set.h). One thread.
 */
#ifndef HYDNSD_RULES_DEPENDENCIES_H
#define HYDNSD_RULES_DEPENDENCIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/rule.h"

/* Names of one rule, each once: question, two for each record, and those left out. */
#define HYDNSD_DEPENDENCIES_MAX (1 + 2 * HYDNS_TTLS_MAX + 255)
struct hydnsd_dependency_list {
	uint32_t count;
	uint64_t hash[HYDNSD_DEPENDENCIES_MAX]; /* hydnsd_name_hash() */
};
/* True when it was not there. */
bool hydnsd_dependency_list_add(struct hydnsd_dependency_list *l, uint64_t hash);

struct hydnsd_dependencies;
/* For rules of ordinals 0..ordinals-1 (below HYDNS_ORDINALS_MOST); NULL: no memory. */
struct hydnsd_dependencies *hydnsd_dependencies_new(uint32_t ordinals);
void hydnsd_dependencies_free(struct hydnsd_dependencies *o);
size_t hydnsd_dependencies_bytes(const struct hydnsd_dependencies *o);

/* Both with the same list for the same rule. */
void hydnsd_dependencies_add(struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l, uint32_t ordinal);
void hydnsd_dependencies_drop(struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l, uint32_t ordinal);

/* The ordinals of all rules that depend on the name, and of perhaps some others, some perhaps twice, if they are at most
 * HYDNSD_DEPENDENCIES_FOUND: valid until the next find. NULL: they are more, or for lack of memory are not known. */
#define HYDNSD_DEPENDENCIES_FOUND 4096
const uint32_t *hydnsd_dependencies_find(struct hydnsd_dependencies *o, uint64_t hash, uint32_t *count);
/* Asks the processor for what add() will need. */
void hydnsd_dependencies_prefetch(const struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l);

#endif
