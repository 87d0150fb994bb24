/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* stats: what became of every packet, offer and rule. Packets also without the daemon. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "hydns/detours.h"
#include "hydnsd/ctl/common.h"

static const struct {
	const char *name, *text;
} rejection[] = {
#define HYDNSD_REJECTION(name, question, text) {#name, text},
#include "hydnsd/rules/rejections.def"
#undef HYDNSD_REJECTION
};
#define REJECTIONS (sizeof(rejection) / sizeof(rejection[0]))

/* The reasons object as hydnsd sends it. */
static json_t *reasons_from_pins(const struct ctl *c, char why[CTL_WHY])
{
	__u64 n[HYDNS_REASONS];
	json_t *o;

	if (ctl_pins_stats(c, n, why))
		return NULL;
	o = json_object();
	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		json_object_set_new(o, hydns_reason_name((enum hydns_reason)i), json_integer((json_int_t)n[i]));
	return o;
}

static void print_reasons(const json_t *counts)
{
	struct ctl_table *t = ctl_table_new("lrrl");
	char a[CTL_TEXT], b[CTL_TEXT];
	double all = 0;

	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		all += (double)ctl_int(counts, hydns_reason_name((enum hydns_reason)i));
	for (unsigned i = 0; i < HYDNS_REASONS; i++) {
		json_int_t n = ctl_int(counts, hydns_reason_name((enum hydns_reason)i));

		if (!n && i != HYDNS_R_ANSWERED)
			continue;
		ctl_cell(t, hydns_reason_name((enum hydns_reason)i));
		ctl_cell(t, ctl_count(n, a));
		ctl_cell(t, ctl_share((double)n, all, b));
		ctl_cell(t, hydns_reason_text((enum hydns_reason)i));
	}
	printf("packets at the XDP hook: %s\n", ctl_count((json_int_t)all, a));
	ctl_table_print(t, 2);
}

static const char *rejection_text(const char *name)
{
	for (size_t i = 0; i < REJECTIONS; i++)
		if (!strcmp(rejection[i].name, name))
			return rejection[i].text;
	return "";
}

static void print_rejections(const json_t *rejected)
{
	struct ctl_table *t = ctl_table_new("lrl");
	const char *name;
	const json_t *n;
	char a[CTL_TEXT];
	bool any = false;

	puts("offers that did not become rules");
	json_object_foreach((json_t *)rejected, name, n) {
		if (!json_integer_value(n))
			continue;
		any = true;
		ctl_cell(t, name);
		ctl_cell(t, ctl_count(json_integer_value(n), a));
		ctl_cell(t, rejection_text(name));
	}
	if (!any)
		puts("  none");
	ctl_table_print(t, 2);
}

static void print_offers(const json_t *offers)
{
	json_t *rest = json_copy((json_t *)offers);
	const json_t *rejected = json_object_get(offers, FIELD(offers, rejected));

	json_object_del(rest, FIELD(offers, rejected));
	ctl_print_numbers("offers from resolvers", rest);
	json_decref(rest);
	if (json_is_object(rejected))
		print_rejections(rejected);
}

static void print_packet_rings(const json_t *rings)
{
	const json_t *n, *detours = json_object_get(rings, FIELD(packet_rings, detours));
	struct ctl_table *t = ctl_table_new("lrl");
	char a[CTL_TEXT];
	const char *name;

	ctl_print_numbers("  packet rings", rings);
	puts("  datagrams that took a socket");
	json_object_foreach((json_t *)detours, name, n) {
		if (!json_integer_value(n))
			continue;
		ctl_cell(t, name);
		ctl_cell(t, ctl_count(json_integer_value(n), a));
		ctl_cell(t, hydns_detour_text(name));
	}
	ctl_table_print(t, 4);
}

static void print_stats(const json_t *s)
{
	const json_t *r;
	size_t n;
	char a[CTL_TEXT], title[96];

	print_reasons(json_object_get(s, FIELD(stats, reasons)));
	print_offers(json_object_get(s, FIELD(stats, offers)));
	printf("rules that ended\n  expired    %s\n", ctl_count(ctl_int(s, FIELD(stats, expired)), a));
	printf("  withdrawn  %s\n", ctl_count(ctl_int(s, FIELD(stats, withdrawn)), a));
	printf("rules that got a later TTL\n  renewed    %s\n", ctl_count(ctl_int(s, FIELD(stats, renewed)), a));
	printf("withdrawals that wait for a scan\n  now        %s\n",
	       ctl_count(ctl_int(s, FIELD(stats, withdrawals_waiting)), a));
	ctl_print_numbers("bounds that plugins came up against (options of hydnsd.conf), times",
			  json_object_get(s, FIELD(stats, bounds)));
	json_array_foreach(json_object_get(s, FIELD(stats, resolvers)), n, r) {
		json_t *rest = json_copy((json_t *)r);

		snprintf(title, sizeof(title), "resolver %" JSON_INTEGER_FORMAT " (%s)",
			 ctl_int(r, FIELD(resolver_counts, authority)), ctl_str(r, FIELD(resolver_counts, identity)));
		json_object_del(rest, FIELD(resolver_counts, authority));
		ctl_print_numbers(title, rest);
		json_decref(rest);
		ctl_print_numbers("  logged answers", json_object_get(r, FIELD(resolver_counts, log)));
		ctl_print_parking_counts(json_object_get(r, FIELD(resolver_counts, parking)));
		ctl_print_forwarding_counts(json_object_get(r, FIELD(resolver_counts, forwarding)));
		print_packet_rings(json_object_get(r, FIELD(resolver_counts, packet_rings)));
	}
	ctl_print_guard(json_object_get(s, FIELD(stats, guard)));
	ctl_print_monitor(json_object_get(s, FIELD(stats, monitor)));
}

static int stats_from_pins(const struct ctl *c, const char *no_daemon)
{
	char why[CTL_WHY];
	json_t *reasons = ctl_pins_exist(c) ? reasons_from_pins(c, why) : NULL;

	if (!reasons) {
		ctl_error("%s", no_daemon);
		if (ctl_pins_exist(c))
			ctl_error("%s", why);
		return CTL_ERROR;
	}
	if (c->json) {
		ctl_json(json_pack("{s:b, s:o}", FIELD(stats, daemon), 0, FIELD(stats, reasons), reasons));
		return CTL_OK;
	}
	printf("hydnsd is NOT RUNNING: counters of the kernel program alone, from %s\n", c->pin_dir);
	print_reasons(reasons);
	json_decref(reasons);
	return CTL_OK;
}

int ctl_cmd_stats(const struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ctl_show(c, "stats", NULL, print_stats, stats_from_pins);
}
