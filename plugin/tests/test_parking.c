/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Questions under way: words behind the resolver page, and the frames that say that a resolution is over. */
#include <string.h>
#include "plugin/tests/world.h"
#include "hydns/hash.h"

#define KEY      0x1234567800000007ULL
#define SAME     (KEY + (1ULL << 40))     /* another question of the same bucket */

static struct hydns_under_way *bucket(struct world *w, uint64_t key)
{
	return ((struct hydns_under_way_bucket *)(w->peer.page + 1))[HYDNS_UNDER_WAY_BUCKET(key)].entry;
}

static unsigned words(struct world *w, uint64_t key)
{
	unsigned found = 0;

	for (unsigned i = 0; i < HYDNS_UNDER_WAY_ENTRIES; i++)
		found += bucket(w, key)[i].word && (bucket(w, key)[i].word ^ key) >> 32 == 0;
	return found;
}

static void start(struct world *w)
{
	struct hydns_plugin_options o = world_options(w);

	hydns_plugin_stop(w->p);
	o.park_ms = 1900;
	o.pending_max = 100;
	o.pending_per_question = 50;
	w->p = hydns_plugin_new(&o);
	assert_non_null(w->p);
	w->t = hydns_plugin_thread(w->p, 0);
	hydns_names_watch(w->p->names);        /* else the first offer would be refused */
	start_both(w);
	empty_rings(w);
}

static void hydnsd_learns_the_bounds(void **state)
{
	struct world *w = *state;

	start(w);
	assert_int_equal(w->peer.hello.park_ms, 1900);
	assert_int_equal(w->peer.hello.pending_max, 100);
	assert_int_equal(w->peer.hello.pending_per_question, 50);
	peer_stop(&w->peer);
}

/* The program computes the key by itself, with the seed of HELLO. */
static void a_key_is_what_the_program_computes(void **state)
{
	static const uint8_t name[] = "\3wWw\7example";
	static const uint8_t lower[] = "\3www\7example";
	const struct hydns_question q = { .name = name, .name_len = sizeof(name), .qtype = 28, .variant = HYDNS_VARIANT_DO };
	struct world *w = *state;

	start(w);
	assert_true(hydns_plugin_key(w->t, &q) == hydns_key_hash(lower, sizeof(lower), htons(28), HYDNS_VARIANT_DO, 0,
								     w->peer.hello.seed));
	peer_stop(&w->peer);
}

static void a_word_stands_until_the_resolution_is_over(void **state)
{
	struct world *w = *state;
	union ring_frame f;

	start(w);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	assert_int_equal(words(w, KEY), 1);
	assert_int_equal(w->peer.page->under_way, 1);
	assert_true((uint32_t)hydns_mono_coarse_ms() - (uint32_t)bucket(w, KEY)[0].word < 60000);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	assert_int_equal(words(w, KEY), 1);
	assert_int_equal(w->peer.page->under_way, 1);
	assert_false(next_frame(w, 0, &f));
	hydns_plugin_over(w->t, KEY);
	assert_int_equal(words(w, KEY), 0);
	assert_int_equal(w->peer.page->under_way, 0);
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.frame.type, HYDNS_FRAME_OVER);
	assert_int_equal(f.frame.len, sizeof(f.over));
	assert_true(f.over.key == KEY);
	hydns_plugin_over(w->t, KEY);
	assert_false(next_frame(w, 0, &f));
	peer_stop(&w->peer);
}

static void the_offer_stands_before_the_end(void **state)
{
	struct world *w = *state;
	union ring_frame f;

	start(w);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	assert_offered(w);
	hydns_plugin_over(w->t, KEY);
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.frame.type, HYDNS_FRAME_OFFER);
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.frame.type, HYDNS_FRAME_OVER);
	peer_stop(&w->peer);
}

static void questions_of_a_bucket_do_not_meet(void **state)
{
	struct world *w = *state;

	start(w);
	for (unsigned i = 0; i < HYDNS_UNDER_WAY_ENTRIES; i++)
		assert_true(hydns_plugin_under_way(w->t, KEY + ((uint64_t)i << 40)));
	assert_false(hydns_plugin_under_way(w->t, KEY + (9ULL << 40)));
	assert_int_equal(w->peer.page->under_way, HYDNS_UNDER_WAY_ENTRIES);
	hydns_plugin_over(w->t, SAME);
	assert_int_equal(words(w, SAME), 0);
	assert_int_equal(words(w, KEY), 1);
	assert_int_equal(w->peer.page->under_way, HYDNS_UNDER_WAY_ENTRIES - 1);
	assert_true(hydns_plugin_under_way(w->t, KEY + (9ULL << 40)));
	peer_stop(&w->peer);
}

/* Two threads may have written a word each. */
static void both_words_of_a_question_go(void **state)
{
	struct world *w = *state;

	start(w);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	bucket(w, KEY)[2].word = bucket(w, KEY)[0].word;
	bucket(w, KEY)[0].parked = 3;
	bucket(w, KEY)[2].parked = 4;
	w->peer.page->under_way++;
	assert_int_equal(hydns_pages_parked(w->p->pages, KEY), 7);
	hydns_plugin_over(w->t, KEY);
	assert_int_equal(words(w, KEY), 0);
	assert_int_equal(w->peer.page->under_way, 0);
	peer_stop(&w->peer);
}

