/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "hydns-kern/loader/loader.h"
#include "hydns/guard.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/daemon/pause.h"

#ifndef HYDNSD_CONFIG_FILE
#define HYDNSD_CONFIG_FILE "/etc/hydns/hydnsd.conf"
#endif
#ifndef HYDNSD_RUN_DIR
#define HYDNSD_RUN_DIR "/run/hydns"
#endif

enum type { TEXT, LIST, NUMBER, CHOICE, SWITCH };

struct option {
	const char *name;
	enum type type;
	size_t offset;
	uint32_t min, max;             /* NUMBER */
	const char *const *choices;    /* CHOICE: words by value, then NULL */
	const char *standard;          /* default, as in the file; NULL: none */
	bool live;                     /* SIGHUP can change it */
	bool command_line_only;
	bool hidden;
	char letter;                   /* its short form; 0: none */
	const char *help;
};

static const char *const attach_modes[] = {
	[HYDNS_ATTACH_NATIVE] = "native", [HYDNS_ATTACH_GENERIC] = "generic",
	[HYDNS_ATTACH_DISPATCHER] = "dispatcher", NULL,
};
static const char *const autos[] = {
	[HYDNSD_AUTO] = "auto", [HYDNSD_YES] = "yes", [HYDNSD_NO] = "no", NULL,
};
static const char *const queues[] = { [HYDNSD_QUEUE_AUTO] = "auto", [HYDNSD_QUEUE_NO] = "no", NULL };
static const char *const vlan_offloads[] = {
	[HYDNSD_VLAN_OFFLOAD_REFUSE] = "refuse", [HYDNSD_VLAN_OFFLOAD_OFF] = "off",
	[HYDNSD_VLAN_OFFLOAD_TRUST] = "trust", NULL,
};
static const char *const reply_paths[] = {
	[HYDNSD_REPLY_AUTO] = "auto", [HYDNSD_REPLY_SWAP] = "swap", [HYDNSD_REPLY_FIB] = "fib", NULL,
};
static const char *const yes_no[] = { "no", "yes", NULL };
static const char *const guards[] = {
	[HYDNS_GUARD_OFF] = "off", [HYDNS_GUARD_COUNT] = "count", [HYDNS_GUARD_ENFORCE] = "enforce", NULL,
};
static const char *const guard_actions[] = {
	[HYDNS_GUARD_DROP] = "drop", [HYDNS_GUARD_TRUNCATE] = "truncate", [HYDNS_GUARD_FAIL] = "fail", NULL,
};
static const char *const guard_client_actions[] = { [HYDNS_GUARD_DROP] = "drop", [HYDNS_GUARD_TRUNCATE] = "truncate", NULL };
static const char *const guard_cookies[] = {
	[HYDNSD_GUARD_COOKIES_EXEMPT] = "exempt", [HYDNSD_GUARD_COOKIES_COUNT] = "count", NULL,
};
static const char *const guard_suffixes[] = {
	[HYDNSD_GUARD_AUTOMATIC] = "automatic", [HYDNSD_GUARD_MANUAL] = "manual", NULL,
};
static const char *const log_levels[] = {
	[HYDNSD_LOG_ERROR] = "error", [HYDNSD_LOG_WARNING] = "warning",
	[HYDNSD_LOG_INFO] = "info", [HYDNSD_LOG_DEBUG] = "debug", NULL,
};
static const char *const log_targets[] = {
	[HYDNSD_LOG_STDERR] = "stderr", [HYDNSD_LOG_SYSLOG] = "syslog", NULL,
};

