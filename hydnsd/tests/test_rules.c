/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Rules on plain memory: coming in, leaving, what a withdrawal takes along, and hits. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/resolvers/changed_names.h"
#include "hydnsd/resolvers/progress.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/rules/signature.h"
#include "hydnsd/tests/build.h"

#define NOW_NS   1000000000000ULL
#define CAPACITY 1000

static struct build_store store;

static enum hydnsd_rejection admit(const struct build_spec *spec, uint32_t resolver, uint32_t capacity,
				   uint64_t now_ns)
{
	static union build_offer offer;
	static struct hydnsd_answer answer;
	const struct hydnsd_offer_limits limits = { .now_ns = now_ns, .seed = 0x5eed, .rotates = true };
	const struct hydnsd_offerer by = {
		.resolver = resolver, .capacity = capacity, .refresh_percent = 10,
	};
	size_t len = build_offer(&offer, spec, now_ns);
	enum hydnsd_rejection why = hydnsd_offer_check(&offer.offer, len, &limits, &answer);

	return why ? why : hydnsd_rules_admit(store.rules, &by, &answer, now_ns);
}

static enum hydnsd_rejection admit_address_at(const char *name, const char *target, uint32_t count, uint64_t now_ns)
{
	char first[300], second[300];
	struct build_spec s = { .name = name, .type = 1, .count = count };

	if (target) {
		snprintf(first, sizeof(first), "%s 300 IN CNAME %s", name, target);
		snprintf(second, sizeof(second), "%s 300 IN A 192.0.2.1", target);
		s.answer[1] = second;
	} else {
		snprintf(first, sizeof(first), "%s 300 IN A 192.0.2.1", name);
	}
	s.answer[0] = first;
	return admit(&s, 1, 0, now_ns);
}

static enum hydnsd_rejection admit_address(const char *name, const char *target, uint32_t count)
{
	return admit_address_at(name, target, count, NOW_NS);
}

static size_t wire_of(const char *text, uint8_t *out)
{
	size_t at = 0;

	while (*text && strcmp(text, ".") != 0) {
		size_t n = strcspn(text, ".");

		out[at++] = (uint8_t)n;
		memcpy(out + at, text, n);
		at += n;
		text += n + 1;
	}
	out[at++] = 0;
	return at;
}

static uint32_t find(const char *name)
{
	uint8_t wire[HYDNS_NAME_MAX];
	size_t len = wire_of(name, wire);

	return hydns_store_find(hydnsd_rules_store(store.rules), wire, (uint8_t)len, htons(1), 0, 1);
}

/* In small pieces, of which there are no more than slots. */
static void whole_pass(struct hydnsd_scan *pass)
{
	uint32_t left = hydns_store_ordinals(hydnsd_rules_store(store.rules)) + 1;

	hydnsd_scan_begin(store.rules, pass);
	while (!hydnsd_scan_step(store.rules, pass, NOW_NS, 7))
		assert_true(left-- > 0);
}

static uint32_t withdraw_older(enum hydns_scope scope, const char *name, uint32_t resolver,
			       uint64_t generation)
{
	struct hydnsd_withdrawal w = { .resolver = resolver, .scope = scope, .generation = generation };
	struct hydnsd_scan pass = { .of = { &w }, .count = 1 };

	if (name)
		w.name_len = (uint8_t)wire_of(name, w.name);
	whole_pass(&pass);
	return w.withdrawn;
}

static uint32_t withdraw(enum hydns_scope scope, const char *name, uint32_t resolver)
{
	return withdraw_older(scope, name, resolver, 0);
}

static int open_store(void **state)
{
	(void)state;
	build_store_open(&store, CAPACITY, 0, NOW_NS);
	return 0;
}

static int close_store(void **state)
{
	(void)state;
	build_store_close(&store);
	return 0;
}

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

/* What an alias leads to may have no record in the answer: it withdraws the alias, by pass and by list, after a restart too. */
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

