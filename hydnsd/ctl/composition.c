/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Of what the program consists, in status; reload, which may change it. */
#include "config.h"

#include <stdio.h>

#include "hydnsd/ctl/common.h"

static bool is_in(const json_t *o, const char *field)
{
	return json_is_true(json_object_get(o, field));
}

/* "-": there is none. */
static const char *nanoseconds(const json_t *object, const char *field, char text[CTL_TEXT])
{
	const json_t *ns = json_object_get(object, field);

	if (!json_is_number(ns))
		return "-";
	snprintf(text, CTL_TEXT, "%.0f", json_number_value(ns) + 0.0);
	return text;
}

static void print_cost(struct ctl_table *t, const json_t *part)
{
	const bool measured = json_object_get(part, FIELD(part, instructions));
	char text[CTL_TEXT];

	ctl_cell(t, measured ? ctl_count(ctl_int(part, FIELD(part, instructions)), text) : "-");
	ctl_cell(t, nanoseconds(part, FIELD(part, answered_ns), text));
	ctl_cell(t, nanoseconds(part, FIELD(part, no_rule_ns), text));
}

/* costs: with what each part adds. */
static void print_parts(const json_t *list, bool costs)
{
	static const char *const titles[] = {"PART", "", "INSTRUCTIONS", "NS ANSWERED", "NS NO RULE", ""};
	struct ctl_table *t = ctl_table_new(costs ? "llrrrl" : "lll");
	const json_t *p;
	size_t n;

	if (costs)
		ctl_titles(t, titles);
	json_array_foreach(list, n, p) {
		bool in = is_in(p, FIELD(part, in));

		ctl_cell(t, ctl_str(p, FIELD(part, part)));
		ctl_cell(t, in == is_in(p, FIELD(part, wanted)) ? in ? "in" : "-" : in ? "leaves" : "comes");
		if (costs)
			print_cost(t, p);
		ctl_cell(t, ctl_str(p, FIELD(part, why)));
	}
	ctl_table_print(t, 2);
}

static void print_programs(const json_t *list)
{
	static const char *const titles[] = {"PROGRAM", "INSTRUCTIONS", "VERIFIED", "OCTETS", "RUNS", "NS", ""};
	struct ctl_table *t = ctl_table_new("lrrrrrl");
	char text[CTL_TEXT];
	const json_t *p;
	size_t n;

	ctl_titles(t, titles);
	json_array_foreach(list, n, p) {
		if (!is_in(p, FIELD(program, in)))
			continue;
		ctl_cell(t, ctl_str(p, FIELD(program, program)));
		ctl_cell(t, ctl_count(ctl_int(p, FIELD(program, instructions)), text));
		ctl_cell(t, ctl_count(ctl_int(p, FIELD(program, verified)), text));
		ctl_cell(t, ctl_count(ctl_int(p, FIELD(program, octets)), text));
		ctl_cell(t, json_is_integer(json_object_get(p, FIELD(program, runs))) ?
			 ctl_count(ctl_int(p, FIELD(program, runs)), text) : "-");
		ctl_cell(t, nanoseconds(p, FIELD(program, ns), text));
		ctl_cell(t, ctl_str(p, FIELD(program, text)));
	}
	ctl_table_print(t, 2);
}

static void print_whole(const json_t *c)
{
	char answered[CTL_TEXT], no_rule[CTL_TEXT], noise[2][CTL_TEXT];

	printf("  all of it: %s ns for a query that a rule answers, %s for one without; equal copies differed by %s and %s\n",
	       nanoseconds(c, FIELD(composition, answered_ns), answered), nanoseconds(c, FIELD(composition, no_rule_ns), no_rule),
	       nanoseconds(c, FIELD(composition, answered_noise_ns), noise[0]), nanoseconds(c, FIELD(composition, no_rule_noise_ns), noise[1]));
}

void ctl_print_composition(const json_t *c)
{
	const bool costs = json_object_get(c, FIELD(composition, answered_ns));
	const char *fault = ctl_str(c, FIELD(composition, fault));
	char text[CTL_TEXT];

	printf("program      exchanged %s times%s\n", ctl_count(ctl_int(c, FIELD(composition, exchanges)), text),
	       is_in(c, FIELD(composition, settled)) ? "" : "; another one is being loaded");
	if (fault[0])
		printf("  NOT AS IT IS TO BE: %s\n", fault);
	if (costs)
		print_whole(c);
	print_parts(json_object_get(c, FIELD(composition, parts)), costs);
	print_programs(json_object_get(c, FIELD(composition, programs)));
}

/* -- reload ----------------------------------------------------------------------------------------------- */
static void print_names(const char *text, const json_t *names)
{
	const json_t *name;
	size_t n;

	if (!json_array_size(names))
		return;
	printf("%s", text);
	json_array_foreach(names, n, name)
		printf("%s%s", n ? ", " : " ", json_string_value(name));
	putchar('\n');
}

static void print_reload(const json_t *r)
{
	const char *fault = ctl_str(r, FIELD(reload, fault));

	puts(json_array_size(json_object_get(r, FIELD(reload, changed))) ? "configuration read; in force:" :
	     "configuration read; nothing has changed that holds without a restart");
	print_names(" ", json_object_get(r, FIELD(reload, changed)));
	print_names("in force only after a restart of hydnsd:", json_object_get(r, FIELD(reload, restart)));
	if (fault[0])
		printf("the former program goes on: %s\n", fault);
}

int ctl_cmd_reload(const struct ctl *c, int argc, char **argv)
{
	(void)argc, (void)argv;
	return ctl_show_reply(c, json_pack("{s:s}", "cmd", "reload"), print_reload);
}
