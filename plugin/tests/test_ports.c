/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Ports of queries to upstream: drawn evenly, given once, and an answer found by nothing less than all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hydns/hash.h"
#include "plugin/queue/ports.h"

#define FIRST 16384
#define COUNT 4096

struct world {
	int fd;                                /* the words: memory, as the map is */
	uint64_t *word;
	struct hydns_ports *ports;
	struct hydns_port_thread *thread;
	uint64_t state;
};

/* splitmix64 (Steele, Lea and Flood, 2014): the same numbers in each run. */
static uint64_t next_number(struct world *w)
{
	uint64_t z = w->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint32_t below(void *arg, uint32_t n)
{
	return (uint32_t)((next_number(arg) >> 32) * n >> 32);
}

static uint32_t below_by_kernel(void *arg, uint32_t n)
{
	uint32_t x;

	(void)arg;
	assert_int_equal(getrandom(&x, sizeof(x), 0), sizeof(x));
	return (uint32_t)((uint64_t)x * n >> 32);
}

static const struct hydns_port_range range = { .first = FIRST, .count = COUNT, .resolver = 3, .seed = { 11, 12 } };

static int set_up_threads(void **state, uint32_t threads)
{
	struct world *w = calloc(1, sizeof(*w));

	w->fd = memfd_create("words", MFD_CLOEXEC);
	assert_int_equal(ftruncate(w->fd, HYDNS_PORTS * sizeof(uint64_t)), 0);
	w->word = mmap(NULL, HYDNS_PORTS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	assert_ptr_not_equal(w->word, MAP_FAILED);
	w->ports = hydns_ports_new(threads);
	assert_int_equal(hydns_ports_use(w->ports, w->fd, &range), 0);
	w->thread = hydns_ports_thread(w->ports, threads - 1);
	*state = w;
	return 0;
}

static int set_up(void **state)
{
	return set_up_threads(state, 3);
}

static int tear_down(void **state)
{
	struct world *w = *state;

	hydns_ports_free(w->ports);
	for (uint32_t port = 0; port < HYDNS_PORTS; port++)
		assert_int_equal(w->word[port], 0);            /* nothing is left claimed */
	munmap(w->word, HYDNS_PORTS * sizeof(uint64_t));
	close(w->fd);
	free(w);
	return 0;
}

static struct hydns_path to(uint8_t last, bool ipv6)
{
	struct hydns_path p = { .ipv6 = ipv6, .remote_port = 53, .local = { 192, 0, 2, 1 }, .remote = { 198, 51, 100, last } };

	return p;
}

static uint16_t claim(struct world *w, struct hydns_path *p, void *owner)
{
	p->local_port = hydns_port_claim(w->thread, p, 5, owner, below, w);
	return p->local_port;
}

static void the_word_says_whose_it_is(void **state)
{
	struct world *w = *state;
	struct hydns_path v4 = to(7, false), v6 = to(7, true);
	const uint8_t mapped[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 7 };
	const __u64 seed[2] = { range.seed[0], range.seed[1] };
	__u64 addr[2];
	uint64_t word;

	memcpy(addr, mapped, 16);
	word = w->word[claim(w, &v4, state)];
	assert_int_equal(HYDNS_PORT_THREAD(word), 2);
	assert_int_equal(HYDNS_PORT_RESOLVER(word), 3);
	assert_int_equal(HYDNS_PORT_DEVICE(word), 5);
	assert_int_equal(HYDNS_PORT_TAG(word), hydns_remote_tag(addr, 0x3500, seed));
	assert_int_equal(HYDNS_PORT_TAG(word), 0x076433c63500ULL);     /* 7.100.51.198, 53 in network order */
	memcpy(addr, v6.remote, 16);
	word = w->word[claim(w, &v6, state)];
	assert_int_equal(HYDNS_PORT_TAG(word), hydns_remote_tag(addr, 0x3500, seed));
	assert_int_equal(hydns_ports_claimed(w->thread), 2);
	hydns_port_release(w->thread, v6.local_port);
	assert_int_equal(w->word[v6.local_port], 0);
	hydns_port_release(w->thread, v6.local_port);                   /* again: nothing happens */
	assert_int_equal(hydns_ports_claimed(w->thread), 1);
}

/* Only the whole of it is an answer: what an attacker off the path has to guess. */
static void an_answer_must_match_in_all(void **state)
{
	struct world *w = *state;
	struct hydns_path p = to(7, false), wrong;

	assert_true(claim(w, &p, &p));
	assert_ptr_equal(hydns_port_owner(w->thread, &p, 5), &p);
	assert_null(hydns_port_owner(w->thread, &p, 6));
	for (unsigned bit = 0; bit < 128; bit++) {
		wrong = p;
		wrong.remote[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_null(hydns_port_owner(w->thread, &wrong, 5));
		wrong = p;
		wrong.local[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_null(hydns_port_owner(w->thread, &wrong, 5));
	}
	for (unsigned bit = 0; bit < 16; bit++) {
		wrong = p;
		wrong.remote_port ^= (uint16_t)(1 << bit);
		assert_null(hydns_port_owner(w->thread, &wrong, 5));
		wrong = p;
		wrong.local_port ^= (uint16_t)(1 << bit);
		assert_null(hydns_port_owner(w->thread, &wrong, 5));
	}
	wrong = p;
	wrong.ipv6 = true;
	assert_null(hydns_port_owner(w->thread, &wrong, 5));
	assert_null(hydns_port_owner(w->thread, &wrong, HYDNS_ANY_DEVICE));
	assert_ptr_equal(hydns_port_owner(w->thread, &p, HYDNS_ANY_DEVICE), &p);        /* the stack has judged its source */
	assert_null(hydns_port_owner(hydns_ports_thread(w->ports, 0), &p, 5));
	hydns_port_release(w->thread, p.local_port);
	assert_null(hydns_port_owner(w->thread, &p, 5));
}

/* What an error says of a query: where it went, and its id. */
static void an_error_finds_its_query(void **state)
{
	struct world *w = *state;
	struct hydns_path p = to(7, false), other = to(7, true), found, wrong;

	claim(w, &other, &other);
	hydns_port_set_id(w->thread, other.local_port, (const uint8_t[]){ 1, 3 });
	claim(w, &p, &p);
	hydns_port_set_id(w->thread, p.local_port, (const uint8_t[]){ 1, 2 });
	found = to(7, false);
	memset(found.local, 0, sizeof(found.local));
	wrong = found;
	assert_true(hydns_port_find(w->thread, &found, (const uint8_t[]){ 1, 2 }));
	assert_int_equal(found.local_port, p.local_port);
	assert_memory_equal(found.local, p.local, sizeof(p.local));
	assert_false(hydns_port_find(w->thread, &wrong, (const uint8_t[]){ 1, 3 }));
	for (int i = 0; i < 3; i++) {
		struct hydns_path another = wrong;

		another.remote_port += i == 0;
		another.remote[3] += i == 1;
		another.ipv6 = i == 2;
		assert_false(hydns_port_find(w->thread, &another, (const uint8_t[]){ 1, 2 }));
	}
	assert_true(hydns_port_is(w->thread, p.local_port, &p));
	assert_false(hydns_port_is(w->thread, p.local_port, &other));
	hydns_port_release(w->thread, p.local_port);
	assert_false(hydns_port_is(w->thread, p.local_port, &p));
	assert_false(hydns_port_is(w->thread, p.local_port, NULL));
	assert_false(hydns_port_find(w->thread, &found, (const uint8_t[]){ 1, 2 }));
}

/* The answer to a former query from the same port comes late. */
static void a_late_answer_is_nobodys(void **state)
{
	struct world *w = *state;
	struct hydns_path former = to(7, false), p;
	const struct hydns_port_range one = { .first = 30000, .count = 1, .resolver = 3, .seed = { 11, 12 } };

	assert_int_equal(hydns_ports_use(w->ports, w->fd, &one), 0);
	assert_int_equal(claim(w, &former, &former), 30000);
	hydns_port_release(w->thread, 30000);
	p = to(8, false);
	assert_int_equal(claim(w, &p, &p), 30000);
	assert_null(hydns_port_owner(w->thread, &former, 5));
	assert_ptr_equal(hydns_port_owner(w->thread, &p, 5), &p);
}

/* An answer without an interface of its own, as it comes from the stack, must match in all else. */
static void a_stray_must_match_in_all_else(void **state)
{
	struct world *w = *state;
	struct hydns_path p = to(7, true), wrong;

	assert_true(claim(w, &p, &p));
	for (unsigned octet = 0; octet < 16; octet++) {
		wrong = p;
		wrong.remote[octet] ^= 1;
		assert_null(hydns_port_owner(w->thread, &wrong, HYDNS_ANY_DEVICE));
		wrong = p;
		wrong.local[octet] ^= 1;
		assert_null(hydns_port_owner(w->thread, &wrong, HYDNS_ANY_DEVICE));
	}
	wrong = p;
	wrong.remote_port++;
	assert_null(hydns_port_owner(w->thread, &wrong, HYDNS_ANY_DEVICE));
	wrong = p;
	wrong.local_port ^= 1;
	assert_null(hydns_port_owner(w->thread, &wrong, HYDNS_ANY_DEVICE));
}

/* A thread that ends gives back its own ports, and nobody else's. */
static void a_threads_end_releases_its_own(void **state)
{
	struct world *w = *state;
	struct hydns_port_thread *other = hydns_ports_thread(w->ports, 0);
	struct hydns_path p = to(7, false), q = to(8, false);

	q.local_port = hydns_port_claim(other, &q, 5, &q, below, w);
	for (unsigned i = 0; i < 100; i++)
		assert_true(claim(w, &p, &p));
	hydns_port_release_all(w->thread);
	assert_int_equal(hydns_ports_claimed(w->thread), 0);
	assert_null(hydns_port_owner(w->thread, &p, 5));
	assert_ptr_equal(hydns_port_owner(other, &q, 5), &q);
	for (uint32_t port = 0; port < HYDNS_PORTS; port++)
		assert_true(w->word[port] == 0 || port == q.local_port);
	assert_int_not_equal(w->word[q.local_port], 0);
}

static uint32_t the_first(void *arg, uint32_t n)
{
	(void)n;
	++*(unsigned *)arg;
	return 0;
}

/* A range that is nearly full costs a query no more than so many draws. */
static void draws_are_bounded(void **state)
{
	struct world *w = *state;
	struct hydns_path p = to(7, false);
	unsigned drawn = 0;

	assert_int_equal(hydns_port_claim(w->thread, &p, 5, &p, the_first, &drawn), FIRST);
	assert_int_equal(drawn, 1);
	assert_int_equal(hydns_port_claim(w->thread, &p, 5, &p, the_first, &drawn), 0);
	assert_int_equal(drawn, 1 + HYDNS_PORT_TRIES);
}

static void a_full_range_refuses(void **state)
{
	struct world *w = *state;
	struct hydns_path p = to(7, false);
	unsigned claimed = 0;

	for (unsigned i = 0; i < 64 * COUNT && claimed < COUNT; i++)
		claimed += claim(w, &p, &p) != 0;
	assert_int_equal(claimed, COUNT);
	assert_int_equal(claim(w, &p, &p), 0);
	hydns_port_release_all(w->thread);
	assert_int_equal(hydns_ports_claimed(w->thread), 0);
	assert_int_not_equal(claim(w, &p, &p), 0);
	hydns_ports_pause(w->ports);
	assert_int_equal(claim(w, &p, &p), 0);
}

/* Of hydnsd's next map too: ports of the former one are released where they were claimed. */
static void another_map_takes_over(void **state)
{
	struct world *w = *state;
	struct hydns_path p = to(7, false), q = p;
	const struct hydns_port_range other = { .first = 40000, .count = COUNT, .resolver = 1, .seed = { 1, 2 } };
	int fd = memfd_create("words", MFD_CLOEXEC);
	uint64_t *word;

	assert_int_equal(ftruncate(fd, HYDNS_PORTS * sizeof(uint64_t)), 0);
	word = mmap(NULL, HYDNS_PORTS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(claim(w, &p, &p));
	assert_int_equal(hydns_ports_use(w->ports, fd, &other), 0);
	assert_true(claim(w, &q, &q) >= 40000);
	assert_int_equal(HYDNS_PORT_RESOLVER(word[q.local_port]), 1);
	assert_int_equal(w->word[q.local_port], 0);
	assert_ptr_equal(hydns_port_owner(w->thread, &p, 5), &p);
	hydns_port_release(w->thread, p.local_port);
	assert_int_equal(w->word[p.local_port], 0);
	hydns_port_release(w->thread, q.local_port);
	assert_int_equal(word[q.local_port], 0);
	munmap(word, HYDNS_PORTS * sizeof(uint64_t));
	close(fd);
}

static unsigned mappings_of_words(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:words") != NULL;
	fclose(f);
	return n;
}

/* A resolver that registers again has another number then, and later the former one. */
static void a_map_that_comes_back_is_not_mapped_again(void **state)
{
	struct hydns_port_range other = range;
	struct world *w = *state;
	unsigned before;

	other.resolver = 4;
	assert_int_equal(hydns_ports_use(w->ports, w->fd, &other), 0);
	before = mappings_of_words();
	assert_int_equal(hydns_ports_use(w->ports, w->fd, &range), 0);
	assert_int_equal(hydns_ports_use(w->ports, w->fd, &other), 0);
	assert_int_equal(mappings_of_words(), before);
}

/* hydnsd clears the words of a resolver that it takes for ended, and others claim the ports. */
static void a_port_that_is_anothers_now_is_not_released(void **state)
{
	struct world *w = *state;
	struct hydns_path path = { .remote = { 192, 0, 2, 1 }, .remote_port = 53 };
	uint16_t port = hydns_port_claim(w->thread, &path, 1, w, below, w);

	assert_int_not_equal(port, 0);
	w->word[port] = 77;
	hydns_port_release(w->thread, port);
	assert_int_equal(w->word[port], 77);
	assert_int_equal(hydns_ports_claimed(w->thread), 0);
	w->word[port] = 0;
}

/* A thread's table has one place for a port: a query by the former map keeps it until it ends. */
static void a_port_under_way_by_a_former_map_waits(void **state)
{
	struct world *w = *state;
	struct hydns_path former = to(7, false), p = to(8, false);
	struct hydns_port_range one = { .first = 30000, .count = 1, .resolver = 3, .seed = { 11, 12 } };
	int fd = memfd_create("words", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, HYDNS_PORTS * sizeof(uint64_t)), 0);
	assert_int_equal(hydns_ports_use(w->ports, w->fd, &one), 0);
	assert_int_equal(claim(w, &former, &former), 30000);
	one.seed[0]++;
	assert_int_equal(hydns_ports_use(w->ports, fd, &one), 0);
	assert_int_equal(claim(w, &p, &p), 0);
	assert_ptr_equal(hydns_port_owner(w->thread, &former, 5), &former);
	hydns_port_release(w->thread, 30000);
	assert_int_equal(claim(w, &p, &p), 30000);
	close(fd);
}

static void ranges_that_are_none(void **state)
{
	struct world *w = *state;
	const struct hydns_port_range none = { .first = 1, .count = 0 }, zero = { .first = 0, .count = 2 },
				      beyond = { .first = 65000, .count = 1000 },
				      other = { .first = 9, .count = 9 };

	assert_int_not_equal(hydns_ports_use(w->ports, w->fd, &none), 0);
	assert_int_not_equal(hydns_ports_use(w->ports, w->fd, &zero), 0);
	assert_int_not_equal(hydns_ports_use(w->ports, w->fd, &beyond), 0);
	assert_int_not_equal(hydns_ports_use(w->ports, -1, &other), 0);
	assert_int_equal(hydns_ports_use(w->ports, -1, &range), 0);      /* the map that it has already */
}

static bool is_odd(void *arg, uint16_t port)
{
	(void)arg;
	return port & 1;
}

static void avoided_ports_are_never_claimed(void **state)
{
	struct world *w = *state;
	struct hydns_path p = to(7, false);

	hydns_ports_avoid(w->ports, is_odd, NULL);
	for (unsigned i = 0; i < 2 * COUNT; i++)
		assert_int_equal(claim(w, &p, &p) & 1, 0);
}

/*
 * Chi-square of so many claims over the range, each released at once: with n ports it is about n on average, with a standard
 * deviation of sqrt(2 n). Beyond 6.5 of these a fair draw comes once in 4 * 10^9 runs (by Wilson and Hilferty, 1931).
 */
static void assert_even(struct world *w, hydns_random_below *random, void *arg, unsigned claims, unsigned destinations)
{
	unsigned *count = calloc((size_t)COUNT * destinations, sizeof(*count));

	for (unsigned i = 0; i < claims; i++) {
		struct hydns_path p = to((uint8_t)(i % destinations), false);
		uint16_t port = hydns_port_claim(w->thread, &p, 5, w, random, arg);

		assert_in_range(port, FIRST, FIRST + COUNT - 1);
		count[(i % destinations) * COUNT + port - FIRST]++;
		hydns_port_release(w->thread, port);
	}
	for (unsigned d = 0; d < destinations; d++) {
		const double expected = (double)claims / destinations / COUNT;
		double chi = 0;

		for (unsigned i = 0; i < COUNT; i++)
			chi += (count[d * COUNT + i] - expected) * (count[d * COUNT + i] - expected) / expected;
		assert_true(fabs(chi - (COUNT - 1)) < 6.5 * sqrt(2.0 * COUNT));
	}
	free(count);
}

static void every_port_is_as_likely(void **state)
{
	assert_even(*state, below, *state, 1000000, 4);
	assert_even(*state, below_by_kernel, NULL, 200000, 1);
}

/* Of a range in which others hold every second port, the rest are as likely as each other. */
static void free_ports_are_as_likely(void **state)
{
	struct world *w = *state;
	struct hydns_path p = to(7, false);
	const double expected = 500000.0 / (COUNT / 2);
	unsigned *count = calloc(COUNT, sizeof(*count));
	double chi = 0;

	for (unsigned i = 1; i < COUNT; i += 2)
		w->word[FIRST + i] = 1;
	for (unsigned i = 0, tries = 0; i < 500000; tries++) {
		const uint16_t port = claim(w, &p, &p);

		assert_true(tries < 600000);
		if (!port)
			continue;              /* all draws were of ports that are taken: a query in 256 */
		assert_int_equal(port % 2, 0);
		count[port - FIRST]++;
		hydns_port_release(w->thread, port);
		i++;
	}
	for (unsigned i = 0; i < COUNT; i += 2)
		chi += (count[i] - expected) * (count[i] - expected) / expected;
	assert_true(fabs(chi - (COUNT / 2 - 1)) < 7 * sqrt(COUNT));
	for (unsigned i = 1; i < COUNT; i += 2)
		w->word[FIRST + i] = 0;
	free(count);
}

struct crowd {
	struct hydns_port_thread *thread;
	_Atomic uint8_t *held;                 /* by port: how many hold it */
	struct world numbers;
	_Atomic bool *twice;
};

static void give_back(struct crowd *c, uint16_t port)
{
	if (!port)
		return;
	atomic_fetch_sub(&c->held[port], 1);
	hydns_port_release(c->thread, port);
}

static void *claim_and_release(void *arg)
{
	struct crowd *c = arg;
	struct hydns_path p = to(9, false);
	uint16_t mine[256] = { 0 };

	for (unsigned i = 0; i < 200000; i++) {
		uint16_t *m = &mine[i % 256];

		give_back(c, *m);
		*m = hydns_port_claim(c->thread, &p, 1, c, below, &c->numbers);
		if (*m && atomic_fetch_add(&c->held[*m], 1) != 0)
			atomic_store(c->twice, true);
	}
	for (unsigned i = 0; i < 256; i++)
		give_back(c, mine[i]);
	return NULL;
}

/* From a range that is nearly full. */
static void no_port_is_given_twice(void **state)
{
	struct world *w = *state;
	const struct hydns_port_range narrow = { .first = 20000, .count = 600, .resolver = 3 };
	_Atomic uint8_t *held = calloc(HYDNS_PORTS, 1);
	_Atomic bool twice = false;
	struct crowd c[2];
	pthread_t thread[2];

	assert_int_equal(hydns_ports_use(w->ports, w->fd, &narrow), 0);
	for (uint32_t i = 0; i < 2; i++) {
		c[i] = (struct crowd){ .thread = hydns_ports_thread(w->ports, i), .held = held, .numbers.state = i, .twice = &twice };
		assert_int_equal(pthread_create(&thread[i], NULL, claim_and_release, &c[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_false(twice);
	free((void *)held);
}

#define PROCESSES 3

/* One of several resolvers of a host, which share the words and nothing else. held, twice: shared by all. */
static void be_a_resolver(int fd, uint32_t number, const struct hydns_port_range *narrow, _Atomic uint8_t *held,
			  _Atomic bool *twice)
{
	struct hydns_port_range mine = *narrow;
	struct crowd c = { .held = held, .numbers.state = number, .twice = twice };
	struct hydns_ports *ports = hydns_ports_new(1);

	mine.resolver = number;
	c.thread = hydns_ports_thread(ports, 0);
	if (!ports || hydns_ports_use(ports, fd, &mine))
		_exit(1);
	claim_and_release(&c);
	hydns_ports_free(ports);
	_exit(0);
}

static void no_port_is_given_to_two_processes(void **state)
{
	struct world *w = *state;
	const struct hydns_port_range narrow = { .first = 20000, .count = 900 };
	_Atomic uint8_t *held = mmap(NULL, HYDNS_PORTS + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_Atomic bool *twice = (void *)(held + HYDNS_PORTS);
	pid_t pid[PROCESSES];
	int status;

	assert_ptr_not_equal(held, MAP_FAILED);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0)
			be_a_resolver(w->fd, i, &narrow, held, twice);
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	assert_false(*twice);
	munmap((void *)held, HYDNS_PORTS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_word_says_whose_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_must_match_in_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_stray_must_match_in_all_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_error_finds_its_query, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_late_answer_is_nobodys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_threads_end_releases_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(draws_are_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_range_refuses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_map_takes_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_map_that_comes_back_is_not_mapped_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_port_that_is_anothers_now_is_not_released, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_port_under_way_by_a_former_map_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ranges_that_are_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(avoided_ports_are_never_claimed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_port_is_as_likely, set_up, tear_down),
		cmocka_unit_test_setup_teardown(free_ports_are_as_likely, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_port_is_given_twice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_port_is_given_to_two_processes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
