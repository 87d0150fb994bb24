/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Budgets of clients, as resolver and program count in them: each query once, from any thread, in memory that does not grow. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "hydns-kern/tests/emulated.h"
#include "plugin/page/page.h"

#define OCTETS   (HYDNS_BUDGET_BUCKETS * sizeof(struct hydns_budget_bucket))
#define SECOND   1790000000U
#define LIMIT    100U
#define CROWD    10000000U     /* clients that ask once */
#define GREEDY   64U           /* clients at the limit, and as many that are on their way to it */
#define THREADS  4
#define CHARGES  50000U
#define LIMIT_S  60

struct world {
	struct hydns_pages *g;
	struct hydns_budgets budgets;
	struct hydns_budget_bucket *bucket;      /* as the program sees them */
};

static int memory(size_t octets)
{
	int fd = memfd_create("budgets", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)octets), 0);
	return fd;
}

/* Gives the resolver new budgets, as hydnsd does. */
static void give(struct world *w)
{
	int fd = memory(OCTETS);

	if (w->bucket)
		munmap(w->bucket, OCTETS);
	w->bucket = mmap(NULL, OCTETS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(w->bucket != MAP_FAILED);
	assert_int_equal(hydns_budgets_use(&w->budgets, fd, false), 0);
}

static void limit_to(struct world *w, const struct hydns_limits *l)
{
	const uint64_t seed[HYDNS_BUDGET_SEEDS] = { 0x0123456789abcdef, 0xfedcba9876543210, 0x243f6a8885a308d3, 0x13198a2e03707344 };

	hydns_pages_set_limits(w->g, l, seed);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	alarm(patience(LIMIT_S));
	w->g = hydns_pages_new();
	limit_to(w, &(struct hydns_limits){ .queries = LIMIT });
	assert_int_equal(hydns_pages_switch(w->g, memory(HYDNS_PAGE_OCTETS), 1, 1), 0);
	give(w);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hydns_budgets_close(&w->budgets);
	hydns_pages_free(w->g);
	munmap(w->bucket, OCTETS);
	free(w);
	alarm(0);
	return 0;
}

/* The address of a client, by its number. */
static const uint8_t *client(uint32_t number, uint8_t addr[16])
{
	memset(addr, 0, 16);
	addr[0] = 0x20;
	memcpy(addr + 12, &number, sizeof(number));
	return addr;
}

static enum hydns_charge charge(struct world *w, uint32_t number, uint32_t second, struct hydns_spent *spent)
{
	uint8_t addr[16];

	return hydns_budgets_charge(&w->budgets, w->g, client(number, addr), second, spent);
}

static uint32_t spent_by(struct world *w, uint32_t number, uint32_t second)
{
	uint8_t addr[16];
	uint32_t spent = 0;

	return hydns_budgets_spent(&w->budgets, w->g, client(number, addr), second, &spent) ? spent : 0;
}

/* The client's cell, as the program finds it. */
static struct hydns_budget *cell_of(struct world *w, uint32_t number)
{
	const struct hydns_resolver_page *page = hydns_pages_shared(w->g);
	__u64 words[2], hash;
	uint8_t addr[16];

	memcpy(words, client(number, addr), sizeof(words));
	hash = hydns_budget_hash(words, page->budget_seed);
	return hydns_budget_find(&w->bucket[HYDNS_BUDGET_BUCKET(hash)], HYDNS_BUDGET_TAG(hash));
}

static void spend(struct world *w, uint32_t number, uint32_t second, uint32_t before, uint32_t after)
{
	struct hydns_spent s;

	assert_int_equal(charge(w, number, second, &s), HYDNS_CHARGE_COUNTED);
	assert_int_equal(s.before, before);
	assert_int_equal(s.after, after);
}

static void test_seconds(void **state)
{
	struct world *w = *state;

	for (uint32_t n = 0; n < 5; n++)
		spend(w, 1, SECOND, n, n + 1);
	spend(w, 1, SECOND + 1, 0, 1);
	spend(w, 1, SECOND, 5, 6);               /* a thread that is late */
	spend(w, 2, SECOND, 0, 1);
	limit_to(w, &(struct hydns_limits){ .queries = LIMIT, .backoff = 1 });
	spend(w, 1, SECOND + 1, 6, 6);
	spend(w, 1, SECOND + 2, 6, 6);           /* takes the place of the older second, as Unbound's table does */
	spend(w, 1, SECOND + 3, 2, 2);
	spend(w, 1, SECOND + 6, 0, 1);
	assert_int_equal(spent_by(w, 1, SECOND + 6), 1);
	assert_int_equal(spent_by(w, 3, SECOND), 0);
}

/* What the program has counted is not counted again, in this second or the next; and no more than it has. */
static void test_passed(void **state)
{
	struct world *w = *state;
	struct hydns_spent s;
	struct hydns_budget *b;

	spend(w, 1, SECOND, 0, 1);
	b = cell_of(w, 1);
	assert_non_null(b);
	for (int n = 0; n < 2; n++) {
		hydns_budget_add(b, SECOND);
		hydns_budget_pass(b, SECOND, HYDNS_BUDGET_ALLOWED);
	}
	hydns_budget_add(b, SECOND);
	hydns_budget_pass(b, SECOND, HYDNS_BUDGET_CROSSED);
	assert_int_equal(charge(w, 1, SECOND, &s), HYDNS_CHARGE_ALLOWED);
	assert_int_equal(charge(w, 1, SECOND + 1, &s), HYDNS_CHARGE_ALLOWED);
	assert_int_equal(charge(w, 1, SECOND, &s), HYDNS_CHARGE_CROSSED);
	spend(w, 1, SECOND, 4, 5);
	hydns_budget_pass(b, SECOND, HYDNS_BUDGET_ALLOWED);
	spend(w, 1, SECOND + 2, 0, 1);           /* too late */
	hydns_budget_add(b, SECOND + 3);         /* takes the older second's place, and its queries on their way end */
	spend(w, 1, SECOND + 3, 1, 2);
}

/* Without budgets, without a page, without a cell: the resolver counts alone. */
static void test_none(void **state)
{
	struct world *w = *state;
	struct hydns_budgets none = { NULL };
	struct hydns_pages *own = hydns_pages_new();
	struct hydns_spent s;
	uint8_t addr[16];

	client(1, addr);
	assert_int_equal(hydns_budgets_charge(&none, w->g, addr, SECOND, &s), HYDNS_CHARGE_NONE);
	assert_int_equal(hydns_budgets_charge(&w->budgets, own, addr, SECOND, &s), HYDNS_CHARGE_NONE);
	hydns_pages_free(own);
	for (unsigned i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		for (unsigned j = 0; j < HYDNS_BUDGET_CELLS; j++)
			w->bucket[i].cell[j] = (struct hydns_budget){ .tag = 2 * (j + 1), .used = { (__u64)SECOND << 32 | LIMIT } };
	assert_int_equal(charge(w, 1, SECOND, &s), HYDNS_CHARGE_NONE);
	spend(w, 1, SECOND + 3, 0, 1);           /* their seconds are over */
}

/* New budgets stand where the former ones stood, while threads count. */
static void test_new_map(void **state)
{
	struct world *w = *state;
	struct hydns_budget_bucket *at = atomic_load(&w->budgets.bucket);

	spend(w, 1, SECOND, 0, 1);
	give(w);
	assert_ptr_equal(atomic_load(&w->budgets.bucket), at);
	spend(w, 1, SECOND, 0, 1);
	assert_non_null(cell_of(w, 1));
}

static void *charges(void *arg)
{
	struct hydns_spent s;

	for (uint32_t n = 0; n < CHARGES; n++)
		assert_int_equal(charge(arg, 1, SECOND, &s), HYDNS_CHARGE_COUNTED);
	return NULL;
}

static void test_threads(void **state)
{
	struct world *w = *state;
	pthread_t thread[THREADS];

	spend(w, 1, SECOND, 0, 1);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, charges, w), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(spent_by(w, 1, SECOND), 1 + THREADS * CHARGES);
}

/* Ten million clients that ask once lift nobody's limit: neither of who is at it nor of who is on the way. */
static void test_crowd(void **state)
{
	struct world *w = *state;
	struct hydns_spent s;

	for (uint32_t n = 0; n < GREEDY; n++)
		for (uint32_t i = 0; i < LIMIT; i++)
			spend(w, n, SECOND, i, i + 1);
	for (uint32_t n = 0; n < CROWD; n++) {
		(void)charge(w, 2 * GREEDY + n, SECOND, &s);
		if (n % (CROWD / LIMIT) < GREEDY)
			(void)charge(w, GREEDY + n % (CROWD / LIMIT), SECOND, &s);
	}
	for (uint32_t n = 0; n < GREEDY; n++) {
		assert_int_equal(spent_by(w, n, SECOND), LIMIT);
		assert_in_range(spent_by(w, GREEDY + n, SECOND), LIMIT / 10 * 9, LIMIT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_seconds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_passed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_new_map, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crowd, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
