/* SPDX-License-Identifier: GPL-2.0-only */
/* The small tables that hydnsd writes for the program, and the counters that it reads. */
#ifndef HYDNS_KERN_LOADER_TABLES_H
#define HYDNS_KERN_LOADER_TABLES_H

#include <stddef.h>
#include "hydns/guard.h"
#include "hydns/logged.h"
#include "hydns/monitor.h"
#include "hydns/names.h"
#include "hydns/own.h"
#include "hydns/resolver.h"
#include "hydns/session.h"
#include "hydns-kern/loader/open.h"

/* -- switches.c ---------------------------------------------------------------------------------------- */
int hydns_kern_pause(struct hydns_kern *k, bool on);            /* the kill switch */
int hydns_kern_paused(struct hydns_kern *k, bool *on);
/* Replaces the filter of the host's own addresses (own.h). */
void hydns_kern_own_set(struct hydns_kern *k, const __u64 filter[HYDNS_OWN_WORDS]);

/* -- counters.c ---------------------------------------------------------------------------------------- */
/* Packets by reason, HYDNS_REASONS entries, summed over CPUs. */
int hydns_kern_stats(struct hydns_kern *k, __u64 *reasons);
int hydns_kern_resolver_counts(struct hydns_kern *k, __u32 resolver, struct hydns_resolver_count *sum);
/* Answers from templates by type of question, over all CPUs; and: they begin anew. */
int hydns_kern_below_types(struct hydns_kern *k, __u32 resolver, struct hydns_type_counts *sum);
int hydns_kern_below_types_clear(struct hydns_kern *k, __u32 resolver);

/* -- monitor.c ----------------------------------------------------------------------------------------- */
/* From now on the program writes the next window. Returns the one that has ended, which a program that has just read the former
 * number may still write for a moment. */
__u32 hydns_kern_window_next(struct hydns_kern *k);
/* Merges the registers of all CPUs, and clears them. What is written meanwhile may be lost: call it a moment after the window's end. */
int hydns_kern_window_take(struct hydns_kern *k, __u32 window, struct hydns_window *sum);
/* From now on these analysers see each query; by bit (enum hydns_analyser). Only with option monitor, as the rest. */
void hydns_kern_analyse(struct hydns_kern *k, __u32 analysers);
/* Octets of all elements of the map, of each its CPUs' one after another. */
size_t hydns_kern_analysis_octets(const struct hydns_kern *k, enum hydns_analysis_map which);
/* Copies them to out, unless that is NULL, and clears them. What is written meanwhile may be lost. */
int hydns_kern_analysis_take(struct hydns_kern *k, enum hydns_analysis_map which, void *out);

/* -- guard.c ------------------------------------------------------------------------------------------- */
/* HYDNS_GUARD_BUCKETS of them, which the program writes. */
const struct hydns_guard_bucket *hydns_kern_guard_cells(const struct hydns_kern *k);
int hydns_kern_guard_counts(struct hydns_kern *k, __u32 resolver, struct hydns_guard_count *sum);
/* The key of a resolver's rule for a suffix: wire format, lower case, HYDNS_GUARD_SUFFIX_MOST octets at most. */
__u64 hydns_kern_guard_key(const struct hydns_kern *k, __u32 resolver, const __u8 *suffix, __u32 len);
/* Makes or replaces a rule; what it has counted is kept by the caller. */
int hydns_kern_guard_set(struct hydns_kern *k, __u64 key, const struct hydns_guard_rule *r);
int hydns_kern_guard_get(struct hydns_kern *k, __u64 key, struct hydns_guard_rule *r);
int hydns_kern_guard_delete(struct hydns_kern *k, __u64 key);
/* By bit, the numbers of labels that suffixes with rules have: the program looks for no others. */
void hydns_kern_guard_labels(struct hydns_kern *k, __u32 labels);
/* Removes all rules, also those of a former hydnsd. */
int hydns_kern_guard_clear(struct hydns_kern *k);

/* -- services.c ---------------------------------------------------------------------------------------- */
int hydns_kern_service_set(struct hydns_kern *k, const struct hydns_service_key *key, __u32 resolver);
int hydns_kern_service_delete(struct hydns_kern *k, const struct hydns_service_key *key);
/* Calls fn for each service until it returns non-zero; fn may add and delete services. */
int hydns_kern_service_each(struct hydns_kern *k,
			    int (*fn)(const struct hydns_service_key *, __u32 resolver, void *), void *arg);

/* -- resolvers.c --------------------------------------------------------------------------------------- */
int hydns_kern_resolver_config(struct hydns_kern *k, __u32 i, const struct hydns_resolver_config *c);
int hydns_kern_resolver_config_get(struct hydns_kern *k, __u32 i, struct hydns_resolver_config *c);
/* Writes cookie secrets to the entry of this set number, whatever c->set is. The write is not atomic: a program may
 * read a mixture, if both c->set and the set number of the former secrets there are the page's. */
int hydns_kern_cookies(struct hydns_kern *k, __u32 i, __u32 set, const struct hydns_cookies *c);
int hydns_kern_cookies_get(struct hydns_kern *k, __u32 i, __u32 set, struct hydns_cookies *c);

/* -- resolver_maps.c --------------------------------------------------------------------------------------- */
/* Gives the resolver a new log ring of so many octets. *map_fd: for its plugin, the caller's to close. When it returns, the program
 * puts no more into a former one. */
int hydns_kern_log_ring_new(struct hydns_kern *k, __u32 i, __u32 octets, int *map_fd, char why[HYDNS_WHY]);
/* It has none any more, and its counts begin anew. */
void hydns_kern_log_ring_delete(struct hydns_kern *k, __u32 i);
int hydns_kern_log_counts(struct hydns_kern *k, __u32 i, struct hydns_log_count *sum);
/* Gives the resolver a new map of budgets, all of them unspent. *map_fd and the return as of a log ring. */
int hydns_kern_budgets_new(struct hydns_kern *k, __u32 i, int *map_fd, char why[HYDNS_WHY]);
void hydns_kern_budgets_delete(struct hydns_kern *k, __u32 i);
/* Gives the resolver a new, empty set of names (hydns/names.h), which is not open. *map_fd and the return as of a log ring. */
int hydns_kern_names_new(struct hydns_kern *k, __u32 i, const struct hydns_names_request *q, int *map_fd, char why[HYDNS_WHY]);
void hydns_kern_names_delete(struct hydns_kern *k, __u32 i);
bool hydns_kern_has_names(struct hydns_kern *k, __u32 i);     /* also one that a former hydnsd has given it */
/* Whether any resolver limits its clients: then the program reads queries though the store is empty. */
void hydns_kern_limits_exist(struct hydns_kern *k, bool any);

/* -- acl.c --------------------------------------------------------------------------------------------- */
/* Replaces the content of the resolver's access list number half, which should not be the one in use; resolver_config names
 * that. */
int hydns_kern_acl_fill(struct hydns_kern *k, __u32 i, unsigned half, const struct hydns_acl_entry *e,
			size_t n);
/* Reads up to room entries of the access list in use; returns how many. Their `why` is 0. */
int hydns_kern_acl_read(struct hydns_kern *k, __u32 i, struct hydns_acl_entry *e, size_t room);
/* HYDNS_RESOLVER_ALLOWS_*: the address families of which this list allows every client. */
__u16 hydns_acl_flags(const struct hydns_acl_entry *e, size_t n);

#endif
