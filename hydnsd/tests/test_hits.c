/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Hits: each counts once, also after the end of its rule and of hydnsd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <cmocka.h>

#include "hydnsd/tests/store.h"

/* Hits count while a rule lives, in its slot or, as long as it is hot, per CPU; when it leaves; and until the grace period
 * ends. */
static void no_hit_is_lost(void **state)
{
	struct hydns_counts c = { 0 };
	const struct hydns_rule *rule;
	uint32_t handle;

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	handle = find("www.example.");
	rule = hydns_store_rule(hydnsd_rules_store(store.rules), handle);
	build_store_hit(&store, handle, HYDNS_HITS_IN_SLOT + 5);
	hydnsd_rules_sweep(store.rules, NOW_NS, UINT32_MAX);
	build_store_hit(&store, handle, 2);
	assert_int_equal(rule->hits, HYDNS_HITS_IN_SLOT);
	hydnsd_rules_sweep(store.rules, NOW_NS, UINT32_MAX);
	build_store_hit(&store, handle, 1);
	assert_int_equal(rule->hits, HYDNS_HITS_IN_SLOT + 1);
	withdraw(HYDNS_SCOPE_ALL, NULL, 1);
	build_store_hit(&store, handle, 2); /* by a program that still has it */
	build_store_grace(&store);
	hydnsd_rules_sweep_of(store.rules, 1, NOW_NS);
	hydnsd_rules_counts(store.rules, 1, &c);
	assert_int_equal(c.type[1], HYDNS_HITS_IN_SLOT + 10);
	assert_int_equal(c.rcode[0], HYDNS_HITS_IN_SLOT + 10);
	assert_int_equal(c.edns_do, 0);
	assert_int_equal(c.rules, 0);
}

/* Hits between removal and the end of the grace period count once, also when the counts are read in between. */
static void asking_meanwhile_counts_once(void **state)
{
	struct hydns_counts c = { 0 };
	uint32_t handle;

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	handle = find("www.example.");
	withdraw(HYDNS_SCOPE_ALL, NULL, 1);
	build_store_hit(&store, handle, 2);
	hydnsd_rules_sweep_of(store.rules, 1, NOW_NS);
	build_store_grace(&store);
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	hydnsd_rules_sweep_of(store.rules, 1, NOW_NS);
	hydnsd_rules_counts(store.rules, 1, &c);
	assert_int_equal(c.type[1], 2);
}

/* The answer of a zone to a query without RD counts as such, and others do not. */
static void of_zones_and_without_rd(void **state)
{
	struct build_spec s = { .name = "www.example.", .type = 1, .answer = { "www.example. 300 IN A 192.0.2.1" },
				.variant = HYDNS_VARIANT_NO_RD, .flags = HYDNS_RULE_STATIC_TTL };
	struct hydns_counts c = { 0 };
	uint8_t wire[HYDNS_NAME_MAX];
	size_t len = wire_of(s.name, wire);

	(void)state;
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("mail.example.", NULL, 0), HYDNSD_ACCEPTED);
	build_store_hit(&store, hydns_store_find(hydnsd_rules_store(store.rules), wire, (uint8_t)len, htons(1), s.variant, 1), 3);
	build_store_hit(&store, find("mail.example."), 4);
	hydnsd_rules_sweep_of(store.rules, 1, NOW_NS);
	hydnsd_rules_counts(store.rules, 1, &c);
	assert_int_equal(c.type[1], 7);
	assert_int_equal(c.no_rd, 3);
	assert_int_equal(c.from_zone, 3);
}

static uint64_t counted(void)
{
	struct hydns_counts c = { 0 };

	hydnsd_rules_sweep_of(store.rules, 1, NOW_NS);
	hydnsd_rules_counts(store.rules, 1, &c);
	assert_int_equal(c.type[1], c.rcode[0]);
	return c.type[1];
}

/* Hits from while no hydnsd ran count. Those of a rule that left do not count twice, and a new rule with its ordinal begins
 * at zero. */
static void a_restart_keeps_the_counts(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("mail.example.", NULL, 0), HYDNSD_ACCEPTED);
	build_store_hit(&store, find("www.example."), HYDNS_HITS_IN_SLOT + 7);
	assert_int_equal(counted(), HYDNS_HITS_IN_SLOT + 7);
	build_store_hit(&store, find("www.example."), 4);
	build_store_hit(&store, find("mail.example."), 3);
	build_store_reopen(&store, CAPACITY, NOW_NS);
	assert_int_equal(counted(), HYDNS_HITS_IN_SLOT + 14);
	build_store_hit(&store, find("www.example."), 1);
	withdraw(HYDNS_SCOPE_NAME, "www.example.", 1);
	build_store_reopen(&store, CAPACITY, NOW_NS);   /* before the grace period */
	build_store_grace(&store);
	assert_int_equal(admit_address("web.example.", NULL, 0), HYDNSD_ACCEPTED);
	build_store_hit(&store, find("web.example."), 2);
	assert_int_equal(counted(), HYDNS_HITS_IN_SLOT + 17);
	build_store_reopen(&store, CAPACITY, NOW_NS);
	assert_int_equal(counted(), HYDNS_HITS_IN_SLOT + 17);
}

