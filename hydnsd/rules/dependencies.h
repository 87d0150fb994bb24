/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which rules depend on a name: owner names in their answers, targets of aliases, and left-out names. A hash table whose
 * buckets are two cache lines. An entry has four octets for each rule and name: the ordinal and a tag of the name. A find may
 * yield rules that do not depend on the name, so the caller compares the rules themselves. A name that very many rules depend
 * on (the SOA of a zone in its negative answers), or that does not fit its bucket, has an ordinal set. One thread.
 */
#ifndef HYDNSD_RULES_DEPENDENCIES_H
#define HYDNSD_RULES_DEPENDENCIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/rule.h"

/* Most names of one rule: the question's, two for each record, and the left-out ones. */
#define HYDNSD_DEPENDENCIES_MAX (1 + 2 * HYDNS_RECORDS_MAX + 255)
struct hydnsd_dependency_list {        /* each name once */
	uint32_t count;
	uint64_t hash[HYDNSD_DEPENDENCIES_MAX]; /* hydnsd_name_hash() */
};
/* True when the name was not in the list. */
bool hydnsd_dependency_list_add(struct hydnsd_dependency_list *l, uint64_t hash);

struct hydnsd_dependencies;
/* For rules of ordinals 0..ordinals-1, which are below HYDNS_ORDINALS_MOST. NULL: no memory. */
struct hydnsd_dependencies *hydnsd_dependencies_new(uint32_t ordinals);
void hydnsd_dependencies_free(struct hydnsd_dependencies *o);
size_t hydnsd_dependencies_bytes(const struct hydnsd_dependencies *o);

/* A rule is dropped with the list that it was added with. */
void hydnsd_dependencies_add(struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l, uint32_t ordinal);
void hydnsd_dependencies_drop(struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l, uint32_t ordinal);

/* The ordinals of all rules that depend on the name. Others may be among them, and some may be there twice. Valid until the
 * next find. NULL: there are more than HYDNSD_DEPENDENCIES_FOUND, or memory failed when a rule was added. */
#define HYDNSD_DEPENDENCIES_FOUND 4096
const uint32_t *hydnsd_dependencies_find(struct hydnsd_dependencies *o, uint64_t hash, uint32_t *count);
/* Fetches into the CPU's cache what add() will need. */
void hydnsd_dependencies_prefetch(const struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l);

#endif
