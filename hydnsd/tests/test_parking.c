/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Parking in hydnsd: what becomes due, when it is replayed, what the program is told. The test is the loader and the clock. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hydns/hash.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/parking/replay.h"
#include "hydnsd/resolvers/ring.h"
#include "hydnsd/resolvers/session.h"
#include "hydnsd/tests/parked.h"
#include "hydnsd/tests/store.h"

#define MS          HYDNS_NS_PER_MS
#define ME          1                  /* the resolver */
#define PASS_PER_MS 16
#define QUEUE_MOST  4096

/* -- the kernel -------------------------------------------------------------------------------------------- */
static uint64_t now_ns;
static struct hydns_parking shared[HYDNS_RESOLVERS];
static struct hydns_replays replays;
static uint8_t page[HYDNS_PAGE_OCTETS] __attribute__((aligned(64)));
static struct parked_query queue[QUEUE_MOST];
static uint32_t queued;
static int ring_fd;
static bool is_paused, exists;

/* What was replayed. */
static struct {
	uint32_t calls, frames, first_ifindex, last_queue, sizes[64];
	int error;                     /* the next call fails */
	uint32_t take;                 /* the next calls take no more than so many; 0: all */
	bool pass;                     /* no rule answers */
	bool forwards;                 /* instead, each is sent to an upstream server */
	uint32_t room;                 /* of the link, for answers; more are refused */
	bool narrow;                   /* it has as much as room says, else all */
	bool links;                    /* answers leave by as many links as the frames' first octets say; a call takes one */
	unsigned answered[256];        /* by the frame's first octet */
	uint64_t passed;
	uint8_t octets[HYDNS_PARKED_FRAME]; /* of the last frame */
} kernel;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	*t = (struct timespec){ .tv_sec = (time_t)(now_ns / HYDNS_NS_PER_S), .tv_nsec = (long)(now_ns % HYDNS_NS_PER_S) };
	return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	(void)left;
	now_ns += (uint64_t)t->tv_nsec;
	return 0;
}

void hydnsd_grace_wait(void)
{
}

/* A forwarded question that is open; 0: none. */
static uint64_t forwarded;

bool hydnsd_forwarding_is_open(struct hydnsd *daemon, uint32_t i, uint64_t key)
{
	(void)daemon;
	(void)i;
	return forwarded && key == forwarded;
}

struct hydns_parking *hydns_kern_parking(struct hydns_kern *k, __u32 resolver)
{
	(void)k;
	return &shared[resolver];
}

struct hydns_replays *hydns_kern_replays(struct hydns_kern *k)
{
	(void)k;
	return &replays;
}

int hydns_kern_parked_fd(const struct hydns_kern *k)
{
	(void)k;
	return ring_fd;
}

int hydns_kern_parked_drain(struct hydns_kern *k, void (*fn)(const struct hydns_parked *p, void *arg), void *arg)
{
	uint32_t n = queued;

	(void)k;
	queued = 0;
	for (uint32_t i = 0; i < n; i++)
		fn(&queue[i].record, arg);
	return (int)n;
}

int hydns_kern_replay(struct hydns_kern *k, __u32 ifindex, __u32 rx_queue, __u32 count, __u32 *passed)
{
	uint32_t done = kernel.take && kernel.take < count ? kernel.take : count;
	int error = kernel.error;

	(void)k;
	assert_in_range(count, 1, HYDNS_REPLAYS);
	if (!kernel.calls)
		kernel.first_ifindex = ifindex;
	kernel.last_queue = rx_queue;
	kernel.sizes[kernel.calls++ % 64] = count;
	kernel.error = 0;
	if (error)
		return error;
	memcpy(kernel.octets, replays.frame[done - 1].octets, replays.frame[done - 1].len);
	kernel.frames += done;
	*passed = kernel.pass ? done : 0;
	kernel.passed += *passed;
	for (uint32_t k = 0; k < done; k++) {
		replays.frame[k].passed = kernel.forwards ? HYDNS_REPLAY_FORWARDED : kernel.pass ? HYDNS_REPLAY_PASSED : 0;
		if (kernel.links && replays.frame[k].octets[0] % 2 != replays.frame[0].octets[0] % 2) {
			replays.frame[k].passed = HYDNS_REPLAY_LATER;
			replays.frame[k].refused = 0;
			continue;
		}
		replays.frame[k].refused = kernel.narrow && !kernel.room && !replays.frame[k].passed;
		kernel.answered[replays.frame[k].octets[0]] += !replays.frame[k].refused && !replays.frame[k].passed;
		kernel.room -= kernel.narrow && kernel.room;
	}
	return (int)done;
}

