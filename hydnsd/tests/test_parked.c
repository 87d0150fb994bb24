/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The store of parked queries, on plain memory, and unfinished checksums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/parking/checksum.h"
#include "hydnsd/parking/parked.h"
#include "hydnsd/tests/parked.h"

#define MOST 1000
#define MS   HYDNS_NS_PER_MS

static struct hydnsd_parked *parked;
static size_t bytes;                   /* of an empty store */

static int open_parked(void **state)
{
	(void)state;
	parked = hydnsd_parked_new(MOST, 0x5ec3e7);
	bytes = parked ? hydnsd_parked_bytes(parked) : 0;
	return parked ? 0 : -1;
}

/* What a test has taken out leaves nothing behind. */
static int close_parked(void **state)
{
	bool clean = hydnsd_parked_count(parked) || hydnsd_parked_bytes(parked) == bytes;

	(void)state;
	hydnsd_parked_free(parked);
	return clean ? 0 : -1;
}

static bool put(uint64_t key, uint64_t at_ns, bool due)
{
	const struct parked_query q = parked_query("www.example.", key, at_ns, false);

	return hydnsd_parked_put(parked, &q.record, due);
}

/* Takes all due frames of resolver 1 and returns the times at which they came, 0 at the end. */
static const uint64_t *take_all(void)
{
	static uint64_t at[MOST + 1];
	struct hydnsd_parked_question *q;
	uint32_t n = 0;

	for (enum hydnsd_due list = HYDNSD_DUE_FRESH; list <= HYDNSD_DUE_PACED; list++)
		while ((q = hydnsd_parked_first(parked, 1, list))) {
			struct hydnsd_parked_frame *f[7];
			uint32_t got = hydnsd_parked_take(parked, q, f, 7);

			assert_in_range(got, 1, 7);
			for (uint32_t i = 0; i < got; i++) {
				at[n++] = f[i]->record.at_ns;
				hydnsd_parked_drop(parked, f[i]);
			}
		}
	at[n] = 0;
	return at;
}

static void expect_taken(const uint64_t *expected)
{
	const uint64_t *at = take_all();

	do
		assert_int_equal(*at, *expected);
	while (*at++ && *expected++);
}
#define EXPECT_TAKEN(...) expect_taken((const uint64_t[]){ __VA_ARGS__, 0 })
#define EXPECT_NONE()     expect_taken((const uint64_t[]){ 0 })

static void a_question_is_due_when_it_is_over(void **state)
{
	(void)state;
	for (uint64_t at = 1; at <= 20; at++)
		assert_true(put(PARKED_KEY(1 + at % 2), at, false));
	EXPECT_NONE();
	hydnsd_parked_over(parked, 1, PARKED_KEY(9));
	hydnsd_parked_over(parked, 2, PARKED_KEY(1));
	EXPECT_NONE();
	assert_int_equal(hydnsd_parked_waiting(parked, 1), 20);
	hydnsd_parked_over(parked, 1, PARKED_KEY(1));
	assert_int_equal(hydnsd_parked_waiting(parked, 1), 10);
	EXPECT_TAKEN(2, 4, 6, 8, 10, 12, 14, 16, 18, 20);
	assert_int_equal(hydnsd_parked_count(parked), 10);
	hydnsd_parked_over_all(parked, 1);
	EXPECT_TAKEN(1, 3, 5, 7, 9, 11, 13, 15, 17, 19);
	assert_int_equal(hydnsd_parked_count(parked), 0);
	assert_int_equal(hydnsd_parked_questions(parked), 0);
}

static void frames_time_out_one_by_one(void **state)
{
	(void)state;
	for (uint64_t at = 10; at < 20; at++)
		put(PARKED_KEY(at % 3), at, false);
	assert_int_equal(hydnsd_parked_time_out(parked, 1, 10), 0);
	assert_int_equal(hydnsd_parked_time_out(parked, 0, 100), 0);
	assert_int_equal(hydnsd_parked_time_out(parked, 1, 12), 2);
	assert_int_equal(hydnsd_parked_waiting(parked, 1), 8);
	EXPECT_TAKEN(10, 11);
	hydnsd_parked_over(parked, 1, PARKED_KEY(0));
	EXPECT_TAKEN(12, 15, 18);
	assert_int_equal(hydnsd_parked_time_out(parked, 1, 17), 3);
	EXPECT_TAKEN(13, 16, 14);
	hydnsd_parked_over_all(parked, 1);
	EXPECT_TAKEN(17, 19);
}

