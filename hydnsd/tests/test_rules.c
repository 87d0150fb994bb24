/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which offers become rules, which rules go for them, and which end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "hydns/names.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/tests/store.h"

static void successors_replace(void **state)
{
	struct build_spec s = {
		.name = "www.example.", .type = 1, .answer = { "www.example. 300 IN A 192.0.2.1" },
	};
	const struct hydnsd_rules_counters *c = hydnsd_rules_counters(store.rules);

	(void)state;
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_REJECT_KNOWN);
	assert_int_equal(admit(&s, 1, 0, NOW_NS + 10 * HYDNS_NS_PER_S), HYDNSD_ACCEPTED);
	s.answer[0] = "www.example. 290 IN A 192.0.2.9"; /* same end, other data */
	assert_int_equal(admit(&s, 1, 0, NOW_NS + 10 * HYDNS_NS_PER_S), HYDNSD_ACCEPTED);
	assert_int_equal(c->admitted, 1);
	assert_int_equal(c->replaced, 2);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 1);
}

/* A template has a key of its own: it replaces itself, and the rule that its question had when its answer was none. */
static void a_template_takes_the_place_of_its_question(void **state)
{
	struct build_spec s = {
		.name = "+below+.cut.example.", .type = HYDNS_BELOW_TYPE, .flags = HYDNS_RULE_STATIC_TTL,
		.authority_section = { "cut.example. 300 IN NS ns.example." },
	};

	(void)state;
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_not_equal(find(s.name), 0);
	s.flags |= HYDNS_RULE_TEMPLATE;
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(find(s.name), 0);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 1);
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_REJECT_KNOWN);
}

static void rules_expire(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	hydnsd_rules_expire(store.rules, NOW_NS + 299 * HYDNS_NS_PER_S, 100);
	assert_int_not_equal(find("www.example."), 0);
	hydnsd_rules_expire(store.rules, NOW_NS + 300 * HYDNS_NS_PER_S, 100);
	assert_int_equal(find("www.example."), 0);
	assert_int_equal(hydnsd_rules_counters(store.rules)->expired, 1);
}

/* At the resolver's own capacity a hotter question evicts a colder one, and a colder question is rejected. */
static void a_resolver_keeps_within_its_capacity(void **state)
{
	struct build_spec s = { .name = "a.example.", .type = 1, .count = 10,
				.answer = { "a.example. 300 IN A 192.0.2.1" } };
	struct build_spec hot = { .name = "b.example.", .type = 1, .count = 1000,
				  .answer = { "b.example. 300 IN A 192.0.2.1" } };
	struct build_spec cold = { .name = "c.example.", .type = 1, .count = 1,
				   .answer = { "c.example. 300 IN A 192.0.2.1" } };

	(void)state;
	assert_int_equal(admit(&s, 1, 1, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&cold, 1, 1, NOW_NS), HYDNSD_REJECT_RESOLVER_FULL);
	assert_int_equal(admit(&hot, 1, 1, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(find("a.example."), 0);
	assert_int_equal(hydnsd_rules_counters(store.rules)->evicted, 1);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 1);
}

static void fill(const char *format, unsigned n, uint32_t resolver, uint32_t count, uint64_t now_ns)
{
	char name[32], record[64];
	struct build_spec s = { .name = name, .type = 1, .answer = { record }, .count = count };

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), format, i);
		snprintf(record, sizeof(record), "%s 300 IN A 192.0.2.1", name);
		admit(&s, resolver, 0, now_ns);
		if (i % 50 == 0)
			build_store_grace(&store);
	}
}

static uint32_t rules_of(uint32_t resolver)
{
	struct hydns_counts c;

	hydnsd_rules_counts(store.rules, resolver, &c);
	return (uint32_t)c.rules;
}

/* Whatever a resolver promises, others keep an equal share of a full store, and get it from one that has more. */
static void promises_take_no_more_than_a_share(void **state)
{
	uint64_t now = NOW_NS;

	(void)state;
	fill("a%u.example.", CAPACITY, 1, 10, now);
	assert_int_equal(rules_of(1), CAPACITY);
	/* the policy limits evictions a second */
	for (unsigned round = 0; round < 20; round++, now += 10 * HYDNS_NS_PER_S)
		fill("b%u.example.", 2 * CAPACITY, 2, UINT32_MAX, now);
	assert_in_range(rules_of(2), CAPACITY / 2, CAPACITY / 2 + 1);
	assert_int_equal(rules_of(1) + rules_of(2), CAPACITY);
	for (unsigned round = 0; round < 20; round++, now += HYDNS_NS_PER_S)
		fill("c%u.example.", CAPACITY, 3, UINT32_MAX, now);
	assert_in_range(rules_of(3), CAPACITY / 3, CAPACITY / 3 + 1);
}

