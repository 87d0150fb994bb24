/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The end of a plugin object, alone and with another one that goes on in its place. */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "plugin/tests/graces.h"
#include "plugin/tests/world.h"

static int bound_socket(struct sockaddr_in6 *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)at, len) || getsockname(fd, (struct sockaddr *)at, &len)) {
		close(fd);
		return -1;
	}
	return fd;
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void take_over(struct world *w, const struct hydns_plugin_options *o)
{
	struct hydns_plugin *former = w->p;

	hydns_plugin_leave(former, NULL, NULL);
	w->p = hydns_plugin_take_over(o, former);
	w->t = hydns_plugin_thread(w->p, 0);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
}

static void one_grace_period_is_enough(void **state)
{
	struct world *w = *state;

	start_and_offer(w);
	watch_graces(w, false);
	hydns_plugin_leave(w->p, gone, NULL);
	hydns_plugin_gone(w->p);
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(graces_begun(), 1);
	assert_int_equal(times_gone, 1);
	assert_int_equal(atomic_load(&w->peer.byes), 1);
	peer_stop(&w->peer);
}

/* hydnsd can still be asked for counts, which no longer grow. */
static void one_that_is_closed_waits_no_more(void **state)
{
	struct world *w = *state;
	struct hydns_counts c;
	uint32_t epoch;

	start_and_offer(w);
	watch_graces(w, false);
	epoch = page_epoch(w);
	hydns_plugin_close(w->p);
	assert_int_equal(graces_begun(), 1);
	assert_true(page_epoch(w) != epoch);
	atomic_store(&w->p->ready, true);      /* as if the link thread had connected at this moment */
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ENOTCONN);
	atomic_store(&w->peer.answered, 5);
	assert_true(hydns_plugin_counts(w->p, &c, 10000));
	assert_int_equal(c.answered, 5);
	hydns_plugin_withdraw_all(w->p);
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(graces_begun(), 1);
	peer_stop(&w->peer);
}

/* Intervals with and without hydnsd still alternate. */
static void one_that_is_closed_loses_hydnsd(void **state)
{
	struct world *w = *state;

	start_both(w);
	hydns_plugin_close(w->p);
	lose_hydnsd(w);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_int_equal(atomic_load(&w->p->interval) % 2, 1);
	peer_stop(&w->peer);
}

/* After a withdrawal of everything, offers go on, so the end needs a grace period of its own. */
static void one_that_withdrew_all_is_not_closed(void **state)
{
	struct world *w = *state;

	start_both(w);
	watch_graces(w, false);
	hydns_plugin_withdraw_all(w->p);
	assert_offered(w);
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(graces_begun(), 2);
	peer_stop(&w->peer);
}

/* A resolver that reloads goes on during the grace period: the rules are dead, no offer is taken, and its addresses can be
 * bound again. The next object is there, and connects after the former has said BYE. */
static void a_reload_waits_for_nothing(void **state)
{
	struct world *w = *state;
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct hydns_plugin_options o = world_options(w);
	struct hydns_plugin *former = w->p;
	int fd = bound_socket(&at), again;
	unsigned descriptors;
	uint32_t epoch;

	start_both(w);
	descriptors = open_descriptors() - 1;
	hydns_plugin_stop(w->p);
	w->p = former = hydns_plugin_new(&o);
	w->t = hydns_plugin_thread(w->p, 0);
	hydns_names_watch(w->p->names);
	assert_int_equal(hydns_plugin_add_service(former, fd), 0);
	close(fd);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
	assert_int_equal(offer(w, hydns_plugin_stamp(former)), 0);
	epoch = page_epoch(w);
	watch_graces(w, true);
	hydns_plugin_leave(former, gone, NULL);
	assert_true(page_epoch(w) != epoch);
	assert_int_equal(page_heartbeat(w), 0);
	assert_int_equal(offer(w, hydns_plugin_stamp(former)), -ENOTCONN);
	again = bound_socket(&at);
	assert_true(again >= 0);
	close(again);
	w->p = hydns_plugin_take_over(&o, former);
	w->t = hydns_plugin_thread(w->p, 0);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(BECOMES(graces_begun() == 1));
	assert_true(graces.epoch != epoch);            /* dead before it began */
	assert_int_equal(graces.heartbeat, 0);
	assert_int_equal(times_gone, 0);
	assert_int_equal(atomic_load(&w->peer.byes), 1);
	assert_false(graces.given_up);                 /* nothing above has waited for one */
	release_graces();
	assert_true(connected(w));
	assert_int_equal(times_gone, 1);
	assert_int_equal(ended_when_gone, 1);
	assert_int_equal(atomic_load(&w->peer.byes_before), 2);
	assert_int_equal(graces_begun(), 1);
	assert_int_equal(open_descriptors(), descriptors);     /* nothing of the former is left */
	assert_offered(w);
	peer_stop(&w->peer);
}

