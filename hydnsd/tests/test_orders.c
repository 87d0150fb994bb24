/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * All orders of what a resolver's threads and hydnsd do with one name between their seams. One thread offers an answer that
 * it has looked up. Another changes the data and withdraws the name, or offers the change to hydnsd by a CHANGED frame.
 * hydnsd takes frames, withdraws, waits for its barrier and acknowledges. The plugin library and hydnsd are the shipped ones.
 *
 * What must hold: after a withdrawal has returned no rule holds the former data, and none gets them later.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hydnsd/tests/running.h"
#include "plugin/internal.h"
#include "plugin/tests/seams.h"
#include "plugin/tests/walk.h"

#define TTL 200

static struct hydns_plugin *resolver;

/* The resolver's data, an address whose last octet is the version, and what its threads have done. */
static struct {
	_Atomic unsigned version;
	unsigned number;               /* of the name, another for each order */
	_Atomic unsigned looked_up;    /* version that the offer has; 0: none yet */
	_Atomic bool returned;         /* the withdrawal has */
	_Atomic unsigned changed;      /* version whose change is withdrawn */
	pthread_t thread[3];
	unsigned threads;
} now;

/* -- the resolver's threads --------------------------------------------------------------------------------------- */
/* Stamp, look-up, offer. */
static void *offer(void *arg)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, TTL, 0, 4, 192, 0, 2, 0 };
	uint8_t name[HYDNS_NAME_MAX], wire[128] = { 0, 1, 0x80, 0x80, 0, 1, 0, 1 }, len = make_name(now.number, name);
	struct hydns_question q = { .name = name, .name_len = len, .qtype = 1 };
	struct hydns_stamp stamp = hydns_plugin_stamp(resolver);
	unsigned version = atomic_load(&now.version);
	time_t second = time(NULL);

	(void)arg;
	atomic_store(&now.looked_up, version);
	memcpy(wire + 12, name, len);
	memcpy(wire + 12 + len, "\0\1\0\1", 4);
	memcpy(wire + 16 + len, record, sizeof(record));
	wire[16 + len + sizeof(record) - 1] = (uint8_t)version;
	hydns_plugin_offer(hydns_plugin_thread(resolver, 0), &q, wire, 16U + len + sizeof(record), second, second + TTL,
			    false, stamp);
	return NULL;
}

static void *change_and_withdraw(void *arg)
{
	uint8_t name[HYDNS_NAME_MAX], len = make_name(now.number, name);

	(void)arg;
	atomic_fetch_add(&now.version, 1);
	hydns_plugin_withdraw(resolver, HYDNS_SCOPE_NAME, name, len);
	atomic_store(&now.changed, atomic_load(&now.version));
	atomic_store(&now.returned, true);
	return NULL;
}

static void *change_and_notify(void *arg)
{
	uint8_t name[HYDNS_NAME_MAX], len = make_name(now.number, name);

	(void)arg;
	atomic_fetch_add(&now.version, 1);
	hydns_plugin_changed(hydns_plugin_thread(resolver, 1), name, len);
	return NULL;
}