static uint64_t dropped_at[16];
static unsigned dropped;

static void note_dropped(const struct hydns_parked *record, void *arg)
{
	assert_ptr_equal(arg, dropped_at);
	dropped_at[dropped++ % 16] = record->at_ns;
}

/* Each that is dropped is seen before, the oldest first. */
static uint32_t discard(uint32_t resolver, uint64_t before_ns)
{
	uint32_t n;

	dropped = 0;
	n = hydnsd_parked_discard(parked, resolver, before_ns, note_dropped, dropped_at);
	assert_int_equal(dropped, n);
	for (unsigned i = 1; i < n; i++)
		assert_true(dropped_at[i] > dropped_at[i - 1]);
	return n;
}

/* Oldest first, of one resolver; what is due stays. */
static void frames_are_discarded_one_by_one(void **state)
{
	(void)state;
	for (uint64_t at = 10; at < 20; at++)
		put(PARKED_KEY(at % 3), at, at == 13);
	assert_int_equal(discard(1, 10), 0);
	assert_int_equal(discard(0, 100), 0);
	assert_int_equal(discard(1, 15), 4);
	assert_int_equal(hydnsd_parked_waiting(parked, 1), 5);
	assert_int_equal(hydnsd_parked_count(parked), 6);
	EXPECT_TAKEN(13);
	hydnsd_parked_over(parked, 1, PARKED_KEY(0));
	EXPECT_TAKEN(15, 18);
	assert_int_equal(discard(1, 100), 3);
	assert_int_equal(hydnsd_parked_count(parked), 0);
	assert_int_equal(hydnsd_parked_questions(parked), 0);
}

/* One that was forwarded again is older than those that wait beside it: it is the first that is pulled, times out and leaves. */
static void a_frame_that_comes_again_keeps_its_age(void **state)
{
	struct hydnsd_parked_frame *f;

	(void)state;
	for (uint64_t at = 1; at <= 3; at++)
		put(PARKED_KEY(1), at, false);
	put(PARKED_KEY(2), 4, false);
	for (unsigned i = 0; i < 2; i++) {
		f = hydnsd_parked_pull(parked, 1, PARKED_KEY(1));
		assert_non_null(f);
		assert_int_equal(f->record.at_ns, 1);
		hydnsd_parked_drop(parked, f);
		put(PARKED_KEY(1), 1, false);
	}
	assert_int_equal(hydnsd_parked_time_out(parked, 1, 2), 1);
	EXPECT_TAKEN(1);
	put(PARKED_KEY(1), 1, false);
	assert_int_equal(discard(1, 2), 1);
	hydnsd_parked_over(parked, 1, PARKED_KEY(1));
	EXPECT_TAKEN(2, 3);
	assert_null(hydnsd_parked_pull(parked, 1, PARKED_KEY(1)));
	f = hydnsd_parked_pull(parked, 1, PARKED_KEY(2));
	assert_null(hydnsd_parked_pull(parked, 1, PARKED_KEY(2)));
	assert_true(hydnsd_parked_again(parked, f));
	EXPECT_TAKEN(4);
	assert_int_equal(hydnsd_parked_questions(parked), 0);
}

/* Those that come later wait for the next resolution, also while the former ones are still there. */
static void a_question_can_be_under_way_again(void **state)
{
	struct hydnsd_parked_frame *f;

	(void)state;
	put(PARKED_KEY(1), 1, false);
	put(PARKED_KEY(1), 2, false);
	hydnsd_parked_over(parked, 1, PARKED_KEY(1));
	assert_int_equal(hydnsd_parked_take(parked, hydnsd_parked_first(parked, 1, HYDNSD_DUE_FRESH), &f, 1), 1);
	put(PARKED_KEY(1), 3, false);
	hydnsd_parked_drop(parked, f);
	EXPECT_TAKEN(2);
	assert_int_equal(hydnsd_parked_waiting(parked, 1), 1);
	put(PARKED_KEY(1), 4, true);
	EXPECT_TAKEN(4);
	hydnsd_parked_over(parked, 1, PARKED_KEY(1));
	EXPECT_TAKEN(3);
}

