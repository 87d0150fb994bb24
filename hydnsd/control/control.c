/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/composition/exchange.h"
#include "hydnsd/composition/reload.h"
#include "hydnsd/control/asked.h"
#include "hydnsd/control/guarded.h"
#include "hydnsd/control/protocol.h"
#include "hydnsd/resolvers/withdrawals.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/daemon/pause.h"
#include "hydnsd/resolvers/porter.h"
#include "hydnsd/control/report.h"
#include "hydnsd/daemon/sockets.h"
#include "hydnsd/control/text.h"

#define CLIENTS_MAX    32
#define LINE_MAX_LEN   4096            /* of a request */
#define RULES_DEFAULT  100
#define TOP_DEFAULT    20
#define GUARD_DEFAULT  20

struct client {
	struct hydnsd *daemon;
	uint64_t id;
	int fd;
	struct hydnsd_watch *watch;
	bool waiting;                  /* for a flush or a reload; further requests wait, too */
	json_t *reloaded;              /* the reply to a reload, until the program is as it is to be; NULL: none */
	bool dead;
	char in[LINE_MAX_LEN];
	size_t in_len;
	char *out;
	size_t out_len, out_at;
	struct client *next;
};

struct hydnsd_control {
	int fd;
	struct hydnsd_watch *watch;
	struct client *first;
	unsigned count;
	bool exhausted;                /* out of descriptors: does not listen until the next tick */
	uint64_t last_id;
};

/* -- clients ---------------------------------------------------------------------------------------------- */
static void end_client(struct client *c)
{
	if (c->dead)
		return;
	c->dead = true;
	hydnsd_watch_end(c->watch);
	hydnsd_connection_close(c->fd);
}

static void free_dead(struct hydnsd_control *all)
{
	struct client **at = &all->first;

	while (*at) {
		struct client *c = *at;

		if (!c->dead) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		all->count--;
		free(c->out);
		json_decref(c->reloaded);
		free(c);
	}
}

static void flush_out(struct client *c)
{
	while (c->out_at < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			hydnsd_watch_change(c->watch, EPOLLOUT);
			return;
		}
		if (n < 0) {
			end_client(c);
			return;
		}
		c->out_at += (size_t)n;
	}
	free(c->out);
	c->out = NULL;
	c->out_len = c->out_at = 0;
	hydnsd_watch_change(c->watch, EPOLLIN);
}

/* Takes the reference. A client has one reply under way at a time. */
static void reply(struct client *c, json_t *o)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;

	json_decref(o);
	c->out = text ? realloc(text, len + 1) : NULL;
	if (!c->out) {
		end_client(c);
		return;
	}
	c->out[len] = '\n';            /* replaces the NUL */
	c->out_len = len + 1;
	c->out_at = 0;
	flush_out(c);
}

static void reply_good(struct client *c, json_t *o)
{
	if (o)
		json_object_set_new(o, "ok", json_true());
	reply(c, o);
}

/* Takes the reference. */
static void reply_fault(struct client *c, json_t *error)
{
	reply(c, json_pack("{s:b, s:o}", "ok", 0, "error", error));
}

static void reply_bad(struct client *c, const char *error)
{
	reply_fault(c, json_string(error));
}

/* -- commands --------------------------------------------------------------------------------------------- */
static uint32_t limit_of(const json_t *request, uint32_t standard)
{
	const json_t *v = json_object_get(request, "limit");
	json_int_t n = json_is_integer(v) ? json_integer_value(v) : standard;

	return n < 0 ? 0 : n > HYDNSD_REPORT_LIMIT ? HYDNSD_REPORT_LIMIT : (uint32_t)n;
}

static void on_stats(struct client *c, const json_t *request)
{
	reply_good(c, hydnsd_report_stats(c->daemon, !json_is_true(json_object_get(request, "swept"))));
}

static void on_rules(struct client *c, const json_t *request)
{
	const json_t *r = json_object_get(request, "resolver");
	int resolver = json_is_integer(r) ? (int)json_integer_value(r) : -1;

	reply_good(c, hydnsd_report_rules(c->daemon, limit_of(request, RULES_DEFAULT), resolver));
}

static void on_top(struct client *c, const json_t *request)
{
	reply_good(c, hydnsd_report_top(c->daemon, limit_of(request, TOP_DEFAULT)));
}

static void on_pending(struct client *c, const json_t *request)
{
	reply_good(c, hydnsd_report_pending(c->daemon, limit_of(request, HYDNSD_REPORT_LIMIT)));
}

static void on_guard(struct client *c, const json_t *request)
{
	const char *fault;
	json_t *o = hydnsd_guard_request(c->daemon, request, limit_of(request, GUARD_DEFAULT), &fault);

	if (fault)
		reply_bad(c, fault);
	else
		reply_good(c, o);
}

