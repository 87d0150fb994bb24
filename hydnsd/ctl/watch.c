/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* watch: what hydns-metrics' page shows, on a terminal. Keys and signals are heard while hydnsd is asked, too. */
#include "config.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "hydnsd/ctl/common.h"
#include "hydnsd/ctl/watch_screen.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/view/ask.h"
#include "hydnsd/view/view.h"

#define NAMES   40
#define COLUMNS 80
#define ROWS    24

struct watch {
	struct view_source source;     /* stop: readable when there is a key or a signal */
	int signals;
	bool keys;                     /* standard input is a terminal */
	bool full, colours, blocks;    /* how it is shown: on the whole terminal, else in lines */
	bool ended, resized;
	struct termios before;
	struct watch_history history;
	json_t *view;                  /* the latest, or NULL */
};

/* -- the terminal ---------------------------------------------------------------------------------------------- */
/* The alternate screen, which leaves nothing behind; without a cursor, and lines are cut. */
static void enter(struct watch *w)
{
	struct termios raw = w->before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	if (w->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?7l\033[?25l", stdout);
}

static void leave(struct watch *w)
{
	fputs("\033[?25h\033[?7h\033[?1049l", stdout);
	fflush(stdout);
	if (w->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &w->before);
}

static void draw(struct watch *w)
{
	struct winsize size = { 0 };
	struct screen *s;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	s = watch_screen(w->view, &w->history, size.ws_col ? size.ws_col : COLUMNS, w->blocks);
	fputs("\033[H", stdout);
	screen_print(s, stdout, size.ws_row ? size.ws_row : ROWS, size.ws_col ? size.ws_col : COLUMNS, w->colours);
	fflush(stdout);
	screen_free(s);
	w->resized = false;
}

/* -- keys and signals -------------------------------------------------------------------------------------------- */
static void suspend(struct watch *w)
{
	if (w->full)
		leave(w);
	raise(SIGSTOP);
	if (w->full)
		enter(w);
	w->resized = true;
}

static void take_signals(struct watch *w)
{
	struct signalfd_siginfo s;

	while (read(w->signals, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGWINCH)
			w->resized = true;
		else if (s.ssi_signo == SIGTSTP)
			suspend(w);
		else
			w->ended = true;
	}
}

/* Waits for keys and signals, and does what they say; at once when they have stopped an ask. Returns whether there was any. */
static bool take_events(struct watch *w, int wait_ms)
{
	struct epoll_event e[2];
	int n = epoll_wait(w->source.stop, e, 2, wait_ms);
	char key;

	for (int i = 0; i < n; i++)
		if (e[i].data.fd == w->signals)
			take_signals(w);
		else if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
			w->ended = true;
	return n > 0;
}

static int listen_to(int all, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(all, EPOLL_CTL_ADD, fd, &e);
}

static int open_events(struct watch *w)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	w->source.stop = epoll_create1(EPOLL_CLOEXEC);
	if (w->signals < 0 || w->source.stop < 0 || listen_to(w->source.stop, w->signals) ||
	    (w->keys && listen_to(w->source.stop, STDIN_FILENO))) {
		ctl_error("cannot wait for keys and signals: %s", strerror(errno));
		return -1;
	}
	return 0;
}

/* -- figures ------------------------------------------------------------------------------------------------------ */
/* A new view, unless a key or a signal has come meanwhile. */
static void look(struct watch *w)
{
	json_t *reply[VIEW_REPLIES] = { NULL };
	char why[VIEW_WHY] = "";

	if (view_ask(&w->source, view_requests(NAMES), VIEW_REPLIES, reply, why) && take_events(w, 0))
		return;
	json_decref(w->view);
	w->view = view_of(reply, why);
	watch_remember(&w->history, w->view);
}

static void show(const struct ctl *c, struct watch *w)
{
	if (!w->view)
		return;
	if (w->full) {
		draw(w);
	} else if (c->json) {
		json_dumpf(w->view, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		watch_line(w->view, stdout);
	}
	fflush(stdout);
}

static int go_on(const struct ctl *c, struct watch *w)
{
	const uint64_t period_ms = 1000 * (uint64_t)(c->interval ? c->interval : 1);

	if (open_events(w))
		return CTL_ERROR;
	if (w->full)
		enter(w);
	while (!w->ended && !ferror(stdout)) {
		uint64_t next = hydnsd_now_ms() + period_ms, now;

		look(w);
		if (!w->ended)
			show(c, w);
		while (!w->ended && (now = hydnsd_now_ms()) < next) {
			take_events(w, (int)(next - now));
			if (w->full && w->resized && w->view && !w->ended)
				draw(w);
		}
	}
	if (w->full)
		leave(w);
	return CTL_OK;
}

static int show_once(const struct ctl *c, struct watch *w)
{
	struct screen *s;

	look(w);
	if (!json_is_true(json_object_get(w->view, VIEW_UP))) {
		ctl_error("hydnsd does not answer: %s", ctl_str(w->view, VIEW_WHY_NOT));
		return CTL_ERROR;
	}
	if (c->json) {
		ctl_json(json_incref(w->view));
		return CTL_OK;
	}
	s = watch_screen(w->view, NULL, COLUMNS, w->blocks);
	screen_print(s, stdout, 0, 0, w->colours && isatty(STDOUT_FILENO));
	screen_free(s);
	return CTL_OK;
}

int ctl_cmd_watch(const struct ctl *c, int argc, char **argv)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	struct watch w = { .source = { .path = c->socket_path, .stop = -1, .overdue = -1 }, .signals = -1 };
	json_t *status = ctl_ask(c, json_pack("{s:s}", "cmd", "status"));
	int rc;

	(void)argc;
	(void)argv;
	if (!status)                   /* that says why, and what helps */
		return CTL_ERROR;
	json_decref(status);
	setlocale(LC_CTYPE, "");
	w.blocks = !strcmp(nl_langinfo(CODESET), "UTF-8");
	w.full = !c->json && !c->once && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
	w.colours = term && strcmp(term, "dumb") && !(no_colour && *no_colour);
	w.keys = w.full && !tcgetattr(STDIN_FILENO, &w.before);
	rc = c->once ? show_once(c, &w) : go_on(c, &w);
	json_decref(w.view);
	view_source_close(&w.source);
	return rc;
}
