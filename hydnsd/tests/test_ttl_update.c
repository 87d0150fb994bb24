/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* TTL updates in rules of other questions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/tests/store.h"

static uint32_t update_ttl(const char *owner, uint16_t rrtype, uint32_t ttl)
{
	struct hydnsd_withdrawal w = {
		.resolver = 1, .scope = HYDNS_SCOPE_NAME, .generation = 9, .rrtype = rrtype,
		.end_ns = NOW_NS + ttl * HYDNS_NS_PER_S + HYDNS_NS_PER_S / 3,
	};
	struct hydnsd_scan p = { .of = { &w }, .count = 1 };

	w.name_len = (uint8_t)wire_of(owner, w.name);
	hydnsd_scan_begin(store.rules, &p);
	assert_true(hydnsd_scan_step(store.rules, &p, NOW_NS, UINT32_MAX));
	return w.withdrawn;
}

/* The TTL that the rule of a name (type A) shows for its only record of a type. */
static uint32_t ttl_shown(const char *name, uint16_t rrtype)
{
	const struct hydns_rule *rule = hydns_store_rule(hydnsd_rules_store(store.rules), find(name));
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint32_t pos = hydnsd_answer_start(&m);
	struct hydnsd_rr rr;

	while (pos < m.end && hydnsd_rr_read(&m, &pos, &rr, NULL))
		if (rr.type == rrtype)
			return rr.ttl;
	fail_msg("%s shows no record of type %u", name, rrtype);
	return 0;
}

#define SOA "example.com. 300 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 300"

/* The denial of another name refreshes the zone's SOA: the rule stays, with all that is known of it. */
static void renewed_rrsets_get_their_ttl(void **state)
{
	const struct build_spec nx = {
		.name = "no.example.com.", .type = 1, .rcode = 3, .authority_section = { SOA },
		.left_out = { "zzz.example.com." }, .errors = "text",
	};
	const struct build_spec apex = { .name = "example.com.", .type = 1, .answer = { "example.com. 300 IN A 192.0.2.1" } };
	const struct hydnsd_rules_counters *n = hydnsd_rules_counters(store.rules);
	const struct hydns_rule *rule, *former;
	uint32_t first;

	(void)state;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&apex, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	first = find("no.example.com.");
	former = hydns_store_rule(hydnsd_rules_store(store.rules), first);
	build_store_hit(&store, first, 5);
	assert_int_equal(update_ttl("example.com.", 6, 700), 0);
	assert_int_equal(n->renewed, 1);
	assert_int_not_equal(find("no.example.com."), first);
	assert_int_equal(ttl_shown("no.example.com.", 6), 700);
	assert_int_equal(ttl_shown("example.com.", 1), 300);
	rule = hydns_store_rule(hydnsd_rules_store(store.rules), find("no.example.com."));
	assert_int_equal(rule->base_ns + rule->expire_ms * HYDNS_NS_PER_MS, NOW_NS + 300 * HYDNS_NS_PER_S);
	assert_null(build_rule_fault(rule));
	/* the former slot waits for a grace period, and has not changed */
	assert_int_equal(former->place_count, 3);
	assert_int_equal(rule->place_count, 3);
	assert_memory_equal(hydns_rule_errors(rule), hydns_rule_errors(former), HYDNS_ERRORS_HEAD + 10);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(hydns_rule_place(rule, i), hydns_rule_place(former, i));
	/* the TTL that it has already, and a type that it does not show */
	assert_int_equal(update_ttl("example.com.", 6, 700), 0);
	assert_int_equal(update_ttl("no.example.com.", 28, 700), 0);
	assert_int_equal(n->renewed, 1);
	/* a change of one octet, in place */
	first = find("no.example.com.");
	assert_int_equal(update_ttl("example.com.", 6, 701), 0);
	assert_int_equal(n->renewed, 2);
	assert_int_equal(find("no.example.com."), first);
	assert_int_equal(ttl_shown("no.example.com.", 6), 701);
	assert_null(build_rule_fault(rule));
	/* the replacement depends on the same names */
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "zzz.example.com.", 1), 1);
	build_store_grace(&store);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 1);
}

