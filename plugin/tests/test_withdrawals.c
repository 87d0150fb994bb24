/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Withdrawals, with hydnsd, with one that does not answer, and without any. */
#include <string.h>
#include "plugin/tests/graces.h"
#include "plugin/tests/world.h"

static uint64_t timed_withdraw(struct world *w, enum hydns_scope scope, const uint8_t *name, size_t len)
{
	uint64_t began = hydns_mono_ns();

	hydns_plugin_withdraw(w->p, scope, name, len);
	return (hydns_mono_ns() - began) / HYDNS_NS_PER_MS;
}

struct flusher {
	struct world *w;
	unsigned flushes;
};

static void *flush_often(void *arg)
{
	struct flusher *f = arg;

	for (unsigned i = 0; i < f->flushes; i++) {
		struct hydns_counts c;

		hydns_plugin_withdraw(f->w->p, i % 3 ? HYDNS_SCOPE_NAME : HYDNS_SCOPE_ALL, www, sizeof(www));
		hydns_plugin_counts(f->w->p, &c, 10);
	}
	return NULL;
}

static void withdraws(void **state)
{
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch);                 /* done by hydnsd */
	assert_int_equal(w->peer.last_withdrawal.generation, 1);
	assert_int_equal(page_generation(w), 1);
	assert_int_equal(w->peer.last_withdrawal.scope, HYDNS_SCOPE_SUBTREE);
	assert_int_equal(w->peer.last_withdrawal.name_len, sizeof(www));
	assert_memory_equal(w->peer.last_withdrawal.name, www_lower, sizeof(www));

	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, (const uint8_t *)"\377", 1); /* not a name: withdraws everything */
	assert_int_equal(page_epoch(w), epoch + 1);
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	hydns_plugin_withdraw_all(w->p);
	assert_int_equal(page_epoch(w), epoch + 2);
	assert_int_equal(page_generation(w), 3);
	peer_stop(&w->peer);
}

static void withdraw_times_out(void **state)
{
	struct world *w = *state;
	uint32_t epoch;
	uint64_t took;

	start_both(w);
	epoch = page_epoch(w);
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	took = timed_withdraw(w, HYDNS_SCOPE_NAME, www, sizeof(www));
	assert_true(took >= FLUSH_TIMEOUT_MS);
	assert_int_equal(page_epoch(w), epoch + 1);
	/* the link thread still waits for the first reply, so this one is not sent */
	timed_withdraw(w, HYDNS_SCOPE_NAME, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch + 2);
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	hydns_plugin_stop(w->p);                               /* does not wait for it either */
	w->p = NULL;
	peer_stop(&w->peer);
}

/* The reply to another request does not count as the reply to this one. */
static void withdraw_takes_its_own_reply_alone(void **state)
{
	struct world *w = *state;

	start_both(w);
	atomic_store(&w->peer.behaviour, PEER_MUDDLED);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
	assert_true(suspended(w));
	atomic_store(&w->peer.behaviour, PEER_WILLING);
	assert_true(BECOMES(!suspended(w)));
	peer_stop(&w->peer);
}

static void withdraw_survives_a_dying_hydnsd(void **state)
{
	struct world *w = *state;

	start_both(w);
	for (int i = 0; i < 5; i++) {
		uint32_t epoch = page_epoch(w);

		assert_true(connected(w));
		atomic_store(&w->peer.behaviour, PEER_DYING);
		hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
		assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
		assert_true(is_marked(w, www_lower, sizeof(www)));
		assert_int_equal(page_generation(w), i + 1);
		atomic_store(&w->peer.behaviour, PEER_WILLING);
		assert_true(BECOMES(atomic_load(&w->peer.ready) >= i + 2));
		assert_true(BECOMES(page_epoch(w) == epoch));
		assert_int_equal(w->peer.last_withdrawal.generation, i + 1);
	}
	peer_stop(&w->peer);
}

