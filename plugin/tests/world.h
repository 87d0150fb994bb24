/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The library and the tests' own counterpart, over a real socket, rings and page: what tests of the whole share. */
#ifndef PLUGIN_TESTS_WORLD_H
#define PLUGIN_TESTS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include "plugin/internal.h"
#include "plugin/tests/peer.h"
#include "plugin/tests/reply.h"

#define THREADS          2
#define FLUSH_TIMEOUT_MS 150
#define ADMISSION        3
#define TTL              30

#define WWW_LEN 17
extern const uint8_t www[WWW_LEN], www_lower[WWW_LEN];

struct world {
	struct peer peer;
	struct hydns_plugin *p;
	struct hydns_thread *t;
	struct reply reply;            /* www's: a CNAME to host.example.net with its address */
};

struct hydns_plugin_options world_options(struct world *w);
/* Of a cmocka test; neither side is started. */
int world_setup(void **state);
int world_teardown(void **state);

void start_both(struct world *w);
/* READY is acknowledged a moment before the library knows. */
bool connected(struct world *w);
bool disconnected(struct world *w);
/* Returns when the library knows that hydnsd has gone. */
void lose_hydnsd(struct world *w);
/* Offers the reply on thread 0; as hydns_plugin_offer(). */
int offer(struct world *w, struct hydns_stamp stamp);
void empty_rings(struct world *w);

uint32_t page_epoch(struct world *w);
bool suspended(struct world *w);
uint64_t page_generation(struct world *w);
uint64_t page_heartbeat(struct world *w);

/* What was logged since the set-up, by the library's threads. */
bool log_has(const char *text);
extern _Atomic unsigned log_lines;

#endif
