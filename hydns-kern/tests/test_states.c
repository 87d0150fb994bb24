/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a rule counts: its epoch, its end, its whole key, and the state of its resolver, the access list, the services and the
 * kill switch. Exits 77 (skipped) where BPF programs can't be loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "hydns/hash.h"
#include "expect.h"

static void old_epoch(struct hydns_rule *r)
{
	r->epoch = EPOCH - 1;
}

static void life_of_5s(struct hydns_rule *r)
{
	r->expire_ms = 5000;
}

static void refresh_at_3s(struct hydns_rule *r)
{
	r->refresh_ms = 3000;
}

static void other_resolver(struct hydns_rule *r)
{
	r->resolver = RESOLVER + 1;
}

static void test_epoch(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, old_epoch);
	expect_query_passes("rule of an older epoch", &plain, HYDNS_R_EPOCH);
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
	expect_answer("rule of this epoch", &plain, &a, 0);
	kernel_page(kern)->epoch = EPOCH + 1;
	expect_query_passes("epoch advanced", &plain, HYDNS_R_EPOCH);
	kernel_page(kern)->epoch = EPOCH;
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &plain, &a, 0, other_resolver);
	expect_query_passes("another resolver's rule", &plain, HYDNS_R_MISS);
	kernel_remove(kern, handle);
}

static void test_expiry(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 5 * SECOND_NS - 1, life_of_5s);
	expect_answer("the last nanosecond", &plain, &a, 4);
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &plain, &a, 5 * SECOND_NS, life_of_5s);
	expect_query_passes("expired", &plain, HYDNS_R_EXPIRED);
	kernel_remove(kern, handle);
}

static void test_refresh_claim(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 3 * SECOND_NS - 1, refresh_at_3s);
	expect_answer("before the time of refresh", &plain, &a, 2);
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &plain, &a, 3 * SECOND_NS, refresh_at_3s);
	expect_query_passes("the first one wins the claim", &plain, HYDNS_R_REFRESH);
	for (int i = 0; i < 3; i++)
		expect_answer("the others are answered", &plain, &a, 3);
	kernel_remove(kern, handle);
}

/* Entries with the query's fingerprint whose rule's key differs in one thing alone: the program must not answer from it, and
 * must go on to the other bucket, which has the query's rule. */
static void test_fingerprint_collision(void **state)
{
	/* 18 octets: the last word of eight has the last letter */
	static const struct query asked = { .name = "www1.example.com", .qtype = 1 };
	static const struct {
		const char *what;
		struct query q;
		void (*edit)(struct hydns_rule *);
	} impostor[] = {
		{ "first octet", { .name = "vww1.example.com", .qtype = 1 }, NULL },
		{ "last octet", { .name = "www1.example.con", .qtype = 1 }, NULL },
		{ "length", { .name = "www1.example.com.x", .qtype = 1 }, NULL },
		{ "type", { .name = "www1.example.com", .qtype = 28 }, NULL },
		{ "variant", { .name = "www1.example.com", .qtype = 1, .want_do = true }, NULL },
		{ "resolver", { .name = "www1.example.com", .qtype = 1 }, other_resolver },
	};
	const struct hydns_geometry *g = kernel_geometry(kern);
	struct answer a = { 0 }, b = { 0 };
	__u8 name[HYDNS_NAME_MAX];
	__u64 hash, *first, forged;

	(void)state;
	answer_addresses(&a, 1, 300);
	answer_addresses(&b, 2, 300);
	hash = hydns_key_hash(name, name_wire(asked.name, name), 0x0100, 0, RESOLVER, g->seed);
	first = kernel_index(kern)[hydns_bucket_first(hash, g->buckets - 1)].entry;
	for (size_t i = 0; i < sizeof(impostor) / sizeof(*impostor); i++) {
		__u32 h = kernel_publish(kern, &impostor[i].q, &b, 0, impostor[i].edit), right;

		forged = (hash >> 32) << 32 | h;
		for (int e = 0; e < HYDNS_BUCKET_ENTRIES; e++)
			first[e] = first[e] ? first[e] : forged;
		expect_query_passes(impostor[i].what, &asked, HYDNS_R_MISS);
		right = kernel_publish(kern, &asked, &a, 0, NULL);
		assert_true(h && right);
		expect_answer(impostor[i].what, &asked, &a, 0);
		kernel_remove(kern, right);
		for (int e = 0; e < HYDNS_BUCKET_ENTRIES; e++)
			first[e] = first[e] == forged ? 0 : first[e];
		kernel_remove(kern, h);
	}
}