void hydns_kern_parking_exists(struct hydns_kern *k, bool any)
{
	(void)k;
	exists = any;
}

bool hydnsd_interfaces_attached_to(const struct hydnsd *of, uint32_t ifindex)
{
	(void)of;
	return ifindex == 2 || ifindex == 5;
}

int hydns_kern_parking_counts(struct hydns_kern *k, __u32 resolver, struct hydns_parking_count *sum)
{
	(void)k;
	*sum = (struct hydns_parking_count){ .parked = 100 + resolver };
	return 0;
}

int hydns_kern_paused(struct hydns_kern *k, bool *on)
{
	(void)k;
	*on = is_paused;
	return 0;
}

const volatile struct hydns_resolver_page *hydns_kern_page(struct hydns_kern *k, __u32 i)
{
	(void)k;
	return i == ME ? (const volatile struct hydns_resolver_page *)page : NULL;
}

bool hydns_kern_page_abandoned(struct hydns_kern *k, __u32 i)
{
	(void)k;
	(void)i;
	return false;
}

/* The resolver reads at once what passes, or nothing any more. */
static bool reads_nothing;
static uint64_t was_read;

void hydnsd_session_ring_counts(struct hydnsd *daemon, uint64_t id, struct hydnsd_ring_counts *out)
{
	(void)daemon;
	(void)id;
	if (!reads_nothing)
		was_read = kernel.passed;
	*out = (struct hydnsd_ring_counts){ .queries = was_read };
}

/* -- the program and the plugin ------------------------------------------------------------------------------ */
static struct hydnsd d;

static void set_word(uint64_t key, bool on)
{
	struct hydns_under_way_bucket *b = (struct hydns_under_way_bucket *)(page + sizeof(struct hydns_resolver_page)) +
					   HYDNS_UNDER_WAY_BUCKET(key);
	struct hydns_under_way *e = b->entry;

	while (e->word && e->word >> 32 != key >> 32)
		e++;
	assert_true(e < b->entry + HYDNS_UNDER_WAY_ENTRIES);
	e->word = on ? HYDNS_UNDER_WAY_WORD(key, 7) : 0;
}

/* The program parks a query for a name. */
static struct parked_query *park(const char *name, uint64_t key)
{
	struct parked_query *q = &queue[queued++];
	struct hydnsd_parked_asked asked;

	assert_in_range(queued, 1, QUEUE_MOST);
	*q = parked_query(name, key, now_ns, false);
	assert_true(hydnsd_parked_read(&q->record, &asked));
	q->record.rule_key = hydns_key_hash(asked.name, q->record.name_len, htons(1), 0, ME, store.geometry.seed);
	shared[ME].waiting++;
	return q;
}

static void allow(uint32_t park_ms, uint32_t most)
{
	d.resolver[ME].hello = (struct hydns_hello){
		.park_ms = park_ms, .pending_max = most, .pending_per_question = 7, .seed = { 8, 9 },
	};
	hydnsd_parking_allow(&d, ME);
}

static int start(void **state)
{
	char why[HYDNS_WHY];

	open_store(state);
	memset(page, 0, sizeof(page));
	((struct hydns_resolver_page *)page)->epoch = 1; /* that of the tests' offers */
	memset(shared, 0, sizeof(shared));
	memset(&kernel, 0, sizeof(kernel));
	queued = 0;
	forwarded = 0;
	is_paused = reads_nothing = false;
	was_read = 0;
	now_ns = NOW_NS;
	ring_fd = eventfd(0, 0);
	d = (struct hydnsd){ .loop = hydnsd_loop_new(), .rules = store.rules, .options = { .pending_max = 3000 } };
	if (hydnsd_parking_start(&d, why, sizeof(why)))
		return -1;
	allow(1000, 100000);
	return 0;
}

/* Each test leaves as many waiting as are in hydnsd; and the end replays all. */
static int finish(void **state)
{
	bool same = d.parking ? shared[ME].waiting == hydnsd_parked_count(d.parking->parked) + queued : true;

	hydnsd_parking_stop(&d);
	hydnsd_loop_free(d.loop);
	close(ring_fd);
	close_store(state);
	return same && !shared[ME].waiting ? 0 : -1;
}

static const struct hydnsd_parking_counts *counts(void)
{
	return &d.parking->of[ME].counts;
}

