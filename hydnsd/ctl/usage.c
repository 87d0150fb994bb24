/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/ctl/usage.h"

#include <stdio.h>
#include <string.h>

#include "hydnsd/ctl/defaults.h"
#include "hydnsd/daemon/pause.h"

struct known_option {
	const char *name, *value;      /* value: as in the help, in "[=]" when it may be left out; NULL: none */
	int letter;                    /* or CTL_OPT_* */
	unsigned bit;                  /* CTL_TAKES_*; 0: general */
	const char *takes;             /* for completion: file, directory, number, text or flag; NULL: not shown */
	const char *help;
};

/* What --passed takes. */
static const char passed[] = "any"
#define HYDNS_REASON(name, action, of, text) "|" #name
#include "hydns/reasons.def"
#undef HYDNS_REASON
	;

static const struct known_option options[] = {
	{"socket", "PATH", 's', 0, "file", "control socket of hydnsd [" HYDNS_CONTROL_SOCKET "]"},
	{"pin-dir", "DIR", 'p', 0, "directory", "where the maps are pinned [" HYDNS_PIN_DIR "]"},
	{"state-dir", "DIR", CTL_OPT_STATE, 0, "directory", "where a pause is kept [" HYDNS_STATE_DIR "]"},
	{"json", NULL, 'j', CTL_TAKES_JSON, "flag", "prints one JSON object"},
	{"limit", "N", 'n', CTL_TAKES_LIMIT, "number", "how many names, rules or questions, 1 to 10000"},
	{"once", NULL, CTL_OPT_ONCE, CTL_TAKES_ONCE, "flag", "prints once, on a terminal too"},
	{"interval", "S", CTL_OPT_INTERVAL, CTL_TAKES_INTERVAL, "number", "seconds from one look to the next, 1 to 3600 [1]"},
	{"measure", "[=SECONDS]", CTL_OPT_MEASURE, CTL_TAKES_MEASURE, "flag", "measures the programs for a second, or so many, 1 to 60"},
	{"costs", NULL, CTL_OPT_COSTS, CTL_TAKES_MEASURE, "flag", "measures what each part of the program adds to a query"},
	{"do", NULL, CTL_OPT_DO, CTL_TAKES_DO, "flag", "for queries with the DO bit"},
	{"norec", NULL, CTL_OPT_NOREC, CTL_TAKES_NOREC, "flag", "for queries without RD"},
	{"client", "ADDRESS", CTL_OPT_CLIENT, CTL_TAKES_CLIENT, "text", "for queries from this client; capture: or PREFIX/LENGTH"},
	{"edns", "[=SIZE]", CTL_OPT_EDNS, CTL_TAKES_EDNS, "flag", "for queries with EDNS, of size 1232 or this one"},
	{"cookie", "[=HEX]", CTL_OPT_COOKIE, CTL_TAKES_COOKIE, "flag", "for queries with a client cookie, or with this cookie"},
	{"zone", "ZONE", CTL_OPT_ZONE, CTL_TAKES_ZONE, "text", "all names at and below this one"},
	{"all", NULL, CTL_OPT_ALL, CTL_TAKES_ALL, "flag", "all rules; guard lift: all suffixes"},
	{"answered", NULL, CTL_OPT_ANSWERED, CTL_TAKES_CAPTURE, "flag", "what the kernel answers, with the reply"},
	{"passed", "REASON", CTL_OPT_PASSED, CTL_TAKES_CAPTURE, passed, "what ends with this reason, as in stats; may be repeated"},
	{"name", "NAME", CTL_OPT_NAME, CTL_TAKES_CAPTURE, "text", "queries for this name; *.NAME: --zone NAME"},
	{"interface", "NAME", CTL_OPT_INTERFACE, CTL_TAKES_CAPTURE, "text", "queries that arrive there"},
	{"count", "N", 'c', CTL_TAKES_CAPTURE, "number", "ends after so many packets, replies not counted"},
	{"seconds", "N", CTL_OPT_SECONDS, CTL_TAKES_CAPTURE, "number", "ends after this time"},
	{"size", "OCTETS", CTL_OPT_SIZE, CTL_TAKES_CAPTURE, "number", "ends before FILE is larger [64M]"},
	{"snaplen", "OCTETS", CTL_OPT_SNAPLEN, CTL_TAKES_CAPTURE, "number", "keeps so much of a packet [2047]"},
	{"resolver", "N", CTL_OPT_RESOLVER, CTL_TAKES_GUARD, "number", "at this resolver, by its number in status; default: at all"},
	{"queries", "N", CTL_OPT_QUERIES, CTL_TAKES_GUARD, "number", "so many a second go on [guard-suffix-queries]"},
	{"action", "ACTION", CTL_OPT_ACTION, CTL_TAKES_GUARD, "drop|truncate|fail", "what becomes of the others [guard-suffix-action]"},
	{"for", "SECONDS", CTL_OPT_FOR, CTL_TAKES_GUARD, "number", "how long [guard-suffix-life]"},
	{"estimate", NULL, CTL_OPT_ESTIMATE, CTL_TAKES_PRELOAD, "flag", "says what preloading would take, and preloads nothing"},
	{"origin", "NAME", CTL_OPT_ORIGIN, CTL_TAKES_PRELOAD, "text", "of the file's names, up to its first $ORIGIN"},
	{"help", NULL, 'h', 0, "flag", "this text; with a command, the command's"},
	{"version", NULL, 'V', 0, "flag", "version and ABI"},
	{"print-options", NULL, CTL_OPT_TABLE, 0, NULL, NULL},         /* commands and options, for completion */
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

const char ctl_short_options[] = "s:p:jn:c:hV";

#define UNREACHABLE "hydnsd cannot be reached or refuses"
#define WITHOUT     "neither hydnsd nor the pinned maps can be reached"

#define NO_ARGUMENTS   {{0}}
#define ARGUMENTS(...) {__VA_ARGS__}
static const struct ctl_command commands[] = {
#define CTL_COMMAND(name, served, least, most, takes, synopsis, summary, arguments, prints, failure) \
	{#name, ctl_cmd_##name, least, most, takes, synopsis, summary, arguments, prints, failure},
#include "hydnsd/control/commands.def"
#undef CTL_COMMAND
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))
#define SUMMARY_AT 46                  /* column, in the list of commands */

const struct ctl_command *ctl_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static bool may_lack(const struct known_option *o)
{
	return o->value && o->value[0] == '[';
}

const struct option *ctl_long_options(void)
{
	static struct option longs[OPTIONS + 1];

	for (size_t i = 0; i < OPTIONS; i++)
		longs[i] = (struct option){
			options[i].name, !options[i].value ? no_argument : may_lack(&options[i]) ? optional_argument : required_argument,
			NULL, options[i].letter,
		};
	return longs;
}

/* Prints the options of a set, and the general ones. */
static void print_options(unsigned takes)
{
	char text[32];

	for (size_t i = 0; i < OPTIONS; i++) {
		const struct known_option *o = &options[i];

		if (!o->help || (o->bit && !(o->bit & takes)))
			continue;
		snprintf(text, sizeof(text), "--%s%s%s", o->name, !o->value || may_lack(o) ? "" : " ", o->value ? o->value : "");
		if (o->letter < CTL_OPT_ONCE)
			printf("  -%c, %-17s %s\n", o->letter, text, o->help);
		else
			printf("      %-17s %s\n", text, o->help);
	}
}

/* After a long synopsis it is in a line of its own. */
static void print_summary(const struct ctl_command *c)
{
	int at = printf("  %s", c->synopsis);

	if (at >= SUMMARY_AT) {
		putchar('\n');
		at = 0;
	}
	printf("%*s%s\n", SUMMARY_AT - at, "", c->summary);
}

void ctl_help(void)
{
	puts("usage: hydnsctl [--socket PATH] [--pin-dir DIR] [--state-dir DIR] COMMAND ...\n"
	     "       hydnsctl COMMAND --help\n");
	for (size_t i = 0; i < COMMANDS; i++)
		print_summary(&commands[i]);
	putchar('\n');
	print_options(~0U);
	puts("\nExit status: 0 done, 1 error (doctor: something is to mend), 2 wrong usage. See hydnsctl(8).");
}

void ctl_help_command(const struct ctl_command *c)
{
	printf("usage: hydnsctl %s\n\n%s\n", c->synopsis, c->prints);
	for (int i = 0; i < CTL_ARGUMENTS && c->argument[i].name; i++)
		printf("  %-21s %s\n", c->argument[i].name, c->argument[i].help);
	print_options(c->takes);
	printf("\nExit status: 0 done%s; 1 %s; 2 wrong usage.\n",
	       strcmp(c->name, "doctor") ? "" : ", every finding is ok or skip", c->failure);
}

void ctl_print_table(void)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (options[i].takes) {
			printf("%s\t%s\t\n", options[i].name, options[i].takes);
			if (options[i].letter < CTL_OPT_ONCE)
				printf("%c\t%s\t\n", options[i].letter, options[i].takes);
		}
	for (size_t i = 0; i < COMMANDS; i++) {
		printf("%s\tcommand\t", commands[i].name);
		for (int k = 0; k < CTL_ARGUMENTS && commands[i].argument[k].name; k++)
			printf("%s ", commands[i].argument[k].name);
		for (size_t k = 0; k < OPTIONS; k++)
			if (options[k].bit & commands[i].takes)
				printf("--%s ", options[k].name);
		putchar('\n');
	}
}
