/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A pair of virtual interfaces in a network namespace of this process, with a lane at one end:
 *
 *     near 02:00:00:00:00:01, lane <--> far 02:00:00:00:00:02, packet socket
 *
 * A program of a few instructions redirects what comes to near to the socket of the thread that the test names, or passes it.
 */
#ifndef PLUGIN_TESTS_VETH_H
#define PLUGIN_TESTS_VETH_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns-kern/tests/emulated.h"
#include "plugin/queue/lanes.h"

#define VETH_THREADS 2
#define VETH_FRAMES  256U
#define VETH_MTU     1500
#define VETH_HOPS    { 60, 61 }        /* TTL, hop limit */
#define VETH_DEVICE  5                 /* near's number in port words */
#define VETH_PASS    VETH_THREADS      /* no thread */
#define VETH_WAIT_MS patience(5000)          /* for what must come; nothing waits so long that goes well */

struct veth {
	struct hydns_lanes *lanes;
	int sockets, thread_of, program;       /* maps, and the program */
	int wire;                              /* packet socket at far */
	unsigned ifindex, far;
	int place;
};

/* Puts the process into a network namespace of its own. False: it may not, or there is no AF_XDP. */
bool veth_possible(void);
/* Makes interfaces, without IPv6, and opens the lane. */
void veth_begin(struct veth *v);
void veth_end(struct veth *v);
/* Opens the lane as hydnsd and the link thread do: its place, or -errno. */
int veth_open_lane(struct veth *v);
/* The thread that frames go to from now on, or VETH_PASS. */
void veth_choose(struct veth *v, uint32_t thread);
/* A command of the shell, which must succeed. */
void veth_run(const char *command);
/* Whether something waits for the thread, now or within so many ms. */
bool veth_readable(struct hydns_lane_thread *t, int wait_ms);

#endif
