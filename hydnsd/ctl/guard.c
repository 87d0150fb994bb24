/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* guard: limits, client networks, guarded suffixes; and what stats and watch print of the guard. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/ctl/common.h"

const char *ctl_guard_text(const json_t *guard, char text[CTL_GUARD_TEXT])
{
	const json_t *counts = json_object_get(guard, FIELD(guard_counts, counts));
	const char *mode = ctl_str(guard, FIELD(guard_counts, mode));
	char suffixes[CTL_TEXT], clients[CTL_TEXT], names[CTL_TEXT];

	if (!strcmp(mode, "off") || !*mode)
		return "";
	snprintf(text, CTL_GUARD_TEXT, "%s   %s suffixes   queries above: %s of clients, %s of suffixes%s", mode,
		 ctl_count(ctl_int(guard, FIELD(guard_counts, suffixes)), suffixes), ctl_count(ctl_int(counts, "clients_over"), clients),
		 ctl_count(ctl_int(counts, "suffix_over"), names), strcmp(mode, "count") ? "" : ", all let through");
	return text;
}

void ctl_print_guard(const json_t *guard)
{
	char text[CTL_GUARD_TEXT];
	const char *said = ctl_guard_text(guard, text);

	if (!*said)
		return;
	printf("guard: %s\n", said);
	ctl_print_numbers("  queries and suffixes", json_object_get(guard, FIELD(guard_counts, counts)));
}

/* -- guard -------------------------------------------------------------------------------------------------- */
static void print_limits(const json_t *g)
{
	char a[CTL_TEXT], b[CTL_TEXT];

	printf("guard: %s\n", ctl_str(g, FIELD(guard_counts, mode)));
	if (ctl_int(g, FIELD(guard, client_queries)))
		printf("  clients    %s queries a second of a /%d (IPv6: /%d), above: %s; valid cookies %s\n",
		       ctl_count(ctl_int(g, FIELD(guard, client_queries)), a), (int)ctl_int(g, FIELD(guard, ipv4_prefix)),
		       (int)ctl_int(g, FIELD(guard, ipv6_prefix)), ctl_str(g, FIELD(guard, client_action)),
		       json_is_true(json_object_get(g, FIELD(guard, cookies_exempt))) ? "are exempt" : "count");
	else
		puts("  clients    no limit");
	if (json_is_true(json_object_get(g, FIELD(guard, automatic))))
		printf("  suffixes   guarded for %s with %d failures a second, or %d resolutions that wait\n",
		       ctl_duration(ctl_int(g, FIELD(guard, suffix_life_s)) * 1000, a), (int)ctl_int(g, FIELD(guard, suffix_failures)),
		       (int)ctl_int(g, FIELD(guard, suffix_waiting)));
	else
		puts("  suffixes   by hand alone");
	printf("             %s queries a second go on, above: %s\n", ctl_count(ctl_int(g, FIELD(guard, suffix_queries)), b),
	       ctl_str(g, FIELD(guard, suffix_action)));
}

static void print_clients(const json_t *g)
{
	static const char *const head[] = { "NETWORK", "QUERIES/S" };
	const json_t *c, *list = json_object_get(g, FIELD(guard, clients));
	struct ctl_table *t = ctl_table_new("lr");
	char a[CTL_TEXT];
	size_t i;

	printf("%s networks above their limit\n", ctl_count(ctl_int(g, FIELD(guard, clients_over)), a));
	if (json_array_size(list))
		ctl_titles(t, head);
	json_array_foreach(list, i, c) {
		ctl_cell(t, ctl_str(c, FIELD(guarded_network, network)));
		ctl_cell(t, ctl_count(ctl_int(c, FIELD(guarded_network, queries)), a));
	}
	ctl_table_print(t, 2);
}