/* -- walks -------------------------------------------------------------------------------------------------------- */
/* True when hydnsd has not acted upon a frame. No thread's state shows that, for hydnsd polls its rings. */
static bool frames_wait(void *arg)
{
	(void)arg;
	if (atomic_load(&seams->party[SEAM_LOOP].held) || atomic_load(&seams->party[SEAM_GRACE].held))
		return false;          /* the loop may be held: then nothing moves */
	for (unsigned i = 0; i < 2; i++) {
		const struct hydns_producer *r = &resolver->thread[i].ring;

		if (__atomic_load_n(&r->ring->head, __ATOMIC_ACQUIRE) != __atomic_load_n(&r->ring->tail, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

/* Finds a rule with an answer that was looked up before the change. */
static const char *fault(void *arg)
{
	(void)arg;
	if (atomic_load(&now.returned) && atomic_load(&seams->rules) && atomic_load(&now.looked_up) == 1)
		return "a rule holds the former data though the withdrawal has returned";
	return NULL;
}

static void forget(void)
{
	now.number++;
	atomic_store(&now.version, 1);
	atomic_store(&now.looked_up, 0);
	atomic_store(&now.returned, false);
	atomic_store(&now.changed, 0);
	now.threads = 0;
}

static void party(enum seam_party who, const char *points, void *(*run)(void *))
{
	seam_hold(who, points);
	now.thread[now.threads++] = seam_thread(who, run, NULL);
}

static const char *end(void *arg)
{
	static const uint8_t example[] = "\7example";
	const char *wrong = NULL;

	(void)arg;
	for (unsigned i = 0; i < now.threads; i++)
		pthread_join(now.thread[i], NULL);
	for (int left = WAIT_MS * 20; frames_wait(NULL) && left; left--)
		usleep(50);
	assert_false(frames_wait(NULL));
	if (atomic_load(&seams->rules) && atomic_load(&now.looked_up) < atomic_load(&now.version))
		wrong = "a rule holds former data in the end";
	seams_open();
	hydns_plugin_withdraw(resolver, HYDNS_SCOPE_SUBTREE, example, sizeof(example));
	assert_int_equal(atomic_load(&seams->rules), 0);
	return wrong;
}

/* An offer against a withdrawal. */
static void begin_two(void *arg)
{
	(void)arg;
	forget();
	seam_hold(SEAM_LOOP, "take_offer withdraw acknowledge");
	seam_hold(SEAM_GRACE, "barrier");
	party(SEAM_FIRST, "begin stamp encode names offer", offer);
	party(SEAM_SECOND, "begin advanced ask", change_and_withdraw);
}

/* An offer against a CHANGED frame. */
static void begin_change(void *arg)
{
	(void)arg;
	forget();
	seam_hold(SEAM_LOOP, "take_offer take_changed");
	party(SEAM_FIRST, "begin stamp encode names reserve offer", offer);
	party(SEAM_SECOND, "begin note advance advanced reserve offer", change_and_notify);
}

/* All three. */
static void begin_three(void *arg)
{
	(void)arg;
	forget();
	seam_hold(SEAM_LOOP, "take_offer withdraw");
	party(SEAM_FIRST, "begin encode offer", offer);
	party(SEAM_SECOND, "begin advanced ask", change_and_withdraw);
	party(SEAM_THIRD, "begin advanced", change_and_notify);
}

static void walk(const char *what, void (*begin)(void *), unsigned least)
{
	const struct walk w = { .what = what, .begin = begin, .fault = fault, .busy = frames_wait, .end = end };

	assert_true(walk_all(&w) >= least);
}

static void an_offer_and_a_withdrawal(void **state)
{
	(void)state;
	walk("an offer and a withdrawal", begin_two, 50);
}

static void an_offer_and_a_change(void **state)
{
	(void)state;
	walk("an offer and a change", begin_change, 50);
}

static void an_offer_a_change_and_a_withdrawal(void **state)
{
	(void)state;
	walk("an offer, a change and a withdrawal", begin_three, 100);
}

static int start(void **state)
{
	(void)state;
	start_daemon();
	resolver = make_resolver(60000, 0);
	begin_resolver(resolver);
	WAIT_FOR(atomic_load(&resolver->ready));
	atomic_store(&seams->no_barrier, true);
	return 0;
}

static int stop(void **state)
{
	seams_open();
	atomic_store(&seams->no_barrier, false);
	if (resolver)
		hydns_plugin_stop(resolver);
	resolver = NULL;
	return clear(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_offer_and_a_withdrawal), TEST(an_offer_and_a_change), TEST(an_offer_a_change_and_a_withdrawal),
	};

	seams_share();
	take_held_daemon();
	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
