/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Preloaded rules: they stay, take their share of the capacity and no more, and those withdrawn are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "hydns/session.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/rules/lost.h"
#include "hydnsd/tests/store.h"

#define MOST (CAPACITY - CAPACITY / 4)

/* From a zone; kept: preloaded. */
static enum hydnsd_rejection admit_fixed(const char *name, bool kept, uint32_t count, uint64_t now_ns)
{
	char record[64];
	struct build_spec s = {
		.name = name, .type = 1, .count = count, .answer = { record }, .ttl = kept ? 49 * 24 * 3600 : 300,
		.flags = HYDNS_RULE_STATIC_TTL | (kept ? HYDNS_RULE_KEPT : 0),
	};

	snprintf(record, sizeof(record), "%s 300 IN A 192.0.2.1", name);
	return admit(&s, 1, 0, now_ns);
}

static unsigned fill(const char *format, unsigned from, unsigned n, bool kept, uint32_t count)
{
	unsigned taken = 0;
	char name[32];

	for (unsigned i = from; i < from + n; i++) {
		snprintf(name, sizeof(name), format, i);
		taken += admit_fixed(name, kept, count, NOW_NS) == HYDNSD_ACCEPTED;
		if (i % 50 == 0)
			build_store_grace(&store);
	}
	return taken;
}

static uint32_t rules(void)
{
	return hydns_store_count(hydnsd_rules_store(store.rules));
}

static void popularity_does_not_evict_them(void **state)
{
	(void)state;
	assert_int_equal(fill("k%u.example.", 0, 100, true, 1), 100);
	fill("p%u.example.", 0, 2 * CAPACITY, false, 10000);
	assert_int_equal(hydnsd_rules_kept(store.rules, 1), 100);
	assert_int_equal(rules(), CAPACITY);
	hydnsd_rules_expire(store.rules, NOW_NS, CAPACITY);
	assert_int_equal(rules(), CAPACITY);   /* no popular rule is above what they leave */
}

static void they_take_the_place_of_popular_ones(void **state)
{
	(void)state;
	fill("p%u.example.", 0, CAPACITY, false, 10000);
	assert_int_equal(fill("k%u.example.", 0, 100, true, 1), 100);
	assert_int_equal(rules(), CAPACITY);
	assert_int_equal(hydnsd_rules_counters(store.rules)->evicted, 100);
}

static void they_have_three_quarters_at_most(void **state)
{
	(void)state;
	assert_int_equal(hydnsd_rules_kept_most(store.rules), MOST);
	assert_int_equal(fill("k%u.example.", 0, CAPACITY, true, 1), MOST);
	assert_int_equal(admit_fixed("more.example.", true, 1, NOW_NS), HYDNSD_REJECT_PRELOAD_FULL);
	assert_int_equal(fill("p%u.example.", 0, CAPACITY, false, 10), CAPACITY - MOST);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "k7.example.", 1), 1);
	build_store_grace(&store);
	assert_int_equal(admit_fixed("more.example.", true, 1, NOW_NS), HYDNSD_ACCEPTED);
}

static void time_does_not_end_them(void **state)
{
	const uint64_t later = NOW_NS + 48ULL * 24 * 3600 * HYDNS_NS_PER_S;
	const struct hydns_rule *rule;

	(void)state;
	assert_int_equal(admit_fixed("www.example.", true, 1, NOW_NS), HYDNSD_ACCEPTED);
	rule = hydns_store_rule(hydnsd_rules_store(store.rules), find("www.example."));
	assert_in_range(rule->base_ns + rule->expire_ms * HYDNS_NS_PER_MS, later, UINT64_MAX);
	hydnsd_rules_expire(store.rules, later, 100);
	assert_int_not_equal(find("www.example."), 0);
}

/* A client's query brings the same answer for a while: the preloaded rule stays. */
static void popular_answers_do_not_replace_them(void **state)
{
	(void)state;
	assert_int_equal(admit_fixed("www.example.", true, 1, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit_fixed("www.example.", false, 10000, NOW_NS), HYDNSD_REJECT_KNOWN);
	assert_int_equal(admit_fixed("www.example.", true, 1, NOW_NS), HYDNSD_REJECT_KNOWN);
	assert_int_equal(hydnsd_rules_kept(store.rules, 1), 1);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "www.example.", 1), 1);
	assert_int_equal(hydnsd_rules_kept(store.rules, 1), 0);
	assert_int_equal(admit_fixed("www.example.", false, 10000, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit_fixed("www.example.", true, 1, NOW_NS), HYDNSD_ACCEPTED);   /* replaces it */
	assert_int_equal(hydnsd_rules_kept(store.rules, 1), 1);
	assert_int_equal(rules(), 1);
}

/* What comes from a cache has a TTL. */
static void only_zones_have_them(void **state)
{
	struct build_spec s = { .name = "www.example.", .type = 1, .answer = { "www.example. 300 IN A 192.0.2.1" }, .flags = HYDNS_RULE_KEPT };

	(void)state;
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_REJECT_FLAGS);
}

