/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Keys, the tables of offers and names, rings. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "hydns/hash.h"
#include "plugin/changes/changes.h"
#include "plugin/offers/hot.h"
#include "plugin/offers/offers.h"

static const uint64_t seed[2] = { 0x0123456789abcdefULL, 0xfedcba9876543210ULL };

/* The key of a question in any case is that of hash.h for its lower-cased name, at every length. */
static void keys(void **state)
{
	(void)state;
	for (size_t len = 1; len <= HYDNS_NAME_MAX; len++) {
		uint8_t mixed[HYDNS_NAME_MAX], lower[HYDNS_NAME_MAX];
		struct hydns_question q = { .name = mixed, .name_len = (uint16_t)len, .qtype = 28, .variant = 1 };
		const __u64 s[2] = { seed[0], seed[1] };

		for (size_t i = 0; i < len; i++) {
			lower[i] = (uint8_t)rand();
			if (lower[i] >= 'A' && lower[i] <= 'Z')
				lower[i] |= 0x20;
			mixed[i] = lower[i] >= 'a' && lower[i] <= 'z' && rand() % 2 ? lower[i] & 0xdf : lower[i];
		}
		assert_int_equal(hydns_question_key(&q, seed),
				 hydns_key_hash(lower, (__u8)len, htons(28), 1, 0, s));
		hydns_name_lower(mixed, mixed, len);
		assert_memory_equal(mixed, lower, len);
	}
}

static void offered(void **state)
{
	struct hydns_offered *t = hydns_offered_new(1000);
	const uint64_t key = 0x123456789abcdef0ULL;

	(void)state;
	assert_false(hydns_offered_lately(t, key, 1000, 1, 50, 1));
	assert_false(hydns_offered_claim_refresh(t, key, 1, 50, 100));
	hydns_offered_record(t, key, 1000, 1, 50, 7, 1);
	assert_true(hydns_offered_lately(t, key, 1000, 1, 249, 1));
	assert_true(hydns_offered_lately(t, key, 1000, 1, 69, 100));     /* hotter: a shorter wait */
	assert_false(hydns_offered_lately(t, key, 1000, 1, 70, 100));
	assert_false(hydns_offered_lately(t, key, 1000, 1, 250, 1));
	assert_false(hydns_offered_lately(t, key, 1300, 1, 51, 1));      /* refreshed: at once */
	assert_false(hydns_offered_lately(t, key, 1000, 2, 51, 1));      /* another store */
	assert_false(hydns_offered_lately(t, key ^ 1ULL << 40, 1000, 1, 51, 1));
	hydns_offered_record(t, key, 1000, 1, 250, 7, 1);
	assert_true(hydns_offered_lately(t, key, 1000, 1, 649, 1));      /* the kernel seems to pass it: wait longer */
	assert_false(hydns_offered_lately(t, key, 1000, 1, 650, 1));

	assert_true(hydns_offered_claim_refresh(t, key, 1, 700, 100));
	assert_false(hydns_offered_claim_refresh(t, key, 1, 799, 100));
	assert_true(hydns_offered_claim_refresh(t, key, 1, 800, 100));
	assert_false(hydns_offered_claim_refresh(t, key, 2, 1000, 100));
	assert_true(hydns_offered_stands(t, key, 1, 999, 7));
	assert_false(hydns_offered_stands(t, key, 1, 1000, 7));       /* it has ended */
	assert_false(hydns_offered_stands(t, key, 1, 999, 8));        /* something was withdrawn since */
	assert_false(hydns_offered_stands(t, key, 2, 999, 7));
	assert_false(hydns_offered_stands(t, key ^ 1ULL << 40, 1, 999, 7));
	hydns_offered_record(t, key, 1000, 1, 900, UINT32_MAX, 1);
	assert_true(hydns_offered_stands(t, key, 1, 999, UINT32_MAX));
	assert_false(hydns_offered_stands(t, key, 1, 999, 1ULL << 32));
	hydns_offered_record(t, key, 1300, 1, 1000, 7, 0);             /* no rule to refresh */
	assert_true(hydns_offered_lately(t, key, 1300, 1, 1001, 1));
	assert_true(hydns_offered_lately(t, key, 1300, 1, 1100, 100));
	assert_false(hydns_offered_claim_refresh(t, key, 1, 1001, 100));
	assert_false(hydns_offered_stands(t, key, 1, 1001, 7));
	hydns_offered_free(t);
}

