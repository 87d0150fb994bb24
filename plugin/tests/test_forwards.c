/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The list of zones that the program may forward: when hydnsd gets it, and when its number stands on the page. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/tests/world.h"

static struct hydns_forward_name zone[HYDNS_FORWARD_ZONES + 1];

/* zones: z0, z1, ...; the server of all is 192.0.2.<last>. */
static struct hydns_plugin_forwards list(unsigned zones, uint8_t last)
{
	struct hydns_plugin_forwards f = { .max_ttl = 86400, .max_negative_ttl = 3600, .servers = zones ? 1 : 0, .zones = zones,
		.server = { { .addr = { [10] = 0xff, 0xff, 192, 0, 2, last }, .port = htons(53) } }, .zone = zone };

	memset(zone, 0, sizeof(zone));
	for (unsigned i = 0; i < zones; i++) {
		zone[i].upstreams = 1;
		zone[i].name_len = (uint8_t)(snprintf((char *)zone[i].name, sizeof(zone[i].name), "%cz%04u", 5, i) + 1);
	}
	return f;
}

static bool forward(struct world *w, unsigned zones, uint8_t last)
{
	const struct hydns_plugin_forwards f = list(zones, last);

	return hydns_plugin_forward(w->p, &f);
}

static uint32_t page_number(struct world *w)
{
	return __atomic_load_n(&w->peer.page->forward, __ATOMIC_SEQ_CST);
}

static void expect_told(struct world *w, unsigned zones, uint8_t last)
{
	const struct hydns_plugin_forwards f = list(zones, last);

	assert_int_equal(page_number(w), w->peer.forward.number);
	assert_int_equal(w->peer.forward.max_ttl, 86400);
	assert_int_equal(w->peer.forward.max_negative_ttl, 3600);
	assert_int_equal(w->peer.forward_servers, 1);
	assert_memory_equal(w->peer.forward_server, f.server, sizeof(f.server[0]));
	assert_int_equal(w->peer.forward_zones, zones);
	assert_memory_equal(w->peer.forward_zone, zone, zones * sizeof(zone[0]));
}

static void a_list_has_a_number(void **state)
{
	struct world *w = *state;
	uint32_t first;

	start_both(w);
	assert_int_equal(page_number(w), 0);
	assert_true(forward(w, 2, 1));
	expect_told(w, 2, 1);
	assert_int_equal(w->peer.forward.flags, HYDNS_FORWARDS_FIRST | HYDNS_FORWARDS_LAST);
	first = page_number(w);
	assert_true(first != 0);
	assert_true(forward(w, 2, 1));                          /* the same: nothing is sent */
	assert_int_equal(atomic_load(&w->peer.forwards), 1);
	assert_int_equal(page_number(w), first);
	assert_true(forward(w, 2, 7));
	expect_told(w, 2, 7);
	assert_true(page_number(w) != first);
	assert_true(forward(w, 0, 7));
	assert_int_equal(w->peer.forward_zones, 0);
	assert_int_equal(page_number(w), 0);
	peer_stop(&w->peer);
}

static void a_long_list_takes_several_messages(void **state)
{
	struct world *w = *state;

	start_both(w);
	assert_true(forward(w, HYDNS_FORWARD_ZONES, 1));
	assert_true(atomic_load(&w->peer.forwards) > 1);
	assert_int_equal(w->peer.forward.flags, HYDNS_FORWARDS_LAST);
	expect_told(w, HYDNS_FORWARD_ZONES, 1);
	assert_false(forward(w, HYDNS_FORWARD_ZONES + 1, 1));   /* then none is forwarded */
	assert_int_equal(w->peer.forward_zones, 0);
	assert_int_equal(page_number(w), 0);
	peer_stop(&w->peer);
}

/* What was forwarded before is no more when the call returns. */
static void a_change_holds_without_an_answer(void **state)
{
	struct world *w = *state;

	start_both(w);
	assert_true(forward(w, 2, 1));
	assert_true(page_number(w) != 0);
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	assert_true(forward(w, 3, 1));
	assert_int_equal(page_number(w), 0);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	assert_true(forward(w, 1, 1));
	assert_int_equal(page_number(w), 0);
}

/* The page that it knows has the list's former number no more; a new one has none yet. */
static void another_hydnsd_is_told(void **state)
{
	struct world *w = *state;
	uint32_t former;

	assert_true(forward(w, 2, 1));                          /* before there is a link */
	start_both(w);
	for (int forgetful = 0; forgetful < 2; forgetful++) {
		assert_true(BECOMES(page_number(w) != 0));
		expect_told(w, 2, 1);
		former = page_number(w);
		lose_hydnsd(w);
		memset(&w->peer.forward, 0, sizeof(w->peer.forward));
		w->peer.forward_servers = w->peer.forward_zones = 0;
		atomic_store(&w->peer.forgetful, forgetful);
		peer_start(&w->peer);
		assert_true(connected(w));
		assert_true(BECOMES(page_number(w) != 0 && page_number(w) != former));
		expect_told(w, 2, 1);
	}
	peer_stop(&w->peer);
}

static void a_refusal_is_noted(void **state)
{
	static const char text[] = "no zone is forwarded in the kernel: no port is reserved";
	struct world *w = *state;
	const char *note = w->peer.note[HYDNS_NOTE_FORWARD_REFUSED];
	unsigned lines;

	start_both(w);
	atomic_store(&w->peer.refuses_forwards, true);
	assert_true(forward(w, 2, 1));
	assert_int_equal(page_number(w), 0);
	assert_true(BECOMES(!strncmp(note, text, strlen(text))));
	assert_true(log_has(text));
	lines = log_lines;
	assert_true(forward(w, 3, 1));                          /* for the same cause: one line is enough */
	assert_int_equal(log_lines, lines);
	atomic_store(&w->peer.refuses_forwards, false);
	assert_true(forward(w, 4, 1));
	expect_told(w, 4, 1);
	assert_true(BECOMES(note[0] == '\0'));
	peer_stop(&w->peer);
}

/* hydnsd acknowledges a list that was replaced meanwhile. */
static void a_list_that_was_replaced_counts_no_more(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_forwards copy;
	uint32_t number, changed, now;

	start_both(w);
	assert_true(forward(w, 2, 1));
	number = hydns_forward_list_begin(&w->p->forwards, w->p->pages, &changed, &copy);
	assert_int_equal(page_number(w), 0);
	assert_int_equal(copy.zones, 2);
	free(copy.zone);
	assert_true(forward(w, 3, 1));
	now = page_number(w);
	assert_true(now != 0 && now != number);
	hydns_forward_list_known(&w->p->forwards, w->p->pages, number, changed);
	assert_int_equal(page_number(w), now);
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(a_list_has_a_number), TEST(a_long_list_takes_several_messages), TEST(a_change_holds_without_an_answer),
		TEST(another_hydnsd_is_told), TEST(a_refusal_is_noted), TEST(a_list_that_was_replaced_counts_no_more),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
