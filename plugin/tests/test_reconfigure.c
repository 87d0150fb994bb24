/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Another configuration while the resolver's threads go on: what ends with it, what hydnsd gets, and when offers begin again. */
#include <errno.h>
#include <stdlib.h>
#include "plugin/tests/world.h"

#define EDNS_SIZE 1400

static int reconfigure(struct world *w, size_t entries)
{
	struct hydns_acl_entry *e = calloc(entries + 1, sizeof(*e));
	struct hydns_plugin_options o = world_options(w);
	int error;

	o.edns_size = EDNS_SIZE;
	o.flags = HYDNS_RESOLVER_ROTATES;
	o.stale = (struct hydns_stale){ .ttl = 7, .longest = 70, .error = "why" };
	for (size_t i = 0; i < entries; i++)
		e[i] = (struct hydns_acl_entry){ .prefixlen = 96, .action = HYDNS_ACL_ALLOW };
	error = hydns_plugin_reconfigure(w->p, &o, e, entries);
	free(e);
	return error;
}

static void assert_configured(struct world *w, unsigned entries)
{
	assert_int_equal(w->peer.acl_entries, entries);
	assert_int_equal(w->peer.hello.edns_size, EDNS_SIZE);
	assert_int_equal(w->peer.hello.flags, HYDNS_RESOLVER_ROTATES);
	assert_int_equal(w->peer.hello.stale_ttl, 7);
	assert_int_equal(w->peer.hello.stale_longest, 70);
	assert_int_equal(w->peer.hello.stale_error, 1);
	assert_string_equal(w->peer.hello.stale_text, "why");
}

static void hydnsd_gets_it_before_it_returns(void **state)
{
	struct world *w = *state;
	uint32_t epoch = start_and_offer(w);
	struct hydns_stamp older = hydns_plugin_stamp(w->p);

	assert_int_equal(w->peer.hello.edns_size, 1232);
	assert_int_equal(reconfigure(w, 700), 0);
	assert_true(page_epoch(w) != epoch);
	assert_int_equal(atomic_load(&w->peer.resets), 1);
	assert_int_equal(atomic_load(&w->peer.ready), 2);
	assert_configured(w, 700);
	assert_true(atomic_load(&w->p->ready));
	assert_true(older.epoch != hydns_plugin_stamp(w->p).epoch);      /* so what was offered by it is dead */
	assert_int_equal(reconfigure(w, 3), 0);
	assert_configured(w, 3);
	assert_int_equal(atomic_load(&w->peer.hellos), 1);
	peer_stop(&w->peer);
}

static void nothing_is_offered_before(void **state)
{
	struct world *w = *state;
	uint32_t epoch = start_and_offer(w);

	atomic_store(&w->peer.behaviour, PEER_SILENT);
	assert_int_equal(reconfigure(w, 2), 0);
	assert_true(page_epoch(w) != epoch);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ENOTCONN);
	peer_stop(&w->peer);
	atomic_store(&w->peer.behaviour, PEER_WILLING);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_configured(w, 2);
	peer_stop(&w->peer);
}

static void a_later_hydnsd_gets_it(void **state)
{
	struct world *w = *state;

	start_both(w);
	lose_hydnsd(w);
	assert_int_equal(reconfigure(w, 2), 0);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_configured(w, 2);
	assert_int_equal(atomic_load(&w->peer.resets), 0);
	peer_stop(&w->peer);
}

static void too_many_clients_are_none(void **state)
{
	struct world *w = *state;

	start_both(w);
	assert_int_equal(reconfigure(w, HYDNS_ACL_ENTRIES + 1), -E2BIG);
	assert_configured(w, 0);
	peer_stop(&w->peer);
}

/* As the thread that writes what the program logs does; without the flags hydnsd would have answers given that nobody logs. */
static void the_log_goes_on(void **state)
{
	const uint32_t logs = HYDNS_RESOLVER_LOGS | HYDNS_RESOLVER_LOGS_ALL;
	struct world *w = *state;

	w->p->o.flags |= logs;
	start_both(w);
	assert_int_equal(reconfigure(w, 1), 0);
	assert_int_equal(w->peer.hello.flags, HYDNS_RESOLVER_ROTATES | logs);
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(hydnsd_gets_it_before_it_returns), TEST(nothing_is_offered_before), TEST(a_later_hydnsd_gets_it),
		TEST(too_many_clients_are_none), TEST(the_log_goes_on),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
