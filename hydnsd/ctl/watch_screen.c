/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/ctl/watch_screen.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hydnsd/ctl/common.h"
#include "hydnsd/view/view.h"

#define REASONS_SHOWN 5
#define PENDING_SHOWN 3

static const json_t *list_of(const json_t *view, const char *command, const char *field)
{
	return json_object_get(json_object_get(view, command), field);
}

/* -- rates ------------------------------------------------------------------------------------------------------ */
static double all_queries(const json_t *view)
{
	return ctl_real(view, VIEW_ANSWERED) + ctl_real(view, VIEW_PASSED);
}

void watch_remember(struct watch_history *h, const json_t *view)
{
	if (!json_is_number(json_object_get(view, VIEW_ANSWERED)))
		return;
	if (h->count == WATCH_HISTORY)
		memmove(h->rate, h->rate + 1, sizeof(*h->rate) * --h->count);
	h->rate[h->count++] = all_queries(view);
}

static void add_history(struct screen *s, const struct watch_history *h, size_t columns)
{
	static const char *const block[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	size_t first = h->count > columns ? h->count - columns : 0;
	char text[WATCH_HISTORY * 4] = "";
	double most = 0;

	for (size_t i = first; i < h->count; i++)
		most = h->rate[i] > most ? h->rate[i] : most;
	for (size_t i = first; i < h->count; i++)
		strcat(text, block[most > 0 ? (size_t)(h->rate[i] / most * 7) : 0]);
	if (h->count > 1)
		screen_add(s, SCREEN_GOOD, "%s", text);
}

static void add_rates(struct screen *s, const json_t *view, const struct watch_history *h, size_t columns, bool blocks)
{
	char all[CTL_TEXT], in[CTL_TEXT], out[CTL_TEXT], share[CTL_TEXT];
	double answered = ctl_real(view, VIEW_ANSWERED), passed = ctl_real(view, VIEW_PASSED);

	if (!json_is_number(json_object_get(view, VIEW_ANSWERED))) {
		screen_add(s, SCREEN_QUIET, "hydnsd has not counted for a second yet");
		return;
	}
	screen_add(s, SCREEN_STRONG, "%s queries   %s in the kernel   %s answered   %s passed", ctl_rate(answered + passed, all),
		   ctl_share(answered, answered + passed, share), ctl_rate(answered, in), ctl_rate(passed, out));
	if (h && blocks)
		add_history(s, h, columns);
}

static void add_sums(struct screen *s, const json_t *view)
{
	const json_t *status = json_object_get(view, "status"), *i, *r;
	size_t n, attached = 0, lanes = 0, interfaces = json_array_size(json_object_get(status, FIELD(status, interfaces)));
	char rules[CTL_TEXT], capacity[CTL_TEXT], waiting[CTL_TEXT], memory[CTL_TEXT];

	json_array_foreach(json_object_get(status, FIELD(status, interfaces)), n, i)
		attached += json_is_true(json_object_get(i, FIELD(interface, attached)));
	json_array_foreach(json_object_get(status, FIELD(status, resolvers)), n, r)
		lanes += json_array_size(json_object_get(r, FIELD(resolver, lanes)));
	screen_add(s, SCREEN_PLAIN, "%s of %s rules   %s pending   %zu ring lanes   %zu of %zu interfaces attached   %s of maps",
		   ctl_count(ctl_int(status, FIELD(status, rules)), rules), ctl_count(ctl_int(status, FIELD(status, capacity)), capacity),
		   ctl_count(ctl_int(json_object_get(view, "pending"), FIELD(pending, waiting)), waiting), lanes, attached, interfaces,
		   ctl_bytes(ctl_real(status, FIELD(status, memory_bytes)), memory));
}

/* Empty: it is off. */
static const char *monitor_text(const json_t *view, char text[CTL_MONITOR_TEXT])
{
	return ctl_monitor_text(json_object_get(json_object_get(view, "stats"), FIELD(stats, monitor)), text);
}

static void add_monitor(struct screen *s, const json_t *view)
{
	char text[CTL_MONITOR_TEXT];
	const char *said = monitor_text(view, text);

	if (*said)
		screen_add(s, SCREEN_PLAIN, "%s", said);
}

static const char *guard_text(const json_t *view, char text[CTL_GUARD_TEXT])
{
	return ctl_guard_text(json_object_get(json_object_get(view, "stats"), FIELD(stats, guard)), text);
}

static void add_guard(struct screen *s, const json_t *view)
{
	char text[CTL_GUARD_TEXT];
	const char *said = guard_text(view, text);

	if (*said)
		screen_add(s, SCREEN_PLAIN, "guard: %s", said);
}

/* -- health ------------------------------------------------------------------------------------------------------ */
static size_t count_state(const json_t *view, const char *state)
{
	const json_t *f;
	size_t n, count = 0;

	json_array_foreach(json_object_get(view, VIEW_HEALTH), n, f)
		count += !strcmp(ctl_str(f, "state"), state);
	return count;
}

static void add_findings(struct screen *s, const json_t *view, const char *state, enum screen_style style)
{
	const json_t *f;
	size_t n;

	json_array_foreach(json_object_get(view, VIEW_HEALTH), n, f) {
		if (strcmp(ctl_str(f, "state"), state))
			continue;
		screen_add(s, style, "%-4s  %s %s  %s", state, ctl_str(f, "check"), ctl_str(f, "subject"), ctl_str(f, "finding"));
		if (ctl_str(f, "mend")[0])
			screen_add(s, SCREEN_PLAIN, "      mend: %s", ctl_str(f, "mend"));
	}
}

static void add_health(struct screen *s, const json_t *view)
{
	add_findings(s, view, "fail", SCREEN_FAIL);
	add_findings(s, view, "warn", SCREEN_WARN);
	if (!count_state(view, "fail") && !count_state(view, "warn"))
		screen_add(s, SCREEN_GOOD, "ok    %zu findings in order, nothing to mend; the host itself: hydnsctl doctor",
			   json_array_size(json_object_get(view, VIEW_HEALTH)));
}

static void add_state(struct screen *s, const json_t *view, bool stays)
{
	const json_t *status = json_object_get(view, "status");
	bool paused = json_is_true(json_object_get(status, FIELD(status, paused)));
	char up[CTL_TEXT];

	if (!json_is_true(json_object_get(view, VIEW_UP)))
		screen_add(s, SCREEN_FAIL, "hydnsd does not answer: %s", ctl_str(view, VIEW_WHY_NOT));
	else if (paused)
		screen_add(s, SCREEN_WARN, "PAUSED: every query goes to the resolver ('hydnsctl resume' ends this)");
	else
		screen_add(s, SCREEN_QUIET, "hydnsd %s, up %s%s", ctl_str(status, FIELD(status, version)),
			   ctl_duration(1000 * ctl_int(status, FIELD(status, uptime_s)), up), stays ? "; q ends" : "");
}

/* -- tables ------------------------------------------------------------------------------------------------------- */
static struct ctl_table *table(const char *format, const char *const *title)
{
	struct ctl_table *t = ctl_table_new(format);

	for (; *title; title++)
		ctl_cell(t, *title);
	return t;
}

/* Adds the table, its titles quietly. */
static void add_table(struct screen *s, struct ctl_table *t)
{
	char *text = NULL, *end;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	ctl_table_write(t, out, 0);
	if (!fclose(out) && (end = strchr(text, '\n'))) {
		*end = 0;
		screen_add(s, SCREEN_PLAIN, "%s", "");
		screen_add(s, SCREEN_QUIET, "%s", text);
		screen_add_lines(s, SCREEN_PLAIN, end + 1);
	}
	free(text);
}

static void add_passing(struct screen *s, const json_t *view)
{
	static const char *const titles[] = { "RATE", "OF ALL", "WHY QUERIES PASS", NULL };
	const json_t *top = json_object_get(view, "top"), *r;
	double seconds = ctl_real(top, FIELD(top, window_ms)) / 1000;
	double all = ctl_real(top, FIELD(top, answered)) + ctl_real(top, FIELD(top, passed));
	struct ctl_table *t = table("rrl", titles);
	char a[CTL_TEXT], why[256];
	size_t n;

	json_array_foreach(json_object_get(view, VIEW_PASSING), n, r) {
		if (n == REASONS_SHOWN)
			break;
		ctl_cell(t, ctl_rate(seconds > 0 ? ctl_real(r, "queries") / seconds : 0, a));
		ctl_cell(t, ctl_share(ctl_real(r, "queries"), all, a));
		snprintf(why, sizeof(why), "%s (%s)", ctl_str(r, "text"), ctl_str(r, "reason"));
		ctl_cell(t, why);
	}
	add_table(s, t);
}

static void add_pending(struct screen *s, const json_t *view)
{
	static const char *const titles[] = { "WAITING", "FOR", "TYPE", "PENDING", "AT", NULL };
	const json_t *q, *list = list_of(view, "pending", FIELD(pending, questions));
	struct ctl_table *t;
	char a[CTL_TEXT];
	size_t n;

	if (!json_array_size(list))
		return;
	t = table("rrlll", titles);
	json_array_foreach(list, n, q) {
		if (n == PENDING_SHOWN)
			break;
		ctl_cell(t, ctl_count(ctl_int(q, FIELD(pending_question, waiting)), a));
		ctl_cell(t, ctl_duration(ctl_int(q, FIELD(pending_question, age_ms)), a));
		ctl_cell(t, ctl_str(q, FIELD(pending_question, type)));
		ctl_cell(t, ctl_str(q, FIELD(pending_question, name)));
		ctl_cell(t, ctl_str(q, FIELD(pending_question, identity)));
	}
	add_table(s, t);
}

static void add_resolvers(struct screen *s, const json_t *view)
{
	static const char *const titles[] = { "RULES", "PARKED", "LANES", "HEARTBEAT", "STATE", "RESOLVER", NULL };
	const json_t *r, *list = list_of(view, "status", FIELD(status, resolvers));
	struct ctl_table *t;
	char a[CTL_TEXT], title[256];
	size_t n;

	if (!json_array_size(list))
		return;
	t = table("rrrrll", titles);
	json_array_foreach(list, n, r) {
		bool beats = json_is_number(json_object_get(r, FIELD(resolver, heartbeat_age_ms)));

		ctl_cell(t, ctl_count(ctl_int(r, FIELD(resolver, rules)), a));
		ctl_cell(t, ctl_count(ctl_int(json_object_get(r, FIELD(resolver, parking)), FIELD(parking, waiting)), a));
		ctl_cell(t, ctl_count((json_int_t)json_array_size(json_object_get(r, FIELD(resolver, lanes))), a));
		ctl_cell(t, beats ? ctl_duration(ctl_int(r, FIELD(resolver, heartbeat_age_ms)), a) : "none");
		ctl_cell(t, ctl_str(r, FIELD(resolver, state)));
		snprintf(title, sizeof(title), "%s %s", ctl_str(r, FIELD(resolver, identity)), ctl_str(r, FIELD(resolver, version)));
		ctl_cell(t, title);
	}
	add_table(s, t);
}

static void add_names(struct screen *s, const json_t *view)
{
	static const char *const titles[] = { "RATE", "AGE", "TTL LEFT", "WHERE", "TYPE", "FOR", "HOTTEST NAMES", "WHY", NULL };
	const json_t *n, *list = list_of(view, "top", FIELD(top, names));
	struct ctl_table *t = table("rrrlllll", titles);
	char a[CTL_TEXT], type[16];
	size_t i;

	json_array_foreach(list, i, n) {
		bool rule = json_object_get(n, FIELD(rule, ttl));

		ctl_cell(t, ctl_rate(ctl_real(n, FIELD(question, rate)), a));
		ctl_cell(t, rule ? ctl_duration(ctl_int(n, VIEW_AGE), a) : "-");
		ctl_cell(t, rule ? ctl_duration(ctl_int(n, FIELD(rule, expires_in_ms)), a) : "-");
		ctl_cell(t, ctl_str(n, FIELD(listed, where)));
		ctl_cell(t, ctl_type_text(json_object_get(n, FIELD(question, type)), type));
		ctl_cell(t, ctl_variant_text(n));
		ctl_cell(t, ctl_str(n, FIELD(question, name)));
		ctl_cell(t, ctl_str(n, FIELD(listed, why)));
	}
	add_table(s, t);
}

/* -- the whole ------------------------------------------------------------------------------------------------------ */
struct screen *watch_screen(const json_t *view, const struct watch_history *h, size_t columns, bool blocks)
{
	struct screen *s = screen_new();
	bool up = json_is_true(json_object_get(view, VIEW_UP));

	add_state(s, view, h != NULL);
	if (up) {
		add_rates(s, view, h, columns < WATCH_HISTORY ? columns : WATCH_HISTORY, blocks);
		add_sums(s, view);
		add_monitor(s, view);
		add_guard(s, view);
	}
	screen_add(s, SCREEN_PLAIN, "%s", "");
	add_health(s, view);
	if (!up)
		return s;
	add_passing(s, view);
	add_resolvers(s, view);
	add_pending(s, view);
	add_names(s, view);
	return s;
}

void watch_line(const json_t *view, FILE *out)
{
	char at[32], in[CTL_TEXT], passed[CTL_TEXT], share[CTL_TEXT], text[CTL_MONITOR_TEXT], guarded[CTL_GUARD_TEXT];
	const char *monitor = monitor_text(view, text), *guard = guard_text(view, guarded);
	time_t now = time(NULL);
	struct screen *s = screen_new();

	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	if (!json_is_true(json_object_get(view, VIEW_UP)))
		screen_add(s, SCREEN_PLAIN, "%s  hydnsd does not answer: %s", at, ctl_str(view, VIEW_WHY_NOT));
	else
		screen_add(s, SCREEN_PLAIN, "%s  %s answered  %s passed  %s in the kernel  %" JSON_INTEGER_FORMAT " rules  %" JSON_INTEGER_FORMAT
			   " pending  %zu warn  %zu fail%s%s%s%s", at, ctl_rate(ctl_real(view, VIEW_ANSWERED), in),
			   ctl_rate(ctl_real(view, VIEW_PASSED), passed), ctl_share(ctl_real(view, VIEW_ANSWERED), all_queries(view), share),
			   ctl_int(json_object_get(view, "status"), FIELD(status, rules)),
			   ctl_int(json_object_get(view, "pending"), FIELD(pending, waiting)), count_state(view, "warn"), count_state(view, "fail"),
			   *monitor ? "  " : "", monitor, *guard ? "  guard: " : "", guard);
	screen_print(s, out, 0, 0, false);
	screen_free(s);
}
