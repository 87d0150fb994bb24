/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What is asked most: rules by their hits, and missing questions (rules/missing.h). */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/rules/missing.h"
#include "hydnsd/control/activity.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/control/families.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/control/report.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/control/text.h"

#define WHY 160

/* Why the rules of each resolver do not answer; NULL: they do. */
struct reach {
	const char *obstacle[HYDNS_RESOLVERS];
};

static void mark_served(const struct hydns_service_key *key, uint32_t resolver, void *arg)
{
	bool *served = arg;

	(void)key;
	served[resolver] = true;
}

static void find_obstacles(struct hydnsd *d, struct reach *out)
{
	bool served[HYDNS_RESOLVERS] = { false }, paused = false, attached = hydnsd_interfaces_first_attached(d);

	hydns_kern_paused(d->kern, &paused);
	hydnsd_services_each(d, mark_served, served);
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		const char **o = &out->obstacle[i];
		struct hydnsd_families families;

		hydnsd_families_of(d, i, &families);
		*o = NULL;
		if (paused)
			*o = "the kernel path is paused";
		else if (!attached)
			*o = "the program is attached to no interface";
		else if (d->resolver[i].state != HYDNSD_RESOLVER_STALE &&
			 (!d->resolver[i].live || hydnsd_resolver_age(d, i) >= HYDNS_HEARTBEAT_STALE_NS))
			*o = "its resolver gives no sign of life or has not finished registering";
		else if (!served[i])
			*o = "its resolver has registered no address to answer at";
		else if (d->resolver[i].session && !d->resolver[i].acl_count)
			*o = "its resolver lets no client be answered";
		else if (hydnsd_families_none(&families))
			*o = "all clients of its resolver are passed, by every address family: see above";
	}
}

static const char *rule_obstacle(struct hydnsd *d, const struct reach *reach, const struct hydns_rule *rule)
{
	if (reach->obstacle[rule->resolver])
		return reach->obstacle[rule->resolver];
	if (rule->epoch != hydnsd_resolver_epoch(d, rule->resolver))
		return "its resolver has withdrawn everything since";
	if (hydnsd_resolver_suspends(d, rule))
		return "it waits until hydnsd has withdrawn what changed while it was away";
	return NULL;
}

/* -- rows -------------------------------------------------------------------------------------------------- */
static json_t *rule_row(struct hydnsd *d, const struct reach *reach, uint32_t handle)
{
	const char *why = rule_obstacle(d, reach, hydns_store_rule(hydnsd_rules_store(d->rules), handle));
	json_t *row = hydnsd_report_rule(d, handle);

	json_object_set_new(row, "where", json_string(why ? "resolver" : "kernel"));
	json_object_set_new(row, "why", json_string(why ? why : ""));
	return row;
}

static json_t *missing_row(const struct hydnsd_missing *a, uint64_t now_ms)
{
	char name[HYDNSD_NAME_TEXT], type[HYDNSD_TYPE_TEXT], why[WHY];
	uint64_t age = now_ms - a->at_ms;

	snprintf(why, sizeof(why), "%s %llu.%llu s ago: %s", a->removal ? "removed" : "offer refused",
		 (unsigned long long)age / 1000, (unsigned long long)age / 100 % 10, hydnsd_missing_text(a));
	return json_pack("{s:s, s:s, s:i, s:i, s:f, s:s, s:s, s:s}",
		"name", hydnsd_name_text(a->name, a->name_len, name), "type", hydnsd_type_text(ntohs(a->qtype), type),
		"variant", (int)a->variant & HYDNS_VARIANTS, "authority", (int)a->resolver, "rate", (double)a->rate / 1e6,
		"where", "resolver", "reason", hydnsd_missing_reason(a), "why", why);
}

struct gathering {
	struct hydnsd *d;
	json_t *list;
	uint64_t now_ms;
};

static void gather(const struct hydnsd_missing *a, void *arg)
{
	struct gathering *g = arg;

	if (g->d->resolver[a->resolver].state == HYDNSD_RESOLVER_FREE ||
	    hydns_store_find(hydnsd_rules_store(g->d->rules), a->name, a->name_len, a->qtype, a->variant, a->resolver))
		return;                /* it has a rule again */
	json_array_append_new(g->list, missing_row(a, g->now_ms));
}

static int hotter_first(const void *a, const void *b)
{
	double x = json_real_value(json_object_get(*(json_t *const *)a, "rate"));
	double y = json_real_value(json_object_get(*(json_t *const *)b, "rate"));

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The hottest of both lists, whose references it takes; NULL: out of memory. */
static json_t *hottest_of(json_t *rules, json_t *missing, uint32_t limit)
{
	size_t count = 0, i;
	json_t **row, *r, *out = json_array();

	row = calloc(json_array_size(rules) + json_array_size(missing) + 1, sizeof(*row));
	if (row && out) {
		json_array_foreach(rules, i, r)
			row[count++] = r;
		json_array_foreach(missing, i, r)
			row[count++] = r;
		qsort(row, count, sizeof(*row), hotter_first);
		for (i = 0; i < count && i < limit; i++)
			json_array_append(out, row[i]);
	}
	free(row);
	json_decref(rules);
	json_decref(missing);
	return out;
}

static json_t *names(struct hydnsd *d, uint32_t limit)
{
	struct gathering g = { d, json_array(), hydnsd_now_ms() };
	struct hydnsd_ranked *ranked = calloc(limit + 1, sizeof(*ranked));
	uint32_t count = ranked ? hydnsd_report_hottest(d, ranked, limit, -1) : 0;
	json_t *rules = json_array();
	struct reach reach;

	find_obstacles(d, &reach);
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(rules, rule_row(d, &reach, ranked[i].handle));
	free(ranked);
	hydnsd_missing_each(d->missing, g.now_ms, gather, &g);
	return hottest_of(rules, g.list, limit);
}

/* -- the whole --------------------------------------------------------------------------------------------- */
static json_t *all_notes(const struct hydnsd *d)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		for (uint32_t k = 0; d->resolver[i].state != HYDNSD_RESOLVER_FREE && k < d->resolver[i].note_count; k++)
			json_array_append_new(list, json_pack("{s:i, s:s, s:s}", "authority", (int)i, "identity",
				d->resolver[i].hello.identity, "note", d->resolver[i].note[k].text));
	return list;
}

json_t *hydnsd_report_top(struct hydnsd *d, uint32_t limit)
{
	uint64_t reasons[HYDNS_REASONS], window = hydnsd_activity_window(d, reasons);
	uint64_t answered = reasons[HYDNS_R_ANSWERED], dns = answered;
	json_t *why = json_object();
	struct hydnsd_families families;

	hydnsd_families_of(d, HYDNS_RESOLVERS, &families);
	/* the share is of queries to resolvers, for what other packets are is unknown */
	for (enum hydns_reason k = 0; k < HYDNS_REASONS; k++) {
		if (k == HYDNS_R_ANSWERED || hydns_reason_of(k) != HYDNS_OF_QUERY || !reasons[k])
			continue;
		dns += reasons[k];
		json_object_set_new(why, hydns_reason_name(k), json_integer((json_int_t)reasons[k]));
	}
	return json_pack("{s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o}", "window_ms", (json_int_t)window,
		"answered", (json_int_t)answered, "passed", (json_int_t)(dns - answered),
		"share", dns ? (double)answered / (double)dns : 0.0, "reasons", why, "notes", all_notes(d),
		"families_passed", hydnsd_families_json(&families), "names", names(d, limit));
}
