/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Changes of data and TTL updates while hydnsd is there. */
#include <arpa/inet.h>
#include <errno.h>
#include "plugin/tests/world.h"

#define TYPE_A     1
#define TYPE_CNAME 5

/* A TTL update of an RRset by thread 1. False: it sends no frame. *shared: as in the frame. */
static bool sends_ttl_update(struct world *w, const uint8_t *name, size_t len, uint16_t type, bool *shared)
{
	union ring_frame f;
	time_t now = time(NULL);
	uint64_t before, apart, ends;

	do {                                            /* again if held up between the two clocks */
		before = hydns_mono_ns();
		apart = hydns_real_ns() - before;
	} while (hydns_mono_ns() - before > HYDNS_NS_PER_MS);
	ends = (uint64_t)(now + TTL) * HYDNS_NS_PER_S - apart;
	hydns_plugin_ttl_update(hydns_plugin_thread(w->p, 1), name, len, type, HYDNS_SECTION_AUTHORITY, now, now + TTL);
	if (!next_frame(w, 1, &f))
		return false;
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_int_equal(f.changed.generation, page_generation(w));
	assert_int_equal(ntohs(f.changed.ttl_of), type);
	assert_int_equal(f.changed.section, HYDNS_SECTION_AUTHORITY);
	assert_int_equal(f.changed.name_len, len);
	assert_in_range(f.changed.end_ns, ends - HYDNS_NS_PER_S / 4, ends + HYDNS_NS_PER_S / 4);
	*shared = f.changed.shared;
	return true;
}

/* A left-out name is a dependency like an owner name in the reply. */
static void changes_of_what_is_left_out_are_told(void **state)
{
	static const uint8_t hidden[] = "\6hidden\7example\3org";
	union ring_frame f;
	struct world *w = *state;
	struct hydns_stamp early;

	start_both(w);
	early = hydns_plugin_stamp(w->p);
	hydns_plugin_depends_on(w->t, hidden, sizeof(hidden));
	assert_int_equal(offer(w, early), 0);
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), hidden, sizeof(hidden));
	assert_true(next_frame(w, 1, &f));
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_memory_equal(f.changed.data, hidden, sizeof(hidden));
	hydns_plugin_depends_on(w->t, hidden, sizeof(hidden));
	assert_int_equal(offer(w, early), -ESTALE);
	assert_int_equal(offer(w, early), 0);     /* the same answer without that dependency */
	peer_stop(&w->peer);
}

/* A zone's change waits for hydnsd if something was offered below the origin. What was looked up before the end of the change
 * is not offered. */
static void zone_changes(void **state)
{
	static const uint8_t root[] = "";
	struct world *w = *state;
	struct hydns_stamp before, between;
	uint32_t epoch;

	start_both(w);
	before = hydns_plugin_stamp(w->p);
	hydns_plugin_zone_changing(w->p, www, sizeof(www));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 0);        /* nothing was offered */
	assert_int_equal(offer(w, before), -ESTALE);
	hydns_plugin_zone_changed(w->p);
	assert_offered(w);
	before = hydns_plugin_stamp(w->p);
	hydns_plugin_zone_changing(w->p, root, sizeof(root));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	assert_int_equal(w->peer.last_withdrawal.scope, HYDNS_SCOPE_SUBTREE);
	assert_int_equal(w->peer.last_withdrawal.name_len, sizeof(root));
	between = hydns_plugin_stamp(w->p);
	hydns_plugin_zone_changed(w->p);
	assert_int_equal(offer(w, before), -ESTALE);
	assert_int_equal(offer(w, between), -ESTALE);
	hydns_plugin_zone_changing(w->p, root, sizeof(root));         /* refused offers count as well */
	assert_int_equal(atomic_load(&w->peer.withdrawals), 2);
	hydns_plugin_zone_changing(w->p, root, sizeof(root));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 2);
	hydns_plugin_zone_changed(w->p);
	assert_offered(w);
	epoch = page_epoch(w);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	hydns_plugin_zone_changing(w->p, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_SUSPENDED); /* without hydnsd: all rules, until it is back */
	hydns_plugin_zone_changed(w->p);
}