/* A negative answer depends on the zone that its SOA names. */
static void negative_answers_hang_on_their_zone(void **state)
{
	const struct build_spec nx = {
		.name = "no.such.example.com.", .type = 1, .rcode = 3, .resolver = {
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
		.name = "no.such.example.com.", .type = 1, .rcode = 3, .resolver = {
			"example.com. 900 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 900" },
		.left_out = { proof, "*.elsewhere.org." },
	};
}

/* A rule goes with what its answer does not show, after a restart too. */
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

static uint32_t renew(const char *owner, uint16_t rrtype, uint32_t ttl)
{
	struct hydnsd_withdrawal w = {
		.resolver = 1, .scope = HYDNS_SCOPE_NAME, .generation = 9, .rrtype = rrtype,
		.end_ns = NOW_NS + ttl * HYDNSD_NS_PER_SEC + HYDNSD_NS_PER_SEC / 3,
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

/* A zone's SOA is renewed by the denial of another name: the rule goes on, with all that is known of it. */
static void renewed_rrsets_get_their_ttl(void **state)
{
	const struct build_spec nx = {
		.name = "no.example.com.", .type = 1, .rcode = 3, .resolver = { SOA }, .left_out = { "zzz.example.com." },
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
	assert_int_equal(renew("example.com.", 6, 700), 0);
	assert_int_equal(n->renewed, 1);
	assert_int_not_equal(find("no.example.com."), first);
	assert_int_equal(ttl_shown("no.example.com.", 6), 700);
	assert_int_equal(ttl_shown("example.com.", 1), 300);
	rule = hydns_store_rule(hydnsd_rules_store(store.rules), find("no.example.com."));
	assert_int_equal(rule->base_ns + rule->expire_ms * HYDNSD_NS_PER_MS, NOW_NS + 300 * HYDNSD_NS_PER_SEC);
	assert_null(build_rule_fault(rule));
	/* its slot waits for a grace period, and is as it was */
	assert_int_equal(former->place_count, 3);
	assert_int_equal(rule->place_count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(hydns_rule_place(rule, i), hydns_rule_place(former, i));
	/* as it stands already, and by a type that it does not show */
	assert_int_equal(renew("example.com.", 6, 700), 0);
	assert_int_equal(renew("no.example.com.", 28, 700), 0);
	assert_int_equal(n->renewed, 1);
	/* in one octet: where it stands */
	first = find("no.example.com.");
	assert_int_equal(renew("example.com.", 6, 701), 0);
	assert_int_equal(n->renewed, 2);
	assert_int_equal(find("no.example.com."), first);
	assert_int_equal(ttl_shown("no.example.com.", 6), 701);
	assert_null(build_rule_fault(rule));
	/* the successor rests on the same names, and hits are counted to the end */
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "zzz.example.com.", 1), 1);
	build_store_grace(&store);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 1);
}

/* What may say something else now, or can't be told, goes. */
static void renewed_rrsets_end_rules(void **state)
{
	struct build_spec nx = { .name = "no.example.com.", .type = 1, .rcode = 3, .resolver = { SOA } };

	(void)state;
	nx.flags = HYDNS_RULE_SECURE;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(renew("example.com.", 6, 450), 1);
	nx.flags = 0;
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(renew("example.com.", 6, 200), 1);
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(renew("example.com.", 6, 290), 1);    /* which differs in one octet */
	nx.resolver[1] = "example.com. 300 IN RRSIG SOA 8 2 300 20300101000000 20200101000000 1 example.com. AAAA";
	assert_int_equal(admit(&nx, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(renew("example.com.", 6, 450), 1);
	assert_int_equal(hydnsd_rules_counters(store.rules)->renewed, 0);
}

/* The records of an RRset never show different TTLs, not even for a moment. */
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
	assert_int_equal(renew("two.example.com.", 1, 301), 0);
	assert_int_not_equal(find("alias.example.com."), first);
	assert_int_equal(ttl_shown("alias.example.com.", 1), 301);
	assert_null(build_rule_fault(hydns_store_rule(hydnsd_rules_store(store.rules), find("alias.example.com."))));
}

/* Two copies of a SOA, each with an end of its own: negative answers show one, answers to its question the other. */
static void copies_are_renewed_apart(void **state)
{
	const struct build_spec nx = { .name = "no.example.com.", .type = 1, .rcode = 3, .resolver = { SOA } };
	const struct build_spec soa = { .name = "alias.example.org.", .type = 1,
					.answer = { "alias.example.org. 600 IN CNAME example.com.", SOA } };
	struct hydnsd_withdrawal w = {
		.resolver = 1, .scope = HYDNS_SCOPE_NAME, .generation = 9, .rrtype = 6, .section = HYDNS_SECTION_ANSWER,
		.end_ns = NOW_NS + 450 * HYDNSD_NS_PER_SEC,
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
	w.end_ns += 50 * HYDNSD_NS_PER_SEC;
	hydnsd_scan_begin(store.rules, &p);
	assert_true(hydnsd_scan_step(store.rules, &p, NOW_NS, UINT32_MAX));
	assert_int_equal(w.withdrawn, 0);
	assert_int_equal(ttl_shown("no.example.com.", 6), 500);
	assert_int_equal(ttl_shown("alias.example.org.", 6), 450);
}

/* A renewal and a change of data in one pass: wherever the successor would come to stand, the change finds the rule. */
static void changes_come_before_renewals(void **state)
{
	struct build_spec nx = { .name = "no.example.com.", .type = 1, .rcode = 3, .resolver = { SOA } };
	struct hydnsd_withdrawal w[2] = {
		{ .resolver = 1, .scope = HYDNS_SCOPE_NAME, .rrtype = 6, .end_ns = NOW_NS + 450 * HYDNSD_NS_PER_SEC },
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

/* The same answer by another proof is another rule. */
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

static void admit_at(const char *name, const char *record, uint8_t variant, uint64_t generation)
{
	struct build_spec s = {
		.name = name, .type = 1, .answer = { record }, .variant = variant, .generation = generation,
	};

	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
}

/* What was offered at the change's generation or later was made from the changed cache. */
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

/* When a rule was offered that a former hydnsd left, nobody knows: whatever number a change has, it takes it. */
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
		admit_at("a.example.", "a.example. 300 IN A 192.0.2.9", 0, generation[i]); /* its number is known */
		assert_int_equal(withdraw_older(HYDNS_SCOPE_NAME, "a.example.", 1, generation[i]), 0);
		assert_int_equal(withdraw(HYDNS_SCOPE_ALL, NULL, 1), 1);
	}
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

/* Whatever a resolver promises, others keep an equal share of a full store, and get theirs from one that has more. */
static void promises_take_no_more_than_a_share(void **state)
{
	uint64_t now = NOW_NS;

	(void)state;
	fill("a%u.example.", CAPACITY, 1, 10, now);
	assert_int_equal(rules_of(1), CAPACITY);
	/* evictions are so many a second */
	for (unsigned round = 0; round < 20; round++, now += 10 * HYDNSD_NS_PER_SEC)
		fill("b%u.example.", 2 * CAPACITY, 2, UINT32_MAX, now);
	assert_in_range(rules_of(2), CAPACITY / 2, CAPACITY / 2 + 1);
	assert_int_equal(rules_of(1) + rules_of(2), CAPACITY);
	for (unsigned round = 0; round < 20; round++, now += HYDNSD_NS_PER_SEC)
		fill("c%u.example.", CAPACITY, 3, UINT32_MAX, now);
	assert_in_range(rules_of(3), CAPACITY / 3, CAPACITY / 3 + 1);
}

/* A renewal that concerns one question takes its outdated variants, and nothing else of the name. */
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

/* Random rules and withdrawals against a comparison of texts. */
#define NAMES 400
static char owner[NAMES][64], target[NAMES][64];
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
		snprintf(owner[i], sizeof(owner[i]), "n%d.%.50s", i, zone);
		random_zone(target[i]);
		assert_int_equal(admit_address(owner[i], target[i], 0), HYDNSD_ACCEPTED);
		there[i] = true;
	}
}

static bool text_below(const char *name, const char *zone)
{
	size_t n = strlen(name), z = strlen(zone);

	return n >= z && strcmp(name + n - z, zone) == 0 && (n == z || name[n - z - 1] == '.');
}

/* How many go that are there, by their texts. */
static uint32_t forget_texts(enum hydns_scope scope, const char *name)
{
	uint32_t gone = 0;

	for (int i = 0; i < NAMES; i++) {
		bool hit = scope == HYDNS_SCOPE_SUBTREE ?
			   text_below(owner[i], name) || text_below(target[i], name) :
			   strcmp(owner[i], name) == 0 || strcmp(target[i], name) == 0;

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
		assert_int_equal(find(owner[i]) != 0, there[i]);
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

/* False: only a pass would tell. */
static bool withdraw_at_once(const char *name, uint32_t *withdrawn)
{
	struct hydnsd_withdrawal w = { .resolver = 1, .scope = HYDNS_SCOPE_NAME };

	w.name_len = (uint8_t)wire_of(name, w.name);
	if (!hydnsd_rules_withdraw(store.rules, &w, NOW_NS))
		return false;
	*withdrawn = w.withdrawn;
	return true;
}

/* Single names, without a pass, also after a restart and for rules that took others' places. */
static void names_are_withdrawn_at_once(void **state)
{
	uint32_t withdrawn;

	(void)state;
	for (int restart = 0; restart < 2; restart++) {
		fill_with_random_rules();
		if (restart)
			build_store_reopen(&store, CAPACITY, NOW_NS);
		for (int round = 0; round < 300; round++) {
			const char *name = random() % 4 ? owner[random() % NAMES] : target[random() % NAMES];

			assert_true(withdraw_at_once(name, &withdrawn));
			assert_int_equal(withdrawn, forget_texts(HYDNS_SCOPE_NAME, name));
			build_store_grace(&store);
		}
		assert_store_as_texts();
		withdraw(HYDNS_SCOPE_ALL, NULL, 1);
		build_store_grace(&store);
	}
}

/* What very many rules depend on takes a pass; each of them goes at once all the while, and the name when few are left. */
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

/* Names, some of no rule or another resolver's, and a few subtrees share passes: each counts as if it came
 * alone, one after the other. */
static void a_shared_pass_does_as_single_ones(void **state)
{
	static struct hydnsd_withdrawal w[HYDNSD_SCAN_MAX];
	struct hydnsd_scan pass = { .count = HYDNSD_SCAN_MAX };

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
				strcpy(name, owner[random() % NAMES]);
			w[i].name_len = (uint8_t)wire_of(name, w[i].name);
			expected[i] = w[i].resolver == 1 ? forget_texts(w[i].scope, name) : 0;
			pass.of[i] = &w[i];
		}
		whole_pass(&pass);
		for (int i = 0; i < HYDNSD_SCAN_MAX; i++)
			assert_int_equal(w[i].withdrawn, expected[i]);
		assert_store_as_texts();
		build_store_grace(&store);
	}
}

static void successors_replace(void **state)
{
	struct build_spec s = {
		.name = "www.example.", .type = 1, .answer = { "www.example. 300 IN A 192.0.2.1" },
	};
	const struct hydnsd_rules_counters *c = hydnsd_rules_counters(store.rules);

	(void)state;
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_ACCEPTED);
	assert_int_equal(admit(&s, 1, 0, NOW_NS), HYDNSD_REJECT_KNOWN);
	assert_int_equal(admit(&s, 1, 0, NOW_NS + 10 * HYDNSD_NS_PER_SEC), HYDNSD_ACCEPTED);
	s.answer[0] = "www.example. 290 IN A 192.0.2.9"; /* same end, other data */
	assert_int_equal(admit(&s, 1, 0, NOW_NS + 10 * HYDNSD_NS_PER_SEC), HYDNSD_ACCEPTED);
	assert_int_equal(c->admitted, 1);
	assert_int_equal(c->replaced, 2);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 1);
}

static void rules_expire(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	hydnsd_rules_expire(store.rules, NOW_NS + 299 * HYDNSD_NS_PER_SEC, 100);
	assert_int_not_equal(find("www.example."), 0);
	hydnsd_rules_expire(store.rules, NOW_NS + 300 * HYDNSD_NS_PER_SEC, 100);
	assert_int_equal(find("www.example."), 0);
	assert_int_equal(hydnsd_rules_counters(store.rules)->expired, 1);
}

/* At a resolver's own capacity a hotter name takes the place of a colder one, a colder one takes none. */
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

/* All slots that a large answer fits are taken: a hotter one displaces, a colder one does not. */
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

/* A store that large answers fill long before its capacity adapts as one at its capacity does: hot newcomers displace
 * what is least hot, many a second, the plugins hear of a bar, and the capacity is back when the large ones have gone. */
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

/* However many small rules have filled the store, a large one that is hotter finds room. */
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

/* Hits are counted while a rule lives, in its slot or, as long as it is hot, by processor, when it leaves, and until the
 * grace period ends; each once. */
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
	build_store_hit(&store, handle, 2); /* by a program that held it */
	build_store_grace(&store);
	hydnsd_rules_sweep_resolver(store.rules, 1, NOW_NS);
	hydnsd_rules_counts(store.rules, 1, &c);
	assert_int_equal(c.type[1], HYDNS_HITS_IN_SLOT + 10);
	assert_int_equal(c.rcode[0], HYDNS_HITS_IN_SLOT + 10);
	assert_int_equal(c.edns_do, 0);
	assert_int_equal(c.rules, 0);
}

