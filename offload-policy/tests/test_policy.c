/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "offload-policy/policy.h"
#include "random.h"

#define NONE UINT32_MAX

static struct hydns_policy *policy(uint32_t capacity, uint32_t min_hits, uint32_t ids)
{
	struct hydns_policy_options o = { .capacity = capacity, .min_hits = min_hits, .hysteresis = 10 };
	struct hydns_policy *p = hydns_policy_new(&o, ids);

	assert_non_null(p);
	return p;
}

/* count sightings besides the one that led to the offer, by a question of its own for each id. */
static struct hydns_sighted sighted(uint64_t key, uint32_t count, uint32_t window_ms)
{
	return (struct hydns_sighted){ .key = key * 0x9e3779b97f4a7c15ULL, .count = count + 1, .window_ms = window_ms };
}

static void insert(struct hydns_policy *p, uint32_t id, uint32_t from, uint32_t count, uint32_t window_ms,
		   uint64_t expire_ms, uint64_t now_ms)
{
	const struct hydns_sighted s = sighted(id + 1, count, window_ms);

	hydns_policy_insert(p, id, from, &s, expire_ms, now_ms);
}

/* A question that no rule was ever for. */
static enum hydns_verdict offer(struct hydns_policy *p, uint32_t count, uint32_t window_ms, uint32_t life_ms,
				uint64_t now_ms, uint32_t *victim)
{
	const struct hydns_sighted s = sighted(1000000, count, window_ms);

	return hydns_policy_offer(p, &s, life_ms, now_ms, victim);
}

static void admits_by_hits_expected_in_the_life(void **state)
{
	struct hydns_policy *p = policy(10, 5, 16);
	uint32_t victim = 77;

	(void)state;
	/* 2 in 10 s, and the prior's half: 5 hits need 20 s */
	assert_int_equal(offer(p, 2, 10000, 19000, 0, &victim), HYDNS_REJECT_COLD);
	assert_int_equal(offer(p, 2, 10000, 21000, 0, &victim), HYDNS_ADMIT);
	assert_int_equal(offer(p, 1000, 10000, 0, 0, &victim), HYDNS_REJECT_COLD);
	assert_int_equal(victim, 77);
	hydns_policy_free(p);
}

static void newcomer_must_beat_the_least_by_the_hysteresis(void **state)
{
	struct hydns_policy *p = policy(3, 1, 8);
	uint32_t victim = NONE;

	(void)state;
	insert(p, 0, NONE, 300, 10000, 100000, 0);
	insert(p, 1, NONE, 100, 10000, 100000, 0);
	insert(p, 2, NONE, 200, 10000, 100000, 0);
	assert_int_equal(offer(p, 105, 10000, 100000, 0, &victim), HYDNS_REJECT_FULL);
	assert_int_equal(victim, NONE);
	assert_int_equal(offer(p, 115, 10000, 100000, 0, &victim), HYDNS_ADMIT_EVICT);
	assert_int_equal(victim, 1);
	hydns_policy_free(p);
}

static void expired_goes_first_however_hot(void **state)
{
	struct hydns_policy *p = policy(2, 1, 8);
	uint32_t victim = NONE;

	(void)state;
	insert(p, 0, NONE, 100000, 1000, 5000, 0);
	insert(p, 1, NONE, 1, 1000, 500000, 0);
	assert_int_equal(hydns_policy_expired(p, 4999), NONE);
	assert_int_equal(hydns_policy_expired(p, 5000), 0);
	assert_int_equal(hydns_policy_victim(p, 5000, NULL, NULL), 0);
	assert_int_equal(offer(p, 1, 1000, 1000, 5000, &victim), HYDNS_ADMIT_EVICT);
	assert_int_equal(victim, 0);
	hydns_policy_remove(p, 0);
	assert_int_equal(hydns_policy_expired(p, 5000), NONE);
	assert_int_equal(hydns_policy_victim(p, 5000, NULL, NULL), 1);
	hydns_policy_free(p);
}

/* Its slot will be free for another, so the end of its life is no reason against it. */
static void hot_rule_near_its_end_stays(void **state)
{
	struct hydns_policy *p = policy(2, 1, 8);

	(void)state;
	insert(p, 0, NONE, 100, 1000, 5000, 0);        /* 100/s, TTL 5 */
	insert(p, 1, NONE, 1, 1000, 86400000, 0);      /* 1/s, TTL a day */
	hydns_policy_hits(p, 0, 450, 4500);
	hydns_policy_hits(p, 1, 4, 4500);
	assert_int_equal(hydns_policy_victim(p, 4500, NULL, NULL), 1);
	hydns_policy_free(p);
}

