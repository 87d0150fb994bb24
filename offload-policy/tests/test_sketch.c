/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "offload-policy/policy.h"
#include "random.h"

static const uint64_t SEED[2] = { 0x0123456789abcdefULL, 0xfedcba9876543210ULL };

static struct hydns_sketch *sketch(uint32_t width, uint32_t half_life_ms)
{
	struct hydns_sketch *s = hydns_sketch_new(width, half_life_ms, SEED);

	assert_non_null(s);
	return s;
}

static void touch_many(struct hydns_sketch *s, uint64_t key, unsigned times, uint64_t now_ms)
{
	while (times--)
		hydns_sketch_count(s, key, now_ms);
}

static void counts_one_key_exactly(void **state)
{
	struct hydns_sketch *s = sketch(1024, 1000);

	(void)state;
	assert_int_equal(hydns_sketch_estimate(s, 7), 0);
	for (uint32_t i = 1; i <= 250; i++)
		assert_int_equal(hydns_sketch_count(s, 7, 5), i);
	assert_int_equal(hydns_sketch_estimate(s, 7), 250);
	assert_int_equal(hydns_sketch_estimate(s, 8), 0);
	hydns_sketch_free(s);
}

/* The first sighting goes to the doorkeeper and counts as one; each of the others stands for several. */
static void weighs_one_for_many(void **state)
{
	struct hydns_sketch *s = sketch(1024, 1000);

	(void)state;
	assert_int_equal(hydns_sketch_weigh(s, 7, 16, 5), 1);
	assert_int_equal(hydns_sketch_weigh(s, 7, 16, 5), 17);
	assert_int_equal(hydns_sketch_count(s, 7, 5), 18);
	assert_int_equal(hydns_sketch_weigh(s, 7, 16, 5), 34);
	assert_int_equal(hydns_sketch_weigh(s, 7, 300, 5), 256);
	assert_int_equal(hydns_sketch_weigh(s, 7, 64, 5), 256);
	assert_int_equal(hydns_sketch_estimate(s, 8), 0);
	hydns_sketch_free(s);
}

/* Against exact counts: never below, and above only as the bound at the top of sketch.c allows. */
static void holds_its_error_bound(void **state)
{
	enum { KEYS = 20000, TOUCHES = 30000, WIDTH = 16384 };
	struct hydns_sketch *s = sketch(WIDTH, 1000000);
	uint32_t *truth = calloc(KEYS, sizeof(*truth));
	uint64_t rng = 1;
	unsigned beyond = 0;
	double excess = 0;
	/* e / 14 of what a block of 14 counters a row gets on average */
	double allowed = 2.71828 * TOUCHES / WIDTH;

	(void)state;
	for (unsigned i = 0; i < TOUCHES; i++) {
		uint32_t a = random_below(&rng, KEYS), b = random_below(&rng, KEYS);
		uint32_t key = a < b ? a : b;    /* skewed towards low numbers */

		truth[key]++;
		assert_true(hydns_sketch_count(s, key, 1) >= truth[key]);
	}
	for (uint32_t key = 0; key < KEYS; key++) {
		uint32_t estimate = hydns_sketch_estimate(s, key);

		assert_true(estimate >= truth[key]);
		beyond += estimate - truth[key] > allowed;
		excess += (double)(estimate - truth[key]) / KEYS;
	}
	print_message("%u of %u keys beyond the bound of %.0f, excess %.2f on average\n", beyond, KEYS, allowed,
		      excess);
	assert_true(beyond <= KEYS * 0.0183);
	assert_true(excess < 0.1);
	free(truth);
	hydns_sketch_free(s);
}

static void halves_with_time(void **state)
{
	struct hydns_sketch *s = sketch(1024, 1000);

	(void)state;
	touch_many(s, 1, 201, 0);
	hydns_sketch_count(s, 2, 999);
	assert_int_equal(hydns_sketch_estimate(s, 1), 201);
	hydns_sketch_count(s, 2, 1000);
	assert_int_equal(hydns_sketch_estimate(s, 1), 100);
	hydns_sketch_count(s, 2, 3000);
	assert_int_equal(hydns_sketch_estimate(s, 1), 25);
	assert_int_equal(hydns_sketch_count(s, 1, 3000), 26);
	hydns_sketch_count(s, 2, 100000);
	assert_int_equal(hydns_sketch_estimate(s, 1), 0);
	hydns_sketch_free(s);
}

/* The window is the time in which the counted sightings came, however often counts were halved, and why. */
static void window_matches_the_counts(void **state)
{
	struct hydns_sketch *s = sketch(4096, 10000);
	uint64_t rng = 4, now = 0;
	double sum = 0, expected = 0;

	(void)state;
	/* key 1 once in 100 ms among 20 others: halved by time and, when these come fast, by their number */
	for (unsigned i = 1; i < 200000; i++) {
		uint64_t other = 2 + random_next(&rng) / 2;

		now += i % 20 == 0 ? 100 : 0;
		hydns_sketch_count(s, i % 20 == 0 ? 1 : other, now);
		sum += i % 20 == 0 ? hydns_sketch_estimate(s, 1) : 0;
		expected += i % 20 == 0 ? hydns_sketch_window_ms(s) / 100.0 : 0;
	}
	print_message("counted %.0f where the window says %.0f\n", sum, expected);
	assert_true(sum > expected * 0.9 && sum < expected * 1.15);
	hydns_sketch_free(s);
}