/* All slots that a large answer fits are taken: a hotter answer evicts a rule, a colder one is rejected. */
static void no_slot_is_taken_from_a_better_rule(void **state)
{
	static const char *const big = "%s 300 IN TXT \"%0255d\" \"%0255d\" \"%0255d\"";
	const struct hydnsd_rules_counters *c = hydnsd_rules_counters(store.rules);
	char name[32], record[1000];
	struct build_spec s = { .name = name, .type = 16, .count = 100, .answer = { record } };
	enum hydnsd_rejection why = HYDNSD_ACCEPTED;
	uint64_t before;

	(void)state;
	for (int i = 0; !why && i < CAPACITY; i++) {
		snprintf(name, sizeof(name), "t%d.example.", i);
		snprintf(record, sizeof(record), big, name, 0, 0, 0);
		before = c->admitted;
		why = admit(&s, 1, 0, NOW_NS);
	}
	assert_int_equal(why, HYDNSD_REJECT_FULL);
	assert_int_equal(c->evicted, 0);
	assert_true(before > 0 && before < CAPACITY);
	s.count = 1000;
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_REJECT_NO_SLOT);
	assert_int_equal(c->evicted, 1);
	build_store_grace(&store);
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("small.example.", NULL, 1), HYDNSD_REJECT_FULL);
	assert_int_equal(admit_address("small.example.", NULL, 1000), HYDNSD_REJECT_NO_SLOT);
	build_store_grace(&store);
	assert_int_equal(admit_address("small.example.", NULL, 1000), HYDNSD_ACCEPTED);
}

/* Large answers fill a store long before its capacity. It adapts as at its capacity: hot newcomers evict the coldest rules,
 * many a second, and there is a threshold. The capacity is back when the large ones have gone. */
static void a_store_full_of_large_rules_adapts(void **state)
{
	static const char *const big = "%s 300 IN TXT \"%0255d\" \"%0255d\" \"%0255d\"";
	char name[32], record[1000];
	struct build_spec s = { .name = name, .type = 16, .count = 10, .answer = { record } };
	uint32_t full, in = 0;
	uint64_t now = NOW_NS;

	(void)state;
	for (int i = 0; i < CAPACITY; i++) {
		snprintf(name, sizeof(name), "t%d.example.", i);
		snprintf(record, sizeof(record), big, name, 0, 0, 0);
		admit(&s, 1, 0, now);
	}
	full = hydns_store_count(hydnsd_rules_store(store.rules));
	assert_true(full < CAPACITY);
	s.count = 1000;
	for (int ms = 0; ms < 1000; ms += 10) {
		now += 10000000;
		snprintf(name, sizeof(name), "hot%d.example.", ms);
		snprintf(record, sizeof(record), big, name, 0, 0, 0);
		in += admit(&s, 1, 0, now) == HYDNSD_ACCEPTED;
		hydnsd_rules_expire(store.rules, now, 4096);
		hydnsd_rules_sweep(store.rules, now, UINT32_MAX);
		build_store_grace(&store);
	}
	assert_true(in > 90);
	assert_true(hydnsd_rules_threshold(store.rules) > 0);
	assert_true(hydns_store_count(hydnsd_rules_store(store.rules)) > full * 9 / 10);
	withdraw(HYDNS_SCOPE_ALL, NULL, 1);
	build_store_grace(&store);
	for (int i = 0; i < 64; i++)
		hydnsd_rules_sweep(store.rules, now, UINT32_MAX);
	for (int i = 0; i < CAPACITY; i++) {
		snprintf(name, sizeof(name), "n%d.example.", i);
		assert_int_equal(admit_address_at(name, NULL, 10, now), HYDNSD_ACCEPTED);
	}
}