/* A resolver that had two and goes on with one. */
static void a_successor_ends_all_that_it_is_given(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options o = world_options(w);
	struct hydns_plugin *former[2] = { w->p, hydns_plugin_new(&o) };
	unsigned descriptors;

	peer_start(&w->peer);
	for (int i = 0; i < 2; i++) {
		w->p = former[i];
		assert_int_equal(hydns_plugin_start(w->p), 0);
		assert_true(connected(w));
		if (i == 0)
			descriptors = open_descriptors();
		hydns_plugin_leave(w->p, NULL, NULL);
		hydns_plugin_gone(w->p);
	}
	hydns_plugin_take_along(former[0], former[1]);
	w->p = hydns_plugin_take_over(&o, former[0]);
	w->t = hydns_plugin_thread(w->p, 0);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
	assert_int_equal(atomic_load(&w->peer.byes_before), 2);
	assert_true(open_descriptors() < descriptors);
	peer_stop(&w->peer);
}

/* New tables would cost a reload tens of milliseconds. What was hot is hot at once, and is offered again although the former
 * object has just offered it. */
static void a_successor_goes_on_with_the_tables(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options o = world_options(w);
	const time_t expires = time(NULL) + TTL;
	const void *names = w->p->names, *offered = w->p->offered, *ends = w->p->ends, *sketch = w->t->hot.sketch;

	start_both(w);
	while (!hot(w, expires))
		;
	assert_offered(w);
	assert_false(hot(w, expires));
	take_over(w, &o);
	assert_ptr_equal(w->p->names, names);
	assert_ptr_equal(w->p->offered, offered);
	assert_ptr_equal(w->p->ends, ends);
	assert_ptr_equal(w->t->hot.sketch, sketch);
	assert_ptr_equal(w->t->hot.offered, offered);
	assert_true(hot(w, expires));
	assert_offered(w);

	o.capacity *= 100;                     /* those of another size are new */
	o.threads--;
	take_over(w, &o);
	assert_false(hot(w, expires));
	while (!hot(w, expires))
		;
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ESTALE);        /* nobody watched yet */
	assert_offered(w);
	hydns_plugin_stop(w->p);
	w->p = hydns_plugin_new(&o);          /* without a former one */
	w->t = hydns_plugin_thread(w->p, 0);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
	assert_false(hot(w, expires));
	peer_stop(&w->peer);
}

/* The caller keeps the former object. */
static void a_successor_that_fails_takes_nothing(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options bad = world_options(w);

	bad.threads = 0;
	start_both(w);
	watch_graces(w, false);
	hydns_plugin_leave(w->p, gone, NULL);
	assert_null(hydns_plugin_take_over(&bad, w->p));
	hydns_plugin_stop(w->p);
	bad.threads = THREADS;
	w->p = hydns_plugin_new(&bad);
	hydns_plugin_leave(w->p, NULL, NULL);
	w->p = hydns_plugin_take_over(&bad, w->p);
	hydns_plugin_wait_former(w->p);       /* neither was ever started: the teardown stops both */
	assert_int_equal(graces_begun(), 1);
	peer_stop(&w->peer);
}

/* With hydnsd away, or never there, or without a link thread: gone() is called, and nothing hangs. */
static void leaves_whatever_the_link_does(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options o = world_options(w);

	hydns_plugin_leave(w->p, gone, NULL);
	assert_int_equal(times_gone, 1);
	hydns_plugin_gone(w->p);
	hydns_plugin_stop(w->p);
	w->p = hydns_plugin_new(&o);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	hydns_plugin_leave(w->p, gone, NULL);
	hydns_plugin_gone(w->p);
	hydns_plugin_leave(w->p, gone, NULL);         /* a second caller */
	hydns_plugin_stop(w->p);
	assert_int_equal(times_gone, 3);
	w->p = hydns_plugin_new(&o);
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	start_both(w);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));      /* times out; the link thread still waits */
	hydns_plugin_leave(w->p, gone, NULL);
	hydns_plugin_gone(w->p);
	assert_true(BECOMES(times_gone == 4));
	peer_stop(&w->peer);
}

