/* SPDX-License-Identifier: GPL-2.0-only */
/* Size limits of replies: the client's, the resolver's and the interface's. Exits 77 (skipped) where BPF programs can't be
 * loaded. */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "expect.h"

static void test_size_limit(void **state)
{
	static const struct {
		const char *what;
		bool edns;
		unsigned edns_size, max_udp, dns_len;
		bool answered;
	} c[] = {
		{ "512 without EDNS", false, 0, 4096, 512, true },
		{ "513 without EDNS", false, 0, 4096, 513, false },
		{ "513 and a client of 512", true, 512, 4096, 513, false },
		{ "512 and a client of 0", true, 0, 4096, 512, true },
		{ "client's size", true, 1000, 4096, 1000, true },
		{ "client's size and one", true, 1000, 4096, 1001, false },
		{ "resolver's limit", true, 4096, 1000, 1000, true },
		{ "resolver's limit and one", true, 4096, 1000, 1001, false },
		{ "resolver's limit below 512", false, 0, 400, 401, false },
	};
	__u8 text[1500] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct hydns_resolver_config cfg = {
			.flags = HYDNS_RESOLVER_READY, .edns_size = EDNS_SIZE, .max_udp = c[i].max_udp,
			.acl_half = 1,
		};
		struct query q = { .name = "big.example", .qtype = 16, .edns = c[i].edns,
				   .edns_size = c[i].edns_size };
		struct answer a = { 0 };
		unsigned fixed = 12 + 13 + 4 + 12 + (q.edns ? HYDNS_OPT_LEN : 0);
		__u32 handle;

		answer_add(&a, ANSWER, NULL, 16, 60, text, c[i].dns_len - fixed);
		handle = kernel_publish(kern, &q, &a, 0, NULL);
		assert_true(handle);
		kernel_config(kern, &cfg);
		if (c[i].answered)
			expect_answer(c[i].what, &q, &a, 0);
		else
			expect_query_passes(c[i].what, &q, HYDNS_R_TOO_BIG);
		kernel_config(kern, NULL);
		kernel_remove(kern, handle);
	}
}

/* named sends less from its zones to a client with an EDNS size of 512 or less, so that client gets no answer of the others. */
static void test_zone_answer_and_small_client(void **state)
{
	static const struct { unsigned edns_size; bool static_ttl, answered; } c[] = {
		{ 0, true, false }, { 512, true, false }, { 513, true, true }, { 512, false, true },
	};
	struct answer a = { 0 };

	(void)state;
	answer_add(&a, ANSWER, NULL, 1, 60, "\xc0\0\2\1", 4);
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct query q = { .name = "zone.example", .qtype = 1, .edns = true, .edns_size = c[i].edns_size };
		__u32 handle;

		a.static_ttl = c[i].static_ttl;
		handle = kernel_publish(kern, &q, &a, 0, NULL);
		assert_true(handle);
		if (c[i].answered)
			expect_answer("answer from a zone", &q, &a, 0);
		else
			expect_query_passes("answer from a zone, small client", &q, HYDNS_R_TOO_BIG);
		kernel_remove(kern, handle);
	}
}

/* The resolver cuts extended errors that have no room in the client's size, or in the one that it tells clients. */
static void test_extended_errors(void **state)
{
	static const struct {
		const char *what;
		unsigned edns_size, dns_len;
		bool answered;
	} c[] = {
		{ "client's size", 600, 600, true }, { "client's size and one", 600, 601, false },
		{ "resolver's size", 4096, EDNS_SIZE, true }, { "resolver's size and one", 4096, EDNS_SIZE + 1, false },
	};
	const __u8 errors[300] = { 0, 15, (sizeof(errors) - 4) >> 8, (sizeof(errors) - 4) & 0xff };
	const unsigned fixed = 12 + 16 + 4 + 12 + HYDNS_OPT_LEN;
	__u8 text[EDNS_SIZE] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct query q = { .name = "errors.example", .qtype = 16, .edns = true, .edns_size = c[i].edns_size };
		struct answer a = { .errors = errors, .errors_len = sizeof(errors) };
		__u32 handle;

		answer_add(&a, ANSWER, NULL, 16, 60, text, c[i].dns_len - fixed - sizeof(errors));
		handle = kernel_publish(kern, &q, &a, 0, NULL);
		assert_true(handle);
		if (c[i].answered)
			expect_answer(c[i].what, &q, &a, 0);
		else
			expect_query_passes(c[i].what, &q, HYDNS_R_TOO_BIG);
		kernel_remove(kern, handle);
	}
}

/* Test runs come from the loopback interface of the network namespace: here a new one, with a small MTU. */
static void test_interface_mtu(void **state)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_mtu = 600 };
	struct query q = { .name = "mtu.example", .qtype = 16, .edns = true, .edns_size = 1232 };
	struct answer fits = { 0 }, too_big = { 0 };
	unsigned fixed = 20 + 8 + 12 + 13 + 4 + 12 + HYDNS_OPT_LEN;
	int home = open("/proc/self/ns/net", O_RDONLY), sock;
	__u8 text[600] = { 0 };
	__u32 handle;

	(void)state;
	assert_true(home >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	sock = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(sock, SIOCSIFMTU, &lo), 0);
	answer_add(&fits, ANSWER, NULL, 16, 60, text, lo.ifr_mtu - fixed);
	answer_add(&too_big, ANSWER, NULL, 16, 60, text, lo.ifr_mtu - fixed + 1);
	handle = kernel_publish(kern, &q, &fits, 0, NULL);
	expect_answer("as large as the MTU", &q, &fits, 0);
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &q, &too_big, 0, NULL);
	expect_query_passes("larger than the MTU", &q, HYDNS_R_TOO_BIG);
	kernel_remove(kern, handle);
	assert_int_equal(setns(home, CLONE_NEWNET), 0);
	close(sock);
	close(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size_limit), cmocka_unit_test(test_zone_answer_and_small_client),
		cmocka_unit_test(test_interface_mtu), cmocka_unit_test(test_extended_errors),
	};

	return expect_run(tests);
}
