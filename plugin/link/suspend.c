/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A resolver that reloads, and may go on with the configuration and the cache that it has. Its rules wait until it knows:
 *
 *   the caller   (1) suspends all rules, (2) starts a thread.
 *   the thread   (3) waits for a grace period, (4) reports that no kernel answer is sent any more.
 *   the caller   (5) either ends the suspension, and hydnsd acts upon all that has changed meanwhile before the rules count again
 *                (serve.c), or leaves (leave.c). No rule has counted since (1), so then (3) was the grace period that the end needs.
 */
#include <string.h>
#include "plugin/internal.h"
#include "plugin/log.h"
#include "plugin/start_thread.h"

static void *wait_and_report(void *plugin)
{
	struct hydns_plugin *p = plugin;

	hydns_plugin_grace(p);
	if (p->suspension.gone)
		p->suspension.gone(p->suspension.arg);
	return NULL;
}

static void *thread_main(void *plugin)
{
	struct hydns_plugin *p = plugin;

	if (p->o.thread_begins)
		p->o.thread_begins();
	wait_and_report(p);
	if (p->o.thread_ends)
		p->o.thread_ends();
	return NULL;
}

static void join(struct hydns_plugin *p)
{
	if (p->suspension.has_thread)
		pthread_join(p->suspension.thread, NULL);
	p->suspension.has_thread = false;
}

bool hydns_plugin_suspend(struct hydns_plugin *p, void (*gone)(void *arg), void *arg)
{
	int error;

	if (!p->started || hydns_pages_fd(p->pages) < 0 || atomic_load(&p->closed))
		return false;
	join(p);
	hydns_pending_hold(&p->pending, p->pages);
	p->suspension.gone = gone;
	p->suspension.arg = arg;
	error = hydns_start_thread(&p->suspension.thread, thread_main, p);
	p->suspension.has_thread = !error;
	if (error) {
		hydns_log(p, HYDNS_LOG_WARNING, "cannot start a thread, so a reload waits for the kernel: %s", strerror(error));
		wait_and_report(p);
	}
	return true;
}

void hydns_plugin_resume(struct hydns_plugin *p)
{
	join(p);
	hydns_pending_release(&p->pending);
	hydns_requests_wake(&p->requests);
}

bool hydns_suspension_end(struct hydns_plugin *p)
{
	join(p);
	return hydns_pending_held(&p->pending);
}