/* A round, ms later. */
static int round_after(uint64_t ms)
{
	now_ns += ms * MS;
	return hydnsd_parking_work(&d);
}

/* -- tests ------------------------------------------------------------------------------------------------------- */
static void the_program_is_told_the_limits(void **state)
{
	(void)state;
	assert_int_equal(shared[ME].max, 3000);        /* the option */
	assert_true(exists);
	assert_int_equal(shared[ME].resume, 1500);
	assert_int_equal(shared[ME].per_question, 7);
	assert_int_equal(shared[ME].seed[0], 8);
	assert_int_equal(shared[ME].seed[1], 9);
	assert_int_equal(shared[ME].heartbeat_ns, now_ns);
	assert_int_equal(d.parking->of[ME].park_ms, 1000);
	allow(UINT32_MAX, 20);
	assert_int_equal(shared[ME].max, 20);          /* HELLO */
	assert_int_equal(d.parking->of[ME].park_ms, HYDNS_UNDER_WAY_MS);
	d.options.pending_max = 1000000;
	allow(1000, 1000000);
	assert_int_equal(shared[ME].max, HYDNS_PENDING_MOST);
	now_ns += 50 * MS;
	hydnsd_parking_beat(&d);
	assert_int_equal(shared[ME].heartbeat_ns, now_ns);
	assert_int_equal(shared[0].heartbeat_ns, 0);
	allow(0, 1000);
	assert_int_equal(shared[ME].max, 0);
	assert_false(exists);
	d.options.pending_max = 0;
	allow(1000, 1000);
	assert_int_equal(shared[ME].max, 0);
}

static void a_rule_answers_what_waited(void **state)
{
	const uint64_t key = PARKED_KEY(1);

	(void)state;
	set_word(key, true);
	for (unsigned i = 0; i < 200; i++) {
		struct parked_query *q = park("wWw.example.", key);

		q->record.rx_queue = i % 2;
		q->record.ifindex = 5;
	}
	assert_int_equal(round_after(1), 10);
	assert_int_equal(round_after(30), 10);
	assert_int_equal(kernel.calls, 0);
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	park("www.example.", key);     /* is still on its way when the resolution ends */
	hydnsd_parking_over(&d, ME, key);
	assert_int_equal(hydnsd_parking_work(&d), -1); /* the plugin clears the word a moment later */
	assert_int_equal(kernel.frames, 201);
	assert_int_equal(kernel.calls, 5);             /* 1 on interface 2, 2 for each queue of interface 5 */
	assert_int_equal(kernel.first_ifindex, 2);
	assert_int_equal(kernel.last_queue, 1);
	assert_int_equal(kernel.sizes[1], HYDNS_REPLAYS);
	assert_int_equal(counts()->answered, 201);
	assert_int_equal(counts()->passed, 0);
	assert_int_equal(shared[ME].waiting, 0);
}

/* Without a word on the page; and what comes behind its end is due at once. */
static void a_forwarded_query_waits_for_its_answer(void **state)
{
	const uint64_t key = PARKED_KEY(1);

	(void)state;
	forwarded = key;
	hydnsd_parking_take(&d, &park("www.example.", key)->record);
	queued--;                      /* it came another way */
	park("WWW.example.", key);
	round_after(1);
	round_after(100);
	assert_int_equal(kernel.frames, 0);
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	forwarded = 0;
	hydnsd_parking_ended(&d, ME, key);
	park("www.example.", key);
	hydnsd_parking_work(&d);
	assert_int_equal(kernel.frames, 3);
	assert_int_equal(counts()->answered, 3);
}

/* A query whose upstream server is silent comes in again alone, with the servers that were asked and its own age. */
static void a_query_goes_to_another_server(void **state)
{
	const uint64_t key = PARKED_KEY(1), at_ns = now_ns;

	(void)state;
	forwarded = key;
	park("www.example.", key);
	round_after(1);
	park("www.example.", key);
	round_after(400);
	kernel.forwards = true;
	assert_true(hydnsd_replay_forward(&d, ME, key, 5));
	assert_int_equal(kernel.frames, 1);
	assert_int_equal(replays.frame[0].tried, 5);
	assert_int_equal(replays.frame[0].at_ns, at_ns);
	assert_int_equal(counts()->replayed, 0);       /* the program parks it again */
	assert_int_equal(shared[ME].waiting, 1);
	kernel.forwards = false;
	kernel.narrow = true;          /* a rule answers the other one, but the link is full */
	assert_true(hydnsd_replay_forward(&d, ME, key, 5));
	assert_int_equal(counts()->refused, 1);
	assert_int_equal(counts()->lost, 0);
	assert_int_equal(shared[ME].waiting, 1);
	assert_false(hydnsd_replay_forward(&d, ME, key, 5));
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	kernel.narrow = false;
	round_after(1);
	assert_int_equal(counts()->answered, 1);
	assert_int_equal(replays.frame[0].tried, 0);
	park("www.example.", key)->record.ifindex = 6; /* the program is not attached to it */
	round_after(1);
	assert_true(hydnsd_replay_forward(&d, ME, key, 5));
	assert_int_equal(counts()->lost, 1);
	forwarded = 0;
}

