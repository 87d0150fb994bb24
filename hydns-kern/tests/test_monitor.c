/* SPDX-License-Identifier: GPL-2.0-only */
/* The monitor's windows: what is counted as a client and as a name. Exits 77 (skipped) where BPF programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <linux/bpf.h>
#include "hydns/monitor.h"
#include "offload-policy/monitor.h"
#include "expect.h"

static struct kernel *monitored;

/* Rounded: exact for as few as here. */
struct seen {
	int clients, names;
};

static struct seen take(struct kernel *k, __u32 window)
{
	static struct hydns_window w;

	kernel_window_take(k, window, &w);
	return (struct seen){ (int)(hydns_distinct_estimate(w.clients) + 0.5), (int)(hydns_distinct_estimate(w.names) + 0.5) };
}

#define assert_seen(k, window, c, n) do {                   \
	struct seen s_ = take(k, window);                   \
	assert_int_equal(s_.clients, c);                    \
	assert_int_equal(s_.names, n);                      \
} while (0)

/* The query from client number n. */
static void ask(struct kernel *k, struct query q, unsigned client, int reason)
{
	struct frame f;
	int got;

	frame_query(&f, &q);
	f.data[f.l3 + (q.ipv6 ? 23 : 15)] = (uint8_t)(1 + client % 250);
	f.data[f.l3 + (q.ipv6 ? 22 : 14)] ^= (uint8_t)(client / 250);
	frame_checksums(&f);
	kernel_run(k, &f, &got);
	assert_int_equal(got, reason);
}

static void test_clients_and_names(void **state)
{
	struct query q = plain;
	char name[64];

	(void)state;
	take(monitored, 0);
	q.name = name;
	for (unsigned i = 0; i < 60; i++) {
		q.ipv6 = i % 2;
		snprintf(name, sizeof(name), "host%u.example", i % 7);
		ask(monitored, q, i % 20, HYDNS_R_MISS);
	}
	assert_seen(monitored, 0, 20, 7);
	assert_seen(monitored, 0, 0, 0);               /* it was cleared */
}

/* Names that differ in one octet, at each place of the words that are hashed, and in length. */
static void test_similar_names(void **state)
{
	struct query q = plain;
	char name[64] = "aaaaaaaa.aaaaaaaa.aaaaaaaa.example";

	(void)state;
	take(monitored, 0);
	q.name = name;
	for (unsigned i = 0; i < 26; i++)
		for (char c = 'b'; name[i] != '.' && c <= 'd'; c++) {
			name[i] = c;
			ask(monitored, q, 0, HYDNS_R_MISS);
			name[i] = 'a';
		}
	for (unsigned i = 0; i < 5; i++) {
		q.name = name + i;
		ask(monitored, q, 0, HYDNS_R_MISS);
	}
	assert_seen(monitored, 0, 1, 24 * 3 + 5);
}

/* Letter case, type, variant and whether a rule answers make no other name. */
static void test_same_name(void **state)
{
	struct query q = plain;
	struct answer a = { 0 };
	__u32 handle = publish_address(monitored, &plain, &a);

	(void)state;
	take(monitored, 0);
	ask(monitored, plain, 0, HYDNS_R_ANSWERED);
	q.qtype = 28;
	ask(monitored, q, 0, HYDNS_R_MISS);
	q.edns = q.want_do = true;
	ask(monitored, q, 0, HYDNS_R_MISS);
	q = plain;
	q.name = "wWw.EXAMPLE.com";
	assert_string_equal(plain.name, "www.example.com");
	ask(monitored, q, 1, HYDNS_R_ANSWERED);
	assert_seen(monitored, 0, 2, 1);
	kernel_remove(monitored, handle);
}

