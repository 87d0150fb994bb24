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

struct waiter {
	void (*done)(void *arg);
	void *arg;
	struct waiter *next;
};

struct hydnsd_grace {
	struct hydnsd_rules *rules;
	struct hydnsd_watch *watch;
	int over_fd;                   /* eventfd: the thread has waited for one grace period */
	bool running;
	struct waiter *covered;        /* by the grace period under way */
	struct waiter *later;          /* came after that began */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	bool want, quit;               /* under the lock */
};

static long membarrier(int command)
{
	return syscall(__NR_membarrier, command, 0, 0);
}

void hydnsd_grace_wait(void)
{
	membarrier(MEMBARRIER_CMD_GLOBAL);
}

static void *run(void *arg)
{
	struct hydnsd_grace *g = arg;
	const uint64_t one = 1;

	pthread_mutex_lock(&g->lock);
	for (;;) {
		while (!g->want && !g->quit)
			pthread_cond_wait(&g->wanted, &g->lock);
		if (g->quit)
			break;
		g->want = false;
		pthread_mutex_unlock(&g->lock);
		membarrier(MEMBARRIER_CMD_GLOBAL);
		while (write(g->over_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_mutex_lock(&g->lock);
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
	g->want = true;
	pthread_cond_signal(&g->wanted);
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

static int start_thread(struct hydnsd_grace *g)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&g->thread, NULL, run, g);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
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
	rc = g->watch ? start_thread(g) : -errno;
	if (rc) {
		snprintf(why, room, "cannot start the grace thread: %s", strerror(-rc));
		hydnsd_watch_end(g->watch);
		if (g->over_fd >= 0)
			close(g->over_fd);
		free(g);
		return rc;
	}
	*out = g;
	return 0;
}

static void free_waiters(struct waiter *w)
{
	while (w) {
		struct waiter *next = w->next;

		free(w);
		w = next;
	}
}

void hydnsd_grace_stop(struct hydnsd_grace *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	g->quit = true;
	pthread_cond_signal(&g->wanted);
	pthread_mutex_unlock(&g->lock);
	pthread_join(g->thread, NULL);
	hydnsd_watch_end(g->watch);
	close(g->over_fd);
	free_waiters(g->covered);
	free_waiters(g->later);
	pthread_cond_destroy(&g->wanted);
	pthread_mutex_destroy(&g->lock);
	free(g);
}
