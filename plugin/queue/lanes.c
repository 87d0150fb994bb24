/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Lanes, opened and closed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "plugin/queue/lanes_internal.h"

static bool make_thread(struct hydns_lanes *l, uint32_t i)
{
	struct hydns_lane_thread *t = &l->thread[i];
	struct epoll_event readable = { .events = EPOLLIN };

	*t = (struct hydns_lane_thread){ .all = l, .index = i, .counts = &t->own_counts };
	t->events = epoll_create1(EPOLL_CLOEXEC);
	t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return t->events >= 0 && t->timer >= 0 && epoll_ctl(t->events, EPOLL_CTL_ADD, t->timer, &readable) == 0 &&
	       getrandom(&t->random, sizeof(t->random), 0) == (ssize_t)sizeof(t->random);
}

struct hydns_lanes *hydns_lanes_new(uint32_t threads, uint32_t frames)
{
	struct hydns_lanes *l = calloc(1, sizeof(*l));
	bool made = l;

	if (!l)
		return NULL;
	l->size = (struct hydns_pool_size){ .receive = frames, .send = HYDNS_LANE_SEND_FRAMES, .sockets = threads };
	l->thread = aligned_alloc(_Alignof(struct hydns_lane_thread), threads * sizeof(*l->thread));
	made = l->thread;
	for (uint32_t i = 0; i < threads && made; i++, l->threads++)
		made = make_thread(l, i);
	if (made)
		return l;
	hydns_lanes_free(l);
	return NULL;
}

struct hydns_lane_thread *hydns_lanes_thread(struct hydns_lanes *l, uint32_t i)
{
	return i < l->threads ? &l->thread[i] : NULL;
}

void hydns_lanes_count_in(struct hydns_lane_thread *t, struct hydns_queue_counts *counts)
{
	t->counts = counts ? counts : &t->own_counts;
}

/* Rings first: the pool's memory is in use until the last socket is closed. */
static void free_lane(struct hydns_lanes *l, struct hydns_plugin_lane *lane)
{
	for (uint32_t i = 0; i < l->threads; i++)
		hydns_xsk_close(&lane->ring[i]);
	hydns_pool_close(&lane->pool);
	pthread_mutex_destroy(&lane->lock);
	free(lane->ring);
	free(lane->free);
	free(lane);
}

void hydns_lanes_free(struct hydns_lanes *l)
{
	if (!l)
		return;
	for (unsigned place = 0; place < HYDNS_LANES_MOST; place++)
		if (l->lane[place])
			free_lane(l, l->lane[place]);
	for (uint32_t i = 0; i < l->threads; i++) {
		close(l->thread[i].events);
		close(l->thread[i].timer);
	}
	free(l->thread);
	free(l);
}

/* --- opening -------------------------------------------------------------------------------------------- */
static struct hydns_plugin_lane *new_lane(struct hydns_lanes *l, const struct hydns_lane_setup *s)
{
	struct hydns_plugin_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->setup = *s;
	lane->ring = calloc(l->threads, sizeof(*lane->ring));
	lane->free = calloc((size_t)l->size.send * l->threads, sizeof(*lane->free));
	if (!lane->ring || !lane->free) {
		free(lane->ring);
		free(lane->free);
		free(lane);
		return NULL;
	}
	for (uint32_t i = 0; i < l->threads; i++)
		lane->ring[i].fd = -1;
	pthread_mutex_init(&lane->lock, NULL);
	return lane;
}

/* Gives the kernel the frames to receive into. The fill ring has an entry for each. */
static void share_out(struct hydns_lanes *l, struct hydns_plugin_lane *lane)
{
	const uint32_t receive = l->size.receive * l->threads;
	uint32_t at = 0;

	xsk_ring_prod__reserve(&lane->pool.fill, receive, &at);
	for (uint32_t i = 0; i < receive; i++)
		*xsk_ring_prod__fill_addr(&lane->pool.fill, at + i) = (uint64_t)i * HYDNS_FRAME_ROOM;
	xsk_ring_prod__submit(&lane->pool.fill, receive);
	for (uint32_t i = l->size.send * l->threads; i-- > 0;)       /* the first ones are used first */
		lane->free[lane->frees++] = (uint64_t)(receive + i) * HYDNS_FRAME_ROOM;
}