/* A question is new once, unless its offer is known; another question with the same tags' place is new all the same. */
static void first_sights(void **state)
{
	struct hydns_offered *t = hydns_offered_new(1000);
	const uint64_t key = 0x123456789abcdef0ULL, offered_key = 0x523456789abcdef0ULL;

	(void)state;
	assert_true(hydns_offered_first_sight(t, key, 1));
	assert_false(hydns_offered_first_sight(t, key, 1));
	assert_false(hydns_offered_first_sight(t, key, 2));               /* whatever became of the store */
	assert_false(hydns_offered_before(t, key, 1));
	assert_true(hydns_offered_first_sight(t, key ^ 1ULL << 60, 1));
	assert_true(hydns_offered_first_sight(t, key, 1));                /* that one took its tag */
	hydns_offered_record(t, offered_key, 1000, 1, 50, 7, 1);
	assert_false(hydns_offered_first_sight(t, offered_key, 1));
	assert_true(hydns_offered_first_sight(t, offered_key, 2));        /* offered to another store */
	hydns_offered_record(t, key ^ 1ULL << 59, 1000, 1, 50, 7, 0);
	assert_true(hydns_offered_first_sight(t, key ^ 1ULL << 59, 1));   /* it could not be offered */
	hydns_offered_free(t);
}

/* Two questions whose keys share a place keep one entry each; a third takes the older one's. */
static void offered_collision(void **state)
{
	struct hydns_offered *t = hydns_offered_new(1000);
	const uint64_t key[3] = { 1ULL << 32 | 6, 2ULL << 32 | 6, 3ULL << 32 | 6 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		hydns_offered_record(t, key[i], 1000, 1, 100 + i, 7, 1);
	assert_false(hydns_offered_lately(t, key[0], 1000, 1, 103, 1));
	assert_true(hydns_offered_lately(t, key[1], 1000, 1, 103, 1));
	assert_true(hydns_offered_lately(t, key[2], 1000, 1, 103, 1));
	hydns_offered_free(t);
}

static void names(void **state)
{
	static const uint8_t www[] = "\3www\7example\3org", other[] = "\5other\7example\3org";
	struct hydns_names *t = hydns_names_new(1000, seed);
	uint64_t before;

	(void)state;
	/* changes are not recorded: the first offer is refused */
	assert_false(hydns_names_change(t, www, sizeof(www), HYDNS_NAMES_ALL, 1000));
	assert_int_equal(hydns_names_changes(t), 0);
	assert_false(hydns_names_offer(t, www, sizeof(www), HYDNS_NAMES_ALL, 5000, 0));
	assert_int_equal(hydns_names_changes(t), 1);
	assert_false(hydns_names_change(t, www, sizeof(www), HYDNS_NAMES_ALL, 1000));
	before = hydns_names_changes(t);
	assert_int_equal(before, 2);
	assert_true(hydns_names_offer(t, www, sizeof(www), HYDNS_NAMES_ALL, 5000, before));
	assert_false(hydns_names_change(t, other, sizeof(other), HYDNS_NAMES_ALL, 1000));
	assert_true(hydns_names_change(t, www, sizeof(www), HYDNS_NAMES_ALL, 4999));
	/* read before that change */
	assert_false(hydns_names_offer(t, www, sizeof(www), HYDNS_NAMES_ALL, 6000, before));
	assert_true(hydns_names_offer(t, other, sizeof(other), HYDNS_NAMES_ALL, 6000, hydns_names_changes(t)));
	/* a refused offer only errs safely */
	assert_true(hydns_names_change(t, www, sizeof(www), HYDNS_NAMES_ALL, 5500));
	assert_false(hydns_names_change(t, www, sizeof(www), HYDNS_NAMES_ALL, 6000));
	/* an RRset of the name, apart from the name and its other RRsets */
	assert_true(hydns_names_offer(t, www, sizeof(www), 1, 9000, hydns_names_changes(t)));
	assert_true(hydns_names_change(t, www, sizeof(www), 1, 8999));
	assert_false(hydns_names_change(t, www, sizeof(www), 28, 8000));
	assert_false(hydns_names_change(t, www, sizeof(www), HYDNS_NAMES_ALL, 8000));
	hydns_names_free(t);
}

/* Steps of a second add up until a move is reported; the next ones count from there. */
static void ends_add_up(void **state)
{
	static const uint8_t zone[] = "\7example\3org";
	struct hydns_rrset_ends *t = hydns_rrset_ends_new(seed);

	(void)state;
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 6, HYDNS_SECTION_ANYWHERE, 900, 901), HYDNS_END_LITTLE);
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 6, HYDNS_SECTION_ANYWHERE, 901, 902), HYDNS_END_LATER);
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 6, HYDNS_SECTION_ANYWHERE, 902, 903), HYDNS_END_LITTLE);
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 6, HYDNS_SECTION_ANYWHERE, 903, 902), HYDNS_END_LITTLE);
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 6, HYDNS_SECTION_ANYWHERE, 902, 901), HYDNS_END_EARLIER);
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 6, HYDNS_SECTION_ANYWHERE, 901, 1201), HYDNS_END_LATER);
	/* the copy that authority sections show ends by itself */
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 6, HYDNS_SECTION_AUTHORITY, 300, 301), HYDNS_END_LITTLE);
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 6, HYDNS_SECTION_ANYWHERE, 1201, 1202), HYDNS_END_LITTLE);
	/* another type of the name is another RRset; and seconds go on after 2^32 */
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 1, HYDNS_SECTION_ANYWHERE, 0xffffffff, 0), HYDNS_END_LITTLE);
	assert_int_equal(hydns_rrset_ends_move(t, zone, sizeof(zone), 1, HYDNS_SECTION_ANYWHERE, 0, 1), HYDNS_END_LATER);
	hydns_rrset_ends_free(t);
}

