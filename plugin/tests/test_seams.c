/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Moments that a run meets too rarely, made to happen: what one thread of the library does while another one is held
 * between two steps (seams.h).
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/tests/seams.h"
#include "plugin/tests/world.h"

static const uint8_t other[] = "\5other\7example\3org";

static int set_up(void **state)
{
	seams_open();
	return world_setup(state);
}

/* A failed test has left a party held. */
static int tear_down(void **state)
{
	seams_open();
	return world_teardown(state);
}

/* -- what an offer carries ----------------------------------------------------------------------------------- */
/* By the stamp hydnsd knows what the answer may be older than. So it is that of the look-up, whatever has happened since. */
static void an_offer_carries_its_stamp(void **state)
{
	static const struct reply_spec spec = { .name = "other.example.org.", .type = 1,
		.answer = { "other.example.org. 30 IN A 192.0.2.2" } };
	union { struct hydns_offer offer; uint8_t room[2048]; } f;
	struct world *w = *state;
	struct hydns_stamp stamp;
	struct reply reply;
	time_t now = time(NULL);

	start_both(w);
	reply_make(&reply, &spec);
	assert_int_equal(hydns_plugin_offer(w->t, &reply.question, reply.wire, reply.len, now, now + TTL, true,
					     hydns_plugin_stamp(w->p)), 0);
	reply_free(&reply);
	empty_rings(w);
	stamp = hydns_plugin_stamp(w->p);
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), other, sizeof(other));
	assert_int_equal(page_generation(w), stamp.generation + 1);
	assert_int_equal(offer(w, stamp), 0);
	assert_non_null(peer_frame(&w->peer, 0, f.room, sizeof(f.room)));
	assert_int_equal(f.offer.frame.type, HYDNS_FRAME_OFFER);
	assert_int_equal(f.offer.generation, stamp.generation);
	assert_int_equal(f.offer.epoch, stamp.epoch);
	peer_stop(&w->peer);
}

static void *offer_it(void *arg)
{
	struct world *w = arg;

	offer(w, hydns_plugin_stamp(w->p));
	return NULL;
}

/* An offer is on its way, after all checks, when everything or its name is withdrawn: hydnsd can see that. */
static void an_offer_on_its_way_is_told_apart(void **state)
{
	union { struct hydns_offer offer; uint8_t room[2048]; } f;
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	for (int all = 0; all < 2; all++) {
		pthread_t thread;

		seam_hold(SEAM_FIRST, "begin reserve");
		thread = seam_thread(SEAM_FIRST, offer_it, w);
		seam_go(SEAM_FIRST);
		assert_true(seam_wait(SEAM_FIRST, "reserve", NULL, NULL));
		if (all)
			hydns_plugin_withdraw_all(w->p);
		else
			hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
		seam_open(SEAM_FIRST);
		pthread_join(thread, NULL);
		assert_non_null(peer_frame(&w->peer, 0, f.room, sizeof(f.room)));
		assert_int_equal(f.offer.epoch, epoch);
		assert_int_equal(f.offer.generation + 1, page_generation(w));
	}
	assert_int_equal(page_epoch(w), epoch + 1);
	assert_int_equal(w->peer.last_withdrawal.generation, 1);
	peer_stop(&w->peer);
}

/* The kernel path writes one size for all, so an answer with another size, or to a resolver that is said to have
 * another, is the resolver's. */
