/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* One request, one reply line over hydnsd's control socket (doc/control-protocol.md). */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hydnsd/ctl/common.h"

/* hydnsd answers within milliseconds; a flush waits for a grace period. */
#define REPLY_TIMEOUT_MS 10000
/* Far above any reply: 10,000 rules with the longest names take some 12 MB. */
#define REPLY_MAX        (1UL << 30)

/* The group whose members may connect, by the socket's mode; "": none, or unknown. */
static void socket_group(const char *path, char *out, size_t room)
{
	const struct group *g = NULL;
	struct stat st;

	if (!stat(path, &st) && (st.st_mode & S_IWGRP) && st.st_gid)
		g = getgrgid(st.st_gid);
	snprintf(out, room, "%s", g ? g->gr_name : "");
}

static void explain_permission(const char *path, char why[CTL_WHY])
{
	const struct passwd *user = getpwuid(geteuid());
	char group[64];

	socket_group(path, group, sizeof(group));
	if (group[0])
		snprintf(why, CTL_WHY, "no permission to use %s: run as root, or join its group (control-group: %s): "
			 "usermod -aG %s %s, then log in again", path, group, group, user ? user->pw_name : "USER");
	else
		snprintf(why, CTL_WHY, "no permission to use %s: run as root, or let a group of yours use it "
			 "(control-group: GROUP in hydnsd.conf, restart hydnsd)", path);
}

static enum ctl_reach connect_daemon(const char *path, int *out, char why[CTL_WHY])
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		snprintf(why, CTL_WHY, "--socket: path longer than %zu octets: %s",
			 sizeof(sa.sun_path) - 1, path);
		return CTL_REFUSED;
	}
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		*out = fd;
		return CTL_ANSWERED;
	}
	err = errno;
	if (fd >= 0)
		close(fd);
	if (err == ENOENT || err == ECONNREFUSED) {
		snprintf(why, CTL_WHY, "hydnsd is not running: %s %s; start it (systemctl start hydnsd), or "
			 "name its socket with --socket if it runs elsewhere",
			 err == ENOENT ? "there is no socket" : "nobody listens at", path);
		return CTL_NO_DAEMON;
	}
	if (err == EACCES || err == EPERM)
		explain_permission(path, why);
	else
		snprintf(why, CTL_WHY, "cannot connect to %s: %s", path, strerror(err));
	return CTL_REFUSED;
}

static int send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t w = send(fd, p, n, MSG_NOSIGNAL);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

/* Reads up to the newline, and replaces that by NUL. free() *line also after an error. */
static int read_line(int fd, char **line)
{
	size_t have = 0, room = 0;

	for (;;) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		char *nl;
		ssize_t r;

		if (have + 4096 > room) {
			char *more = realloc(*line, room = room ? room * 2 : 16384);

			if (!more || room > REPLY_MAX)
				return -ENOMEM;
			*line = more;
		}
		r = poll(&pfd, 1, REPLY_TIMEOUT_MS);
		if (r == 0)
			return -ETIMEDOUT;
		r = r < 0 ? -1 : read(fd, *line + have, room - have);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r ? -errno : -ECONNRESET;
		nl = memchr(*line + have, '\n', (size_t)r);
		have += (size_t)r;
		if (nl) {
			*nl = 0;
			return 0;
		}
	}
}

static enum ctl_reach exchange(int fd, const char *request, json_t **reply, char why[CTL_WHY])
{
	char *line = NULL;
	json_error_t e;
	json_t *o;
	int err = send_all(fd, request, strlen(request));

	if (!err)
		err = read_line(fd, &line);
	if (err) {
		free(line);
		if (err == -ETIMEDOUT)
			snprintf(why, CTL_WHY, "hydnsd did not answer within %d s: it hangs or is overloaded; "
				 "look at its log (journalctl -u hydnsd)", REPLY_TIMEOUT_MS / 1000);
		else
			snprintf(why, CTL_WHY, "the connection to hydnsd broke: %s; look at its log "
				 "(journalctl -u hydnsd)", strerror(-err));
		return CTL_REFUSED;
	}
	o = json_loads(line, 0, &e);
	free(line);
	if (!json_is_object(o)) {
		json_decref(o);
		snprintf(why, CTL_WHY, "what listens there does not speak hydnsd's control protocol (%s): "
			 "check --socket", e.text[0] ? e.text : "not a JSON object");
		return CTL_REFUSED;
	}
	if (!json_is_true(json_object_get(o, "ok"))) {
		const char *error = ctl_str(o, "error");

		snprintf(why, CTL_WHY, "%s", error[0] ? error : "hydnsd refused and did not say why");
		json_decref(o);
		return CTL_REFUSED;
	}
	json_object_del(o, "ok");
	*reply = o;
	return CTL_ANSWERED;
}

enum ctl_reach ctl_call(const struct ctl *c, json_t *request, json_t **reply, char why[CTL_WHY])
{
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL, *line;
	enum ctl_reach reach;
	int fd = -1;

	json_decref(request);
	if (!text) {
		snprintf(why, CTL_WHY, "the request cannot be written as JSON: its text is not UTF-8");
		return CTL_REFUSED;
	}
	/* one send with the newline: a peer that answers the first part and closes would make a second one fail */
	if (asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	if (!line) {
		snprintf(why, CTL_WHY, "out of memory");
		return CTL_REFUSED;
	}
	reach = connect_daemon(c->socket_path, &fd, why);
	if (reach == CTL_ANSWERED)
		reach = exchange(fd, line, reply, why);
	if (fd >= 0)
		close(fd);
	free(line);
	return reach;
}

json_t *ctl_ask(const struct ctl *c, json_t *request)
{
	char why[CTL_WHY];
	json_t *reply = NULL;

	if (ctl_call(c, request, &reply, why) == CTL_ANSWERED)
		return reply;
	ctl_error("%s", why);
	return NULL;
}

int ctl_show_object(const struct ctl *c, json_t *o, void (*print)(const json_t *o))
{
	if (c->json) {
		ctl_json(o);
	} else {
		print(o);
		json_decref(o);
	}
	return CTL_OK;
}

int ctl_show_reply(const struct ctl *c, json_t *request, void (*print)(const json_t *reply))
{
	json_t *reply = ctl_ask(c, request);

	return reply ? ctl_show_object(c, reply, print) : CTL_ERROR;
}

int ctl_show(const struct ctl *c, const char *cmd, int (*prepare)(const struct ctl *c, json_t *reply), void (*print)(const json_t *reply),
	     int (*without)(const struct ctl *c, const char *no_daemon))
{
	json_t *reply = NULL;
	char why[CTL_WHY];

	switch (ctl_call(c, json_pack("{s:s}", "cmd", cmd), &reply, why)) {
	case CTL_ANSWERED:
		break;
	case CTL_NO_DAEMON:
		return without(c, why);
	default:
		ctl_error("%s", why);
		return CTL_ERROR;
	}
	if (prepare && prepare(c, reply)) {
		json_decref(reply);
		return CTL_ERROR;
	}
	if (c->json) {
		json_object_set_new(reply, FIELD(status, daemon), json_true());
		ctl_json(reply);
	} else {
		print(reply);
		json_decref(reply);
	}
	return CTL_OK;
}
