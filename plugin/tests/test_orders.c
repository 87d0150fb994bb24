/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * All orders of what the link thread does when hydnsd goes and comes back, knowing the page or not, and of what other
 * threads do with a name meanwhile.
 *
 * What must hold when a withdrawal has returned: no rule from before it counts, for hydnsd has removed it or the page suspends
 * it until hydnsd has; and no frame in a ring gives the former data a later generation.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "plugin/tests/seams.h"
#include "plugin/tests/walk.h"
#include "plugin/tests/world.h"

static struct world *w;
static bool forgetful;

/* When the order began. */
static struct {
	struct hydns_resolver_page *page;
	uint32_t epoch;
	uint64_t generation;
	int ready, withdrawals;
} before;

static struct {
	_Atomic bool changed, returned, looked_up_before;
	pthread_t thread[2];
} now;

static void *offer_it(void *arg)
{
	struct hydns_stamp stamp = hydns_plugin_stamp(w->p);

	(void)arg;
	atomic_store(&now.looked_up_before, !atomic_load(&now.changed));
	offer(w, stamp);
	return NULL;
}

static void *withdraw(void *arg)
{
	(void)arg;
	atomic_store(&now.changed, true);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, WWW_LEN);
	atomic_store(&now.returned, true);
	return NULL;
}

static void *report_change(void *arg)
{
	(void)arg;
	atomic_store(&now.changed, true);
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), www, WWW_LEN);
	atomic_store(&now.returned, true);
	return NULL;
}

/* hydnsd dies and is there again, and the link thread has yet to find out. */
static void begin(void *(*other)(void *), const char *points)
{
	before.page = w->peer.page;
	before.epoch = page_epoch(w);
	before.generation = page_generation(w);
	before.ready = atomic_load(&w->peer.ready);
	before.withdrawals = atomic_load(&w->peer.withdrawals);
	atomic_store(&now.changed, false);
	atomic_store(&now.returned, false);
	atomic_store(&now.looked_up_before, false);
	seam_hold(SEAM_LINK, "hear");
	seam_hold(SEAM_FIRST, "begin offer");
	seam_hold(SEAM_SECOND, points);
	now.thread[0] = seam_thread(SEAM_FIRST, offer_it, NULL);
	now.thread[1] = seam_thread(SEAM_SECOND, other, NULL);
	atomic_store(&w->peer.forgetful, forgetful);
	peer_stop(&w->peer);
	peer_start(&w->peer);
	assert_true(seam_wait(SEAM_LINK, "hear", NULL, NULL));
	seam_hold(SEAM_LINK, forgetful ? "closed adopted accept" : "closed connect accept");
}

/* The link thread would wait a while before it tries again. */
static bool hurry(void *arg)
{
	(void)arg;
	hydns_requests_wake(&w->p->requests);
	return !atomic_load(&seams->party[SEAM_LINK].held) && atomic_load(&w->peer.ready) == before.ready;
}

static bool counts(void)
{
	return __atomic_load_n(&before.page->epoch, __ATOMIC_SEQ_CST) == before.epoch &&
	       __atomic_load_n(&before.page->heartbeat_ns, __ATOMIC_SEQ_CST);
}

static const char *withdrawal_fault(void *arg)
{
	(void)arg;
	if (atomic_load(&now.returned) && counts() && atomic_load(&w->peer.withdrawals) == before.withdrawals)
		return "a rule from before a withdrawal that has returned counts, and hydnsd knows of nothing";
	return NULL;
}

/* Without waiting: hydnsd has the frame in its ring at least, and when the link thread has done what it does at a loss, and
 * goes on to connect, the rules wait with it. */
static const char *change_fault(void *arg)
{
	struct hydns_ring *r = w->p->thread[1].ring.ring;

	(void)arg;
	if (!atomic_load(&now.returned) || !counts())
		return NULL;
	if (r->head == r->tail)
		return "a rule from before a change counts, and no frame says so";
	if (seam_is_held(SEAM_LINK, forgetful ? "adopted" : "connect"))
		return "a rule from before a change counts, and hydnsd is lost";
	return NULL;
}