/* Not even by an object that was never started. */
static void no_socket_is_held_after_leaving(void **state)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct world *w = *state;
	int fd = bound_socket(&at);

	assert_int_equal(hydns_plugin_add_service(w->p, fd), 0);
	close(fd);
	assert_int_equal(bound_socket(&at), -1);
	hydns_plugin_leave(w->p, NULL, NULL);
	fd = bound_socket(&at);
	assert_true(fd >= 0);
	close(fd);
}

/* hydnsd hangs at that moment: leaving empties the list of addresses during a walk over it. */
static void leaves_while_an_address_is_tried_again(void **state)
{
	struct sockaddr_in6 at[2] = { { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT },
				      { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT } };
	struct world *w = *state;

	for (int i = 0; i < 2; i++) {
		int fd = bound_socket(&at[i]);

		assert_int_equal(hydns_plugin_add_service(w->p, fd), 0);
		close(fd);
	}
	atomic_store(&w->peer.behaviour, PEER_OCCUPIED);
	start_both(w);
	assert_int_equal(w->peer.services, 1);
	assert_true(log_has("hydnsd refused a listening address: another resolver has this address"));
	assert_true(BECOMES(atomic_load(&w->peer.retries)));
	hydns_plugin_leave(w->p, gone, NULL);
	hydns_plugin_gone(w->p);
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(times_gone, 1);
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
#define LEAVING(f) cmocka_unit_test_setup_teardown(f, graces_setup, graces_teardown)

/* A fresh object that wants packet rings to upstream. */
static void begin_with_ports(struct world *w)
{
	struct hydns_plugin_options o = world_options(w);

	o.queue = HYDNS_QUEUE_UPSTREAM;
	o.first_port = PEER_PORT;
	o.ports = PEER_PORTS;
	hydns_plugin_stop(w->p);
	w->p = hydns_plugin_new(&o);
	assert_non_null(w->p);
	w->t = hydns_plugin_thread(w->p, 0);
	start_both(w);
}

static bool claims_ports(struct world *w)
{
	return hydns_ports_any(hydns_ports_thread(hydns_upstream_ports(w->p->upstream), 0));
}

static void no_port_is_claimed_once_it_leaves(void **state)
{
	struct world *w = *state;

	begin_with_ports(w);
	assert_true(BECOMES(claims_ports(w)));
	hydns_plugin_leave(w->p, NULL, NULL);
	assert_false(claims_ports(w));
	hydns_plugin_gone(w->p);
	assert_true(BECOMES(atomic_load(&w->peer.byes) == 1));
	assert_false(claims_ports(w));
	peer_stop(&w->peer);
}

/* hydnsd gives the sockets for strays, without which no port is claimed, when the object leaves already. */
static void no_port_is_claimed_if_it_leaves_just_then(void **state)
{
	struct world *w = *state;

	atomic_store(&w->peer.strays_held, true);
	begin_with_ports(w);
	assert_true(BECOMES(atomic_load(&w->peer.strays) == 1));
	hydns_plugin_leave(w->p, NULL, NULL);
	atomic_store(&w->peer.strays_held, false);
	assert_true(BECOMES(atomic_load(&w->peer.byes) == 1));
	assert_false(claims_ports(w));
	peer_stop(&w->peer);
}

int main(void)
{
	const struct CMUnitTest test[] = {
		LEAVING(one_grace_period_is_enough), LEAVING(one_that_is_closed_waits_no_more),
		TEST(one_that_is_closed_loses_hydnsd), LEAVING(one_that_withdrew_all_is_not_closed),
		LEAVING(a_reload_waits_for_nothing), LEAVING(a_successor_ends_all_that_it_is_given),
		LEAVING(a_successor_goes_on_with_the_tables), LEAVING(a_successor_that_fails_takes_nothing),
		LEAVING(leaves_whatever_the_link_does), LEAVING(no_socket_is_held_after_leaving),
		LEAVING(leaves_while_an_address_is_tried_again), TEST(no_port_is_claimed_once_it_leaves),
		TEST(no_port_is_claimed_if_it_leaves_just_then),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
