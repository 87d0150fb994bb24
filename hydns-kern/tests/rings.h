/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A resolver with a lane, for tests of what the program gives to its rings. The sockets are never bound: whether a packet
 * arrives there is a matter of the kernel. Failures end the test, by cmocka.
 */
#ifndef HYDNS_TEST_RINGS_H
#define HYDNS_TEST_RINGS_H

#include "expect.h"
#include "hydns/queue.h"
#include "hydns/resolver.h"

#define LANE    7
#define DEVICE  5
#define PLACE   (HYDNS_LANES_MOST - 1)
#define THREADS 4

struct rings {
	struct kernel *k;
	int gate, ring[THREADS];      /* descriptors; -1: closed */
};

extern const struct hydns_lane_key rings_here; /* where test runs come from */

extern const struct kernel_options rings_kernel; /* of a program that gives packets to rings */

/* Sets the program back and gives it a gate, a lane of `threads` threads, the socket of thread 0, and all parts. */
void rings_open(struct rings *r, struct kernel *k, unsigned threads);
void rings_close(struct rings *r);
/* The lane as rings_open() makes it. */
struct hydns_lane rings_lane(unsigned threads);
void rings_set_lane(struct rings *r, const struct hydns_lane *lane);
/* Makes a thread's socket, or closes it, and with it the entry of the map. */
void rings_open_ring(struct rings *r, unsigned thread);
void rings_close_ring(struct rings *r, unsigned thread);
void rings_close_gate(struct rings *r);
/* The backlog of a thread's ring in the lane. rings_open() gives each of them room for 1,024 frames. */
volatile struct hydns_backlog *rings_backlog(struct rings *r, unsigned thread);
/* Sets an element of a map. */
void rings_set(struct rings *r, const char *map, const void *key, const void *value);
/* What becomes of the frame, which is counted as reason, and stays as it is. */
int rings_action(struct rings *r, const struct frame *f, int reason);
/* Packets that the program has given to the resolver's rings. */
struct hydns_queue_count rings_counts(struct rings *r);

#endif