static void what_no_rule_answers_passes_slowly(void **state)
{
	(void)state;
	kernel.pass = true;
	for (unsigned i = 0; i < 100; i++)
		park(i % 2 ? "www.example." : "n.example.", PARKED_KEY(1 + i % 2)); /* no word: due at once */
	assert_int_equal(round_after(1), 1);
	for (unsigned ms = 1; ms <= 3; ms++, round_after(1)) {
		assert_int_equal(kernel.frames, ms * PASS_PER_MS);
		hydnsd_parking_work(&d); /* another round in the same millisecond */
		assert_int_equal(kernel.frames, ms * PASS_PER_MS);
	}
	kernel.pass = false;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	assert_int_equal(round_after(1), 0);           /* half of the rest has left the line */
	while (hydnsd_parking_work(&d) == 0)
		;
	assert_int_equal(counts()->passed, 4 * PASS_PER_MS);
	assert_true(counts()->answered >= 14);
	for (unsigned ms = 0; ms < 10; ms++)
		round_after(1);
	assert_int_equal(kernel.frames, 100);
	assert_int_equal(hydnsd_parking_work(&d), -1);
}

/* Each is answered once, however often the link has had no room for it. */
static void what_a_link_refuses_comes_again(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	for (unsigned i = 0; i < 500; i++)
		park("www.example.", PARKED_KEY(1));
	kernel.narrow = true;
	kernel.room = 100;
	assert_int_equal(round_after(1), 1);
	assert_int_equal(counts()->answered, 100);
	assert_true(counts()->refused > 0 && counts()->refused < HYDNS_REPLAYS);
	assert_int_equal(shared[ME].waiting, 400);
	assert_int_equal(hydnsd_parking_work(&d), 1);  /* not within the millisecond */
	assert_int_equal(counts()->answered, 100);
	for (unsigned ms = 0; ms < 5; ms++) {
		kernel.room = 100;
		round_after(1);
	}
	assert_int_equal(counts()->answered, 500);
	assert_int_equal(counts()->lost, 0);
	assert_int_equal(shared[ME].waiting, 0);
	assert_int_equal(hydnsd_parking_work(&d), -1);
}

/* Of answers that leave by two links, each call takes those of one. */
static void answers_by_two_links(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	for (unsigned i = 0; i < 20; i++)
		park("www.example.", PARKED_KEY(1))->octet[0] = (uint8_t)i;
	kernel.links = kernel.narrow = true;
	kernel.room = 7;
	round_after(1);
	assert_int_equal(kernel.calls, 2);
	assert_int_equal(kernel.sizes[0], 20);
	assert_int_equal(kernel.sizes[1], 10);
	assert_int_equal(counts()->answered, 7);
	assert_int_equal(counts()->refused, 13);
	kernel.room = 100;
	round_after(1);
	assert_int_equal(counts()->answered, 20);
	assert_int_equal(counts()->replayed, 33);
	assert_int_equal(counts()->passed, 0);
	assert_int_equal(counts()->lost, 0);
	assert_int_equal(shared[ME].waiting, 0);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(kernel.answered[i], 1);
}

static void a_link_that_takes_nothing_loses_them_in_the_end(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	for (unsigned i = 0; i < 10; i++)
		park("www.example.", PARKED_KEY(1));
	kernel.narrow = true;
	for (unsigned ms = 0; ms < 1100; ms++)
		round_after(1);
	assert_int_equal(counts()->lost, 10);
	assert_int_equal(counts()->answered, 0);
	assert_int_equal(shared[ME].waiting, 0);
}