/* hydnsd was killed between the two stores of one account: the next one makes both. */
static void an_account_is_completed(void **state)
{
	struct hydns_tallies *t = store.memory.tallies;
	uint32_t ordinal;

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	build_store_hit(&store, find("www.example."), 5);
	ordinal = hydns_store_ordinal(hydnsd_rules_store(store.rules), find("www.example."));
	t->journal = (struct hydns_tally_journal){
		.begun = 1, .ordinal = ordinal, .seen = 5, .resolver = 1, .words = 2,
		.word = { { 5, offsetof(struct hydns_tally, type[1]) / sizeof(__u64) },
			  { 5, offsetof(struct hydns_tally, rcode[0]) / sizeof(__u64) } },
	};
	t->of[1].type[1] = 5;                           /* the first store was made */
	build_store_reopen(&store, CAPACITY, NOW_NS);
	assert_int_equal(counted(), 5);
	t->journal = (struct hydns_tally_journal){ .begun = 1, .ordinal = UINT32_MAX, .resolver = 1 };
	build_store_reopen(&store, CAPACITY, NOW_NS);   /* a broken journal */
	assert_int_equal(counted(), 5);
}

/* Buckets of ages, in the order of their bounds: 1, 5, 10, ... s. */
static void ages_of_answers(void **state)
{
	const struct hydnsd_histogram *ages = hydnsd_rules_ages(store.rules, 1);
	uint32_t handle;
	uint64_t base;

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	handle = find("www.example.");
	base = hydns_store_rule(hydnsd_rules_store(store.rules), handle)->base_ns;
	build_store_hit(&store, handle, 3);
	hydnsd_rules_sweep_of(store.rules, 2, base + HYDNS_NS_PER_S);
	assert_int_equal(ages->count[0], 0);            /* of another resolver */
	hydnsd_rules_sweep_of(store.rules, HYDNSD_ANY_RESOLVER, base + HYDNS_NS_PER_S);
	assert_int_equal(ages->count[0], 3);
	build_store_hit(&store, handle, 2);
	hydnsd_rules_sweep(store.rules, base + 7 * HYDNS_NS_PER_S, UINT32_MAX);
	assert_int_equal(ages->count[2], 2);
	withdraw(HYDNS_SCOPE_ALL, NULL, 1);
	build_store_hit(&store, handle, 1);             /* by a program that still has it */
	build_store_grace(&store);
	assert_int_equal(ages->count[0] + ages->count[2], 6);
	hydnsd_rules_counts_reset(store.rules, 1, base + 8 * HYDNS_NS_PER_S);
	assert_true(ages->sum_s == 0 && ages->count[2] == 0);
}

static void buckets(void **state)
{
	struct hydnsd_histogram h;

	(void)state;
	for (unsigned scale = 0; scale < HYDNSD_SCALES; scale++)
		for (unsigned i = 0; i + 1 < HYDNSD_BUCKETS; i++) {
			uint64_t ns = (uint64_t)(atof(hydnsd_histogram_bound(scale, i)) * 1e9 + 0.5);

			h = (struct hydnsd_histogram){ 0 };
			hydnsd_histogram_add(&h, scale, ns, 1);
			assert_int_equal(h.count[i], 1);
			hydnsd_histogram_add(&h, scale, ns + 1, 1);
			assert_int_equal(h.count[i + 1], 1);
		}
	h = (struct hydnsd_histogram){ 0 };
	hydnsd_histogram_add(&h, HYDNSD_SCALE_WAIT, UINT64_MAX, 2);
	assert_int_equal(h.count[HYDNSD_BUCKETS - 1], 2);
	assert_string_equal(hydnsd_histogram_bound(HYDNSD_SCALE_WAIT, HYDNSD_BUCKETS - 1), "inf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STORE(no_hit_is_lost),
		ON_STORE(of_zones_and_without_rd),
		ON_STORE(asking_meanwhile_counts_once),
		ON_STORE(a_restart_keeps_the_counts),
		ON_STORE(an_account_is_completed),
		ON_STORE(ages_of_answers),
		cmocka_unit_test(buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