/* Binds the sockets, which are the lane's from here on: taken[i] becomes -1. */
static int bind_sockets(struct hydns_lanes *l, struct hydns_plugin_lane *lane, int *fd)
{
	int error = hydns_pool_open(&lane->pool, &lane->ring[0], fd[0], &lane->setup.id, &l->size);

	fd[0] = -1;
	for (uint32_t i = 1; i < l->threads && !error; i++) {
		error = hydns_xsk_join(&lane->ring[i], fd[i], &lane->ring[0], &lane->setup.id, &l->size);
		fd[i] = -1;
	}
	return error;
}

static int watch_sockets(struct hydns_lanes *l, struct hydns_plugin_lane *lane)
{
	struct epoll_event readable = { .events = EPOLLIN };

	for (uint32_t i = 0; i < l->threads; i++)
		if (epoll_ctl(l->thread[i].events, EPOLL_CTL_ADD, lane->ring[i].fd, &readable))
			return -errno;
	return 0;
}

int hydns_lanes_watch(struct hydns_lane_thread *t, int fd)
{
	struct epoll_event readable = { .events = EPOLLIN };

	return epoll_ctl(t->events, EPOLL_CTL_ADD, fd, &readable) ? -errno : 0;
}

static int free_place(const struct hydns_lanes *l)
{
	for (int place = 0; place < HYDNS_LANES_MOST; place++)
		if (!l->lane[place])
			return place;
	return -ENOSPC;
}

int hydns_lane_open(struct hydns_lanes *l, const struct hydns_lane_setup *s, const int *fd)
{
	int place = free_place(l), error = place < 0 ? place : 0, mine[HYDNS_THREADS_MAX];
	struct hydns_plugin_lane *lane = error ? NULL : new_lane(l, s);

	memcpy(mine, fd, l->threads * sizeof(*mine));
	if (!error && !lane)
		error = -ENOMEM;
	if (!error)
		error = bind_sockets(l, lane, mine);
	if (!error) {
		lane->made = ++l->made;
		share_out(l, lane);
		error = watch_sockets(l, lane);
	}
	for (uint32_t i = 0; i < l->threads; i++)
		if (mine[i] >= 0)
			close(mine[i]);
	if (error) {
		if (lane)
			free_lane(l, lane);
		return error;
	}
	atomic_store(&l->lane[place], lane);
	if ((unsigned)place >= atomic_load(&l->places))
		atomic_store(&l->places, (unsigned)place + 1);
	return place;
}

/* --- closing -------------------------------------------------------------------------------------------- */
static void wait_a_moment(void (*beat)(void *arg), void *arg)
{
	nanosleep(&(struct timespec){ .tv_nsec = HYDNS_NS_PER_MS }, NULL);
	if (beat)
		beat(arg);
}

static bool empty(const struct hydns_lanes *l, const struct hydns_plugin_lane *lane)
{
	for (uint32_t i = 0; i < l->threads; i++)
		if (hydns_xsk_unread(&lane->ring[i]))
			return false;
	return true;
}

/* Until no thread is in a call that began before. */
static void wait_for_threads(struct hydns_lanes *l, void (*beat)(void *arg), void *arg)
{
	for (uint32_t i = 0; i < l->threads; i++) {
		const uint64_t busy = atomic_load(&l->thread[i].busy);

		while ((busy & 1) && atomic_load(&l->thread[i].busy) == busy)
			wait_a_moment(beat, arg);
	}
}

void hydns_lane_close(struct hydns_lanes *l, int place, uint32_t most_ms, void (*beat)(void *arg), void *arg)
{
	struct hydns_plugin_lane *lane = l->lane[place];

	if (!lane)
		return;
	for (uint32_t ms = 0; ms < most_ms && !empty(l, lane); ms++)
		wait_a_moment(beat, arg);
	atomic_store(&l->lane[place], NULL);
	wait_for_threads(l, beat, arg);
	free_lane(l, lane);
}

