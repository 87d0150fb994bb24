/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The link thread's life: connect, serve, lose the connection, connect again, until the resolver leaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "plugin/link/thread.h"
#include "plugin/log.h"
#include "plugin/start_thread.h"

#define BACKOFF_MIN_MS  100U
#define BACKOFF_AWAY_MS 200U   /* at most, while nobody listens: an attempt then costs next to nothing */
#define BACKOFF_MAX_MS  1000U  /* otherwise, because hydnsd logs each refusal */

/* Connects and configures, until READY is acknowledged. */
static int open_connection(struct hydns_link *l)
{
	int error = hydns_link_connect(l);

	if (error)
		return error;
	error = hydns_link_hello(l);
	if (!error)
		error = hydns_link_configure(l);
	if (error == -HYDNS_EREFUSED)
		hydns_link_take_refusal(l);
	else if (error == -ECANCELED)
		hydns_link_say_bye(l);
	else if (error && !atomic_load(&l->p->stopping))
		hydns_link_log_state(l, HYDNS_LOG_WARNING, "registering with hydnsd failed: %s", strerror(-error));
	return error;
}

/* error: what has lost the connection; 0: it was not lost, or there was none. */
static void close_connection(struct hydns_link *l, int error)
{
	bool was_ready = l->ready;

	l->ready = false;
	atomic_store(&l->p->ready, false);
	hydns_requests_accept(&l->p->requests, false);
	if (was_ready)
		atomic_fetch_add(&l->p->interval, 1);
	if (l->sock >= 0)
		close(l->sock);
	l->sock = -1;
	if (was_ready)
		hydns_link_mark_unread(l);
	if (error)
		hydns_link_log_state(l, HYDNS_LOG_WARNING, "connection to hydnsd lost (%s): kernel answers go on, but those of "
				     "names whose data change wait until it is back", strerror(-error));
	l->lost |= error != 0;
}

/* From READY to the end. Negative errno: the connection is lost; 0: the resolver leaves. */
static int run_connection(struct hydns_link *l)
{
	int error;

	atomic_fetch_add(&l->p->interval, 1);
	hydns_requests_accept(&l->p->requests, true);
	l->ready = true;
	hydns_link_set_ready(l);
	l->lost = false;
	hydns_link_log_state(l, HYDNS_LOG_INFO, "connected to hydnsd at %s", l->p->o.socket);
	/* A hydnsd that died asleep left no need_wakeup set, so the rings are shown to the new one once. */
	if (eventfd_write(l->p->doorbell, 1) && errno != EAGAIN)
		hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd's doorbell does not work: %s", strerror(errno));
	error = hydns_link_serve(l);
	if (error && error != -ECANCELED)
		return atomic_load(&l->p->stopping) ? 0 : error;
	hydns_link_say_bye(l);
	return 0;
}

static void *link_main(void *plugin)
{
	struct hydns_link l = { .p = plugin, .sock = -1 };
	uint32_t backoff = BACKOFF_MIN_MS, most;
	eventfd_t ignored;

	if (l.p->o.thread_begins)
		l.p->o.thread_begins();
	hydns_plugin_stop(l.p->former);       /* first: hydnsd takes no address from two at a time */
	l.p->former = NULL;
	hydns_link_start_log(&l);             /* not before: the former one's may write to the same file */
	l.refused = calloc(l.p->services + 1, sizeof(*l.refused));
	while (!atomic_load(&l.p->stopping)) {
		int lost = 0;

		if (open_connection(&l) == 0) {
			backoff = BACKOFF_MIN_MS;
			lost = run_connection(&l);
		}
		most = l.sock < 0 ? BACKOFF_AWAY_MS : BACKOFF_MAX_MS;
		close_connection(&l, lost);
		(void)eventfd_read(l.p->requests.wake, &ignored);      /* fails only when nobody has written */
		if (!atomic_load(&l.p->stopping))
			hydns_link_await(&l, 0, true, hydns_mono_ns() + backoff * HYDNS_NS_PER_MS);
		backoff = backoff * 2 < most ? backoff * 2 : most;
	}
	hydns_link_leave(&l);
	if (l.p->lanes)
		hydns_lanes_forget_backlogs(l.p->lanes);        /* which end with this object; the lanes may be a successor's */
	free(l.refused);
	if (l.p->o.thread_ends)
		l.p->o.thread_ends();
	return NULL;
}

int hydns_plugin_start(struct hydns_plugin *p)
{
	int error = hydns_start_thread(&p->link, link_main, p);

	if (error) {
		hydns_log(p, HYDNS_LOG_ERROR, "cannot start the link thread: %s", strerror(error));
		return -error;
	}
	p->started = true;
	return 0;
}