#define AT(field) .offset = offsetof(struct hydnsd_options, field)
static const struct option options[] = {
	{ "config", TEXT, AT(config), .standard = HYDNSD_CONFIG_FILE, .command_line_only = true,
	  .help = "config file: lines `option: value', # begins a comment" },
	{ "interface", LIST, AT(interface), .live = true,
	  .help = "network interface to answer on; repeatable" },
	{ "attach-mode", CHOICE, AT(attach_mode), .choices = attach_modes, .standard = "native",
	  .help = "in the driver, in the network stack, or beside other programs through libxdp" },
	{ "pin-dir", TEXT, AT(pin_dir), .standard = HYDNS_PIN_DIR,
	  .help = "directory in a bpffs where maps and attachments are pinned" },
	{ "state-dir", TEXT, AT(state_dir), .standard = HYDNS_STATE_DIR,
	  .help = "directory where a pause is kept" },
	{ "plugin-socket", LIST, AT(plugin_socket), .standard = HYDNSD_RUN_DIR "/plugin.sock",
	  .help = "socket for resolvers; repeatable, for chroots" },
	{ "plugin-group", TEXT, AT(plugin_group),
	  .help = "group whose members may connect as resolvers" },
	{ "plugin-connections", NUMBER, AT(plugin_connections), .min = 1, .max = HYDNSD_CONNECTIONS_MOST, .standard = "64",
	  .live = true, .help = "most connections of resolvers; others wait until one leaves" },
	{ "plugin-connections-per-user", NUMBER, AT(plugin_connections_per_user), .min = 1, .max = HYDNSD_CONNECTIONS_MOST,
	  .standard = "48", .live = true, .help = "most of them for one user; others are refused" },
	{ "plugin-requests", NUMBER, AT(plugin_requests), .min = 1, .max = 255, .standard = "4", .live = true,
	  .help = "requests of a connection that are under way at once; others wait" },
	{ "plugin-rate", NUMBER, AT(plugin_rate), .min = 1, .max = 1000, .standard = "50", .live = true,
	  .help = "costly requests of a user a second; others wait" },
	{ "plugin-burst", NUMBER, AT(plugin_burst), .min = 1, .max = 10000, .standard = "64", .live = true,
	  .help = "costly requests of a user at once, after a pause" },
	{ "plugin-log-rate", NUMBER, AT(plugin_log_rate), .min = 1, .max = 1000, .standard = "5", .live = true,
	  .help = "log lines a second that resolvers cause; others are left out" },
	{ "plugin-log-burst", NUMBER, AT(plugin_log_burst), .min = 1, .max = 10000, .standard = "50", .live = true,
	  .help = "log lines at once that resolvers cause, after a pause" },
	{ "control-socket", TEXT, AT(control_socket), .standard = HYDNSD_RUN_DIR "/control.sock",
	  .help = "socket for hydnsctl" },
	{ "control-group", TEXT, AT(control_group), .help = "group whose members may use hydnsctl" },
	{ "capacity", NUMBER, AT(capacity), .min = 1, .max = HYDNSD_CAPACITY_MAX, .standard = "100000",
	  .help = "most rules, over all resolvers" },
	{ "min-hits", NUMBER, AT(min_hits), .min = 0, .max = 1000000, .standard = "0", .live = true,
	  .help = "admit an answer when at least this many hits are expected in its life" },
	{ "ipv6", CHOICE, AT(ipv6), .choices = autos, .standard = "auto", .live = true,
	  .help = "answer queries over IPv6; auto: if the host has it" },
	{ "vlan", CHOICE, AT(vlan), .choices = autos, .standard = "auto", .live = true,
	  .help = "answer queries with one or two VLAN tags too, tags kept; auto: if VLANs lie on the interfaces" },
	{ "vlan-offload", CHOICE, AT(vlan_offload), .choices = vlan_offloads, .standard = "refuse", .live = true,
	  .help = "where a VLAN device's tags would not be seen: do not attach, turn the offload off, or attach" },
	{ "reply-path", CHOICE, AT(reply_path), .choices = reply_paths, .standard = "auto", .live = true,
	  .help = "send replies back to where the query came from, or where the routing tables say; auto: by them if the host routes" },
	{ "partial-checksum", CHOICE, AT(partial_checksum), .choices = autos, .standard = "auto", .live = true,
	  .help = "take packets whose UDP checksum a virtual driver left unfinished; auto: by driver" },
	{ "queue", CHOICE, AT(queue), .choices = queues, .standard = "auto",
	  .help = "packet rings to resolvers that ask for them: auto gives them where they work" },
	{ "pending-max", NUMBER, AT(pending_max), .min = 0, .max = 1000000, .standard = "65536",
	  .help = "most queries that wait for a resolution under way, of all resolvers; 0: none waits" },
	{ "forwarding", CHOICE, AT(forwarding), .choices = yes_no, .standard = "yes",
	  .help = "send queries straight to upstream servers where a resolver wants it (hydns-forward)" },
	{ "monitor", CHOICE, AT(monitor), .choices = yes_no, .standard = "no",
	  .live = true, .help = "count distinct clients and names, and watch for what is out of the ordinary" },
	{ "monitor-window", NUMBER, AT(monitor_window), .min = 1, .max = 3600, .standard = "10",
	  .live = true, .help = "seconds over which the monitor counts" },
	{ "monitor-condition", LIST, AT(monitor_condition),
	  .live = true, .help = "NAME off, or NAME BEGIN END [LEAST]: when a condition begins and ends; repeatable" },
	{ "monitor-analyser", LIST, AT(monitor_analyser),
	  .live = true, .help = "NAME off, NAME always, or NAME CONDITION...: when an analyser runs; repeatable" },
	{ "monitor-hook", TEXT, AT(monitor_hook),
	  .live = true, .help = "program to run when a condition begins or ends: an absolute path" },
	{ "monitor-hook-seconds", NUMBER, AT(monitor_hook_seconds), .min = 1, .max = 3600, .standard = "10",
	  .live = true, .help = "seconds after which it is killed" },
	{ "guard", CHOICE, AT(guard), .choices = guards, .standard = "off",
	  .live = true, .help = "limit clients' networks and flooded suffixes: not at all, count what would be stopped, or stop it" },
	{ "guard-client-queries", NUMBER, AT(guard_client_queries), .min = 0, .max = 100000000, .standard = "0",
	  .live = true, .help = "queries a second of one client network; 0: no limit" },
	{ "guard-client-action", CHOICE, AT(guard_client_action), .choices = guard_client_actions, .standard = "drop",
	  .live = true, .help = "what becomes of those above it" },
	{ "guard-client-slip", NUMBER, AT(guard_client_slip), .min = 0, .max = 1000, .standard = "2",
	  .live = true, .help = "one in so many is truncated instead of dropped; 0: none" },
	{ "guard-ipv4-prefix", NUMBER, AT(guard_ipv4_prefix), .min = 1, .max = 32, .standard = "24",
	  .live = true, .help = "bits of an IPv4 address that are its network's" },
	{ "guard-ipv6-prefix", NUMBER, AT(guard_ipv6_prefix), .min = 1, .max = 128, .standard = "56",
	  .live = true, .help = "bits of an IPv6 address that are its network's" },
	{ "guard-cookies", CHOICE, AT(guard_cookies), .choices = guard_cookies, .standard = "exempt",
	  .live = true, .help = "queries with a valid DNS cookie are exempt from the client limit, or count" },
	{ "guard-suffix", CHOICE, AT(guard_suffix), .choices = guard_suffixes, .standard = "automatic",
	  .live = true, .help = "suffixes are guarded when resolvers report them, or by hydnsctl guard alone" },
	{ "guard-suffix-failures", NUMBER, AT(guard_suffix_failures), .min = 0, .max = 1000000, .standard = "50",
	  .help = "failed resolutions a second below a suffix that have it guarded; 0: never" },
	{ "guard-suffix-waiting", NUMBER, AT(guard_suffix_waiting), .min = 0, .max = 1000000, .standard = "200",
	  .help = "resolutions that wait at once below a suffix that have it guarded; 0: never" },
	{ "guard-suffix-queries", NUMBER, AT(guard_suffix_queries), .min = 0, .max = 1000000, .standard = "10",
	  .live = true, .help = "queries a second of a guarded suffix that still go to the resolver" },
	{ "guard-suffix-action", CHOICE, AT(guard_suffix_action), .choices = guard_actions, .standard = "fail",
	  .live = true, .help = "what becomes of the others" },
	{ "guard-suffix-life", NUMBER, AT(guard_suffix_life), .min = 1, .max = 86400, .standard = "60",
	  .live = true, .help = "seconds after the last report, or order, that a suffix is guarded" },
	{ "user", TEXT, AT(user), .help = "user to run as after start" },
	{ "group", TEXT, AT(group), .help = "group to run as after start; default: the user's" },
	{ "log-level", CHOICE, AT(log_level), .choices = log_levels, .standard = "info", .live = true,
	  .help = "least severity to log" },
	{ "log-target", CHOICE, AT(log_target), .choices = log_targets, .standard = "stderr",
	  .live = true, .help = "where to log" },
	{ "pid-file", TEXT, AT(pid_file), .help = "file to write the process number to" },
	{ "keep-on-exit", CHOICE, AT(keep_on_exit), .choices = yes_no, .standard = "no", .live = true,
	  .help = "on SIGTERM leave the program attached and answering, as SIGUSR2 does" },
	{ "check", SWITCH, AT(check), .command_line_only = true,
	  .help = "check the configuration and exit" },
	{ "clean", SWITCH, AT(clean), .command_line_only = true,
	  .help = "remove what a former hydnsd left attached and pinned, and exit" },
	{ "version", SWITCH, AT(version), .command_line_only = true, .letter = 'V',
	  .help = "print the version and exit" },
	{ "help", SWITCH, AT(help), .command_line_only = true, .letter = 'h', .help = "print this help and exit" },
	{ "print-options", SWITCH, AT(print_options), .command_line_only = true, .hidden = true,
	  .help = "print names, types and defaults for completion and the manual's test, and exit" },
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))
_Static_assert(OPTIONS <= 64, "a bit each: begin_list()");

