/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Estimates against exact counts. Keys come from seeds, so a run finds what every run finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "hydns/distinct.h"
#include "offload-policy/monitor.h"
#include "random.h"

#define MAPPED 0xffff0000ULL           /* ::ffff:0:0/96 in the second word of an address */

static uint8_t registers[HYDNS_DISTINCT_REGISTERS];

static void new_secret(uint64_t *random, __u64 secret[2])
{
	secret[0] = random_next(random);
	secret[1] = random_next(random);
}

/* Keys as clients have them: key number n of the many that differ. */
typedef void key_of(uint64_t n, uint64_t salt, __u64 addr[2]);

static void ipv4_in_order(uint64_t n, uint64_t salt, __u64 addr[2])
{
	uint32_t host = (uint32_t)(n + salt), be = __builtin_bswap32(host);

	addr[0] = 0;
	addr[1] = MAPPED | (uint64_t)be << 32;
}

static void ipv6_hosts_of_a_link(uint64_t n, uint64_t salt, __u64 addr[2])
{
	addr[0] = salt | 1;
	addr[1] = __builtin_bswap64(n);
}

static void ipv6_prefixes(uint64_t n, uint64_t salt, __u64 addr[2])
{
	addr[0] = __builtin_bswap64((salt | 1) + (n << 8)); /* /56 */
	addr[1] = 0x0100000000000000ULL;
}

static void by_chance(uint64_t n, uint64_t salt, __u64 addr[2])
{
	uint64_t state = salt ^ n << 1;

	addr[0] = random_next(&state);
	addr[1] = random_next(&state);
}

static key_of *const kinds[] = { ipv4_in_order, ipv6_hosts_of_a_link, ipv6_prefixes, by_chance };
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void add_keys(uint8_t *to, key_of *key, uint64_t first, uint64_t count, uint64_t salt, const __u64 secret[2])
{
	__u64 addr[2];

	for (uint64_t n = first; n < first + count; n++) {
		key(n, salt, addr);
		hydns_distinct_add(to, hydns_distinct_address(addr, secret));
	}
}

static bool within(double estimate, double truth)
{
	double most = truth * HYDNS_DISTINCT_ERROR / 1000;

	return estimate >= truth - most && estimate <= truth + most;
}

/* How many of so many estimates are within the error. */
static unsigned trials(uint64_t distinct, unsigned times)
{
	uint64_t random = distinct;
	unsigned good = 0;
	__u64 secret[2];

	for (unsigned t = 0; t < times; t++) {
		new_secret(&random, secret);
		memset(registers, 0, sizeof(registers));
		add_keys(registers, kinds[t % KINDS], 0, distinct, random_next(&random), secret);
		good += within(hydns_distinct_estimate(registers), (double)distinct);
	}
	return good;
}

static void is_within_the_stated_error(void **state)
{
	const struct { uint64_t distinct; unsigned times; } sizes[] = {
		{ 100, 4000 }, { 1000, 4000 }, { 4096, 2000 }, { 10000, 2000 }, { 20000, 1000 }, { 100000, 400 }, { 1000000, 100 },
		{ 10000000, 40 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		unsigned good = trials(sizes[i].distinct, sizes[i].times);

		print_message("%9llu distinct: %5.1f %% of %u estimates within %.1f %%\n", (unsigned long long)sizes[i].distinct,
			      100.0 * good / sizes[i].times, sizes[i].times, HYDNS_DISTINCT_ERROR / 10.0);
		assert_true(good * 100 >= sizes[i].times * 95);
	}
}

/* The mean of many estimates: nothing pulls them to one side, neither for few keys nor where the original estimator changed
 * its formula (2.5 m). */
static void has_no_bias(void **state)
{
	const uint64_t sizes[] = { 100, 1000, 4096, 10240, 20480, 100000 };
	uint64_t random = 5;
	__u64 secret[2];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		double sum = 0, truth = (double)sizes[i];

		for (unsigned t = 0; t < 400; t++) {
			new_secret(&random, secret);
			memset(registers, 0, sizeof(registers));
			add_keys(registers, ipv4_in_order, 0, sizes[i], random_next(&random), secret);
			sum += hydns_distinct_estimate(registers);
		}
		/* 1.63 % / sqrt(400) is 0.08 % */
		assert_true(sum / 400 > truth * 0.997 && sum / 400 < truth * 1.003);
	}
}

static void none_and_few(void **state)
{
	const __u64 secret[2] = { 3, 4 };

	(void)state;
	memset(registers, 0, sizeof(registers));
	assert_true(hydns_distinct_estimate(registers) == 0);
	for (uint64_t n = 1; n <= 5; n++) {
		add_keys(registers, by_chance, n, 1, 9, secret);
		assert_int_equal((int)(hydns_distinct_estimate(registers) + 0.5), n);
	}
}

