/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsctl: reads the command line and calls the command. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/ctl_common.h"
#include "hydnsd/ctl_defaults.h"
#include "hydnsd/report.h"

enum option_bit {
	BIT_JSON = 1, BIT_LIMIT = 2, BIT_ONCE = 4, BIT_DO = 8, BIT_ZONE = 16, BIT_ALL = 32, BIT_NOREC = 64,
	BIT_CLIENT = 128,
};

struct command {
	const char *name;
	int (*run)(const struct ctl *, int, char **);
	int min_args, max_args;
	unsigned takes;                /* BIT_* of the options it knows besides the general ones */
	const char *synopsis, *help;
};

static const struct command commands[] = {
	{"status", ctl_cmd_status, 0, 0, BIT_JSON, "status [--json]",
	 "daemon, interfaces, rules, resolvers"},
	{"stats", ctl_cmd_stats, 0, 0, BIT_JSON, "stats [--json]",
	 "what became of every packet, offer and rule"},
	{"top", ctl_cmd_top, 0, 0, BIT_JSON | BIT_LIMIT | BIT_ONCE, "top [--json] [-n N] [--once]",
	 "the hottest names and where they are answered"},
	{"rules", ctl_cmd_rules, 0, 0, BIT_JSON | BIT_LIMIT, "rules [--json] [-n N]",
	 "rules in the kernel, hottest first"},
	{"explain", ctl_cmd_explain, 0, 2, BIT_JSON | BIT_DO | BIT_NOREC | BIT_CLIENT,
	 "explain [NAME TYPE [--do] [--norec]] [--client ADDRESS] [--json]",
	 "why a name, or a client, is or is not answered in the kernel"},
	{"flush", ctl_cmd_flush, 0, 1, BIT_ZONE | BIT_ALL, "flush NAME | --zone ZONE | --all",
	 "withdraw rules (the resolver's cache stays)"},
	{"pause", ctl_cmd_pause, 0, 0, 0, "pause",
	 "kill switch: every query goes to the resolver; works without the daemon"},
	{"resume", ctl_cmd_resume, 0, 0, 0, "resume",
	 "ends a pause; works without the daemon"},
	{"doctor", ctl_cmd_doctor, 0, 64, BIT_JSON, "doctor [--json] [INTERFACE...]",
	 "looks for what keeps this host from working well, and tells the mend"},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

void ctl_error(const char *fmt, ...)
{
	va_list ap;

	fputs("hydnsctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void print_help(void)
{
	puts("usage: hydnsctl [--socket PATH] [--pin-dir DIR] COMMAND ...\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-36s %s\n", commands[i].synopsis, commands[i].help);
	printf("\n"
	       "  -s, --socket PATH     control socket of hydnsd [%s]\n"
	       "  -p, --pin-dir DIR     where the maps are pinned [%s]\n"
	       "  -j, --json            machine-readable output\n"
	       "  -n, --limit N         how many names or rules\n"
	       "  -h, --help            this text\n"
	       "  -V, --version         version and ABI\n\n"
	       "Exit codes: 0 done, 1 error (doctor: something is to mend), 2 wrong usage. See hydnsctl(8).\n",
	       HYDNS_CONTROL_SOCKET, HYDNS_PIN_DIR);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int parse_limit(const char *text, unsigned *out)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || n < 1 || n > HYDNSD_REPORT_LIMIT) {
		ctl_error("-n takes a number from 1 to %d, not '%s'", HYDNSD_REPORT_LIMIT, text);
		return -EINVAL;
	}
	*out = (unsigned)n;
	return 0;
}

/* Fills c and *given from the options; returns -1 to go on, or an exit code. */
static int parse_options(int argc, char **argv, struct ctl *c, unsigned *given)
{
	static const struct option longs[] = {
		{"socket", required_argument, NULL, 's'}, {"pin-dir", required_argument, NULL, 'p'},
		{"json", no_argument, NULL, 'j'},         {"limit", required_argument, NULL, 'n'},
		{"once", no_argument, NULL, 'o'},         {"do", no_argument, NULL, 'd'},
		{"norec", no_argument, NULL, 'r'},        {"zone", required_argument, NULL, 'z'},
		{"all", no_argument, NULL, 'a'},          {"client", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},         {"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int o;

	while ((o = getopt_long(argc, argv, "s:p:jn:hV", longs, NULL)) != -1) {
		switch (o) {
		case 's': c->socket_path = optarg; break;
		case 'p': c->pin_dir = optarg; break;
		case 'j': c->json = true; *given |= BIT_JSON; break;
		case 'o': c->once = true; *given |= BIT_ONCE; break;
		case 'd': c->dnssec_ok = true; *given |= BIT_DO; break;
		case 'r': c->norec = true; *given |= BIT_NOREC; break;
		case 'c': c->client = optarg; *given |= BIT_CLIENT; break;
		case 'z': c->zone = optarg; *given |= BIT_ZONE; break;
		case 'a': c->all = true; *given |= BIT_ALL; break;
		case 'n':
			if (parse_limit(optarg, &c->limit))
				return CTL_USAGE;
			*given |= BIT_LIMIT;
			break;
		case 'h':
			print_help();
			return CTL_OK;
		case 'V':
			printf("%s (hydnsctl, ABI %d)\n", PACKAGE_VERSION_TEXT, HYDNS_ABI_VERSION);
			return CTL_OK;
		default:
			fputs("Try 'hydnsctl --help'.\n", stderr);
			return CTL_USAGE;
		}
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct ctl c = {.socket_path = HYDNS_CONTROL_SOCKET, .pin_dir = HYDNS_PIN_DIR};
	const struct command *cmd;
	unsigned given = 0;
	int rc = parse_options(argc, argv, &c, &given);

	if (rc >= 0)
		return rc;
	if (optind == argc) {
		ctl_error("no command; try 'hydnsctl --help'");
		return CTL_USAGE;
	}
	cmd = find_command(argv[optind]);
	if (!cmd) {
		ctl_error("no such command: %s; try 'hydnsctl --help'", argv[optind]);
		return CTL_USAGE;
	}
	argc -= optind + 1;
	argv += optind + 1;
	if (given & ~cmd->takes || argc < cmd->min_args || argc > cmd->max_args) {
		ctl_error("usage: hydnsctl %s", cmd->synopsis);
		return CTL_USAGE;
	}
	rc = cmd->run(&c, argc, argv);
	if (fflush(stdout) || ferror(stdout)) {
		ctl_error("cannot write to standard output: %s", strerror(errno));
		return CTL_ERROR;
	}
	return rc;
}
