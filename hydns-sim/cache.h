/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The published replacement policies as in their papers, one file each, for objects of one size, known by dense numbers.
 * cached.c adds TTLs and makes them contenders. */
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
	/* One access; true when the object is resident. */
	bool (*access)(struct cache *c, uint32_t id);
	/* Inserts an object after an access that missed; calls gone() for each object that is evicted, maybe for this one. */
	void (*insert)(struct cache *c, uint32_t id);
	/* The object has expired. */
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
