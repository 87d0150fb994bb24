/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What stats and watch print of the monitor. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "hydnsd/ctl/common.h"

const char *ctl_monitor_text(const json_t *m, char text[CTL_MONITOR_TEXT])
{
	char clients[CTL_TEXT], names[CTL_TEXT];
	const json_t *c;
	size_t i, used;

	if (!json_is_true(json_object_get(m, FIELD(monitor, on))))
		return "";
	if (!json_is_true(json_object_get(m, FIELD(monitor, counted)))) {
		snprintf(text, CTL_MONITOR_TEXT, "the monitor has not counted for %" JSON_INTEGER_FORMAT " s yet",
			 ctl_int(m, FIELD(monitor, window_s)));
		return text;
	}
	used = (size_t)snprintf(text, CTL_MONITOR_TEXT, "%s clients   %s names   in %" JSON_INTEGER_FORMAT " s",
				ctl_count(ctl_int(m, FIELD(monitor, clients)), clients),
				ctl_count(ctl_int(m, FIELD(monitor, names)), names), ctl_int(m, FIELD(monitor, window_s)));
	json_array_foreach(json_object_get(m, FIELD(monitor, conditions)), i, c)
		if (json_is_true(json_object_get(c, FIELD(monitor_condition, holds))) && used < CTL_MONITOR_TEXT)
			used += (size_t)snprintf(text + used, CTL_MONITOR_TEXT - used, "   %.32s: OUT OF THE ORDINARY",
						 ctl_str(c, FIELD(monitor_condition, condition)));
	return text;
}

static void print_windows(const json_t *list)
{
	static const char *const head[] = { "AGO", "QUERIES", "KERNEL", "CLIENTS", "NAMES" };
	struct ctl_table *t = ctl_table_new("rrrrr");
	char a[CTL_TEXT];
	const json_t *w;
	size_t i;

	ctl_titles(t, head);
	json_array_foreach(list, i, w) {
		ctl_cell(t, ctl_duration(ctl_int(w, FIELD(monitor_window, age_ms)), a));
		ctl_cell(t, ctl_count(ctl_int(w, FIELD(monitor_window, queries)), a));
		ctl_cell(t, ctl_share(ctl_real(w, FIELD(monitor_window, answered)), ctl_real(w, FIELD(monitor_window, queries)), a));
		ctl_cell(t, ctl_count(ctl_int(w, FIELD(monitor_window, clients)), a));
		ctl_cell(t, ctl_count(ctl_int(w, FIELD(monitor_window, names)), a));
	}
	ctl_table_print(t, 2);
}

static const char *number_text(double n, char text[CTL_TEXT])
{
	snprintf(text, CTL_TEXT, "%.0f", n);
	return text;
}

static void print_conditions(const json_t *list)
{
	static const char *const head[] = { "CONDITION", "HOLDS", "NOW", "BEFORE", "THRESHOLD", "" };
	struct ctl_table *t = ctl_table_new("llrrrl");
	char a[CTL_TEXT];
	const json_t *c;
	size_t i;

	ctl_titles(t, head);
	json_array_foreach(list, i, c) {
		bool off = json_is_true(json_object_get(c, FIELD(monitor_condition, off)));

		ctl_cell(t, ctl_str(c, FIELD(monitor_condition, condition)));
		ctl_cell(t, off ? "off" : json_is_true(json_object_get(c, FIELD(monitor_condition, holds))) ? "YES" : "no");
		ctl_cell(t, number_text(ctl_real(c, FIELD(monitor_condition, value)), a));
		ctl_cell(t, number_text(ctl_real(c, FIELD(monitor_condition, past)), a));
		ctl_cell(t, number_text(ctl_real(c, FIELD(monitor_condition, threshold)), a));
		ctl_cell(t, ctl_str(c, FIELD(monitor_condition, text)));
	}
	ctl_table_print(t, 2);
}

static void print_findings(const json_t *a)
{
	const json_t *f, *list = json_object_get(a, FIELD(monitor_analysis, findings));
	struct ctl_table *t;
	char least[CTL_TEXT], most[2 * CTL_TEXT];
	size_t i;

	if (!json_is_integer(json_object_get(a, FIELD(monitor_analysis, age_ms))))
		return;
	printf("  %s (%s ago%s): %s\n", ctl_str(a, FIELD(monitor_analysis, analyser)),
	       ctl_duration(ctl_int(a, FIELD(monitor_analysis, age_ms)), least),
	       json_is_true(json_object_get(a, FIELD(monitor_analysis, running))) ? ", running" : "", ctl_str(a, FIELD(monitor_analysis, text)));
	t = ctl_table_new("rl");
	json_array_foreach(list, i, f) {
		ctl_count(ctl_int(f, FIELD(monitor_finding, least)), most);
		if (ctl_int(f, FIELD(monitor_finding, least)) != ctl_int(f, FIELD(monitor_finding, most)))
			snprintf(most + strlen(most), sizeof(most) - strlen(most), " to %s",
				 ctl_count(ctl_int(f, FIELD(monitor_finding, most)), least));
		ctl_cell(t, most);
		ctl_cell(t, ctl_str(f, FIELD(monitor_finding, what)));
	}
	ctl_table_print(t, 4);
}

void ctl_print_monitor(const json_t *m)
{
	char text[CTL_MONITOR_TEXT];
	const json_t *a;
	size_t i;

	if (!json_is_true(json_object_get(m, FIELD(monitor, on))))
		return;
	printf("monitor: %s\n", ctl_monitor_text(m, text));
	print_windows(json_object_get(m, FIELD(monitor, windows)));
	print_conditions(json_object_get(m, FIELD(monitor, conditions)));
	json_array_foreach(json_object_get(m, FIELD(monitor, analyses)), i, a)
		print_findings(a);
	ctl_print_numbers("  runs of monitor-hook", json_object_get(m, FIELD(monitor, hook)));
}
