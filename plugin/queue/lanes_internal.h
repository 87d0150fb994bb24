/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What lanes are made of, for the files that open them and that use them. */
#ifndef PLUGIN_QUEUE_LANES_INTERNAL_H
#define PLUGIN_QUEUE_LANES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include "plugin/queue/lanes.h"

struct hydns_plugin_lane {
	struct hydns_lane_setup setup;
	uint32_t made;
	struct hydns_pool pool;
	pthread_mutex_t lock;                  /* of the pool's rings, and of: */
	uint64_t *free;                        /* offsets of frames to send from */
	unsigned frees;
	struct hydns_xsk *ring;               /* by thread */
	_Atomic(struct hydns_backlog *) backlog; /* of thread 0, then the others'; NULL: not told */
};

struct hydns_lane_thread {
	struct hydns_lanes *all;
	uint32_t index;
	int events;                            /* epoll: this thread's sockets, and the timer */
	int timer;                             /* for frames that the interface has not taken at once */
	bool timer_runs;
	uint32_t retry_ms;
	uint32_t random;                       /* state of the identifications of IPv4 packets */
	uint32_t came_us;                      /* when it received the frames that it hands over: see struct hydns_way */
	unsigned depth;                        /* of calls within calls */
	bool corked;
	unsigned first;                        /* place that the next look begins at */
	uint64_t unsent;                       /* places with frames that the kernel has not seen: a bit each */
	unsigned waiting, waiting_most;        /* such frames, or fewer; how many it may be */
	uint64_t stuck;                        /* places whose interface has not taken all */
	_Atomic uint64_t busy;                 /* odd while it may see lanes */
	struct hydns_queue_counts *counts, own_counts;
} __attribute__((aligned(64)));

struct hydns_lanes {
	uint32_t threads;
	struct hydns_pool_size size;
	uint32_t made;
	_Atomic unsigned places;               /* that were ever in use: those below */
	_Atomic(struct hydns_plugin_lane *) lane[HYDNS_LANES_MOST];
	_Atomic(struct hydns_ways *) reply_ways;   /* NULL: replies go back where their queries came from */
	struct hydns_lane_thread *thread;
};

uint32_t hydns_lanes_now_us(void);             /* monotonic, modulo 2^32 */

#endif
