/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Heavy hitters against exact counts. Traces come from seeds, so a run finds what every run finds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "offload-policy/monitor.h"
#include "random.h"

#define CPUS 3
#define ALL  (HYDNS_HEAVY_SETS * HYDNS_HEAVY_ENTRIES * CPUS)

static struct hydns_heavy_set sets[HYDNS_HEAVY_SETS][CPUS];
static struct hydns_heavy_found top[ALL];
static __u64 secret[2];

static void begin(uint64_t seed)
{
	secret[0] = random_next(&seed);
	secret[1] = random_next(&seed);
	memset(sets, 0, sizeof(sets));
}

static uint32_t add(uint64_t key, unsigned cpu)
{
	return hydns_heavy_add(&sets[hydns_heavy_set_of(key, secret)][cpu], key);
}

/* A key's name from its number in the trace. */
static uint64_t key_of(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15ULL + 1;
}

static uint64_t number_of(uint64_t key)
{
	return (key - 1) * 0xf1de83e19937733dULL;      /* the inverse, modulo 2^64 */
}

/* Zipf of any exponent but 1 over 0 .. n - 1, by inversion of the continuous distribution. */
static uint64_t zipf(uint64_t *random, uint64_t n, double exponent)
{
	double u = (double)(random_next(random) >> 11) / (double)(1ULL << 53), e = 1 - exponent;
	uint64_t k = (uint64_t)pow(u * (pow((double)n + 1, e) - 1) + 1, 1 / e) - 1;

	return k < n ? k : n - 1;
}

struct verdict {
	uint64_t keys, wide, frequent, found;
};

/* What the list says of each key of a trace of this many sightings. */
static void judge(const uint32_t *exact, uint64_t distinct, uint64_t sightings, struct verdict *v)
{
	size_t n = hydns_heavy_top(&sets[0][0], CPUS, top, ALL);

	assert_true(n <= ALL);
	for (size_t i = 0; i < n; i++) {
		uint64_t number = number_of(top[i].key);

		assert_true(number < distinct);
		assert_true(top[i].least <= exact[number] && exact[number] <= top[i].most);
		assert_true(!i || top[i].least <= top[i - 1].least);
		assert_true(sets[top[i].set][top[i].cpu].entry[top[i].entry].key == top[i].key);
		v->keys++;
		v->wide += top[i].most - top[i].least > sightings / HYDNS_HEAVY_ERROR;
		v->found += exact[number] > sightings / HYDNS_HEAVY_ERROR;
	}
	for (uint64_t k = 0; k < distinct; k++)
		v->frequent += exact[k] > sightings / HYDNS_HEAVY_ERROR;
}

static void trace(uint64_t distinct, uint64_t sightings, double exponent, uint64_t seed, struct verdict *v)
{
	uint32_t *exact = calloc(distinct, sizeof(*exact));
	uint64_t random = seed;

	assert_non_null(exact);
	begin(seed);
	for (uint64_t i = 0; i < sightings; i++) {
		uint64_t number = exponent > 0 ? zipf(&random, distinct, exponent) : random_next(&random) % distinct;

		exact[number]++;
		add(key_of(number), (unsigned)(random_next(&random) % CPUS));
	}
	judge(exact, distinct, sightings, v);
	free(exact);
}

static void is_within_the_stated_error(void **state)
{
	const struct { uint64_t distinct, sightings; unsigned times; } sizes[] = {
		{ 100, 100000, 8 }, { 1000, 100000, 8 }, { 10000, 300000, 6 }, { 100000, 1000000, 2 }, { 1000000, 3000000, 1 },
		{ 10000000, 5000000, 1 },
	};
	const double exponents[] = { 0, 0.8, 1.1, 1.5 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct verdict v = { 0 };

		for (unsigned t = 0; t < sizes[i].times * 4; t++)
			trace(sizes[i].distinct, sizes[i].sightings, exponents[t % 4], 100 * i + t, &v);
		print_message("%9llu keys: %llu of %llu frequent ones found, bounds farther apart than N / %d: %.2f %%\n",
			      (unsigned long long)sizes[i].distinct, (unsigned long long)v.found, (unsigned long long)v.frequent,
			      HYDNS_HEAVY_ERROR, 100.0 * (double)v.wide / (double)v.keys);
		assert_true(v.frequent > 0 && v.found * 100 >= v.frequent * 95);
		assert_true(v.wide * 100 <= v.keys * 5);
	}
}

/* As long as all keys have entries, counts are exact; a key is new once on each CPU. */
static void few_keys_are_exact(void **state)
{
	(void)state;
	begin(1);
	for (unsigned i = 0; i < 30; i++)
		for (unsigned k = 0; k <= i; k++)
			assert_int_equal(add(key_of(k), i % CPUS) >= HYDNS_HEAVY_NEW, i < k + CPUS);
	assert_int_equal(hydns_heavy_top(&sets[0][0], CPUS, top, 5), 5);
	for (unsigned k = 0; k < 5; k++) {
		assert_true(top[k].key == key_of(k));
		assert_true(top[k].least == 30 - k && top[k].most == 30 - k);
	}
	assert_int_equal(hydns_heavy_top(&sets[0][0], CPUS, top, 0), 0);
	begin(2);
	assert_int_equal(hydns_heavy_top(&sets[0][0], CPUS, top, 5), 0);
}

/* The key of number 0 is one as any other, also while entries are free. */
static void zero_is_a_key(void **state)
{
	(void)state;
	begin(3);
	assert_true(add(0, 0) >= HYDNS_HEAVY_NEW);
	assert_true(add(0, 0) < HYDNS_HEAVY_NEW);
	assert_int_equal(hydns_heavy_top(&sets[0][0], CPUS, top, ALL), 1);
	assert_true(top[0].key == 0 && top[0].least == 2 && top[0].most == 2);
}

/* A flood of keys that come once hides none that is frequent. */
static void a_flood_hides_nothing(void **state)
{
	uint64_t random = 4;

	(void)state;
	begin(4);
	for (unsigned i = 0; i < 1000000; i++)
		add(i % 100 ? random_next(&random) | 1 : 2 * (i / 100 % 4), i % CPUS);
	assert_true(hydns_heavy_top(&sets[0][0], CPUS, top, 4) == 4);
	for (unsigned i = 0; i < 4; i++)
		assert_true(top[i].key % 2 == 0 && top[i].most >= 2500 && top[i].least <= 2500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_within_the_stated_error), cmocka_unit_test(few_keys_are_exact),
		cmocka_unit_test(zero_is_a_key), cmocka_unit_test(a_flood_hides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
