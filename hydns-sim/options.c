/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydns-sim/options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns-sim/read.h"

enum type { NUMBER, REAL, SEED, TEXT, TTLS, CAPACITIES, CONTENDERS, FORMAT, HELP, VERSION, PRINT_OPTIONS };

struct option {
	const char *name, *value;      /* value: its placeholder in the help */
	enum type type;
	size_t offset;
	double min, max;
	const char *help;              /* NULL: not shown */
};

#define AT(field) offsetof(struct sim_options, field)
static const struct option table[] = {
	{ "capacity", "N,...", CAPACITIES, AT(capacity), 1, 4e6, "rules at most; a list [100,1000,10000,100000]" },
	{ "contender", "NAME,...", CONTENDERS, AT(contender), 0, 0, "who plays [all]" },
	{ "json", "FILE", TEXT, AT(json), 0, 0, "write all figures there; - is the standard output" },
	{ "plot", "FILE", TEXT, AT(plot), 0, 0, "draw hit rate, installs and memory against capacity (PNG, PDF or SVG)" },
	{ "warm-up", "SHARE", REAL, AT(run.warm_up), 0, 0.95, "of the requests that do not count [0.25]" },
	{ "latency", "MS", NUMBER, AT(run.latency_ms), 0, 10000, "what a lookup of the resolver takes [30]" },
	{ "halve-at", "SHARE", REAL, AT(run.halve_at), 0, 1, "of the requests after which the capacity is halved [0: never]" },
	{ "format", "NAME", FORMAT, AT(format), 0, 0, "of the trace: auto, pcap, dnstap or dnsperf [auto]" },
	{ "ttl", "S", NUMBER, AT(ttl), 1, 604800, "of answers that the trace does not show [300]" },
	{ "trace-rate", "QPS", REAL, AT(rate), 0.001, 1e9, "of a trace without times [1000]" },
	{ "seed", "N", SEED, AT(workload.seed), 0, 0, "of the generator [1]" },
	{ "requests", "N", NUMBER, AT(workload.requests), 1, 4e8, "to generate [5000000]" },
	{ "names", "N", NUMBER, AT(workload.names), 2, 1e8, "that are asked for more than once [1000000]" },
	{ "zipf", "S", REAL, AT(workload.zipf), 0, 10, "exponent of Zipf's law [1]" },
	{ "plateau", "K", REAL, AT(workload.plateau), 0, 1e9, "rank k weighs (k + K)^-S: flattens the top [0]" },
	{ "fresh", "SHARE", REAL, AT(workload.fresh), 0, 1, "of requests for names that never come again [0.2]" },
	{ "rate", "QPS", REAL, AT(workload.rate), 0.001, 1e9, "requests a second [5000]" },
	{ "ttls", "S,...", TTLS, AT(workload.ttl), 1, 604800, "equally frequent TTLs [20,60,300,3600]" },
	{ "churn", "N", REAL, AT(workload.churn), 0, 1e6, "changes of place among the names, a second [0]" },
	{ "flash-at", "SHARE", REAL, AT(workload.flash_at), 0, 1,
	  "of the requests after which a new name has half of them [0: never]" },
	{ "scan", "SHARE", REAL, AT(workload.scan), 0, 0.99, "of names that never come again, on top of the rest, during a scan [0]" },
	{ "scan-from", "SHARE", REAL, AT(workload.scan_from), 0, 1, "of the requests after which the scan begins [0]" },
	{ "scan-to", "SHARE", REAL, AT(workload.scan_to), 0, 1, "of the requests after which it ends [0]" },
	{ "rate-at", "SHARE", REAL, AT(workload.rate_at), 0, 1, "of the requests after which the rate changes [0: never]" },
	{ "rate-factor", "X", REAL, AT(workload.rate_factor), 1e-6, 1e6, "by this [1]" },
	{ "day", "N", REAL, AT(workload.day), 0, 1000, "times that popularity moves to another order and back [0]" },
	{ "admission", "N", NUMBER, AT(hydns.admission), 1, 1e6, "hydns-admission of unbound.conf [1]" },
	{ "window", "S", NUMBER, AT(hydns.window_s), 1, 3600, "hydns-window [600]" },
	{ "min-ttl", "S", NUMBER, AT(hydns.min_ttl), 1, 86400, "hydns-min-ttl [2]" },
	{ "refresh", "PERCENT", NUMBER, AT(hydns.refresh_percent), 0, 50, "hydns-refresh [10]" },
	{ "min-hits", "N", NUMBER, AT(hydns.min_hits), 0, 1e6, "min-hits of hydnsd.conf [0]" },
	{ "version", NULL, VERSION, 0, 0, 0, "print the version and exit" },
	{ "help", NULL, HELP, 0, 0, 0, "print this help and exit" },
	{ "print-options", NULL, PRINT_OPTIONS, 0, 0, 0, NULL },       /* and commands, for completion */
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))