static void on_explain(struct client *c, const json_t *request)
{
	struct hydnsd_asked q = { 0 };
	const char *fault = hydnsd_asked_read(request, &q);
	json_t *explained = fault ? NULL : hydnsd_report_explain(c->daemon, &q, &fault);

	if (fault)
		reply_bad(c, fault);
	else
		reply_good(c, explained);
}

static struct client *find_client(struct hydnsd *d, uint64_t id)
{
	for (struct client *c = d->control->first; c; c = c->next)
		if (c->id == id && !c->dead)
			return c;
	return NULL;
}

static void handle_lines(struct client *c);

static void flushed(struct hydnsd *d, uint64_t id, uint32_t tag, uint32_t withdrawn)
{
	struct client *c = find_client(d, id);

	(void)tag;
	if (!c)
		return;
	c->waiting = false;
	reply_good(c, json_pack("{s:i}", "withdrawn", (int)withdrawn));
	handle_lines(c);
}

/* Fills scope and name from the request. */
static bool flush_what(const json_t *request, struct hydnsd_withdrawal *w)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	const char *zone = json_string_value(json_object_get(request, "zone"));
	const char *text = name ? name : zone;
	struct hydnsd_name wire;

	w->resolver = HYDNSD_ANY_RESOLVER;
	if (json_is_true(json_object_get(request, "all"))) {
		w->scope = HYDNS_SCOPE_ALL;
		return !text;
	}
	if (!text || (name && zone) || !hydnsd_name_parse(text, &wire))
		return false;
	w->scope = name ? HYDNS_SCOPE_NAME : HYDNS_SCOPE_SUBTREE;
	w->name_len = wire.len;
	memcpy(w->name, wire.octet, wire.len);
	return true;
}

static void on_flush(struct client *c, const json_t *request)
{
	const struct hydnsd_withdrawal_end end = { .done = flushed, .client = c->id, .grace = true };
	struct hydnsd_withdrawal w = { 0 };

	if (!flush_what(request, &w)) {
		reply_bad(c, "flush takes a name, a zone, or all: give exactly one of them");
		return;
	}
	if (hydnsd_withdrawals_begin(c->daemon, &w, 1, &end)) {
		reply_bad(c, "out of memory: give hydnsd more memory");
		return;
	}
	c->waiting = true;
}

