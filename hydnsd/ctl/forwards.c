/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Forwarded queries, in status and in stats. */
#include <stdio.h>

#include "hydnsd/ctl/common.h"
#include "hydns/forwarding.h"

struct explained {
	const char *name, *text;
};

static const struct explained left[] = {
#define HYDNS_FORWARD_LEFT(name, text) { #name, text },
#include "hydns/forward_left.def"
#undef HYDNS_FORWARD_LEFT
};
static const struct explained not_relayed[] = {
#define HYDNSD_NOT_RELAYED(name, text) { #name, text },
#include "hydnsd/forwarding/not_relayed.def"
#undef HYDNSD_NOT_RELAYED
};

static void print_upstream(const json_t *u)
{
	char a[CTL_TEXT];

	printf("     %-10s %s, ", "upstream", ctl_str(u, FIELD(upstream, address)));
	if (!json_is_true(json_object_get(u, FIELD(upstream, usable))))
		printf("not used: %s\n", ctl_str(u, FIELD(upstream, why)));
	else if (!ctl_int(u, FIELD(upstream, rtt_us)))
		puts("not asked yet");
	else
		printf("%.1f ms, %s requests\n", ctl_real(u, FIELD(upstream, rtt_us)) / 1000,
		       ctl_count(ctl_int(u, FIELD(upstream, sent)), a));
}

void ctl_print_forwarding(const json_t *forwarding)
{
	const json_t *item, *zones = json_object_get(forwarding, FIELD(forwarding, zones));
	size_t i;

	if (!json_array_size(zones))
		return;
	json_array_foreach(zones, i, item)
		printf("     %-10s %s\n", i ? "" : "forwarded", json_string_value(item));
	json_array_foreach(json_object_get(forwarding, FIELD(forwarding, upstreams)), i, item)
		print_upstream(item);
}

static void print_reasons(const char *title, const json_t *counts, const struct explained *of, size_t n)
{
	struct ctl_table *t = ctl_table_new("lrl");
	char a[CTL_TEXT];

	puts(title);
	for (size_t i = 0; i < n; i++) {
		json_int_t count = ctl_int(counts, of[i].name);

		if (!count)
			continue;
		ctl_cell(t, of[i].name);
		ctl_cell(t, ctl_count(count, a));
		ctl_cell(t, of[i].text);
	}
	ctl_table_print(t, 4);
}

void ctl_print_forwarding_counts(const json_t *counts)
{
	if (!ctl_int(counts, FIELD(forwarding_counts, sent)) && !ctl_int(counts, FIELD(forwarding_counts, joined)))
		return;
	ctl_print_numbers("  forwarded queries", counts);
	print_reasons("  queries in forwarded zones that were not forwarded", json_object_get(counts, FIELD(forwarding_counts, left)),
		      left, sizeof(left) / sizeof(left[0]));
	print_reasons("  answers that were left to the resolver", json_object_get(counts, FIELD(forwarding_counts, not_relayed)),
		      not_relayed, sizeof(not_relayed) / sizeof(not_relayed[0]));
}
