/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydns-metrics: hydnsd's figures over HTTP, for Prometheus and, on a page, for people. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "hydnsd/ctl/defaults.h"
#include "hydnsd/metrics/listen.h"
#include "hydnsd/metrics/sites.h"

enum { OK, ERROR, USAGE };             /* exit status */

#define TICK_NS 250000000L
#define TABLE   256                    /* --print-options: for completion */

struct options {
	const char *listen, *page, *control, *group;
};

static const struct {
	const char *name, *value, *kind;   /* kind: of the value, for completion; NULL: not shown */
	int letter;
	const char *help;
} known[] = {
	{ "listen", "WHERE", "text", 'l', "ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH [" METRICS_LISTEN_DEFAULT "]" },
	{ "page", "WHERE", "text", 'p', "a page for people at 127.0.0.1:PORT, [::1]:PORT or unix:PATH [none]" },
	{ "group", "GROUP", "group", 'g', "its members may connect to unix:PATH [this user alone]" },
	{ "control", "PATH", "file", 'c', "control socket of hydnsd [" HYDNS_CONTROL_SOCKET "]" },
	{ "help", NULL, "flag", 'h', "this text" },
	{ "version", NULL, "flag", 'V', "version" },
	{ "print-options", NULL, NULL, TABLE, NULL },
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static void help(void)
{
	puts("usage: hydns-metrics [--listen WHERE] [--page WHERE] [--group GROUP] [--control PATH]\n\n"
	     "Serves hydnsd's figures for Prometheus at http://WHERE/metrics, and with --page for people at http://WHERE/.\n");
	for (size_t i = 0; i < KNOWN; i++)
		if (known[i].kind)
			printf("  -%c, --%s%s%-*s %s\n", known[i].letter, known[i].name, known[i].value ? " " : "",
			       (int)(16 - strlen(known[i].name)), known[i].value ? known[i].value : "", known[i].help);
	puts("\nExit status: 0 ended by a signal, 1 could not start, 2 wrong usage. See hydns-metrics(8).");
}

static void print_table(void)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (known[i].kind)
			printf("%s\t%s\t\n%c\t%s\t\n", known[i].name, known[i].kind, known[i].letter, known[i].kind);
}

/* Fills o; returns -1 to go on, or an exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	struct option longs[KNOWN + 1] = { 0 };
	int c;

	for (size_t i = 0; i < KNOWN; i++)
		longs[i] = (struct option){ known[i].name, known[i].value ? required_argument : no_argument, NULL, known[i].letter };
	while ((c = getopt_long(argc, argv, "l:p:g:c:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'l': o->listen = optarg; break;
		case 'p': o->page = optarg; break;
		case 'g': o->group = optarg; break;
		case 'c': o->control = optarg; break;
		case 'h': help(); return OK;
		case 'V': puts(PACKAGE_VERSION_TEXT " (hydns-metrics)"); return OK;
		case TABLE: print_table(); return OK;
		default: fputs("Try 'hydns-metrics --help'.\n", stderr); return USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "hydns-metrics: takes no argument like '%s'; try 'hydns-metrics --help'\n", argv[optind]);
		return USAGE;
	}
	if (o->group && !metrics_listen_path(o->listen) && !(o->page && metrics_listen_path(o->page))) {
		fputs("hydns-metrics: --group is for unix:PATH: an address has no group\n", stderr);
		return USAGE;
	}
	if (o->page && !metrics_listen_is_local(o->page)) {
		fprintf(stderr, "hydns-metrics: --page takes a loopback address and a port, as 127.0.0.1:10954 or [::1]:10954, or "
			"unix:PATH, not '%s': it shows the names that clients ask for\n", o->page);
		return USAGE;
	}
	return -1;
}

/* A site that is served; where NULL: none. */
struct server {
	const char *option, *where;
	const struct metrics_site *site;
	struct metrics_http *http;
};

static void stop(struct server *s)
{
	const char *path = s->http ? metrics_listen_path(s->where) : NULL;

	if (s->http)
		metrics_http_stop(s->http);
	if (path)
		unlink(path);
	s->http = NULL;
}

/* An exit status. */
static int start(struct server *s, const struct options *o)
{
	const char *path = metrics_listen_path(s->where);
	char why[256];
	int fd = metrics_listen(s->option, s->where, path ? o->group : NULL, why, sizeof(why));

	if (fd < 0) {
		fprintf(stderr, "hydns-metrics: %s\n", why);
		return fd == -EINVAL ? USAGE : ERROR;
	}
	s->http = metrics_http_start(fd, o->control, s->site);
	if (s->http) {
		fprintf(stderr, "hydns-metrics: listens at %s\n", s->where);
		return OK;
	}
	fputs("hydns-metrics: cannot start: out of memory, threads or descriptors\n", stderr);
	close(fd);
	if (path)
		unlink(path);
	return ERROR;
}

/* Until SIGTERM or SIGINT, which are blocked in all threads. */
static void serve(const struct server *figures, const struct server *page, const sigset_t *end)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };

	while (sigtimedwait(end, NULL, &tick) < 0) {
		metrics_http_tick(figures->http);
		if (page->http)
			metrics_http_tick(page->http);
	}
}

static int run(const struct options *o)
{
	struct server figures = { .option = "--listen", .where = o->listen, .site = metrics_site_figures() };
	struct server page = { .option = "--page", .where = o->page, .site = metrics_site_page() };
	sigset_t end;
	int rc;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGINT);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
	rc = start(&figures, o);
	if (!rc && page.where)
		rc = start(&page, o);
	if (!rc)
		serve(&figures, &page, &end);
	stop(&page);
	stop(&figures);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = { .listen = METRICS_LISTEN_DEFAULT, .control = HYDNS_CONTROL_SOCKET };
	int rc = parse(argc, argv, &o);

	if (rc >= 0)
		return fflush(stdout) || ferror(stdout) ? ERROR : rc;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!geteuid())
		fputs("hydns-metrics: runs as root, which it need not: the account of hydnsd (user:) will do\n", stderr);
	return run(&o);
}
