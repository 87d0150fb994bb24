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

#include "hydnsd/ctl/common.h"

#define TOP_DEFAULT     20
#define NOTES_SHOWN     2                     /* with those of address families, which are two at most */
#define REASONS_SHOWN   4
/* share, reasons, notes and how many more, empty line, column titles, and a spare one */
#define TOP_HEAD_LINES  (6 + NOTES_SHOWN)
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

/* Why queries passed, the most frequent first. */
static void print_reasons(const json_t *reasons, double seconds)
{
	const char *name, *shown[REASONS_SHOWN] = {NULL};
	const json_t *n;
	char text[CTL_TEXT];

	for (int place = 0; place < REASONS_SHOWN; place++) {
		json_int_t most = 0;

		json_object_foreach((json_t *)reasons, name, n) {
			bool before = false;

			for (int i = 0; i < place; i++)
				before |= shown[i] == name;
			if (before || json_integer_value(n) <= most)
				continue;
			most = json_integer_value(n);
			shown[place] = name;
		}
		if (!shown[place])
			break;
		printf("%s%s %s", place ? ", " : "passed: ", shown[place], ctl_rate((double)most / seconds, text));
	}
	puts(shown[0] ? "" : "passed: none");
}

static void print_notes(const json_t *notes, size_t room)
{
	const json_t *n;
	size_t i;

	json_array_foreach(notes, i, n) {
		if (i == room) {
			printf("note: and %zu more; see hydnsctl status\n", json_array_size(notes) - i);
			return;
		}
		printf("note: %s: %s\n", ctl_str(n, FIELD(resolver_note, identity)), ctl_str(n, FIELD(resolver_note, note)));
	}
}

/* Address families whose queries are all passed, and what helps. */
static void print_families(const json_t *families)
{
	const json_t *f;
	size_t i;

	json_array_foreach(families, i, f)
		printf("%s is not answered in the kernel: %s%s%s\n", ctl_str(f, FIELD(family, family)),
		       ctl_str(f, FIELD(family, note)), ctl_str(f, FIELD(family, mend))[0] ? ": " : "", ctl_str(f, FIELD(family, mend)));
}

static void print_row(struct ctl_table *t, const json_t *n)
{
	char a[CTL_TEXT], type[16];

	ctl_cell(t, ctl_rate(ctl_real(n, FIELD(question, rate)), a));
	ctl_cell(t, json_object_get(n, FIELD(rule, hits)) ? ctl_count(ctl_int(n, FIELD(rule, hits)), a) : "-");
	ctl_cell(t, ctl_str(n, FIELD(listed, where)));
	ctl_cell(t, ctl_type_text(json_object_get(n, FIELD(question, type)), type));
	ctl_cell(t, ctl_variant_text(n));
	ctl_cell(t, ctl_str(n, FIELD(question, name)));
	ctl_cell(t, ctl_str(n, FIELD(listed, why)));
}

static void print_top(const json_t *top)
{
	static const char *const head[] = {"RATE", "HITS", "WHERE", "TYPE", "FOR", "NAME", "WHY"};
	struct ctl_table *t = ctl_table_new("rrlllll");
	char a[CTL_TEXT], b[CTL_TEXT], s[CTL_TEXT], w[CTL_TEXT];
	double seconds = ctl_real(top, FIELD(top, window_ms)) / 1000;
	double answered = ctl_real(top, FIELD(top, answered)), passed = ctl_real(top, FIELD(top, passed));
	const json_t *n, *families = json_object_get(top, FIELD(top, families_passed));
	size_t i;

	if (seconds <= 0) {
		seconds = 1;
		puts("hydnsd has not counted for a second yet");
	} else {
		printf("last %s: %s answered in the kernel, %s passed to the resolver, %s in the kernel\n",
		       ctl_duration(ctl_int(top, FIELD(top, window_ms)), w), ctl_rate(answered / seconds, a),
		       ctl_rate(passed / seconds, b), ctl_share(answered, answered + passed, s));
	}
	print_reasons(json_object_get(top, FIELD(top, reasons)), seconds);
	print_families(families);
	print_notes(json_object_get(top, FIELD(top, notes)), NOTES_SHOWN - json_array_size(families));
	putchar('\n');
	ctl_titles(t, head);
	json_array_foreach(json_object_get(top, FIELD(top, names)), i, n)
		print_row(t, n);
	ctl_table_print(t, 0);
}

static json_t *top_request(const struct ctl *c)
{
	return json_pack("{s:s, s:i}", "cmd", "top", ARGUMENT(top, limit), (int)rows_wanted(c));
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
	/* the alternate screen, which leaves nothing behind; lines are cut, or they would scroll the first ones away */
	fputs("\033[?1049h\033[?7l", stdout);
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
	fputs("\033[?7h\033[?1049l", stdout);
	fflush(stdout);
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &old);
	/* after the alternate screen, which takes its text away */
	if (reach != CTL_ANSWERED)
		ctl_error("%s", why);
	return reach == CTL_ANSWERED ? CTL_OK : CTL_ERROR;
}

int ctl_cmd_top(const struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!c->json && !c->once && isatty(STDOUT_FILENO))
		return live(c);
	return ctl_show_reply(c, top_request(c), print_top);
}