/* A step of a second is reported too if the table does not know the end before it: another RRset has the place, or the
 * cache's end has changed without a call. */
static void ends_forgotten(void **state)
{
	static const uint8_t first[] = "\7example\3org";
	struct hydns_rrset_ends *t = hydns_rrset_ends_new(seed);
	uint8_t other[] = "\4aaaa";
	unsigned i;

	(void)state;
	assert_int_equal(hydns_rrset_ends_move(t, first, sizeof(first), 6, HYDNS_SECTION_ANYWHERE, 900, 1200), HYDNS_END_LATER);
	assert_int_equal(hydns_rrset_ends_move(t, first, sizeof(first), 6, HYDNS_SECTION_ANYWHERE, 1100, 1101), HYDNS_END_LATER);
	assert_int_equal(hydns_rrset_ends_move(t, first, sizeof(first), 6, HYDNS_SECTION_ANYWHERE, 1101, 1102), HYDNS_END_LITTLE);
	assert_int_equal(hydns_rrset_ends_move(t, first, sizeof(first), 6, HYDNS_SECTION_ANYWHERE, 1500, 1499), HYDNS_END_EARLIER);
	/* more RRsets than places: each either finds its place free or is reported, and the first is forgotten */
	for (i = 0; i < 26 * 26 * 26 * 26; i++) {
		for (unsigned at = 1, n = i; at <= 4; at++, n /= 26)
			other[at] = (uint8_t)('a' + n % 26);
		if (hydns_rrset_ends_move(t, other, sizeof(other), 6, HYDNS_SECTION_ANYWHERE, 900, 901) == HYDNS_END_EARLIER)
			fail_msg("a later end was taken for an earlier one");
	}
	assert_int_equal(hydns_rrset_ends_move(t, first, sizeof(first), 6, HYDNS_SECTION_ANYWHERE, 1499, 1500), HYDNS_END_LATER);
	hydns_rrset_ends_free(t);
}

/*
 * A changer writes a value, then reports it; an offerer reads changes, then the value, then offers it. Whenever
 * the offer of a value passes, the change that ends this value must have reported that a rule may live.
 */
#define CONTEST_VALUES 300000U
#define CONTEST_MEETING 1000U
struct contest {
	struct hydns_names *t;
	_Atomic uint64_t value, tries;
	_Atomic bool end;
	bool reported[CONTEST_VALUES + 2], passed[CONTEST_VALUES + 2];
};
static const uint8_t contested[] = "\1c";

