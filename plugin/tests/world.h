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
/* The same with a stamp of now; it is taken. */
void assert_offered(struct world *w);
/* Starts both and offers the reply; returns the epoch. */
uint32_t start_and_offer(struct world *w);
/* Counts a sighting of the question on thread 0: whether its answer, which ends at expires, should be offered. */
bool hot(struct world *w, time_t expires);

union ring_frame {
	struct hydns_frame frame;
	struct hydns_offer offer;
	struct hydns_changed changed;
	struct hydns_over over;
	uint8_t room[2048];
};
/* The next frame of a thread's ring. False: it is empty. */
bool next_frame(struct world *w, unsigned thread, union ring_frame *f);
void empty_rings(struct world *w);

uint32_t page_epoch(struct world *w);
bool suspended(struct world *w);
/* name: in lower case. */
bool is_marked(struct world *w, const uint8_t *name, size_t len);
unsigned marks(struct world *w);
uint64_t page_generation(struct world *w);
uint64_t page_heartbeat(struct world *w);

/* What was logged since the set-up, by the library's threads. */
bool log_has(const char *text);
extern _Atomic unsigned log_lines;

#endif
