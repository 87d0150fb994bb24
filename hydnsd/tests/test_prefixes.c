/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Combined tables of prefixes, compared with a search of each table, on random prefixes that nest a lot. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/netdev/prefixes.h"

#define TABLES    5
#define MOST      200
#define ROUNDS    1000
#define ADDRESSES 300

/* Few octets differ, and have few values: so prefixes nest and repeat. */
static void random_address(uint8_t addr[16])
{
	static const uint8_t values[] = { 0x00, 0x01, 0x80, 0xc0, 0xff };

	for (int i = 0; i < 16; i++)
		addr[i] = random() % 4 ? 0 : values[random() % 5];
	if (random() % 2)
		memset(addr, 0, 10), memset(addr + 10, 0xff, 2);
}

static void random_prefix(struct hydnsd_prefix *p)
{
	static const uint8_t bits[] = { 0, 1, 7, 8, 9, 16, 95, 96, 97, 104, 112, 120, 127, 128 };

	memset(p, 0, sizeof(*p));
	random_address(p->addr);       /* with bits beyond the prefix, which must not count */
	p->bits = random() % 3 ? bits[random() % sizeof(bits)] : (uint8_t)(random() % 129);
	p->table = (uint8_t)(random() % TABLES);
	p->value = (uint8_t)(random() % 4);
}

/* A value to which every table contributes; 0 for zeros. */
static uint8_t judge(const uint8_t value[HYDNSD_PREFIX_TABLES], const void *arg)
{
	(void)arg;
	if (value[0] == 3)
		return 0;
	for (int i = 1; i < TABLES; i++)
		if (value[i] > value[0])
			return value[i] == 2 ? 0 : (uint8_t)(value[i] + i);
	return value[0];
}

static int bit(const uint8_t addr[16], unsigned n)
{
	return addr[n / 8] >> (7 - n % 8) & 1;
}

static int is_in(const struct hydnsd_prefix *p, const uint8_t addr[16])
{
	for (unsigned n = 0; n < p->bits; n++)
		if (bit(p->addr, n) != bit(addr, n))
			return 0;
	return 1;
}

static uint8_t expected(const struct hydnsd_prefix *list, uint32_t n, const uint8_t addr[16])
{
	uint8_t value[HYDNSD_PREFIX_TABLES] = { 0 };
	int longest[TABLES];

	memset(longest, -1, sizeof(longest));
	for (uint32_t i = 0; i < n; i++)
		if (list[i].bits >= longest[list[i].table] && is_in(&list[i], addr)) {
			longest[list[i].table] = list[i].bits;
			value[list[i].table] = list[i].value;
		}
	return judge(value, NULL);
}

/* A look-up in prefixes shorter than `below`. */
static uint8_t found(const struct hydnsd_prefix *list, int n, const uint8_t addr[16], int below)
{
	int longest = -1;
	uint8_t value = 0;

	for (int i = 0; i < n; i++)
		if (list[i].bits < below && list[i].bits > longest && is_in(&list[i], addr)) {
			longest = list[i].bits;
			value = list[i].value;
		}
	return value;
}

static void check_addresses(const struct hydnsd_prefix *list, uint32_t n, const struct hydnsd_prefix *out, int count)
{
	for (int k = 0; k < ADDRESSES; k++) {
		uint8_t addr[16];

		random_address(addr);
		if (n && k % 2) {      /* at the edges of a prefix */
			memcpy(addr, list[k % n].addr, sizeof(addr));
			addr[15] ^= (uint8_t)(random() % 2);
		}
		assert_int_equal(found(out, count, addr, HYDNSD_PREFIX_BITS + 1), expected(list, n, addr));
		assert_int_equal(hydnsd_prefixes_find(out, (uint32_t)count, addr), expected(list, n, addr));
	}
}

static void same_as_each_table_by_itself(void **state)
{
	static struct hydnsd_prefix list[MOST], in[MOST], out[MOST];

	(void)state;
	srandom(4711);
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t n = (uint32_t)(random() % MOST);
		int count;

		for (uint32_t i = 0; i < n; i++)
			random_prefix(&list[i]);
		memcpy(in, list, sizeof(in));
		count = hydnsd_prefixes_combine(in, n, judge, NULL, out, MOST);
		assert_in_range(count, 0, n);
		check_addresses(list, n, out, count);
		for (int i = 0; i < count; i++)        /* each is needed */
			assert_int_not_equal(found(out, count, out[i].addr, out[i].bits), out[i].value);
	}
}

static void without_room(void **state)
{
	struct hydnsd_prefix in[4], out[4];

	(void)state;
	memset(in, 0, sizeof(in));
	for (int i = 0; i < 4; i++) {
		in[i].addr[0] = (uint8_t)(i + 1);
		in[i].bits = 8;
		in[i].value = 1;
	}
	assert_int_equal(hydnsd_prefixes_combine(in, 4, judge, NULL, out, 3), -E2BIG);
	assert_int_equal(hydnsd_prefixes_combine(in, 4, judge, NULL, out, 4), 4);
	assert_int_equal(hydnsd_prefixes_combine(in, 0, judge, NULL, out, 4), 0);
}

/* Nested prefixes of every length. */
static void as_deep_as_it_gets(void **state)
{
	static struct hydnsd_prefix in[HYDNSD_PREFIX_BITS + 1], out[HYDNSD_PREFIX_BITS + 1];
	const uint8_t other[16] = { 1 };
	uint8_t addr[16];

	(void)state;
	memset(in, 0, sizeof(in));
	memset(addr, 0xff, sizeof(addr));
	for (int i = 0; i <= HYDNSD_PREFIX_BITS; i++) {
		memset(in[i].addr, 0xff, sizeof(in[i].addr));
		in[i].bits = (uint8_t)(HYDNSD_PREFIX_BITS - i);
		in[i].value = 1 + i % 2;
	}
	assert_int_equal(hydnsd_prefixes_combine(in, HYDNSD_PREFIX_BITS + 1, judge, NULL, out, HYDNSD_PREFIX_BITS + 1),
			 HYDNSD_PREFIX_BITS + 1);
	assert_int_equal(hydnsd_prefixes_find(out, HYDNSD_PREFIX_BITS + 1, addr), 1);
	assert_int_equal(hydnsd_prefixes_find(out, HYDNSD_PREFIX_BITS + 1, other), 1);
	addr[15] = 0xfe;
	assert_int_equal(hydnsd_prefixes_find(out, HYDNSD_PREFIX_BITS + 1, addr), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_each_table_by_itself),
		cmocka_unit_test(without_room),
		cmocka_unit_test(as_deep_as_it_gets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
