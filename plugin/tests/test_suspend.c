/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Rules that wait while a resolver reloads, and then count again, or end with it. */
#include "plugin/tests/graces.h"
#include "plugin/tests/world.h"

#define KEY 0x1234567800000007ULL

/* The caller does not wait for the grace period. No request to hydnsd ends the suspension. */
static void rules_wait_until_the_resolver_resumes(void **state)
{
	struct world *w = *state;
	uint32_t epoch = start_and_offer(w);

	watch_graces(w, true);
	assert_true(hydns_plugin_suspend(w->p, gone, NULL));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_SUSPENDED);
	assert_true(BECOMES(graces_begun() == 1));
	assert_int_equal(times_gone, 0);
	assert_false(graces.given_up);
	release_graces();
	assert_true(BECOMES(times_gone == 1));
	assert_int_equal(ended_when_gone, 1);
	empty_rings(w);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));      /* the link thread is through with the former */
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_SUSPENDED);
	assert_int_equal(atomic_load(&w->peer.catch_ups), 0);
	hydns_plugin_resume(w->p);
	assert_true(BECOMES(page_epoch(w) == epoch));
	assert_int_equal(atomic_load(&w->peer.catch_ups), 1);
	assert_int_equal(atomic_load(&w->peer.byes), 0);
	assert_true(page_heartbeat(w) != 0);
	assert_offered(w);
	peer_stop(&w->peer);
}

/* What changes meanwhile is acted upon before the rules count again. */
static void changes_come_first(void **state)
{
	struct world *w = *state;
	uint32_t epoch = start_and_offer(w);

	empty_rings(w);
	assert_true(hydns_plugin_suspend(w->p, NULL, NULL));
	hydns_plugin_changed(w->t, www, sizeof(www));
	hydns_plugin_resume(w->p);
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	assert_true(suspended(w));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch));
	assert_int_equal(marks(w), 0);
	peer_stop(&w->peer);
}

/* No rule has counted since the suspension's grace period. */
static void leaving_needs_no_other_grace_period(void **state)
{
	struct world *w = *state;
	uint32_t epoch = start_and_offer(w);

	watch_graces(w, false);
	assert_true(hydns_plugin_suspend(w->p, gone, NULL));
	hydns_plugin_leave(w->p, gone, NULL);
	assert_int_equal(page_epoch(w), (epoch + 1) | HYDNS_EPOCH_SUSPENDED);
	assert_int_equal(page_heartbeat(w), 0);
	hydns_plugin_gone(w->p);
	assert_int_equal(graces_begun(), 1);
	assert_true(BECOMES(times_gone == 2));
	assert_false(hydns_plugin_suspend(w->p, gone, NULL));
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(atomic_load(&w->peer.byes), 1);
	peer_stop(&w->peer);
}

/* After it was resumed, leaving waits for a grace period as ever. */
static void leaving_later_needs_one(void **state)
{
	struct world *w = *state;
	uint32_t epoch = start_and_offer(w);

	watch_graces(w, false);
	empty_rings(w);
	assert_true(hydns_plugin_suspend(w->p, NULL, NULL));
	hydns_plugin_resume(w->p);
	assert_true(BECOMES(page_epoch(w) == epoch));
	hydns_plugin_leave(w->p, NULL, NULL);
	hydns_plugin_gone(w->p);
	assert_int_equal(graces_begun(), 2);
	peer_stop(&w->peer);
}

/* A second command in the same moment: each is told. */
static void suspends_twice(void **state)
{
	struct world *w = *state;
	uint32_t epoch = start_and_offer(w);

	empty_rings(w);
	assert_true(hydns_plugin_suspend(w->p, gone, NULL));
	assert_true(hydns_plugin_suspend(w->p, gone, NULL));
	hydns_plugin_resume(w->p);
	assert_int_equal(times_gone, 2);
	assert_true(BECOMES(page_epoch(w) == epoch));
	peer_stop(&w->peer);
}

/* The next hydnsd takes the rules over, or, with forgetful, has a new page without rules; neither ends the suspension. */
static void hydnsd_comes_and_goes(void **state)
{
	struct world *w = *state;

	for (int forgetful = 0; forgetful < 2; forgetful++) {
		uint32_t epoch = start_and_offer(w);

		empty_rings(w);
		assert_true(hydns_plugin_suspend(w->p, NULL, NULL));
		lose_hydnsd(w);
		atomic_store(&w->peer.forgetful, forgetful);
		peer_start(&w->peer);
		assert_true(connected(w));
		hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
		assert_int_equal(page_epoch(w) & ~HYDNS_EPOCH_SUSPENDED, forgetful ? w->peer.first_epoch : epoch);
		assert_true(suspended(w));
		hydns_plugin_resume(w->p);
		assert_true(BECOMES(!suspended(w)));
		peer_stop(&w->peer);
		assert_true(disconnected(w));
		hydns_plugin_stop(w->p);
		w->p = NULL;
		if (!forgetful) {
			world_teardown(state);
			graces_setup(state);
			w = *state;
		}
	}
}

/* Without a page there is nothing to suspend. */
static void without_hydnsd(void **state)
{
	struct world *w = *state;

	assert_false(hydns_plugin_suspend(w->p, gone, NULL));
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_false(hydns_plugin_suspend(w->p, gone, NULL));
	assert_int_equal(times_gone, 0);
}

static void no_question_stays_under_way(void **state)
{
	struct world *w = *state;

	start_both(w);
	hydns_plugin_nobody_waits(w->p);
	for (uint64_t i = 0; i < 100; i++)
		assert_true(hydns_pages_under_way(w->p->pages, KEY + i * 0x100000003ULL, 1));
	assert_int_equal(w->peer.page->under_way, 100);
	hydns_plugin_nobody_waits(w->p);
	assert_int_equal(w->peer.page->under_way, 0);
	for (uint64_t i = 0; i < 100; i++)
		assert_false(hydns_pages_is_under_way(w->p->pages, KEY + i * 0x100000003ULL));
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, graces_setup, graces_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(rules_wait_until_the_resolver_resumes), TEST(changes_come_first), TEST(leaving_needs_no_other_grace_period),
		TEST(leaving_later_needs_one), TEST(suspends_twice), TEST(hydnsd_comes_and_goes), TEST(without_hydnsd),
		TEST(no_question_stays_under_way),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
