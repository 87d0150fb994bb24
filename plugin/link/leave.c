/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The end of an object, in steps, so that a resolver that reloads waits only for those that it needs. The order makes it
 * safe:
 *
 *   the caller       (1) sets closed, (2) kills all rules by advancing the epoch, (3) wakes the link thread.
 *   the link thread  (4) closes its copies of listening sockets, and has no port claimed for a query to upstream any more,
 *                    (5) waits for a grace period, (6) reports that no kernel answer is sent any more, (7) says BYE to
 *                    hydnsd and ends.
 *   an offerer       (a) takes its stamp, the epoch in it, (b) reads closed, (c) writes its offer with that stamp.
 *
 * All accesses are sequentially consistent. An offerer that read closed as unset in (b) took its stamp before (1), so
 * before (2): whenever its offer becomes a rule, that rule is dead. So no rule is alive after (2), none is being sent after
 * (5), and one grace period is enough. If hydnsd gives another page meanwhile, its first epoch is one that no offer has.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "plugin/internal.h"
#include "plugin/log.h"

int hydns_leave_init(struct hydns_leave *l)
{
	l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake < 0)
		return -errno;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->further, NULL);
	return 0;
}

void hydns_leave_destroy(struct hydns_leave *l)
{
	pthread_cond_destroy(&l->further);
	pthread_mutex_destroy(&l->lock);
	close(l->wake);
}

static void reach(struct hydns_leave *l, enum hydns_leave_step step)
{
	pthread_mutex_lock(&l->lock);
	l->step = step;
	pthread_cond_broadcast(&l->further);
	pthread_mutex_unlock(&l->lock);
}

static void wait_for(struct hydns_leave *l, enum hydns_leave_step step)
{
	pthread_mutex_lock(&l->lock);
	while (l->step < step)
		pthread_cond_wait(&l->further, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

/* False: another caller has begun. */
static bool begin(struct hydns_leave *l, void (*gone)(void *arg), void *arg)
{
	bool first;

	pthread_mutex_lock(&l->lock);
	first = l->step == HYDNS_LEAVE_NOT;
	if (first) {
		l->step = HYDNS_LEAVE_BEGUN;
		l->gone = gone;
		l->arg = arg;
	}
	pthread_mutex_unlock(&l->lock);
	return first;
}

static void end(struct hydns_leave *l)
{
	reach(l, HYDNS_LEAVE_DONE);
	if (l->gone)
		l->gone(l->arg);
}

/* (1) and (2) */
static void shut(struct hydns_plugin *p)
{
	atomic_store(&p->closed, true);
	atomic_store(&p->ready, false);
	hydns_pages_advance_generation(p->pages);
	hydns_plugin_kill_rules(p);
}

void hydns_plugin_close(struct hydns_plugin *p)
{
	hydns_plugin_end_preload(p);
	shut(p);
	hydns_plugin_wait_grace(p);
}

static void close_sockets(struct hydns_plugin *p)
{
	while (p->services)
		close(p->service[--p->services]);
}

/* Without a link thread, no program has ever read a page of this object. */
static void leave(struct hydns_plugin *p)
{
	const bool quiet = hydns_suspension_end(p);

	hydns_plugin_end_preload(p);
	shut(p);
	if (quiet)
		atomic_store(&p->grace_over, true);
	hydns_pages_beat(p->pages, 0);
	if (!p->started) {
		close_sockets(p);
		end(&p->leave);
		return;
	}
	atomic_store(&p->stopping, true);
	/* The first write to it: there is room. */
	if (eventfd_write(p->leave.wake, 1))
		hydns_log(p, HYDNS_LOG_ERROR, "cannot wake the link thread: %s", strerror(errno));
}

void hydns_plugin_leave(struct hydns_plugin *p, void (*gone)(void *arg), void *arg)
{
	bool first = begin(&p->leave, gone, arg);

	if (first)
		leave(p);
	wait_for(&p->leave, HYDNS_LEAVE_SOCKETS);
	if (first || !gone)
		return;
	hydns_plugin_gone(p);
	gone(arg);
}

void hydns_plugin_gone(struct hydns_plugin *p)
{
	wait_for(&p->leave, HYDNS_LEAVE_DONE);
}

void hydns_leave_go(struct hydns_plugin *p)
{
	if (p->leave.step >= HYDNS_LEAVE_SOCKETS)       /* read without the lock: only this thread writes these steps */
		return;
	close_sockets(p);
	if (p->upstream)       /* hydnsd will soon have forgotten whose answers come to its ports */
		hydns_ports_pause(hydns_upstream_ports(p->upstream));
	reach(&p->leave, HYDNS_LEAVE_SOCKETS);
	hydns_plugin_wait_grace(p);
	end(&p->leave);
}