static int fail(char *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, OPTIONS_ERROR, format, args);
	va_end(args);
	return -1;
}

/* The short form of a flag, 0 when there is none. */
static char letter(const struct option *o)
{
	return o->type == HELP ? 'h' : o->type == VERSION ? 'V' : '\0';
}

static void print_option(const struct option *o)
{
	if (letter(o))
		printf("  -%c, --%-8s %-9s %s\n", letter(o), o->name, "", o->help);
	else
		printf("  --%-12s %-9s %s\n", o->name, o->value ? o->value : "", o->help);
}

static void usage(void)
{
	puts("usage: hydns-sim run [FILE] [OPTION...]    play a trace, or a generated workload, against all policies\n"
	     "       hydns-sim advise FILE [OPTION...]   which capacity a resolver with this traffic needs\n"
	     "       hydns-sim cost [OPTION...]          measure what a query costs in the resolver's plugin\n");
	for (size_t i = 0; i < OPTIONS; i++)
		if (table[i].help)
			print_option(&table[i]);
	printf("\ncontenders:");
	for (int i = 0; sim_contenders[i]; i++)
		printf(" %s", sim_contenders[i]->name);
	puts("");
}

static void print_value(const struct option *o)
{
	switch (o->type) {
	case FORMAT:
		fputs("auto|pcap|dnstap|dnsperf", stdout);
		break;
	case CONTENDERS:
		for (int i = 0; sim_contenders[i]; i++)
			printf("%s%s", i ? "|" : "", sim_contenders[i]->name);
		break;
	case TEXT:
		fputs("file", stdout);
		break;
	case HELP:
	case VERSION:
		fputs("flag", stdout);
		break;
	default:
		fputs("number", stdout);
	}
}

/* Lines of fields with tabs between: option and what it takes; command, "command" and its argument. */
static void print_table(void)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		if (!table[i].help)
			continue;
		printf("%s\t", table[i].name);
		print_value(&table[i]);
		puts("\t");
	}
	puts("run\tcommand\tFILE\nadvise\tcommand\tFILE\ncost\tcommand\t");
}

static void *field(const struct option *o, struct sim_options *to)
{
	return (char *)to + o->offset;
}

static int read_real(const struct option *o, const char *text, double *out, char *error)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	if (errno || end == text || *end || !isfinite(*out) || *out < o->min || *out > o->max)
		return fail(error, "--%s: '%.40s' is not a number from %g to %g: correct it", o->name, text, o->min,
			    o->max);
	return 0;
}

static int read_number(const struct option *o, const char *text, uint32_t *out, char *error)
{
	double x;

	if (read_real(o, text, &x, error))
		return -1;
	if (x != floor(x))
		return fail(error, "--%s: '%.40s' is not a whole number: correct it", o->name, text);
	*out = (uint32_t)x;
	return 0;
}

static int read_seed(const struct option *o, const char *text, uint64_t *out, char *error)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-')
		return fail(error, "--%s: '%.40s' is not a number: correct it", o->name, text);
	return 0;
}

/* Reads a list of at most `most` numbers with commas between them. */
static int read_list(const struct option *o, const char *text, uint32_t *out, uint32_t *count, uint32_t most,
		     char *error)
{
	char item[32];

	for (*count = 0; ; text++) {
		size_t len = strcspn(text, ",");

		if (*count == most || len >= sizeof(item))
			return fail(error, "--%s: more than %u numbers, or a long one: shorten it", o->name, most);
		memcpy(item, text, len);
		item[len] = '\0';
		if (read_number(o, item, &out[(*count)++], error))
			return -1;
		text += len;
		if (!*text)
			return 0;
	}
}