/* Hits between removal and the grace period count once, whoever asks in between. */
static void asking_meanwhile_counts_once(void **state)
{
	struct hydns_counts c = { 0 };
	uint32_t handle;

	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	handle = find("www.example.");
	withdraw(HYDNS_SCOPE_ALL, NULL, 1);
	build_store_hit(&store, handle, 2);
	hydnsd_rules_sweep_resolver(store.rules, 1, NOW_NS);
	build_store_grace(&store);
	assert_int_equal(admit_address("www.example.", NULL, 0), HYDNSD_ACCEPTED);
	hydnsd_rules_sweep_resolver(store.rules, 1, NOW_NS);
	hydnsd_rules_counts(store.rules, 1, &c);
	assert_int_equal(c.type[1], 2);
}

static uint64_t counted(void)
{
	struct hydns_counts c = { 0 };

	hydnsd_rules_sweep_resolver(store.rules, 1, NOW_NS);
	hydnsd_rules_counts(store.rules, 1, &c);
	assert_int_equal(c.type[1], c.rcode[0]);
	return c.type[1];
}

/* What came while no hydnsd ran counts; of a rule that left meanwhile nothing is counted twice, and a new one in its
 * place begins at nothing. */
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

/* A hydnsd that was killed between the two stores of one account: the next makes both. */
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
	t->of[1].type[1] = 5;                           /* the first was made */
	build_store_reopen(&store, CAPACITY, NOW_NS);
	assert_int_equal(counted(), 5);
	t->journal = (struct hydns_tally_journal){ .begun = 1, .ordinal = UINT32_MAX, .resolver = 1 };
	build_store_reopen(&store, CAPACITY, NOW_NS);   /* no such account */
	assert_int_equal(counted(), 5);
}

