/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Each time a connection of its own, for hydnsd has room for few that stay. But while hydnsd hangs, its backlog keeps every
 * connection, and a full one would keep hydnsctl out: so one whose replies are late is kept, and there is no other until hydnsd
 * has answered it.
 */
#include "config.h"

#include "hydnsd/view/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"

#define REPLY_MAX (8U << 20)           /* far above all replies */

struct lines {
	char *text;
	size_t len, room;
};

/* Waits until the descriptor is readable or its peer has gone; 0 or a negative errno. */
static int wait_readable(const struct view_source *s, int fd, uint64_t deadline_ms)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = s->stop, .events = POLLIN } };

	for (;;) {
		uint64_t now = hydnsd_now_ms();
		int n = now < deadline_ms ? poll(p, 2, (int)(deadline_ms - now)) : 0;

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -ETIMEDOUT;
		if (n > 0)
			return p[1].revents ? -ECANCELED : 0;
	}
}

static int connect_to(const char *path, const char *requests)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)) &&
	    send(fd, requests, strlen(requests), MSG_NOSIGNAL) == (ssize_t)strlen(requests))
		return fd;
	err = errno;
	close(fd);
	return err ? -err : -EIO;
}

static bool have_all(const struct lines *l, unsigned count)
{
	const char *at = l->text;

	while (count && at && (at = memchr(at, '\n', l->len - (size_t)(at - l->text)))) {
		at++;
		count--;
	}
	return !count;
}

static int read_all(const struct view_source *s, int fd, uint64_t deadline_ms, unsigned count, struct lines *l)
{
	while (!have_all(l, count)) {
		int rc = wait_readable(s, fd, deadline_ms);
		ssize_t n;

		if (rc)
			return rc;
		if (l->room - l->len < 4096) {
			char *more = l->room < REPLY_MAX ? realloc(l->text, l->room = l->room ? 2 * l->room : 65536) : NULL;

			if (!more)
				return -ENOMEM;
			l->text = more;
		}
		n = recv(fd, l->text + l->len, l->room - l->len, 0);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n == 0)
			return -ECONNRESET;
		l->len += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The reply, when it is a good one. */
static json_t *parse(const char *line, size_t len)
{
	json_t *o = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

	if (json_is_true(json_object_get(o, "ok")))
		return o;
	json_decref(o);
	return NULL;
}

static int parse_all(const struct lines *l, unsigned count, json_t *reply[])
{
	const char *at = l->text;

	for (unsigned n = 0; n < count; n++) {
		const char *end = memchr(at, '\n', l->len - (size_t)(at - l->text));

		reply[n] = parse(at, (size_t)(end - at));
		at = end + 1;
		if (reply[n])
			continue;
		while (n) {
			json_decref(reply[--n]);
			reply[n] = NULL;
		}
		return -EPROTO;
	}
	return 0;
}

/* A connection with the requests under way; or a negative errno. */
static int begin(struct view_source *s, const char *requests, uint64_t deadline_ms)
{
	if (s->overdue >= 0) {
		int rc = wait_readable(s, s->overdue, deadline_ms);

		if (rc)
			return rc;
		view_source_close(s);
	}
	return connect_to(s->path, requests);
}

static void explain(int err, char why[VIEW_WHY])
{
	if (err == -ETIMEDOUT)
		snprintf(why, VIEW_WHY, "no reply within %d ms", VIEW_ASK_LIMIT_MS);
	else if (err == -EPROTO)
		snprintf(why, VIEW_WHY, "what listens there does not speak hydnsd's control protocol");
	else
		snprintf(why, VIEW_WHY, "%s", strerror(-err));
}

int view_ask(struct view_source *s, const char *requests, unsigned count, json_t *reply[], char why[VIEW_WHY])
{
	uint64_t deadline_ms = hydnsd_now_ms() + VIEW_ASK_LIMIT_MS;
	int fd = begin(s, requests, deadline_ms), rc = fd < 0 ? fd : 0;
	struct lines l = { 0 };

	if (!rc)
		rc = read_all(s, fd, deadline_ms, count, &l);
	if (!rc)
		rc = parse_all(&l, count, reply);
	free(l.text);
	if (fd >= 0 && rc == -ETIMEDOUT)
		s->overdue = fd;
	else if (fd >= 0)
		close(fd);
	if (rc)
		explain(rc, why);
	return rc ? -1 : 0;
}

void view_source_close(struct view_source *s)
{
	if (s->overdue >= 0)
		close(s->overdue);
	s->overdue = -1;
}