static void parked_queries_count_as_sightings(void **state)
{
	struct world *w = *state;

	start(w);
	assert_int_equal(hydns_plugin_parked_sighted(w->t, KEY, hydns_mono_coarse_ms()), 0);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	assert_int_equal(hydns_plugin_parked_sighted(w->t, KEY, hydns_mono_coarse_ms()), 0);
	assert_int_equal(hydns_plugin_sighted(w->t, KEY, hydns_mono_coarse_ms()), 0); /* too few for an offer */
	bucket(w, KEY)[0].parked = 100;
	assert_true(hydns_plugin_parked_sighted(w->t, KEY, hydns_mono_coarse_ms()) >= 100);
	hydns_plugin_over(w->t, KEY);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	assert_int_equal(hydns_pages_parked(w->p->pages, KEY), 0);     /* those of the former resolution */
	peer_stop(&w->peer);
}

static bool put_frame(struct world *w, uint32_t len)
{
	struct hydns_frame *f = hydns_producer_reserve(&w->t->ring, len, 0);

	if (f) {
		*f = (struct hydns_frame){ .len = len, .type = HYDNS_FRAME_PAD };
		(void)hydns_producer_commit(&w->t->ring, len);
	}
	return f;
}

/* hydnsd sees that the word has gone. */
static void a_full_ring_does_not_keep_the_word(void **state)
{
	struct world *w = *state;

	start(w);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	peer_stop(&w->peer);
	while (put_frame(w, 4096) || put_frame(w, 8))
		;
	hydns_plugin_over(w->t, KEY);
	assert_int_equal(words(w, KEY), 0);
	assert_int_equal(w->peer.page->under_way, 0);
}

/* While hydnsd hangs, resolutions go on ending. */
static void ends_leave_room_for_changes(void **state)
{
	struct world *w = *state;

	start(w);
	peer_stop(&w->peer);
	for (unsigned i = 0; i < HYDNS_RING_BYTES / sizeof(struct hydns_over); i++) {
		/* As a connected plugin writes it: under_way() would look for hydnsd. */
		assert_true(hydns_pages_under_way(w->p->pages, KEY, 1));
		hydns_plugin_over(w->t, KEY);
	}
	assert_true(w->t->ring.head - w->t->ring.ring->tail <= HYDNS_RING_BYTES - HYDNS_RING_FOR_CHANGES);
	assert_true(put_frame(w, 4096));
}

/* Of several questions, in several buckets. */
static void all_are_over_at_once(void **state)
{
	const uint64_t keys[] = { KEY, KEY + 1, KEY ^ 1ULL << 40, KEY + HYDNS_UNDER_WAY_BUCKETS - 1 };
	struct world *w = *state;

	hydns_plugin_nobody_waits(w->p);       /* there is no page yet */
	start(w);
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_true(hydns_plugin_under_way(w->t, keys[i]));
	hydns_plugin_nobody_waits(w->p);
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(words(w, keys[i]), 0);
	assert_int_equal(w->peer.page->under_way, 0);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	assert_int_equal(w->peer.page->under_way, 1);
}

static void a_new_page_has_no_words(void **state)
{
	struct world *w = *state;
	union ring_frame f;

	start(w);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	lose_hydnsd(w);
	atomic_store(&w->peer.forgetful, true);
	peer_start(&w->peer);
	assert_true(connected(w));
	empty_rings(w);
	assert_int_equal(hydns_pages_parked(w->p->pages, KEY), 0);
	hydns_plugin_over(w->t, KEY);          /* its word was on the former page */
	assert_false(next_frame(w, 0, &f));
	assert_int_equal(w->peer.page->under_way, 0);
	assert_true(hydns_plugin_under_way(w->t, KEY));
	assert_int_equal(words(w, KEY), 1);
	assert_int_equal(w->peer.page->under_way, 1);
	peer_stop(&w->peer);
}

static void without_hydnsd_nothing_is_under_way(void **state)
{
	struct world *w = *state;

	assert_false(hydns_plugin_under_way(w->t, KEY));
	start(w);
	lose_hydnsd(w);
	assert_false(hydns_plugin_under_way(w->t, KEY));
	assert_int_equal(hydns_pages_parked(w->p->pages, KEY), 0);
	hydns_plugin_over(w->t, KEY);
}

static void nothing_is_under_way_where_none_may_wait(void **state)
{
	struct world *w = *state;

	start_both(w);      /* the options of other tests: no query may wait */
	assert_false(hydns_plugin_under_way(w->t, KEY));
	peer_stop(&w->peer);
}

/* hydns-pending-max: auto. */
static void bounds_of_auto(void **state)
{
	(void)state;
	assert_int_equal(hydns_plugin_pending_auto(0), 16384);
	assert_int_equal(hydns_plugin_pending_auto(4096), 16384);
	assert_int_equal(hydns_plugin_pending_auto(4097), 16388);
	assert_int_equal(hydns_plugin_pending_auto(16384), 65536);
	assert_int_equal(hydns_plugin_pending_auto(16385), 65536);
	assert_int_equal(hydns_plugin_pending_auto(UINT32_MAX), 65536);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hydnsd_learns_the_bounds), TEST(a_key_is_what_the_program_computes),
		TEST(a_word_stands_until_the_resolution_is_over), TEST(the_offer_stands_before_the_end),
		TEST(questions_of_a_bucket_do_not_meet), TEST(both_words_of_a_question_go),
		TEST(parked_queries_count_as_sightings), TEST(a_full_ring_does_not_keep_the_word), TEST(all_are_over_at_once),
		TEST(ends_leave_room_for_changes), TEST(a_new_page_has_no_words),
		TEST(without_hydnsd_nothing_is_under_way), TEST(nothing_is_under_way_where_none_may_wait),
		cmocka_unit_test(bounds_of_auto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
