/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Of what the program consists, in status; reload, which may change it. */
#include "config.h"

#include <stdio.h>

#include "hydnsd/ctl/common.h"

static bool is_in(const json_t *o, const char *field)
{
	return json_is_true(json_object_get(o, field));
}

static void print_parts(const json_t *list)
{
	struct ctl_table *t = ctl_table_new("lll");
	const json_t *p;
	size_t n;

	json_array_foreach(list, n, p) {
		bool in = is_in(p, FIELD(part, in));

		ctl_cell(t, ctl_str(p, FIELD(part, part)));
		ctl_cell(t, in == is_in(p, FIELD(part, wanted)) ? in ? "in" : "-" : in ? "leaves" : "comes");
		ctl_cell(t, ctl_str(p, FIELD(part, why)));
	}
	ctl_table_print(t, 2);
}

static void print_programs(const json_t *list)
{
	static const char *const titles[] = {"PROGRAM", "INSTRUCTIONS", "VERIFIED", "OCTETS", "RUNS", "NS", ""};
	struct ctl_table *t = ctl_table_new("lrrrrrl");
	char text[CTL_TEXT];
	const json_t *p, *ns;
	size_t n;

	ctl_titles(t, titles);
	json_array_foreach(list, n, p) {
		if (!is_in(p, FIELD(program, in)))
			continue;
		ns = json_object_get(p, FIELD(program, ns));
		ctl_cell(t, ctl_str(p, FIELD(program, program)));
		ctl_cell(t, ctl_count(ctl_int(p, FIELD(program, instructions)), text));
		ctl_cell(t, ctl_count(ctl_int(p, FIELD(program, verified)), text));
		ctl_cell(t, ctl_count(ctl_int(p, FIELD(program, octets)), text));
		ctl_cell(t, json_is_integer(json_object_get(p, FIELD(program, runs))) ?
			 ctl_count(ctl_int(p, FIELD(program, runs)), text) : "-");
		if (json_is_number(ns))
			snprintf(text, sizeof(text), "%.0f", json_number_value(ns));
		ctl_cell(t, json_is_number(ns) ? text : "-");
		ctl_cell(t, ctl_str(p, FIELD(program, text)));
	}
	ctl_table_print(t, 2);
}

void ctl_print_composition(const json_t *c)
{
	const char *fault = ctl_str(c, FIELD(composition, fault));
	char text[CTL_TEXT];

	printf("program      exchanged %s times%s\n", ctl_count(ctl_int(c, FIELD(composition, exchanges)), text),
	       is_in(c, FIELD(composition, settled)) ? "" : "; another one is being loaded");
	if (fault[0])
		printf("  NOT AS IT IS TO BE: %s\n", fault);
	print_parts(json_object_get(c, FIELD(composition, parts)));
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
