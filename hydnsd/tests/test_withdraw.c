/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which rules a withdrawal removes: by name, subtree, generation and question, at once and by a scan. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydns/session.h"
#include "hydnsd/rules/lost.h"
#include "hydnsd/tests/store.h"

static void withdrawals_find_every_owner(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.com.", "host.cdn.net.", 0), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("mail.example.com.", NULL, 0), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("xexample.com.", NULL, 0), HYDNSD_ACCEPTED);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "example.com.", 1), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "cdn.net.", 1), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "host.cdn.net.", 2), 0); /* another resolver's */
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "host.cdn.net.", 1), 1);
	assert_int_equal(find("www.example.com."), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_SUBTREE, "example.com.", 1), 1);
	assert_int_not_equal(find("xexample.com."), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_SUBTREE, ".", HYDNSD_ANY_RESOLVER), 1);
}

/* The target of an alias may have no record in the answer. It withdraws the alias all the same, by a scan and at once, also
 * after a restart. */
static void aliases_hang_on_targets_that_are_not_shown(void **state)
{
	const struct build_spec alias = {
		.name = "alias.example.com.", .type = 1, .answer = { "alias.example.com. 600 IN CNAME beyond.example.net." },
	};
	struct hydnsd_withdrawal w = { .resolver = 1, .scope = HYDNS_SCOPE_NAME };

	(void)state;
	w.name_len = (uint8_t)wire_of("beyond.example.net.", w.name);
	for (int taken_over = 0; taken_over < 2; taken_over++) {
		assert_int_equal(admit(&alias, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
		if (taken_over)
			build_store_reopen(&store, CAPACITY, NOW_NS);
		assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "beyond.example.net.", 1), 1);
		assert_int_equal(admit(&alias, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
		if (taken_over)
			build_store_reopen(&store, CAPACITY, NOW_NS);
		assert_true(hydnsd_rules_withdraw(store.rules, &w, NOW_NS));
		assert_int_equal(w.withdrawn, 1);
	}
}

/* A negative answer depends on the question name of its SOA. */
static void negative_answers_hang_on_their_zone(void **state)
{
	const struct build_spec nx = {
		.name = "no.such.example.com.", .type = 1, .rcode = 3, .authority_section = {
			"example.com. 900 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 900" },
	};

	(void)state;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "such.example.com.", 1), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "example.com.", 1), 1);
}

static struct build_spec proven(const char *proof)
{
	return (struct build_spec){
		.name = "no.such.example.com.", .type = 1, .rcode = 3, .authority_section = {
			"example.com. 900 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 900" },
		.left_out = { proof, "*.elsewhere.org." },
	};
}

/* A left-out name withdraws the rule, also after a restart. */
static void names_left_out_count(void **state)
{
	const struct build_spec nx = proven("zzz.example.com.");

	(void)state;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "elsewhere.org.", 1), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "zzz.example.com.", 1), 1);

	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(withdraw(HYDNS_SCOPE_SUBTREE, "elsewhere.org.", 1), 1);
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	build_store_reopen(&store, CAPACITY, NOW_NS);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "*.elsewhere.org.", 1), 1);
}

/* An answer with another proof replaces the rule. */
static void other_names_left_out_replace(void **state)
{
	const struct build_spec one = proven("zzz.example.com."), other = proven("yyy.example.com.");

	(void)state;
	assert_int_equal(admit(&one, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&one, 1, 0, NOW_NS), HYDNSD_REJECT_KNOWN);
	assert_int_equal(admit(&other, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "zzz.example.com.", 1), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "yyy.example.com.", 1), 1);
}