static void a_restart_keeps_the_rules(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.com.", "host.cdn.net.", 0), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("mail.example.com.", NULL, 0), HYDNSD_ACCEPTED);
	build_store_reopen(&store, CAPACITY, NOW_NS);
	assert_int_not_equal(find("www.example.com."), 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "host.cdn.net.", 1), 1);
	hydnsd_rules_expire(store.rules, NOW_NS + 300 * HYDNSD_NS_PER_SEC, 100);
	assert_int_equal(hydns_store_count(hydnsd_rules_store(store.rules)), 0);
}

/* -- what is hot and has no rule ------------------------------------------------------------------------------ */
#define SECOND_MS 1000
#define NOW_MS    (NOW_NS / HYDNSD_NS_PER_MS)

struct heard {
	unsigned count;
	struct hydnsd_missing last;
	uint64_t hottest;
};

static void hear(const struct hydnsd_missing *what, void *arg)
{
	struct heard *h = arg;

	h->count++;
	h->last = *what;
	if (what->rate > h->hottest)
		h->hottest = what->rate;
}

static struct heard heard(const struct hydnsd_missing_table *a, uint64_t now_ms)
{
	struct heard h = { 0 };

	hydnsd_missing_each(a, now_ms, hear, &h);
	return h;
}

/* Hot rules that leave are told with why; cold ones, and those that a newer answer replaces, are not. */
static void hot_rules_that_leave_are_told(void **state)
{
	struct hydnsd_missing_table *a = hydnsd_missing_new();
	struct heard h;

	(void)state;
	hydnsd_rules_set_missing(store.rules, a);
	assert_int_equal(admit_address("hot.example.", NULL, 1000), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address_at("hot.example.", NULL, 1000, NOW_NS + 5 * HYDNSD_NS_PER_SEC), HYDNSD_ACCEPTED);
	assert_int_equal(heard(a, NOW_MS).count, 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "hot.example.", 1), 1);
	h = heard(a, NOW_MS);
	assert_int_equal(h.count, 1);
	assert_string_equal(hydnsd_missing_reason(&h.last), "WITHDRAWN");
	assert_memory_equal(h.last.name, "\3hot\7example", 13);
	assert_true(h.last.rate >= 10 * 1000000 && h.last.resolver == 1 && h.last.qtype == htons(1));
	assert_int_equal(heard(a, NOW_MS + HYDNSD_MISSING_MS + 1).count, 0);
	build_store_grace(&store);
	assert_int_equal(admit_address("hot.example.", NULL, 1000), HYDNSD_ACCEPTED);
	hydnsd_rules_expire(store.rules, NOW_NS + 300 * HYDNSD_NS_PER_SEC, 100);
	h = heard(a, NOW_MS + 300 * SECOND_MS);
	assert_int_equal(h.count, 1);
	assert_string_equal(hydnsd_missing_reason(&h.last), "EXPIRED");
	hydnsd_rules_set_missing(store.rules, NULL);
	hydnsd_missing_free(a);
	a = hydnsd_missing_new();
	hydnsd_rules_set_missing(store.rules, a);
	assert_int_equal(admit_address("warm.example.", NULL, 100), HYDNSD_ACCEPTED);
	hydnsd_rules_set_capacity(store.rules, 0);
	hydnsd_rules_expire(store.rules, NOW_NS, 100);
	h = heard(a, NOW_MS);
	assert_int_equal(h.count, 1);
	assert_string_equal(hydnsd_missing_reason(&h.last), "EVICTED");
	hydnsd_rules_set_missing(store.rules, NULL);
	hydnsd_missing_free(a);
}

