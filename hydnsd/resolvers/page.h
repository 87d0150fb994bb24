/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a resolver's page says now: epoch, suspended rules, heartbeat. */
#ifndef HYDNSD_RESOLVERS_PAGE_H
#define HYDNSD_RESOLVERS_PAGE_H

#include <stdbool.h>
#include <stdint.h>

struct hydnsd;
struct hydns_rule;

/* A rule counts only with this epoch; 0: the resolver has no page. */
uint32_t hydnsd_resolver_epoch(const struct hydnsd *d, uint32_t i);
/* True while rules of the resolver, some or all, are suspended. */
bool hydnsd_resolver_suspended(const struct hydnsd *d, uint32_t i);
/* True when this rule is one of them. */
bool hydnsd_resolver_suspends(const struct hydnsd *d, const struct hydns_rule *rule);
/* Nanoseconds since the last heartbeat; UINT64_MAX: there was none. */
uint64_t hydnsd_resolver_age(const struct hydnsd *d, uint32_t i);
/* The last heartbeat is not stale. */
bool hydnsd_resolver_fresh(const struct hydnsd *d, uint32_t i);
/* The resolver has a page, but its process has ended: end its connection and release it. */
bool hydnsd_resolver_ended(const struct hydnsd *d, uint32_t i);

#endif
