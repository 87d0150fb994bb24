/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What waits in the rings while hydnsd is away or hangs: the rules concerned are suspended. */
#include "plugin/tests/world.h"

#define TYPE_A     1
#define CHANGED_LEN 48   /* octets of the CHANGED frame of www */

/* When hydnsd dies before it has acted upon a change, the rules of that name are suspended until the next one has. */
static void loss_suspends_rules(void **state)
{
	union ring_frame f;
	struct world *w = *state;
	uint32_t epoch;

	epoch = start_and_offer(w);
	empty_rings(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_false(suspended(w));
	peer_stop(&w->peer);
	assert_true(BECOMES(page_epoch(w) == (epoch | HYDNS_EPOCH_MARKED)));
	assert_true(is_marked(w, www_lower, sizeof(www)) && marks(w) == 1);
	peer_start(&w->peer);
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	assert_true(suspended(w) && is_marked(w, www_lower, sizeof(www)));
	assert_int_equal(hydns_plugin_stamp(w->p).epoch, epoch);
	assert_offered(w);
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_memory_equal(f.changed.data, www_lower, sizeof(www));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch));
	assert_true(BECOMES(marks(w) == 0));
	peer_stop(&w->peer);
}

/* All changed names in any ring are marked, whatever frames stand between. */
static void loss_marks_all_that_waits(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org", host[] = "\4host\7example\3net";
	struct world *w = *state;
	uint32_t epoch;

	epoch = start_and_offer(w);
	hydns_names_offer(w->p->names, other, sizeof(other), HYDNS_NAMES_ALL, UINT64_MAX, hydns_names_changes(w->p->names));
	empty_rings(w);
	hydns_plugin_ttl_update(w->t, www, sizeof(www), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000, 1002);
	assert_offered(w);
	hydns_plugin_changed(w->t, host, sizeof(host));
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), other, sizeof(other));
	peer_stop(&w->peer);
	assert_true(BECOMES(marks(w) == 3));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	assert_true(is_marked(w, www_lower, sizeof(www)) && is_marked(w, host, sizeof(host)) && is_marked(w, other, sizeof(other)));
}

/* Nobody knows what names a broken ring holds. */
static void a_broken_ring_suspends_all(void **state)
{
	struct hydns_frame *f;
	struct world *w = *state;
	uint32_t epoch;

	epoch = start_and_offer(w);
	empty_rings(w);
	f = (struct hydns_frame *)((uint8_t *)w->peer.ring[0] + HYDNS_RING_DATA + w->peer.ring[0]->head % HYDNS_RING_BYTES);
	hydns_plugin_changed(w->t, www, sizeof(www));
	f->len += 8;
	peer_stop(&w->peer);
	assert_true(BECOMES(page_epoch(w) == (epoch | HYDNS_EPOCH_SUSPENDED)));
}

/* hydnsd hangs: a name that waits for too long is marked, and so are those that change after it. */
static void hanging_marks_what_waits(void **state)
{
	static const uint8_t host[] = "\4host\7example\3net";
	struct world *w = *state;
	uint32_t epoch;

	epoch = start_and_offer(w);
	empty_rings(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_true(BECOMES(page_epoch(w) == (epoch | HYDNS_EPOCH_MARKED)));
	assert_true(is_marked(w, www_lower, sizeof(www)) && marks(w) == 1);
	hydns_plugin_changed(w->t, host, sizeof(host));
	assert_true(is_marked(w, host, sizeof(host)));            /* at once, until hydnsd has caught up */
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch && marks(w) == 0));
	peer_stop(&w->peer);
}

/* Changes that hydnsd has acted upon, or that concern no rule, suspend nothing. */
static void loss_alone_suspends_nothing(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org";
	struct world *w = *state;
	uint32_t epoch;

	epoch = start_and_offer(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	empty_rings(w);
	lose_hydnsd(w);
	hydns_plugin_changed(w->t, other, sizeof(other));
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_int_equal(page_epoch(w), epoch);
	assert_int_equal(atomic_load(&w->peer.catch_ups), 0);
	peer_stop(&w->peer);
}

/* While hydnsd is away, changes wait in the ring. Only when it is full, all rules die; changes after that concern none. */
static void changes_wait_for_hydnsd(void **state)
{
	struct world *w = *state;
	uint32_t epoch, n = 0, head, room;

	epoch = start_and_offer(w);
	room = HYDNS_RING_BYTES - w->peer.ring[0]->head;
	lose_hydnsd(w);
	assert_int_equal(page_epoch(w), epoch);
	for (; hydns_plugin_stamp(w->p).epoch == epoch; n++) {
		hydns_plugin_changed(w->t, www, sizeof(www));
		assert_true(suspended(w));
	}
	assert_int_equal(n, room / CHANGED_LEN + 1);
	head = w->peer.ring[0]->head;
	hydns_plugin_changed(w->t, www, sizeof(www));
	empty_rings(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_int_equal(w->peer.ring[0]->head, head);
	assert_int_equal(hydns_plugin_stamp(w->p).epoch, epoch + 1);
	assert_int_equal(marks(w), 1);
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch + 1));
	peer_stop(&w->peer);
}

/* TTL updates leave half of the ring to changes; their rules are suspended whether they find room or not. */
static void renewals_wait_while_there_is_room(void **state)
{
	static const uint8_t target[] = "\4host\7example\3net";
	struct world *w = *state;
	uint32_t epoch;

	epoch = start_and_offer(w);
	empty_rings(w);
	lose_hydnsd(w);
	assert_false(suspended(w));
	for (time_t at = 1000; at < 1000 + 2 * HYDNS_RING_BYTES / CHANGED_LEN; at += 2)
		hydns_plugin_ttl_update(w->t, www, sizeof(www), TYPE_A, HYDNS_SECTION_ANYWHERE, at, at + 2);
	assert_in_range(w->peer.ring[0]->head - w->peer.ring[0]->tail, HYDNS_RING_BYTES / 2, HYDNS_RING_BYTES / 2 + CHANGED_LEN);
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	assert_true(is_marked(w, www_lower, sizeof(www)) && marks(w) == 1);
	hydns_plugin_ttl_update(w->t, target, sizeof(target), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000, 1002);
	assert_true(is_marked(w, target, sizeof(target)));
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	peer_start(&w->peer);
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch));
	peer_stop(&w->peer);
}

/* After a flush of everything without hydnsd, no suspended rule comes back with it. */
static void a_flush_outlives_suspension(void **state)
{
	struct world *w = *state;
	uint32_t epoch;

	epoch = start_and_offer(w);
	lose_hydnsd(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_ALL, NULL, 0);
	assert_int_equal(page_epoch(w), (epoch + 1) | HYDNS_EPOCH_MARKED);
	empty_rings(w);
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch + 1));
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(loss_suspends_rules), TEST(loss_marks_all_that_waits), TEST(a_broken_ring_suspends_all),
		TEST(hanging_marks_what_waits), TEST(loss_alone_suspends_nothing),
		TEST(changes_wait_for_hydnsd), TEST(renewals_wait_while_there_is_room),
		TEST(a_flush_outlives_suspension),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