/* So does the same failure for another reason. */
static void other_errors_replace(void **state)
{
	struct build_spec failure = { .name = "bogus.example.com.", .type = 1, .rcode = 2, .errors = "text" };

	(void)state;
	assert_int_equal(admit(&failure, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&failure, 1, 0, NOW_NS), HYDNSD_REJECT_KNOWN);
	failure.errors = "next";
	assert_int_equal(admit(&failure, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	failure.errors = NULL;
	assert_int_equal(admit(&failure, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&failure, 1, 0, NOW_NS), HYDNSD_REJECT_KNOWN);
}

static void admit_at(const char *name, const char *record, uint8_t variant, uint64_t generation)
{
	struct build_spec s = {
		.name = name, .type = 1, .answer = { record }, .variant = variant, .generation = generation,
	};

	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
}

/* A rule that was offered at the change's generation or later stays: it shows the changed data. */
static void changes_spare_later_offers(void **state)
{
	const uint64_t wrap = 1ULL << 32;

	(void)state;
	admit_at("a.example.", "a.example. 300 IN A 192.0.2.1", 0, 5);
	assert_int_equal(withdraw_older(HYDNS_SCOPE_NAME, "a.example.", 1, 5), 0);
	assert_int_equal(withdraw_older(HYDNS_SCOPE_NAME, "a.example.", 1, 6), 1);
	admit_at("a.example.", "a.example. 300 IN A 192.0.2.1", 0, wrap + 1);
	assert_int_equal(withdraw_older(HYDNS_SCOPE_NAME, "a.example.", 1, wrap - 1), 0);
	assert_int_equal(withdraw_older(HYDNS_SCOPE_NAME, "a.example.", 1, wrap + 2), 1);
}

/* The generation of a rule that was taken over is unknown: every change takes the rule. */
static void changes_take_adopted_rules(void **state)
{
	const uint64_t generation[] = { 2, 1ULL << 31, (1ULL << 31) + 5, UINT32_MAX, 1ULL << 32, (5ULL << 31) + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(generation) / sizeof(generation[0]); i++) {
		admit_at("a.example.", "a.example. 300 IN A 192.0.2.1", 0, generation[i] - 1);
		build_store_reopen(&store, CAPACITY, NOW_NS);
		assert_int_equal(withdraw_older(HYDNS_SCOPE_NAME, "a.example.", 1, generation[i]), 1);
		admit_at("a.example.", "a.example. 300 IN A 192.0.2.1", 0, generation[i]);
		assert_int_equal(withdraw_older(HYDNS_SCOPE_NAME, "a.example.", 1, generation[i]), 0);
		build_store_reopen(&store, CAPACITY, NOW_NS);
		admit_at("a.example.", "a.example. 300 IN A 192.0.2.9", 0, generation[i]); /* its generation is known */
		assert_int_equal(withdraw_older(HYDNS_SCOPE_NAME, "a.example.", 1, generation[i]), 0);
		assert_int_equal(withdraw(HYDNS_SCOPE_ALL, NULL, 1), 1);
	}
}

/* Older variants of one question go, and nothing else of the name. */
static void one_question_outdated(void **state)
{
	uint8_t name[HYDNS_NAME_MAX];
	uint8_t len = (uint8_t)wire_of("a.example.", name);

	(void)state;
	admit_at("a.example.", "a.example. 300 IN A 192.0.2.1", 0, 5);
	admit_at("a.example.", "a.example. 300 IN A 192.0.2.1", HYDNS_VARIANT_DO, 7);
	admit_at("b.example.", "b.example. 300 IN CNAME a.example.", 0, 5);
	hydnsd_rules_withdraw_older(store.rules, 1, name, len, htons(28), 7, NOW_NS);
	hydnsd_rules_withdraw_older(store.rules, 2, name, len, htons(1), 7, NOW_NS);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 3);
	hydnsd_rules_withdraw_older(store.rules, 1, name, len, htons(1), 7, NOW_NS);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 2);
	assert_int_equal(find("a.example."), 0);
	assert_int_not_equal(find("b.example."), 0);
}