static void there_is_a_bound(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < MOST; i++)
		assert_true(put(PARKED_KEY(i), 1, i % 2));
	assert_false(put(PARKED_KEY(1), 1, false));
	assert_false(put(PARKED_KEY(MOST), 1, true));
	assert_int_equal(hydnsd_parked_count(parked), MOST);
	assert_int_equal(hydnsd_parked_of(parked, 1), MOST);
	assert_int_equal(hydnsd_parked_of(parked, 0), 0);
	assert_int_equal(hydnsd_parked_questions(parked), MOST);
	take_all();
	assert_int_equal(hydnsd_parked_count(parked), MOST / 2);
	assert_true(put(PARKED_KEY(MOST), 1, false));
	hydnsd_parked_over_all(parked, 1);
	take_all();
	assert_int_equal(hydnsd_parked_count(parked), 0);
}

/* -- questions whose word has gone ------------------------------------------------------------------------- */
static uint64_t alive;                 /* key of the question that is under way */
static uint32_t looks;

static bool under_way(void *arg, uint32_t resolver, uint64_t key)
{
	(void)arg;
	looks++;
	assert_int_equal(resolver, 1);
	return key == alive;
}

static void look(uint64_t ms, uint32_t budget)
{
	hydnsd_parked_look(parked, ms * MS, budget, under_way, NULL);
}

static void a_lost_end_is_noticed(void **state)
{
	(void)state;
	alive = PARKED_KEY(1);
	put(PARKED_KEY(1), 1, false);
	put(PARKED_KEY(2), 2, false);
	look(100, 9);
	look(119, 9);
	EXPECT_NONE();
	look(120, 9);
	EXPECT_TAKEN(2);
	alive = 0;
	look(130, 9);
	alive = PARKED_KEY(1);
	look(140, 9);
	alive = 0;
	look(150, 9);
	look(169, 9);
	EXPECT_NONE();
	look(170, 9);
	EXPECT_TAKEN(1);
}

/* A look costs no more than its budget, and each question has its turn. */
static void looks_are_bounded(void **state)
{
	(void)state;
	alive = 0;
	for (uint32_t i = 1; i <= 100; i++)
		put(PARKED_KEY(i), i, false);
	looks = 0;
	for (unsigned round = 1; round <= 10; round++) {
		look(100, 10);
		assert_int_equal(looks, 10 * round);
	}
	look(200, 99);
	assert_int_equal(hydnsd_parked_waiting(parked, 1), 1);
	hydnsd_parked_over_all(parked, 1);
	assert_int_equal(take_all()[100], 0);
	look(300, 10);
	assert_int_equal(looks, 199);
}

/* -- the line of those that pass ---------------------------------------------------------------------------- */
static void questions_stand_in_line(void **state)
{
	struct hydnsd_parked_question *q;

	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		put(PARKED_KEY(i), i, true);
	while ((q = hydnsd_parked_first(parked, 1, HYDNSD_DUE_FRESH)))
		hydnsd_parked_move(parked, q, HYDNSD_DUE_PACED);
	put(PARKED_KEY(1), 4, true);   /* keeps its place */
	q = hydnsd_parked_first(parked, 1, HYDNSD_DUE_PACED);
	assert_int_equal(q->key, PARKED_KEY(1));
	assert_int_equal(hydnsd_parked_next(q)->key, PARKED_KEY(2));
	hydnsd_parked_over(parked, 1, PARKED_KEY(2)); /* there may be a rule now */
	assert_int_equal(hydnsd_parked_first(parked, 1, HYDNSD_DUE_FRESH)->key, PARKED_KEY(2));
	EXPECT_TAKEN(2, 1, 4, 3);
}

/* -- records -------------------------------------------------------------------------------------------------- */
static void a_question_is_read_in_lower_case(void **state)
{
	struct parked_query q = parked_query("wWw.EXample[.", 1, 1, true);
	struct hydnsd_parked_asked asked;
	uint16_t len = q.record.frame_len;

	(void)state;
	assert_true(hydnsd_parked_read(&q.record, &asked));
	assert_memory_equal(asked.name, "\3www\10example[", 14);
	assert_int_equal(asked.qtype, 0x0100);
	q.record.frame_len = (uint16_t)(len - 2);
	assert_true(hydnsd_parked_read(&q.record, &asked));
	q.record.frame_len = (uint16_t)(len - 3);
	assert_false(hydnsd_parked_read(&q.record, &asked));
	q.record.frame_len = HYDNS_PARKED_FRAME + 1;
	assert_false(hydnsd_parked_read(&q.record, &asked));
	q.record.frame_len = len;
	q.record.name_len = 0;
	assert_false(hydnsd_parked_read(&q.record, &asked));
	q.record.name_len = 15;
	q.record.resolver = HYDNS_RESOLVERS;
	assert_false(hydnsd_parked_read(&q.record, &asked));
}