/* -- those withdrawn ------------------------------------------------------------------------------------------- */
static size_t lost(uint8_t *out, size_t room, bool *all)
{
	return hydnsd_lost_take(hydnsd_rules_lost(store.rules, 1), out, room, all);
}

static void nothing_is_lost_yet(void)
{
	uint8_t out[256];
	bool all;

	assert_int_equal(lost(out, sizeof(out), &all), 0);
	assert_true(all);              /* of what a former hydnsd has withdrawn nothing is known */
	assert_int_equal(lost(out, sizeof(out), &all), 0);
	assert_false(all);
}

static void withdrawn_ones_are_told(void **state)
{
	const struct hydns_lost *l;
	uint8_t out[256], name[HYDNS_NAME_MAX];
	bool all;

	(void)state;
	nothing_is_lost_yet();
	admit_fixed("a.example.", true, 1, NOW_NS);
	admit_fixed("b.example.", true, 1, NOW_NS);
	admit_fixed("popular.example.", false, 1, NOW_NS);
	assert_int_equal(withdraw(HYDNS_SCOPE_SUBTREE, "example.", 1), 3);
	assert_int_equal(lost(out, sizeof(*l) + 10, &all), 0);         /* no room for one */
	assert_int_equal(lost(out, sizeof(*l) + 11, &all), sizeof(*l) + 11);
	l = (const struct hydns_lost *)out;
	assert_int_equal(ntohs(l->qtype), 1);
	assert_int_equal(l->variant, 0);
	assert_int_equal(l->name_len, wire_of("a.example.", name));
	assert_memory_equal(l->name, name, l->name_len);
	assert_int_equal(lost(out, sizeof(out), &all), sizeof(*l) + 11);
	assert_int_equal(lost(out, sizeof(out), &all), 0);
	assert_false(all);
}

static void with_everything_any_may_have_gone(void **state)
{
	uint8_t out[256];
	bool all;

	(void)state;
	nothing_is_lost_yet();
	admit_fixed("a.example.", true, 1, NOW_NS);
	withdraw(HYDNS_SCOPE_NAME, "a.example.", 1);
	admit_fixed("b.example.", true, 1, NOW_NS);
	assert_int_equal(withdraw(HYDNS_SCOPE_ALL, NULL, 1), 1);
	assert_int_equal(lost(out, sizeof(out), &all), 0);
	assert_true(all);
}

/* What has been taken leaves its room to others. */
static void more_than_fit(void **state)
{
	struct hydnsd_lost l = { 0 };
	uint8_t name[HYDNS_NAME_MAX] = { 1, 'a' }, out[HYDNS_MSG_MAX];
	const size_t entry = sizeof(struct hydns_lost) + 3, at_once = sizeof(out) / entry;
	bool all;

	(void)state;
	for (unsigned i = 0; i < HYDNSD_LOST_OCTETS / entry; i++)
		hydnsd_lost_add(&l, name, 3, htons(i & 0xffff), 0);
	assert_int_equal(hydnsd_lost_take(&l, out, sizeof(out), &all), at_once * entry);
	for (unsigned i = 0; i < at_once; i++)
		hydnsd_lost_add(&l, name, 3, htons(1), 0);
	assert_int_equal(hydnsd_lost_take(&l, out, sizeof(out), &all), at_once * entry);
	assert_false(all);
	assert_int_equal(ntohs(((struct hydns_lost *)out)->qtype), at_once);   /* the next of the first ones */
	for (unsigned i = 0; i < at_once + 1; i++)
		hydnsd_lost_add(&l, name, 3, htons(1), 0);
	assert_int_equal(hydnsd_lost_take(&l, out, sizeof(out), &all), 0);
	assert_true(all);
	hydnsd_lost_free(&l);
}

/* -- a restart of hydnsd ----------------------------------------------------------------------------------------- */
static void the_next_hydnsd_keeps_them(void **state)
{
	(void)state;
	fill("k%u.example.", 0, 100, true, 1);
	build_store_reopen(&store, CAPACITY, NOW_NS);
	assert_int_equal(hydnsd_rules_kept(store.rules, 1), 100);
	fill("p%u.example.", 0, 2 * CAPACITY, false, 10000);
	assert_int_equal(hydnsd_rules_kept(store.rules, 1), 100);
	nothing_is_lost_yet();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STORE(popularity_does_not_evict_them), ON_STORE(they_take_the_place_of_popular_ones),
		ON_STORE(they_have_three_quarters_at_most), ON_STORE(time_does_not_end_them),
		ON_STORE(popular_answers_do_not_replace_them), ON_STORE(only_zones_have_them), ON_STORE(withdrawn_ones_are_told),
		ON_STORE(with_everything_any_may_have_gone), cmocka_unit_test(more_than_fit), ON_STORE(the_next_hydnsd_keeps_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
