/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Suspended rules: while hydnsd is away and data change, a rule answers only if none of its dependencies is marked on its
 * resolver's page. Exits 77 (skipped) where BPF can't be loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "expect.h"

static const struct query over4 = { .name = "www.example.org", .qtype = 1, .id = 0x4711 };
static const struct query over6 = { .name = "www.example.org", .qtype = 1, .id = 0x4712, .ipv6 = true };
/* As many places as a rule holds, with the first and the last of all among them. */
static const __u16 most[HYDNS_RULE_PLACES_MAX] = { 0, 63, 64, 4711, 20000, 31000, 77, HYDNS_PLACES - 1 };

static void flags(__u32 f)
{
	kernel_page(kern)->epoch = EPOCH | f;
}

static void mark(__u16 place, bool on)
{
	volatile __u64 *word = &kernel_page(kern)->marks[place / 64];

	*word = on ? *word | 1ULL << place % 64 : *word & ~(1ULL << place % 64);
}

static void mark_all(bool on)
{
	for (unsigned i = 0; i < HYDNS_MARK_WORDS; i++)
		kernel_page(kern)->marks[i] = on ? ~0ULL : 0;
}

/* Publishes a with the first count of these places; 0: with more dependencies than fit. */
static __u32 publish(const struct answer *a, unsigned count)
{
	kernel_depends_on(kern, most, count);
	return kernel_publish(kern, &over4, a, 0, NULL);
}

static void end(__u32 handle)
{
	kernel_depends_on(kern, NULL, 0);
	kernel_remove(kern, handle);
	mark_all(false);
	flags(0);
}

static void expect_both_answered(const char *what, const struct answer *a)
{
	struct query q = over4;

	for (int i = 0; i < 2; i++, q = over6)
		expect_answer(what, &q, a, 0);
}

static void expect_both_pass(const char *what)
{
	expect_query_passes(what, &over4, HYDNS_R_EPOCH);
	expect_query_passes(what, &over6, HYDNS_R_EPOCH);
}

/* Publishes one address with so many places. */
static __u32 publish_with_places(struct answer *a, unsigned count)
{
	kernel_depends_on(kern, most, count);
	return publish_address(kern, &over4, a);
}

static void all_suspended_rules_pass(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_with_places(&a, 1);

	(void)state;
	flags(HYDNS_EPOCH_SUSPENDED);
	expect_both_pass("all are suspended");
	flags(HYDNS_EPOCH_SUSPENDED | HYDNS_EPOCH_MARKED);
	expect_both_pass("all are suspended, and there are marks");
	flags(0);
	expect_both_answered("none is suspended", &a);
	end(handle);
}

static void unmarked_rules_answer(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 2, 300);
	for (unsigned count = 1; count <= HYDNS_RULE_PLACES_MAX; count++) {
		handle = publish(&a, count);
		flags(HYDNS_EPOCH_MARKED);
		expect_both_answered("no name is marked", &a);
		mark_all(true);
		expect_both_pass("all names are marked");
		for (unsigned i = 0; i < count; i++)
			mark(most[i], false);
		expect_both_answered("all other names are marked", &a);
		end(handle);
	}
}

static void marked_rules_pass(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 2, 300);
	for (unsigned count = 1; count <= HYDNS_RULE_PLACES_MAX; count++) {
		handle = publish(&a, count);
		flags(HYDNS_EPOCH_MARKED);
		for (unsigned i = 0; i < HYDNS_RULE_PLACES_MAX; i++) {
			mark(most[i], true);
			if (i < count)
				expect_both_pass("one of its names is marked");
			else
				expect_both_answered("another name is marked", &a);
			mark(most[i], false);
		}
		end(handle);
	}
}

/* A rule with more dependencies than fit passes whatever is marked. */
static void rules_of_many_names_pass(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_with_places(&a, 0);

	(void)state;
	flags(HYDNS_EPOCH_MARKED);
	expect_both_pass("more names than fit a rule");
	flags(0);
	expect_both_answered("the same without marks", &a);
	end(handle);
}

static void marks_without_the_flag_count_nothing(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_with_places(&a, 1);

	(void)state;
	mark_all(true);
	expect_both_answered("marks without the flag", &a);
	end(handle);
}

static void another_epoch_passes(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_with_places(&a, 1);

	(void)state;
	kernel_page(kern)->epoch = (EPOCH + 1) | HYDNS_EPOCH_MARKED;
	expect_both_pass("the epoch was advanced while names are marked");
	end(handle);
}

static const struct query in_full = { .name = "a.example", .qtype = 16, .id = 1, .edns = true, .edns_size = 4096 };

/* The places come after everything else that the program reads in a rule, rotations included. */
static void places_are_found(void **state)
{
	const __u8 text[4] = { 3, 'a', 'b', 'c' };
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	for (unsigned odd = 0; odd < 2; odd++) {
		memset(&a, 0, sizeof(a));
		answer_addresses(&a, 3, 300);
		answer_rotates(&a, 3);
		answer_add(&a, ADDITIONAL, NULL, 16, 300, text, (uint16_t)(3 + odd));
		handle = publish(&a, 2);
		flags(HYDNS_EPOCH_MARKED);
		mark_all(true);
		expect_query_passes("all are marked", &over4, HYDNS_R_EPOCH);
		mark(most[0], false);
		mark(most[1], false);
		expect_both_answered("all others are marked", &a);
		end(handle);
	}
}

/* The program does not read places too near to the end of the largest slot: such a rule passes. */
static void the_largest_rules_pass(void **state)
{
	const __u32 fixed = HYDNS_RULE_SPACE(11, 12, 1, 0), room = HYDNS_SLOT_MOST - fixed;
	static const __u8 text[HYDNS_SLOT_MOST];
	struct answer a;
	__u32 handle;

	(void)state;
	for (unsigned left = 2; left <= 32; left += 2) {
		memset(&a, 0, sizeof(a));
		answer_add(&a, ANSWER, NULL, 16, 300, text, (uint16_t)(room - left));
		kernel_depends_on(kern, most, 1);
		handle = kernel_publish(kern, &in_full, &a, 0, NULL);
		assert_true(handle != 0);
		flags(HYDNS_EPOCH_MARKED);
		if (left < sizeof(most))
			expect_query_passes("its places can't be read", &in_full, HYDNS_R_EPOCH);
		else
			expect_answer("they can", &in_full, &a, 0);
		end(handle);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_suspended_rules_pass), cmocka_unit_test(unmarked_rules_answer),
		cmocka_unit_test(marked_rules_pass), cmocka_unit_test(rules_of_many_names_pass),
		cmocka_unit_test(marks_without_the_flag_count_nothing), cmocka_unit_test(another_epoch_passes),
		cmocka_unit_test(places_are_found), cmocka_unit_test(the_largest_rules_pass),
	};

	return expect_run(tests);
}
