/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The event loop, in one thread: descriptors (epoll), periodic work, and work after every round of events. */
#ifndef HYDNSD_DAEMON_LOOP_H
#define HYDNSD_DAEMON_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

struct hydnsd_loop;
struct hydnsd_watch;

struct hydnsd_loop *hydnsd_loop_new(void);     /* NULL: out of memory or descriptors */
void hydnsd_loop_free(struct hydnsd_loop *l);

/* events: EPOLLIN, EPOLLOUT. The descriptor stays the caller's. NULL on failure (errno). */
struct hydnsd_watch *hydnsd_loop_watch(struct hydnsd_loop *l, int fd, uint32_t events,
				       void (*ready)(void *arg, uint32_t events), void *arg);
void hydnsd_watch_change(struct hydnsd_watch *w, uint32_t events);
/* Call it before the descriptor is closed. Safe within any callback; ignores NULL. */
void hydnsd_watch_end(struct hydnsd_watch *w);

/* Calls tick about every period_ms, as long as the loop runs; or after what it returns, in ms, unless that is 0. */
#define HYDNSD_TICKS_MAX 8
int hydnsd_loop_every(struct hydnsd_loop *l, uint32_t period_ms, uint32_t (*tick)(void *arg), void *arg);
/* Calls work before every wait for events; it returns how long the loop may sleep, in ms; -1: for ever. */
void hydnsd_loop_each_round(struct hydnsd_loop *l, int (*work)(void *arg), void *arg);

/* The shorter of two such sleeps. */
static inline int hydnsd_sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

void hydnsd_loop_run(struct hydnsd_loop *l);
void hydnsd_loop_stop(struct hydnsd_loop *l);

#endif