/* A million packets of a thousand clients, in any order, are a thousand clients: the registers are the same. */
static void repeats_change_nothing(void **state)
{
	const __u64 secret[2] = { 17, 18 };
	uint8_t once[HYDNS_DISTINCT_REGISTERS] = { 0 };
	uint64_t random = 6;

	(void)state;
	memset(registers, 0, sizeof(registers));
	add_keys(once, ipv4_in_order, 0, 1000, 0x0a000000, secret);
	memcpy(registers, once, sizeof(once));
	for (unsigned i = 0; i < 1000000; i++)
		add_keys(registers, ipv4_in_order, random_below(&random, 1000), 1, 0x0a000000, secret);
	assert_memory_equal(registers, once, sizeof(once));
	assert_true(within(hydns_distinct_estimate(once), 1000));
}

/* Registers of several CPUs, whose keys overlap, are merged to what one CPU would have. */
static void merges_cpus(void **state)
{
	enum { CPUS = 8, EACH = 30000, SHARED = 10000 };
	static uint8_t cpu[CPUS][HYDNS_DISTINCT_REGISTERS], all[HYDNS_DISTINCT_REGISTERS];
	const __u64 secret[2] = { 21, 22 };
	const uint64_t step = EACH - SHARED;

	(void)state;
	memset(registers, 0, sizeof(registers));
	for (uint64_t i = 0; i < CPUS; i++) {
		add_keys(cpu[i], by_chance, i * step, EACH, 7, secret);
		add_keys(all, by_chance, i * step, EACH, 7, secret);
		hydns_distinct_merge(registers, cpu[i]);
	}
	assert_memory_equal(registers, all, sizeof(all));
	assert_true(within(hydns_distinct_estimate(registers), (double)(CPUS * step + SHARED)));
}

/* The highest rank is no special case for the update: it stays, and a register never decreases. */
static void highest_rank(void **state)
{
	(void)state;
	memset(registers, 0, sizeof(registers));
	hydns_distinct_add(registers, 0);
	assert_int_equal(registers[0], HYDNS_DISTINCT_RANK_MOST);
	hydns_distinct_add(registers, 0);
	hydns_distinct_add(registers, 1);
	assert_int_equal(registers[0], HYDNS_DISTINCT_RANK_MOST);
	for (unsigned rank = 1; rank < HYDNS_DISTINCT_RANK_MOST; rank++) {
		hydns_distinct_add(registers, 1ULL << (rank - 1) | 1ULL << (64 - HYDNS_DISTINCT_BITS));
		assert_int_equal(registers[1], rank);
	}
	hydns_distinct_add(registers, ~0ULL);
	assert_int_equal(registers[HYDNS_DISTINCT_REGISTERS - 1], 1);
}

/* Someone who knew the secret could choose keys that look like a hundred times as many. With another secret they are what
 * they are. */
static void chosen_keys_need_the_secret(void **state)
{
	enum { CHOSEN = 60000, RANK_LEAST = 9 };
	const __u64 known[2] = { 31, 32 }, secret[2] = { 33, 34 };
	uint8_t fooled[HYDNS_DISTINCT_REGISTERS] = { 0 };
	unsigned chosen = 0;

	(void)state;
	memset(registers, 0, sizeof(registers));
	for (uint64_t n = 0; chosen < CHOSEN; n++) {
		__u64 addr[2], hash;

		ipv4_in_order(n, 0, addr);
		hash = hydns_distinct_address(addr, known);
		if (hash & ((1ULL << (RANK_LEAST - 1)) - 1))
			continue;
		hydns_distinct_add(fooled, hash);
		hydns_distinct_add(registers, hydns_distinct_address(addr, secret));
		chosen++;
	}
	assert_true(hydns_distinct_estimate(fooled) > 100.0 * CHOSEN);
	assert_true(within(hydns_distinct_estimate(registers), CHOSEN));
}

/* Pairs of addresses with two differences that would cancel out if the first word were only multiplied once: all are
 * counted. */
static void differences_do_not_cancel(void **state)
{
	const __u64 secret[2] = { 41, 42 };
	uint64_t random = 8;

	(void)state;
	memset(registers, 0, sizeof(registers));
	for (unsigned i = 0; i < 10000; i++) {
		__u64 a[2] = { random_next(&random), random_next(&random) };
		__u64 b[2] = { a[0] ^ 1ULL << 63, a[1] ^ (1ULL << 63 | 1ULL << 30) };

		hydns_distinct_add(registers, hydns_distinct_address(a, secret));
		hydns_distinct_add(registers, hydns_distinct_address(b, secret));
	}
	assert_true(within(hydns_distinct_estimate(registers), 20000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_within_the_stated_error), cmocka_unit_test(has_no_bias), cmocka_unit_test(none_and_few),
		cmocka_unit_test(repeats_change_nothing), cmocka_unit_test(merges_cpus), cmocka_unit_test(highest_rank),
		cmocka_unit_test(chosen_keys_need_the_secret), cmocka_unit_test(differences_do_not_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