static void test_heartbeat(void **state)
{
	static const struct {
		__u64 beat;
		int reason;
	} c[] = {
		{ 0, HYDNS_R_RESOLVER_GONE },
		{ NOW_NS - HYDNS_HEARTBEAT_STALE_NS, HYDNS_R_RESOLVER_GONE },
		{ NOW_NS - HYDNS_HEARTBEAT_STALE_NS + 1, HYDNS_R_ANSWERED },
		{ NOW_NS + 4000000, HYDNS_R_ANSWERED },
		{ NOW_NS + HYDNS_HEARTBEAT_BEAT_NS + 1, HYDNS_R_RESOLVER_GONE },
	};
	struct hydns_resolver_config not_ready = { .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1 };
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		kernel_page(kern)->heartbeat_ns = c[i].beat;
		if (c[i].reason)
			expect_query_passes("heartbeat", &plain, c[i].reason);
		else
			expect_answer("heartbeat", &plain, &a, 0);
	}
	kernel_page(kern)->heartbeat_ns = NOW_NS;
	kernel_config(kern, &not_ready);
	expect_query_passes("not ready", &plain, HYDNS_R_RESOLVER_GONE);
	kernel_config(kern, NULL);
	kernel_remove(kern, handle);
}

static void test_acl(void **state)
{
	__u8 mapped[16] = { [10] = 0xff, [11] = 0xff }, any[16] = { 0 };
	struct hydns_resolver_config other_half = {
		.flags = HYDNS_RESOLVER_READY, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 0,
	};
	struct query v6 = plain;
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	v6.ipv6 = true;
	memcpy(mapped + 12, client4, 4);
	handle = publish_address(kern, &plain, &a);
	kernel_acl(kern, mapped, 96 + 24, HYDNS_ACL_PASS);
	expect_query_passes("IPv4 /24 not allowed", &plain, HYDNS_R_ACL);
	expect_answer("IPv6 allowed", &v6, &a, 0);
	kernel_acl(kern, mapped, 128, HYDNS_ACL_ALLOW);
	expect_answer("the longest prefix decides", &plain, &a, 0);
	kernel_acl(kern, mapped, 128, -1);
	kernel_acl(kern, mapped, 96 + 24, -1);
	kernel_acl(kern, client6, 64, HYDNS_ACL_PASS);
	expect_query_passes("IPv6 /64 not allowed", &v6, HYDNS_R_ACL);
	kernel_acl(kern, client6, 64, -1);
	expect_answer("allowed again", &v6, &a, 0);
	kernel_acl(kern, any, 0, -1);
	expect_query_passes("no entry for it, IPv4", &plain, HYDNS_R_ACL);
	expect_query_passes("no entry for it, IPv6", &v6, HYDNS_R_ACL);
	kernel_acl(kern, any, 0, HYDNS_ACL_ALLOW);
	kernel_config(kern, &other_half);
	expect_query_passes("no ACL", &plain, HYDNS_R_ACL);
	kernel_config(kern, NULL);
	kernel_remove(kern, handle);
}

/* With the flag the program does not look up the ACL, which contradicts it here. It does look up a client that may be the host
 * itself, and follows the ACL. */
