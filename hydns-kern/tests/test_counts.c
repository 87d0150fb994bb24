/* SPDX-License-Identifier: GPL-2.0-only */
/* The counters of answers, by resolver and by rule. Exits 77 (skipped) where BPF programs can't be loaded. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "expect.h"

static void test_resolver_counts(void **state)
{
	struct hydns_resolver_count before, after;
	struct query q = { .name = "count.example", .qtype = 1, .ipv6 = true, .edns = true, .ad = true };
	struct answer a = { 0 };
	__u8 message[FRAME_MAX];
	__u32 handle;

	(void)state;
	handle = publish_address(kern, &q, &a);
	kernel_counts(kern, &before);
	expect_answer("counted", &q, &a, 0);
	kernel_counts(kern, &after);
	assert_int_equal(after.answered - before.answered, 1);
	assert_int_equal(after.ipv6 - before.ipv6, 1);
	assert_int_equal(after.edns - before.edns, 1);
	assert_int_equal(after.ad - before.ad, 1);
	assert_int_equal(after.octets - before.octets, answer_message(&a, &q, 0, 0, EDNS_SIZE, message));
	kernel_remove(kern, handle);
}

static __u32 counted_in_slot(__u32 handle)
{
	return hydns_store_rule(kernel_store(kern), handle)->hits;
}

/* Hits are counted in the slot up to HYDNS_HITS_IN_SLOT, then by CPU until the store allows as many in the slot again. */
static void test_where_hits_are_counted(void **state)
{
	struct hydns_store *s = kernel_store(kern);
	struct answer a = { 0 };
	__u32 handle, n = 0;
	struct frame f;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	for (; n < HYDNS_HITS_IN_SLOT + 3; n++) {
		assert_int_equal(counted_in_slot(handle), n < HYDNS_HITS_IN_SLOT ? n : HYDNS_HITS_IN_SLOT);
		assert_int_equal(hydns_store_hits(s, handle), n);
		frame_query(&f, &plain);
		assert_int_equal(kernel_shoot(kern, &f), XDP_TX);
	}
	assert_int_equal(hydns_store_hits(s, handle), n);
	hydns_store_count_in_slot(s, handle);
	expect_answer("counted in the slot again", &plain, &a, 0);
	assert_int_equal(counted_in_slot(handle), HYDNS_HITS_IN_SLOT + 1);
	assert_int_equal(hydns_store_hits(s, handle), n + 1);
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
	assert_int_equal(hydns_store_hits(s, handle), 0);
	kernel_remove(kern, handle);
}

/* Sends the plain query so often from another CPU, or from this one if it is the only one; exits. */
static void shoot_elsewhere(unsigned shots)
{
	int here = sched_getcpu();
	struct frame f;
	cpu_set_t set;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (cpu != here && !sched_setaffinity(0, sizeof(set), &set))
			break;
	}
	while (shots--) {
		frame_query(&f, &plain);
		if (kernel_shoot(kern, &f) != XDP_TX)
			_exit(1);
	}
	_exit(0);
}

/* CPUs that share a row lose no hit. */
static void test_shared_hits(void **state)
{
	const unsigned shots = 50000;
	struct answer a = { 0 };
	__u32 handle;
	struct frame f;
	int status;
	pid_t other;

	(void)state;
	assert_int_equal(kernel_share_hits(kern, true), 0);
	handle = publish_address(kern, &plain, &a);
	other = fork();
	if (other == 0)
		shoot_elsewhere(shots);
	for (unsigned i = 0; i < shots; i++) {
		frame_query(&f, &plain);
		assert_int_equal(kernel_shoot(kern, &f), XDP_TX);
	}
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	assert_int_equal(hydns_store_hits(kernel_store(kern), handle), 2 * shots);
	kernel_remove(kern, handle);
	assert_int_equal(kernel_share_hits(kern, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolver_counts), cmocka_unit_test(test_where_hits_are_counted),
		cmocka_unit_test(test_shared_hits),
	};

	return expect_run(tests);
}