static int fail(char *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, HYDNSD_OPTION_ERROR, format, args);
	va_end(args);
	return -1;
}

static void *field(const struct option *o, struct hydnsd_options *values)
{
	return (char *)values + o->offset;
}

static const struct option *find(const char *name, size_t len)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0)
			return &options[i];
	return NULL;
}

static const struct option *find_letter(const char *text)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (options[i].letter && text[0] == '-' && text[1] == options[i].letter && !text[2])
			return &options[i];
	return NULL;
}

static void choices_text(const struct option *o, char *text, size_t room)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned i = 0; o->choices[i] && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%s", i ? "|" : "", o->choices[i]);
}

static void type_text(const struct option *o, char *text, size_t room)
{
	switch (o->type) {
	case TEXT:
	case LIST:
		snprintf(text, room, "%s", o->type == TEXT ? "text" : "text, repeatable");
		break;
	case NUMBER:
		snprintf(text, room, "%u..%u", o->min, o->max);
		break;
	case CHOICE:
		choices_text(o, text, room);
		break;
	case SWITCH:
		snprintf(text, room, "flag");
		break;
	}
}

static int set_number(const struct option *o, uint32_t *out, const char *value, char *error)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno || !isdigit((unsigned char)value[0]) || *end || n < o->min || n > o->max)
		return fail(error, "%s: '%s' is not a number from %u to %u: correct it", o->name, value,
			    o->min, o->max);
	*out = (uint32_t)n;
	return 0;
}