/* -- reload ------------------------------------------------------------------------------------------------ */
/* Names with spaces between, as a list. */
static json_t *names(char *text)
{
	json_t *list = json_array();
	char *rest = NULL;

	for (char *name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		json_array_append_new(list, json_string(name));
	return list;
}

/* To each client that waits for it, with what it changed. */
static void reloaded(struct hydnsd *d)
{
	for (struct client *c = d->control->first; c; c = c->next) {
		json_t *r = c->reloaded;

		if (!r || c->dead)
			continue;
		c->reloaded = NULL;
		c->waiting = false;
		json_object_set_new(r, "fault", json_string(hydnsd_composition_fault(d)));
		reply_good(c, r);
		handle_lines(c);
	}
}

static void on_reload(struct client *c, const json_t *request)
{
	struct hydnsd_reloaded r;

	(void)request;
	hydnsd_reload(c->daemon, &r);
	if (r.error[0]) {
		reply_bad(c, r.error);
		return;
	}
	c->waiting = true;
	c->reloaded = json_pack("{s:o, s:o}", "changed", names(r.changed), "restart", names(r.restart));
	hydnsd_composition_when_settled(c->daemon, reloaded);
}

static void set_pause(struct client *c, bool on)
{
	const char *state_dir = c->daemon->options.state_dir;
	int rc = hydns_kern_pause(c->daemon->kern, on);
	json_t *o;

	if (rc) {
		reply_bad(c, strerror(-rc));
		return;
	}
	rc = hydns_pause_record(state_dir, on);
	hydnsd_log(HYDNSD_LOG_WARNING, "%s by hydnsctl", on ? "paused" : "resumed");
	o = json_pack("{s:b, s:s}", "paused", (int)on, "state_dir", state_dir);
	if (rc) {
		hydnsd_log(HYDNSD_LOG_ERROR, "cannot record in %s that hydnsd is %s: %s", state_dir,
			   on ? "paused" : "no longer paused", strerror(-rc));
		json_object_set_new(o, "not_kept", json_string(strerror(-rc)));
	}
	reply_good(c, o);
}

static void on_pause(struct client *c, const json_t *request)
{
	(void)request;
	set_pause(c, true);
}

static void on_resume(struct client *c, const json_t *request)
{
	(void)request;
	set_pause(c, false);
}

struct command {
	const char *name;
	json_t *(*report)(struct hydnsd *);     /* or NULL, and */
	void (*handle)(struct client *, const json_t *);
};

static const struct command *find_command(const char *name)
{
	static const struct command commands[] = {
#define REPORT(name) { #name, hydnsd_report_##name, NULL },
#define HANDLER(name) { #name, NULL, on_##name },
#define LOCAL(name)
#define CTL_COMMAND(name, served, ...) served(name)
#include "hydnsd/control/commands.def"
#undef CTL_COMMAND
	};

	for (size_t i = 0; name && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static void handle_request(struct client *c, const json_t *request)
{
	const struct command *command = find_command(json_string_value(json_object_get(request, "cmd")));
	json_t *fault = command ? hydnsd_protocol_fault(command->name, request) : NULL;

	if (!command)
		reply_bad(c, "unknown cmd: see doc/control-protocol.md");
	else if (fault)
		reply_fault(c, fault);
	else if (command->report)
		reply_good(c, command->report(c->daemon));
	else
		command->handle(c, request);
}

/* -- input ------------------------------------------------------------------------------------------------- */
static void handle_line(struct client *c, const char *line, size_t len)
{
	json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

	if (json_is_object(request))
		handle_request(c, request);
	else
		reply_bad(c, "not a JSON object: send one object a line");
	json_decref(request);
}

static void handle_lines(struct client *c)
{
	char *end;

	while (!c->dead && !c->waiting && !c->out && (end = memchr(c->in, '\n', c->in_len))) {
		char line[LINE_MAX_LEN];
		size_t len = (size_t)(end - c->in);

		memcpy(line, c->in, len);
		c->in_len -= len + 1;
		memmove(c->in, end + 1, c->in_len);
		handle_line(c, line, len);
	}
}

static void read_more(struct client *c)
{
	ssize_t n;

	if (hydnsd_connection_has_fds(c->fd)) { /* useless here, and closing them might block */
		end_client(c);
		return;
	}
	n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_client(c);
		return;
	}
	c->in_len += (size_t)n;
	handle_lines(c);
	if (!c->dead && c->in_len == sizeof(c->in)) {
		if (!c->out && !c->waiting)
			reply_bad(c, "a request longer than 4096 octets: shorten it");
		end_client(c);
	}
}

static void ready(void *arg, uint32_t events)
{
	struct client *c = arg;
	struct hydnsd_control *all = c->daemon->control;

	if (c->out && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
		flush_out(c);
		handle_lines(c);
	} else {
		read_more(c);
	}
	free_dead(all);
}

static void acceptable(void *arg, uint32_t events)
{
	struct hydnsd *d = arg;
	struct hydnsd_control *all = d->control;
	int fd = hydnsd_socket_accept(all->fd, &all->exhausted);
	struct client *c;

	(void)events;
	if (all->exhausted)
		hydnsd_watch_change(all->watch, 0);
	if (fd < 0)
		return;
	free_dead(all);
	c = all->count < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (c)
		c->watch = hydnsd_loop_watch(d->loop, fd, EPOLLIN, ready, c);
	if (!c || !c->watch) {
		free(c);
		hydnsd_connection_close(fd);
		return;
	}
	c->daemon = d;
	c->id = ++all->last_id;
	c->fd = fd;
	c->next = all->first;
	all->first = c;
	all->count++;
}

void hydnsd_control_tick(struct hydnsd *d)
{
	struct hydnsd_control *all = d->control;

	if (all->exhausted)
		hydnsd_watch_change(all->watch, EPOLLIN);
	all->exhausted = false;
}

int hydnsd_control_start(struct hydnsd *d, char *why, size_t room)
{
	const char *path = d->options.control_socket;
	int fd = hydnsd_socket_listen(path, SOCK_STREAM, d->options.control_group, why, room);

	if (fd < 0)
		return fd;
	d->control = calloc(1, sizeof(*d->control));
	if (d->control) {
		d->control->fd = fd;
		d->control->watch = hydnsd_loop_watch(d->loop, fd, EPOLLIN, acceptable, d);
	}
	if (d->control && d->control->watch)
		return 0;
	snprintf(why, room, "out of memory");
	close(fd);
	unlink(path);
	free(d->control);
	d->control = NULL;
	return -ENOMEM;
}

void hydnsd_control_stop(struct hydnsd *d)
{
	struct hydnsd_control *all = d->control;

	if (!all)
		return;
	for (struct client *c = all->first; c; c = c->next)
		end_client(c);
	free_dead(all);
	hydnsd_watch_end(all->watch);
	unlink(d->options.control_socket); /* closed when the process ends, as are those of plugins */
	free(all);
	d->control = NULL;
}