static void suffix_cells(struct ctl_table *t, const json_t *s)
{
	char a[CTL_TEXT], why[2 * CTL_TEXT];

	ctl_cell(t, ctl_str(s, FIELD(guarded_suffix, suffix)));
	ctl_cell(t, ctl_str(s, FIELD(guarded_suffix, identity)));
	snprintf(why, sizeof(why), "%.16s %s", ctl_str(s, FIELD(guarded_suffix, why)),
			 ctl_count(ctl_int(s, FIELD(guarded_suffix, figure)), a));
	ctl_cell(t, strcmp(ctl_str(s, FIELD(guarded_suffix, why)), "ordered") ? why : "ordered");
	ctl_cell(t, ctl_duration(ctl_int(s, FIELD(guarded_suffix, age_ms)), a));
	ctl_cell(t, ctl_duration(ctl_int(s, FIELD(guarded_suffix, ends_in_ms)), a));
	ctl_cell(t, ctl_count(ctl_int(s, FIELD(guarded_suffix, queries)), a));
	ctl_cell(t, ctl_str(s, FIELD(guarded_suffix, action)));
	ctl_cell(t, ctl_count(ctl_int(s, FIELD(guarded_suffix, within)), a));
	ctl_cell(t, ctl_count(ctl_int(s, FIELD(guarded_suffix, over)), a));
}

static void print_guard(const json_t *g)
{
	static const char *const head[] = { "SUFFIX", "RESOLVER", "WHY", "SINCE", "ENDS IN", "LIMIT", "ACTION", "WITHIN", "ABOVE" };
	const json_t *s, *list = json_object_get(g, FIELD(guard, guarded));
	struct ctl_table *t = ctl_table_new("lllrrrlrr");
	size_t i;

	print_limits(g);
	print_clients(g);
	if (json_array_size(list))
		ctl_titles(t, head);
	else
		puts("no suffix is guarded");
	json_array_foreach(list, i, s)
		suffix_cells(t, s);
	ctl_table_print(t, 0);
}

static void print_changed(const json_t *g)
{
	char a[CTL_TEXT];

	printf("%s suffixes changed\n", ctl_count(ctl_int(g, FIELD(guard, changed)), a));
	print_guard(g);
}

/* False: the text is no number, and the error is printed. */
static bool add_number(json_t *request, const char *argument, const char *option, const char *text)
{
	char *end;
	long n;

	if (!text)
		return true;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 0) {
		ctl_error("%s takes a number, not '%s'", option, text);
		return false;
	}
	json_object_set_new(request, argument, json_integer(n));
	return true;
}

/* False: the name is none, and the error is printed. */
static bool add_suffix(json_t *request, const char *argument, const char *text)
{
	char why[CTL_WHY], *name = ctl_name(text, why);

	if (name)
		json_object_set_new(request, argument, json_string(name));
	else
		ctl_error("%s", why);
	free(name);
	return name != NULL;
}

/* NULL: the error is printed. */
static json_t *guard_request(const struct ctl *c, int argc, char **argv)
{
	bool set = argc && !strcmp(argv[0], "set"), lift = argc && !strcmp(argv[0], "lift");
	json_t *request = json_pack("{s:s}", "cmd", "guard");
	bool good = argc ? (set && argc == 2 && !c->all) || (lift && (argc == 2) != c->all && !c->queries && !c->action && !c->life) :
			   !c->all && !c->resolver && !c->queries && !c->action && !c->life;

	if (!good)
		ctl_error("guard takes nothing, set SUFFIX with its options, lift SUFFIX, or lift --all: try 'hydnsctl guard --help'");
	good = good && add_number(request, ARGUMENT(guard, resolver), "--resolver", c->resolver) &&
	       add_number(request, ARGUMENT(guard, queries), "--queries", c->queries) &&
	       add_number(request, ARGUMENT(guard, seconds), "--for", c->life) &&
	       (argc < 2 || add_suffix(request, set ? ARGUMENT(guard, set) : ARGUMENT(guard, lift), argv[1]));
	if (good && c->all)
		json_object_set_new(request, ARGUMENT(guard, all), json_true());
	if (good && c->action)
		json_object_set_new(request, ARGUMENT(guard, action), json_string(c->action));
	if (good && c->limit)
		json_object_set_new(request, ARGUMENT(guard, limit), json_integer(c->limit));
	if (good)
		return request;
	json_decref(request);
	return NULL;
}

int ctl_cmd_guard(const struct ctl *c, int argc, char **argv)
{
	json_t *request = guard_request(c, argc, argv);

	return request ? ctl_show_reply(c, request, argc ? print_changed : print_guard) : CTL_USAGE;
}