/* The first frame of the offering thread that says of the former data that they are from after the change. */
static const char *look_at_frames(void)
{
	union { struct hydns_offer offer; uint8_t room[2048]; } f;
	const char *wrong = NULL;

	while (peer_frame(&w->peer, 0, f.room, sizeof(f.room)))
		if (f.offer.frame.type == HYDNS_FRAME_OFFER && atomic_load(&now.looked_up_before) &&
		    f.offer.epoch == page_epoch(w) && f.offer.generation > before.generation)
			wrong = "an offer of former data has the generation of after the change";
	return wrong;
}

static const char *end(void *arg)
{
	const char *wrong;

	(void)arg;
	pthread_join(now.thread[0], NULL);
	pthread_join(now.thread[1], NULL);
	seams_open();
	if (!connected(w))
		return "the link thread does not find hydnsd";
	wrong = look_at_frames();
	empty_rings(w);
	if (!BECOMES(!suspended(w)))
		return "the rules stay suspended";
	/* a rule of www, so that the next change concerns one */
	if (offer(w, hydns_plugin_stamp(w->p)))
		return "nothing can be offered in the end";
	empty_rings(w);
	return wrong;
}

static void begin_withdrawal(void *arg)
{
	(void)arg;
	begin(withdraw, "begin owe kill");
}

static void begin_change(void *arg)
{
	(void)arg;
	begin(report_change, "begin offered");
}

static void walk(const char *what, void (*start)(void *), const char *(*fault)(void *))
{
	const struct walk all = { .what = what, .begin = start, .fault = fault, .busy = hurry, .end = end };

	assert_true(walk_all(&all) > 50);
}

static void a_withdrawal_while_hydnsd_comes_back(void **state)
{
	(void)state;
	walk("a withdrawal while hydnsd comes back", begin_withdrawal, withdrawal_fault);
}

static void a_change_while_hydnsd_comes_back(void **state)
{
	(void)state;
	walk("a change while hydnsd comes back", begin_change, change_fault);
}

static int set_up(void **state)
{
	int rc = world_setup(state);

	w = *state;
	seams_open();
	atomic_store(&seams->no_barrier, true);
	start_both(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	empty_rings(w);
	forgetful = false;
	return rc;
}

static int set_up_forgetful(void **state)
{
	int rc = set_up(state);

	forgetful = true;
	return rc;
}

static int tear_down(void **state)
{
	seams_open();
	peer_stop(&w->peer);
	return world_teardown(state);
}

/* -- the walk itself ----------------------------------------------------------------------------------------------- */
#define STEPS_OF_TWO 20         /* orders of two parties with three points each: 6! / (3! 3!) */
static unsigned order;

/* In one order it sleeps on its way, as a thread does that waits for a lock. */
static void *step(void *arg)
{
	if (arg && order == 5)
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	seam(SEAM_NOBODY, "a");
	seam(SEAM_NOBODY, "b");
	return NULL;
}

static void begin_steps(void *arg)
{
	order++;
	seam_hold(SEAM_FIRST, "begin a b");
	seam_hold(SEAM_SECOND, "begin a b");
	now.thread[0] = seam_thread(SEAM_FIRST, step, arg);
	now.thread[1] = seam_thread(SEAM_SECOND, step, NULL);
}

static const char *end_steps(void *arg)
{
	(void)arg;
	pthread_join(now.thread[0], NULL);
	pthread_join(now.thread[1], NULL);
	return NULL;
}

static const char *no_fault(void *arg)
{
	(void)arg;
	return NULL;
}

static void a_late_party_loses_no_order(void **state)
{
	const struct walk steps = { .what = "two parties", .begin = begin_steps, .fault = no_fault, .end = end_steps,
				    .arg = &order };

	(void)state;
	order = 0;
	assert_int_equal(walk_all(&steps), STEPS_OF_TWO);
}

int main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(a_late_party_loses_no_order),
		cmocka_unit_test_setup_teardown(a_withdrawal_while_hydnsd_comes_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_change_while_hydnsd_comes_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_withdrawal_while_hydnsd_comes_back, set_up_forgetful, tear_down),
		cmocka_unit_test_setup_teardown(a_change_while_hydnsd_comes_back, set_up_forgetful, tear_down),
	};

	seams_share();
	return cmocka_run_group_tests(test, NULL, NULL);
}
