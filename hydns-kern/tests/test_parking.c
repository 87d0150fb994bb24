/* SPDX-License-Identifier: GPL-2.0-only */
/* Which queries the program parks, and what becomes of a carrier. Exits 77 (skipped) where BPF programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include "parking.h"
#include "rings.h"
#include "hydns-kern/loader/kern.h"

/* One program for all tests: on an emulated machine the verifier takes seconds. */
static struct kernel *shared;
static __u32 published[8];
static unsigned rules;

/* Until the test's end. */
static __u32 publish(struct parking *p, const struct query *q, struct answer *a, __u64 age_ns, void (*edit)(struct hydns_rule *))
{
	assert_true(rules < sizeof(published) / sizeof(*published));
	published[rules] = kernel_publish(p->k, q, a, age_ns, edit);
	assert_true(published[rules]);
	return published[rules++];
}

static int set_up(void **state)
{
	static struct parking p;

	parking_open(&p, shared);
	*state = &p;
	return 0;
}

static int tear_down(void **state)
{
	static const __u8 any[16];
	struct parking *p = *state;

	while (rules)
		kernel_remove(p->k, published[--rules]);
	memset((void *)p->buckets, 0, HYDNS_PAGE_OCTETS - sizeof(struct hydns_resolver_page));
	kernel_page(p->k)->under_way = 0;
	kernel_beat(p->k);
	kernel_config(p->k, NULL);
	kernel_acl(p->k, any, 0, HYDNS_ACL_ALLOW);
	kernel_pause(p->k, false);
	kernel_empty(p->k, false);
	parking_drain(p);
	parking_close(p);
	return 0;
}

/* --- what is parked ----------------------------------------------------------------------------------------- */
static void expect_record(struct parking *p, const struct query *q)
{
	struct frame f;

	frame_query(&f, q);
	assert_int_equal(parking_action(p, q, HYDNS_R_PARKED), XDP_DROP);
	assert_int_equal(parking_drain(p), 1);
	assert_int_equal(p->last.frame_len, f.len);
	assert_memory_equal(p->frame, f.data, f.len);
	assert_true(p->last.key == parking_key(q));
	assert_int_equal(p->last.dns_off, f.dns);
	assert_int_equal(p->last.name_len, strlen(q->name) + 2);
	assert_int_equal(p->last.resolver, RESOLVER);
	assert_int_equal(p->last.ipv6, q->ipv6);
	assert_true(p->last.at_ns == NOW_NS);
	assert_int_equal(p->last.ifindex, PARKED_HERE);
	assert_int_equal(p->last.rx_queue, 0);
}

static void a_question_under_way_is_parked_whole(void **state)
{
	struct query v6 = plain, capitals = plain, with_do = plain;
	struct parking *p = *state;

	v6.ipv6 = true;
	capitals.name = "WWW.example.COM";
	with_do.edns = with_do.want_do = true;
	parking_begin(p, &plain, 0, NOW_NS);
	expect_record(p, &plain);
	expect_record(p, &v6);
	expect_record(p, &capitals);
	assert_int_equal(parking_action(p, &with_do, HYDNS_R_MISS), XDP_PASS);
	parking_begin(p, &with_do, 3, NOW_NS);
	expect_record(p, &with_do);
	assert_int_equal(p->last.variant, HYDNS_VARIANT_DO);
	assert_int_equal(p->bounds->waiting, 4);
	assert_int_equal(p->buckets[HYDNS_UNDER_WAY_BUCKET(parking_key(&plain))].entry[0].parked, 3);
	assert_int_equal(parking_counts(p).parked, 4);
}

static void other_questions_pass(void **state)
{
	struct query name = plain, type = plain, norec = plain;
	struct parking *p = *state;

	name.name = "wwx.example.com";
	type.qtype = 28;
	norec.norec = true;
	assert_int_equal(parking_action(p, &plain, HYDNS_R_MISS), XDP_PASS);
	parking_begin(p, &plain, 0, NOW_NS);
	assert_int_equal(parking_action(p, &name, HYDNS_R_MISS), XDP_PASS);
	assert_int_equal(parking_action(p, &type, HYDNS_R_MISS), XDP_PASS);
	parking_begin(p, &norec, 1, NOW_NS);
	assert_int_equal(parking_action(p, &norec, HYDNS_R_MISS), XDP_PASS);
	parking_end(p, &plain, 0);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_MISS), XDP_PASS);
	/* another one of the same bucket */
	p->buckets[HYDNS_UNDER_WAY_BUCKET(parking_key(&plain))].entry[0].word =
		HYDNS_UNDER_WAY_WORD(parking_key(&plain) ^ 1ULL << 32, NOW_NS / HYDNS_NS_PER_MS);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_MISS), XDP_PASS);
	assert_int_equal(parking_drain(p), 0);
	assert_int_equal(p->bounds->waiting, 0);
}

