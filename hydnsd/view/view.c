/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/reasons.h"
#include "hydnsd/ctl/common.h"
#include "hydnsd/doctor/doctor.h"

#define PENDING_SHOWN 20

static const char *const commands[VIEW_REPLIES] = { "status", "stats", "top", "pending" };

const char *view_requests(unsigned names)
{
	static char text[256];

	snprintf(text, sizeof(text), "{\"cmd\":\"%s\"}\n{\"cmd\":\"%s\",\"%s\":true}\n{\"cmd\":\"%s\",\"%s\":%u}\n{\"cmd\":\"%s\",\"%s\":%u}\n",
		 commands[VIEW_STATUS], commands[VIEW_STATS], ARGUMENT(stats, swept), commands[VIEW_TOP], ARGUMENT(top, limit), names, commands[VIEW_PENDING],
		 ARGUMENT(pending, limit), PENDING_SHOWN);
	return text;
}

/* -- why queries pass ---------------------------------------------------------------------------------------- */
/* Of "passed: no rule for this question" what follows the colon. */
static const char *words_of(const char *name)
{
	for (unsigned i = 0; i < HYDNS_REASONS; i++) {
		const char *text = hydns_reason_text((enum hydns_reason)i), *colon = strstr(text, ": ");

		if (!strcmp(name, hydns_reason_name((enum hydns_reason)i)))
			return colon ? colon + 2 : text;
	}
	return "";
}

static int most_first(const void *a, const void *b)
{
	json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "queries"));
	json_int_t y = json_integer_value(json_object_get(*(json_t *const *)b, "queries"));

	return x < y ? 1 : x > y ? -1 : 0;
}

static json_t *passing(const json_t *top)
{
	json_t *reason[HYDNS_REASONS], *list = json_array();
	const char *name;
	const json_t *n;
	size_t count = 0;

	json_object_foreach((json_t *)json_object_get(top, FIELD(top, reasons)), name, n)
		if (count < HYDNS_REASONS && json_is_integer(n))
			reason[count++] = json_pack("{s:s, s:s, s:I}", "reason", name, "text", words_of(name), "queries",
						    json_integer_value(n));
	qsort(reason, count, sizeof(*reason), most_first);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, reason[i]);
	return list;
}

/* -- rates and ages ------------------------------------------------------------------------------------------ */
static json_t *per_second(const json_t *top, const char *field)
{
	double seconds = ctl_real(top, FIELD(top, window_ms)) / 1000;

	return seconds > 0 ? json_real(ctl_real(top, field) / seconds) : json_null();
}

static void add_ages(const json_t *top)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(top, FIELD(top, names)), i, row) {
		double age = 1000 * ctl_real(row, FIELD(rule, ttl)) - ctl_real(row, FIELD(rule, expires_in_ms));

		if (json_object_get(row, FIELD(rule, ttl)))
			json_object_set_new(row, VIEW_AGE, json_real(age > 0 ? age : 0));
	}
}

/* -- all ------------------------------------------------------------------------------------------------------- */
json_t *view_of(json_t *const reply[VIEW_REPLIES], const char *why)
{
	const json_t *top = reply[VIEW_TOP];
	json_t *view = json_pack("{s:b, s:s, s:o, s:o, s:o, s:o}", VIEW_UP, top != NULL, VIEW_WHY_NOT, top ? "" : why,
		VIEW_ANSWERED, per_second(top, FIELD(top, answered)), VIEW_PASSED, per_second(top, FIELD(top, passed)),
		VIEW_PASSING, passing(top), VIEW_HEALTH, doctor_reported(reply[VIEW_STATUS], reply[VIEW_STATS], why));

	add_ages(top);
	for (unsigned i = 0; i < VIEW_REPLIES; i++) {
		json_object_del(reply[i], "ok");
		json_object_set_new(view, commands[i], reply[i] ? reply[i] : json_null());
	}
	return view;
}