/* -- checksums ------------------------------------------------------------------------------------------------ */
/* With these octets before the message, VLAN tags in front. */
static void unfinished(const char *name, bool ipv6, unsigned tags)
{
	struct parked_query q = parked_query(name, 1, 1, ipv6);
	unsigned addresses = ipv6 ? 32 : 8, dns = q.record.dns_off + 4 * tags, len = q.record.frame_len + 4 * tags;
	unsigned udp_len = len - dns + 8;
	uint8_t frame[HYDNS_PARKED_FRAME] = { 0 }, whole[HYDNS_PARKED_FRAME], *udp = frame + dns - 8;
	uint16_t pseudo;

	memcpy(frame + 4 * tags, q.octet, q.record.frame_len);
	memcpy(whole, frame, sizeof(whole));
	hydnsd_checksum_complete(frame, len, dns, ipv6);
	assert_memory_equal(frame, whole, sizeof(whole)); /* it was whole */
	frame[dns + 1] ^= 1;
	whole[dns + 1] ^= 1;
	hydnsd_checksum_complete(frame, len, dns, ipv6);
	assert_memory_equal(frame, whole, sizeof(whole)); /* what a wire has spoilt stays so */
	frame[dns + 1] ^= 1;
	whole[dns + 1] ^= 1;
	pseudo = parked_pseudo_sum(udp - addresses, addresses, udp_len);
	udp[6] = (uint8_t)(pseudo >> 8);
	udp[7] = (uint8_t)pseudo;
	for (unsigned n = 0; n < udp_len - 8; n += 7) {      /* cut: the lengths do not fit */
		uint8_t cut[HYDNS_PARKED_FRAME];

		memcpy(cut, frame, sizeof(cut));
		hydnsd_checksum_complete(cut, dns + n, dns, ipv6);
		assert_memory_equal(cut, frame, sizeof(cut));
	}
	hydnsd_checksum_complete(frame, len, dns, ipv6);
	assert_memory_equal(frame, whole, sizeof(whole));
}

static void unfinished_checksums_are_completed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		char name[] = "an.example.";

		name[1] = (char)(i ? i : 1);
		unfinished(name[1] == '.' ? "odd.example." : name, i & 1, i % 3);
	}
}

/* What sums up to 0 is sent as 0xffff. */
static void a_checksum_is_never_zero(void **state)
{
	struct parked_query q = parked_query("www.example.", 1, 1, false);
	uint8_t *udp = q.octet + q.record.dns_off - 8, *id = udp + 8;
	unsigned len = q.record.frame_len - q.record.dns_off + 8U, sum = udp[6] * 256U + udp[7];
	uint16_t pseudo;

	(void)state;
	id[0] = (uint8_t)(sum >> 8);   /* takes all that the checksum had */
	id[1] = (uint8_t)sum;
	pseudo = parked_pseudo_sum(udp - 8, 8, len);
	udp[6] = (uint8_t)(pseudo >> 8);
	udp[7] = (uint8_t)pseudo;
	hydnsd_checksum_complete(q.octet, q.record.frame_len, q.record.dns_off, false);
	assert_int_equal(udp[6] * 256 + udp[7], 0xffff);
}

#define ON_PARKED(f) cmocka_unit_test_setup_teardown(f, open_parked, close_parked)
int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_PARKED(a_question_is_due_when_it_is_over),
		ON_PARKED(frames_time_out_one_by_one), ON_PARKED(frames_are_discarded_one_by_one),
		ON_PARKED(a_frame_that_comes_again_keeps_its_age), ON_PARKED(a_question_can_be_under_way_again),
		ON_PARKED(there_is_a_bound),
		ON_PARKED(a_lost_end_is_noticed),
		ON_PARKED(looks_are_bounded),
		ON_PARKED(questions_stand_in_line),
		cmocka_unit_test(a_question_is_read_in_lower_case),
		cmocka_unit_test(unfinished_checksums_are_completed),
		cmocka_unit_test(a_checksum_is_never_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
