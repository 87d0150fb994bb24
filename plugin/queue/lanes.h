/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The lanes of a resolver (hydns/queue.h): each thread has a socket on each of them, the sockets of a lane share its
 * frames. The link thread opens and closes lanes; the resolver's threads receive and send. Nothing here waits, but for
 * hydns_lane_close().
 *
 * A resolver thread that receives or sends says so (busy); the link thread first takes a lane out of the table, then waits
 * until every thread that may still see it has left.
 */
#ifndef PLUGIN_QUEUE_LANES_H
#define PLUGIN_QUEUE_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/detours.h"
#include "hydns/queue.h"
#include "hydns/resolver.h"
#include "hydns/ring.h"
#include "plugin/queue/way.h"
#include "plugin/queue/xsk.h"

#define HYDNS_LANE_FRAMES_MIN  256   /* that wait for a thread on one lane */
#define HYDNS_LANE_FRAMES_MAX  4096
#define HYDNS_LANE_SEND_FRAMES 512   /* under way from a thread on one lane */

struct hydns_lanes;                  /* of one resolver */
struct hydns_lane_thread;            /* its part for one resolver thread */
struct hydns_ways;                   /* ways.h */

struct hydns_lane_setup {
	struct hydns_queue_id id;
	uint32_t number;             /* hydnsd's number of it */
	uint32_t mtu;                /* octets of the longest IP packet that the interface sends */
	uint8_t device;              /* number of the interface in port words */
	uint8_t hops[2];             /* TTL of IPv4, hop limit of IPv6 */
	bool sends;                  /* the interface has a transmit queue of this number */
	bool unfinished;             /* frames may have checksums that the sender's kernel has left to a card */
};

/* frames: that wait for a thread on one lane, a power of 2 from _MIN to _MAX. NULL on lack of memory or descriptors. */
struct hydns_lanes *hydns_lanes_new(uint32_t threads, uint32_t frames);
/* Closes all; no thread may use them any more. */
void hydns_lanes_free(struct hydns_lanes *l);
struct hydns_lane_thread *hydns_lanes_thread(struct hydns_lanes *l, uint32_t i);
/* Where the thread counts from now on (NULL: in memory of its own). While it does not run. */
void hydns_lanes_count_in(struct hydns_lane_thread *t, struct hydns_queue_counts *counts);

/* --- the link thread ----------------------------------------------------------------------------------- */
/* Opens a lane with a socket for each thread, which it takes over, also on failure. Returns its place, or -errno: see
 * hydns_pool_open(). */
int hydns_lane_open(struct hydns_lanes *l, const struct hydns_lane_setup *s, const int *fd);
/* Closes the lane at this place; the program must not redirect to it any more. First waits, most_ms at most, until the
 * threads have read what lies in its rings. beat is called about once a millisecond meanwhile. */
void hydns_lane_close(struct hydns_lanes *l, int place, uint32_t most_ms, void (*beat)(void *arg), void *arg);
/* The setup of the lane at a place; NULL: there is none. Valid until it is closed. */
const struct hydns_lane_setup *hydns_lane_at(const struct hydns_lanes *l, int place);
/* Writes to the backlogs of the lane what lies in its rings now; from here on they are told what the threads read. The program
 * must not redirect to the lane with this page. of_thread: HYDNS_THREADS_MAX of them, valid until the lane is closed or
 * hydns_lanes_forget_backlogs() returns; NULL: nobody is told. */
void hydns_lane_count_backlog(struct hydns_lanes *l, int place, struct hydns_backlog *of_thread);
/* Nobody is told of any lane; no thread writes to a backlog any more. */
void hydns_lanes_forget_backlogs(struct hydns_lanes *l);
/* From here on replies go by these ways, which must outlive the lanes; NULL: back where their queries came from. */
void hydns_lanes_route(struct hydns_lanes *l, struct hydns_ways *w);
/* What is in the thread's rings now, by place: level[HYDNS_LANES_MOST], which others may be reading. What the kernel has dropped
 * goes to the backlogs, too. */
void hydns_lanes_levels(const struct hydns_lanes *l, uint32_t thread, struct hydns_lane_level *level);
/* Number of the highest descriptor of all rings; -1: there is none. */
int hydns_lanes_highest_fd(const struct hydns_lanes *l);

/* --- resolver threads, each with its own part ---------------------------------------------------------- */
/* Readable while something waits: for the thread's event loop. Stays the lanes' own. */
int hydns_lanes_fd(const struct hydns_lane_thread *t);

/* Takes a datagram, whose payload is valid until it returns. It may send, and open no lane. */
typedef void hydns_lanes_take(void *arg, const struct hydns_datagram *d, const struct hydns_way *way);
/*
 * Calls take for at most budget datagrams that wait for this thread, then sends what was to be sent. Frames that are no
 * datagram are dropped and counted. Returns how many frames it has read.
 */
unsigned hydns_lanes_receive(struct hydns_lane_thread *t, unsigned budget, hydns_lanes_take *take, void *arg);

/*
 * Sends a payload the way that a datagram came, or another one. It leaves at once; within hydns_lanes_receive(), and while the
 * thread is corked, together with others: when some wait, at the latest at the end. False: it has to take a socket, which is
 * counted: LANE_GONE, TOO_LONG, RING_FULL or STUCK.
 */
bool hydns_lanes_send(struct hydns_lane_thread *t, const struct hydns_way *way, uint8_t dscp, const uint8_t *payload, size_t len);
/*
 * Sends a reply to a query that has come this way: back, or by hydns_lanes_route()'s ways. now_ms: as for hydns_way_find().
 * False: it has to take a socket, which is counted.
 */
bool hydns_lanes_reply(struct hydns_lane_thread *t, const struct hydns_way *way, uint8_t dscp, const uint8_t *payload, size_t len,
		       uint64_t now_ms);
/* From here on what is sent may wait for others until the next _uncork(): for a thread that handles what it has received
 * after hydns_lanes_receive() has returned. */
void hydns_lanes_cork(struct hydns_lane_thread *t);
void hydns_lanes_uncork(struct hydns_lane_thread *t);
/* The lane by which this thread sends to an interface; fills in all of *way but the path. False: there is none. */
bool hydns_lanes_sender(struct hydns_lane_thread *t, uint32_t ifindex, struct hydns_way *way);
/* Watches another descriptor for this thread, too: readable with hydns_lanes_fd(). 0 or -errno. */
int hydns_lanes_watch(struct hydns_lane_thread *t, int fd);

/* What the thread counts, also why datagrams take sockets. */
struct hydns_queue_counts *hydns_lanes_counts(struct hydns_lane_thread *t);

#endif
