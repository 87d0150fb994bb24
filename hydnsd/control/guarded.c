/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/control/guarded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydnsd/control/text.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/guard/guard.h"

#define SECONDS_MOST 86400
#define QUERIES_MOST 1000000

static const char *const actions[] = { [HYDNS_GUARD_DROP] = "drop", [HYDNS_GUARD_TRUNCATE] = "truncate", [HYDNS_GUARD_FAIL] = "fail" };

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* -- clients ------------------------------------------------------------------------------------------------ */
struct network {
	uint8_t addr[16];
	uint32_t queries;
};

static int most_first(const void *a, const void *b)
{
	uint32_t x = ((const struct network *)a)->queries, y = ((const struct network *)b)->queries;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The queries of a cell in its last second, if that is this one or the one before. */
static uint32_t lately(const struct hydns_budget *b, uint32_t second)
{
	uint32_t now = hydns_budget_counts(b->used[0], second, 0) + hydns_budget_counts(b->used[1], second, 0);
	uint32_t before = hydns_budget_counts(b->used[0], second - 1, 0) + hydns_budget_counts(b->used[1], second - 1, 0);

	return now > before ? now : before;
}

/* Networks above their limit now, in new memory; NULL: there is none, or no memory. */
static struct network *networks_over(const struct hydnsd *d, size_t *count)
{
	const struct hydns_guard_bucket *b = hydns_kern_guard_cells(d->kern);
	struct network *list = NULL, *more;
	uint32_t second = (uint32_t)(hydnsd_now_ns() / HYDNS_NS_PER_S);
	size_t room = 0;

	*count = 0;
	for (size_t i = 0; i < (size_t)HYDNS_GUARD_BUCKETS * HYDNS_BUDGET_CELLS; i++) {
		const struct hydns_guard_bucket *in = &b[i / HYDNS_BUDGET_CELLS];
		uint32_t queries = lately(&in->budgets.cell[i % HYDNS_BUDGET_CELLS], second);

		if (queries <= d->options.guard_client_queries)
			continue;
		if (*count == room) {
			room = room ? 2 * room : 64;
			more = realloc(list, room * sizeof(*list));
			if (!more)
				break;
			list = more;
		}
		memcpy(list[*count].addr, in->network[i % HYDNS_BUDGET_CELLS], sizeof(list->addr));
		list[(*count)++].queries = queries;
	}
	if (list)
		qsort(list, *count, sizeof(*list), most_first);
	return list;
}

static json_t *client_object(const struct hydnsd_options *o, const struct network *n)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint32_t bits = memcmp(n->addr, mapped, sizeof(mapped)) ? o->guard_ipv6_prefix : o->guard_ipv4_prefix;
	char address[HYDNSD_ADDRESS_TEXT];

	return json_pack("{s:o, s:i}", "network", json_sprintf("%s/%u", hydnsd_address_text(n->addr, address), bits), "queries",
			 (int)n->queries);
}

static void add_clients(const struct hydnsd *d, json_t *o, uint32_t limit)
{
	json_t *list = json_array();
	size_t count = 0;
	struct network *over = d->guard && d->options.guard_client_queries ? networks_over(d, &count) : NULL;

	for (size_t i = 0; i < count && i < limit; i++)
		json_array_append_new(list, client_object(&d->options, &over[i]));
	free(over);
	json_object_set_new(o, "clients_over", number(count));
	json_object_set_new(o, "clients", list);
}

/* -- suffixes ----------------------------------------------------------------------------------------------- */
static json_t *suffix_object(struct hydnsd *d, const struct hydnsd_guard_suffix *s)
{
	uint64_t now = hydnsd_now_ms();
	struct hydns_guard_rule r = { 0 };
	char text[HYDNSD_NAME_TEXT];

	(void)hydns_kern_guard_get(d->kern, s->key, &r);
	return json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:s, s:o, s:o, s:o, s:o}", "suffix", hydnsd_name_text(s->name, s->len, text),
		"authority", (int)s->resolver, "identity", d->resolver[s->resolver].hello.identity, "why", hydnsd_guard_why_text(s->why),
		"figure", (int)s->figure, "queries", (int)s->queries, "action", actions[s->action], "age_ms", number(now - s->since_ms),
		"ends_in_ms", number(s->until_ms > now ? s->until_ms - now : 0), "within", number(r.within), "over", number(r.over));
}

static json_t *suffixes(struct hydnsd *d)
{
	const struct hydnsd_guard_suffix *s;
	json_t *list = json_array();

	for (uint32_t i = 0; i < HYDNS_GUARD_RULES; i++)
		if ((s = hydnsd_guard_at(d, i)))
			json_array_append_new(list, suffix_object(d, s));
	return list;
}

/* -- figures ------------------------------------------------------------------------------------------------ */
static json_t *counts(struct hydnsd *d)
{
	const struct hydnsd_guard_counts *c = hydnsd_guard_counts(d);
	struct hydns_guard_count sum = { 0 }, one;

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		if (hydns_kern_guard_counts(d->kern, i, &one))
			continue;
		sum.clients_over += one.clients_over;
		sum.clients_exempt += one.clients_exempt;
		sum.clients_uncounted += one.clients_uncounted;
		sum.suffix_within += one.suffix_within;
		sum.suffix_over += one.suffix_over;
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "clients_over", number(sum.clients_over), "clients_exempt",
		number(sum.clients_exempt), "clients_uncounted", number(sum.clients_uncounted), "suffix_within", number(sum.suffix_within),
		"suffix_over", number(sum.suffix_over), "reports", number(c->reports), "refused", number(c->refused), "begun",
		number(c->begun));
}