static void saturates_without_wrapping(void **state)
{
	struct hydns_sketch *s = sketch(100000, 1000);

	(void)state;
	touch_many(s, 1, 200000, 0);
	assert_int_equal(hydns_sketch_estimate(s, 1), 256);
	hydns_sketch_count(s, 2, 1000);
	assert_int_equal(hydns_sketch_estimate(s, 1), 127);
	hydns_sketch_free(s);
}

static void survives_clocks_that_jump(void **state)
{
	struct hydns_sketch *s = sketch(1024, 1000);

	(void)state;
	touch_many(s, 1, 101, 50000);
	touch_many(s, 1, 100, 10);            /* back: nothing is aged */
	assert_int_equal(hydns_sketch_estimate(s, 1), 201);
	hydns_sketch_count(s, 2, 1010);       /* and ageing goes on from there */
	assert_int_equal(hydns_sketch_estimate(s, 1), 100);
	hydns_sketch_count(s, 2, UINT64_MAX);
	assert_int_equal(hydns_sketch_estimate(s, 1), 0);
	hydns_sketch_count(s, 2, 0);
	touch_many(s, 1, 101, 1);
	assert_int_equal(hydns_sketch_estimate(s, 1), 101);
	hydns_sketch_count(s, 2, UINT64_MAX);
	hydns_sketch_count(s, 2, UINT64_MAX);
	assert_int_equal(hydns_sketch_estimate(s, 1), 0);
	hydns_sketch_free(s);
}

/* A stream of names that never come again must not make any of them look hot, and must not hide or
 * inflate what is really hot. */
static void one_time_names_stay_cold(void **state)
{
	enum { ONCE = 200000, HOT = 1000 };
	struct hydns_sketch *s = sketch(65536, 10000);
	uint64_t rng = 3;
	uint32_t truth[HOT] = { 0 };
	unsigned looked_hot = 0;

	(void)state;
	for (unsigned i = 0; i < ONCE; i++) {
		uint32_t hot = random_below(&rng, HOT);

		looked_hot += hydns_sketch_count(s, 1000000 + random_next(&rng) / 2, i / 10) >= 4;
		hydns_sketch_count(s, hot, i / 10);
		truth[hot] += i / 10 >= 10000;
	}
	print_message("%u of %u one-time names looked as if seen 4 times\n", looked_hot, ONCE);
	assert_true(looked_hot < ONCE / 100);
	for (uint32_t i = 0; i < HOT; i++) {
		assert_true(hydns_sketch_estimate(s, i) >= truth[i] * 9 / 10);
		assert_true(hydns_sketch_estimate(s, i) <= truth[i] * 2);
	}
	hydns_sketch_free(s);
}

/* Without the seed, nobody can prepare keys that collide: two seeds place keys independently. */
static void placement_depends_on_the_seed(void **state)
{
	static const uint64_t other_seed[2] = { 1, 2 };
	enum { KEYS = 40000 };
	unsigned with[2] = { 0, 0 }, both = 0;

	(void)state;
	for (uint64_t key = 1; key <= KEYS; key++) {
		bool collides[2];

		for (int i = 0; i < 2; i++) {
			struct hydns_sketch *s = hydns_sketch_new(1, 1000, i ? other_seed : SEED);

			assert_non_null(s);
			touch_many(s, 0, 20, 0);
			collides[i] = hydns_sketch_count(s, key, 0) > 10;
			with[i] += collides[i];
			hydns_sketch_free(s);
		}
		both += collides[0] && collides[1];
	}
	print_message("%u and %u of %u keys collide with key 0, %u under both seeds\n", with[0], with[1], KEYS, both);
	/* 14^-4 of 40,000 keys: 1.04 expected in the one block there is */
	assert_true(with[0] < 7 && with[1] < 7);
	assert_true(both <= 1);
}

static void same_input_same_output(void **state)
{
	struct hydns_sketch *a = sketch(4096, 100), *b = sketch(4096, 100);
	uint64_t rng = 9;
	uint64_t now = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t key = random_below(&rng, 3000);

		now += random_below(&rng, 3);
		assert_int_equal(hydns_sketch_count(a, key, now), hydns_sketch_count(b, key, now));
	}
	hydns_sketch_free(a);
	hydns_sketch_free(b);
}

static void refuses_impossible_sizes(void **state)
{
	struct hydns_sketch *s = sketch(1, 1);

	(void)state;
	assert_true(hydns_sketch_bytes(s) < 256);
	hydns_sketch_free(s);
	assert_null(hydns_sketch_new(1024, 0, SEED));
	assert_null(hydns_sketch_new(UINT32_MAX, 1000, SEED));
	s = sketch(65536, 1000);
	assert_true(hydns_sketch_bytes(s) <= 65536 / 14 * 64 * 2 + 256);
	hydns_sketch_free(s);
	hydns_sketch_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_one_key_exactly),
		cmocka_unit_test(weighs_one_for_many),
		cmocka_unit_test(holds_its_error_bound),
		cmocka_unit_test(halves_with_time),
		cmocka_unit_test(window_matches_the_counts),
		cmocka_unit_test(saturates_without_wrapping),
		cmocka_unit_test(survives_clocks_that_jump),
		cmocka_unit_test(one_time_names_stay_cold),
		cmocka_unit_test(placement_depends_on_the_seed),
		cmocka_unit_test(same_input_same_output),
		cmocka_unit_test(refuses_impossible_sizes),
	};

	return cmocka_run_group_tests_name("sketch", tests, NULL, NULL);
}