static void rate_follows_the_hits(void **state)
{
	struct hydns_policy *p = policy(4, 1, 8);
	uint64_t now = 1000;

	(void)state;
	insert(p, 0, NONE, 10, 10000, 100000000, now);
	assert_in_range(hydns_policy_rate(p, 0), 1040000, 1060000);     /* 10.5 in 10 s */
	for (int i = 0; i < 300; i++)
		hydns_policy_hits(p, 0, 50, now += 1000);
	assert_in_range(hydns_policy_rate(p, 0), 48000000, 50500000);
	for (int i = 0; i < 300; i++)
		hydns_policy_hits(p, 0, 0, now += 1000);
	assert_in_range(hydns_policy_rate(p, 0), 13000, 14000);          /* quiet for 300 s: at most 4 / 300 s */
	/* No time gone, or time gone back: hits still count, nothing breaks. */
	hydns_policy_hits(p, 0, 60, now);
	hydns_policy_hits(p, 0, 60, now - 100000);
	assert_in_range(hydns_policy_rate(p, 0), 20000000, 26000000);
	hydns_policy_hits(p, 0, 0, UINT64_MAX);
	assert_true(hydns_policy_rate(p, 0) <= 26000000);
	hydns_policy_free(p);
}

/* A removed rule's question comes again: its ghost counts more than one new sighting. */
static void those_who_left_are_remembered(void **state)
{
	struct hydns_policy *p = policy(2, 0, 8);
	const struct hydns_sighted again = sighted(1, 0, 10000), other = sighted(77, 0, 10000);
	uint32_t victim = NONE;

	(void)state;
	insert(p, 0, NONE, 100, 10000, 1000, 0);
	hydns_policy_remove(p, 0);
	insert(p, 1, NONE, 20, 10000, 500000, 0);
	insert(p, 2, NONE, 30, 10000, 500000, 0);
	assert_int_equal(hydns_policy_offer(p, &other, 1000, 1000, &victim), HYDNS_REJECT_FULL);
	assert_int_equal(hydns_policy_offer(p, &again, 1000, 1000, &victim), HYDNS_ADMIT_EVICT);
	assert_int_equal(victim, 1);
	hydns_policy_free(p);
}

/* However many newcomers are better than the rules. */
static void evictions_are_bounded(void **state)
{
	enum { RULES = 10000, SECONDS = 10 };
	struct hydns_policy *p = policy(RULES, 0, RULES);
	unsigned evicted = 0;
	uint32_t victim;

	(void)state;
	for (uint32_t id = 0; id < RULES; id++)
		insert(p, id, NONE, 0, 1000000, 100000000, 0);
	for (unsigned i = 0; i < SECONDS * 100000; i++)
		evicted += offer(p, 1000, 1000, 100000, 1 + i / 100, &victim) == HYDNS_ADMIT_EVICT;
	assert_in_range(evicted, SECONDS * HYDNS_EVICTIONS_S(RULES), (SECONDS + 1) * HYDNS_EVICTIONS_S(RULES));
	hydns_policy_free(p);
}

/* Half the capacity: the least busy half goes. */
static void a_lowered_capacity_keeps_the_best(void **state)
{
	enum { RULES = 1000 };
	struct hydns_policy *p = policy(RULES, 0, RULES);

	(void)state;
	for (uint32_t id = 0; id < RULES; id++)
		insert(p, id, NONE, id, 10000, 100000000, 0);
	assert_int_equal(hydns_policy_excess(p), 0);
	hydns_policy_set_capacity(p, RULES / 2);
	assert_int_equal(hydns_policy_excess(p), RULES / 2);
	while (hydns_policy_excess(p))
		hydns_policy_remove(p, hydns_policy_victim(p, 1, NULL, NULL));
	for (uint32_t id = 0; id < RULES; id++)
		if (id > RULES * 9 / 16)       /* within a list's breadth */
			assert_true(hydns_policy_rate(p, id) > 0);
	hydns_policy_free(p);
}

