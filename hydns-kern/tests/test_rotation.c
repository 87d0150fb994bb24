/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rotation: which octets move and which stay, that checksums follow, that each record is first equally often whatever ids the
 * clients use, and each pair of records first and second where the resolver shuffles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "expect.h"

#define REPLIES    10000
#define COUNT_MOST 16
#define TYPE_NS    2
#define TYPE_CNAME 5
#define TYPE_TXT   16
#define TYPE_RRSIG 46

static const struct hydns_resolver_config rotating = {
	.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_ROTATES, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1,
};

static const struct hydns_resolver_config shuffling = {
	.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_ROTATES | HYDNS_RESOLVER_SHUFFLES, .edns_size = EDNS_SIZE,
	.max_udp = 4096, .acl_half = 1,
};

/* Checks replies from one rule octet by octet: rotated, shuffled, and in the rule's order where the resolver does neither. */
static void expect_rotations(const char *what, struct query *q, const struct answer *a, unsigned count)
{
	__u32 handle = kernel_publish(kern, q, a, 5 * SECOND_NS, NULL);
	struct answer shuffled = *a;
	struct frame f;

	assert_true(handle);
	shuffled.shuffles = true;
	for (unsigned i = 0; i < count; i++) {
		q->id++;
		frame_query(&f, q);
		kernel_config(kern, &rotating);
		expect_frame(what, kern, &f, q, a, 5, kernel_rotation(kern, handle));
		kernel_config(kern, &shuffling);
		expect_frame(what, kern, &f, q, &shuffled, 5, kernel_rotation(kern, handle));
		kernel_config(kern, NULL);
		expect_frame(what, kern, &f, q, a, 5, 0);
	}
	kernel_remove(kern, handle);
}

static void test_chain_and_two_sets(void **state)
{
	struct query q = { .name = "www.example.com", .qtype = 1 };
	struct answer a = { 0 };

	(void)state;
	answer_add(&a, ANSWER, NULL, TYPE_CNAME, 300, "\1c\xc0\x10", 4);
	answer_addresses(&a, 3, 300);
	answer_addresses(&a, 4, 200);
	expect_rotations("CNAME, 3 and 4 addresses", &q, &a, 24);
}

static void test_signatures_stay(void **state)
{
	struct query q = { .name = "www.example.com", .qtype = 1, .edns = true, .edns_size = 1232, .want_do = true };
	__u8 rrsig[91] = { 0, 1, 8, 3 };
	struct answer a = { .secure = true };

	(void)state;
	answer_addresses(&a, 5, 300);
	answer_add(&a, ANSWER, NULL, TYPE_RRSIG, 300, rrsig, sizeof(rrsig));
	memset(rrsig + 4, 0xa5, sizeof(rrsig) - 4);
	answer_add(&a, ANSWER, NULL, TYPE_RRSIG, 300, rrsig, sizeof(rrsig));
	expect_rotations("5 addresses and 2 signatures", &q, &a, 10);
}

/* A block of odd length changes the parity of the blocks that it passes, and the checksum must follow; each TTL moves with its
 * record. Names of even and odd length, so that the answer begins at an odd and at an even offset. */
static void test_records_of_any_length(void **state)
{
	static const char *name[] = { "t.example", "tx.example" };

	(void)state;
	for (unsigned seed = 0; seed < 64; seed++)
		for (unsigned n = 0; n < 2; n++) {
			struct query q = { .name = name[n], .qtype = TYPE_TXT, .edns = seed & 1,
					   .edns_size = 1232, .ipv6 = seed & 2 };
			unsigned count = 2 + seed % 5;
			struct answer a = { 0 };
			__u8 text[64];

			srandom(seed);
			for (unsigned i = 0; i < count; i++) {
				for (size_t b = 0; b < sizeof(text); b++)
					text[b] = random();
				answer_add(&a, ANSWER, NULL, TYPE_TXT, 300 + i, text, 1 + random() % 63);
			}
			answer_rotates(&a, count);
			answer_add(&a, AUTHORITY, ".", TYPE_NS, 400, "\1n", 3);
			expect_rotations("records of any length", &q, &a, 2 * count);
		}
}

static void test_owner_root(void **state)
{
	struct query q = { .name = ".", .qtype = TYPE_NS };
	struct answer a = { 0 };

	(void)state;
	for (char c = 'a'; c <= 'm'; c++) {
		__u8 ns[] = { 1, c, 4, 'r', 'o', 'o', 't', 0 };

		answer_add(&a, ANSWER, ".", TYPE_NS, 300, ns, sizeof(ns));
	}
	answer_rotates(&a, 13);
	expect_rotations("the root's name servers", &q, &a, 26);
}

static void test_most_records(void **state)
{
	struct query q = { .name = "many.example", .qtype = 1, .edns = true, .edns_size = 1232 };
	struct answer a = { 0 };

	(void)state;
	answer_addresses(&a, HYDNS_TTLS_MAX, 300);
	expect_rotations("as many records as a rule holds", &q, &a, 2 * HYDNS_TTLS_MAX);
}