json_t *hydnsd_guard_figures(struct hydnsd *d)
{
	return json_pack("{s:s, s:i, s:o}", "mode", hydnsd_guard_mode_text(&d->options), "suffixes", (int)hydnsd_guard_count(d),
			 "counts", counts(d));
}

static json_t *report(struct hydnsd *d, uint32_t limit)
{
	const struct hydnsd_options *o = &d->options;
	json_t *r = hydnsd_guard_figures(d);

	json_object_update_new(r, json_pack("{s:i, s:s, s:i, s:i, s:i, s:b}", "client_queries", (int)o->guard_client_queries,
		"client_action", actions[o->guard_client_action], "client_slip", (int)o->guard_client_slip,
		"ipv4_prefix", (int)o->guard_ipv4_prefix, "ipv6_prefix", (int)o->guard_ipv6_prefix,
		"cookies_exempt", o->guard_cookies == HYDNSD_GUARD_COOKIES_EXEMPT));
	json_object_update_new(r, json_pack("{s:b, s:i, s:i, s:i, s:s, s:i}", "automatic", o->guard_suffix == HYDNSD_GUARD_AUTOMATIC,
		"suffix_failures", (int)o->guard_suffix_failures, "suffix_waiting", (int)o->guard_suffix_waiting,
		"suffix_queries", (int)o->guard_suffix_queries, "suffix_action", actions[o->guard_suffix_action],
		"suffix_life_s", (int)o->guard_suffix_life));
	add_clients(d, r, limit);
	json_object_set_new(r, "guarded", suffixes(d));
	return r;
}

/* -- orders ------------------------------------------------------------------------------------------------- */
/* The number of this argument, or what it is when it is not given. False: out of range. */
static bool read_number(const json_t *request, const char *name, uint32_t least, uint32_t most, uint32_t standard, uint32_t *out)
{
	const json_t *v = json_object_get(request, name);
	json_int_t n = v ? json_integer_value(v) : standard;

	if (v && (n < least || n > most))
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool read_action(const json_t *request, uint32_t standard, uint32_t *out)
{
	const char *text = json_string_value(json_object_get(request, "action"));

	*out = standard;
	for (uint32_t i = 0; text && i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(text, actions[i])) {
			*out = i;
			return true;
		}
	return !text;
}

/* A name of one label at least, which may be guarded. */
static bool read_suffix(const char *text, struct hydnsd_guard_order *o)
{
	struct hydnsd_name name;

	if (!hydnsd_name_parse(text, &name) || name.len < 2 || name.len > HYDNS_GUARD_SUFFIX_MOST)
		return false;
	o->len = name.len;
	memcpy(o->name, name.octet, name.len);
	return true;
}

static const char *read_order(const struct hydnsd *d, const json_t *request, struct hydnsd_guard_order *o)
{
	const struct hydnsd_options *standard = &d->options;

	if (!read_number(request, "resolver", 0, HYDNS_RESOLVERS - 1, HYDNSD_ANY_RESOLVER, &o->resolver))
		return "there is no resolver of this number: hydnsctl status shows them";
	if (!read_number(request, "queries", 0, QUERIES_MOST, standard->guard_suffix_queries, &o->queries))
		return "queries takes a number from 0 to 1000000";
	if (!read_number(request, "seconds", 1, SECONDS_MOST, standard->guard_suffix_life, &o->seconds))
		return "seconds takes a number from 1 to 86400";
	return read_action(request, standard->guard_suffix_action, &o->action) ? NULL : "action takes drop, truncate or fail";
}

static bool is_here(const struct hydnsd *d, uint32_t i)
{
	return d->resolver[i].state != HYDNSD_RESOLVER_FREE && d->resolver[i].state != HYDNSD_RESOLVER_CLOSING;
}

/* At one resolver, or at all of them. */
static const char *set(struct hydnsd *d, struct hydnsd_guard_order *o, uint32_t *changed)
{
	uint32_t at = o->resolver;

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		if ((at != HYDNSD_ANY_RESOLVER && at != i) || !is_here(d, i))
			continue;
		o->resolver = i;
		if (hydnsd_guard_order(d, o))
			return "there is no room for another suffix: lift one (hydnsctl guard lift)";
		++*changed;
	}
	return *changed ? NULL : "there is no such resolver: hydnsctl status shows them";
}

static const char *carry_out(struct hydnsd *d, const json_t *request, uint32_t *changed)
{
	const char *set_text = json_string_value(json_object_get(request, "set"));
	const char *lift_text = json_string_value(json_object_get(request, "lift")), *fault;
	bool all = json_is_true(json_object_get(request, "all"));
	struct hydnsd_guard_order o = { 0 };

	if ((set_text != NULL) + (lift_text != NULL) + all > 1)
		return "guard takes one of set, lift and all";
	if (!d->guard)
		return "the guard is off: write `guard: count' or `guard: enforce' into hydnsd.conf, then type hydnsctl reload";
	if ((set_text || lift_text) && !read_suffix(set_text ? set_text : lift_text, &o))
		return "no domain name that can be guarded: it has a label at least, and 64 octets at most";
	fault = read_order(d, request, &o);
	if (fault)
		return fault;
	if (set_text)
		return set(d, &o, changed);
	*changed = hydnsd_guard_lift(d, o.name, o.len, o.resolver);
	return NULL;
}

json_t *hydnsd_guard_request(struct hydnsd *d, const json_t *request, uint32_t limit, const char **fault)
{
	bool order = json_object_get(request, "set") || json_object_get(request, "lift") || json_is_true(json_object_get(request, "all"));
	uint32_t changed = 0;
	json_t *r;

	*fault = order ? carry_out(d, request, &changed) : NULL;
	if (*fault)
		return NULL;
	r = report(d, limit);
	if (order)
		json_object_set_new(r, "changed", number(changed));
	return r;
}