/* The socket of a resolver that has no processor holds some 45 frames. */
static void a_resolver_that_reads_nothing_gets_no_more(void **state)
{
	(void)state;
	kernel.pass = true;
	round_after(1);
	reads_nothing = true;
	for (unsigned i = 0; i < 100; i++)
		park("n.example.", PARKED_KEY(1));
	for (unsigned ms = 0; ms < 20; ms++)
		round_after(1);
	assert_int_equal(kernel.frames, 32);
	reads_nothing = false;
	round_after(1);
	assert_int_equal(kernel.frames, 32 + PASS_PER_MS);
	reads_nothing = true;          /* nor does it count */
	for (unsigned ms = 0; ms < 20; ms++)
		round_after(1);
	assert_true(kernel.frames <= 80);
	for (unsigned ms = 0; ms < 120; ms++)
		round_after(1);
	assert_int_equal(kernel.frames, 100);
}

static void count_due(const struct hydnsd_parked_question *q, void *arg)
{
	uint32_t *of_second = arg;

	if (q->key == PARKED_KEY(2))
		*of_second += q->due;
}

/* Each question soon has one that passes, since that makes its rule. */
static void questions_pass_in_turns(void **state)
{
	uint32_t left = 0;

	(void)state;
	kernel.pass = true;
	for (unsigned i = 0; i < 200; i++)
		park("a.example.", PARKED_KEY(1));
	for (unsigned i = 0; i < 2; i++)
		park("b.example.", PARKED_KEY(2));
	round_after(1);
	assert_int_equal(kernel.frames, PASS_PER_MS);
	hydnsd_parked_each(d.parking->parked, count_due, &left);
	assert_int_equal(left, 0);
}

static void a_long_rest_saves_nothing_up(void **state)
{
	(void)state;
	kernel.pass = true;
	round_after(60000);
	for (unsigned i = 0; i < 100; i++)
		park("n.example.", PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.frames, PASS_PER_MS);
}

/* A rule that answers none of them, as for clients that the access list leaves to the resolver. */
static void what_passes_beside_a_rule_is_a_debt(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address("n.example.", NULL, 10), HYDNSD_ACCEPTED);
	kernel.pass = true;
	for (unsigned i = 0; i < 100; i++)
		park("www.example.", PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.frames, 100);
	park("n.example.", PARKED_KEY(2));
	assert_int_equal(round_after(1), 1);
	assert_int_equal(kernel.frames, 100);
	round_after(1);
	assert_int_equal(kernel.frames, 101);
}

static void a_paused_program_answers_nothing(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	is_paused = kernel.pass = true;
	for (unsigned i = 0; i < 100; i++)
		park("www.example.", PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.frames, PASS_PER_MS);
}

static void rules_of_another_epoch_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	((struct hydns_resolver_page *)page)->epoch = 5;
	kernel.pass = true;
	for (unsigned i = 0; i < 100; i++)
		park("www.example.", PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.frames, PASS_PER_MS);
}

static void a_round_has_an_end(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	for (unsigned i = 0; i < 3000; i++)
		park("www.example.", PARKED_KEY(1));
	assert_int_equal(round_after(1), 0);
	assert_int_equal(kernel.frames, 2048);
	assert_int_equal(hydnsd_parking_work(&d), -1);
	assert_int_equal(kernel.frames, 3000);
}

static void nothing_waits_longer_than_it_may(void **state)
{
	(void)state;
	kernel.pass = true;
	set_word(PARKED_KEY(1), true);
	park("www.example.", PARKED_KEY(1));
	round_after(500);
	park("www.example.", PARKED_KEY(1));
	round_after(500);
	assert_int_equal(kernel.frames, 0);
	round_after(10);
	assert_int_equal(kernel.frames, 1);
	assert_int_equal(counts()->timed_out, 1);
	round_after(500);
	assert_int_equal(kernel.frames, 2);
	assert_int_equal(counts()->timed_out, 2);
}

/* A resolver that drops its reply to such a query does not get it; but it may have read it 50 ms after it came. */
static void what_nobody_would_answer_is_dropped(void **state)
{
	(void)state;
	kernel.pass = true;
	d.resolver[ME].hello.flags = HYDNS_RESOLVER_DISCARDS;
	hydnsd_parking_allow(&d, ME);
	set_word(PARKED_KEY(1), true);
	park("www.example.", PARKED_KEY(1));
	round_after(500);
	park("www.example.", PARKED_KEY(1));
	round_after(550);
	assert_int_equal(counts()->discarded, 0);
	round_after(10);
	assert_int_equal(counts()->timed_out, 1);
	assert_int_equal(counts()->discarded, 1);
	assert_int_equal(shared[ME].waiting, 1);
	hydnsd_parking_over(&d, ME, PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.frames, 1);
	assert_int_equal(counts()->discarded, 1);
	allow(1000, 100000);           /* HELLO of one that does not */
	assert_false(d.parking->of[ME].discards);
	d.resolver[ME].hello.flags = HYDNS_RESOLVER_DISCARDS;
	d.resolver[ME].hello.park_ms = HYDNS_UNDER_WAY_MS + 1; /* the end of a word is not its end */
	hydnsd_parking_allow(&d, ME);
	assert_false(d.parking->of[ME].discards);
}

