/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Connecting to hydnsd, HELLO, and what its WELCOME brings: the doorbell and the resolver page. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "plugin/link/thread.h"

#define GROUP_ROOM 33

/* From the file alone: a name service that does not answer would stop the heartbeat. */
static const char *group_name(gid_t gid, char out[GROUP_ROOM])
{
	char text[4096];
	struct group entry, *g = NULL;
	FILE *f = fopen("/etc/group", "re");
	bool found = false;

	snprintf(out, GROUP_ROOM, "%u", (unsigned)gid);
	while (f && !found && fgetgrent_r(f, &entry, text, sizeof(text), &g) == 0)
		found = g->gr_gid == gid;
	if (found)
		snprintf(out, GROUP_ROOM, "%s", g->gr_name);
	if (f)
		fclose(f);
	return out;
}

/* After a logged loss, "there is no hydnsd" is no news. */
static void log_unreachable(struct hydns_link *l, int error)
{
	const char *path = l->p->o.socket;
	char group[GROUP_ROOM];
	struct stat st;

	if (l->lost && (error == -ECONNREFUSED || error == -ENOENT))
		return;
	if (error == -EACCES && stat(path, &st) == 0 && (st.st_mode & S_IWGRP))
		hydns_link_log_state(l, HYDNS_LOG_WARNING,
			"hydnsd's socket %s may not be used by this process (user %u): every query goes "
			"through the resolver until it may; add the resolver's user to group %s, which is hydnsd's plugin-group, "
			"and restart the resolver", path, (unsigned)geteuid(), group_name(st.st_gid, group));
	else if (error == -EACCES && stat(path, &st) == 0)
		hydns_link_log_state(l, HYDNS_LOG_WARNING,
			"hydnsd's socket %s is open to root alone, and this process is user %u: every query "
			"goes through the resolver until it may; set plugin-group in hydnsd.conf to a group of that user, and "
			"restart hydnsd", path, (unsigned)geteuid());
	else if (error == -EACCES)
		hydns_link_log_state(l, HYDNS_LOG_WARNING,
			"hydnsd's socket %s is in a directory that this process (user %u) may not enter: "
			"every query goes through the resolver until it may; let the resolver's user, or a group of its, pass "
			"there", path, (unsigned)geteuid());
	else
		hydns_link_log_state(l, HYDNS_LOG_WARNING,
			"hydnsd cannot be reached at %s (%s): every query goes through the "
			"resolver until it can; start hydnsd or correct the path", path, strerror(-error));
}

int hydns_link_connect(struct hydns_link *l)
{
	l->sock = hydns_channel_connect(l->p->o.socket);
	if (l->sock >= 0)
		return 0;
	log_unreachable(l, l->sock);
	return l->sock;
}

/* Takes map_fd over; -1: none came. */
static int take_page(struct hydns_link *l, const struct hydns_welcome *w, int map_fd)
{
	bool had = hydns_pages_fd(l->p->pages) >= 0;
	int error;

	if (w->adopted) {
		if (map_fd >= 0)
			close(map_fd);
		return had ? 0 : -EPROTO;
	}
	if (map_fd < 0)
		return -EPROTO;
	error = hydns_pages_switch(l->p->pages, map_fd, w->epoch, hydns_mono_ns());
	if (error)
		return error;
	hydns_requests_new_page(&l->p->requests);
	hydns_pending_forget(&l->p->pending, l->p->pages);
	hydns_link_show_clocks(l);
	hydns_secrets_publish(&l->p->secrets, l->p->pages);
	atomic_fetch_add(&l->p->store_serial, 1);
	return 0;
}

static int take_welcome(struct hydns_link *l)
{
	struct hydns_welcome w;
	int doorbell = l->in.fd[0], page = l->in.fd[1], error = 0;

	if (l->in.head.len != sizeof(w) || doorbell < 0 || l->in.fds > 2) {
		hydns_channel_close_fds(&l->in);
		return -EPROTO;
	}
	memcpy(&w, l->in.payload, sizeof(w));
	/* Onto the same number: resolver threads may be writing to it at this moment. */
	if (dup3(doorbell, l->p->doorbell, O_CLOEXEC) < 0)
		error = -errno;
	close(doorbell);
	hydns_link_guard(l, w.guard_failures, w.guard_waiting);
	if (!error)
		return take_page(l, &w, page);
	if (page >= 0)
		close(page);
	return error;
}

int hydns_link_hello(struct hydns_link *l)
{
	int fd[HYDNS_THREADS_MAX + 1];
	unsigned fds = l->p->o.threads;
	struct hydns_hello h;
	int error;

	hydns_link_describe(l, &h);
	for (uint32_t i = 0; i < fds; i++)
		fd[i] = l->p->thread[i].ring.fd;
	if (hydns_pages_fd(l->p->pages) >= 0)
		fd[fds++] = hydns_pages_fd(l->p->pages);
	error = hydns_link_call(l, HYDNS_MSG_HELLO, &h, sizeof(h), fd, fds, HYDNS_MSG_WELCOME, HYDNS_REPLY_TIMEOUT_MS);
	return error ? error : take_welcome(l);
}