static void changes_are_told(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org", target[] = "\4host\7Example\3net";
	struct world *w = *state;
	union ring_frame f;
	struct hydns_stamp early;
	uint64_t generation;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	early = hydns_plugin_stamp(w->p);
	assert_int_equal(offer(w, early), 0);
	generation = page_generation(w);
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), other, sizeof(other));
	assert_int_equal(page_generation(w), generation);
	assert_false(next_frame(w, 1, &f));
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), target, sizeof(target));
	assert_int_equal(page_generation(w), generation + 1);
	assert_true(next_frame(w, 1, &f));
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_int_equal(f.changed.generation, generation + 1);
	assert_int_equal(f.changed.name_len, sizeof(target));
	assert_memory_equal(f.changed.data, "\4host\7example\3net", sizeof(target));
	assert_int_equal(offer(w, early), -ESTALE);
	assert_int_equal(page_epoch(w), epoch);
	hydns_plugin_changed(w->t, (const uint8_t *)"\377", 1);          /* not a name: withdraws everything */
	assert_int_equal(page_epoch(w), ++epoch);

	/* hydnsd hangs: the rules of what it has not read are suspended */
	assert_offered(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_true(BECOMES(suspended(w)));
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	assert_true(suspended(w));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch));
	peer_stop(&w->peer);
}

/* www's answer is a CNAME to host.example.net with its address. */
static void renewals_are_told(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org", target[] = "\4host\7example\3net";
	struct world *w = *state;
	struct hydns_stamp early;
	uint32_t epoch;
	bool shared;

	start_both(w);
	epoch = page_epoch(w);
	early = hydns_plugin_stamp(w->p);
	assert_int_equal(offer(w, early), 0);
	assert_false(sends_ttl_update(w, other, sizeof(other), TYPE_A, &shared));
	assert_true(sends_ttl_update(w, target, sizeof(target), TYPE_A, &shared));
	assert_true(shared);
	assert_true(sends_ttl_update(w, www, sizeof(www), TYPE_CNAME, &shared));
	assert_true(shared);
	assert_true(sends_ttl_update(w, www, sizeof(www), TYPE_A, &shared)); /* the question's own */
	assert_false(shared);
	assert_int_equal(offer(w, early), -ESTALE);
	assert_offered(w);
	/* without hydnsd nothing is killed: the name's rules are suspended */
	empty_rings(w);
	lose_hydnsd(w);
	assert_false(suspended(w));
	hydns_plugin_ttl_update(w->t, www, sizeof(www), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000 + TTL, 1000 + 2 * TTL);
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	assert_true(is_marked(w, www_lower, sizeof(www)) && marks(w) == 1);
}

/* TTLs may differ by one second, not by two. An earlier end may be earlier than that of a rule. */
static void small_moves_add_up(void **state)
{
	static const uint8_t target[] = "\4host\7example\3net";
	union ring_frame f;
	struct world *w = *state;

	start_and_offer(w);
	hydns_plugin_ttl_update(hydns_plugin_thread(w->p, 1), target, sizeof(target), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000, 1001);
	assert_false(next_frame(w, 1, &f));
	hydns_plugin_ttl_update(hydns_plugin_thread(w->p, 1), target, sizeof(target), TYPE_A, HYDNS_SECTION_ANYWHERE, 1001, 1002);
	assert_true(next_frame(w, 1, &f));
	assert_int_equal(ntohs(f.changed.ttl_of), TYPE_A);
	hydns_plugin_ttl_update(hydns_plugin_thread(w->p, 1), target, sizeof(target), TYPE_A, HYDNS_SECTION_ANYWHERE, 1002, 1001);
	assert_true(next_frame(w, 1, &f));
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_int_equal(f.changed.ttl_of, 0);
	assert_memory_equal(f.changed.data, target, sizeof(target));
	peer_stop(&w->peer);
}

static void change_before_the_offer_is_seen(void **state)
{
	struct world *w = *state;
	struct hydns_stamp stamp;

	start_both(w);
	stamp = hydns_plugin_stamp(w->p);
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), www, sizeof(www)); /* no rule yet: the generation stays */
	assert_int_equal(page_generation(w), stamp.generation);
	assert_int_equal(offer(w, stamp), -ESTALE);
	assert_offered(w);
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(changes_of_what_is_left_out_are_told), TEST(zone_changes), TEST(changes_are_told),
		TEST(renewals_are_told), TEST(small_moves_add_up), TEST(change_before_the_offer_is_seen),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