/* What ends before its name is looked up counts as a client's; what nobody may have sent does not count. */
static void test_unusual(void **state)
{
	struct frame f;

	(void)state;
	take(monitored, 0);
	frame_query(&f, &plain);
	f.data[f.dns + 2] |= 0x10;             /* opcode */
	frame_checksums(&f);
	expect_pass("opcode", monitored, &f, HYDNS_R_DNS_UNUSUAL);
	assert_seen(monitored, 0, 1, 0);
	f.data[f.udp + 7]++;
	expect_pass("checksum", monitored, &f, HYDNS_R_BAD_CHECKSUM);
	frame_query(&f, &plain);
	f.data[f.udp + 1] = 53, f.data[f.udp] = 0;
	frame_checksums(&f);
	expect_pass("source port", monitored, &f, HYDNS_R_BAD_SOURCE);
	frame_query(&f, &plain);
	f.data[f.udp + 3]++;
	frame_checksums(&f);
	expect_pass("another port", monitored, &f, HYDNS_R_NOT_SERVICE);
	assert_seen(monitored, 0, 0, 0);
}

static void test_refused_client(void **state)
{
	const __u8 all[16] = { 0 };

	(void)state;
	take(monitored, 0);
	kernel_acl(monitored, all, 0, HYDNS_ACL_PASS);
	ask(monitored, plain, 0, HYDNS_R_ACL);
	kernel_acl(monitored, all, 0, HYDNS_ACL_ALLOW);
	assert_seen(monitored, 0, 1, 0);
}

/* An empty store spares the reading of queries, but not while they are counted. */
static void test_empty_store(void **state)
{
	struct frame f;

	(void)state;
	take(monitored, 0);
	kernel_empty(monitored, true);
	frame_query(&f, &plain);
	expect_pass("empty store", monitored, &f, HYDNS_R_MISS);
	kernel_empty(monitored, false);
	assert_seen(monitored, 0, 1, 1);
}

static void test_windows(void **state)
{
	(void)state;
	take(monitored, 0);
	ask(monitored, plain, 0, HYDNS_R_MISS);
	kernel_window(monitored, 1);
	ask(monitored, plain, 1, HYDNS_R_MISS);
	ask(monitored, plain, 2, HYDNS_R_MISS);
	assert_seen(monitored, 0, 1, 1);
	kernel_window(monitored, 0);
	ask(monitored, plain, 3, HYDNS_R_MISS);
	assert_seen(monitored, 1, 2, 1);
	assert_seen(monitored, 0, 1, 1);
	kernel_window(monitored, HYDNS_WINDOWS);       /* no window: nothing is counted, all else goes on */
	ask(monitored, plain, 4, HYDNS_R_MISS);
	kernel_window(monitored, 0);
	assert_seen(monitored, 0, 0, 0);
}

static void test_off(void **state)
{
	(void)state;
	ask(kern, plain, 0, HYDNS_R_MISS);
	assert_seen(kern, 0, 0, 0);
}

/* The whole way through the program, with as many as an estimate is for. */
static void test_many(void **state)
{
	enum { CLIENTS = 2000, NAMES = 500, QUERIES = 6000 };
	struct query q = plain;
	char name[64];
	struct seen s;

	(void)state;
	take(monitored, 0);
	q.name = name;
	for (unsigned i = 0; i < QUERIES; i++) {
		snprintf(name, sizeof(name), "%u.many.example", i % NAMES);
		ask(monitored, q, i % CLIENTS, HYDNS_R_MISS);
	}
	s = take(monitored, 0);
	assert_in_range(s.clients, CLIENTS - CLIENTS * HYDNS_DISTINCT_ERROR / 1000, CLIENTS + CLIENTS * HYDNS_DISTINCT_ERROR / 1000);
	assert_in_range(s.names, NAMES - NAMES * HYDNS_DISTINCT_ERROR / 1000, NAMES + NAMES * HYDNS_DISTINCT_ERROR / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clients_and_names), cmocka_unit_test(test_similar_names), cmocka_unit_test(test_same_name),
		cmocka_unit_test(test_unusual), cmocka_unit_test(test_refused_client), cmocka_unit_test(test_empty_store),
		cmocka_unit_test(test_windows), cmocka_unit_test(test_off), cmocka_unit_test(test_many),
	};
	int failed;

	if (!expect_open(&expect_usual))
		return SKIPPED;
	monitored = open_with(&(struct kernel_options){ .monitor = true, .miss_stage = true, .verbose = true });
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kernel_close(monitored);
	return expect_close(failed);
}