/* However many are told, memory is what it was, and the hottest is there; what is cold is not kept. */
static void the_hottest_absent_stay(void **state)
{
	static const uint8_t name[] = "\3www\7example";
	struct hydnsd_missing_table *a = hydnsd_missing_new();
	struct hydnsd_missing what = {
		.name = name, .name_len = sizeof(name), .refused = HYDNSD_REJECT_FULL, .at_ms = NOW_MS,
	};
	struct heard h;

	(void)state;
	what.rate = HYDNSD_MISSING_RATE_MIN - 1;
	what.key = 1;
	hydnsd_missing_record(a, &what);
	assert_int_equal(heard(a, NOW_MS).count, 0);
	for (uint64_t n = 0; n < 100000; n++) {
		what.key = n * 0x9e3779b97f4a7c15;
		what.rate = HYDNSD_MISSING_RATE_MIN + (n == 777 ? 1000000 : n % 1000);
		hydnsd_missing_record(a, &what);
	}
	h = heard(a, NOW_MS);
	assert_true(h.count > 100 && h.count * sizeof(what) < hydnsd_missing_bytes());
	assert_int_equal(h.hottest, HYDNSD_MISSING_RATE_MIN + 1000000);
	assert_string_equal(hydnsd_missing_reason(&h.last), "FULL");
	assert_true(hydnsd_missing_rate(10, 0) > 0);
	hydnsd_missing_free(a);
}