/* hydns_policy_promises(), in the plugin, agrees with hydnsd's decision. */
static void bar_is_what_admits(void **state)
{
	struct hydns_policy *p = policy(2, 0, 8);
	uint32_t victim, threshold;

	(void)state;
	assert_int_equal(hydns_policy_threshold(p, 0), 0);
	insert(p, 0, NONE, 50, 10000, 500000, 0);
	insert(p, 1, NONE, 20, 10000, 500000, 0);
	threshold = hydns_policy_threshold(p, 0);
	for (uint32_t count = 0; count < 60; count++)
		assert_int_equal(hydns_policy_promises(count + 1, 10000, threshold),
				 offer(p, count, 10000, 1000, 0, &victim) == HYDNS_ADMIT_EVICT);
	hydns_policy_free(p);
}

static void successor_takes_the_rate_over(void **state)
{
	struct hydns_policy *p = policy(4, 1, 8);

	(void)state;
	insert(p, 3, NONE, 1000, 1000, 60000, 0);
	insert(p, 5, 3, 1, 1000, 120000, 0);
	hydns_policy_remove(p, 3);
	assert_in_range(hydns_policy_rate(p, 5), 999000000, 1001000000);
	assert_int_equal(hydns_policy_rate(p, 3), 0);
	insert(p, 5, 5, 1, 1000, 180000, 0);           /* in its own place */
	assert_in_range(hydns_policy_rate(p, 5), 999000000, 1001000000);
	assert_int_equal(hydns_policy_expired(p, 179999), NONE);
	assert_int_equal(hydns_policy_expired(p, 180000), 5);
	hydns_policy_free(p);
}

static void ignores_ids_it_does_not_hold(void **state)
{
	struct hydns_policy *p = policy(0, 1, 8);
	uint32_t victim;

	(void)state;
	hydns_policy_remove(p, 3);
	hydns_policy_remove(p, 800);
	hydns_policy_hits(p, 800, 1, 1);
	insert(p, 800, NONE, 1, 1, 1, 1);
	assert_int_equal(hydns_policy_victim(p, 1, NULL, NULL), NONE);
	assert_int_equal(hydns_policy_expired(p, 1), NONE);
	assert_int_equal(offer(p, 100, 1, 1000, 1, &victim), HYDNS_REJECT_FULL);
	assert_int_equal(hydns_policy_rate(p, 800), 0);
	hydns_policy_free(p);
	assert_null(hydns_policy_new(&(struct hydns_policy_options){ .capacity = 1 }, 0));
	hydns_policy_free(NULL);
}

/* -- against a trivial reference -------------------------------------------------------------------- */
enum { IDS = 512, CAPACITY = 300 };
struct reference {
	bool live;
	double hits, time, quiet;      /* seconds, at last */
	uint64_t last, expire;
};
#define MEMORY 3600.0          /* of a policy that was never asked for its threshold */

static double reference_rate(const struct reference *r, uint64_t now)
{
	double gone = (now > r->last ? now - r->last : 0) / 1000.0, keep = MEMORY / (MEMORY + gone);
	double rate = (r->hits * keep + 0.5) / ((r->time + gone) * keep), quiet = r->quiet + gone;

	return rate * quiet > 4 ? 4 / quiet : rate;
}

static bool divides(uint32_t id, void *arg)
{
	return id % *(const uint32_t *)arg == 0;
}

static unsigned reference_count(const struct reference *r)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < IDS; i++)
		n += r[i].live;
	return n;
}

/* The victim is expired if anything acceptable is, else within a list's breadth of the least rate. */
static void check_victim(struct hydns_policy *p, const struct reference *r, uint64_t now, uint32_t divisor)
{
	uint32_t victim = hydns_policy_victim(p, now, divides, &divisor);
	bool any = false, any_expired = false;
	double least = 0;

	for (uint32_t i = 0; i < IDS; i += divisor) {
		double w;

		if (!r[i].live)
			continue;
		w = reference_rate(&r[i], now);
		if (!any || w < least)
			least = w;
		any = true;
		any_expired |= r[i].expire <= now;
	}
	assert_int_equal(any, victim != NONE);
	if (!any)
		return;
	assert_true(victim % divisor == 0 && r[victim].live);
	assert_int_equal(any_expired, r[victim].expire <= now);
	if (!any_expired)
		assert_true(reference_rate(&r[victim], now) <= least * 1.13 + 1e-4);
}

static void check_expired(struct hydns_policy *p, const struct reference *r, uint64_t now)
{
	uint32_t id = hydns_policy_expired(p, now);
	uint64_t earliest = UINT64_MAX;

	for (uint32_t i = 0; i < IDS; i++)
		if (r[i].live && r[i].expire < earliest)
			earliest = r[i].expire;
	assert_int_equal(id != NONE, earliest <= now);
	if (id != NONE)
		assert_int_equal(r[id].expire, earliest);
}

