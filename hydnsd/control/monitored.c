/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/control/monitored.h"

#include "hydnsd/daemon/clock.h"
#include "hydnsd/monitor/monitor.h"

/* The same in `monitor', where it is of the last window, and in each of `windows'. */
static void add_figures(json_t *o, const struct hydnsd_window *w)
{
	json_object_set_new(o, "queries", json_integer((json_int_t)w->queries));
	json_object_set_new(o, "answered", json_integer((json_int_t)w->answered));
	json_object_set_new(o, "clients", json_integer((json_int_t)(w->clients + 0.5)));
	json_object_set_new(o, "names", json_integer((json_int_t)(w->names + 0.5)));
}

static json_t *windows(const struct hydnsd *d)
{
	json_t *list = json_array();
	const struct hydnsd_window *w;

	for (uint32_t ago = 0; (w = hydnsd_monitor_window(d, ago)); ago++) {
		json_t *o = json_pack("{s:I, s:I}", "age_ms", (json_int_t)(hydnsd_now_ms() - w->ended_ms), "length_ms",
				      (json_int_t)w->length_ms);

		add_figures(o, w);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *conditions(const struct hydnsd *d)
{
	json_t *list = json_array();

	for (enum hydnsd_condition_id id = 0; id < HYDNSD_CONDITIONS; id++) {
		const struct hydnsd_condition *c = hydnsd_monitor_condition(d, id);

		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b, s:f, s:f, s:f}", "condition", hydnsd_condition_name(id),
			"text", hydnsd_condition_text(id), "off", (int)c->off, "holds", (int)c->holds, "value", c->value,
			"past", c->past, "threshold", hydnsd_condition_threshold(id, c)));
	}
	return list;
}

static json_t *findings(const struct hydnsd_findings *f)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < f->count; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "what", f->item[i].what, "least", (json_int_t)f->item[i].least,
						      "most", (json_int_t)f->item[i].most));
	return list;
}

static json_t *analyses(const struct hydnsd *d)
{
	json_t *list = json_array();

	for (enum hydns_analyser a = 0; a < HYDNS_ANALYSERS; a++) {
		const struct hydnsd_analysis *n = hydnsd_monitor_analysis(d, a);

		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:o, s:o}", "analyser", hydnsd_analyser_name(a), "text",
			hydnsd_analyser_text(a), "running", (int)n->running, "age_ms",
			n->ended_ms ? json_integer((json_int_t)(hydnsd_now_ms() - n->ended_ms)) : json_null(),
			"findings", findings(&n->findings)));
	}
	return list;
}

static json_t *hook(const struct hydnsd *d)
{
	struct hydnsd_hook_counts n;

	hydnsd_monitor_hook_counts(d, &n);
	return json_pack("{s:I, s:I, s:I, s:I}", "run", (json_int_t)n.run, "failed", (json_int_t)n.failed, "killed", (json_int_t)n.killed,
			 "left_out", (json_int_t)n.left_out);
}

json_t *hydnsd_monitored(struct hydnsd *d)
{
	const struct hydnsd_window none = { 0 }, *last = d->monitor ? hydnsd_monitor_window(d, 0) : NULL;
	json_t *o = json_pack("{s:b, s:i, s:b, s:o, s:o, s:o, s:o}", "on", d->monitor != NULL, "window_s", (int)d->options.monitor_window,
		"counted", last != NULL, "windows", d->monitor ? windows(d) : json_array(),
		"conditions", d->monitor ? conditions(d) : json_array(), "analyses", d->monitor ? analyses(d) : json_array(),
		"hook", hook(d));

	add_figures(o, last ? last : &none);
	return o;
}
