/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the monitor's sketches say. The program fills them, hydnsd reads them. Pure, as policy.h. */
#ifndef HYDNS_MONITOR_H
#define HYDNS_MONITOR_H

#include <stddef.h>
#include <stdint.h>

#include "hydns/heavy.h"

/* -- distinct.c: how many different keys were there? ---------------------------------------------------- */
/* Of 95 % of the estimates, the relative error is at most this many in a thousand. */
#define HYDNS_DISTINCT_ERROR 35
/* registers: HYDNS_DISTINCT_REGISTERS of them, of one CPU or merged (include/hydns/distinct.h). 0: no key was met. */
double hydns_distinct_estimate(const uint8_t *registers);

/* -- heavy.c: which keys came most often? ------------------------------------------------------------------ */
/* Of N sightings, the bounds of 95 % of the keys are at most N / HYDNS_HEAVY_ERROR apart, and 95 % of the keys that came more
 * often are found. */
#define HYDNS_HEAVY_ERROR 1000
struct hydns_heavy_found {
	uint64_t key;
	uint64_t least, most;          /* how often it came, for certain */
	uint32_t set, cpu, entry;      /* one of its entries */
};
/*
 * The keys that came most often, by the certain part of their counts. sets: of each set its CPUs', one after another, as the kernel
 * gives the elements of a per-CPU array. Returns how many, up to room. Takes time for sets * cpus * log(cpus), and memory on the
 * heap for one set's entries; SIZE_MAX without it.
 */
size_t hydns_heavy_top(const struct hydns_heavy_set *sets, uint32_t cpus, struct hydns_heavy_found *out, size_t room);

#endif