/* A question that never comes twice, so there is no ghost of it. */
static void random_insert(struct hydns_policy *p, struct reference *r, uint64_t *rng, uint64_t now)
{
	static uint64_t serial = 1 << 20;
	const struct hydns_sighted s = sighted(serial++, random_below(rng, 1U << random_below(rng, 16)), 10000);
	struct reference new = { true, s.count - 1, s.window_ms / 1000.0, 0, now, 0 };
	uint32_t id = random_below(rng, IDS), from = NONE, victim = NONE;
	uint32_t life = 1 + random_below(rng, 1U << (5 + random_below(rng, 16)));

	if (reference_count(r) >= CAPACITY && !r[id].live) {
		if (hydns_policy_offer(p, &s, life, now, &victim) != HYDNS_ADMIT_EVICT)
			return;
		assert_true(victim < IDS && r[victim].live);
		hydns_policy_remove(p, victim);
		r[victim].live = false;
	} else if (random_below(rng, 4) == 0) {
		from = random_below(rng, IDS);
	}
	hydns_policy_insert(p, id, from, &s, now + life, now);
	if (from != NONE && r[from].live && reference_rate(&r[from], now) > reference_rate(&new, now))
		new = r[from];
	new.expire = now + life;
	r[id] = new;
}

/* Lists are as of the last reading of the counters, so the caller reads all. */
static void read_counters(struct hydns_policy *p, struct reference *r, uint64_t *rng, uint64_t now)
{
	for (uint32_t i = 0; i < IDS; i++) {
		uint32_t hits = random_below(rng, 1U << random_below(rng, 12));
		double gone;

		if (!r[i].live)
			continue;
		hydns_policy_hits(p, i, hits, now);
		gone = (now - r[i].last) / 1000.0;
		r[i].hits = (r[i].hits + hits) * MEMORY / (MEMORY + gone);
		r[i].time = (r[i].time + gone) * MEMORY / (MEMORY + gone);
		r[i].quiet = hits ? 0 : r[i].quiet + gone;
		r[i].last = now;
	}
}

static void agrees_with_reference_under_churn(void **state)
{
	static struct reference r[IDS];
	struct hydns_policy *p = policy(CAPACITY, 0, IDS);
	uint64_t rng = 42, now = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < 20; i++)
			random_insert(p, r, &rng, now);
		for (int i = 0; i < 4; i++) {
			uint32_t id = random_below(&rng, IDS);

			hydns_policy_remove(p, id);
			r[id].live = false;
		}
		now += random_below(&rng, 2000);
		read_counters(p, r, &rng, now);
		check_expired(p, r, now);
		check_victim(p, r, now, 1);
		check_victim(p, r, now, 2 + random_below(&rng, 300));
		for (uint32_t id; round % 3 == 0 && (id = hydns_policy_expired(p, now)) != NONE; ) {
			assert_true(r[id].live && r[id].expire <= now);
			hydns_policy_remove(p, id);
			r[id].live = false;
		}
		assert_true(reference_count(r) <= CAPACITY);
	}
	for (uint32_t id; (id = hydns_policy_victim(p, now, NULL, NULL)) != NONE; r[id].live = false)
		hydns_policy_remove(p, id);
	assert_int_equal(reference_count(r), 0);
	hydns_policy_free(p);
}

/* Names seen once, each with a long TTL, must not push out what is really asked for. */
static void one_time_names_evict_nothing(void **state)
{
	struct hydns_policy *p = policy(1000, 2, 2000);
	uint32_t victim;

	(void)state;
	for (uint32_t id = 0; id < 1000; id++)
		insert(p, id, NONE, 20, 10000, 300000, 0);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_not_equal(offer(p, 0, 10000, 86400000, i % 1000, &victim), HYDNS_ADMIT_EVICT);
	hydns_policy_free(p);
}

static void what_cools_down_is_replaced(void **state)
{
	struct hydns_policy *p = policy(100, 2, 200);
	uint64_t now = 0;
	uint32_t victim;

	(void)state;
	for (uint32_t id = 0; id < 100; id++)
		insert(p, id, NONE, 1000, 10000, 86400000, now);
	assert_int_equal(offer(p, 20, 10000, 86400000, now, &victim), HYDNS_REJECT_FULL);
	for (int i = 0; i < 600; i++) {
		now += 1000;
		for (uint32_t id = 0; id < 100; id++)
			hydns_policy_hits(p, id, id == 42 ? 0 : 100, now);
	}
	assert_int_equal(offer(p, 20, 10000, 86400000, now, &victim), HYDNS_ADMIT_EVICT);
	assert_int_equal(victim, 42);
	hydns_policy_free(p);
}