/* The count on the page spares the look into the bucket: what it says holds. */
static void nothing_is_parked_while_the_page_counts_none(void **state)
{
	struct parking *p = *state;

	parking_begin(p, &plain, 0, NOW_NS);
	kernel_page(p->k)->under_way = 0;
	assert_int_equal(parking_action(p, &plain, HYDNS_R_MISS), XDP_PASS);
}

static void an_old_word_does_not_count(void **state)
{
	struct parking *p = *state;

	parking_begin(p, &plain, 0, NOW_NS - HYDNS_UNDER_WAY_MS * HYDNS_NS_PER_MS);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_MISS), XDP_PASS);
	parking_begin(p, &plain, 0, NOW_NS - (HYDNS_UNDER_WAY_MS - 1) * HYDNS_NS_PER_MS);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
}

static void of_another_age(struct hydns_rule *rule)
{
	rule->epoch++;
}

static void refreshed(struct hydns_rule *rule)
{
	rule->refresh_ms = 0;
}

static void rules_that_do_not_count_are_no_obstacle(void **state)
{
	struct parking *p = *state;
	struct answer a = { 0 };

	answer_addresses(&a, 1, 300);
	parking_begin(p, &plain, 0, NOW_NS);
	publish(p, &plain, &a, 0, of_another_age);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
	kernel_remove(p->k, published[--rules]);
	publish(p, &plain, &a, 4000 * SECOND_NS, NULL);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
	kernel_remove(p->k, published[--rules]);
	publish(p, &plain, &a, 0, refreshed);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_REFRESH), XDP_PASS);
	kernel_remove(p->k, published[--rules]);
	publish(p, &plain, &a, 0, NULL);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_ANSWERED), XDP_TX);
}

static void whom_the_resolver_refuses_waits_for_nothing(void **state)
{
	static const __u8 any[16];
	struct parking *p = *state;

	parking_begin(p, &plain, 0, NOW_NS);
	kernel_acl(p->k, any, 0, HYDNS_ACL_PASS);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_ACL), XDP_PASS);
	kernel_acl(p->k, any, 0, HYDNS_ACL_ALLOW);
	kernel_page(p->k)->heartbeat_ns = 0;
	assert_int_equal(parking_action(p, &plain, HYDNS_R_RESOLVER_GONE), XDP_PASS);
}

/* A resolver that keeps letters answers those with capitals itself, one by one. */
static void capitals_pass_where_letters_are_kept(void **state)
{
	const struct hydns_resolver_config keeps = { .flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_KEEPS_CASE,
		.edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1 };
	struct query capitals = plain;
	struct parking *p = *state;

	capitals.name = "WWW.example.com";
	kernel_config(p->k, &keeps);
	parking_begin(p, &plain, 0, NOW_NS);
	assert_int_equal(parking_action(p, &capitals, HYDNS_R_MISS), XDP_PASS);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
}

static void an_empty_store_is_no_obstacle(void **state)
{
	struct parking *p = *state;
	struct hydns_geometry g;
	__u32 zero = 0;

	parking_begin(p, &plain, 0, NOW_NS);
	kernel_empty(p->k, true);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_EMPTY), XDP_PASS);
	assert_int_equal(bpf_map_lookup_elem(kernel_map(p->k, "hydns_meta"), &zero, &g), 0);
	g.parking = 1;
	assert_int_equal(bpf_map_update_elem(kernel_map(p->k, "hydns_meta"), &zero, &g, BPF_ANY), 0);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
}