/* A rule goes when its data may have changed, or when it cannot have the TTL. */
static void renewed_rrsets_end_rules(void **state)
{
	struct build_spec nx = { .name = "no.example.com.", .type = 1, .rcode = 3, .authority_section = { SOA } };

	(void)state;
	nx.flags = HYDNS_RULE_SECURE;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(update_ttl("example.com.", 6, 450), 1);
	nx.flags = 0;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(update_ttl("example.com.", 6, 200), 1);
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(update_ttl("example.com.", 6, 290), 1);    /* differs in one octet */
	nx.authority_section[1] = "example.com. 300 IN RRSIG SOA 8 2 300 20300101000000 20200101000000 1 example.com. AAAA";
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(update_ttl("example.com.", 6, 450), 1);
	assert_int_equal(hydnsd_rules_counters(store.rules)->renewed, 0);
}

/* The records of an RRset never have different TTLs, not even for a moment: no update in place. */
static void renewed_rrsets_stay_whole(void **state)
{
	const struct build_spec alias = {
		.name = "alias.example.com.", .type = 1, .answer = { "alias.example.com. 600 IN CNAME two.example.com.",
			"two.example.com. 300 IN A 192.0.2.1", "two.example.com. 300 IN A 192.0.2.2" },
	};
	uint32_t first;

	(void)state;
	assert_int_equal(admit(&alias, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	first = find("alias.example.com.");
	assert_int_equal(update_ttl("two.example.com.", 1, 301), 0);
	assert_int_not_equal(find("alias.example.com."), first);
	assert_int_equal(ttl_shown("alias.example.com.", 1), 301);
	assert_null(build_rule_fault(hydns_store_rule(hydnsd_rules_store(store.rules), find("alias.example.com."))));
}

/* A cache has two copies of an SOA, each with its own end: negative answers show one, answers to its question the other. */
static void copies_are_renewed_apart(void **state)
{
	const struct build_spec nx = { .name = "no.example.com.", .type = 1, .rcode = 3, .authority_section = { SOA } };
	const struct build_spec soa = { .name = "alias.example.org.", .type = 1,
					.answer = { "alias.example.org. 600 IN CNAME example.com.", SOA } };
	struct hydnsd_withdrawal w = {
		.resolver = 1, .scope = HYDNS_SCOPE_NAME, .generation = 9, .rrtype = 6, .section = HYDNS_SECTION_ANSWER,
		.end_ns = NOW_NS + 450 * HYDNS_NS_PER_S,
	};
	struct hydnsd_scan p = { .of = { &w }, .count = 1 };

	(void)state;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&soa, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	w.name_len = (uint8_t)wire_of("example.com.", w.name);
	hydnsd_scan_begin(store.rules, &p);
	assert_true(hydnsd_scan_step(store.rules, &p, NOW_NS, UINT32_MAX));
	assert_int_equal(w.withdrawn, 0);
	assert_int_equal(ttl_shown("no.example.com.", 6), 300);
	assert_int_equal(ttl_shown("alias.example.org.", 6), 450);
	w.section = HYDNS_SECTION_AUTHORITY;
	w.end_ns += 50 * HYDNS_NS_PER_S;
	hydnsd_scan_begin(store.rules, &p);
	assert_true(hydnsd_scan_step(store.rules, &p, NOW_NS, UINT32_MAX));
	assert_int_equal(w.withdrawn, 0);
	assert_int_equal(ttl_shown("no.example.com.", 6), 500);
	assert_int_equal(ttl_shown("alias.example.org.", 6), 450);
}

/* A TTL update and a change of data in one scan: the change finds the rule, wherever a replacement would be. */
static void changes_come_before_renewals(void **state)
{
	struct build_spec nx = { .name = "no.example.com.", .type = 1, .rcode = 3, .authority_section = { SOA } };
	struct hydnsd_withdrawal w[2] = {
		{ .resolver = 1, .scope = HYDNS_SCOPE_NAME, .rrtype = 6, .end_ns = NOW_NS + 450 * HYDNS_NS_PER_S },
		{ .resolver = 1, .scope = HYDNS_SCOPE_NAME },
	};
	struct hydnsd_scan p = { .of = { &w[0], &w[1] }, .count = 2 };

	(void)state;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	w[0].name_len = w[1].name_len = (uint8_t)wire_of("example.com.", w[0].name);
	memcpy(w[1].name, w[0].name, sizeof(w[0].name));
	hydnsd_scan_begin(store.rules, &p);
	assert_true(hydnsd_scan_step(store.rules, &p, NOW_NS, UINT32_MAX));
	assert_int_equal(w[1].withdrawn, 1);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STORE(renewed_rrsets_get_their_ttl),
		ON_STORE(renewed_rrsets_end_rules),
		ON_STORE(renewed_rrsets_stay_whole),
		ON_STORE(copies_are_renewed_apart),
		ON_STORE(changes_come_before_renewals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
