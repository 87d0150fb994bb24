/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The published replacement policies, as they stand in their papers, one file each: equal objects, known by
 * dense numbers. cached.c gives them TTLs and makes contenders of them. */
#ifndef HYDNS_SIM_CACHE_H
#define HYDNS_SIM_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache;

struct cache_kind {
	/* ids: objects are 0..ids-1. NULL without memory. */
	struct cache *(*open)(uint32_t capacity, uint32_t ids);
	void (*close)(struct cache *c);
	/* One access. True: resident. */
	bool (*access)(struct cache *c, uint32_t id);
	/* Brings in an object after an access that missed; calls gone() for each that must leave, which may
	 * be the object itself. */
	void (*insert)(struct cache *c, uint32_t id);
	/* The object's time is over. */
	void (*remove)(struct cache *c, uint32_t id);
	size_t bytes_each;             /* of bookkeeping, a resident object */
};

/* First member of every struct cache. */
struct cache_base {
	void (*gone)(void *arg, uint32_t id);
	void *arg;
};

#define CONTENDER(name)
#define CACHED(name, title) extern const struct cache_kind cache_##name;
#include "hydns-sim/contenders.def"
#undef CONTENDER
#undef CACHED

#endif