/* Who takes them as fast as they come never hears that any may have gone, though some are always left. */
static void what_is_lost_is_known(void **state)
{
	uint8_t name[HYDNS_NAME_MAX], out[64];
	uint8_t len = (uint8_t)wire_of("www.example.", name);
	struct hydnsd_lost l = { 0 };
	bool all;

	(void)state;
	hydnsd_lost_add(&l, name, len, htons(1), 0);
	for (unsigned octets = 0; octets < 3 * HYDNSD_LOST_OCTETS; octets += sizeof(struct hydns_lost) + len) {
		hydnsd_lost_add(&l, name, len, htons(1), 0);
		assert_int_equal(hydnsd_lost_take(&l, out, sizeof(struct hydns_lost) + len, &all), sizeof(struct hydns_lost) + len);
		assert_false(all);
		assert_memory_equal(((const struct hydns_lost *)out)->name, name, len);
	}
	hydnsd_lost_free(&l);
}

static void everything_can_be_withdrawn(void **state)
{
	char name[32];

	(void)state;
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "n%d.example.", i);
		assert_int_equal(admit_address(name, NULL, 0), HYDNSD_ACCEPTED);
	}
	assert_int_equal(withdraw(HYDNS_SCOPE_ALL, NULL, 1), 50);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 0);
}

/* Random rules and withdrawals, compared with a model that compares texts. */
#define NAMES 400
static char question[NAMES][64], target[NAMES][64];
static bool there[NAMES];

static void random_zone(char out[64])
{
	static const char *const parts[] = { "a", "b", "c", "www", "x1", "cdn", "com", "net" };

	snprintf(out, 64, "%s.%s.%s.", parts[random() % 6], parts[random() % 6], parts[6 + random() % 2]);
}

static void fill_with_random_rules(void)
{
	char zone[64];

	srandom(1);
	for (int i = 0; i < NAMES; i++) {
		random_zone(zone);
		snprintf(question[i], sizeof(question[i]), "n%d.%.50s", i, zone);
		random_zone(target[i]);
		assert_int_equal(admit_address(question[i], target[i], 0), HYDNSD_ACCEPTED);
		there[i] = true;
	}
}

static bool text_below(const char *name, const char *zone)
{
	size_t n = strlen(name), z = strlen(zone);

	return n >= z && strcmp(name + n - z, zone) == 0 && (n == z || name[n - z - 1] == '.');
}

/* Withdraws in the model; returns how many rules go. */
static uint32_t forget_texts(enum hydns_scope scope, const char *name)
{
	uint32_t gone = 0;

	for (int i = 0; i < NAMES; i++) {
		bool hit = scope == HYDNS_SCOPE_SUBTREE ?
			   text_below(question[i], name) || text_below(target[i], name) :
			   strcmp(question[i], name) == 0 || strcmp(target[i], name) == 0;

		if (!there[i] || !hit)
			continue;
		there[i] = false;
		gone++;
	}
	return gone;
}

static void assert_store_as_texts(void)
{
	for (int i = 0; i < NAMES; i++)
		assert_int_equal(find(question[i]) != 0, there[i]);
}

static void signatures_miss_nothing(void **state)
{
	char zone[64];

	(void)state;
	fill_with_random_rules();
	for (int round = 0; round < 60; round++) {
		random_zone(zone);
		assert_int_equal(withdraw(HYDNS_SCOPE_SUBTREE, zone, 1),
				 forget_texts(HYDNS_SCOPE_SUBTREE, zone));
		build_store_grace(&store);
	}
	assert_store_as_texts();
}

/* False: it takes a scan. */
static bool withdraw_at_once(const char *name, uint32_t *withdrawn)
{
	struct hydnsd_withdrawal w = { .resolver = 1, .scope = HYDNS_SCOPE_NAME };

	w.name_len = (uint8_t)wire_of(name, w.name);
	if (!hydnsd_rules_withdraw(store.rules, &w, NOW_NS))
		return false;
	*withdrawn = w.withdrawn;
	return true;
}

