/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What other threads send to hydnsd or ask it for through the link thread: cookie secrets, notes, counts. */
#include <string.h>
#include "plugin/tests/world.h"

static const uint8_t secret[3][HYDNS_COOKIE_SECRET_LEN] = { "first of sixteen", "another secret 2", "and the third 16" };

static uint32_t page_cookies(struct world *w)
{
	return __atomic_load_n(&w->peer.page->cookies, __ATOMIC_SEQ_CST);
}

static void expect_secrets(struct world *w, uint32_t set, unsigned from, unsigned n)
{
	assert_int_equal(page_cookies(w), set);
	assert_int_equal(w->peer.cookies.set, set);
	assert_int_equal(w->peer.cookies.count, n);
	assert_memory_equal(w->peer.cookies.secret, secret[from], n * sizeof(secret[0]));
}

static void secrets_are_told(void **state)
{
	struct world *w = *state;
	uint32_t epoch;

	hydns_plugin_cookie_secrets(w->p, secret, 1);
	start_both(w);
	expect_secrets(w, 1, 0, 1);
	epoch = page_epoch(w);
	hydns_plugin_cookie_secrets(w->p, secret, 1);          /* the same: nothing is sent */
	hydns_plugin_cookie_secrets(w->p, secret, 2);
	expect_secrets(w, 2, 0, 2);
	hydns_plugin_cookie_secrets(w->p, secret + 1, 2);
	expect_secrets(w, 3, 1, 2);
	hydns_plugin_cookie_secrets(w->p, secret, 0);
	expect_secrets(w, 4, 0, 0);
	assert_int_equal(atomic_load(&w->peer.secrets), 4);
	assert_int_equal(page_epoch(w), epoch);                 /* no rule was withdrawn */
	peer_stop(&w->peer);
}

/* The page says at once that there are other secrets. hydnsd gets them when it can, also on a new page. */
static void secrets_without_an_answer(void **state)
{
	struct world *w = *state;
	uint64_t took;

	hydns_plugin_cookie_secrets(w->p, secret, 1);
	start_both(w);
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	took = hydns_mono_ns();
	hydns_plugin_cookie_secrets(w->p, secret + 1, 1);
	took = (hydns_mono_ns() - took) / HYDNS_NS_PER_MS;
	assert_true(took >= FLUSH_TIMEOUT_MS);
	assert_int_equal(page_cookies(w), 2);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	hydns_plugin_cookie_secrets(w->p, secret + 2, 1);
	assert_int_equal(page_cookies(w), 3);
	for (int forgetful = 0; forgetful < 2; forgetful++) {
		memset(&w->peer.cookies, 0, sizeof(w->peer.cookies));
		atomic_store(&w->peer.forgetful, forgetful);
		atomic_store(&w->peer.behaviour, PEER_WILLING);
		peer_start(&w->peer);
		assert_true(connected(w));
		expect_secrets(w, 3, 2, 1);
		peer_stop(&w->peer);
		assert_true(disconnected(w));
	}
}

static void counts(void **state)
{
	struct world *w = *state;
	struct hydns_counts c;

	atomic_store(&w->peer.answered, 42);
	start_both(w);
	assert_true(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 42);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	memset(&c, 0, sizeof(c));
	assert_false(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 42);                       /* the last known */
}

/* A hydnsd that knows the page goes on counting. One that does not starts at 0, and former counts are added. */
static void counts_never_fall(void **state)
{
	struct world *w = *state;
	struct hydns_counts c;

	atomic_store(&w->peer.answered, 42);
	start_both(w);
	assert_true(hydns_plugin_counts(w->p, &c, 5000));
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	atomic_store(&w->peer.answered, 50);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_true(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 50);
	atomic_store(&w->peer.answered, 57);                    /* sent unasked when hydnsd ends */
	atomic_store(&w->peer.last_words, true);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	assert_false(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 57);
	atomic_store(&w->peer.forgetful, true);
	atomic_store(&w->peer.answered, 5);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_true(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 62);
	assert_int_equal(c.ipv6, 14);
	assert_int_equal(c.rules, 3);                           /* a number of now, not a sum */
	peer_stop(&w->peer);
}

/* hydnsd has the notes of now, also those set while it was away. */
static void notes_follow(void **state)
{
	static const char *const logged[] = { "queries are logged", "responses are logged" };
	struct world *w = *state;

	assert_int_equal(hydns_plugin_add_note(w->p, HYDNS_NOTE_CLIENTS, "some clients"), 0);
	start_both(w);
	assert_string_equal(peer_note(&w->peer, HYDNS_NOTE_OBSTACLE), "");
	hydns_plugin_set_notes(w->p, HYDNS_NOTE_OBSTACLE, logged, 2);
	assert_string_equal(peer_note(&w->peer, HYDNS_NOTE_OBSTACLE), "queries are logged responses are logged ");
	hydns_plugin_set_notes(w->p, HYDNS_NOTE_OBSTACLE, logged + 1, 1);
	assert_string_equal(peer_note(&w->peer, HYDNS_NOTE_OBSTACLE), "responses are logged ");
	hydns_plugin_set_notes(w->p, HYDNS_NOTE_OBSTACLE, NULL, 0);
	assert_string_equal(peer_note(&w->peer, HYDNS_NOTE_OBSTACLE), "");
	assert_string_equal(peer_note(&w->peer, HYDNS_NOTE_CLIENTS), "some clients ");
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	hydns_plugin_set_notes(w->p, HYDNS_NOTE_OBSTACLE, logged, 1);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_string_equal(peer_note(&w->peer, HYDNS_NOTE_OBSTACLE), "queries are logged ");
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(secrets_are_told), TEST(secrets_without_an_answer), TEST(counts),
		TEST(counts_never_fall), TEST(notes_follow),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