/* --- evenly spread ------------------------------------------------------------------------------------ */
/* 0.999 quantiles of the chi-square distribution, by degrees of freedom (any statistics textbook). */
static const double critical[COUNT_MOST] = {
	0, 10.828, 13.816, 16.266, 18.467, 20.515, 22.458, 24.322, 26.124, 27.877, 29.588, 31.264, 32.909,
	34.528, 36.123, 37.697,
};

static uint16_t id_sequential(unsigned i)
{
	return i;
}

static uint16_t id_random(unsigned i)
{
	(void)i;
	return random();
}

static uint16_t id_constant(unsigned i)
{
	(void)i;
	return 0x2a2a;
}

#define A_RECORD 16      /* octets, with a pointer as owner name */

/* Asks q. Returns which address is first in the reply, and *second, which is second, both counted from 0. */
static unsigned first_addresses(const struct query *q, unsigned *second)
{
	struct frame f;
	const __u8 *answer;

	frame_query(&f, q);
	answer = f.data + f.len;
	assert_int_equal(kernel_shoot(kern, &f), XDP_TX);
	*second = answer[2 * A_RECORD - 1] - 1U;
	return answer[A_RECORD - 1] - 1U;
}

static unsigned first_address(const struct query *q)
{
	unsigned second;

	return first_addresses(q, &second);
}

static void expect_even(const char *what, const struct query *asked, unsigned count, uint16_t (*id)(unsigned),
			const struct query *between)
{
	unsigned seen[COUNT_MOST] = { 0 };
	double expected = (double)REPLIES / count, chi2 = 0;
	struct query q = *asked;

	for (unsigned i = 0; i < REPLIES; i++) {
		q.id = id(i);
		seen[first_address(&q)]++;
		if (between)
			first_address(between);
	}
	for (unsigned i = 0; i < count; i++)
		chi2 += (seen[i] - expected) * (seen[i] - expected) / expected;
	if (chi2 > critical[count - 1])
		fail_msg("%s ids, %u addresses: chi-square %.1f, at most %.1f expected", what, count, chi2,
			 critical[count - 1]);
}

static void test_evenly_spread(void **state)
{
	static const struct {
		const char *what;
		uint16_t (*id)(unsigned);
	} c[] = { { "sequential", id_sequential }, { "random", id_random }, { "constant", id_constant } };

	(void)state;
	srandom(1);
	kernel_config(kern, &rotating);
	for (unsigned count = 2; count <= COUNT_MOST; count++) {
		struct query q = { .name = "even.example", .qtype = 1 };
		struct answer a = { 0 };
		__u32 handle;

		answer_addresses(&a, count, 300);
		handle = kernel_publish(kern, &q, &a, 0, NULL);
		assert_true(handle);
		for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++)
			expect_even(c[i].what, &q, count, c[i].id, NULL);
		kernel_remove(kern, handle);
	}
	kernel_config(kern, NULL);
}

/* Queries of another name in between, as AAAA comes with A, must not make the spread uneven. */
static void test_evenly_spread_beside_another(void **state)
{
	struct query q = { .name = "even.example", .qtype = 1 }, other = { .name = "other.example", .qtype = 1 };
	struct answer a = { 0 }, b = { 0 };
	__u32 handle[2];

	(void)state;
	answer_addresses(&a, 4, 300);
	answer_addresses(&b, 2, 300);
	handle[0] = kernel_publish(kern, &q, &a, 0, NULL);
	handle[1] = kernel_publish(kern, &other, &b, 0, NULL);
	kernel_config(kern, &rotating);
	expect_even("sequential", &q, 4, id_sequential, &other);
	kernel_config(kern, NULL);
	kernel_remove(kern, handle[0]);
	kernel_remove(kern, handle[1]);
}

/* With as many answers as pairs, all counted in the slot, each pair is first and second once. */
static void test_every_pair_where_shuffled(void **state)
{
	(void)state;
	kernel_config(kern, &shuffling);
	for (unsigned count = 2; count <= COUNT_MOST; count++) {
		struct query q = { .name = "even.example", .qtype = 1 };
		unsigned seen[COUNT_MOST][COUNT_MOST] = { 0 }, second;
		struct answer a = { 0 };
		__u32 handle;

		answer_addresses(&a, count, 300);
		handle = kernel_publish(kern, &q, &a, 0, NULL);
		assert_true(handle);
		for (unsigned i = 0; i < count * (count - 1); i++) {
			unsigned first = first_addresses(&q, &second);

			hydns_store_count_in_slot(kernel_store(kern), handle);
			if (first >= count || second >= count || first == second || seen[first][second]++)
				fail_msg("%u addresses, answer %u: number %u, then %u", count, i, first, second);
		}
		kernel_remove(kern, handle);
	}
	kernel_config(kern, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain_and_two_sets),
		cmocka_unit_test(test_signatures_stay),
		cmocka_unit_test(test_records_of_any_length),
		cmocka_unit_test(test_owner_root),
		cmocka_unit_test(test_most_records),
		cmocka_unit_test(test_evenly_spread),
		cmocka_unit_test(test_evenly_spread_beside_another),
		cmocka_unit_test(test_every_pair_where_shuffled),
	};

	return expect_run(tests);
}