/* Single names need no scan, also after a restart, and for rules with ordinals that others had before. */
static void names_are_withdrawn_at_once(void **state)
{
	uint32_t withdrawn;

	(void)state;
	for (int restart = 0; restart < 2; restart++) {
		fill_with_random_rules();
		if (restart)
			build_store_reopen(&store, CAPACITY, NOW_NS);
		for (int round = 0; round < 300; round++) {
			const char *name = random() % 4 ? question[random() % NAMES] : target[random() % NAMES];

			assert_true(withdraw_at_once(name, &withdrawn));
			assert_int_equal(withdrawn, forget_texts(HYDNS_SCOPE_NAME, name));
			build_store_grace(&store);
		}
		assert_store_as_texts();
		withdraw(HYDNS_SCOPE_ALL, NULL, 1);
		build_store_grace(&store);
	}
}

/* A name that very many rules depend on takes a scan. Each of these rules goes at once by its own name. When few are left, the
 * name goes at once, too. */
static void a_name_of_many_rules_takes_a_pass(void **state)
{
	const uint32_t many = HYDNSD_DEPENDENCIES_FOUND + 100;
	uint32_t withdrawn;
	char name[32];

	(void)state;
	build_store_close(&store);
	build_store_open(&store, 2 * many, 0, NOW_NS);
	for (uint32_t i = 0; i < many; i++) {
		snprintf(name, sizeof(name), "n%u.example.", i);
		assert_int_equal(admit_address(name, "many.example.", 0), HYDNSD_ACCEPTED);
	}
	assert_false(withdraw_at_once("many.example.", &withdrawn));
	for (uint32_t i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "n%u.example.", i);
		assert_true(withdraw_at_once(name, &withdrawn));
		assert_int_equal(withdrawn, 1);
	}
	assert_true(withdraw_at_once("many.example.", &withdrawn));
	assert_int_equal(withdrawn, many - 200);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 0);
}

/* Names, some of no rule or of another resolver's, and a few subtrees share scans. Each removes what it would remove alone, one
 * after the other. */
static void a_shared_pass_does_as_single_ones(void **state)
{
	static struct hydnsd_withdrawal w[HYDNSD_SCAN_MAX];
	struct hydnsd_scan scan = { .count = HYDNSD_SCAN_MAX };

	(void)state;
	fill_with_random_rules();
	for (int round = 0; round < 5; round++) {
		uint32_t expected[HYDNSD_SCAN_MAX];

		for (int i = 0; i < HYDNSD_SCAN_MAX; i++) {
			char name[64];

			random_zone(name);
			w[i] = (struct hydnsd_withdrawal){
				.resolver = random() % 8 ? 1 : 2,
				.scope = random() % 32 ? HYDNS_SCOPE_NAME : HYDNS_SCOPE_SUBTREE,
			};
			if (random() % 2)
				strcpy(name, question[random() % NAMES]);
			w[i].name_len = (uint8_t)wire_of(name, w[i].name);
			expected[i] = w[i].resolver == 1 ? forget_texts(w[i].scope, name) : 0;
			scan.of[i] = &w[i];
		}
		whole_scan(&scan);
		for (int i = 0; i < HYDNSD_SCAN_MAX; i++)
			assert_int_equal(w[i].withdrawn, expected[i]);
		assert_store_as_texts();
		build_store_grace(&store);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STORE(withdrawals_find_every_owner),
		ON_STORE(aliases_hang_on_targets_that_are_not_shown),
		ON_STORE(negative_answers_hang_on_their_zone),
		ON_STORE(names_left_out_count),
		ON_STORE(other_names_left_out_replace), ON_STORE(other_errors_replace),
		ON_STORE(changes_spare_later_offers),
		ON_STORE(changes_take_adopted_rules),
		ON_STORE(one_question_outdated), cmocka_unit_test(what_is_lost_is_known),
		ON_STORE(everything_can_be_withdrawn),
		ON_STORE(signatures_miss_nothing),
		ON_STORE(names_are_withdrawn_at_once),
		ON_STORE(a_name_of_many_rules_takes_a_pass),
		ON_STORE(a_shared_pass_does_as_single_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