static int set_choice(const struct option *o, uint32_t *out, const char *value, char *error)
{
	char text[128];

	for (uint32_t i = 0; o->choices[i]; i++)
		if (strcmp(o->choices[i], value) == 0) {
			*out = i;
			return 0;
		}
	choices_text(o, text, sizeof(text));
	return fail(error, "%s: '%s' is not one of %s: correct it", o->name, value, text);
}

static int set_text(char **out, const char *value, char *error)
{
	char *copy = strdup(value);

	if (!copy)
		return fail(error, "out of memory");
	free(*out);
	*out = copy;
	return 0;
}

static void list_clear(struct hydnsd_list *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		free(l->item[i]);
	memset(l, 0, sizeof(*l));
}

static int set(const struct option *o, struct hydnsd_options *values, const char *value, char *error)
{
	struct hydnsd_list *l;

	if (!*value)
		return fail(error, "%s: no value: write one after it, or remove it", o->name);
	switch (o->type) {
	case TEXT:
		return set_text(field(o, values), value, error);
	case LIST:
		l = field(o, values);
		if (l->count == HYDNSD_LIST_MAX)
			return fail(error, "%s: more than %d of them: remove some", o->name,
				    HYDNSD_LIST_MAX);
		if (set_text(&l->item[l->count], value, error))
			return -1;
		l->count++;
		return 0;
	case NUMBER:
		return set_number(o, field(o, values), value, error);
	case CHOICE:
		return set_choice(o, field(o, values), value, error);
	case SWITCH:
		*(uint32_t *)field(o, values) = 1;
		return 0;
	}
	return -1;
}