/* --- bounds ------------------------------------------------------------------------------------------------- */
static void expect_spilled(struct parking *p, const struct query *q, enum hydns_spill why)
{
	__u64 before = parking_counts(p).spilled[why];
	__u32 waiting = p->bounds->waiting;

	assert_int_equal(parking_action(p, q, HYDNS_R_MISS), XDP_PASS);
	assert_int_equal(parking_counts(p).spilled[why], before + 1);
	assert_int_equal(p->bounds->waiting, waiting);
}

static void a_question_has_its_bound(void **state)
{
	struct query other = plain;
	struct parking *p = *state;

	other.qtype = 28;
	p->bounds->per_question = 2;
	parking_begin(p, &plain, 0, NOW_NS);
	parking_begin(p, &other, 1, NOW_NS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
	expect_spilled(p, &plain, HYDNS_SPILL_PER_QUESTION);
	assert_int_equal(parking_action(p, &other, HYDNS_R_PARKED), XDP_DROP);
}

static void a_full_resolver_parks_again_when_half_have_gone(void **state)
{
	struct parking *p = *state;

	p->bounds->max = 4;
	p->bounds->resume = 2;
	parking_begin(p, &plain, 0, NOW_NS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
	expect_spilled(p, &plain, HYDNS_SPILL_MAX);
	p->bounds->waiting = 3;
	expect_spilled(p, &plain, HYDNS_SPILL_MAX);
	p->bounds->waiting = 2;
	for (int i = 0; i < 2; i++)
		assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
	expect_spilled(p, &plain, HYDNS_SPILL_MAX);
	p->bounds->max = 0;
	p->bounds->waiting = 0;
	assert_int_equal(parking_action(p, &plain, HYDNS_R_MISS), XDP_PASS);
	assert_int_equal(parking_counts(p).spilled[HYDNS_SPILL_MAX], 3);
}

static void a_full_ring_buffer_spills(void **state)
{
	struct parking *p = *state;
	struct query q = plain;
	struct frame f;
	int parked = 0;

	p->bounds->max = p->bounds->per_question = 1U << 20;
	parking_begin(p, &plain, 0, NOW_NS);
	frame_query(&f, &q);
	while (kernel_shoot(p->k, &f) == XDP_DROP)
		parked++;
	expect_spilled(p, &plain, HYDNS_SPILL_ROOM);
	assert_true(parked > 20000);
	assert_int_equal(parking_drain(p), parked);
	assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
}

static void a_long_frame_spills(void **state)
{
	static __u8 options[HYDNS_QUERY_MAX];
	struct query q = plain;
	struct parking *p = *state;
	const unsigned rest = 14 + 20 + 8 + 12 + 17 + 4 + HYDNS_OPT_LEN; /* of the frame but for the options */

	q.edns = true;
	q.options = options;
	options[1] = 12;         /* padding: RFC 7830 */
	q.options_len = HYDNS_PARKED_FRAME - rest;
	*(__u16 *)(options + 2) = htons(q.options_len - 4);
	parking_begin(p, &plain, 0, NOW_NS);
	assert_int_equal(parking_action(p, &q, HYDNS_R_PARKED), XDP_DROP);
	assert_int_equal(parking_drain(p), 1);
	assert_int_equal(p->last.frame_len, HYDNS_PARKED_FRAME);
	q.options_len++;
	*(__u16 *)(options + 2) = htons(q.options_len - 4);
	expect_spilled(p, &q, HYDNS_SPILL_FRAME);
}

static void other_interfaces_spill(void **state)
{
	struct parking *p = *state;
	__u32 here = PARKED_HERE;

	parking_begin(p, &plain, 0, NOW_NS);
	assert_int_equal(bpf_map_delete_elem(kernel_map(p->k, "hydns_park_at"), &here), 0);
	expect_spilled(p, &plain, HYDNS_SPILL_INTERFACE);
}

static void nothing_is_parked_for_a_hydnsd_that_is_late(void **state)
{
	struct parking *p = *state;

	parking_begin(p, &plain, 0, NOW_NS);
	p->bounds->heartbeat_ns = NOW_NS - HYDNS_PARKING_STALE_NS;
	expect_spilled(p, &plain, HYDNS_SPILL_HYDNSD);
	p->bounds->heartbeat_ns++;
	assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
	p->bounds->heartbeat_ns = NOW_NS + HYDNS_HEARTBEAT_BEAT_NS;  /* later than the program's clock of ticks */
	assert_int_equal(parking_action(p, &plain, HYDNS_R_PARKED), XDP_DROP);
}

/* --- replays ------------------------------------------------------------------------------------------------ */
static void put(struct parking *p, unsigned i, const struct frame *f)
{
	p->replays->frame[i].len = f->len;
	memcpy(p->replays->frame[i].octets, f->data, f->len);
}

static void put_query(struct parking *p, unsigned i, const struct query *q)
{
	struct frame f;

	frame_query(&f, q);
	put(p, i, &f);
}

/* Runs a carrier, not live; *f becomes what it has become. */
static int carry(struct parking *p, struct frame *f, int *reason)
{
	memset(f, 0, sizeof(*f));
	f->len = HYDNS_CARRIER_LEN;
	hydns_carrier(p->replays, f->data);
	return kernel_run(p->k, f, reason);
}

static void begin_replay(struct parking *p, unsigned count)
{
	p->replays->next = p->replays->passed = 0;
	p->replays->count = count;
}

static void a_carrier_becomes_the_query_and_is_answered(void **state)
{
	struct query v6 = { .name = "a-longer.name.example.com", .qtype = 1, .id = 7, .ipv6 = true, .edns = true, .edns_size = 1232 };
	struct query short4 = { .name = ".", .qtype = 1, .id = 8 };
	const struct query *all[] = { &plain, &v6, &short4 };
	struct parking *p = *state;
	__u8 want[FRAME_MAX];

	for (unsigned i = 0; i < 3; i++) {
		struct answer a = { 0 };
		struct frame f, asked;
		int reason;
		size_t len;

		answer_addresses(&a, 1, 300);
		publish(p, all[i], &a, 0, NULL);
		put_query(p, 0, all[i]);
		begin_replay(p, 1);
		assert_int_equal(carry(p, &f, &reason), XDP_TX);
		assert_int_equal(reason, HYDNS_R_ANSWERED);
		frame_query(&asked, all[i]);
		len = answer_message(&a, all[i], 0, 0, EDNS_SIZE, want);
		assert_int_equal(f.len, asked.dns + len);
		assert_memory_equal(f.data + asked.dns, want, len);
		assert_int_equal(p->replays->next, 1);
		assert_int_equal(p->replays->passed, 0);
	}
}

/* Also when its question is still under way, and when rings could take it: rings have one producer, the driver. */
static void what_no_rule_answers_passes_to_the_socket(void **state)
{
	struct kernel *k = open_with(&rings_kernel);
	struct parking p;
	struct rings r;
	struct frame f, asked;
	int reason;

	(void)state;
	rings_open(&r, k, 1);
	kernel_page(r.k)->queue = HYDNS_QUEUE_CLIENTS;
	parking_open(&p, r.k);
	frame_query(&asked, &plain);
	assert_int_equal(rings_action(&r, &asked, HYDNS_R_MISS), XDP_REDIRECT);
	parking_begin(&p, &plain, 0, NOW_NS);
	put_query(&p, 0, &plain);
	begin_replay(&p, 1);
	assert_int_equal(carry(&p, &f, &reason), XDP_PASS);
	assert_int_equal(reason, HYDNS_R_MISS);
	assert_int_equal(f.len, asked.len);
	assert_memory_equal(f.data, asked.data, asked.len);
	assert_int_equal(p.replays->passed, 1);
	/* the last carrier ends it: what comes then is parked, and goes to rings, as ever */
	assert_int_equal(carry(&p, &f, &reason), XDP_DROP);
	assert_int_equal(reason, -1);
	assert_int_equal(parking_action(&p, &plain, HYDNS_R_PARKED), XDP_DROP);
	parking_end(&p, &plain, 0);
	assert_int_equal(rings_action(&r, &asked, HYDNS_R_MISS), XDP_REDIRECT);
	parking_close(&p);
	rings_close(&r);
	kernel_close(k);
}

static void frames_come_in_their_order(void **state)
{
	struct parking *p = *state;
	struct query q = plain;
	struct frame f;
	int reason;

	for (unsigned i = 0; i < HYDNS_REPLAYS; i++) {
		q.id = i;
		put_query(p, i, &q);
	}
	begin_replay(p, HYDNS_REPLAYS);
	for (unsigned i = 0; i < HYDNS_REPLAYS; i++) {
		assert_int_equal(carry(p, &f, &reason), XDP_PASS);
		frame_query(&f, &plain);
	}
	assert_int_equal(p->replays->passed, HYDNS_REPLAYS);
	assert_int_equal(carry(p, &f, &reason), XDP_DROP);
}

/* A frame of that Ethernet type from a link is no carrier, whatever it holds. */
static void nobody_else_makes_a_carrier(void **state)
{
	struct parking *p = *state;
	struct frame f;

	put_query(p, 0, &plain);
	begin_replay(p, 1);
	for (unsigned octet = 14; octet < 30; octet++) {
		memset(&f, 0, sizeof(f));
		f.len = HYDNS_CARRIER_LEN;
		hydns_carrier(p->replays, f.data);
		f.data[octet] ^= 1;
		expect_pass("a carrier with another secret", p->k, &f, HYDNS_R_NOT_IP);
	}
	hydns_carrier(p->replays, f.data);
	f.len = 29;
	expect_pass("a carrier that ends within its secret", p->k, &f, HYDNS_R_NOT_IP);
	f.len = HYDNS_CARRIER_LEN;
	f.data[13]++;
	expect_pass("a carrier of another type", p->k, &f, HYDNS_R_NOT_IP);
	assert_int_equal(p->replays->next, 0);
}

/* Neither a pause nor an empty store keeps a parked query from the resolver. */
static void replays_pass_while_paused_and_without_rules(void **state)
{
	struct parking *p = *state;
	struct answer a = { 0 };
	struct frame f, asked;
	int reason;

	answer_addresses(&a, 1, 300);
	publish(p, &plain, &a, 0, NULL);
	frame_query(&asked, &plain);
	put_query(p, 0, &plain);
	begin_replay(p, 1);
	kernel_pause(p->k, true);
	assert_int_equal(carry(p, &f, &reason), XDP_PASS);
	assert_int_equal(reason, HYDNS_R_PAUSED);
	assert_memory_equal(f.data, asked.data, asked.len);
	assert_int_equal(p->replays->passed, 1);
	carry(p, &f, &reason);
	kernel_pause(p->k, false);
	kernel_empty(p->k, true);
	begin_replay(p, 1);
	assert_int_equal(carry(p, &f, &reason), XDP_PASS);
	assert_int_equal(reason, HYDNS_R_EMPTY);
	assert_memory_equal(f.data, asked.data, asked.len);
	assert_int_equal(p->replays->passed, 1);
}

/* Lengths that hydnsd never writes: nothing is sent, and nothing beyond the frame is read. */
static void a_length_out_of_range_is_dropped(void **state)
{
	struct parking *p = *state;
	struct frame f;
	int reason;

	for (unsigned i = 0; i < 2; i++) {
		p->replays->frame[0].len = i ? HYDNS_PARKED_FRAME + 1 : 0;
		begin_replay(p, 1);
		assert_int_equal(carry(p, &f, &reason), XDP_DROP);
		assert_int_equal(reason, HYDNS_R_ABORTED);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_question_under_way_is_parked_whole), TEST(other_questions_pass),
		TEST(nothing_is_parked_while_the_page_counts_none), TEST(an_old_word_does_not_count),
		TEST(rules_that_do_not_count_are_no_obstacle), TEST(whom_the_resolver_refuses_waits_for_nothing),
		TEST(capitals_pass_where_letters_are_kept), TEST(an_empty_store_is_no_obstacle),
		TEST(a_question_has_its_bound), TEST(a_full_resolver_parks_again_when_half_have_gone),
		TEST(a_full_ring_buffer_spills), TEST(a_long_frame_spills), TEST(other_interfaces_spill),
		TEST(nothing_is_parked_for_a_hydnsd_that_is_late),
		TEST(a_carrier_becomes_the_query_and_is_answered), cmocka_unit_test(what_no_rule_answers_passes_to_the_socket),
		TEST(frames_come_in_their_order), TEST(nobody_else_makes_a_carrier),
		TEST(replays_pass_while_paused_and_without_rules), TEST(a_length_out_of_range_is_dropped),
	};

	const char *why;
	int failed;

	shared = kernel_open(&(struct kernel_options){ .miss_stage = true, .verbose = true }, &why);
	if (!shared) {
		printf("skipped: %s\n", why);
		return SKIPPED;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kernel_close(shared);
	return failed;
}