/* A question that left is hardly counted by its resolver when it is offered again: the former rate holds, for a while. */
static void a_former_rate_holds_for_a_while(void **state)
{
	static const uint8_t name[] = "\3www\7example";
	struct hydnsd_missing_table *a = hydnsd_missing_new();
	struct hydnsd_missing what = {
		.name = name, .name_len = sizeof(name), .removal = HYDNSD_REMOVAL_WITHDRAWN, .at_ms = NOW_MS, .key = 5,
		.rate = 500 * 1000000ULL,
	};
	struct heard h;

	(void)state;
	hydnsd_missing_record(a, &what);
	what.removal = HYDNSD_REMOVAL_NOT;
	what.refused = HYDNSD_REJECT_COLD;
	what.rate = 1000000;
	for (uint64_t at = 1; at <= 20; at++) {
		what.at_ms = NOW_MS + at * SECOND_MS;
		hydnsd_missing_record(a, &what);
		h = heard(a, what.at_ms);
		assert_int_equal(h.count, 1);
		assert_string_equal(hydnsd_missing_reason(&h.last), "COLD");
		assert_int_equal(h.last.rate, at < 10 ? 500 * 1000000ULL : 1000000);
	}
	hydnsd_missing_free(a);
}

#define RULES_TEST(f) cmocka_unit_test_setup_teardown(f, open_store, close_store)

/* A change discards older offers of its own name, and lets others by; what has been forgotten is taken
 * for a change of everything. */