static void a_word_that_goes_ends_the_wait(void **state)
{
	(void)state;
	set_word(PARKED_KEY(1), true);
	set_word(PARKED_KEY(17), true); /* in the same bucket */
	park("www.example.", PARKED_KEY(1));
	round_after(10);
	set_word(PARKED_KEY(1), false);
	round_after(10);
	round_after(19);
	assert_int_equal(kernel.frames, 0);
	round_after(10);
	assert_int_equal(kernel.frames, 1);
	assert_int_equal(counts()->timed_out, 0);
}

/* A free entry of the page is no word of theirs. */
static void keys_may_have_no_upper_half(void **state)
{
	(void)state;
	kernel.pass = true;
	park("www.example.", 5);
	round_after(1);
	assert_int_equal(kernel.frames, 1);
}

/* RESET, or the plugin's end. */
static void without_a_plugin_nothing_waits(void **state)
{
	(void)state;
	set_word(PARKED_KEY(1), true);
	park("www.example.", PARKED_KEY(1));
	round_after(1);
	park("www.example.", PARKED_KEY(1));
	hydnsd_parking_forbid(&d, ME);
	assert_int_equal(shared[ME].max, 0);
	round_after(1);
	assert_int_equal(kernel.frames, 2);
	assert_int_equal(counts()->timed_out, 0);
}

#define PROCESS 77

/* Parks one for a question under way, and says goodbye. */
static void leave_one(void)
{
	set_word(PARKED_KEY(1), true);
	park("www.example.", PARKED_KEY(1));
	round_after(1);
	hydnsd_parking_hold(&d, ME, PROCESS);
	set_word(PARKED_KEY(1), false);
	assert_int_equal(shared[ME].max, 0);
}

static void a_goodbye_holds_them_until_the_process_is_ready(void **state)
{
	(void)state;
	leave_one();
	park("www.example.", PARKED_KEY(1)); /* by a program that still ran */
	hydnsd_parking_begin(&d, ME);
	round_after(900);
	assert_int_equal(kernel.frames, 0);
	d.resolver[ME + 1].hello = (struct hydns_hello){ .pid = PROCESS + 1 };
	hydnsd_parking_allow(&d, ME + 1);
	round_after(1);
	assert_int_equal(kernel.frames, 0);
	d.resolver[ME + 1].hello.pid = PROCESS;
	hydnsd_parking_allow(&d, ME + 1);
	round_after(1);
	assert_int_equal(kernel.frames, 2);
}

static void another_resolver_at_the_index_ends_the_hold(void **state)
{
	(void)state;
	leave_one();
	allow(2000, 3000);
	round_after(1);
	assert_int_equal(kernel.frames, 1);
}

static void a_hold_has_an_end(void **state)
{
	(void)state;
	leave_one();
	round_after(HYDNSD_PARKING_HELD_MS - 1);
	assert_int_equal(kernel.frames, 0);
	round_after(1);
	assert_int_equal(kernel.frames, 1);
}

/* named's new plugin is ready before the former says goodbye. */
static void a_process_that_is_ready_needs_no_hold(void **state)
{
	(void)state;
	d.resolver[ME + 1].hello = d.resolver[ME].hello;
	d.resolver[ME + 1].hello.pid = PROCESS;
	hydnsd_parking_allow(&d, ME + 1);
	leave_one();
	round_after(1);
	assert_int_equal(kernel.frames, 1);
}

static void an_interface_that_is_left_ends_the_hold(void **state)
{
	(void)state;
	leave_one();
	hydnsd_parking_leave(&d);
	assert_int_equal(kernel.frames, 1);
}

static void the_end_ends_the_hold(void **state)
{
	(void)state;
	leave_one();
	hydnsd_parking_stop(&d);
	assert_int_equal(kernel.frames, 1);
}

static void beyond_the_bound_queries_pass_at_once(void **state)
{
	(void)state;
	set_word(PARKED_KEY(1), true);
	for (unsigned i = 0; i < 3005; i++)
		park("www.example.", PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.frames, 5);
	assert_int_equal(hydnsd_parked_count(d.parking->parked), 3000);
}

