/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which rules outlive their resolver, and what they send then. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/tests/store.h"

#define ME 1

static const struct hydnsd_stale_terms terms = {
	.ttl = 30, .longest = 60, .error = { 0, HYDNS_OPTION_ERROR, 0, 2, 0, HYDNS_ERROR_STALE_ANSWER }, .error_len = 6,
};
static const struct hydnsd_stale_terms plain = { .ttl = 30, .longest = 60 };

static const struct hydns_rule *rule_of(const char *name)
{
	return hydns_store_rule(hydnsd_rules_store(store.rules), find(name));
}

/* As hydnsd does when the resolver has crashed. */
static uint32_t crash(const struct hydnsd_stale_terms *t)
{
	struct hydnsd_withdrawal w = { .resolver = ME, .scope = HYDNS_SCOPE_ALL, .keep_epoch = rule_of("www.example.")->epoch,
				       .keep_stale = true };
	struct hydnsd_scan scan = { .of = { &w }, .count = 1 };

	hydnsd_rules_stale_begin(store.rules, ME, t);
	whole_scan(&scan);
	return w.withdrawn;
}

static uint32_t ttl_of(const struct hydns_rule *rule, unsigned i)
{
	uint16_t at;
	uint32_t ttl;

	memcpy(&at, (const uint8_t *)rule + HYDNS_RULE_TTLS(rule->name_len, rule->answer_len) + 2 * i, sizeof(at));
	memcpy(&ttl, hydns_rule_answer(rule) + at, sizeof(ttl));
	return ntohl(ttl);
}

static void expire_at(uint64_t seconds)
{
	hydnsd_rules_expire(store.rules, NOW_NS + seconds * HYDNS_NS_PER_S, 100);
	build_store_grace(&store);
}

static void positive_answers_and_nodata_stay(void **state)
{
	struct build_spec nodata = { .name = "empty.example.", .type = 1,
				     .authority_section = { "example. 300 IN SOA a. b. 1 2 3 4 300" } };
	struct build_spec nxdomain = { .name = "none.example.", .type = 1, .rcode = HYDNS_RCODE_NXDOMAIN,
				       .authority_section = { "example. 300 IN SOA a. b. 1 2 3 4 300" } };
	struct build_spec failure = { .name = "fails.example.", .type = 1, .rcode = HYDNS_RCODE_SERVFAIL };
	struct build_spec zone = { .name = "zone.example.", .type = 1, .flags = HYDNS_RULE_STATIC_TTL,
				   .answer = { "zone.example. 300 IN A 192.0.2.1" } };

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&nodata, ME, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&nxdomain, ME, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&failure, ME, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&zone, ME, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(crash(&terms), 3);
	assert_int_not_equal(find("www.example."), 0);
	assert_int_not_equal(find("empty.example."), 0);
	assert_int_equal(find("none.example."), 0);
	assert_int_equal(find("fails.example."), 0);
	assert_int_equal(find("zone.example."), 0);
}

static void another_resolvers_rules_are_its_own(void **state)
{
	struct build_spec other = { .name = "www.example.", .type = 1, .answer = { "www.example. 300 IN A 192.0.2.9" } };

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&other, ME + 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(crash(&terms), 0);
	expire_at(300);
	assert_int_equal(hydnsd_rules_of(store.rules, ME), 1);
	assert_int_equal(hydnsd_rules_of(store.rules, ME + 1), 0);
}

/* Until its end a rule is as it was, but for refresh, which nobody would answer. */
static void the_own_life_goes_on(void **state)
{
	const struct hydns_rule *rule;

	(void)state;
	assert_int_equal(admit_address("www.example.", "target.example.", 0), HYDNSD_ACCEPTED);
	assert_true(rule_of("www.example.")->refresh_ms < 300000);
	crash(&terms);
	hydnsd_rules_sweep_of(store.rules, ME, NOW_NS);
	build_store_hit(&store, find("www.example."), 5);
	hydnsd_rules_sweep_of(store.rules, ME, NOW_NS + HYDNS_NS_PER_S);
	expire_at(299);
	rule = rule_of("www.example.");
	assert_int_equal(rule->refresh_ms, rule->expire_ms);
	assert_int_equal(rule->flags, 0);
	assert_int_equal(ttl_of(rule, 0), 300);
	assert_int_equal(hydnsd_rules_counters(store.rules)->stale_replies, 0);
}