/* A store full of small rules has room for a large one that is hotter. */
static void small_rules_leave_room_for_large_ones(void **state)
{
	static const char *const small = "%s 300 IN TXT \"%0255d\"", *const large = "%s 300 IN TXT \"%0255d\" \"%0255d\"";
	char name[32], record[600];
	struct build_spec s = { .name = name, .type = 16, .count = 1, .answer = { record } };
	enum hydnsd_rejection why = HYDNSD_ACCEPTED;

	(void)state;
	build_store_close(&store);
	build_store_open(&store, 8 * CAPACITY, 0, NOW_NS);
	for (int i = 0; !why && i < 8 * CAPACITY; i++) {
		snprintf(name, sizeof(name), "t%d.example.", i);
		snprintf(record, sizeof(record), small, name, 0);
		why = admit(&s, 1, 0, NOW_NS);
	}
	assert_int_equal(why, HYDNSD_REJECT_FULL);
	snprintf(name, sizeof(name), "large.example.");
	snprintf(record, sizeof(record), large, name, 0, 0);
	s.count = 1000;
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
}

static void capacity_holds_and_the_hottest_stay(void **state)
{
	char name[32];

	(void)state;
	for (int i = 0; i < 3 * CAPACITY; i++) {
		snprintf(name, sizeof(name), "n%d.example.", i);
		/* 10 ms apart: evictions are bounded to 100 a second */
		admit_address_at(name, NULL, (uint32_t)i + 1, NOW_NS + (uint64_t)i * 10000000);
		build_store_grace(&store);
		assert_true(hydns_store_count(hydnsd_rules_store(store.rules)) <= CAPACITY);
	}
	assert_int_equal(find("n0.example."), 0);
	snprintf(name, sizeof(name), "n%d.example.", 3 * CAPACITY - 1);
	assert_int_not_equal(find(name), 0);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), CAPACITY);
}

static enum hydnsd_rejection admit_awaited(const char *name, uint32_t capacity)
{
	const struct hydnsd_offerer by = { .resolver = 1, .capacity = capacity, .awaited = true };
	char record[64];
	const struct build_spec s = { .name = name, .type = 1, .answer = { record }, .count = 1 };

	snprintf(record, sizeof(record), "%s 300 IN A 192.0.2.1", name);
	build_store_grace(&store);
	return admit_by(&s, &by, NOW_NS);
}

/* However cold, and whatever the policy asks of others; but within the capacity of the store, and of the resolver. */
static void what_a_client_waits_for_is_admitted(void **state)
{
	struct hydns_store *rules = hydnsd_rules_store(store.rules);

	(void)state;
	fill("n%u.example.", CAPACITY, 1, 1000, NOW_NS);
	assert_int_equal(hydns_store_count(rules), CAPACITY);
	assert_int_equal(admit_address("cold.example.", NULL, 1), HYDNSD_REJECT_FULL);
	assert_int_equal(admit_awaited("a.example.", 0), HYDNSD_ACCEPTED);
	assert_int_not_equal(find("a.example."), 0);
	assert_int_equal(hydns_store_count(rules), CAPACITY);
	hydnsd_rules_set_min_hits(store.rules, 1000000);
	assert_int_equal(admit_address("cold.example.", NULL, 1), HYDNSD_REJECT_COLD);
	assert_int_equal(admit_awaited("b.example.", 0), HYDNSD_ACCEPTED);
	assert_int_equal(hydns_store_count(rules), CAPACITY);
	assert_int_equal(withdraw(HYDNS_SCOPE_SUBTREE, "example.", 1), CAPACITY);
	build_store_grace(&store);
	assert_int_equal(admit_awaited("c.example.", 1), HYDNSD_ACCEPTED);
	assert_int_equal(admit_awaited("d.example.", 1), HYDNSD_ACCEPTED);
	assert_int_equal(find("c.example."), 0);
	assert_int_equal(hydns_store_count(rules), 1);
}

static void a_restart_keeps_the_rules(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.com.", "host.cdn.net.", 0), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("mail.example.com.", NULL, 0), HYDNSD_ACCEPTED);
	build_store_reopen(&store, CAPACITY, NOW_NS);
	assert_int_not_equal(find("www.example.com."), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "host.cdn.net.", 1), 1);
	hydnsd_rules_expire(store.rules, NOW_NS + 300 * HYDNS_NS_PER_S, 100);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STORE(successors_replace),
		ON_STORE(a_template_takes_the_place_of_its_question),
		ON_STORE(rules_expire),
		ON_STORE(a_resolver_keeps_within_its_capacity),
		ON_STORE(promises_take_no_more_than_a_share),
		ON_STORE(no_slot_is_taken_from_a_better_rule),
		ON_STORE(a_store_full_of_large_rules_adapts),
		ON_STORE(small_rules_leave_room_for_large_ones),
		ON_STORE(capacity_holds_and_the_hottest_stay), ON_STORE(what_a_client_waits_for_is_admitted),
		ON_STORE(a_restart_keeps_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
