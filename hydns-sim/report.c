/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/report.h"

void report_head(FILE *out, const struct sim_trace *t, const char *source)
{
	fprintf(out, "%s: %zu requests for %u questions in %.0f s\n\n", source, t->count, t->ids,
		sim_trace_seconds(t));
	fprintf(out, "%9s  %-15s %9s %12s %12s %10s %12s\n", "capacity", "policy", "hit rate", "installs/s",
		"worst s", "rules", "policy KiB");
}

void report_line(FILE *out, const struct run_result *r)
{
	fprintf(out, "%9u  %-15s %8.2f%% %12.1f %12ju %10u ", r->capacity, r->kind->title, 100 * run_hit_rate(r),
		r->installs_s, (uintmax_t)r->installs_most_s, r->rules_most);
	if (r->stats.bytes)
		fprintf(out, "%12zu\n", r->stats.bytes / 1024);
	else
		fprintf(out, "%12s\n", "-");
	if (r->marked_ms >= 0)
		fprintf(out, "%9s  flash crowd: in the kernel %.1f ms after its first answer\n", "", r->marked_ms);
	fflush(out);
}

static json_t *json_intervals(const struct run_result *r)
{
	json_t *list = json_array();
	double at = 0;

	for (int i = 0; i < RUN_INTERVALS && r->interval[i].requests; i++) {
		const struct run_interval *v = &r->interval[i];

		at += v->seconds;
		json_array_append_new(list, json_pack("{s:f, s:f, s:I, s:I, s:I}", "until_s", at,
						      "seconds", v->seconds,
						      "requests", (json_int_t)v->requests,
						      "hits", (json_int_t)v->hits,
						      "installs", (json_int_t)v->installs));
	}
	return list;
}

json_t *report_json_run(const struct run_result *r, bool intervals)
{
	json_t *j = json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I}",
			      "policy", r->kind->name, "title", r->kind->title, "online", r->kind->online,
			      "capacity", (json_int_t)r->capacity,
			      "requests", (json_int_t)r->requests, "hits", (json_int_t)r->hits,
			      "hit_rate", run_hit_rate(r), "installs_per_second", r->installs_s,
			      "installs_worst_second", (json_int_t)r->installs_most_s,
			      "rules_most", (json_int_t)r->rules_most,
			      "evictions", (json_int_t)r->stats.evictions, "offers", (json_int_t)r->stats.offers,
			      "lookups", (json_int_t)r->lookups, "policy_bytes", (json_int_t)r->stats.bytes);

	if (j && r->marked_ms >= 0)
		json_object_set_new(j, "flash_crowd_ms", json_real(r->marked_ms));
	if (j && intervals)
		json_object_set_new(j, "intervals", json_intervals(r));
	return j;
}

json_t *report_json_trace(const struct sim_trace *t, const char *source)
{
	return json_pack("{s:s, s:I, s:I, s:f}", "source", source, "requests", (json_int_t)t->count,
			 "questions", (json_int_t)t->ids, "seconds", sim_trace_seconds(t));
}