static void *change(void *arg)
{
	struct contest *c = arg;

	for (uint64_t v = 1; v <= CONTEST_VALUES; v++) {
		uint64_t tries = atomic_load(&c->tries);

		/* Now and then, so that the two meet on a busy machine too. */
		while (v % CONTEST_MEETING == 0 && atomic_load(&c->tries) == tries)
			sched_yield();
		atomic_store(&c->value, v);
		c->reported[v] = hydns_names_change(c->t, contested, sizeof(contested), HYDNS_NAMES_ALL, v);
	}
	atomic_store(&c->end, true);
	return NULL;
}

static void names_race(void **state)
{
	struct contest *c = calloc(1, sizeof(*c));
	unsigned passed = 0, reported = 0;
	pthread_t thread;

	(void)state;
	c->t = hydns_names_new(1000, seed);
	assert_int_equal(pthread_create(&thread, NULL, change, c), 0);
	while (!atomic_load(&c->end)) {
		uint64_t changes = hydns_names_changes(c->t), value = atomic_load(&c->value);

		/* Until value + 2: an offer counts for the change that ends its value, and no other. */
		if (hydns_names_offer(c->t, contested, sizeof(contested), HYDNS_NAMES_ALL, value + 2, changes))
			c->passed[value] = true;
		atomic_fetch_add(&c->tries, 1);
	}
	pthread_join(thread, NULL);
	for (uint64_t v = 0; v < CONTEST_VALUES; v++) {
		passed += c->passed[v];
		reported += c->reported[v + 1];
		if (c->passed[v] && !c->reported[v + 1])
			fail_msg("value %llu was offered, and its change was not reported", (unsigned long long)v);
	}
	print_message("of %u values %u were offered, %u changes reported\n", CONTEST_VALUES, passed, reported);
	assert_true(passed > 0);
	hydns_names_free(c->t);
	free(c);
}

/* Another name with the place of this one, which was offered. */
static size_t name_with_its_place(struct hydns_subtrees *t, uint8_t *out)
{
	for (unsigned i = 0; i < 10000000; i++) {
		size_t len = (size_t)sprintf((char *)out + 1, "%u", i);

		out[0] = (uint8_t)len;
		out[len + 1] = 0;
		if (hydns_subtrees_offers(t, out, len + 2).at)
			return len + 2;
	}
	fail();
	return 0;
}

/* Of names that share a place, none is taken for withdrawn because another is. */
static void subtrees_with_one_place(void **state)
{
	static const uint8_t www[] = "\3www\7example";
	struct hydns_subtrees *t = hydns_subtrees_new(seed);
	uint8_t other[16];
	size_t len;

	(void)state;
	hydns_subtrees_offer(t, www, sizeof(www));
	len = name_with_its_place(t, other);
	hydns_subtrees_offer(t, other, len);
	hydns_subtrees_withdrawn(t, HYDNS_SCOPE_NAME, www, sizeof(www), hydns_subtrees_offers(t, www, sizeof(www)));
	assert_int_equal(hydns_subtrees_left(t, HYDNS_SCOPE_NAME, other, len), HYDNS_SCOPE_NAME);
	hydns_subtrees_withdrawn(t, HYDNS_SCOPE_NAME, other, len, hydns_subtrees_offers(t, other, len));
	assert_int_equal(hydns_subtrees_left(t, HYDNS_SCOPE_NAME, www, sizeof(www)), HYDNS_SCOPE_NAME);
	hydns_subtrees_free(t);
}