/* The first value of a list in the file, or on the command line, replaces the list of the source before. */
static void begin_list(const struct option *o, struct hydnsd_options *values, uint64_t *seen)
{
	uint64_t bit = 1ULL << (o - options);

	if (o->type == LIST && !(*seen & bit))
		list_clear(field(o, values));
	*seen |= bit;
}

static int set_defaults(struct hydnsd_options *values, char *error)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (options[i].standard && set(&options[i], values, options[i].standard, error))
			return -1;
	return 0;
}

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

static int read_line(char *line, struct hydnsd_options *values, uint64_t *seen, char *error)
{
	char *key, *value, *colon, *comment = strchr(line, '#');
	const struct option *o;
	uint64_t bit;

	if (comment)
		*comment = '\0';
	key = trim(line);
	if (!*key)
		return 0;
	colon = strchr(key, ':');
	if (!colon)
		return fail(error, "'%.80s' has no colon: write `option: value'", key);
	*colon = '\0';
	value = trim(colon + 1);
	key = trim(key);
	o = find(key, strlen(key));
	if (!o || o->command_line_only)
		return fail(error, "unknown option '%.80s': see hydnsd --help", key);
	bit = 1ULL << (o - options);
	if (o->type != LIST && (*seen & bit))
		return fail(error, "%s stands there twice: remove one", o->name);
	begin_list(o, values, seen);
	return set(o, values, value, error);
}

static int read_lines(FILE *in, const char *path, struct hydnsd_options *values, char *error)
{
	char *line = NULL, inner[HYDNSD_OPTION_ERROR];
	size_t room = 0;
	ssize_t len;
	unsigned number = 0;
	uint64_t seen = 0;
	int rc = 0;

	while (!rc && (len = getline(&line, &room, in)) > 0) {
		number++;
		if (line[len - 1] != '\n')
			rc = fail(inner, "the line has no end: the file seems truncated; end it with a newline");
		else if (memchr(line, '\0', (size_t)len))
			rc = fail(inner, "a NUL octet: this is not a text file");
		else
			rc = read_line(line, values, &seen, inner);
	}
	if (!rc && ferror(in)) {
		number++;
		rc = fail(inner, "cannot read: %s", strerror(errno));
	}
	if (rc)
		fail(error, "%.200s line %u: %.280s", path, number, inner);
	free(line);
	return rc;
}

static int read_file(const char *path, bool optional, struct hydnsd_options *values, char *error)
{
	FILE *in = fopen(path, "re");
	int rc;

	if (!in && errno == ENOENT && optional)
		return 0;
	if (!in)
		return fail(error, "cannot open config file %s: %s", path, strerror(errno));
	rc = read_lines(in, path, values, error);
	fclose(in);
	return rc;
}

/* Splits argument *i into option and value; leaves *i at the last argument that it used. */
static int take_argument(int argc, char *const *argv, int *i, const struct option **o,
			 const char **value, char *error)
{
	const char *text = argv[*i], *equals;
	size_t len;

	*value = "yes";
	*o = find_letter(text);
	if (*o)
		return 0;              /* a switch */
	if (strncmp(text, "--", 2) != 0)
		return fail(error, "'%.80s' is no option: see hydnsd --help", text);
	text += 2;
	equals = strchr(text, '=');
	len = equals ? (size_t)(equals - text) : strlen(text);
	*o = find(text, len);
	if (!*o)
		return fail(error, "unknown option '--%.80s': see hydnsd --help", text);
	if (equals)
		*value = equals + 1;
	if ((*o)->type == SWITCH)
		return equals ? fail(error, "--%s takes no value", (*o)->name) : 0;
	if (equals)
		return 0;
	if ((*o)->choices == yes_no && (*i + 1 == argc || strncmp(argv[*i + 1], "--", 2) == 0))
		return 0;      /* a bare --keep-on-exit means yes */
	if (*i + 1 == argc)
		return fail(error, "--%s: no value: write one after it", (*o)->name);
	*value = argv[++*i];
	return 0;
}