const struct hydns_lane_setup *hydns_lane_at(const struct hydns_lanes *l, int place)
{
	const struct hydns_plugin_lane *lane = l->lane[place];

	return lane ? &lane->setup : NULL;
}

static void tell_dropped(struct hydns_backlog *b, uint64_t dropped)
{
	__atomic_store_n(&b->dropped, (uint32_t)dropped, __ATOMIC_RELAXED);
}

/* Some places stay free: for frames that the program gives while the counts are begun anew, and for what it does not know. */
static uint32_t room_of(const struct hydns_lanes *l)
{
	return l->size.receive - l->size.receive / 8;
}

void hydns_lane_count_backlog(struct hydns_lanes *l, int place, struct hydns_backlog *of_thread)
{
	struct hydns_plugin_lane *lane = l->lane[place];

	for (uint32_t i = 0; i < l->threads && of_thread; i++) {
		const struct hydns_xsk *r = &lane->ring[i];
		const uint64_t dropped = hydns_xsk_dropped(r);
		struct hydns_backlog *b = &of_thread[i];

		tell_dropped(b, dropped);
		__atomic_store_n(&b->taken, hydns_xsk_taken(r), __ATOMIC_RELAXED);
		__atomic_store_n(&b->given, hydns_xsk_taken(r) + hydns_xsk_unread(r) + (uint32_t)dropped, __ATOMIC_RELAXED);
		__atomic_store_n(&b->room, room_of(l), __ATOMIC_RELEASE);
	}
	atomic_store(&lane->backlog, of_thread);
}

void hydns_lanes_forget_backlogs(struct hydns_lanes *l)
{
	for (unsigned place = 0; place < HYDNS_LANES_MOST; place++)
		if (l->lane[place])
			atomic_store(&l->lane[place]->backlog, NULL);
	wait_for_threads(l, NULL, NULL);
}

static struct hydns_lane_level level_of(const struct hydns_plugin_lane *lane, uint32_t thread)
{
	const struct hydns_xsk *r = lane ? &lane->ring[thread] : NULL;

	if (!lane)
		return (struct hydns_lane_level){ 0 };
	return (struct hydns_lane_level){ .lane = lane->setup.number + 1, .waiting = hydns_xsk_unread(r),
					  .unsent = hydns_xsk_unsent(r), .free = hydns_pool_unused(&lane->pool),
					  .dropped = hydns_xsk_dropped(r) };
}

void hydns_lanes_levels(const struct hydns_lanes *l, uint32_t thread, struct hydns_lane_level *level)
{
	for (unsigned place = 0; place < l->places; place++) {
		struct hydns_plugin_lane *lane = l->lane[place];
		struct hydns_backlog *backlog = lane ? atomic_load(&lane->backlog) : NULL;
		const struct hydns_lane_level now = level_of(lane, thread);
		struct hydns_lane_level *to = &level[place];

		__atomic_store_n(&to->lane, now.lane, __ATOMIC_RELAXED);
		__atomic_store_n(&to->waiting, now.waiting, __ATOMIC_RELAXED);
		__atomic_store_n(&to->unsent, now.unsent, __ATOMIC_RELAXED);
		__atomic_store_n(&to->free, now.free, __ATOMIC_RELAXED);
		__atomic_store_n(&to->dropped, now.dropped, __ATOMIC_RELAXED);
		if (backlog)
			tell_dropped(&backlog[thread], now.dropped);
	}
}

int hydns_lanes_highest_fd(const struct hydns_lanes *l)
{
	int highest = -1;

	for (unsigned place = 0; place < HYDNS_LANES_MOST; place++) {
		const struct hydns_plugin_lane *lane = l->lane[place];

		for (uint32_t i = 0; lane && i < l->threads; i++)
			if (lane->ring[i].fd > highest)
				highest = lane->ring[i].fd;
	}
	return highest;
}