static void test_everybody_allowed(void **state)
{
	__u8 mapped[16] = { [10] = 0xff, [11] = 0xff };
	struct hydns_resolver_config c = {
		.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_ALLOWS_IPV4, .edns_size = EDNS_SIZE, .max_udp = 4096,
	};
	struct query v6 = plain;
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	v6.ipv6 = true;
	memcpy(mapped + 12, client4, 4);
	handle = publish_address(kern, &plain, &a);
	kernel_config(kern, &c);
	expect_answer("every IPv4 client allowed", &plain, &a, 0);
	expect_query_passes("but not IPv6", &v6, HYDNS_R_ACL);
	kernel_own(kern, mapped, true);
	expect_query_passes("but not the host itself", &plain, HYDNS_R_ACL);
	c.acl_half = 1;
	kernel_config(kern, &c);
	expect_answer("the host itself, where the ACL allows it", &plain, &a, 0);
	kernel_own(kern, mapped, false);
	c.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_ALLOWS_IPV6;
	c.acl_half = 0;
	kernel_config(kern, &c);
	expect_answer("every IPv6 client allowed", &v6, &a, 0);
	expect_query_passes("but not IPv4", &plain, HYDNS_R_ACL);
	kernel_own(kern, client6, true);
	expect_query_passes("but not the host itself, over IPv6", &v6, HYDNS_R_ACL);
	kernel_own(kern, client6, false);
	expect_answer("every IPv6 client allowed again", &v6, &a, 0);
	kernel_config(kern, NULL);
	kernel_remove(kern, handle);
}

/* The cached service counts until the serial advances. */
static void test_service_goes(void **state)
{
	struct query v6 = plain;
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	v6.ipv6 = true;
	handle = publish_address(kern, &plain, &a);
	for (int i = 0; i < 2; i++) {
		expect_answer("served", &plain, &a, 0);
		expect_answer("served", &v6, &a, 0);
		kernel_serve(kern, false);
		expect_query_passes("no longer", &plain, HYDNS_R_NOT_SERVICE);
		expect_query_passes("no longer", &v6, HYDNS_R_NOT_SERVICE);
		kernel_serve(kern, true);
	}
	kernel_remove(kern, handle);
}

/* A barrier orders the loads of the serial and of the table of services. An x86 keeps that order anyway, so no run would show
 * that the barrier is missing: this looks for its instruction. */
static void test_order_of_services(void **state)
{
	(void)state;
	assert_true(kernel_instructions(kern, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_OR | BPF_FETCH) > 0);
}

static void test_kill_switch(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	kernel_pause(kern, true);
	expect_query_passes("paused", &plain, HYDNS_R_PAUSED);
	kernel_pause(kern, false);
	expect_answer("resumed", &plain, &a, 0);
	kernel_empty(kern, true);
	expect_query_passes("marked empty", &plain, HYDNS_R_EMPTY);
	kernel_empty(kern, false);
	expect_answer("no longer marked empty", &plain, &a, 0);
	kernel_remove(kern, handle);
}

/* While the program answers nothing, a dry run also gives the reason that a packet would otherwise have. */
static void test_dry_beneath(void **state)
{
	struct query other = { .name = "www.example.net", .qtype = 1 };
	struct answer a = { 0 };
	struct frame f, g;
	__u32 handle;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	frame_query(&f, &plain);
	frame_query(&g, &other);
	assert_int_equal(kernel_dry(kern, &f).beneath, HYDNS_R_ANSWERED);
	assert_int_equal(kernel_dry(kern, &g).beneath, HYDNS_R_MISS);
	kernel_empty(kern, true);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_EMPTY);
	assert_int_equal(kernel_dry(kern, &g).beneath, HYDNS_R_MISS);
	kernel_pause(kern, true);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_PAUSED);
	assert_int_equal(kernel_dry(kern, &f).beneath, HYDNS_R_ANSWERED);
	kernel_pause(kern, false);
	kernel_empty(kern, false);
	kernel_remove(kern, handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epoch), cmocka_unit_test(test_expiry), cmocka_unit_test(test_refresh_claim),
		cmocka_unit_test(test_fingerprint_collision), cmocka_unit_test(test_heartbeat),
		cmocka_unit_test(test_acl), cmocka_unit_test(test_everybody_allowed),
		cmocka_unit_test(test_service_goes), cmocka_unit_test(test_order_of_services),
		cmocka_unit_test(test_kill_switch), cmocka_unit_test(test_dry_beneath),
	};

	return expect_run(tests);
}