static void what_was_not_taken_is_tried_once_more(void **state)
{
	(void)state;
	assert_int_equal(admit_address("www.example.", NULL, 10), HYDNSD_ACCEPTED);
	kernel.take = 4;
	for (unsigned i = 0; i < 10; i++)
		park("www.example.", PARKED_KEY(1))->octet[0] = (uint8_t)i;
	round_after(1);
	assert_int_equal(kernel.calls, 2);
	assert_int_equal(kernel.sizes[0], 10);
	assert_int_equal(kernel.sizes[1], 6);
	assert_int_equal(counts()->replayed, 8);
	assert_int_equal(counts()->lost, 2);
	kernel.take = 0;
	kernel.error = -EBUSY;
	park("www.example.", PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.calls, 4);
	assert_int_equal(counts()->lost, 2);
	kernel.error = -ENODEV;        /* the interface has gone */
	park("www.example.", PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.calls, 5);
	assert_int_equal(counts()->lost, 3);
	assert_int_equal(counts()->replayed, 9);
	assert_int_equal(shared[ME].waiting, 0);
	park("www.example.", PARKED_KEY(1))->record.ifindex = 6; /* the program is not attached to it */
	round_after(1);
	assert_int_equal(kernel.calls, 5);
	assert_int_equal(counts()->lost, 4);
	assert_int_equal(shared[ME].waiting, 0);
}

static void an_interface_that_is_left_keeps_none_back(void **state)
{
	(void)state;
	kernel.pass = true;
	set_word(PARKED_KEY(1), true);
	for (unsigned i = 0; i < 2500; i++)
		park("www.example.", PARKED_KEY(1));
	round_after(1);
	park("www.example.", PARKED_KEY(1));
	hydnsd_parking_leave(&d);
	assert_int_equal(kernel.frames, 2501);
	for (unsigned i = 0; i < 100; i++)
		park("n.example.", PARKED_KEY(2));
	round_after(1);
	assert_int_equal(kernel.frames, 2501 + PASS_PER_MS); /* slowly again */
}

static void frames_come_back_whole(void **state)
{
	struct parked_query *q = park("www.example.", PARKED_KEY(1));
	struct hydns_parked whole = q->record;
	uint8_t *udp = q->octet + q->record.dns_off - 8;
	uint16_t sum = parked_pseudo_sum(udp - 8, 8, udp[5]);
	uint8_t octets[HYDNS_PARKED_FRAME];

	(void)state;
	memcpy(octets, q->octet, sizeof(octets));
	udp[6] = (uint8_t)(sum >> 8);
	udp[7] = (uint8_t)sum;
	d.with.partial_checksum = true;
	round_after(1);
	assert_int_equal(replays.frame[0].len, whole.frame_len);
	assert_memory_equal(kernel.octets, octets, whole.frame_len);
}

static void broken_records_are_counted(void **state)
{
	(void)state;
	park("www.example.", PARKED_KEY(1))->record.dns_off = HYDNS_PARKED_FRAME;
	park("www.example.", PARKED_KEY(1))->record.frame_len = HYDNS_PARKED_FRAME + 1;
	round_after(1);
	assert_int_equal(kernel.calls, 0);
	assert_int_equal(counts()->lost, 2);
	park("www.example.", PARKED_KEY(1))->record.resolver = HYDNS_RESOLVERS;
	shared[ME].waiting--;
	round_after(1);
	assert_int_equal(counts()->lost, 2);
}

static void an_end_that_nobody_waits_for_changes_nothing(void **state)
{
	(void)state;
	set_word(PARKED_KEY(1), true);
	park("www.example.", PARKED_KEY(1));
	for (uint64_t i = 2; i < 10000; i++)
		hydnsd_parking_over(&d, ME, i * 0x9e3779b97f4a7c15ULL);
	hydnsd_parking_over(&d, ME + 1, PARKED_KEY(1));
	round_after(1);
	assert_int_equal(kernel.calls, 0);
	assert_int_equal(hydnsd_parked_questions(d.parking->parked), 1);
}

static void counts_begin_with_the_resolver(void **state)
{
	struct hydns_parking_count c;

	(void)state;
	park("www.example.", PARKED_KEY(1));
	round_after(1);
	hydnsd_parking_program_counts(&d, ME, &c);
	assert_int_equal(c.parked, 101);
	hydnsd_parking_begin(&d, ME);
	hydnsd_parking_program_counts(&d, ME, &c);
	assert_int_equal(c.parked, 0);
	assert_int_equal(counts()->replayed, 0);
	assert_int_equal(shared[ME].max, 0);
}

