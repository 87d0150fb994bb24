/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Zones below which resolutions fail or wait, for hydnsd's guard. How many waited at once is by Little's law (J. Little, "A proof for
 * the queuing formula L = lambda W", 1961) the sum of the times that they took, divided by the time in which they ended.
 */
#include <string.h>
#include "hydns/hash.h"
#include "plugin/link/thread.h"

/* Resolutions that are done sooner, and have not failed, are not counted: nearly all. */
#define SLOW_MS      200
#define INTERVAL_NS  (1 * HYDNS_NS_PER_S)
#define REPORTS_MOST 8                 /* at a time: the worst come again */

bool hydns_plugin_wants_resolution(struct hydns_plugin *p, bool failed, uint64_t took_ms)
{
	return (failed || took_ms >= SLOW_MS) && (atomic_load_explicit(&p->guard.failures, memory_order_relaxed) ||
						  atomic_load_explicit(&p->guard.waiting, memory_order_relaxed));
}

static void count(struct hydns_guard_zones *z, const uint64_t seed[2], const uint8_t *name, size_t len, bool failed, uint64_t took_ms)
{
	const __u64 secret[2] = { seed[0], seed[1] };
	uint64_t key = hydns_place_hash(name, (uint8_t)len, secret);
	uint32_t set = hydns_heavy_set_of(key, secret) % HYDNS_GUARD_SETS, entry = hydns_heavy_add(&z->set[set], key);
	struct hydns_guard_zone *zone = &z->zone[set][entry % HYDNS_HEAVY_ENTRIES];

	if (entry >= HYDNS_HEAVY_NEW) {
		*zone = (struct hydns_guard_zone){ .len = (uint32_t)len };
		memcpy(zone->name, name, len);
	}
	zone->failed += failed;
	zone->took_ms += took_ms;
}

void hydns_plugin_resolution(struct hydns_plugin *p, const uint8_t *zone, size_t len, bool failed, uint64_t took_ms)
{
	uint8_t name[HYDNS_GUARD_SUFFIX_MOST];

	if (!hydns_plugin_wants_resolution(p, failed, took_ms) || len < 2 || len > sizeof(name))
		return;
	hydns_name_lower(name, zone, len);
	pthread_mutex_lock(&p->guard.lock);
	count(&p->guard, p->seed, name, len, failed, took_ms);
	pthread_mutex_unlock(&p->guard.lock);
}

/* False: it is not worth a report. */
static bool describe(const struct hydns_guard_zones *z, const struct hydns_guard_zone *zone, uint64_t ms, struct hydns_guard_report *r)
{
	uint32_t failures = atomic_load(&z->failures), waiting = atomic_load(&z->waiting);

	*r = (struct hydns_guard_report){ .failures = (uint32_t)(zone->failed * 1000ULL / ms), .waiting = (uint32_t)(zone->took_ms / ms),
					  .len = zone->len };
	memcpy(r->suffix, zone->name, zone->len);
	return zone->len && ((failures && r->failures >= failures) || (waiting && r->waiting >= waiting));
}

unsigned hydns_guard_zones_take(struct hydns_guard_zones *z, uint64_t now_ns, struct hydns_guard_report *out, unsigned room)
{
	uint64_t ms = (now_ns - z->since_ns) / HYDNS_NS_PER_MS;
	unsigned n = 0;

	pthread_mutex_lock(&z->lock);
	for (unsigned i = 0; ms && i < HYDNS_GUARD_SETS * HYDNS_HEAVY_ENTRIES && n < room; i++)
		n += describe(z, &z->zone[i / HYDNS_HEAVY_ENTRIES][i % HYDNS_HEAVY_ENTRIES], ms, &out[n]);
	memset(z->set, 0, sizeof(z->set));
	memset(z->zone, 0, sizeof(z->zone));
	z->since_ns = now_ns;
	pthread_mutex_unlock(&z->lock);
	return n;
}

void hydns_link_guard(struct hydns_link *l, uint32_t failures, uint32_t waiting)
{
	struct hydns_guard_report none;

	hydns_guard_zones_take(&l->p->guard, hydns_mono_ns(), &none, 0);
	atomic_store(&l->p->guard.failures, failures);
	atomic_store(&l->p->guard.waiting, waiting);
}

uint64_t hydns_link_guard_due(const struct hydns_link *l)
{
	return atomic_load(&l->p->guard.failures) || atomic_load(&l->p->guard.waiting) ? l->p->guard.since_ns + INTERVAL_NS : UINT64_MAX;
}

int hydns_link_report_zones(struct hydns_link *l)
{
	struct hydns_guard_report report[REPORTS_MOST];
	uint64_t now = hydns_mono_ns();
	int error = 0;
	unsigned n;

	if (now < hydns_link_guard_due(l))
		return 0;
	n = hydns_guard_zones_take(&l->p->guard, now, report, REPORTS_MOST);
	for (unsigned i = 0; i < n && (!error || error == -HYDNS_EREFUSED); i++)
		error = hydns_link_ask(l, HYDNS_MSG_GUARD, &report[i], sizeof(report[i]));
	return error == -HYDNS_EREFUSED ? 0 : error;
}
