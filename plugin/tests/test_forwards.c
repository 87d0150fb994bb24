/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The list of zones that the program may forward: when hydnsd gets it, and when its number stands on the page. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/forward_zones.h"
#include "plugin/tests/world.h"

static struct hydns_forward_name zone[HYDNS_FORWARD_ZONES + 1];

/* zones: z0, z1, ...; the server of all is 192.0.2.<last>. */
static struct hydns_plugin_forwards list(unsigned zones, uint8_t last)
{
	struct hydns_plugin_forwards f = { .max_ttl = 86400, .max_negative_ttl = 3600, .flags = HYDNS_FORWARDS_ADDS,
		.servers = zones ? 1 : 0, .zones = zones,
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

	assert_int_not_equal(atomic_load(&w->peer.forwards), 0);       /* what the peer wrote before that can be read */
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
	assert_int_equal(w->peer.forward.flags, HYDNS_FORWARDS_FIRST | HYDNS_FORWARDS_LAST | HYDNS_FORWARDS_ADDS);
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
	unsigned lines;

	start_both(w);
	atomic_store(&w->peer.refuses_forwards, true);
	assert_true(forward(w, 2, 1));
	assert_int_equal(page_number(w), 0);
	assert_true(BECOMES(!strncmp(peer_note(&w->peer, HYDNS_NOTE_FORWARD_REFUSED), text, strlen(text))));
	assert_true(log_has(text));
	lines = log_lines;
	assert_true(forward(w, 3, 1));                          /* for the same cause: one line is enough */
	assert_int_equal(log_lines, lines);
	atomic_store(&w->peer.refuses_forwards, false);
	assert_true(forward(w, 4, 1));
	expect_told(w, 4, 1);
	assert_true(BECOMES(*peer_note(&w->peer, HYDNS_NOTE_FORWARD_REFUSED) == '\0'));
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

/* -- making the list -------------------------------------------------------------------------------------------- */
#define NAME(text) (const uint8_t *)(text), sizeof(text)

static uint32_t servers_of(const struct hydns_forward_zones *z, const char *name, size_t len)
{
	for (uint32_t i = 0; i < z->of.zones; i++)
		if (z->of.zone[i].name_len == len && !memcmp(z->of.zone[i].name, name, len))
			return z->of.zone[i].upstreams;
	return UINT32_MAX;
}

/* What is within a forwarded zone is in the list, without servers; what is elsewhere is not. */
static void zones_within_are_left_out(void **state)
{
	struct hydns_forward_zones *z = hydns_forward_zones_new();

	(void)state;
	hydns_forward_zones_add(z, NAME("\4Corp\7EXAMPLE"), 1);
	hydns_forward_zones_leave_out(z, NAME("\5Inner\4corp\7example"));
	hydns_forward_zones_leave_out(z, NAME("\1a\5inner\4corp\7example"));
	hydns_forward_zones_leave_out(z, NAME("\5xcorp\7example"));
	hydns_forward_zones_leave_out(z, NAME("\7example"));
	hydns_forward_zones_leave_out(z, NAME(""));
	hydns_forward_zones_leave_out(z, NAME("\4corp\7example"));          /* itself */
	assert_int_equal(z->of.zones, 3);
	assert_int_equal(servers_of(z, "\4corp\7example", 14), 1);
	assert_int_equal(servers_of(z, "\5inner\4corp\7example", 20), 0);
	assert_int_equal(servers_of(z, "\1a\5inner\4corp\7example", 22), 0);
	assert_true(hydns_forward_zones_has(z, NAME("\4cOrp\7example")));
	assert_false(hydns_forward_zones_has(z, NAME("\7example")));
	hydns_forward_zones_add(z, NAME(""), 1);                             /* the root has all others */
	hydns_forward_zones_leave_out(z, NAME("\7example"));
	assert_int_equal(servers_of(z, "\7example", 9), 0);
	hydns_forward_zones_free(z);
}

static void servers_are_of_other_hosts(void **state)
{
	static const struct {
		uint8_t addr[16];
		bool good;
	} of[] = {
		{ { [10] = 0xff, 0xff, 192, 0, 2, 1 }, true }, { { [10] = 0xff, 0xff, 127, 0, 0, 1 }, false },
		{ { [10] = 0xff, 0xff, 0, 0, 0, 0 }, false }, { { [10] = 0xff, 0xff, 224, 0, 0, 1 }, false },
		{ { 0x20, 1, 13, 0xb8, [15] = 1 }, true }, { { [15] = 1 }, false }, { { [15] = 0 }, false },
		{ { 0xfe, 0x80, [15] = 1 }, false }, { { 0xff, 2, [15] = 1 }, false },
	};
	struct hydns_forward_zones *z = hydns_forward_zones_new();
	uint8_t addr[16] = { [10] = 0xff, 0xff, 192, 0, 2, 0 };
	uint32_t servers;

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		for (int again = 0; again < 2; again++) {
			servers = 0;
			assert_int_equal(hydns_forward_zones_server(z, of[i].addr, htons(53), &servers) == NULL, of[i].good);
			assert_int_equal(servers != 0, of[i].good);
		}
	assert_int_equal(z->of.servers, 2);
	for (int i = 2; i < HYDNS_FORWARD_UPSTREAMS; i++) {
		addr[15] = (uint8_t)(i + 1);
		servers = 0;
		assert_null(hydns_forward_zones_server(z, addr, htons(53), &servers));
		assert_int_equal(servers, 1U << i);
	}
	assert_non_null(hydns_forward_zones_server(z, addr, htons(5353), &servers));
	hydns_forward_zones_free(z);
}

static unsigned warnings, errors;

static void count_line(enum hydns_log_level level, const char *text)
{
	(void)text;
	if (level == HYDNS_LOG_ERROR)
		errors++;
	else
		warnings++;
}

/* One line for each refusal that is news; a note as long as it holds. */
static void refusals_are_noted_once(void **state)
{
	struct world *w = *state;
	struct hydns_forward_notes former = { 0 };
	static const char second[] = "zone corp.example is not forwarded in the kernel: second";

	start_both(w);
	for (unsigned round = 0; round < 3; round++) {
		struct hydns_forward_zones *z = hydns_forward_zones_new();

		hydns_forward_zones_refuse(z, "zone", "corp.example", round < 2 ? "first" : "second");
		assert_false(hydns_forward_zones_use(z, w->p, &former, count_line));
		assert_int_equal(warnings, round < 2 ? 1 : 2);
		hydns_forward_zones_free(z);
	}
	assert_true(BECOMES(!strncmp(peer_note(&w->peer, HYDNS_NOTE_FORWARD), second, strlen(second))));
	assert_true(hydns_forward_zones_use(NULL, w->p, &former, count_line) == false && errors == 1);
	peer_stop(&w->peer);
}

/* More zones than hydnsd takes: none is forwarded, as those that are left out could not be. */
static void too_many_zones_are_none(void **state)
{
	struct world *w = *state;
	struct hydns_forward_notes former = { 0 };
	struct hydns_forward_zones *z = hydns_forward_zones_new();
	uint8_t addr[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };
	uint32_t servers = 0;

	start_both(w);
	assert_null(hydns_forward_zones_server(z, addr, htons(53), &servers));
	hydns_forward_zones_add(z, NAME("\7example"), servers);
	for (unsigned i = 1; i <= HYDNS_FORWARD_ZONES; i++) {
		uint8_t name[16] = "\5z0000\7example";

		snprintf((char *)name + 1, 6, "z%04u", i);
		name[6] = 7;
		hydns_forward_zones_leave_out(z, name, 15);
		if (i == HYDNS_FORWARD_ZONES - 1) {
			assert_true(hydns_forward_zones_use(z, w->p, &former, count_line));
			assert_true(BECOMES(page_number(w) != 0));
		}
	}
	assert_false(hydns_forward_zones_use(z, w->p, &former, count_line));
	assert_int_equal(page_number(w), 0);
	assert_int_equal(former.count, 1);
	hydns_forward_zones_free(z);
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(a_list_has_a_number), TEST(a_long_list_takes_several_messages), TEST(a_change_holds_without_an_answer),
		TEST(another_hydnsd_is_told), TEST(a_refusal_is_noted), TEST(a_list_that_was_replaced_counts_no_more),
		cmocka_unit_test(zones_within_are_left_out), cmocka_unit_test(servers_are_of_other_hosts), TEST(refusals_are_noted_once),
		TEST(too_many_zones_are_none),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
