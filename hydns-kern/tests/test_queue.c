/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which queries the program gives to a resolver's rings. Exits 77 (skipped) where BPF programs can't be loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include "rings.h"
#include "hydns/hash.h"

#define CLIENTS 400

static int set_up(void **state)
{
	static struct rings r;

	rings_open(&r, kern, 1);
	kernel_page(r.k)->queue = HYDNS_QUEUE_CLIENTS;
	*state = &r;
	return 0;
}

static int tear_down(void **state)
{
	rings_close(*state);
	return 0;
}

static int action_of(struct rings *r, const struct query *q, int reason)
{
	struct frame f;

	frame_query(&f, q);
	return rings_action(r, &f, reason);
}

static void queries_without_an_answer_go_to_the_ring(void **state)
{
	struct query v6 = plain;

	v6.ipv6 = true;
	assert_int_equal(action_of(*state, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	assert_int_equal(action_of(*state, &v6, HYDNS_R_MISS), XDP_REDIRECT);
	assert_int_equal(rings_counts(*state).queries, 2);
	assert_int_equal(rings_counts(*state).answers, 0);
}

/* The shortcut of an empty store must not keep queries from the rings. */
static void queries_of_an_empty_store_go_to_the_ring(void **state)
{
	struct rings *r = *state;

	kernel_empty(r->k, true);
	assert_int_equal(action_of(r, &plain, HYDNS_R_EMPTY), XDP_PASS);
	kernel_lanes(r->k, true);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
}

static void of_another_age(struct hydns_rule *rule)
{
	rule->epoch++;
}

static void rules_that_do_not_count_are_misses(void **state)
{
	struct rings *r = *state;
	struct answer a = { 0 };

	answer_addresses(&a, 1, 300);
	assert_true(kernel_publish(r->k, &plain, &a, 0, of_another_age));
	assert_int_equal(action_of(r, &plain, HYDNS_R_EPOCH), XDP_REDIRECT);
	assert_true(kernel_publish(r->k, &plain, &a, 4000 * SECOND_NS, NULL));
	assert_int_equal(action_of(r, &plain, HYDNS_R_EXPIRED), XDP_REDIRECT);
}

static void hits_are_answered(void **state)
{
	struct rings *r = *state;
	struct answer a = { 0 };
	struct frame f;

	publish_address(r->k, &plain, &a);
	frame_query(&f, &plain);
	expect_frame("a rule, beside a ring", r->k, &f, &plain, &a, 0, 0);
}

static void what_is_missing_leaves_the_socket(void **state)
{
	struct rings *r = *state;
	struct hydns_lane lane = rings_lane(1);

	lane.resolver = RESOLVER + 1;
	rings_set_lane(r, &lane);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	lane = rings_lane(1);
	lane.frame_max = 60;
	rings_set_lane(r, &lane);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	lane = rings_lane(1);
	rings_set_lane(r, &lane);
	kernel_page(r->k)->queue = 0;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	kernel_page(r->k)->queue = HYDNS_QUEUE_CLIENTS;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	assert_int_equal(bpf_map_delete_elem(kernel_map(r->k, "hydns_lanes"), &rings_here), 0);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
}

/* The kernel drops what it is to put into a full ring. Counters wrap. */
static void full_ring_leaves_the_socket(void **state)
{
	struct rings *r = *state;
	volatile struct hydns_backlog *b = rings_backlog(r, 0);

	b->given = b->taken = UINT32_MAX;
	b->room = 2;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	assert_int_equal(b->given, 1);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	assert_int_equal(b->given, 1);
	assert_int_equal(rings_counts(r).queries, 2);
	assert_int_equal(rings_counts(r).full, 1);
	b->taken++;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	b->dropped++;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	b->taken = b->given + 5;        /* more than was given: a plugin's counts may be begun anew meanwhile */
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	b->room = 0;
	b->taken = b->given - b->dropped;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
}

static void what_no_ring_takes_is_not_counted_as_given(void **state)
{
	struct rings *r = *state;

	rings_close_ring(r, 0);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	assert_int_equal(rings_backlog(r, 0)->given, 0);
	assert_int_equal(rings_counts(r).full, 0);
}

/* A dead process has closed its sockets: nobody else takes the entries away. */
static void closed_gate_ends_redirection(void **state)
{
	struct rings *r = *state;

	rings_close_gate(r);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
}

static void closed_ring_ends_redirection(void **state)
{
	struct rings *r = *state;

	rings_close_ring(r, 0);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
}

static void what_is_not_the_resolvers_to_answer_passes(void **state)
{
	static const __u8 any[16];
	struct rings *r = *state;
	volatile struct hydns_resolver_page *page = kernel_page(r->k);
	struct frame f;

	kernel_acl(r->k, any, 0, HYDNS_ACL_PASS);
	frame_query(&f, &plain);
	expect_pass("refused", r->k, &f, HYDNS_R_ACL);
	kernel_acl(r->k, any, 0, HYDNS_ACL_ALLOW);
	page->heartbeat_ns = 0;
	expect_pass("gone", r->k, &f, HYDNS_R_RESOLVER_GONE);
	kernel_beat(r->k);
	kernel_serve(r->k, false);
	expect_pass("no service", r->k, &f, HYDNS_R_NOT_SERVICE);
	kernel_serve(r->k, true);
	kernel_pause(r->k, true);
	expect_pass("paused", r->k, &f, HYDNS_R_PAUSED);
	kernel_pause(r->k, false);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
}

/* The thread that the store's secret gives to the test's client with this port, so that nobody who does not know it can
 * choose a thread. */
static unsigned thread_of(struct rings *r, uint16_t port)
{
	__u8 addr[16] = { [10] = 0xff, [11] = 0xff };
	struct hydns_sip s;
	__u64 half[2];

	memcpy(addr + 12, client4, 4);
	memcpy(half, addr, sizeof(half));
	hydns_sip_begin(&s, kernel_geometry(r->k)->seed);
	hydns_sip_word(&s, half[0]);
	hydns_sip_word(&s, half[1]);
	hydns_sip_word(&s, htons(port));
	return (hydns_sip_end(&s) >> 32) * THREADS >> 32;
}

/* With the socket of one thread alone: the clients that it has. */
static unsigned clients_of(struct rings *r, unsigned thread, bool has[CLIENTS])
{
	__u32 key = HYDNS_RING(LANE, thread);
	unsigned count = 0;

	rings_open_ring(r, thread);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct frame f;

		frame_query(&f, &plain);
		f.data[f.udp] = (__u8)((20000 + i) >> 8);
		f.data[f.udp + 1] = (__u8)(20000 + i);
		frame_seal(&f);
		if (rings_action(r, &f, HYDNS_R_MISS) == XDP_REDIRECT) {
			assert_false(has[i]);
			assert_int_equal(thread, thread_of(r, (uint16_t)(20000 + i)));
			has[i] = true;
			count++;
		}
	}
	assert_int_equal(bpf_map_delete_elem(kernel_map(r->k, "hydns_rings"), &key), 0);
	return count;
}

/* Each client has one thread, and no thread has far more than its share. */
static void clients_are_spread_over_threads(void **state)
{
	struct rings *r = *state;
	struct hydns_lane lane = rings_lane(THREADS);
	bool has[CLIENTS] = { false };
	unsigned sum = 0;

	rings_set_lane(r, &lane);
	rings_close_ring(r, 0);
	for (unsigned i = 0; i < THREADS; i++) {
		unsigned count = clients_of(r, i, has);

		/* 100 is expected, and the hash has a fixed key: ten standard deviations would be 87 */
		assert_in_range(count, 50, 150);
		sum += count;
	}
	assert_int_equal(sum, CLIENTS);
}

static void another_queue_passes(void **state)
{
	struct rings *r = *state;
	struct hydns_lane_key other = { .ifindex = 1, .queue = 1 };
	struct hydns_lane lane = rings_lane(1);

	assert_int_equal(bpf_map_delete_elem(kernel_map(r->k, "hydns_lanes"), &rings_here), 0);
	rings_set(r, "hydns_lanes", &other, &lane);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(queries_without_an_answer_go_to_the_ring),
		TEST(queries_of_an_empty_store_go_to_the_ring),
		TEST(rules_that_do_not_count_are_misses),
		TEST(hits_are_answered),
		TEST(what_is_missing_leaves_the_socket),
		TEST(full_ring_leaves_the_socket),
		TEST(what_no_ring_takes_is_not_counted_as_given),
		TEST(closed_gate_ends_redirection),
		TEST(closed_ring_ends_redirection),
		TEST(what_is_not_the_resolvers_to_answer_passes),
		TEST(clients_are_spread_over_threads),
		TEST(another_queue_passes),
	};

	return expect_run_with(&rings_kernel, tests);
}