static void memory_is_what_is_stated(void **state)
{
	struct hydns_policy *p = policy(1000000, 1, 1000000);

	(void)state;
	assert_true(hydns_policy_bytes(p) <= HYDNS_POLICY_BYTES * 1000000 + 8192);
	hydns_policy_free(p);
}

#define BUSY 1000000000ULL      /* 1,000 a second */

static void refresh_lies_in_the_last_part_of_the_life(void **state)
{
	static const uint32_t lives[] = { 0, 1, 2, 999, 5000, 20000, 300000, 86400000, UINT32_MAX };
	uint64_t rng = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
		uint32_t life = lives[i];

		assert_int_equal(hydns_policy_refresh_at(life, 0, 1000, BUSY, 1), life);
		for (int n = 0; n < 1000; n++) {
			uint32_t percent = 1 + random_below(&rng, 120);
			uint32_t least = random_below(&rng, 5000);
			uint64_t rate = 1 + random_next(&rng) % BUSY, salt = random_next(&rng);
			uint32_t left = life - hydns_policy_refresh_at(life, percent, least, rate, salt);
			uint64_t most = (uint64_t)life * percent / 100;

			if (most < least)
				most = least;
			assert_true(left <= most && left <= life / 2);
			if (left)
				assert_true(left >= (least < life / 2 ? least : life / 2));
			assert_int_equal(left, life - hydns_policy_refresh_at(life, percent, least, rate, salt));
		}
	}
}

/* Three queries must be expected from the refresh on, and the lookups must pay, or there is none. */
static void what_is_cool_is_not_refreshed(void **state)
{
	(void)state;
	assert_int_equal(hydns_policy_refresh_at(3600000, 10, 2000, 0, 1), 3600000);
	/* 3,600 s, 10 %: three in the last part are one in 120 s, but that does not pay */
	assert_int_equal(hydns_policy_refresh_at(3600000, 10, 2000, 120000, 1), 3600000);
	/* 20 s, at least 2 s: it pays from r on where r * 0.05 s * 20 s = 2 s + 1 / r, 2.41 a second */
	assert_int_equal(hydns_policy_refresh_at(20000, 10, 2000, 2300000, 1), 20000);
	assert_int_equal(hydns_policy_refresh_at(20000, 10, 2000, 2500000, 1), 18000);
	for (uint64_t salt = 0; salt < 1000; salt++)
		assert_in_range(hydns_policy_refresh_at(3600000, 10, 2000, 500000, salt), 3576000, 3594000);
}

static void refreshes_of_equal_lives_are_spread(void **state)
{
	unsigned in_quarter[4] = { 0 };

	(void)state;
	/* from four times the least window to once: 292,000 to 298,000 ms */
	for (uint64_t salt = 0; salt < 4000; salt++) {
		uint32_t at = hydns_policy_refresh_at(300000, 10, 2000, BUSY, salt);

		assert_in_range(at, 292000, 298000);
		in_quarter[at == 298000 ? 3 : (at - 292000) / 1500]++;
	}
	for (int i = 0; i < 4; i++)
		assert_in_range(in_quarter[i], 900, 1100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(admits_by_hits_expected_in_the_life),
		cmocka_unit_test(newcomer_must_beat_the_least_by_the_hysteresis),
		cmocka_unit_test(expired_goes_first_however_hot),
		cmocka_unit_test(hot_rule_near_its_end_stays),
		cmocka_unit_test(rate_follows_the_hits),
		cmocka_unit_test(successor_takes_the_rate_over),
		cmocka_unit_test(those_who_left_are_remembered),
		cmocka_unit_test(evictions_are_bounded),
		cmocka_unit_test(a_lowered_capacity_keeps_the_best),
		cmocka_unit_test(bar_is_what_admits),
		cmocka_unit_test(ignores_ids_it_does_not_hold),
		cmocka_unit_test(agrees_with_reference_under_churn),
		cmocka_unit_test(one_time_names_evict_nothing),
		cmocka_unit_test(what_cools_down_is_replaced),
		cmocka_unit_test(memory_is_what_is_stated),
		cmocka_unit_test(refresh_lies_in_the_last_part_of_the_life),
		cmocka_unit_test(what_is_cool_is_not_refreshed),
		cmocka_unit_test(refreshes_of_equal_lives_are_spread),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
