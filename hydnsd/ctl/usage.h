/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The commands and options of hydnsctl: a table for parsing, help and completion. */
#ifndef HYDNSD_CTL_USAGE_H
#define HYDNSD_CTL_USAGE_H

#include <getopt.h>

#include "hydnsd/ctl/common.h"

/* Options of a command, besides the general ones. */
enum ctl_option_bit {
	CTL_TAKES_JSON = 1, CTL_TAKES_LIMIT = 2, CTL_TAKES_ONCE = 4, CTL_TAKES_DO = 8, CTL_TAKES_ZONE = 16,
	CTL_TAKES_ALL = 32, CTL_TAKES_NOREC = 64, CTL_TAKES_CLIENT = 128, CTL_TAKES_EDNS = 256, CTL_TAKES_COOKIE = 512,
	CTL_TAKES_CAPTURE = 1024,              /* all that only capture takes */
	CTL_TAKES_INTERVAL = 2048, CTL_TAKES_MEASURE = 4096,
	CTL_TAKES_GUARD = 8192,                /* all that only guard takes */
	CTL_TAKES_PRELOAD = 16384,             /* all that only preload takes */
};

struct ctl_argument {
	const char *name;              /* as in the synopsis */
	const char *help;
};

#define CTL_ARGUMENTS 2

struct ctl_command {
	const char *name;
	int (*run)(const struct ctl *c, int argc, char **argv);
	int min_args, max_args;
	unsigned takes;                /* CTL_TAKES_* */
	const char *synopsis, *summary;
	struct ctl_argument argument[CTL_ARGUMENTS];
	const char *prints;            /* what it does and prints, in lines that end with a newline */
	const char *failure;           /* when its exit status is 1 */
};

/* NULL: there is no such command. */
const struct ctl_command *ctl_command(const char *name);

/* Values of getopt_long() for options without a letter. */
enum ctl_option_value {
	CTL_OPT_ONCE = 256, CTL_OPT_DO, CTL_OPT_NOREC, CTL_OPT_ZONE, CTL_OPT_ALL, CTL_OPT_CLIENT, CTL_OPT_EDNS, CTL_OPT_COOKIE,
	CTL_OPT_STATE, CTL_OPT_INTERVAL, CTL_OPT_TABLE, CTL_OPT_ANSWERED, CTL_OPT_PASSED, CTL_OPT_NAME, CTL_OPT_INTERFACE, CTL_OPT_SECONDS,
	CTL_OPT_SIZE, CTL_OPT_SNAPLEN, CTL_OPT_MEASURE, CTL_OPT_COSTS, CTL_OPT_RESOLVER, CTL_OPT_QUERIES, CTL_OPT_ACTION, CTL_OPT_FOR,
	CTL_OPT_ESTIMATE, CTL_OPT_ORIGIN
};
extern const char ctl_short_options[];
const struct option *ctl_long_options(void);

void ctl_help(void);
void ctl_help_command(const struct ctl_command *c);
/* For completion. Lines, with tabs between fields: option or letter, what it takes, nothing; or command, "command", what it
 * takes. */
void ctl_print_table(void);

#endif