static int read_contenders(const char *text, struct sim_options *out, char *error)
{
	char item[32];

	for (out->contenders = 0; ; text++) {
		size_t len = strcspn(text, ",");
		const struct contender_kind *kind = NULL;

		if (len < sizeof(item)) {
			memcpy(item, text, len);
			item[len] = '\0';
			kind = sim_contender(item);
		}
		if (!kind || out->contenders == sizeof(out->contender) / sizeof(out->contender[0]))
			return fail(error, "--contender: '%.40s' is none, or too many: see hydns-sim --help", text);
		out->contender[out->contenders++] = kind;
		text += len;
		if (!*text)
			return 0;
	}
}

static int set(const struct option *o, const char *value, struct sim_options *out, char *error)
{
	switch (o->type) {
	case NUMBER:
		return read_number(o, value, field(o, out), error);
	case REAL:
		return read_real(o, value, field(o, out), error);
	case SEED:
		return read_seed(o, value, field(o, out), error);
	case TEXT:
		*(const char **)field(o, out) = value;
		return 0;
	case TTLS:
		return read_list(o, value, out->workload.ttl, &out->workload.ttls, SIM_TTLS_MAX, error);
	case CAPACITIES:
		return read_list(o, value, out->capacity, &out->capacities, OPTIONS_CAPACITIES, error);
	case CONTENDERS:
		return read_contenders(value, out, error);
	case FORMAT:
		if (sim_format_from_name(value, field(o, out)))
			return 0;
		return fail(error, "--format: '%.40s' is not auto, pcap, dnstap or dnsperf: correct it", value);
	case HELP:
		usage();
		return 1;
	case VERSION:
		puts("hydns-sim (" PACKAGE_VERSION_TEXT ")");
		return 1;
	case PRINT_OPTIONS:
		print_table();
		return 1;
	}
	return -1;
}

/* The flag with this letter, NULL when there is none. */
static const struct option *short_form(const char *text)
{
	for (size_t k = 0; k < OPTIONS; k++)
		if (letter(&table[k]) && text[0] == '-' && text[1] == letter(&table[k]) && !text[2])
			return &table[k];
	return NULL;
}

static int take(int argc, char **argv, int *i, struct sim_options *out, char *error)
{
	const char *text = argv[*i] + 2, *value = strchr(argv[*i], '=');
	size_t len = value ? (size_t)(value - text) : strlen(argv[*i]) - 2;

	for (size_t k = 0; argv[*i][1] == '-' && k < OPTIONS; k++) {
		const struct option *o = &table[k];

		if (strlen(o->name) != len || memcmp(o->name, text, len) != 0)
			continue;
		if (o->type >= HELP)
			return set(o, NULL, out, error);
		if (!value && *i + 1 == argc)
			return fail(error, "--%s needs a value: write one after it", o->name);
		return set(o, value ? value + 1 : argv[++*i], out, error);
	}
	return fail(error, "no option '%.60s': see hydns-sim --help", argv[*i]);
}

static int check(const struct sim_options *o, char *error)
{
	const struct sim_workload *w = &o->workload;

	if (w->scan > 0 && w->scan_from >= w->scan_to)
		return fail(error, "--scan-from is not before --scan-to: set both");
	if ((double)w->names + (double)w->requests >= (double)UINT32_MAX)
		return fail(error, "--names and --requests together exceed 2^32: lower one");
	return 0;
}

int sim_options_read(int argc, char **argv, struct sim_options *out, char error[OPTIONS_ERROR])
{
	*out = (struct sim_options){
		.workload = SIM_WORKLOAD_DEFAULTS, .hydns = SIM_HYDNS_DEFAULTS,
		.run = { .warm_up = 0.25, .latency_ms = 30 }, .ttl = 300, .rate = 1000,
		.capacity = { 100, 1000, 10000, 100000 }, .capacities = 4,
	};
	while (sim_contenders[out->contenders]) {
		out->contender[out->contenders] = sim_contenders[out->contenders];
		out->contenders++;
	}
	for (int i = 1; i < argc; i++) {
		const struct option *flag = short_form(argv[i]);
		int rc;

		if (flag)
			return set(flag, NULL, out, error);
		if (strncmp(argv[i], "-", 1) == 0) {
			rc = take(argc, argv, &i, out, error);
			if (rc)
				return rc;
		} else if (out->word_count == 2) {
			return fail(error, "'%.60s' is one word too many: see hydns-sim --help", argv[i]);
		} else {
			out->words[out->word_count++] = argv[i];
		}
	}
	return check(out, error);
}
