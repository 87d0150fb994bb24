/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which rules go on answering while hydnsd is away and data change: those that depend on no name that is marked on their
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
/* Of a rule that depends on as many names as fit; the first and the last place of all are among them. */
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

/* It depends on the first count of these names; 0: on more than fit. */
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

/* The answer is one address, and depends on so many names. */
static __u32 publish_address(struct answer *a, unsigned owners)
{
	answer_addresses(a, 1, 300);
	return publish(a, owners);
}

static void all_rules_wait(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_address(&a, 1);

	(void)state;
	flags(HYDNS_EPOCH_SUSPENDED);
	expect_both_pass("all are suspended");
	flags(HYDNS_EPOCH_SUSPENDED | HYDNS_EPOCH_MARKED);
	expect_both_pass("all are suspended, beside marks");
	flags(0);
	expect_both_answered("none is suspended", &a);
	end(handle);
}

static void untouched_rules_answer(void **state)
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

static void touched_rules_pass(void **state)
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
				expect_both_answered("a name behind its own is marked", &a);
			mark(most[i], false);
		}
		end(handle);
	}
}

/* Whichever names they are. */
static void rules_of_many_names_pass(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_address(&a, 0);

	(void)state;
	flags(HYDNS_EPOCH_MARKED);
	expect_both_pass("more names than fit a rule");
	flags(0);
	expect_both_answered("and nothing has changed", &a);
	end(handle);
}

static void marks_alone_say_nothing(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_address(&a, 1);

	(void)state;
	mark_all(true);
	expect_both_answered("marks without the flag", &a);
	end(handle);
}

static void another_epoch_passes(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_address(&a, 1);

	(void)state;
	kernel_page(kern)->epoch = (EPOCH + 1) | HYDNS_EPOCH_MARKED;
	expect_both_pass("the epoch was advanced while names are marked");
	end(handle);
}

static const struct query in_full = { .name = "a.example", .qtype = 16, .id = 1, .edns = true, .edns_size = 4096 };

/* The places stand behind everything else that the program reads; rotated RRsets too. */
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

/* Places that end where the largest slot does are not looked at: the rule waits. */
static void the_largest_rules_wait(void **state)
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
		cmocka_unit_test(all_rules_wait), cmocka_unit_test(untouched_rules_answer),
		cmocka_unit_test(touched_rules_pass), cmocka_unit_test(rules_of_many_names_pass),
		cmocka_unit_test(marks_alone_say_nothing), cmocka_unit_test(another_epoch_passes),
		cmocka_unit_test(places_are_found), cmocka_unit_test(the_largest_rules_wait),
	};

	return expect_run(tests);
}