/* Frames are given back in order, whatever order their withdrawals end in. */
static void a_ring_goes_back_when_all_is_done(void **state)
{
	struct hydnsd_begun b = { .next = UINT32_MAX, .oldest = UINT32_MAX };
	struct hydnsd_progress p;
	uint32_t first, second, at = UINT32_MAX - 100;

	(void)state;
	hydnsd_progress_start(&p, at, &b);
	assert_false(hydnsd_progress_advance(&p, at, &b));
	assert_true(hydnsd_progress_advance(&p, at + 8, &b));          /* nothing was begun */
	assert_int_equal(p.given, at + 8);
	first = hydnsd_begun_add(&b);
	assert_false(hydnsd_progress_advance(&p, at + 16, &b));
	second = hydnsd_begun_add(&b);
	assert_false(hydnsd_progress_advance(&p, at + 24, &b));
	hydnsd_begun_done(&b, second);
	assert_false(hydnsd_progress_advance(&p, at + 160, &b));
	assert_int_equal(p.given, at + 8);
	second = hydnsd_begun_add(&b);
	hydnsd_begun_done(&b, first);
	assert_true(hydnsd_progress_advance(&p, at + 168, &b));        /* what the first alone held back */
	assert_int_equal(p.given, at + 16);
	hydnsd_begun_done(&b, second);
	assert_true(hydnsd_progress_advance(&p, at + 168, &b));
	assert_int_equal(p.given, at + 168);
	for (first = 0; !hydnsd_begun_full(&b); first++)
		hydnsd_begun_add(&b);
	assert_int_equal(first, HYDNSD_BEGUN_MAX);
}

static void changes_discard_their_own_names(void **state)
{
	static const uint8_t www[] = "\3www\7example\3net", other[] = "\4mail\7example\3org";
	struct hydnsd_changed_names c = { .next = 0 };
	uint64_t mine = 0, its = 0;

	(void)state;
	hydnsd_name_hash(www, sizeof(www), 1, &mine);
	hydnsd_name_hash(other, sizeof(other), 1, &its);
	assert_false(hydnsd_changed_names_affect(&c, 0, mine));
	hydnsd_changed_names_record(&c, 7, hydnsd_signature_of(www, sizeof(www), 1));
	assert_true(hydnsd_changed_names_affect(&c, 6, mine));
	assert_false(hydnsd_changed_names_affect(&c, 7, mine));
	assert_false(hydnsd_changed_names_affect(&c, 6, its));
	for (uint64_t g = 8; g < 8 + HYDNSD_CHANGED_NAMES; g++)
		hydnsd_changed_names_record(&c, g, hydnsd_signature_of(www, sizeof(www), 1));
	assert_false(hydnsd_changed_names_affect(&c, 7, its));
	assert_true(hydnsd_changed_names_affect(&c, 6, its));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULES_TEST(withdrawals_find_every_owner), RULES_TEST(aliases_hang_on_targets_that_are_not_shown),
		RULES_TEST(negative_answers_hang_on_their_zone),
		RULES_TEST(names_left_out_count),
		RULES_TEST(renewed_rrsets_get_their_ttl),
		RULES_TEST(renewed_rrsets_end_rules),
		RULES_TEST(renewed_rrsets_stay_whole),
		RULES_TEST(copies_are_renewed_apart),
		RULES_TEST(changes_come_before_renewals),
		RULES_TEST(other_names_left_out_replace),
		RULES_TEST(changes_spare_later_offers), RULES_TEST(changes_take_adopted_rules),
		RULES_TEST(promises_take_no_more_than_a_share),
		cmocka_unit_test(a_ring_goes_back_when_all_is_done),
		RULES_TEST(one_question_outdated),
		RULES_TEST(everything_can_be_withdrawn),
		RULES_TEST(signatures_miss_nothing),
		RULES_TEST(names_are_withdrawn_at_once),
		RULES_TEST(a_name_of_many_rules_takes_a_pass),
		RULES_TEST(a_shared_pass_does_as_single_ones),
		RULES_TEST(successors_replace),
		RULES_TEST(rules_expire),
		RULES_TEST(a_resolver_keeps_within_its_capacity),
		RULES_TEST(no_slot_is_taken_from_a_better_rule),
		RULES_TEST(a_store_full_of_large_rules_adapts),
		RULES_TEST(small_rules_leave_room_for_large_ones),
		RULES_TEST(capacity_holds_and_the_hottest_stay),
		RULES_TEST(hot_rules_that_leave_are_told),
		RULES_TEST(the_hottest_absent_stay),
		RULES_TEST(a_former_rate_holds_for_a_while),
		RULES_TEST(no_hit_is_lost),
		RULES_TEST(asking_meanwhile_counts_once), RULES_TEST(a_restart_keeps_the_counts),
		RULES_TEST(an_account_is_completed),
		RULES_TEST(changes_discard_their_own_names),
		RULES_TEST(a_restart_keeps_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
