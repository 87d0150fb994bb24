/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The library's grace periods, which go through here (in the place of libc's syscall()): counted, and held if wanted. */
#ifndef PLUGIN_TESTS_GRACES_H
#define PLUGIN_TESTS_GRACES_H

#include "plugin/tests/world.h"

/* How many there were, and what stood on the page as the last one began. */
extern struct graces {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool held;                       /* those that begin do not end ... */
	bool given_up;                   /* ... until one has been held for too long */
	unsigned begun, ended;
	const struct hydns_resolver_page *page;
	uint32_t epoch;
	uint64_t heartbeat;
} graces;

/* Counts from here on. */
void watch_graces(const struct world *w, bool hold);
void release_graces(void);
unsigned graces_begun(void);
/* To be called when no kernel answer is sent any more: counts its calls, and after how many grace periods the last one came. */
void gone(void *arg);
extern _Atomic unsigned times_gone, ended_when_gone;
/* Of a cmocka test, in the place of world_setup() and world_teardown(). */
int graces_setup(void **state);
int graces_teardown(void **state);

#endif
