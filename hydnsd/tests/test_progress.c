/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What of a ring can be given back, and which offers in it are older than a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "hydnsd/resolvers/changed_names.h"
#include "hydnsd/resolvers/progress.h"
#include "hydnsd/rules/signature.h"

/* Frames are given back in order, in whatever order their withdrawals end. */
static void a_ring_goes_back_when_all_is_done(void **state)
{
	struct hydnsd_begun b = { .next = UINT32_MAX, .oldest = UINT32_MAX };
	struct hydnsd_progress p;
	uint32_t first, second, at = UINT32_MAX - 100;

	(void)state;
	hydnsd_progress_start(&p, at, &b);
	assert_false(hydnsd_progress_advance(&p, at, &b));
	assert_true(hydnsd_progress_advance(&p, at + 8, &b));          /* nothing was begun */
	assert_int_equal(p.given, at + 8);
	first = hydnsd_begun_add(&b);
	assert_false(hydnsd_progress_advance(&p, at + 16, &b));
	second = hydnsd_begun_add(&b);
	assert_false(hydnsd_progress_advance(&p, at + 24, &b));
	hydnsd_begun_done(&b, second);
	assert_false(hydnsd_progress_advance(&p, at + 160, &b));
	assert_int_equal(p.given, at + 8);
	second = hydnsd_begun_add(&b);
	hydnsd_begun_done(&b, first);
	assert_true(hydnsd_progress_advance(&p, at + 168, &b));        /* only the first held these back */
	assert_int_equal(p.given, at + 16);
	hydnsd_begun_done(&b, second);
	assert_true(hydnsd_progress_advance(&p, at + 168, &b));
	assert_int_equal(p.given, at + 168);
	for (first = 0; !hydnsd_begun_full(&b); first++)
		hydnsd_begun_add(&b);
	assert_int_equal(first, HYDNSD_BEGUN_MAX);
}

/* A change discards older offers of its own name, and no others. A change that the table has lost counts for all names. */
static void changes_discard_their_own_names(void **state)
{
	static const uint8_t www[] = "\3www\7example\3net", other[] = "\4mail\7example\3org";
	struct hydnsd_changed_names c = { .next = 0 };
	uint64_t mine = 0, its = 0;

	(void)state;
	hydnsd_name_hash(www, sizeof(www), 1, &mine);
	hydnsd_name_hash(other, sizeof(other), 1, &its);
	assert_false(hydnsd_changed_names_affect(&c, 0, mine));
	hydnsd_changed_names_record(&c, 7, hydnsd_signature_of(www, sizeof(www), 1));
	assert_true(hydnsd_changed_names_affect(&c, 6, mine));
	assert_false(hydnsd_changed_names_affect(&c, 7, mine));
	assert_false(hydnsd_changed_names_affect(&c, 6, its));
	for (uint64_t g = 8; g < 8 + HYDNSD_CHANGED_NAMES; g++)
		hydnsd_changed_names_record(&c, g, hydnsd_signature_of(www, sizeof(www), 1));
	assert_false(hydnsd_changed_names_affect(&c, 7, its));
	assert_true(hydnsd_changed_names_affect(&c, 6, its));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_goes_back_when_all_is_done),
		cmocka_unit_test(changes_discard_their_own_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
