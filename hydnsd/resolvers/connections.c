/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/connections.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/daemon/loop.h"
#include "hydnsd/daemon/sockets.h"
#include "hydnsd/resolvers/counts.h"
#include "hydnsd/resolvers/hold.h"
#include "hydnsd/resolvers/intake.h"
#include "hydnsd/resolvers/messages.h"
#include "hydnsd/resolvers/porter.h"
#include "hydnsd/resolvers/session_internal.h"

#define HELLO_WITHIN_MS 5000           /* a connection that says nothing must not keep its place */
#define DELIVERY_MS    2000            /* a porter takes longer over descriptors only when they block */

static void free_dead(struct hydnsd_sessions *all)
{
	struct hydnsd_session **at = &all->first;

	while (*at) {
		struct hydnsd_session *s = *at;

		if (!s->dead) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		all->count--;
		free(s);
	}
}

static unsigned sessions_of(const struct hydnsd_sessions *all, uid_t uid)
{
	unsigned n = 0;

	for (const struct hydnsd_session *s = all->first; s; s = s->next)
		n += s->uid == uid;
	return n;
}

static void add_session(struct hydnsd *d, int fd)
{
	struct hydnsd_sessions *all = d->sessions;
	struct hydnsd_session *s = calloc(1, sizeof(*s));
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (!s || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
		free(s);
		hydnsd_connection_close(fd);
		return;
	}
	if (sessions_of(all, peer.uid) >= d->options.plugin_connections_per_user) {
		d->bound_counts.plugin_connections_per_user++;
		hydnsd_log_client(HYDNSD_LOG_WARNING, "refused a connection of process %d: user %u has %u already: stop "
				  "some of its resolvers, or raise plugin-connections-per-user", (int)peer.pid, peer.uid,
				  d->options.plugin_connections_per_user);
		free(s);
		hydnsd_connection_close(fd);
		return;
	}
	*s = (struct hydnsd_session){
		.daemon = d, .id = ++all->last_id, .fd = fd, .doorbell = -1, .resolver = -1,
		.uid = peer.uid, .pid = peer.pid, .since_ms = hydnsd_now_ms(), .next = all->first,
	};
	s->watch = hydnsd_loop_watch(d->loop, fd, EPOLLIN, hydnsd_messages_readable, s);
	if (!s->watch) {
		free(s);
		hydnsd_connection_close(fd);
		return;
	}
	all->first = s;
	all->count++;
}

/* Accepts no connections while there is no place for one, or no descriptor: they wait in the kernel's queue. */
static void watch_listeners(struct hydnsd *d)
{
	struct hydnsd_sessions *all = d->sessions;
	bool full = all->count + hydnsd_porters_leaving() >= d->options.plugin_connections, hold = full || all->exhausted;

	for (uint32_t i = 0; i < all->listeners && hold != all->hold; i++)
		hydnsd_watch_change(all->listener[i].watch, hold ? 0 : EPOLLIN);
	if (full && !all->full) {
		d->bound_counts.plugin_connections++;
		hydnsd_log_client(HYDNSD_LOG_WARNING, "%u plugins are connected, as many as plugin-connections allows: "
				  "others wait until one leaves", all->count);
	}
	all->hold = hold;
	all->full = full;
}

static void acceptable(void *arg, uint32_t events)
{
	struct hydnsd_listener *l = arg;
	int fd = hydnsd_socket_accept(l->fd, &l->daemon->sessions->exhausted);

	(void)events;
	if (fd >= 0)
		add_session(l->daemon, fd);
	else if (l->daemon->sessions->exhausted)
		hydnsd_log_client(HYDNSD_LOG_WARNING, "cannot accept a connection of a plugin: %s: raise LimitNOFILE of hydnsd, "
				  "or lower plugin-connections", strerror(errno));
	watch_listeners(l->daemon);
}

static uint32_t drop_silent(void *arg)
{
	struct hydnsd *d = arg;
	uint64_t now = hydnsd_now_ms();

	hydnsd_porters_tick();
	d->sessions->exhausted = false;
	watch_listeners(d);
	for (struct hydnsd_session *s = d->sessions->first; s; s = s->next) {
		if (!s->dead && s->resolver < 0 && !s->other_abi && now > s->since_ms + HELLO_WITHIN_MS)
			hydnsd_session_end(s, "no HELLO");
		if (!s->dead && s->asked_ms && now - s->asked_ms > DELIVERY_MS)
			hydnsd_session_end(s, "its descriptors block whoever takes them");
	}
	return 0;
}

static int add_listener(struct hydnsd *d, const char *path, char *why, size_t room)
{
	struct hydnsd_listener *l = &d->sessions->listener[d->sessions->listeners];
	int fd = hydnsd_socket_listen(path, SOCK_SEQPACKET, d->options.plugin_group, why, room);

	if (fd < 0)
		return fd;
	d->sessions->listeners++;
	*l = (struct hydnsd_listener){ .daemon = d, .fd = fd, .path = strdup(path) };
	l->watch = hydnsd_loop_watch(d->loop, fd, EPOLLIN, acceptable, l);
	if (l->watch && l->path)
		return 0;
	snprintf(why, room, "out of memory");
	return -ENOMEM;
}

int hydnsd_sessions_start(struct hydnsd *d, char *why, size_t room)
{
	const struct hydnsd_list *paths = &d->options.plugin_socket;

	d->sessions = calloc(1, sizeof(*d->sessions));
	if (!d->sessions) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < paths->count; i++) {
		int rc = add_listener(d, paths->item[i], why, room);

		if (rc)
			return rc;
	}
	return hydnsd_loop_every(d->loop, HELLO_WITHIN_MS / 5, drop_silent, d);
}

/* Without them the resolvers' own statistics would lack what came after the last STATS. */
static void send_last_counts(struct hydnsd_session *s)
{
	struct hydns_counts counts;

	if (s->dead || s->resolver < 0)
		return;
	hydnsd_resolver_counts(s->daemon, (uint32_t)s->resolver, &counts);
	hydnsd_session_send(s, HYDNS_MSG_COUNTS, 0, &counts, sizeof(counts), NULL, 0);
}

void hydnsd_sessions_stop(struct hydnsd *d)
{
	struct hydnsd_sessions *all = d->sessions;

	if (!all)
		return;
	for (struct hydnsd_session *s = all->first; s; s = s->next) {
		send_last_counts(s);
		hydnsd_session_end(s, NULL);
	}
	free_dead(all);
	for (uint32_t i = 0; i < all->listeners; i++) {
		hydnsd_watch_end(all->listener[i].watch);
		/* The end of this process closes what waits to be accepted there, and does not linger as close() may. */
		unlink(all->listener[i].path);
		free(all->listener[i].path);
	}
	free(all);
	d->sessions = NULL;
}

int hydnsd_sessions_work(struct hydnsd *d)
{
	int wait = -1;

	free_dead(d->sessions);
	for (struct hydnsd_session *s = d->sessions->first; s; s = s->next)
		if (!s->dead) {
			wait = hydnsd_sooner(wait, hydnsd_hold_rest_left(s));
			wait = hydnsd_sooner(wait, hydnsd_intake_work(s));
		}
	return wait;
}