static void an_edns_size_of_its_own_is_not_offered(void **state)
{
	static const struct { uint16_t size; int error; } turn[] = { { 1231, -EINVAL }, { 1233, -EINVAL }, { 1232, 0 } };
	struct world *w = *state;
	struct reply_spec spec = { .name = "www.example.org.", .type = 1, .edns = true,
		.answer = { "www.example.org. 30 IN A 192.0.2.1" } };
	time_t now = time(NULL);

	start_both(w);
	for (size_t i = 0; i < sizeof(turn) / sizeof(turn[0]); i++) {
		struct reply reply;

		spec.edns_size = turn[i].size;
		reply_make(&reply, &spec);
		assert_int_equal(hydns_plugin_offer(w->t, &reply.question, reply.wire, reply.len, now, now + TTL, false,
						     hydns_plugin_stamp(w->p)), turn[i].error);
		reply_free(&reply);
	}
	assert_true(log_has("replies carry EDNS payload size 1231, but 1232 is configured"));
	peer_stop(&w->peer);
}

/* -- a change while hydnsd is lost ------------------------------------------------------------------------------ */
static void *change(void *arg)
{
	struct world *w = arg;

	hydns_plugin_changed(w->t, www, sizeof(www));
	return NULL;
}

/* The link thread has looked at the rings before the frame was there, and looks again only when it has tried to connect:
 * so the changing thread has to see that hydnsd is lost. */
static void a_change_sees_the_loss_that_has_not_seen_it(void **state)
{
	struct world *w = *state;
	pthread_t thread;

	start_both(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	empty_rings(w);
	seam_hold(SEAM_FIRST, "begin reserve");
	thread = seam_thread(SEAM_FIRST, change, w);
	seam_go(SEAM_FIRST);
	assert_true(seam_wait(SEAM_FIRST, "reserve", NULL, NULL));
	seam_hold(SEAM_LINK, "connect");
	peer_stop(&w->peer);
	assert_true(seam_wait(SEAM_LINK, "connect", NULL, NULL));
	assert_false(suspended(w));
	seam_open(SEAM_FIRST);
	pthread_join(thread, NULL);
	assert_true(suspended(w));
	seams_open();
}

/* -- withdrawals that hydnsd does not do --------------------------------------------------------------------------- */
struct withdrawal {
	struct world *w;
	void (*run)(struct world *w);
	_Atomic bool done;
};

static void *withdraw(void *arg)
{
	struct withdrawal *d = arg;

	d->run(d->w);
	atomic_store(&d->done, true);
	return NULL;
}

static bool is_done(void *arg)
{
	return atomic_load(&((struct withdrawal *)arg)->done);
}

/* Runs it, and returns while it waits for the programs that are running: true; false: it has not waited. */
static bool waits(struct withdrawal *d, pthread_t *thread)
{
	seam_hold(SEAM_FIRST, "begin barrier");
	*thread = seam_thread(SEAM_FIRST, withdraw, d);
	seam_go(SEAM_FIRST);
	return seam_wait(SEAM_FIRST, "barrier", is_done, d) && !is_done(d);
}

static void go_on(pthread_t thread)
{
	seams_open();
	pthread_join(thread, NULL);
}

static void withdraw_all(struct world *w)
{
	hydns_plugin_withdraw_all(w->p);
}

static void withdraw_everything(struct world *w)
{
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_ALL, NULL, 0);
}

static void withdraw_name(struct world *w)
{
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
}

static void withdraw_subtree(struct world *w)
{
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
}

static void change_zone(struct world *w)
{
	hydns_plugin_zone_changing(w->p, www, sizeof(www));
}

static void change_secrets(struct world *w)
{
	static const uint8_t secret[1][HYDNS_COOKIE_SECRET_LEN] = { "first of sixteen" };

	hydns_plugin_cookie_secrets(w->p, secret, 1);
}

/* Without hydnsd all rules are dead, or suspended, before the wait begins. */
static void withdrawals_without_hydnsd_wait_for_programs(void **state)
{
	static void (*const runs[])(struct world *) = { withdraw_name, change_zone, withdraw_everything, withdraw_all };
	struct world *w = *state;

	start_both(w);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct withdrawal d = { .w = w, .run = runs[i] };
		uint32_t epoch = page_epoch(w);
		pthread_t thread;

		assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
		lose_hydnsd(w);
		assert_true(waits(&d, &thread));
		assert_true(page_epoch(w) != epoch);
		assert_int_equal(suspended(w), i < 2);
		go_on(thread);
		empty_rings(w);
		peer_start(&w->peer);
		assert_true(connected(w));
		assert_true(BECOMES(!suspended(w)));
	}
	peer_stop(&w->peer);
}