static int read_arguments(int argc, char *const *argv, struct hydnsd_options *values, char *error)
{
	uint64_t seen = 0;

	for (int i = 1; i < argc; i++) {
		const struct option *o = NULL;
		const char *value = NULL;

		if (take_argument(argc, argv, &i, &o, &value, error))
			return -1;
		begin_list(o, values, &seen);
		if (set(o, values, value, error))
			return -1;
	}
	return 0;
}

static bool names_config(int argc, char *const *argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--config") == 0 || strncmp(argv[i], "--config=", 9) == 0)
			return true;
	return false;
}

static int read_all(int argc, char *const *argv, struct hydnsd_options *values, char *error)
{
	/* The command line is read twice: first for --config, --help and the like; last to prevail. */
	if (set_defaults(values, error) || read_arguments(argc, argv, values, error))
		return -1;
	if (values->help || values->version || values->print_options)
		return 0;
	if (read_file(values->config, !names_config(argc, argv), values, error))
		return -1;
	return read_arguments(argc, argv, values, error);
}

int hydnsd_options_read(int argc, char *const *argv, struct hydnsd_options *out,
			char error[HYDNSD_OPTION_ERROR])
{
	struct hydnsd_options values = { 0 };

	if (read_all(argc, argv, &values, error)) {
		hydnsd_options_free(&values);
		return -1;
	}
	*out = values;
	return 0;
}

void hydnsd_options_free(struct hydnsd_options *o)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		if (options[i].type == LIST)
			list_clear(field(&options[i], o));
		else if (options[i].type == TEXT)
			free(*(char **)field(&options[i], o));
	}
	memset(o, 0, sizeof(*o));
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same(const struct option *o, struct hydnsd_options *a, struct hydnsd_options *b)
{
	struct hydnsd_list *x = field(o, a), *y = field(o, b);

	if (o->type == TEXT)
		return same_text(*(char **)field(o, a), *(char **)field(o, b));
	if (o->type != LIST)
		return *(uint32_t *)field(o, a) == *(uint32_t *)field(o, b);
	if (x->count != y->count)
		return false;
	for (uint32_t i = 0; i < x->count; i++)
		if (!same_text(x->item[i], y->item[i]))
			return false;
	return true;
}

static void swap(const struct option *o, struct hydnsd_options *a, struct hydnsd_options *b)
{
	size_t size = o->type == LIST ? sizeof(struct hydnsd_list) :
		      o->type == TEXT ? sizeof(char *) : sizeof(uint32_t);
	char hold[sizeof(struct hydnsd_list)];

	memcpy(hold, field(o, a), size);
	memcpy(field(o, a), field(o, b), size);
	memcpy(field(o, b), hold, size);
}

static void add_name(char *list, size_t room, const char *name)
{
	size_t used = strlen(list);

	snprintf(list + used, room - used, "%s%s", used ? " " : "", name);
}

void hydnsd_options_apply(struct hydnsd_options *current, struct hydnsd_options *fresh,
			  char *changed, char *needs_restart, size_t room)
{
	changed[0] = needs_restart[0] = '\0';
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option *o = &options[i];

		if (same(o, current, fresh))
			continue;
		add_name(o->live ? changed : needs_restart, room, o->name);
		if (o->live)
			swap(o, current, fresh);
	}
}

void hydnsd_options_help(FILE *out)
{
	char type[128];

	fprintf(out, "usage: hydnsd [--option value]...\n\n"
		"Answers DNS queries in the kernel with what the resolvers on this host have offered.\n"
		"Every option may stand in the config file as `option: value'.\n\n");
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option *o = &options[i];

		if (o->hidden)
			continue;
		type_text(o, type, sizeof(type));
		if (o->letter)
			fprintf(out, "  -%c, --%-13s %s", o->letter, o->name, o->help);
		else
			fprintf(out, "  --%-17s %s", o->name, o->help);
		if (o->type != SWITCH)
			fprintf(out, " (%s%s%s)", type, o->standard ? "; default " : "",
				o->standard ? o->standard : "");
		fputc('\n', out);
	}
}

void hydnsd_options_print(FILE *out)
{
	char type[128];

	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option *o = &options[i];

		if (o->hidden)
			continue;
		type_text(o, type, sizeof(type));
		fprintf(out, "%s\t%s\t%s\n", o->name, type, o->standard ? o->standard : "");
	}
}
