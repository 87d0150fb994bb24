/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsctl: reads the command line and calls the command. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/abi.h"
#include "hydnsd/control/report.h"
#include "hydnsd/ctl/common.h"
#include "hydnsd/ctl/defaults.h"
#include "hydnsd/ctl/usage.h"
#include "hydnsd/daemon/pause.h"

#define INTERVAL_MOST 3600
#define MEASURE_MOST 60

/* From 1 to most. */
static int parse_number(const char *option, const char *text, unsigned most, unsigned *out)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || n < 1 || n > most) {
		ctl_error("%s takes a number from 1 to %u, not '%s'", option, most, text);
		return -EINVAL;
	}
	*out = (unsigned)n;
	return 0;
}

static int parse_size(const char *text, int *out)
{
	char *end;
	unsigned long n;

	if (!text)
		return 0;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || n > UINT16_MAX) {
		ctl_error("--edns takes a number from 0 to %d, not '%s'", UINT16_MAX, text);
		return -EINVAL;
	}
	*out = (int)n;
	return 0;
}

struct given {
	unsigned options;              /* CTL_TAKES_* */
	bool help;
};

/* The options that only capture takes. */
static bool parse_capture_option(int o, struct ctl *c, struct given *given)
{
	const struct { int option; const char **value; } texts[] = {
		{CTL_OPT_NAME, &c->name}, {CTL_OPT_INTERFACE, &c->interface}, {'c', &c->count}, {CTL_OPT_SECONDS, &c->seconds},
		{CTL_OPT_SIZE, &c->size}, {CTL_OPT_SNAPLEN, &c->snaplen},
	};
	bool known = o == CTL_OPT_ANSWERED || o == CTL_OPT_PASSED;

	if (o == CTL_OPT_ANSWERED)
		c->answered = true;
	else if (o == CTL_OPT_PASSED && c->passed_count < HYDNS_REASONS)
		c->passed[c->passed_count++] = optarg;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].option == o) {
			*texts[i].value = optarg;
			known = true;
		}
	if (known)
		given->options |= CTL_TAKES_CAPTURE;
	return known;
}

/* The options that only guard takes. */
static bool parse_guard_option(int o, struct ctl *c, struct given *given)
{
	const char **value = o == CTL_OPT_RESOLVER ? &c->resolver : o == CTL_OPT_QUERIES ? &c->queries :
			     o == CTL_OPT_ACTION ? &c->action : o == CTL_OPT_FOR ? &c->life : NULL;

	if (!value)
		return false;
	*value = optarg;
	given->options |= CTL_TAKES_GUARD;
	return true;
}

/* The options that only preload takes. */
static bool parse_preload_option(int o, struct ctl *c, struct given *given)
{
	if (o == CTL_OPT_ESTIMATE)
		c->estimate = true;
	else if (o == CTL_OPT_ORIGIN)
		c->origin = optarg;
	else
		return false;
	given->options |= CTL_TAKES_PRELOAD;
	return true;
}

/* Fills c and *given from the options; returns -1 to go on, or an exit code. */
static int parse_options(int argc, char **argv, struct ctl *c, struct given *given)
{
	int o;

	while ((o = getopt_long(argc, argv, ctl_short_options, ctl_long_options(), NULL)) != -1) {
		switch (o) {
		case 's': c->socket_path = optarg; break;
		case 'p': c->pin_dir = optarg; break;
		case CTL_OPT_STATE: c->state_dir = optarg; break;
		case 'j': c->json = true; given->options |= CTL_TAKES_JSON; break;
		case CTL_OPT_ONCE: c->once = true; given->options |= CTL_TAKES_ONCE; break;
		case CTL_OPT_DO: c->dnssec_ok = true; given->options |= CTL_TAKES_DO; break;
		case CTL_OPT_NOREC: c->norec = true; given->options |= CTL_TAKES_NOREC; break;
		case CTL_OPT_ZONE: c->zone = optarg; given->options |= CTL_TAKES_ZONE; break;
		case CTL_OPT_ALL: c->all = true; given->options |= CTL_TAKES_ALL; break;
		case CTL_OPT_CLIENT: c->client = optarg; given->options |= CTL_TAKES_CLIENT; break;
		case CTL_OPT_EDNS:
			if (parse_size(optarg, &c->edns_size))
				return CTL_USAGE;
			c->edns = true;
			given->options |= CTL_TAKES_EDNS;
			break;
		case CTL_OPT_COOKIE:
			c->cookie = optarg;
			c->with_cookie = true;
			given->options |= CTL_TAKES_COOKIE;
			break;
		case 'n':
			if (parse_number("-n", optarg, HYDNSD_REPORT_LIMIT, &c->limit))
				return CTL_USAGE;
			given->options |= CTL_TAKES_LIMIT;
			break;
		case CTL_OPT_INTERVAL:
			if (parse_number("--interval", optarg, INTERVAL_MOST, &c->interval))
				return CTL_USAGE;
			given->options |= CTL_TAKES_INTERVAL;
			break;
		case CTL_OPT_MEASURE:
			c->measure = 1;
			if (optarg && parse_number("--measure", optarg, MEASURE_MOST, &c->measure))
				return CTL_USAGE;
			given->options |= CTL_TAKES_MEASURE;
			break;
		case CTL_OPT_COSTS: c->costs = true; given->options |= CTL_TAKES_MEASURE; break;
		case 'h':
			given->help = true;
			break;
		case 'V':
			printf("%s (hydnsctl, ABI %u)\n", PACKAGE_VERSION_TEXT, hydns_abi_version());
			return CTL_OK;
		case CTL_OPT_TABLE:
			ctl_print_table();
			return CTL_OK;
		default:
			if (parse_capture_option(o, c, given) || parse_guard_option(o, c, given) || parse_preload_option(o, c, given))
				break;
			fputs("Try 'hydnsctl --help'.\n", stderr);
			return CTL_USAGE;
		}
	}
	return -1;
}

static int run_command(const struct ctl *c, const struct given *given, const char *name, int argc, char **argv)
{
	const struct ctl_command *cmd = ctl_command(name);

	if (!cmd) {
		ctl_error("no such command: %s; try 'hydnsctl --help'", name);
		return CTL_USAGE;
	}
	if (given->help) {
		ctl_help_command(cmd);
		return CTL_OK;
	}
	if (given->options & ~cmd->takes || argc < cmd->min_args || argc > cmd->max_args) {
		ctl_error("usage: hydnsctl %s; try 'hydnsctl %s --help'", cmd->synopsis, name);
		return CTL_USAGE;
	}
	return cmd->run(c, argc, argv);
}

int main(int argc, char **argv)
{
	struct ctl c = {.socket_path = HYDNS_CONTROL_SOCKET, .pin_dir = HYDNS_PIN_DIR,
			.state_dir = HYDNS_STATE_DIR, .edns_size = -1};
	struct given given = {0};
	int rc = parse_options(argc, argv, &c, &given);

	if (rc < 0 && optind < argc) {
		rc = run_command(&c, &given, argv[optind], argc - optind - 1, argv + optind + 1);
	} else if (rc < 0 && given.help) {
		ctl_help();
		rc = CTL_OK;
	} else if (rc < 0) {
		ctl_error("no command; try 'hydnsctl --help'");
		rc = CTL_USAGE;
	}
	if (fflush(stdout) || ferror(stdout)) {
		ctl_error("cannot write to standard output: %s", strerror(errno));
		return CTL_ERROR;
	}
	return rc;
}