/* After a switch to another page, nothing is suspended and no withdrawal is pending: those were of the former page. */
static void a_new_page_owes_nothing(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org";
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	lose_hydnsd(w);
	watch_graces(w, false);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_int_equal(graces_begun(), 1);
	atomic_store(&w->peer.forgetful, true);
	peer_start(&w->peer);
	assert_true(connected(w));
	epoch = page_epoch(w);
	assert_int_equal(epoch, w->peer.first_epoch);
	assert_offered(w);
	empty_rings(w);
	lose_hydnsd(w);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, other, sizeof(other));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_SUSPENDED);
	assert_int_equal(graces_begun(), 2);
	atomic_store(&w->peer.forgetful, false);
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	peer_stop(&w->peer);
}

/* Without hydnsd a few withdrawals wait as changes do, each once; when there are more, all rules die. */
static void withdrawals_wait_for_hydnsd(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org";
	struct world *w = *state;
	uint8_t name[] = "\1a\7example\3org";
	uint32_t epoch;

	epoch = start_and_offer(w);
	empty_rings(w);
	lose_hydnsd(w);
	watch_graces(w, false);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_SUSPENDED);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, other, sizeof(other));
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, other, sizeof(other));
	assert_int_equal(graces_begun(), 1);                    /* one suspension, one grace period */
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch));
	assert_int_equal(atomic_load(&w->peer.catch_ups), 1);
	assert_int_equal(atomic_load(&w->peer.withdrawals), 2);
	assert_int_equal(w->peer.last_withdrawal.generation, 3);
	assert_memory_equal(w->peer.last_withdrawal.name, other, sizeof(other));

	lose_hydnsd(w);
	watch_graces(w, false);
	for (; name[1] < 'a' + HYDNS_PENDING_MAX; name[1]++) {
		hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, name, sizeof(name));
		assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
		assert_true(is_marked(w, name, sizeof(name)));
		assert_int_equal(marks(w), name[1] - 'a' + 1);
		assert_int_equal(graces_begun(), name[1] - 'a' + 1); /* other rules count, so each waits for a grace period */
	}
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, name, sizeof(name));
	assert_int_equal(page_epoch(w), (epoch + 1) | HYDNS_EPOCH_MARKED);
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch + 1));
	peer_stop(&w->peer);
}

/* Several flushing threads and an offering one while hydnsd dies and comes back, sometimes with a new page. */
static void concurrent_withdrawals(void **state)
{
	struct world *w = *state;
	struct flusher f = { .w = w, .flushes = 40 };
	pthread_t thread[3];

	start_both(w);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, flush_often, &f), 0);
	for (int i = 0; i < 6; i++) {
		int before = atomic_load(&w->peer.ready);

		for (int k = 0; k < 200; k++) {
			offer(w, hydns_plugin_stamp(w->p));
			hydns_plugin_changed(w->t, www, sizeof(www));
		}
		atomic_store(&w->peer.behaviour, i % 2 ? PEER_DYING : PEER_SILENT);
		peer_stop(&w->peer);
		atomic_store(&w->peer.forgetful, i % 3 == 2);
		atomic_store(&w->peer.behaviour, PEER_WILLING);
		peer_start(&w->peer);
		assert_true(BECOMES(atomic_load(&w->peer.ready) > before));
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_true(connected(w));
	assert_true(page_generation(w) >= 3 * f.flushes);
	assert_int_equal(page_generation(w), hydns_plugin_stamp(w->p).generation);
	empty_rings(w);
	assert_true(BECOMES(!suspended(w)));
	assert_int_equal(page_epoch(w), hydns_plugin_stamp(w->p).epoch);
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
#define COUNTING(f) cmocka_unit_test_setup_teardown(f, world_setup, graces_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(withdraws), TEST(withdraw_times_out), TEST(withdraw_takes_its_own_reply_alone),
		TEST(withdraw_survives_a_dying_hydnsd), COUNTING(withdrawals_wait_for_hydnsd),
		COUNTING(a_new_page_owes_nothing), TEST(concurrent_withdrawals),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
