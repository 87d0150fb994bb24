/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* top: the hottest names, live on a terminal. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "hydnsd/ctl_common.h"

#define TOP_DEFAULT     20
#define TOP_HEAD_LINES  4      /* title, empty line, column titles, and one to spare */
#define TOP_PERIOD_MS   1000

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static unsigned rows_wanted(const struct ctl *c)
{
	struct winsize w;

	if (c->limit)
		return c->limit;
	if (!c->once && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_row > TOP_HEAD_LINES)
		return w.ws_row - TOP_HEAD_LINES;
	return TOP_DEFAULT;
}

static void print_top(const json_t *top)
{
	struct ctl_table *t = ctl_table_new("rrlll");
	char a[CTL_TEXT], b[CTL_TEXT], s[CTL_TEXT], w[CTL_TEXT], type[16];
	double seconds = ctl_real(top, "window_ms") / 1000;
	double answered = ctl_real(top, "answered"), passed = ctl_real(top, "passed");
	const json_t *n;
	size_t i;

	if (seconds <= 0)
		seconds = 1;
	printf("last %s: %s answered in the kernel, %s passed to the resolver, %s in the kernel\n\n",
	       ctl_duration(ctl_int(top, "window_ms"), w), ctl_rate(answered / seconds, a),
	       ctl_rate(passed / seconds, b), ctl_share(answered, answered + passed, s));
	ctl_cell(t, "RATE");
	ctl_cell(t, "HITS");
	ctl_cell(t, "WHERE");
	ctl_cell(t, "TYPE");
	ctl_cell(t, "NAME");
	json_array_foreach(json_object_get(top, "names"), i, n) {
		ctl_cell(t, ctl_rate(ctl_real(n, "rate"), a));
		ctl_cell(t, ctl_count(ctl_int(n, "hits"), b));
		ctl_cell(t, ctl_str(n, "where"));
		ctl_cell(t, ctl_type_text(json_object_get(n, "type"), type));
		ctl_cell(t, ctl_str(n, "name"));
	}
	ctl_table_print(t, 0);
}

static json_t *top_request(const struct ctl *c)
{
	return json_pack("{s:s, s:i}", "cmd", "top", "limit", (int)rows_wanted(c));
}

/* Waits a period, or for 'q' or a signal. */
static void wait_period(bool keys)
{
	struct pollfd pfd = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
	char key;

	if (poll(&pfd, 1, TOP_PERIOD_MS) > 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q'))
		stop = 1;
}

static int live(const struct ctl *c)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct termios old, raw;
	bool keys = !tcgetattr(STDIN_FILENO, &old);
	enum ctl_reach reach = CTL_ANSWERED;
	char why[CTL_WHY];

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (keys) {
		raw = old;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	fputs("\033[?1049h", stdout);              /* the terminal's second screen: leave no litter */
	while (!stop) {
		json_t *top = NULL;

		reach = ctl_call(c, top_request(c), &top, why);
		if (reach != CTL_ANSWERED)
			break;
		fputs("\033[H\033[J", stdout);
		print_top(top);
		fflush(stdout);
		json_decref(top);
		wait_period(keys);
	}
	fputs("\033[?1049l", stdout);
	fflush(stdout);
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &old);
	/* Only now: what is written on the second screen is gone with it. */
	if (reach != CTL_ANSWERED)
		ctl_error("%s", why);
	return reach == CTL_ANSWERED ? CTL_OK : CTL_ERROR;
}

int ctl_cmd_top(const struct ctl *c, int argc, char **argv)
{
	json_t *top;

	(void)argc;
	(void)argv;
	if (!c->json && !c->once && isatty(STDOUT_FILENO))
		return live(c);
	top = ctl_ask(c, top_request(c));
	if (!top)
		return CTL_ERROR;
	if (c->json) {
		ctl_json(top);
		return CTL_OK;
	}
	print_top(top);
	json_decref(top);
	return CTL_OK;
}
