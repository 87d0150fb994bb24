/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* pending: the questions under way for which queries are parked; and what status and stats print of them. */
#include "config.h"

#include <stdio.h>

#include "hydns/parking.h"
#include "hydnsd/ctl/common.h"

void ctl_print_parking(const json_t *p)
{
	char waiting[CTL_TEXT], most[CTL_TEXT], each[CTL_TEXT], ms[CTL_TEXT];

	if (!ctl_int(p, FIELD(parking, most)) && !ctl_int(p, FIELD(parking, waiting)))
		return;
	printf("     %-10s %s of at most %s queries, %s a question, for at most %s\n", "parked",
	       ctl_count(ctl_int(p, FIELD(parking, waiting)), waiting), ctl_count(ctl_int(p, FIELD(parking, most)), most),
	       ctl_count(ctl_int(p, FIELD(parking, per_question)), each), ctl_duration(ctl_int(p, FIELD(parking, park_ms)), ms));
}

void ctl_print_parking_counts(const json_t *counts)
{
	const json_t *spilled = json_object_get(counts, FIELD(parking_counts, spilled));
	struct ctl_table *t = ctl_table_new("lrl");
	char a[CTL_TEXT];

	ctl_print_numbers("  parked queries", counts);
	puts("  queries that were not parked");
	for (unsigned i = 0; i < HYDNS_SPILLS; i++) {
		json_int_t n = ctl_int(spilled, hydns_spill_name((enum hydns_spill)i));

		if (!n)
			continue;
		ctl_cell(t, hydns_spill_name((enum hydns_spill)i));
		ctl_cell(t, ctl_count(n, a));
		ctl_cell(t, hydns_spill_text((enum hydns_spill)i));
	}
	ctl_table_print(t, 4);
}

static void print_row(struct ctl_table *t, const json_t *q)
{
	char a[CTL_TEXT], type[16];

	ctl_cell(t, ctl_count(ctl_int(q, FIELD(pending_question, waiting)), a));
	ctl_cell(t, ctl_duration(ctl_int(q, FIELD(pending_question, age_ms)), a));
	ctl_cell(t, ctl_type_text(json_object_get(q, FIELD(pending_question, type)), type));
	ctl_cell(t, ctl_variant_text(q));
	ctl_cell(t, ctl_str(q, FIELD(pending_question, name)));
	ctl_cell(t, ctl_str(q, FIELD(pending_question, identity)));
	ctl_cell(t, ctl_str(q, FIELD(pending_question, upstream)));
}

static void print_pending(const json_t *reply)
{
	static const char *const head[] = {"WAITING", "AGE", "TYPE", "FOR", "NAME", "RESOLVER", "UPSTREAM"};
	const json_t *q, *list = json_object_get(reply, FIELD(pending, questions));
	struct ctl_table *t = ctl_table_new("rrlllll");
	size_t i;

	if (json_array_size(list))
		ctl_titles(t, head);
	json_array_foreach(list, i, q)
		print_row(t, q);
	if (!json_array_size(list))
		puts("no query waits for a resolution under way");
	ctl_table_print(t, 0);
}

int ctl_cmd_pending(const struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ctl_show_reply(c, c->limit ? json_pack("{s:s, s:i}", "cmd", "pending", ARGUMENT(pending, limit), (int)c->limit) :
			      json_pack("{s:s}", "cmd", "pending"), print_pending);
}