static void then_all_records_have_the_stale_ttl(void **state)
{
	const struct hydns_rule *rule;

	(void)state;
	assert_int_equal(admit_address("www.example.", "target.example.", 0), HYDNSD_ACCEPTED);
	crash(&terms);
	expire_at(300);
	rule = rule_of("www.example.");
	assert_non_null(rule);
	assert_int_equal(rule->base_ns, NOW_NS + 300 * HYDNS_NS_PER_S);
	assert_int_equal(rule->expire_ms, 60000);
	assert_int_equal(rule->refresh_ms, 60000);
	assert_int_equal(rule->flags, HYDNS_RULE_STATIC_TTL | HYDNS_RULE_ERRORS);
	assert_int_equal(rule->ttl_count, 2);
	assert_int_equal(ttl_of(rule, 0), 30);
	assert_int_equal(ttl_of(rule, 1), 30);
	assert_int_equal(hydns_rule_errors(rule)->len, terms.error_len);
	assert_memory_equal(hydns_rule_errors(rule)->options, terms.error, terms.error_len);
	assert_null(build_rule_fault(rule));
	build_store_hit(&store, find("www.example."), 7);
	hydnsd_rules_sweep_of(store.rules, ME, NOW_NS + 301 * HYDNS_NS_PER_S);
	assert_int_equal(hydnsd_rules_counters(store.rules)->stale_replies, 7);
	assert_int_equal(hydnsd_rules_stale_replies(store.rules, ME), 7);
}

/* In the resolver's statistics they are no answers from zones. */
static void replies_are_counted_as_from_the_cache(void **state)
{
	struct hydns_counts c;

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	crash(&plain);
	expire_at(300);
	build_store_hit(&store, find("www.example."), 7);
	hydnsd_rules_sweep_of(store.rules, ME, NOW_NS + 301 * HYDNS_NS_PER_S);
	hydnsd_rules_counts(store.rules, ME, &c);
	assert_int_equal(c.rcode[0], 7);
	assert_int_equal(c.from_zone, 0);
}

static void the_longest_time_is_the_end(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	crash(&plain);
	expire_at(300);
	expire_at(359);
	assert_int_not_equal(find("www.example."), 0);
	assert_false(rule_of("www.example.")->flags & HYDNS_RULE_ERRORS);
	expire_at(360);
	assert_int_equal(find("www.example."), 0);
	assert_int_equal(hydnsd_rules_of(store.rules, ME), 0);
}

/* What was withdrawn before does not come back, and what the rule depends on still finds it. */
static void withdrawals_reach_them(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", "target.example.", 0), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("other.example.", NULL, 0), HYDNSD_ACCEPTED);
	crash(&plain);
	expire_at(300);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "target.example.", ME), 1);
	assert_int_equal(find("www.example."), 0);
	assert_int_not_equal(find("other.example."), 0);
}

/* A resolver that comes to the same index later has nothing of this. */
static void it_ends_with_the_resolver(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	crash(&plain);
	withdraw(HYDNS_SCOPE_ALL, NULL, ME);
	hydnsd_rules_stale_end(store.rules, ME);
	build_store_grace(&store);
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	expire_at(300);
	assert_int_equal(find("www.example."), 0);
}

/* Each replacement needs a slot, which the former rules free only after a grace period: the rules wait for it. */
static void a_full_store_keeps_them(void **state)
{
	char name[32];
	unsigned n = 0;

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	for (unsigned i = 0; i < 2 * CAPACITY; i++) {
		snprintf(name, sizeof(name), "n%u.example.", i);
		n += admit_address(name, NULL, 0) == HYDNSD_ACCEPTED;
	}
	n = hydnsd_rules_of(store.rules, ME);
	crash(&plain);
	for (unsigned i = 0; i < 2 * CAPACITY; i++)
		expire_at(300);
	assert_int_equal(hydnsd_rules_of(store.rules, ME), n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STORE(positive_answers_and_nodata_stay), ON_STORE(another_resolvers_rules_are_its_own),
		ON_STORE(the_own_life_goes_on), ON_STORE(then_all_records_have_the_stale_ttl),
		ON_STORE(replies_are_counted_as_from_the_cache), ON_STORE(the_longest_time_is_the_end),
		ON_STORE(withdrawals_reach_them), ON_STORE(it_ends_with_the_resolver), ON_STORE(a_full_store_keeps_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
