/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The resolver page, as the XDP program may find it at any moment. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "hydns-kern/tests/emulated.h"
#include "plugin/page/page.h"

#define EPOCH  0x10000U
#define ROUNDS 100000U
#define LOOKS  20000    /* before others may run: mostly the other side is at work just now */
#define LIMIT_S 60

struct world {
	struct hydns_pages *g;
	struct hydns_resolver_page *page; /* the shared one */
	_Atomic uint32_t round;            /* its name is being marked, or is */
	_Atomic uint32_t seen;             /* the last round whose flag was seen */
	unsigned wrong;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int fd = memfd_create("page", MFD_CLOEXEC);

	alarm(patience(LIMIT_S));
	assert_int_equal(ftruncate(fd, HYDNS_PAGE_OCTETS), 0);
	w->page = mmap(NULL, HYDNS_PAGE_OCTETS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(w->page != MAP_FAILED);
	w->g = hydns_pages_new();
	assert_int_equal(hydns_pages_switch(w->g, fd, EPOCH, 1), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hydns_pages_free(w->g);
	munmap(w->page, HYDNS_PAGE_OCTETS);
	free(w);
	alarm(0);
	return 0;
}

static bool marked(const struct world *w, uint32_t place)
{
	return __atomic_load_n(&w->page->marks[place / 64], __ATOMIC_SEQ_CST) >> place % 64 & 1;
}

static uint32_t epoch(const struct world *w)
{
	return __atomic_load_n(&w->page->epoch, __ATOMIC_SEQ_CST);
}

static void flags_come_and_go(void **state)
{
	struct world *w = *state;

	assert_false(hydns_pages_suspended(w->g));
	assert_true(hydns_pages_mark(w->g, 4711));
	assert_true(hydns_pages_suspended(w->g));
	assert_int_equal(epoch(w), EPOCH | HYDNS_EPOCH_MARKED);
	assert_int_equal(hydns_pages_epoch(w->g), EPOCH);
	assert_false(hydns_pages_mark(w->g, 0));
	assert_false(hydns_pages_suspend(w->g));
	assert_false(hydns_pages_mark(w->g, HYDNS_PLACES - 1));
	assert_int_equal(epoch(w), EPOCH | HYDNS_EPOCH_MARKED | HYDNS_EPOCH_SUSPENDED);
	assert_true(marked(w, 4711) && marked(w, 0) && marked(w, HYDNS_PLACES - 1));
	hydns_pages_advance_epoch(w->g);
	assert_int_equal(epoch(w), (EPOCH + 1) | HYDNS_EPOCH_MARKED | HYDNS_EPOCH_SUSPENDED);
	hydns_pages_resume(w->g);
	assert_int_equal(epoch(w), EPOCH + 1);
	for (uint32_t i = 0; i < HYDNS_MARK_WORDS; i++)
		assert_int_equal(w->page->marks[i], 0);
	assert_true(hydns_pages_suspend(w->g));
	assert_int_equal(epoch(w), (EPOCH + 1) | HYDNS_EPOCH_SUSPENDED);
}

/* The count stays apart from the flags. */
static void epochs_end_before_the_flags(void **state)
{
	struct world *w = *state;

	w->page->epoch = ~HYDNS_EPOCH_FLAGS;
	hydns_pages_mark(w->g, 1);
	hydns_pages_advance_epoch(w->g);
	assert_int_equal(epoch(w), HYDNS_EPOCH_MARKED);
}

/* A fault shows only while both sides run at once; with one CPU, or busy ones, they can't wait like this. */
static void give_way(unsigned looks)
{
	if (looks % LOOKS == 0)
		sched_yield();
}

static void *look(void *arg)
{
	struct world *w = arg;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		for (unsigned looks = 1; atomic_load(&w->round) != round || !(epoch(w) & HYDNS_EPOCH_MARKED); looks++)
			give_way(looks);
		w->wrong += !marked(w, round % HYDNS_PLACES);
		atomic_store(&w->seen, round);
	}
	return NULL;
}

/* A reader that sees the flag finds the mark that it was set for. */
static void the_mark_comes_before_the_flag(void **state)
{
	struct world *w = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, look, w), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		atomic_store(&w->round, round);
		hydns_pages_mark(w->g, round % HYDNS_PLACES);
		for (unsigned looks = 1; atomic_load(&w->seen) != round; looks++)
			give_way(looks);
		w->page->marks[round % HYDNS_PLACES / 64] = 0;
		__atomic_store_n(&w->page->epoch, EPOCH, __ATOMIC_SEQ_CST);
	}
	pthread_join(thread, NULL);
	assert_int_equal(w->wrong, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(flags_come_and_go), TEST(epochs_end_before_the_flags), TEST(the_mark_comes_before_the_flag),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
