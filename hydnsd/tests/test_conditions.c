/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* When conditions of the monitor begin and end, and what monitor-condition may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/monitor/conditions.h"

static struct hydnsd_condition c[HYDNSD_CONDITIONS];
static char error[HYDNSD_OPTION_ERROR];

static int read_lines(uint32_t count, ...)
{
	struct hydnsd_list l = { .count = count };
	va_list args;

	va_start(args, count);
	for (uint32_t i = 0; i < count; i++)
		l.item[i] = va_arg(args, char *);
	va_end(args);
	return hydnsd_conditions_read(&l, c, error);
}

static enum hydnsd_condition_event step(enum hydnsd_condition_id id, double clients, double misses, double rate)
{
	const double value[HYDNSD_MEASURES] = {
		[HYDNSD_MEASURE_RATE] = rate, [HYDNSD_MEASURE_MISSES] = misses, [HYDNSD_MEASURE_CLIENTS] = clients,
		[HYDNSD_MEASURE_NAMES] = 1,
	};

	return hydnsd_condition_step(id, &c[id], value);
}

static enum hydnsd_condition_event clients(double n)
{
	return step(HYDNSD_CONDITION_clients, n, 0, 5000);
}

static void of_the_past(void **state)
{
	(void)state;
	assert_int_equal(read_lines(0), 0);
	for (unsigned i = 0; i < HYDNSD_CONDITION_WINDOWS; i++)
		assert_int_equal(clients(i ? 1000 : 900), HYDNSD_CONDITION_STAYS);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(clients(1000), HYDNSD_CONDITION_STAYS);
	assert_int_equal(clients(2990), HYDNSD_CONDITION_STAYS);
	for (unsigned i = 0; i < 100; i++)
		clients(1000);
	assert_int_equal(clients(3010), HYDNSD_CONDITION_BEGINS);
	assert_int_equal(clients(9000), HYDNSD_CONDITION_STAYS);
	assert_int_equal(clients(2000), HYDNSD_CONDITION_STAYS);       /* between end and begin */
	assert_true(c[HYDNSD_CONDITION_clients].holds && c[HYDNSD_CONDITION_clients].worst == 9000);
	assert_int_equal(clients(1400), HYDNSD_CONDITION_ENDS);
	assert_int_equal(clients(2000), HYDNSD_CONDITION_STAYS);
}

/* A first window of a start in the middle of traffic, or one that is large, is not the past. */
static void needs_a_past(void **state)
{
	(void)state;
	assert_int_equal(read_lines(0), 0);
	clients(1);
	for (unsigned i = 1; i < HYDNSD_CONDITION_WINDOWS; i++)
		assert_int_equal(clients(100000), HYDNSD_CONDITION_STAYS);
	assert_int_equal(clients(100000), HYDNSD_CONDITION_STAYS);
}

/* An attack of an hour is no past; what stays for hours is, so the condition ends by itself. */
static void a_lasting_change_ends_it(void **state)
{
	unsigned windows = 0;

	(void)state;
	assert_int_equal(read_lines(0), 0);
	for (unsigned i = 0; i < 20; i++)
		clients(1000);
	assert_int_equal(clients(5000), HYDNSD_CONDITION_BEGINS);
	while (clients(5000) == HYDNSD_CONDITION_STAYS)
		assert_in_range(++windows, 0, 1000);
	assert_in_range(windows, 40, 100);
	assert_false(c[HYDNSD_CONDITION_clients].holds);
	assert_int_equal(clients(5000), HYDNSD_CONDITION_STAYS);
}

static void of_a_value(void **state)
{
	const enum hydnsd_condition_id id = HYDNSD_CONDITION_misses;

	(void)state;
	assert_int_equal(read_lines(0), 0);
	assert_int_equal(step(id, 0, 79, 5000), HYDNSD_CONDITION_STAYS);
	assert_int_equal(step(id, 0, 100, 999), HYDNSD_CONDITION_STAYS);       /* too few queries */
	assert_int_equal(step(id, 0, 80, 1000), HYDNSD_CONDITION_BEGINS);
	assert_int_equal(step(id, 0, 60, 5000), HYDNSD_CONDITION_STAYS);
	assert_int_equal(step(id, 0, 59, 5000), HYDNSD_CONDITION_ENDS);
	assert_int_equal(step(id, 0, 90, 5000), HYDNSD_CONDITION_BEGINS);
	assert_int_equal(step(id, 0, 90, 751), HYDNSD_CONDITION_STAYS);
	assert_int_equal(step(id, 0, 90, 749), HYDNSD_CONDITION_ENDS);         /* nobody asks any more */
}

static void the_operators_numbers(void **state)
{
	(void)state;
	assert_int_equal(read_lines(3, "misses 50 40 10", "clients off", "names 200.5 100"), 0);
	assert_true(c[HYDNSD_CONDITION_misses].begin == 50 && c[HYDNSD_CONDITION_misses].end == 40);
	assert_true(c[HYDNSD_CONDITION_misses].least == 10 && c[HYDNSD_CONDITION_names].least == HYDNSD_CONDITION_LEAST);
	assert_true(c[HYDNSD_CONDITION_names].begin == 200.5 && c[HYDNSD_CONDITION_rate].begin == 300);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(clients(i < 10 ? 1000 : 1000000), HYDNSD_CONDITION_STAYS);
	assert_int_equal(step(HYDNSD_CONDITION_misses, 0, 50, 10), HYDNSD_CONDITION_BEGINS);
	assert_int_equal(read_lines(2, "clients off", "clients 300 200"), 0);
	assert_false(c[HYDNSD_CONDITION_clients].off);
}

static void what_is_refused(void **state)
{
	const char *const lines[] = {
		"colours 1 1", "clients", "clients on", "clients off now", "clients 300", "clients 100 200", "clients 300 0",
		"clients -1 -2", "clients 300 150 -1", "clients 300 150 1 1", "clients nan nan", "clients 300x 150", "",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		error[0] = '\0';
		assert_int_equal(read_lines(1, lines[i]), -1);
		assert_non_null(strstr(error, "monitor-condition"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_the_past), cmocka_unit_test(needs_a_past), cmocka_unit_test(a_lasting_change_ends_it),
		cmocka_unit_test(of_a_value), cmocka_unit_test(the_operators_numbers), cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
