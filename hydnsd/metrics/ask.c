/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Each time a connection of its own, for hydnsd has room for few that stay. But while hydnsd hangs, its backlog keeps every
 * connection, and a full one would keep hydnsctl out: so one whose replies are late is kept, and there is no other until hydnsd
 * has answered it.
 */
#include "config.h"

#include "hydnsd/metrics/ask.h"

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

#define REPLY_MAX (8U << 20)           /* far above both replies */

static const char requests[] = "{\"cmd\":\"status\"}\n{\"cmd\":\"stats\"}\n";

struct lines {
	char *text;
	size_t len, room;
};

/* Waits until the descriptor is readable or its peer has gone; 0 or a negative errno. */
static int wait_readable(const struct metrics_source *s, int fd, uint64_t deadline_ms)
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

static int connect_to(const char *path)
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
	    send(fd, requests, sizeof(requests) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(requests) - 1)
		return fd;
	err = errno;
	close(fd);
	return err ? -err : -EIO;
}

static bool have_both(const struct lines *l)
{
	const char *first = l->len ? memchr(l->text, '\n', l->len) : NULL;

	return first && memchr(first + 1, '\n', l->len - (size_t)(first + 1 - l->text));
}

static int read_both(const struct metrics_source *s, int fd, uint64_t deadline_ms, struct lines *l)
{
	while (!have_both(l)) {
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

static int parse_both(const struct lines *l, json_t **status, json_t **stats)
{
	const char *first = memchr(l->text, '\n', l->len);
	size_t rest = l->len - (size_t)(first + 1 - l->text);
	const char *second = memchr(first + 1, '\n', rest);

	*status = parse(l->text, (size_t)(first - l->text));
	*stats = parse(first + 1, (size_t)(second - first - 1));
	if (*status && *stats)
		return 0;
	json_decref(*status);
	json_decref(*stats);
	*status = *stats = NULL;
	return -EPROTO;
}

/* A connection with both requests under way; or a negative errno. */
static int begin(struct metrics_source *s, uint64_t deadline_ms)
{
	if (s->overdue >= 0) {
		int rc = wait_readable(s, s->overdue, deadline_ms);

		if (rc)
			return rc;
		metrics_source_close(s);
	}
	return connect_to(s->path);
}

static void explain(int err, char why[METRICS_WHY])
{
	if (err == -ETIMEDOUT)
		snprintf(why, METRICS_WHY, "no reply within %d ms", METRICS_ASK_LIMIT_MS);
	else if (err == -EPROTO)
		snprintf(why, METRICS_WHY, "what listens there does not speak hydnsd's control protocol");
	else
		snprintf(why, METRICS_WHY, "%s", strerror(-err));
}

int metrics_ask(struct metrics_source *s, json_t **status, json_t **stats, char why[METRICS_WHY])
{
	uint64_t deadline_ms = hydnsd_now_ms() + METRICS_ASK_LIMIT_MS;
	int fd = begin(s, deadline_ms), rc = fd < 0 ? fd : 0;
	struct lines l = { 0 };

	if (!rc)
		rc = read_both(s, fd, deadline_ms, &l);
	if (!rc)
		rc = parse_both(&l, status, stats);
	free(l.text);
	if (fd >= 0 && rc == -ETIMEDOUT)
		s->overdue = fd;
	else if (fd >= 0)
		close(fd);
	if (rc)
		explain(rc, why);
	return rc ? -1 : 0;
}

void metrics_source_close(struct metrics_source *s)
{
	if (s->overdue >= 0)
		close(s->overdue);
	s->overdue = -1;
}