/* The same with a hydnsd that does not reply, after the epoch has advanced. */
static void withdrawals_in_vain_wait_for_programs(void **state)
{
	struct world *w = *state;
	struct withdrawal d = { .w = w, .run = withdraw_name };
	uint32_t epoch;
	pthread_t thread;

	start_both(w);
	epoch = page_epoch(w);
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	assert_true(waits(&d, &thread));
	assert_int_equal(page_epoch(w), epoch + 1);
	go_on(thread);
	peer_stop(&w->peer);
}

/* The suspension that one has begun ends before it waits: what it has waited for says nothing of the next. */
static void a_grace_period_is_of_one_suspension(void **state)
{
	struct world *w = *state;
	struct withdrawal d = { .w = w, .run = withdraw_subtree };
	uint32_t barriers;
	pthread_t thread;

	start_both(w);
	lose_hydnsd(w);
	seam_hold(SEAM_FIRST, "begin pending");
	thread = seam_thread(SEAM_FIRST, withdraw, &d);
	seam_go(SEAM_FIRST);
	assert_true(seam_wait(SEAM_FIRST, "pending", is_done, &d));
	assert_true(suspended(w));
	peer_start(&w->peer);
	assert_true(BECOMES(!suspended(w)));
	go_on(thread);
	lose_hydnsd(w);
	barriers = atomic_load(&seams->barriers);
	withdraw_subtree(w);
	assert_true(suspended(w));
	assert_int_equal(atomic_load(&seams->barriers), barriers + 1);
	withdraw_subtree(w);
	assert_int_equal(atomic_load(&seams->barriers), barriers + 1);
}

static void new_secrets_wait_for_programs(void **state)
{
	struct world *w = *state;
	struct withdrawal d = { .w = w, .run = change_secrets };
	pthread_t thread;

	start_both(w);
	assert_true(waits(&d, &thread));
	assert_int_equal(__atomic_load_n(&w->peer.page->cookies, __ATOMIC_SEQ_CST), 1);
	assert_int_equal(atomic_load(&w->peer.secrets), 0);   /* hydnsd gets them after that */
	go_on(thread);
	assert_int_equal(atomic_load(&w->peer.secrets), 1);
	peer_stop(&w->peer);
}

static void stop(struct world *w)
{
	hydns_plugin_stop(w->p);
}

/* The link thread waits, and the end waits for that thread. */
static void the_end_waits_for_programs(void **state)
{
	struct world *w = *state;
	struct withdrawal d = { .w = w, .run = stop };
	uint32_t epoch;
	pthread_t thread;

	start_both(w);
	epoch = page_epoch(w);
	seam_hold(SEAM_LINK, "barrier");
	thread = seam_thread(SEAM_FIRST, withdraw, &d);
	assert_true(seam_wait(SEAM_LINK, "barrier", is_done, &d));
	assert_false(is_done(&d));
	assert_true(page_epoch(w) != epoch);
	go_on(thread);
	w->p = NULL;
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(an_offer_carries_its_stamp), TEST(an_offer_on_its_way_is_told_apart),
		TEST(an_edns_size_of_its_own_is_not_offered),
		TEST(a_change_sees_the_loss_that_has_not_seen_it), TEST(withdrawals_without_hydnsd_wait_for_programs),
		TEST(withdrawals_in_vain_wait_for_programs), TEST(a_grace_period_is_of_one_suspension),
		TEST(new_secrets_wait_for_programs), TEST(the_end_waits_for_programs),
	};

	seams_share();
	return cmocka_run_group_tests(test, NULL, NULL);
}
