/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Grace periods: the faster of two ways ends each. The ways themselves are the test's, and end when it says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/syscall.h>

#include "hydns-kern/loader/cpus.h"
#include "hydnsd/daemon/grace.h"

#define NOTHING_MS 50                  /* for what must not happen */

enum { BARRIER, TOUR, WAYS };

static struct {
	sem_t entered, leave;
	int rc;
} way[WAYS];

static struct hydnsd_grace *grace;
static unsigned begun, ended;          /* grace periods, as the rules are told */
static unsigned done[2];               /* calls, by argument */

/* -- the ways ---------------------------------------------------------------------------------------------- */
static void wait_for(sem_t *s)
{
	while (sem_wait(s))
		assert_int_equal(errno, EINTR);
}

static int go_by(int which)
{
	sem_post(&way[which].entered);
	wait_for(&way[which].leave);
	return way[which].rc;
}

int hydns_cpus_tour(void)
{
	return go_by(TOUR);
}

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number != SYS_membarrier || a != MEMBARRIER_CMD_GLOBAL)
		return __real_syscall(number, a, b, c, d, e, f);
	return go_by(BARRIER);
}

/* -- the rules --------------------------------------------------------------------------------------------- */
bool hydnsd_rules_grace_needed(const struct hydnsd_rules *r)
{
	(void)r;
	return false;
}

void hydnsd_rules_grace_begin(struct hydnsd_rules *r)
{
	(void)r;
	assert_int_equal(begun++, ended);
}

void hydnsd_rules_grace_end(struct hydnsd_rules *r)
{
	(void)r;
	assert_int_equal(++ended, begun);
}

/* -- the loop: this test takes its turns itself ------------------------------------------------------------------ */
static struct {
	int fd;
	void (*ready)(void *arg, uint32_t events);
	void *arg;
} watch;

struct hydnsd_watch *hydnsd_loop_watch(struct hydnsd_loop *l, int fd, uint32_t events, void (*ready)(void *arg, uint32_t events), void *arg)
{
	(void)l;
	assert_int_equal(events, EPOLLIN);
	watch.fd = fd;
	watch.ready = ready;
	watch.arg = arg;
	return (struct hydnsd_watch *)&watch;
}

void hydnsd_watch_end(struct hydnsd_watch *w)
{
	assert_ptr_equal(w, &watch);
}

/* Waits for an event, at most ms; -1: for as long as it takes. False: none came. */
static bool turn(int ms)
{
	struct pollfd f = { .fd = watch.fd, .events = POLLIN };

	if (poll(&f, 1, ms) <= 0)
		return false;
	watch.ready(watch.arg, EPOLLIN);
	return true;
}

static void count(void *arg)
{
	(*(unsigned *)arg)++;
}

static int set_up(void **state)
{
	char why[200];

	(void)state;
	for (int i = 0; i < WAYS; i++) {
		sem_init(&way[i].entered, 0, 0);
		sem_init(&way[i].leave, 0, 0);
		way[i].rc = 0;
	}
	begun = ended = done[0] = done[1] = 0;
	return hydnsd_grace_start(NULL, NULL, &grace, why, sizeof(why));
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < WAYS; i++)
		for (int times = 0; times < 10; times++)
			sem_post(&way[i].leave);
	hydnsd_grace_stop(grace);
	return 0;
}

static void both_wait(void)
{
	wait_for(&way[BARRIER].entered);
	wait_for(&way[TOUR].entered);
}

static void each_way_ends_it(void **state)
{
	(void)state;
	for (int faster = 0; faster < WAYS; faster++) {
		assert_int_equal(hydnsd_grace_after(grace, count, &done[0]), 0);
		both_wait();
		sem_post(&way[faster].leave);
		assert_true(turn(-1));
		assert_int_equal(done[0], faster + 1);
		sem_post(&way[!faster].leave);
	}
}

static void one_that_fails_ends_nothing(void **state)
{
	(void)state;
	for (int failing = 0; failing < WAYS; failing++) {
		way[failing].rc = -1;
		way[!failing].rc = 0;
		assert_int_equal(hydnsd_grace_after(grace, count, &done[0]), 0);
		both_wait();
		sem_post(&way[failing].leave);
		assert_false(turn(NOTHING_MS));
		sem_post(&way[!failing].leave);
		assert_true(turn(-1));
		assert_int_equal(done[0], failing + 1);
	}
}

/* The slower way of a grace period ends while the next one is under way, which began after it. */
static void the_slower_does_not_end_the_next(void **state)
{
	(void)state;
	assert_int_equal(hydnsd_grace_after(grace, count, &done[0]), 0);
	both_wait();
	sem_post(&way[TOUR].leave);
	assert_true(turn(-1));
	assert_int_equal(hydnsd_grace_after(grace, count, &done[0]), 0);
	wait_for(&way[TOUR].entered);
	sem_post(&way[BARRIER].leave);
	wait_for(&way[BARRIER].entered);       /* for the second, so it is through with the first */
	assert_false(turn(0));
	sem_post(&way[TOUR].leave);
	assert_true(turn(-1));
	assert_int_equal(done[0], 2);
}

static void who_comes_later_waits_for_the_next(void **state)
{
	(void)state;
	assert_int_equal(hydnsd_grace_after(grace, count, &done[0]), 0);
	assert_int_equal(hydnsd_grace_after(grace, count, &done[1]), 0);
	for (int n = 0; n < 2; n++) {
		wait_for(&way[TOUR].entered);
		assert_false(turn(0));
		sem_post(&way[TOUR].leave);
		assert_true(turn(-1));
		assert_int_equal(done[n], 1);
	}
	assert_int_equal(ended, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_way_ends_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_fails_ends_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_slower_does_not_end_the_next, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_comes_later_waits_for_the_next, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
