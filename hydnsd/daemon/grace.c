/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/grace.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "hydns-kern/loader/cpus.h"

struct waiter {
	void (*done)(void *arg);
	void *arg;
	struct waiter *next;
};

/* A way to wait for a grace period, with a thread of its own. */
struct way {
	struct hydnsd_grace *grace;
	bool (*wait)(void);            /* blocks; false: this way is not possible now */
	pthread_t thread;
};

enum { BARRIER, TOUR, WAYS };

struct hydnsd_grace {
	struct hydnsd_rules *rules;
	struct hydnsd_watch *watch;
	int over_fd;                   /* eventfd: the grace period under way is over */
	bool running;
	struct waiter *covered;        /* by the grace period under way */
	struct waiter *later;          /* came after that began */
	struct way ways[WAYS];         /* of them the faster ends the grace period */
	unsigned started;              /* of them */
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	uint64_t begun, over;          /* under the lock: how many grace periods */
	bool quit;                     /* under the lock */
};

static long membarrier(int command)
{
	return syscall(__NR_membarrier, command, 0, 0);
}

void hydnsd_grace_wait(void)
{
	membarrier(MEMBARRIER_CMD_GLOBAL);
}

static bool barrier(void)
{
	return membarrier(MEMBARRIER_CMD_GLOBAL) == 0;
}

static bool tour(void)
{
	return hydns_cpus_tour() == 0;
}

/* The other way may have been faster, and the next grace period may have begun since. */
static void end_grace_period(struct hydnsd_grace *g, uint64_t number)
{
	const uint64_t one = 1;

	if (g->over >= number)
		return;
	g->over = number;
	while (write(g->over_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void *run(void *arg)
{
	const struct way *way = arg;
	struct hydnsd_grace *g = way->grace;
	uint64_t number = 0;

	pthread_mutex_lock(&g->lock);
	for (;;) {
		bool waited;

		while (!g->quit && (g->begun == number || g->over == g->begun))
			pthread_cond_wait(&g->wanted, &g->lock);
		if (g->quit)
			break;
		number = g->begun;
		pthread_mutex_unlock(&g->lock);
		waited = way->wait();
		pthread_mutex_lock(&g->lock);
		if (waited)
			end_grace_period(g, number);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

static void begin(struct hydnsd_grace *g)
{
	g->running = true;
	g->covered = g->later;
	g->later = NULL;
	hydnsd_rules_grace_begin(g->rules);
	pthread_mutex_lock(&g->lock);
	g->begun++;
	pthread_cond_broadcast(&g->wanted);
	pthread_mutex_unlock(&g->lock);
}

static void over(void *arg, uint32_t events)
{
	struct hydnsd_grace *g = arg;
	struct waiter *w = g->covered;
	uint64_t count;

	(void)events;
	if (read(g->over_fd, &count, sizeof(count)) < 0)
		return;
	g->covered = NULL;
	g->running = false;
	hydnsd_rules_grace_end(g->rules);
	while (w) {
		struct waiter *next = w->next;

		w->done(w->arg);
		free(w);
		w = next;
	}
	if (g->later && !g->running)
		begin(g);
}

int hydnsd_grace_after(struct hydnsd_grace *g, void (*done)(void *arg), void *arg)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct waiter){ .done = done, .arg = arg, .next = g->later };
	g->later = w;
	if (!g->running)
		begin(g);
	return 0;
}

void hydnsd_grace_reclaim(struct hydnsd_grace *g)
{
	if (!g->running && hydnsd_rules_grace_needed(g->rules))
		begin(g);
}

static void free_waiters(struct waiter *w)
{
	while (w) {
		struct waiter *next = w->next;

		free(w);
		w = next;
	}
}

static int start_thread(struct way *way)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&way->thread, NULL, run, way);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

static void stop_threads(struct hydnsd_grace *g)
{
	pthread_mutex_lock(&g->lock);
	g->quit = true;
	pthread_cond_broadcast(&g->wanted);
	pthread_mutex_unlock(&g->lock);
	while (g->started)
		pthread_join(g->ways[--g->started].thread, NULL);
}

static int start_threads(struct hydnsd_grace *g)
{
	static bool (*const wait[WAYS])(void) = { [BARRIER] = barrier, [TOUR] = tour };

	for (; g->started < WAYS; g->started++) {
		struct way *way = &g->ways[g->started];
		int rc;

		*way = (struct way){ .grace = g, .wait = wait[g->started] };
		rc = start_thread(way);
		if (rc)
			return rc;
	}
	return 0;
}

static void free_grace(struct hydnsd_grace *g)
{
	hydnsd_watch_end(g->watch);
	if (g->over_fd >= 0)
		close(g->over_fd);
	free_waiters(g->covered);
	free_waiters(g->later);
	pthread_cond_destroy(&g->wanted);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

int hydnsd_grace_start(struct hydnsd_loop *l, struct hydnsd_rules *r, struct hydnsd_grace **out,
		       char *why, size_t room)
{
	struct hydnsd_grace *g;
	long commands = membarrier(MEMBARRIER_CMD_QUERY);
	int rc;

	if (commands < 0 || !(commands & MEMBARRIER_CMD_GLOBAL)) {
		snprintf(why, room, "membarrier(MEMBARRIER_CMD_GLOBAL) is not available: use a kernel with "
			 "CONFIG_MEMBARRIER and without nohz_full");
		return -ENOSYS;
	}
	g = calloc(1, sizeof(*g));
	if (!g) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	g->rules = r;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->wanted, NULL);
	g->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->watch = g->over_fd < 0 ? NULL : hydnsd_loop_watch(l, g->over_fd, EPOLLIN, over, g);
	rc = g->watch ? start_threads(g) : -errno;
	if (rc) {
		snprintf(why, room, "cannot start the threads for grace periods: %s", strerror(-rc));
		stop_threads(g);
		free_grace(g);
		return rc;
	}
	*out = g;
	return 0;
}

void hydnsd_grace_stop(struct hydnsd_grace *g)
{
	if (!g)
		return;
	stop_threads(g);
	free_grace(g);
}
