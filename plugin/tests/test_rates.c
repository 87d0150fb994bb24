/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Balances of responses: they are those of BIND's debit_rrl_entry(), in memory that does not grow and that a crowd does not empty. */
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

#define OCTETS  (HYDNS_BUDGET_BUCKETS * sizeof(struct hydns_rate_bucket))
#define SECOND  1790000000U
#define RATE    20
#define WINDOW  15
#define STEPS   2000000U      /* compared with the model */
#define CROWD   10000000U     /* clients that ask once */
#define GREEDY  64U           /* clients above the limit */
#define THREADS 4
#define DEBITS  50000U
#define LIMIT_S 100

struct world {
	struct hydns_pages *g;
	struct hydns_budgets budgets;
};

static int memory(size_t octets)
{
	int fd = memfd_create("rates", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)octets), 0);
	return fd;
}

static const struct hydns_rates rates = {
	.most = { [HYDNS_RATE_ANSWER] = RATE, [HYDNS_RATE_NXDOMAIN] = 1, [HYDNS_RATE_ALL] = 2 * RATE }, .window = WINDOW, .slip = 2,
	.ipv4_prefix = 24, .ipv6_prefix = 56,
};

static int setup(void **state)
{
	const uint64_t seed[HYDNS_BUDGET_SEEDS] = { 0x0123456789abcdef, 0xfedcba9876543210, 0x243f6a8885a308d3, 0x13198a2e03707344 };
	struct world *w = calloc(1, sizeof(*w));

	alarm(patience(LIMIT_S));
	w->g = hydns_pages_new();
	hydns_pages_set_rates(w->g, &rates, seed);
	assert_int_equal(hydns_pages_switch(w->g, memory(HYDNS_PAGE_OCTETS), 1, 1), 0);
	assert_int_equal(hydns_budgets_use(&w->budgets, memory(OCTETS), true), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hydns_budgets_close(&w->budgets);
	hydns_pages_free(w->g);
	free(w);
	return 0;
}

static struct hydns_rate_key key_of(uint32_t client, enum hydns_rate_kind kind)
{
	return (struct hydns_rate_key){ .prefix = client, .account = HYDNS_RATE_ACCOUNT(kind, 1, 1, 7) };
}

/* Debits a client's balance; what the resolver knows itself is in *own. */
static enum hydns_rate_verdict debit_own(struct world *w, uint32_t client, uint32_t second, struct hydns_rate_own *own)
{
	struct hydns_rate_key k = key_of(client, HYDNS_RATE_ANSWER);
	enum hydns_rate_verdict v;

	return hydns_rates_debit(&w->budgets, w->g, &k, second, own, &v) ? v : (enum hydns_rate_verdict)-1;
}

static enum hydns_rate_verdict debit(struct world *w, uint32_t client, uint32_t second)
{
	return debit_own(w, client, second, &(struct hydns_rate_own){ 0 });
}

/* -- the model: lib/dns/rrl.c, line by line, without scaling; but a clock that goes back a little stands, and earns nothing twice -- */
struct entry {
	int responses, slip_cnt, valid;
	uint32_t ts;
};

static int age_of(const struct entry *e, uint32_t now)
{
	int delta = (int)(now - e->ts);

	if (!e->valid)
		return HYDNS_RATE_FOREVER;
	if (delta >= 0)
		return delta;
	return delta < -HYDNS_RATE_TIME_TRAVEL ? HYDNS_RATE_FOREVER : 0;
}

static enum hydns_rate_verdict model(struct entry *e, int rate, int window, int slip, uint32_t now)
{
	int age = age_of(e, now), min = -window * rate;

	if (age > 0) {
		if (age > window) {
			e->responses = rate;
			e->slip_cnt = 0;
		} else {
			e->responses += rate * age;
			if (e->responses > rate) {
				e->responses = rate;
				e->slip_cnt = 0;
			}
		}
		e->ts = now;
		e->valid = 1;
	}
	if (--e->responses >= 0)
		return HYDNS_RATE_OK;
	if (e->responses < min)
		e->responses = min;
	if (slip != 0) {
		if (e->slip_cnt++ == 0) {
			if (e->slip_cnt >= slip)
				e->slip_cnt = 0;
			return HYDNS_RATE_SLIP;
		} else if (e->slip_cnt >= slip) {
			e->slip_cnt = 0;
		}
	}
	return HYDNS_RATE_DROP;
}

/* Random terms; time stands, goes on by a second or by many, or goes back. */
static void test_model(void **state)
{
	struct entry e = { 0 };
	struct hydns_rate_terms t = { 0 };
	uint64_t now_state = 0;
	uint32_t now = SECOND, verdict, seen[3] = { 0 };

	(void)state;
	srandom(1);
	for (uint32_t n = 0; n < STEPS; n++) {
		long r = random();

		if (n % 1000 == 0) {
			static const int bounds[][2] = { { HYDNS_RATE_MOST, HYDNS_RATE_WINDOW_MOST }, { 1, 1 } };
			const int *b = bounds[n / 1000 % 2];

			t = n / 1000 % 64 < 2 ? (struct hydns_rate_terms){ b[0], b[1], (uint32_t)(r % (HYDNS_RATE_SLIP_MOST + 1)) } :
				(struct hydns_rate_terms){ (int)(r % 30 + 1), (int)(r / 64 % 60 + 1),
								   (uint32_t)(r / 4096 % (HYDNS_RATE_SLIP_MOST + 1)) };
			e = (struct entry){ 0 };
			now_state = 0;
		}
		now += r % 50 == 0 ? 1 : r % 997 == 0 ? (uint32_t)(r % 80) : r % 5000 == 1 ? (uint32_t)-(r % 9) : 0;
		now_state = hydns_rate_debit(now_state, HYDNS_RATE_ANSWER, &t, now, &verdict);
		assert_int_equal(verdict, model(&e, t.rate, t.window, (int)t.slip, now));
		assert_int_equal(HYDNS_RATE_STATE_BALANCE(now_state), e.responses);
		assert_int_equal(HYDNS_RATE_STATE_SLIPPED(now_state), e.slip_cnt);
		seen[verdict]++;
	}
	assert_true(seen[HYDNS_RATE_OK] && seen[HYDNS_RATE_DROP] && seen[HYDNS_RATE_SLIP]);
}

/* The lowest balance, of the largest rate and window. */
static void test_lowest(void **state)
{
	const struct hydns_rate_terms t = { HYDNS_RATE_MOST, HYDNS_RATE_WINDOW_MOST, 0 };
	const int lowest = -HYDNS_RATE_MOST * HYDNS_RATE_WINDOW_MOST;
	uint64_t s = HYDNS_RATE_STATE(SECOND, HYDNS_RATE_ALL, lowest, 0);
	uint32_t verdict;

	(void)state;
	s = hydns_rate_debit(s, HYDNS_RATE_ALL, &t, SECOND, &verdict);
	assert_int_equal(HYDNS_RATE_STATE_BALANCE(s), lowest);
	assert_int_equal(HYDNS_RATE_STATE_KIND(s), HYDNS_RATE_ALL);
	assert_int_equal(verdict, HYDNS_RATE_DROP);
}

/* -- cells ------------------------------------------------------------------------------------------------- */
static void spend(struct world *w, uint32_t client, uint32_t second)
{
	for (int i = 0; i < RATE; i++)
		assert_int_equal(debit(w, client, second), HYDNS_RATE_OK);
	assert_int_equal(debit(w, client, second), HYDNS_RATE_SLIP);
	assert_int_equal(debit(w, client, second), HYDNS_RATE_DROP);
}

static void test_kinds_are_apart(void **state)
{
	struct world *w = *state;
	struct hydns_rate_key k = key_of(1, HYDNS_RATE_NXDOMAIN);
	enum hydns_rate_verdict v;

	spend(w, 1, SECOND);
	spend(w, 2, SECOND);
	assert_true(hydns_rates_debit(&w->budgets, w->g, &k, SECOND, &(struct hydns_rate_own){ 0 }, &v));
	assert_int_equal(v, HYDNS_RATE_OK);
}

/* What the resolver has counted alone goes on in a new cell, and what it has in a cell goes on in a new map. */
static void test_balances_go_on(void **state)
{
	struct world *w = *state;
	struct hydns_rate_own own = { .state = HYDNS_RATE_STATE(SECOND, HYDNS_RATE_ANSWER, 1, 0), .logged = SECOND - 9 };
	struct hydns_rate_key k = key_of(1, HYDNS_RATE_ANSWER);

	assert_int_equal(debit_own(w, 1, SECOND, &own), HYDNS_RATE_OK);
	assert_int_equal(HYDNS_RATE_STATE_BALANCE(own.state), 0);
	assert_int_equal(own.logged, SECOND - 9);
	assert_int_equal(hydns_budgets_use(&w->budgets, memory(OCTETS), true), 0);
	assert_int_equal(debit(w, 1, SECOND), HYDNS_RATE_SLIP);
	assert_true(hydns_rates_look(&w->budgets, w->g, &k, &own));
	assert_int_equal(own.logged, SECOND - 9);
	assert_int_equal(hydns_budgets_use(&w->budgets, memory(OCTETS), false), 0);
	assert_int_equal(debit(w, 1, SECOND), HYDNS_RATE_OK);
}

static struct hydns_rate *cell_of(struct world *w, uint32_t client)
{
	struct hydns_rate_key k = key_of(client, HYDNS_RATE_ANSWER);
	const __u64 words[2] = { k.prefix, k.account };
	__u64 hash = hydns_budget_hash(words, hydns_pages_shared(w->g)->budget_seed);
	struct hydns_rate_bucket *b = (struct hydns_rate_bucket *)(void *)atomic_load(&w->budgets.bucket) + HYDNS_BUDGET_BUCKET(hash);
	uint32_t i = hydns_rate_find(b, HYDNS_BUDGET_TAG(hash));

	return i < HYDNS_RATE_CELLS ? &b->cell[i] : NULL;
}

/* A query that the program has debited and left to the resolver, to be answered with TC, is not debited again, for a second. */
static void test_slips(void **state)
{
	struct world *w = *state;

	assert_int_equal(debit(w, 1, SECOND), HYDNS_RATE_OK);
	cell_of(w, 1)->slips = SECOND << 16 | 2;
	assert_int_equal(debit(w, 1, SECOND), HYDNS_RATE_SLIP);
	assert_int_equal(debit(w, 1, SECOND + 1), HYDNS_RATE_SLIP);
	for (int i = 1; i < RATE; i++)
		assert_int_equal(debit(w, 1, SECOND), HYDNS_RATE_OK);
	cell_of(w, 1)->slips = SECOND << 16 | 2;
	assert_int_equal(debit(w, 1, SECOND + 2), HYDNS_RATE_OK);
}

static void test_log(void **state)
{
	struct world *w = *state;
	struct hydns_rate_key k = key_of(1, HYDNS_RATE_ANSWER);

	spend(w, 1, SECOND);
	assert_int_equal(hydns_pages_shared(w->g)->rates.logging, 0);
	hydns_rates_logged(&w->budgets, w->g, &k, SECOND, true);
	assert_int_equal(cell_of(w, 1)->logged, SECOND);
	assert_int_equal(hydns_pages_shared(w->g)->rates.logging, 1);
	hydns_rates_logged(&w->budgets, w->g, &k, 0, false);
	assert_int_equal(cell_of(w, 1)->logged, 0);
	assert_int_equal(hydns_pages_shared(w->g)->rates.logging, 0);
}

/* Ten million clients that ask once, each second as many as the cells are, lift nobody's limit. The bucket of one that finds no cell says
 * so to the program. */
static void test_crowd(void **state)
{
	struct world *w = *state;
	uint32_t alone = 0;

	for (uint32_t n = 0; n < GREEDY; n++)
		for (int i = 0; i < RATE * (WINDOW + 1); i++)
			(void)debit(w, n, SECOND);
	for (uint32_t n = 0; n < CROWD; n++)
		alone += debit(w, GREEDY + n, SECOND + n / (CROWD / WINDOW)) == (enum hydns_rate_verdict)-1;
	for (uint32_t n = 0; n < GREEDY; n++)
		assert_int_not_equal(debit(w, n, SECOND + 1), HYDNS_RATE_OK);
	assert_true(alone > 0 && alone < CROWD);
}

static void *debits(void *arg)
{
	for (uint32_t n = 0; n < DEBITS; n++)
		(void)debit(arg, 1, SECOND);
	return NULL;
}

static void test_threads(void **state)
{
	struct world *w = *state;
	pthread_t thread[THREADS];

	assert_int_equal(debit(w, 1, SECOND), HYDNS_RATE_OK);
	cell_of(w, 1)->state = HYDNS_RATE_STATE(SECOND, HYDNS_RATE_ANSWER, THREADS * DEBITS, 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, debits, w), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(HYDNS_RATE_STATE_BALANCE(cell_of(w, 1)->state), 0);
}

/* Until then the resolver may have counted clients alone. */
static void test_first_map(void **state)
{
	struct world *w = *state;
	struct hydns_rate_bucket *b = (struct hydns_rate_bucket *)(void *)atomic_load(&w->budgets.bucket);

	hydns_rates_begin(&w->budgets, &rates, SECOND);
	for (unsigned i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		assert_int_equal(b[i].overflowed, SECOND + WINDOW);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_model), TEST(test_lowest), TEST(test_kinds_are_apart), TEST(test_balances_go_on),
		TEST(test_slips), TEST(test_log),
		TEST(test_crowd), TEST(test_threads), TEST(test_first_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