static void a_new_hydnsd_replays_what_the_former_left(void **state)
{
	char why[HYDNS_WHY];

	(void)state;
	hydnsd_parking_stop(&d);
	kernel.frames = 0;
	set_word(PARKED_KEY(1), true);
	park("www.example.", PARKED_KEY(1));
	park("www.example.", PARKED_KEY(1));
	shared[ME].max = 77;
	shared[ME].waiting = 50;       /* with those that the former one had in its memory */
	shared[3].waiting = 5;
	assert_int_equal(hydnsd_parking_start(&d, why, sizeof(why)), 0);
	assert_int_equal(shared[ME].max, 0);
	assert_int_equal(shared[ME].waiting, 2);
	assert_int_equal(shared[3].waiting, 0);
	round_after(1);
	assert_int_equal(kernel.frames, 2);
}

static void the_end_replays_all(void **state)
{
	uint64_t begun = now_ns;

	(void)state;
	kernel.pass = true;
	set_word(PARKED_KEY(1), true);
	for (unsigned i = 0; i < 100; i++)
		park("www.example.", PARKED_KEY(1));
	round_after(1);
	park("www.example.", PARKED_KEY(1));
	hydnsd_parking_stop(&d);
	assert_int_equal(kernel.frames, 101);
	assert_in_range(now_ns - begun, 6 * MS, 20 * MS); /* slowly */
	assert_int_equal(shared[ME].waiting, 0);
	assert_int_equal(shared[ME].max, 0);
	assert_null(d.parking);
}

static void the_end_takes_a_second_at_most(void **state)
{
	uint64_t begun = now_ns;

	(void)state;
	d.options.pending_max = 60000;
	hydnsd_parked_free(d.parking->parked);
	d.parking->parked = hydnsd_parked_new(60000, 1);
	kernel.pass = true;
	for (unsigned n = 0; n < 15; n++) {
		for (unsigned i = 0; i < 4000; i++)
			park("www.example.", PARKED_KEY(1));
		hydnsd_parking_over(&d, ME, 0);
	}
	hydnsd_parking_stop(&d);
	assert_int_equal(kernel.frames, 60000);
	assert_in_range(now_ns - begun, 800 * MS, 1000 * MS);
}

#define PARKING(f) cmocka_unit_test_setup_teardown(f, start, finish)
int main(void)
{
	const struct CMUnitTest tests[] = {
		PARKING(the_program_is_told_the_limits),
		PARKING(a_rule_answers_what_waited), PARKING(a_forwarded_query_waits_for_its_answer),
		PARKING(a_query_goes_to_another_server), PARKING(what_no_rule_answers_passes_slowly),
		PARKING(a_resolver_that_reads_nothing_gets_no_more), PARKING(questions_pass_in_turns),
		PARKING(what_a_link_refuses_comes_again), PARKING(a_link_that_takes_nothing_loses_them_in_the_end),
		PARKING(a_long_rest_saves_nothing_up),
		PARKING(what_passes_beside_a_rule_is_a_debt),
		PARKING(a_paused_program_answers_nothing),
		PARKING(rules_of_another_epoch_do_not_count),
		PARKING(a_round_has_an_end),
		PARKING(nothing_waits_longer_than_it_may), PARKING(what_nobody_would_answer_is_dropped),
		PARKING(a_word_that_goes_ends_the_wait),
		PARKING(keys_may_have_no_upper_half),
		PARKING(without_a_plugin_nothing_waits),
		PARKING(a_goodbye_holds_them_until_the_process_is_ready), PARKING(another_resolver_at_the_index_ends_the_hold),
		PARKING(a_hold_has_an_end), PARKING(a_process_that_is_ready_needs_no_hold),
		PARKING(an_interface_that_is_left_ends_the_hold), PARKING(the_end_ends_the_hold),
		PARKING(beyond_the_bound_queries_pass_at_once),
		PARKING(what_was_not_taken_is_tried_once_more), PARKING(answers_by_two_links),
		PARKING(an_interface_that_is_left_keeps_none_back),
		PARKING(frames_come_back_whole),
		PARKING(broken_records_are_counted),
		PARKING(an_end_that_nobody_waits_for_changes_nothing),
		PARKING(counts_begin_with_the_resolver),
		PARKING(a_new_hydnsd_replays_what_the_former_left),
		PARKING(the_end_replays_all),
		PARKING(the_end_takes_a_second_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
