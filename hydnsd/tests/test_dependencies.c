/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The table of dependencies, compared with a list of all pairs, which are far more than the table is made for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "hydnsd/rules/dependencies.h"

#define ORDINALS 500                   /* 39 buckets */
#define NAMES    3000
#define STEPS    200000

static uint64_t hash[NAMES];
static struct hydnsd_dependency_list of[ORDINALS]; /* count 0: no rule */

/* The finalizer of splitmix64: the table uses every bit of a hash. */
static uint64_t spread(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* A few names are in many rules, most names in one or none. */
static void choose_names(struct hydnsd_dependency_list *l)
{
	l->count = 0;
	for (long n = 1 + random() % 6; n; n--)
		hydnsd_dependency_list_add(l, hash[random() % 2 ? random() % 3 : random() % NAMES]);
}

static void assert_found(struct hydnsd_dependencies *o, uint64_t name)
{
	static uint32_t times[ORDINALS];
	uint32_t count;
	const uint32_t *found = hydnsd_dependencies_find(o, name, &count);

	assert_non_null(found);
	memset(times, 0, sizeof(times));
	for (uint32_t i = 0; i < count; i++) {
		assert_in_range(found[i], 0, ORDINALS - 1);
		assert_int_not_equal(of[found[i]].count, 0);
		times[found[i]]++;
	}
	for (uint32_t ordinal = 0; ordinal < ORDINALS; ordinal++)
		for (uint32_t i = 0; i < of[ordinal].count; i++)
			if (of[ordinal].hash[i] == name)
				assert_int_not_equal(times[ordinal], 0);
}

static void every_rule_is_found(void **state)
{
	struct hydnsd_dependencies *o = hydnsd_dependencies_new(ORDINALS);
	size_t empty = hydnsd_dependencies_bytes(o);
	uint32_t count;

	(void)state;
	for (uint32_t i = 0; i < NAMES; i++)
		hash[i] = spread(i + 1);
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t ordinal = (uint32_t)(random() % ORDINALS);

		if (of[ordinal].count) {
			hydnsd_dependencies_drop(o, &of[ordinal], ordinal);
			of[ordinal].count = 0;
		} else {
			choose_names(&of[ordinal]);
			hydnsd_dependencies_add(o, &of[ordinal], ordinal);
		}
		if (step % 100 == 0)
			assert_found(o, hash[step % 200 ? random() % 3 : random() % NAMES]);
	}
	assert_true(hydnsd_dependencies_bytes(o) > empty);
	for (uint32_t ordinal = 0; ordinal < ORDINALS; ordinal++) {
		hydnsd_dependencies_drop(o, &of[ordinal], ordinal);
		of[ordinal].count = 0;
	}
	for (uint32_t i = 0; i < NAMES; i++) {
		assert_non_null(hydnsd_dependencies_find(o, hash[i], &count));
		assert_int_equal(count, 0);
	}
	hydnsd_dependencies_free(o);
}

/* The table holds more than find() returns: when enough have gone it finds the others. */
static void too_many_are_not_told(void **state)
{
	struct hydnsd_dependencies *o = hydnsd_dependencies_new(HYDNSD_DEPENDENCIES_FOUND * 2);
	const struct hydnsd_dependency_list one = { .count = 1, .hash = { spread(7) } };
	uint32_t count;

	(void)state;
	for (uint32_t i = 0; i < HYDNSD_DEPENDENCIES_FOUND * 2; i++) {
		assert_int_equal(hydnsd_dependencies_find(o, one.hash[0], &count) != NULL, i <= HYDNSD_DEPENDENCIES_FOUND);
		hydnsd_dependencies_add(o, &one, i);
	}
	for (uint32_t i = 0; i < HYDNSD_DEPENDENCIES_FOUND * 2; i++) {
		hydnsd_dependencies_drop(o, &one, i);
		if (hydnsd_dependencies_find(o, one.hash[0], &count))
			assert_int_equal(count, HYDNSD_DEPENDENCIES_FOUND * 2 - 1 - i);
	}
	assert_non_null(hydnsd_dependencies_find(o, one.hash[0], &count));
	assert_int_equal(count, 0);
	hydnsd_dependencies_free(o);
}

static size_t address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* After memory failed for a rule, find() answers for no name until that rule has gone. */
static void without_memory_nothing_is_told(void **state)
{
	enum { MANY = 1 << 20 };
	struct hydnsd_dependencies *o = hydnsd_dependencies_new(MANY);
	const struct hydnsd_dependency_list one = { .count = 1, .hash = { spread(8) } };
	const struct hydnsd_dependency_list other = { .count = 1, .hash = { spread(9) } };
	struct rlimit before, now;
	uint32_t count;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	now = before;
	now.rlim_cur = address_space() + (1 << 20);
	assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
	for (uint32_t i = 0; i < MANY; i++)
		hydnsd_dependencies_add(o, &one, i);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	hydnsd_dependencies_add(o, &other, 5);
	assert_null(hydnsd_dependencies_find(o, other.hash[0], &count));
	for (uint32_t i = 0; i < MANY; i++)
		hydnsd_dependencies_drop(o, &one, i);
	assert_non_null(hydnsd_dependencies_find(o, other.hash[0], &count));
	assert_int_equal(count, 1);
	hydnsd_dependencies_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_is_found),
		cmocka_unit_test(too_many_are_not_told),
		cmocka_unit_test(without_memory_nothing_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
