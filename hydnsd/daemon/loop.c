/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"

#define EVENTS_MAX 64

struct hydnsd_watch {
	struct hydnsd_loop *loop;
	int fd;
	void (*ready)(void *arg, uint32_t events);
	void *arg;
	bool ended;
	struct hydnsd_watch *next;     /* in the list of ended ones */
};

struct tick {
	uint32_t (*run)(void *arg);
	void *arg;
	uint32_t period_ms;
	uint64_t due_ms;
};

struct hydnsd_loop {
	int epoll;
	bool stop;
	unsigned ticks;
	struct tick tick[HYDNSD_TICKS_MAX];
	int (*work)(void *arg);
	void *work_arg;
	struct hydnsd_watch *ended;    /* freed after the round, whose events may name them */
};

struct hydnsd_loop *hydnsd_loop_new(void)
{
	struct hydnsd_loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		free(l);
		return NULL;
	}
	return l;
}

static void free_ended(struct hydnsd_loop *l)
{
	while (l->ended) {
		struct hydnsd_watch *w = l->ended;

		l->ended = w->next;
		free(w);
	}
}

void hydnsd_loop_free(struct hydnsd_loop *l)
{
	if (!l)
		return;
	free_ended(l);
	close(l->epoll);
	free(l);
}

struct hydnsd_watch *hydnsd_loop_watch(struct hydnsd_loop *l, int fd, uint32_t events,
				       void (*ready)(void *arg, uint32_t events), void *arg)
{
	struct hydnsd_watch *w = calloc(1, sizeof(*w));
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (!w)
		return NULL;
	*w = (struct hydnsd_watch){ .loop = l, .fd = fd, .ready = ready, .arg = arg };
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e)) {
		free(w);
		return NULL;
	}
	return w;
}

void hydnsd_watch_change(struct hydnsd_watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	epoll_ctl(w->loop->epoll, EPOLL_CTL_MOD, w->fd, &e);
}

void hydnsd_watch_end(struct hydnsd_watch *w)
{
	if (!w)
		return;
	epoll_ctl(w->loop->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	w->ended = true;
	w->next = w->loop->ended;
	w->loop->ended = w;
}

int hydnsd_loop_every(struct hydnsd_loop *l, uint32_t period_ms, uint32_t (*tick)(void *arg), void *arg)
{
	if (l->ticks == HYDNSD_TICKS_MAX)
		return -ENOSPC;
	l->tick[l->ticks++] = (struct tick){
		.run = tick, .arg = arg, .period_ms = period_ms, .due_ms = hydnsd_now_ms() + period_ms,
	};
	return 0;
}

void hydnsd_loop_each_round(struct hydnsd_loop *l, int (*work)(void *arg), void *arg)
{
	l->work = work;
	l->work_arg = arg;
}

void hydnsd_loop_stop(struct hydnsd_loop *l)
{
	l->stop = true;
}

/* Runs the ticks that are due; returns ms until the next, or -1. */
static int run_ticks(struct hydnsd_loop *l)
{
	int64_t next = -1;

	for (unsigned i = 0; i < l->ticks; i++) {
		struct tick *t = &l->tick[i];
		uint64_t now = hydnsd_now_ms();
		int64_t left;

		if (t->due_ms <= now) {
			uint32_t pause = t->run(t->arg);

			t->due_ms = now + (pause ? pause : t->period_ms);
		}
		now = hydnsd_now_ms();
		left = t->due_ms > now ? (int64_t)(t->due_ms - now) : 0;
		if (next < 0 || left < next)
			next = left;
	}
	return (int)next;
}

void hydnsd_loop_run(struct hydnsd_loop *l)
{
	struct epoll_event events[EVENTS_MAX];

	while (!l->stop) {
		int wait = run_ticks(l), n;

		if (l->work)
			wait = hydnsd_sooner(wait, l->work(l->work_arg));
		if (l->stop)
			break;
		n = epoll_wait(l->epoll, events, EVENTS_MAX, wait);
		for (int i = 0; i < n; i++) {
			struct hydnsd_watch *w = events[i].data.ptr;

			if (!w->ended)
				w->ready(w->arg, events[i].events);
		}
		free_ended(l);
	}
}
