/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Lanes and a hydnsd that ends while one is opened, on the loopback interface of a namespace of its own. Skipped where the
 * process may not make it.
 */
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "plugin/tests/world.h"

static int set_up(void **state)
{
	struct hydns_plugin_options o;
	struct world *w;

	world_setup(state);
	w = *state;
	hydns_plugin_stop(w->p);
	o = world_options(w);
	o.queue = HYDNS_QUEUE_CLIENTS;
	o.queue_frames = HYDNS_LANE_FRAMES_MIN;
	w->p = hydns_plugin_new(&o);
	w->t = hydns_plugin_thread(w->p, 0);
	w->peer.lane_at = if_nametoindex("lo");
	return 0;
}

/* It may have told the program already, which then goes on redirecting to the lane: what comes is still read. The next hydnsd
 * knows by the program's map whose the lane is. */
static void a_lane_outlives_a_hydnsd_that_ends_at_its_opening(void **state)
{
	struct world *w = *state;

	atomic_store(&w->peer.dies_at_open, true);
	start_both(w);
	assert_true(BECOMES(atomic_load(&w->peer.opens) == 2));
	assert_int_equal(atomic_load(&w->peer.lanes), 1);
	assert_true(BECOMES(log_has("packet rings on 1 receive queues")));
	peer_stop(&w->peer);
}

/* The next hydnsd does not know it: the program does not redirect to it. */
static void a_lane_that_is_refused_ends(void **state)
{
	struct world *w = *state;

	atomic_store(&w->peer.dies_at_open, true);
	atomic_store(&w->peer.refuses_open, true);
	start_both(w);
	assert_true(BECOMES(atomic_load(&w->peer.opens) == 3));      /* the first, the second refused, that of a new lane */
	assert_true(atomic_load(&w->peer.lanes) >= 2);               /* a queue is busy for a moment */
	assert_true(BECOMES(log_has("packet rings on 1 receive queues")));
	peer_stop(&w->peer);
}

/* The program of a hydnsd that refuses the resolver brings nothing to them; the next one that takes it opens them again. */
static void lanes_end_when_hydnsd_refuses_the_resolver(void **state)
{
	struct world *w = *state;

	start_both(w);
	assert_true(BECOMES(log_has("packet rings on 1 receive queues")));
	peer_stop(&w->peer);
	atomic_store(&w->peer.behaviour, PEER_OTHER_ABI);
	peer_start(&w->peer);
	assert_true(BECOMES(log_has("no packet rings: 0 receive queues")));
	assert_int_equal(w->peer.page->queue, 0);
	peer_stop(&w->peer);
	atomic_store(&w->peer.behaviour, PEER_WILLING);
	peer_start(&w->peer);
	assert_true(BECOMES(w->peer.page->queue == HYDNS_QUEUE_CLIENTS));
	assert_true(atomic_load(&w->peer.lanes) >= 2);
	peer_stop(&w->peer);
}

static bool possible(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int fd;

	setrlimit(RLIMIT_MEMLOCK, &all);
	if (geteuid() != 0 || unshare(CLONE_NEWNET) || system("ip link set lo up"))
		return false;
	fd = peer_lane_socket();
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lane_outlives_a_hydnsd_that_ends_at_its_opening, set_up, world_teardown),
		cmocka_unit_test_setup_teardown(a_lane_that_is_refused_ends, set_up, world_teardown),
		cmocka_unit_test_setup_teardown(lanes_end_when_hydnsd_refuses_the_resolver, set_up, world_teardown),
	};

	if (!possible()) {
		fprintf(stderr, "skipped: needs root and AF_XDP\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