/* At and below which names something was offered since they were withdrawn. */
static void subtrees(void **state)
{
	static const uint8_t www[] = "\3www\7example", zone[] = "\7example", other[] = "\5other", root[] = "";
	struct hydns_subtrees *t = hydns_subtrees_new(seed);
	struct hydns_subtree_offers offers;

#define LEFT(scope, name) hydns_subtrees_left(t, HYDNS_SCOPE_##scope, name, sizeof(name))
	(void)state;
	assert_int_equal(LEFT(SUBTREE, zone), HYDNS_SCOPE_NONE);
	hydns_subtrees_offer(t, www, sizeof(www));
	assert_int_equal(LEFT(NAME, www), HYDNS_SCOPE_NAME);
	assert_int_equal(LEFT(SUBTREE, www), HYDNS_SCOPE_NAME);
	assert_int_equal(LEFT(SUBTREE, zone), HYDNS_SCOPE_SUBTREE);
	assert_int_equal(LEFT(NAME, zone), HYDNS_SCOPE_NONE);
	assert_int_equal(LEFT(SUBTREE, root), HYDNS_SCOPE_SUBTREE);
	assert_int_equal(LEFT(SUBTREE, other), HYDNS_SCOPE_NONE);
	offers = hydns_subtrees_offers(t, zone, sizeof(zone));
	hydns_subtrees_offer(t, www, sizeof(www));        /* while a withdrawal is under way */
	hydns_subtrees_withdrawn(t, HYDNS_SCOPE_SUBTREE, zone, sizeof(zone), offers);
	assert_int_equal(LEFT(SUBTREE, zone), HYDNS_SCOPE_SUBTREE);
	hydns_subtrees_withdrawn(t, HYDNS_SCOPE_SUBTREE, zone, sizeof(zone), hydns_subtrees_offers(t, zone, sizeof(zone)));
	assert_int_equal(LEFT(SUBTREE, zone), HYDNS_SCOPE_NONE);
	hydns_subtrees_withdrawn(t, HYDNS_SCOPE_SUBTREE, zone, sizeof(zone), offers);      /* one that began before ends later */
	assert_int_equal(LEFT(SUBTREE, zone), HYDNS_SCOPE_NONE);
	assert_int_equal(LEFT(SUBTREE, root), HYDNS_SCOPE_SUBTREE);

	hydns_subtrees_offer(t, zone, sizeof(zone));
	hydns_subtrees_offer(t, www, sizeof(www));
	offers = hydns_subtrees_offers(t, zone, sizeof(zone));
	hydns_subtrees_withdrawn(t, HYDNS_SCOPE_NAME, zone, sizeof(zone), offers);         /* leaves what is below */
	assert_int_equal(LEFT(NAME, zone), HYDNS_SCOPE_NONE);
	assert_int_equal(LEFT(SUBTREE, zone), HYDNS_SCOPE_SUBTREE);
#undef LEFT
	hydns_subtrees_free(t);
}

static void left_out(void **state)
{
	static const uint8_t a[] = "\1a\7example", upper[] = "\1A\7EXAMPLE", b[] = "\2bb\7example", root[] = "";
	static struct hydns_left_out l;

	(void)state;
	hydns_left_out_strike(&l, a, sizeof(a));
	hydns_left_out_add(&l, upper, sizeof(upper));
	hydns_left_out_add(&l, a, sizeof(a));
	assert_int_equal(l.len, 1 + sizeof(a));
	hydns_left_out_add(&l, root, sizeof(root));
	hydns_left_out_add(&l, b, sizeof(b));
	assert_int_equal(l.block[0], 3);
	hydns_left_out_strike(&l, root, sizeof(root));
	assert_int_equal(l.block[0], 2);
	assert_memory_equal(l.block + 1, a, sizeof(a));
	assert_memory_equal(l.block + 1 + sizeof(a), b, sizeof(b));
	hydns_left_out_strike(&l, a, sizeof(a));
	hydns_left_out_strike(&l, b, sizeof(b));
	assert_int_equal(l.len, 0);
	for (uint8_t i = 0; !l.overflow; i++) {
		uint8_t name[] = { 1, i, 7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 0 };

		hydns_left_out_add(&l, name, sizeof(name));
	}
	assert_int_equal(l.block[0], (HYDNS_LEFT_OUT_MAX - 1) / sizeof(a));
	hydns_left_out_clear(&l);
	assert_false(l.overflow);
}

/* hydnsd's part, so far as the ring's bookkeeping goes. */
static void consume_all(struct hydns_producer *r)
{
	__atomic_store_n(&r->ring->tail, r->ring->head, __ATOMIC_RELEASE);
}

