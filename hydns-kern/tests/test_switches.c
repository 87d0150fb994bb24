/* SPDX-License-Identifier: GPL-2.0-only */
/* The program with other load-time configurations. Exits 77 (skipped) where BPF programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "expect.h"

#define TIMED_RUNS 2000

static void test_partial_checksum(void **state)
{
	struct kernel *k = open_with(&(struct kernel_options){ .partial_checksum = true, .verbose = true });
	struct query v6 = plain;
	struct answer a = { 0 };
	struct frame f;

	(void)state;
	v6.ipv6 = true;
	publish_address(k, &plain, &a);
	frame_query(&f, &plain);
	expect_frame("full checksum", k, &f, &plain, &a, 0, 0);
	frame_partial(&f);
	expect_frame("partial checksum", k, &f, &plain, &a, 0, 0);
	f.data[f.udp + 7]++;
	expect_pass("wrong partial checksum", k, &f, HYDNS_R_BAD_CHECKSUM);
	frame_query(&f, &v6);
	frame_partial(&f);
	expect_frame("partial checksum, IPv6", k, &f, &v6, &a, 0, 0);
	kernel_close(k);
}

static void test_vlan(void **state)
{
	struct kernel *k = open_with(&(struct kernel_options){ .vlan = true, .verbose = true });
	struct query q = plain;
	struct answer a = { 0 };
	struct frame f;

	(void)state;
	publish_address(k, &plain, &a);
	for (q.vlan_tags = 0; q.vlan_tags <= 2; q.vlan_tags++) {
		q.ipv6 = q.vlan_tags & 1;
		frame_query(&f, &q);
		expect_frame("VLAN tags", k, &f, &q, &a, 0, 0);
	}
	q.vlan_tags = 3;
	frame_query(&f, &q);
	expect_pass("three VLAN tags", k, &f, HYDNS_R_NOT_IP);
	kernel_close(k);
}

static void test_ipv6_off(void **state)
{
	struct kernel *k = open_with(&(struct kernel_options){ .no_ipv6 = true, .verbose = true });
	struct query v6 = plain;
	struct frame f;

	(void)state;
	v6.ipv6 = true;
	frame_query(&f, &v6);
	expect_pass("IPv6 while it is off", k, &f, HYDNS_R_NOT_IP);
	kernel_close(k);
}

/* hydns_miss, behind a tail call, counts a miss; every other packet ends in hydns_xdp. */
static void test_miss_stage(void **state)
{
	struct kernel *k = open_with(&(struct kernel_options){ .miss_stage = true, .verbose = true });
	struct answer a = { 0 };
	struct frame f;

	(void)state;
	frame_query(&f, &plain);
	expect_pass("no rule", k, &f, HYDNS_R_MISS);
	publish_address(k, &plain, &a);
	frame_query(&f, &plain);
	expect_frame("a rule, beside a miss program", k, &f, &plain, &a, 0, 0);
	kernel_pause(k, true);
	frame_query(&f, &plain);
	expect_pass("paused", k, &f, HYDNS_R_PAUSED);
	kernel_close(k);
}

/* The program reads the kernel's clock; in all other tests the clock is fixed. */
static void test_real_clock(void **state)
{
	struct kernel *k = open_with(&(struct kernel_options){ .real_clock = true, .verbose = true });
	struct query miss = plain;
	struct answer a = { 0 };
	struct frame f;

	(void)state;
	miss.name = "www.example.net";
	answer_addresses(&a, 2, 300);
	/* half a second from the next change of the TTL, far more than this test takes */
	assert_true(kernel_publish(k, &plain, &a, SECOND_NS + SECOND_NS / 2, NULL));
	frame_query(&f, &plain);
	expect_frame("by the kernel's clock", k, &f, &plain, &a, 1, 0);
	printf("# time: %u ns a hit", kernel_time(k, &f, TIMED_RUNS));
	frame_query(&f, &miss);
	printf(", %u ns a miss (mean of %d runs, caches as a system call leaves them)\n",
	       kernel_time(k, &f, TIMED_RUNS), TIMED_RUNS);
	kernel_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_partial_checksum), cmocka_unit_test(test_vlan), cmocka_unit_test(test_ipv6_off),
		cmocka_unit_test(test_miss_stage), cmocka_unit_test(test_real_clock),
	};

	return expect_run(tests);
}
