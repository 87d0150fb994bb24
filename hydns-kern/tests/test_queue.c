/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which packets the program gives to a resolver's rings. The sockets are never bound: whether a packet arrives there is a
 * matter of the kernel. Exits 77 (skipped) where BPF programs can't be loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include "expect.h"
#include "hydns/queue.h"

#define LANE    7
#define THREADS 4
#define CLIENTS 400

static const struct hydns_lane_key here = { .ifindex = 1, .queue = 0 };    /* where test runs come from */
static const __u32 resolver = RESOLVER;

struct rings {
	struct kernel *k;
	int gate, ring[THREADS];
};

static int xsk(void)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static void set(struct kernel *k, const char *map, const void *key, const void *value)
{
	assert_int_equal(bpf_map_update_elem(kernel_map(k, map), key, value, BPF_ANY), 0);
}

static void set_lane(struct kernel *k, const struct hydns_lane *lane)
{
	set(k, "hydns_lanes", &here, lane);
}

static struct hydns_lane usual(unsigned threads)
{
	return (struct hydns_lane){ .number = LANE, .frame_max = 1792, .threads = (__u8)threads, .resolver = RESOLVER };
}

static void open_ring(struct rings *r, unsigned thread)
{
	__u32 key = HYDNS_RING(LANE, thread);

	r->ring[thread] = xsk();
	set(r->k, "hydns_rings", &key, &r->ring[thread]);
}

static int set_up(void **state)
{
	static struct rings r;
	struct hydns_lane lane = usual(1);

	r = (struct rings){ .k = open_with(&(struct kernel_options){ .queue = true, .verbose = true }), .gate = xsk(),
			    .ring = { -1, -1, -1, -1 } };
	set(r.k, "hydns_gates", &resolver, &r.gate);
	set_lane(r.k, &lane);
	open_ring(&r, 0);
	kernel_page(r.k)->queue = HYDNS_QUEUE_CLIENTS;
	*state = &r;
	return 0;
}

static int tear_down(void **state)
{
	struct rings *r = *state;

	for (unsigned i = 0; i < THREADS; i++)
		if (r->ring[i] >= 0)
			close(r->ring[i]);
	if (r->gate >= 0)
		close(r->gate);
	kernel_close(r->k);
	return 0;
}

/* What becomes of the frame, which is counted as reason, and stays as it is. */
static int action_of_frame(struct rings *r, const struct frame *f, int reason)
{
	struct frame after = *f;
	int counted, action = kernel_run(r->k, &after, &counted);

	assert_int_equal(counted, reason);
	assert_int_equal(after.len, f->len);
	assert_memory_equal(after.data, f->data, f->len);
	return action;
}

static int action_of(struct rings *r, const struct query *q, int reason)
{
	struct frame f;

	frame_query(&f, q);
	return action_of_frame(r, &f, reason);
}

static void queries_without_an_answer_go_to_the_ring(void **state)
{
	struct query v6 = plain;

	v6.ipv6 = true;
	assert_int_equal(action_of(*state, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	assert_int_equal(action_of(*state, &v6, HYDNS_R_MISS), XDP_REDIRECT);
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
	struct hydns_lane lane = usual(1);

	lane.resolver = RESOLVER + 1;
	set_lane(r->k, &lane);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	lane = usual(1);
	lane.frame_max = 60;
	set_lane(r->k, &lane);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	lane = usual(1);
	set_lane(r->k, &lane);
	kernel_page(r->k)->queue = 0;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
	kernel_page(r->k)->queue = HYDNS_QUEUE_CLIENTS;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_REDIRECT);
	assert_int_equal(bpf_map_delete_elem(kernel_map(r->k, "hydns_lanes"), &here), 0);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
}

/* A dead process has closed its sockets: nobody else takes the entries away. */
static void closed_gate_ends_redirection(void **state)
{
	struct rings *r = *state;

	close(r->gate);
	r->gate = -1;
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
}

static void closed_ring_ends_redirection(void **state)
{
	struct rings *r = *state;

	close(r->ring[0]);
	r->ring[0] = -1;
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

/* With the socket of one thread alone: the clients that it has. */
static unsigned clients_of(struct rings *r, unsigned thread, bool has[CLIENTS])
{
	__u32 key = HYDNS_RING(LANE, thread);
	unsigned count = 0;

	open_ring(r, thread);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct frame f;

		frame_query(&f, &plain);
		f.data[f.udp] = (__u8)((20000 + i) >> 8);
		f.data[f.udp + 1] = (__u8)(20000 + i);
		frame_seal(&f);
		if (action_of_frame(r, &f, HYDNS_R_MISS) == XDP_REDIRECT) {
			assert_false(has[i]);
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
	struct hydns_lane lane = usual(THREADS);
	bool has[CLIENTS] = { false };
	unsigned sum = 0;

	set_lane(r->k, &lane);
	close(r->ring[0]);
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
	struct hydns_lane lane = usual(1);

	assert_int_equal(bpf_map_delete_elem(kernel_map(r->k, "hydns_lanes"), &here), 0);
	set(r->k, "hydns_lanes", &other, &lane);
	assert_int_equal(action_of(r, &plain, HYDNS_R_MISS), XDP_PASS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(queries_without_an_answer_go_to_the_ring),
		TEST(rules_that_do_not_count_are_misses),
		TEST(hits_are_answered),
		TEST(what_is_missing_leaves_the_socket),
		TEST(closed_gate_ends_redirection),
		TEST(closed_ring_ends_redirection),
		TEST(what_is_not_the_resolvers_to_answer_passes),
		TEST(clients_are_spread_over_threads),
		TEST(another_queue_passes),
	};

	return expect_run(tests);
}