/* hydnsd maps it: access to a shrunk file would kill it. */
static void ring_is_sealed(void **state)
{
	struct hydns_producer r;

	(void)state;
	assert_int_equal(hydns_producer_open(&r), 0);
	assert_int_equal(fcntl(r.fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	hydns_producer_close(&r);
}

/* A page of hydnsd's, as the program sees it, in use from here on. */
static volatile struct hydns_resolver_page *switch_page(struct hydns_pages *g, uint32_t epoch)
{
	int fd = memfd_create("page", MFD_CLOEXEC);
	void *page;

	assert_int_equal(ftruncate(fd, HYDNS_PAGE_OCTETS), 0);
	page = mmap(NULL, sizeof(struct hydns_resolver_page), PROT_READ, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	assert_int_equal(hydns_pages_switch(g, fd, epoch, 1), 0);
	return page;
}

static void drop_page(volatile struct hydns_resolver_page *page)
{
	munmap((void *)(uintptr_t)page, sizeof(*page));
}

static void pages(void **state)
{
	struct hydns_pages *g = hydns_pages_new();
	volatile struct hydns_resolver_page *first = switch_page(g, 7), *second;

	(void)state;
	assert_int_equal(first->epoch, 7);
	hydns_pages_advance_epoch(g);
	assert_int_equal(first->epoch, 8);
	assert_true(hydns_pages_suspend(g));
	assert_false(hydns_pages_suspend(g));
	hydns_pages_advance_epoch(g);
	assert_int_equal(first->epoch, 9 | HYDNS_EPOCH_SUSPENDED);
	hydns_pages_resume(g);
	assert_int_equal(first->epoch, 9);
	assert_int_equal(hydns_pages_advance_generation(g), 1);
	assert_int_equal(first->generation, 1);
	second = switch_page(g, 20);
	assert_int_not_equal(first->epoch, 9);                 /* page and rules are dead */
	assert_int_equal(first->heartbeat_ns, 0);
	assert_int_equal(second->generation, 1);
	hydns_pages_beat(g, 5);
	assert_int_equal(second->heartbeat_ns, 5);
	hydns_pages_beat(g, 0);
	hydns_pages_beat(g, 6);                                /* by a thread that does not know yet */
	assert_int_equal(second->heartbeat_ns, 0);
	hydns_pages_free(g);
	drop_page(first);
	drop_page(second);
}

/* A grace period in a former suspension does not count for this one. */
static void a_quiet_suspension_stays_quiet(void **state)
{
	const struct hydns_withdraw w = { .generation = 1 };
	struct hydns_pages *g = hydns_pages_new();
	struct hydns_suspension first, second, again;
	struct hydns_pending o;

	(void)state;
	hydns_pending_init(&o);
	assert_true(hydns_pending_add(&o, g, &w, HYDNS_PENDING_ALL, &first));
	assert_false(first.grace_over);
	hydns_pending_forget(&o, g);
	assert_true(hydns_pending_add(&o, g, &w, HYDNS_PENDING_ALL, &second));
	assert_int_equal(second.number, first.number + 1);
	hydns_pending_grace_over(&o, second.number);
	hydns_pending_grace_over(&o, first.number);
	assert_true(hydns_pending_add(&o, g, &w, HYDNS_PENDING_ALL, &again));
	assert_true(again.grace_over);
	assert_int_equal(again.number, second.number);
	hydns_pending_destroy(&o);
	hydns_pages_free(g);
}

/* Pending withdrawals are done before the rules count again. One that is asked for again meanwhile is done again. */
static void pending_withdrawals(void **state)
{
	struct hydns_withdraw w = { .generation = 1, .scope = HYDNS_SCOPE_NAME, .name_len = 3, .name = "\1a" }, first;
	struct hydns_pages *g = hydns_pages_new();
	struct hydns_suspension in;
	struct hydns_pending o;

	(void)state;
	hydns_pending_init(&o);
	assert_true(hydns_pending_add(&o, g, &w, HYDNS_PENDING_ALL, &in));
	assert_true(hydns_pages_suspended(g));
	assert_false(hydns_pending_resume(&o, g));
	assert_true(hydns_pages_suspended(g));
	assert_true(hydns_pending_first(&o, &first));
	assert_int_equal(first.generation, 1);
	w.generation = 2;
	assert_true(hydns_pending_add(&o, g, &w, HYDNS_PENDING_ALL, &in));
	hydns_pending_done(&o, &first);
	assert_false(hydns_pending_resume(&o, g));
	assert_true(hydns_pending_first(&o, &first));
	assert_int_equal(first.generation, 2);
	hydns_pending_done(&o, &first);
	assert_false(hydns_pending_first(&o, &first));
	assert_true(hydns_pending_resume(&o, g));
	assert_false(hydns_pages_suspended(g));
	hydns_pending_destroy(&o);
	hydns_pages_free(g);
}

/* One that the resolver holds goes on over other pages, and ends when it says so, with nothing pending. */
static void a_held_suspension(void **state)
{
	struct hydns_withdraw w = { .generation = 1, .scope = HYDNS_SCOPE_NAME, .name_len = 3, .name = "\1a" };
	struct hydns_pages *g = hydns_pages_new();
	volatile struct hydns_resolver_page *page;
	struct hydns_suspension in;
	struct hydns_pending o;

	(void)state;
	hydns_pending_init(&o);
	hydns_pending_hold(&o, g);
	assert_true(hydns_pending_held(&o));
	assert_true(hydns_pages_suspended(g));
	assert_false(hydns_pending_resume(&o, g));
	page = switch_page(g, 7);
	assert_false(hydns_pages_suspended(g));
	hydns_pending_forget(&o, g);
	assert_int_equal(page->epoch, 7 | HYDNS_EPOCH_SUSPENDED);
	assert_true(hydns_pending_add(&o, g, &w, HYDNS_PENDING_ALL, &in));
	hydns_pending_release(&o);
	assert_false(hydns_pending_held(&o));
	assert_false(hydns_pending_resume(&o, g));
	hydns_pending_done(&o, &w);
	assert_true(hydns_pending_resume(&o, g));
	assert_int_equal(page->epoch, 7);
	hydns_pending_destroy(&o);
	hydns_pages_free(g);
	drop_page(page);
}

static void ring_full_and_wrapped(void **state)
{
	const uint32_t len = 1000;
	struct hydns_producer r;
	uint32_t n = 0, head;

	(void)state;
	assert_int_equal(hydns_producer_open(&r), 0);
	r.head = r.ring->head = r.ring->tail = 0xfffff000U;     /* the counters wrap at 2^32 as well */
	while (n <= HYDNS_RING_BYTES / len && hydns_producer_reserve(&r, len, 0)) {
		hydns_producer_commit(&r, len);
		n++;
	}
	assert_in_range(n, HYDNS_RING_BYTES / len - 1, HYDNS_RING_BYTES / len);
	assert_int_equal(r.ring->dropped, 1);
	consume_all(&r);
	assert_null(hydns_producer_reserve(&r, len, HYDNS_RING_BYTES));
	assert_non_null(hydns_producer_reserve(&r, len, HYDNS_RING_BYTES - 2 * len));
	consume_all(&r);
	for (int i = 0; i < 10000; i++) {
		uint8_t *f = hydns_producer_reserve(&r, len, 0);

		assert_non_null(f);
		assert_true(f + len <= (uint8_t *)r.ring + HYDNS_RING_DATA + HYDNS_RING_BYTES);
		memset(f, 0xff, len);
		hydns_producer_commit(&r, len);
		consume_all(&r);
	}
	head = r.ring->head;
	r.ring->tail = head + 8;               /* nonsense: taken as full */
	assert_null(hydns_producer_reserve(&r, len, 0));
	hydns_producer_close(&r);
}

static void ring_wakes_once(void **state)
{
	struct hydns_producer r;

	(void)state;
	assert_int_equal(hydns_producer_open(&r), 0);
	assert_non_null(hydns_producer_reserve(&r, 64, 0));
	assert_false(hydns_producer_commit(&r, 64));
	r.ring->need_wakeup = HYDNS_WAKEUP_ALL;
	assert_non_null(hydns_producer_reserve(&r, 64, 0));
	assert_true(hydns_producer_commit(&r, 64));
	assert_int_equal(r.ring->need_wakeup, HYDNS_WAKEUP_NONE);
	assert_non_null(hydns_producer_reserve(&r, 64, 0));
	assert_false(hydns_producer_commit(&r, 64));
	hydns_producer_close(&r);
}

static bool commit(struct hydns_producer *r, uint32_t type)
{
	struct hydns_frame *f = hydns_producer_reserve(r, 64, 0);

	assert_non_null(f);
	*f = (struct hydns_frame){ .len = 64, .type = type };
	return hydns_producer_commit(r, 64);
}

/* While hydnsd waits for the next time that it reads offers. */
static void offers_wait_and_changes_wake(void **state)
{
	struct hydns_producer r;

	(void)state;
	assert_int_equal(hydns_producer_open(&r), 0);
	r.ring->need_wakeup = HYDNS_WAKEUP_CHANGES;
	while (r.head < HYDNS_RING_PATIENT)
		assert_false(commit(&r, HYDNS_FRAME_OFFER));
	assert_int_equal(r.ring->need_wakeup, HYDNS_WAKEUP_CHANGES);
	assert_true(commit(&r, HYDNS_FRAME_OFFER));
	assert_int_equal(r.ring->need_wakeup, HYDNS_WAKEUP_NONE);

	r.ring->tail = r.head;
	r.ring->need_wakeup = HYDNS_WAKEUP_CHANGES;
	assert_false(commit(&r, HYDNS_FRAME_OFFER));
	assert_true(commit(&r, HYDNS_FRAME_CHANGED));
	assert_false(commit(&r, HYDNS_FRAME_CHANGED));
	hydns_producer_close(&r);
}

/* A second of n sightings; how many of them were counted, how many of those had odd numbers, and how many they stand for. */
struct second {
	unsigned counted, odd;
	uint64_t weight;
};

static struct second a_second(struct hydns_sample *k, uint32_t second, unsigned n)
{
	struct second s = { 0 };

	for (unsigned i = 0; i < n; i++)
		if (!hydns_sample_skips(k, second)) {
			hydns_sample_take(k, second, second * 1000ULL + i * 1000ULL / n);
			s.weight += k->weight;
			s.counted++;
			s.odd += i & 1;
		}
	return s;
}

static void few_are_all_counted(void **state)
{
	struct hydns_sample k;

	(void)state;
	hydns_sample_start(&k, 1);
	for (uint32_t second = 1000; second < 1010; second++)
		assert_int_equal(a_second(&k, second, HYDNS_SAMPLE_PER_S).counted, HYDNS_SAMPLE_PER_S);
	assert_int_equal(k.weight, 1);
}

/* And no regular half of them; together they stand for all. */
static void of_many_some_are_counted(void **state)
{
	const unsigned many = 15 * HYDNS_SAMPLE_PER_S;
	struct hydns_sample k;
	struct second s;

	(void)state;
	hydns_sample_start(&k, 2);
	for (uint32_t second = 1000; second < 1010; second++) {
		s = a_second(&k, second, many);
		assert_in_range(s.counted, HYDNS_SAMPLE_PER_S / 2, 2 * HYDNS_SAMPLE_PER_S);
		assert_in_range(s.odd, s.counted * 4 / 10, s.counted * 6 / 10);
		assert_in_range(s.weight, many * 9 / 10, many * 11 / 10);
	}
	s = a_second(&k, 1010, 100 * HYDNS_SAMPLE_MAX * HYDNS_SAMPLE_PER_S);
	assert_int_equal(k.weight, HYDNS_SAMPLE_MAX);
}

/* Then all are counted from the first one on, whatever the clocks have done. */
static void a_quiet_time_ends_the_skipping(void **state)
{
	static const uint32_t then[] = { 1001, 2000, 999, 3 };
	struct hydns_sample k;

	(void)state;
	for (unsigned i = 0; i < sizeof(then) / sizeof(*then); i++) {
		hydns_sample_start(&k, 3);
		a_second(&k, 1000, 15 * HYDNS_SAMPLE_PER_S);
		assert_true(k.next_weight > 1);
		assert_false(hydns_sample_skips(&k, then[i]));
		hydns_sample_take(&k, then[i], then[i] * 1000ULL + 500);
		assert_int_equal(k.next_weight, 1);
		assert_int_equal(a_second(&k, then[i], 100).counted, 100);
	}
}

int main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(few_are_all_counted), cmocka_unit_test(of_many_some_are_counted),
		cmocka_unit_test(a_quiet_time_ends_the_skipping),
		cmocka_unit_test(keys), cmocka_unit_test(offered), cmocka_unit_test(first_sights), cmocka_unit_test(offered_collision),
		cmocka_unit_test(names), cmocka_unit_test(names_race), cmocka_unit_test(left_out), cmocka_unit_test(subtrees),
		cmocka_unit_test(subtrees_with_one_place),
		cmocka_unit_test(ends_add_up), cmocka_unit_test(ends_forgotten),
		cmocka_unit_test(ring_is_sealed), cmocka_unit_test(pages), cmocka_unit_test(pending_withdrawals),
		cmocka_unit_test(a_quiet_suspension_stays_quiet), cmocka_unit_test(a_held_suspension),
		cmocka_unit_test(ring_full_and_wrapped), cmocka_unit_test(ring_wakes_once),
		cmocka_unit_test(offers_wait_and_changes_wake),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
