/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Single packets through the program by BPF_PROG_TEST_RUN: what it answers is what the resolver would
 * have sent, octet by octet; what it passes is untouched and counted under its reason. The clock stands
 * still at NOW_NS. NO_ROOM (the driver has no tailroom) is the one outcome that a test run can't bring
 * about, and ABORTED must never come about. Exits 77 (skipped) where BPF programs can't be loaded.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "hydns/hash.h"
#include "expect.h"

/* Of the million that the verifier is willing to process; kernels differ, and code grows. */
#define VERIFIER_BUDGET 400000
#define TIMED_RUNS      2000

static const struct query plain = { .name = "www.example.com", .qtype = 1, .id = 0x4711 };

/* --- hits ------------------------------------------------------------------------------------------- */
static const __u8 cookie[] = { 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8 };

static void test_hits(void **state)
{
	static const struct {
		const char *what;
		struct query q;
	} c[] = {
		{ "IPv4", { 0 } },
		{ "IPv6", { .ipv6 = true } },
		{ "letter case kept", { .name = "wWw.EXAMPLE.cOm" } },
		{ "letter case kept, IPv6", { .name = "WWW.example.COM", .ipv6 = true } },
		{ "AD asked, answer not secure", { .ad = true } },
		{ "EDNS", { .edns = true, .edns_size = 1232 } },
		{ "EDNS, IPv6", { .edns = true, .edns_size = 4096, .ipv6 = true } },
		{ "EDNS size below 512", { .edns = true, .edns_size = 100 } },
		{ "cookie", { .edns = true, .edns_size = 1232, .options = cookie, .options_len = 12 } },
		{ "cookie, IPv6", { .edns = true, .edns_size = 1232, .options = cookie, .options_len = 12,
				    .ipv6 = true } },
	};
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 2, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
	assert_true(handle);
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct query q = c[i].q;

		q.name = q.name ? q.name : plain.name;
		q.qtype = 1;
		q.id = 0x1000 + i;
		expect_answer(c[i].what, &q, &a, 0);
	}
	assert_int_equal(hydns_store_hits(kernel_store(kern), handle), sizeof(c) / sizeof(*c));
	kernel_remove(kern, handle);
	expect_query_passes("removed", &plain, HYDNS_R_MISS);
}

/* A short answer is copied behind the question as it came; a long one comes with its own, in small letters. */
static void test_letters_of_a_long_answer(void **state)
{
	struct query q = { .name = "wWw.EXAMPLE.cOm", .qtype = 16, .id = 0x4711 };
	__u8 text[200] = { 199 };
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_add(&a, ANSWER, NULL, 16, 300, text, sizeof(text));
	assert_true(a.len > 128);
	handle = kernel_publish(kern, &q, &a, 0, NULL);
	assert_true(handle);
	expect_answer("IPv4", &q, &a, 0);
	q.ipv6 = true;
	expect_answer("IPv6", &q, &a, 0);
	kernel_remove(kern, handle);
}

static void test_do_and_secure(void **state)
{
	struct query with_do = plain, ad = plain;
	struct answer a = { .secure = true }, signed_a = { .secure = true };
	__u8 rrsig[90] = { 0, 1, 5, 3 };
	__u32 h[2];

	(void)state;
	with_do.edns = with_do.want_do = ad.ad = true;
	with_do.edns_size = 1232;
	answer_addresses(&a, 1, 300);
	answer_addresses(&signed_a, 1, 300);
	answer_add(&signed_a, ANSWER, NULL, 46, 300, rrsig, sizeof(rrsig));
	h[0] = kernel_publish(kern, &plain, &a, 0, NULL);
	expect_query_passes("DO, only the plain variant known", &with_do, HYDNS_R_MISS);
	h[1] = kernel_publish(kern, &with_do, &signed_a, 0, NULL);
	expect_answer("secure, nobody asked for AD", &plain, &a, 0);
	expect_answer("secure, AD asked", &ad, &a, 0);
	expect_answer("secure, DO", &with_do, &signed_a, 0);
	kernel_remove(kern, h[0]);
	kernel_remove(kern, h[1]);
}

/* RD is the query's in the reply, and the two kinds of query have answers of their own. */
static void test_no_recursion_desired(void **state)
{
	struct query norec = plain, norec_do = plain;
	struct answer a = { 0 }, referral = { .flags = 0x8000 };
	__u32 h[2];

	(void)state;
	norec.norec = norec_do.norec = norec_do.edns = norec_do.want_do = true;
	norec_do.edns_size = 1232;
	answer_addresses(&a, 1, 300);
	answer_add(&referral, AUTHORITY, NULL, 2, 300, (const __u8 *)"\2ns\300\14", 5);
	h[0] = kernel_publish(kern, &plain, &a, 0, NULL);
	expect_query_passes("RD clear, only the other variant known", &norec, HYDNS_R_MISS);
	h[1] = kernel_publish(kern, &norec, &referral, 0, NULL);
	expect_answer("RD clear", &norec, &referral, 0);
	expect_answer("RD set", &plain, &a, 0);
	expect_query_passes("RD clear and DO", &norec_do, HYDNS_R_MISS);
	norec_do.want_do = false;
	expect_answer("RD clear and EDNS", &norec_do, &referral, 0);
	kernel_remove(kern, h[0]);
	kernel_remove(kern, h[1]);
}

static void test_ttl_counts_down(void **state)
{
	static const struct {
		__u64 age_ns;
		__u32 seconds;
	} c[] = {
		{ 0, 0 }, { SECOND_NS - 1, 0 }, { SECOND_NS, 1 }, { SECOND_NS + 1, 1 }, { 299 * SECOND_NS, 299 },
		{ 255 * SECOND_NS, 255 }, { 256 * SECOND_NS, 256 },
		{ 301 * SECOND_NS, 301 }, /* no TTL goes below 0, though a rule should have ended by then */
		{ -3000000ULL, 0 }, /* begun between two ticks of the coarse clock */
	};
	/* name lengths of both parities: the answer then begins at an even or odd offset */
	static const char *name[] = { "a.example", "ab.example" };

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		for (size_t n = 0; n < 2; n++) {
			struct query q = { .name = name[n], .qtype = 16, .id = i, .edns = i & 1,
					   .ipv6 = i & 2 };
			struct answer a = { 0 };
			__u32 handle;

			/* rdata of odd lengths moves the TTLs behind to odd offsets */
			answer_add(&a, ANSWER, NULL, 16, 300, "\2hi", 3);
			answer_add(&a, ANSWER, NULL, 16, 300, "\4four", 5);
			answer_add(&a, AUTHORITY, "example", 2, 0x01020304, "\2ns\xc0\x0c", 5);
			handle = kernel_publish(kern, &q, &a, c[i].age_ns, NULL);
			assert_true(handle);
			expect_answer("TTL", &q, &a, c[i].seconds);
			kernel_remove(kern, handle);
		}
	}
}

static void test_static_ttl(void **state)
{
	struct answer a = { .static_ttl = true };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 100 * SECOND_NS, NULL);
	expect_answer("authoritative data", &plain, &a, 100);
	kernel_remove(kern, handle);
}

/* A name of exactly len octets on the wire (len 2 does not exist). */
static void name_of(unsigned len, char *out)
{
	unsigned left = len - 1;

	*out = 0;
	while (left) {
		unsigned label = left > 64 ? (left == 65 ? 63 : 64) : left;

		memset(out, 'a' + left % 26, label - 1);
		out += label - 1;
		*out++ = '.';
		*out = 0;
		left -= label;
	}
	if (len == 1)
		strcpy(out, ".");
}

static void test_every_name_length(void **state)
{
	char name[300];

	(void)state;
	for (unsigned len = 1; len <= HYDNS_NAME_MAX; len++) {
		struct query q = { .name = name, .qtype = 28, .id = len, .edns = len & 1, .ipv6 = len & 2 };
		struct answer a = { 0 };
		__u32 handle;

		if (len == 2)
			continue;
		name_of(len, name);
		answer_add(&a, ANSWER, NULL, 28, 1000, service6, 16);
		handle = kernel_publish(kern, &q, &a, SECOND_NS, NULL);
		assert_true(handle);
		expect_answer(name, &q, &a, 1);
		kernel_remove(kern, handle);
	}
}

static void test_every_answer_length(void **state)
{
	__u8 text[1500];

	(void)state;
	memset(text, 't', sizeof(text));
	for (unsigned len = 1; len < HYDNS_SLOT_MOST; len++) {
		struct query q = { .name = len & 1 ? "t.example" : "tx.example", .qtype = 16, .id = len,
				   .edns = true, .edns_size = 4096, .ipv6 = len & 2 };
		struct answer a = { 0 };
		__u32 handle;

		if (HYDNS_RULE_SPACE(12, 12 + len, 1, 0) > HYDNS_SLOT_MOST)
			break;
		answer_add(&a, ANSWER, NULL, 16, 77, text, len);
		handle = kernel_publish(kern, &q, &a, SECOND_NS, NULL);
		assert_true(handle);
		if (q.ipv6 && 40 + 8 + 12 + (len & 1 ? 11 : 12) + 4 + a.len + HYDNS_OPT_LEN > 1280)
			expect_query_passes("IPv6 above 1,280 octets", &q, HYDNS_R_TOO_BIG);
		else
			expect_answer("answer length", &q, &a, 1);
		kernel_remove(kern, handle);
	}
}

static void test_negative(void **state)
{
	static const __u8 soa[] = "\2ns\xc0\x14\4root\xc0\x14\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5";
	struct query q = { .name = "nothere.example", .qtype = 1, .id = 9 };
	struct answer nx = { .flags = REPLY_FLAGS | 3 }, nodata = { .flags = REPLY_FLAGS | 0x0400 };
	__u32 handle;

	(void)state;
	answer_add(&nx, AUTHORITY, "example", 6, 60, soa, sizeof(soa) - 1);
	answer_add(&nodata, AUTHORITY, "example", 6, 60, soa, sizeof(soa) - 1);
	handle = kernel_publish(kern, &q, &nx, 7 * SECOND_NS, NULL);
	expect_answer("NXDOMAIN", &q, &nx, 7);
	kernel_remove(kern, handle);
	q.qtype = 65;
	handle = kernel_publish(kern, &q, &nodata, 7 * SECOND_NS, NULL);
	expect_answer("NODATA with AA", &q, &nodata, 7);
	kernel_remove(kern, handle);
}

static void test_empty_answer_shrinks(void **state)
{
	struct query q = { .name = "empty.example", .qtype = 1, .edns = true, .edns_size = 512,
			   .options = cookie, .options_len = 12 };
	struct answer a = { .flags = REPLY_FLAGS };
	__u32 handle = kernel_publish(kern, &q, &a, 0, NULL);

	(void)state;
	assert_true(handle);
	expect_answer("a reply shorter than the query", &q, &a, 0);
	kernel_remove(kern, handle);
}

static void test_ethernet_padding(void **state)
{
	struct query q = { .name = ".", .qtype = 1 };
	struct answer a = { .flags = REPLY_FLAGS };
	__u32 handle = kernel_publish(kern, &q, &a, 0, NULL);
	struct frame f;

	(void)state;
	frame_query(&f, &q);
	memset(f.data + f.len, 0xaa, 60 - f.len);
	f.len = 60;
	expect_frame("padded to 60 octets", kern, &f, &q, &a, 0, 0);
	kernel_remove(kern, handle);
}

/* --- where a rule does not count -------------------------------------------------------------------- */
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

static void other_authority(struct hydns_rule *r)
{
	r->authority = RESOLVER + 1;
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
	handle = kernel_publish(kern, &plain, &a, 0, other_authority);
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
	expect_answer("before the refresh time", &plain, &a, 2);
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &plain, &a, 3 * SECOND_NS, refresh_at_3s);
	expect_query_passes("the first one wins the claim", &plain, HYDNS_R_REFRESH);
	for (int i = 0; i < 3; i++)
		expect_answer("the others are answered", &plain, &a, 3);
	kernel_remove(kern, handle);
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
	struct hydns_authority_config not_ready = { .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1 };
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
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
	struct hydns_authority_config other_half = {
		.flags = HYDNS_AUTH_READY, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 0,
	};
	struct query v6 = plain;
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	v6.ipv6 = true;
	memcpy(mapped + 12, client4, 4);
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
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
	expect_query_passes("on no list, IPv4", &plain, HYDNS_R_ACL);
	expect_query_passes("on no list, IPv6", &v6, HYDNS_R_ACL);
	kernel_acl(kern, any, 0, HYDNS_ACL_ALLOW);
	kernel_config(kern, &other_half);
	expect_query_passes("no ACL", &plain, HYDNS_R_ACL);
	kernel_config(kern, NULL);
	kernel_remove(kern, handle);
}

/* The flag stands for the ACL, which is not asked then: here the two contradict each other. Of a client that may be the
 * host itself the ACL is asked, and refuses it or does not. */
static void test_everybody_allowed(void **state)
{
	__u8 mapped[16] = { [10] = 0xff, [11] = 0xff };
	struct hydns_authority_config c = {
		.flags = HYDNS_AUTH_READY | HYDNS_AUTH_ALLOWS_IPV4, .edns_size = EDNS_SIZE, .max_udp = 4096,
	};
	struct query v6 = plain;
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	v6.ipv6 = true;
	memcpy(mapped + 12, client4, 4);
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
	kernel_config(kern, &c);
	expect_answer("every IPv4 client allowed", &plain, &a, 0);
	expect_query_passes("but not IPv6", &v6, HYDNS_R_ACL);
	kernel_own(kern, mapped, true);
	expect_query_passes("but not the host itself", &plain, HYDNS_R_ACL);
	c.acl_half = 1;
	kernel_config(kern, &c);
	expect_answer("whose address the ACL allows", &plain, &a, 0);
	kernel_own(kern, mapped, false);
	c.flags = HYDNS_AUTH_READY | HYDNS_AUTH_ALLOWS_IPV6;
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

/* What the program remembers of the last service counts until a change is noted. */
static void test_service_goes(void **state)
{
	struct query v6 = plain;
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	v6.ipv6 = true;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
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
		struct hydns_authority_config cfg = {
			.flags = HYDNS_AUTH_READY, .edns_size = EDNS_SIZE, .max_udp = c[i].max_udp,
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

/* To such a client named says less from its zones, so the answer that others get is not its own. */
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

/* Test runs happen on the loopback interface of the network namespace: a new one, with a small MTU. */
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

static void test_kill_switch(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
	kernel_pause(kern, true);
	expect_query_passes("paused", &plain, HYDNS_R_PAUSED);
	kernel_pause(kern, false);
	expect_answer("resumed", &plain, &a, 0);
	kernel_empty(kern, true);
	expect_query_passes("said to be empty", &plain, HYDNS_R_EMPTY);
	kernel_empty(kern, false);
	expect_answer("no longer", &plain, &a, 0);
	kernel_remove(kern, handle);
}

/* --- every reason to pass ----------------------------------------------------------------------------- */
/* Changes to a frame of the query q; sealed: lengths and checksums are then made right again. */
struct change {
	const char *what;
	struct query q;
	int reason;
	bool sealed;
	void (*edit)(struct frame *f);
};

#define L3(f)  ((f)->data + (f)->l3)
#define UDP(f) ((f)->data + (f)->udp)
#define DNS(f) ((f)->data + (f)->dns)
#define EDIT(name, code) static void name(struct frame *f) { code; }

EDIT(arp, f->data[12] = 8; f->data[13] = 6)
EDIT(vlan, f->data[12] = 0x81; f->data[13] = 0)
EDIT(runt, f->len = 14)
EDIT(cut_ip, f->len = 30)
EDIT(group_mac, f->data[0] |= 1)
EDIT(group_source_mac, f->data[6] |= 1)
EDIT(tcp4, L3(f)[9] = 6)
EDIT(tcp6, L3(f)[6] = 6)
EDIT(ihl, L3(f)[0] = 0x46)
EDIT(version, L3(f)[0] = 0x65)
EDIT(more_fragments, L3(f)[6] = 0x20)
EDIT(last_fragment, L3(f)[7] = 1)
EDIT(evil_bit, L3(f)[6] = 0x80)
EDIT(ip_longer, L3(f)[3] += 1)
EDIT(ip6_longer, L3(f)[5] += 1)
EDIT(hop_by_hop, L3(f)[6] = 0)
EDIT(fragment6, L3(f)[6] = 44)
EDIT(udp_longer, UDP(f)[5] += 1)
EDIT(udp_shorter, UDP(f)[5] -= 1)
EDIT(other_address, L3(f)[19]++)
EDIT(other_address6, L3(f)[39]++)
EDIT(other_port, UDP(f)[3] = 54)
EDIT(ip_checksum, L3(f)[11]++)
EDIT(udp_checksum, UDP(f)[7]++)
EDIT(udp_unchecked, UDP(f)[6] = UDP(f)[7] = 0)
EDIT(source_zero, memset(L3(f) + 12, 0, 4))
EDIT(source_loopback, L3(f)[12] = 127)
EDIT(source_multicast, L3(f)[12] = 224)
EDIT(source_broadcast, memset(L3(f) + 12, 255, 4))
EDIT(source_itself, memcpy(L3(f) + 12, service4, 4))
EDIT(source6_zero, memset(L3(f) + 8, 0, 16))
EDIT(source6_loopback, memset(L3(f) + 8, 0, 16); L3(f)[23] = 1)
EDIT(source6_mapped, memset(L3(f) + 8, 0, 10); memset(L3(f) + 18, 255, 2))
EDIT(source6_multicast, L3(f)[8] = 0xff)
EDIT(source6_itself, memcpy(L3(f) + 8, service6, 16))
EDIT(port_zero, UDP(f)[0] = UDP(f)[1] = 0)
EDIT(port_dns, UDP(f)[0] = 0; UDP(f)[1] = 53)
EDIT(too_long, memset(f->data + f->len, 0, 600); f->len = f->dns + HYDNS_QUERY_MAX + 1)
EDIT(too_short, f->len = f->dns + 16)
EDIT(qr, DNS(f)[2] |= 0x80)
EDIT(opcode_notify, DNS(f)[2] |= 0x20)
EDIT(aa, DNS(f)[2] |= 4)
EDIT(tc, DNS(f)[2] |= 2)
EDIT(no_rd, DNS(f)[2] = 0)
EDIT(ra, DNS(f)[3] |= 0x80)
EDIT(z, DNS(f)[3] |= 0x40)
EDIT(cd, DNS(f)[3] |= 0x10)
EDIT(rcode, DNS(f)[3] |= 1)
EDIT(qdcount_0, DNS(f)[5] = 0)
EDIT(qdcount_2, DNS(f)[5] = 2)
EDIT(qdcount_257, DNS(f)[4] = 1)
EDIT(ancount, DNS(f)[7] = 1)
EDIT(nscount, DNS(f)[9] = 1)
EDIT(arcount_2, DNS(f)[11] = 2)
EDIT(arcount_256, DNS(f)[10] = 1)
EDIT(arcount_without_opt, DNS(f)[11] = 1)
EDIT(trailing, f->data[f->len++] = 0)
EDIT(label_64, DNS(f)[12] = 64)
EDIT(label_runs_out, DNS(f)[12] = 63)
EDIT(compressed, DNS(f)[16] = 0xc0)
EDIT(class_ch, DNS(f)[f->len - f->dns - 1] = 3)
EDIT(class_any, DNS(f)[f->len - f->dns - 1] = 255)
EDIT(question_cut, f->len -= 1)
#define OPT(f) (DNS(f) + (f)->len - (f)->dns - HYDNS_OPT_LEN)
EDIT(opt_not_root, OPT(f)[0] = 1)
EDIT(opt_other_type, OPT(f)[2] = 42)
EDIT(opt_rcode, OPT(f)[5] = 1)
EDIT(opt_version, OPT(f)[6] = 1)
EDIT(opt_z, OPT(f)[8] = 1)
EDIT(opt_z_high, OPT(f)[7] = 0x40)
EDIT(opt_longer, OPT(f)[10] = 1)
EDIT(opt_cut, f->len -= 1)
EDIT(opt_trailing, f->data[f->len++] = 0)

static const __u8 nsid[] = { 0, 3, 0, 0 };
static const __u8 subnet[] = { 0, 8, 0, 7, 0, 1, 24, 0, 192, 0, 2 };
static const __u8 half_option[] = { 0, 10, 0 };
static const __u8 option_runs_out[] = { 0, 10, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8 };
static const __u8 nine_options[4 * 9] = { 0 };
#define LABEL_63 "a23456789012345678901234567890123456789012345678901234567890123"
#define V6     { .ipv6 = true }
#define EDNS   { .edns = true, .edns_size = 1232 }
#define WITH(o) { .edns = true, .edns_size = 1232, .options = o, .options_len = sizeof(o) }

static const struct change changes[] = {
	{ "ARP", {}, HYDNS_R_NOT_IP, false, arp },
	{ "VLAN tag while tags are off", {}, HYDNS_R_NOT_IP, false, vlan },
	{ "Ethernet header alone", {}, HYDNS_R_FRAME_CUT, false, runt },
	{ "IP header cut", {}, HYDNS_R_FRAME_CUT, false, cut_ip },
	{ "multicast MAC", {}, HYDNS_R_GROUP_ADDRESS, true, group_mac },
	{ "multicast source MAC", {}, HYDNS_R_GROUP_ADDRESS, true, group_source_mac },
	{ "TCP", {}, HYDNS_R_NOT_UDP, true, tcp4 },
	{ "TCP, IPv6", V6, HYDNS_R_NOT_UDP, true, tcp6 },
	{ "IP options", {}, HYDNS_R_IP_UNUSUAL, true, ihl },
	{ "IP version 6 in IPv4", {}, HYDNS_R_IP_UNUSUAL, true, version },
	{ "first fragment", {}, HYDNS_R_FRAGMENT, true, more_fragments },
	{ "last fragment", {}, HYDNS_R_FRAGMENT, true, last_fragment },
	{ "reserved IP flag", {}, HYDNS_R_FRAGMENT, true, evil_bit },
	{ "IP length beyond the frame", {}, HYDNS_R_IP_LENGTH, false, ip_longer },
	{ "IPv6 length beyond the frame", V6, HYDNS_R_IP_LENGTH, false, ip6_longer },
	{ "hop-by-hop header", V6, HYDNS_R_EXTENSION_HEADER, false, hop_by_hop },
	{ "fragment header", V6, HYDNS_R_FRAGMENT, false, fragment6 },
	{ "UDP length too large", {}, HYDNS_R_UDP_LENGTH, false, udp_longer },
	{ "UDP length too small", {}, HYDNS_R_UDP_LENGTH, false, udp_shorter },
	{ "another address", {}, HYDNS_R_NOT_SERVICE, true, other_address },
	{ "another IPv6 address", V6, HYDNS_R_NOT_SERVICE, true, other_address6 },
	{ "another port", {}, HYDNS_R_NOT_SERVICE, true, other_port },
	{ "wrong IP checksum", {}, HYDNS_R_BAD_CHECKSUM, false, ip_checksum },
	{ "wrong UDP checksum", {}, HYDNS_R_BAD_CHECKSUM, false, udp_checksum },
	{ "wrong UDP checksum, IPv6", V6, HYDNS_R_BAD_CHECKSUM, false, udp_checksum },
	{ "no UDP checksum, IPv6", V6, HYDNS_R_BAD_CHECKSUM, false, udp_unchecked },
	{ "partial UDP checksum while off", {}, HYDNS_R_BAD_CHECKSUM, false, frame_partial },
	{ "source 0.0.0.0", {}, HYDNS_R_BAD_SOURCE, true, source_zero },
	{ "source 127/8", {}, HYDNS_R_BAD_SOURCE, true, source_loopback },
	{ "source multicast", {}, HYDNS_R_BAD_SOURCE, true, source_multicast },
	{ "source broadcast", {}, HYDNS_R_BAD_SOURCE, true, source_broadcast },
	{ "source is destination", {}, HYDNS_R_BAD_SOURCE, true, source_itself },
	{ "source ::", V6, HYDNS_R_BAD_SOURCE, true, source6_zero },
	{ "source ::1", V6, HYDNS_R_BAD_SOURCE, true, source6_loopback },
	{ "source IPv4-mapped", V6, HYDNS_R_BAD_SOURCE, true, source6_mapped },
	{ "source multicast, IPv6", V6, HYDNS_R_BAD_SOURCE, true, source6_multicast },
	{ "source is destination, IPv6", V6, HYDNS_R_BAD_SOURCE, true, source6_itself },
	{ "source port 0", {}, HYDNS_R_BAD_SOURCE, true, port_zero },
	{ "source port 53", {}, HYDNS_R_BAD_SOURCE, true, port_dns },
	{ "longer than the path reads", {}, HYDNS_R_TOO_LONG, true, too_long },
	{ "shorter than a question", {}, HYDNS_R_DNS_UNUSUAL, true, too_short },
	{ "a reply", {}, HYDNS_R_DNS_UNUSUAL, true, qr },
	{ "NOTIFY", {}, HYDNS_R_DNS_UNUSUAL, true, opcode_notify },
	{ "AA", {}, HYDNS_R_DNS_UNUSUAL, true, aa },
	{ "TC", {}, HYDNS_R_DNS_UNUSUAL, true, tc },
	{ "RD clear, only the variant with it known", {}, HYDNS_R_MISS, true, no_rd },
	{ "RA", {}, HYDNS_R_DNS_UNUSUAL, true, ra },
	{ "Z", {}, HYDNS_R_DNS_UNUSUAL, true, z },
	{ "CD", {}, HYDNS_R_DNS_UNUSUAL, true, cd },
	{ "RCODE", {}, HYDNS_R_DNS_UNUSUAL, true, rcode },
	{ "QDCOUNT 0", {}, HYDNS_R_DNS_UNUSUAL, true, qdcount_0 },
	{ "QDCOUNT 2", {}, HYDNS_R_DNS_UNUSUAL, true, qdcount_2 },
	{ "QDCOUNT 257", {}, HYDNS_R_DNS_UNUSUAL, true, qdcount_257 },
	{ "ANCOUNT 1", {}, HYDNS_R_DNS_UNUSUAL, true, ancount },
	{ "NSCOUNT 1", {}, HYDNS_R_DNS_UNUSUAL, true, nscount },
	{ "ARCOUNT 2", EDNS, HYDNS_R_DNS_UNUSUAL, true, arcount_2 },
	{ "ARCOUNT 256", {}, HYDNS_R_DNS_UNUSUAL, true, arcount_256 },
	{ "octets after the question", {}, HYDNS_R_DNS_UNUSUAL, true, trailing },
	{ "OPT but ARCOUNT 0", {}, HYDNS_R_EDNS_UNUSUAL, true, arcount_without_opt },
	{ "label type 01", {}, HYDNS_R_QUESTION_UNUSUAL, true, label_64 },
	{ "label of 64 octets", { .name = LABEL_63 ".\1b" }, HYDNS_R_QUESTION_UNUSUAL, true, label_64 },
	{ "label longer than the message", {}, HYDNS_R_QUESTION_UNUSUAL, true, label_runs_out },
	{ "compressed name", {}, HYDNS_R_QUESTION_UNUSUAL, true, compressed },
	{ "class CH", {}, HYDNS_R_QUESTION_UNUSUAL, true, class_ch },
	{ "class ANY", {}, HYDNS_R_QUESTION_UNUSUAL, true, class_any },
	{ "question cut", {}, HYDNS_R_QUESTION_UNUSUAL, true, question_cut },
	{ "type ANY", { .qtype = 255 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "type AXFR", { .qtype = 252 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "type TKEY", { .qtype = 249 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "type NXNAME", { .qtype = 128 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "type OPT", { .qtype = 41 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "OPT below another name", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_not_root },
	{ "additional record other than OPT", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_other_type },
	{ "extended RCODE", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_rcode },
	{ "EDNS version 1", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_version },
	{ "EDNS Z bit", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_z },
	{ "EDNS flag beside DO", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_z_high },
	{ "OPT longer than the message", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_longer },
	{ "OPT cut", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_cut },
	{ "octets after OPT", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_trailing },
	{ "option NSID", WITH(nsid), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "option CLIENT-SUBNET", WITH(subnet), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "half an option", WITH(half_option), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "option longer than OPT", WITH(option_runs_out), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "nine options", WITH(nine_options), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "another name", { .name = "www.example.net" }, HYDNS_R_MISS, true, NULL },
	{ "another type", { .qtype = 28 }, HYDNS_R_MISS, true, NULL },
	{ "type above the metas", { .qtype = 257 }, HYDNS_R_MISS, true, NULL },
};

static void test_passes(void **state)
{
	struct answer a = { 0 };
	struct frame f;
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct query q = changes[i].q;

		q.name = q.name ? q.name : plain.name;
		q.qtype = q.qtype ? q.qtype : plain.qtype;
		frame_query(&f, &q);
		if (changes[i].edit)
			changes[i].edit(&f);
		if (changes[i].sealed)
			frame_seal(&f);
		expect_pass(changes[i].what, kern, &f, changes[i].reason);
	}
	expect_answer("and the plain query is still answered", &plain, &a, 0);
	kernel_remove(kern, handle);
}

/* --- less usual, but to be answered --------------------------------------------------------------------- */
static void test_no_checksum(void **state)
{
	struct answer a = { 0 };
	struct frame f;
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
	frame_query(&f, &plain);
	udp_unchecked(&f);
	expect_frame("IPv4 without UDP checksum", kern, &f, &plain, &a, 0, 0);
	kernel_remove(kern, handle);
}

/* Entries with the right fingerprint that lead to a rule whose key differs in one thing alone: the other
 * bucket, with the right rule, must be asked too. */
static void test_fingerprint_collision(void **state)
{
	static const struct {
		const char *what;
		struct query q;
		void (*edit)(struct hydns_rule *);
	} impostor[] = {
		{ "first octet", { .name = "vww.example.com", .qtype = 1 }, NULL },
		{ "last octet", { .name = "www.example.con", .qtype = 1 }, NULL },
		{ "length", { .name = "www.example.com.x", .qtype = 1 }, NULL },
		{ "type", { .name = "www.example.com", .qtype = 28 }, NULL },
		{ "variant", { .name = "www.example.com", .qtype = 1, .want_do = true }, NULL },
		{ "resolver", { .name = "www.example.com", .qtype = 1 }, other_authority },
	};
	const struct hydns_geometry *g = kernel_geometry(kern);
	struct answer a = { 0 }, b = { 0 };
	__u8 name[HYDNS_NAME_MAX];
	__u64 hash, *first, forged;

	(void)state;
	answer_addresses(&a, 1, 300);
	answer_addresses(&b, 2, 300);
	hash = hydns_key_hash(name, name_wire(plain.name, name), 0x0100, 0, RESOLVER, g->seed);
	first = kernel_index(kern)[hydns_bucket_first(hash, g->buckets - 1)].entry;
	for (size_t i = 0; i < sizeof(impostor) / sizeof(*impostor); i++) {
		__u32 h = kernel_publish(kern, &impostor[i].q, &b, 0, impostor[i].edit), right;

		forged = (hash >> 32) << 32 | h;
		for (int e = 0; e < HYDNS_BUCKET_ENTRIES; e++)
			first[e] = first[e] ? first[e] : forged;
		expect_query_passes(impostor[i].what, &plain, HYDNS_R_MISS);
		right = kernel_publish(kern, &plain, &a, 0, NULL);
		assert_true(h && right);
		expect_answer(impostor[i].what, &plain, &a, 0);
		kernel_remove(kern, right);
		for (int e = 0; e < HYDNS_BUCKET_ENTRIES; e++)
			first[e] = first[e] == forged ? 0 : first[e];
		kernel_remove(kern, h);
	}
}

static void test_authority_counts(void **state)
{
	struct hydns_authority_count before, after;
	struct query q = { .name = "count.example", .qtype = 1, .ipv6 = true, .edns = true, .ad = true };
	struct answer a = { 0 };
	__u8 message[FRAME_MAX];
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &q, &a, 0, NULL);
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

/* As many as stand there in the slot, then by processor, until the store allows as many again; none is lost. */
static void test_where_hits_are_counted(void **state)
{
	struct hydns_store *s = kernel_store(kern);
	struct answer a = { 0 };
	__u32 handle, n = 0;
	struct frame f;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
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

/* Asks so often on the first processor that this one does not run on, or here where there is no other. */
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

/* Processors that share a row count every answer, too. */
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
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
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

/* Between the count of changes and the table of services stands what keeps them in order on arm64. An x86 keeps it anyway:
 * there this looks for the instruction, whose lack nothing else would show. */
static void test_order_of_services(void **state)
{
	(void)state;
	assert_true(kernel_instructions(kern, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_OR | BPF_FETCH) > 0);
}

/* --- load-time switches ------------------------------------------------------------------------------- */
static void test_partial_checksum(void **state)
{
	struct kernel *k = open_with(&(struct kernel_options){ .partial_checksum = true, .verbose = true });
	struct query v6 = plain;
	struct answer a = { 0 };
	struct frame f;

	(void)state;
	v6.ipv6 = true;
	answer_addresses(&a, 1, 300);
	assert_true(kernel_publish(k, &plain, &a, 0, NULL));
	frame_query(&f, &plain);
	expect_frame("full checksum", k, &f, &plain, &a, 0, 0);
	frame_partial(&f);
	expect_frame("partial checksum", k, &f, &plain, &a, 0, 0);
	udp_checksum(&f);
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
	answer_addresses(&a, 1, 300);
	assert_true(kernel_publish(k, &plain, &a, 0, NULL));
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

/* The program behind a tail call counts a miss, and nothing else comes to it. */
static void test_miss_stage(void **state)
{
	struct kernel *k = open_with(&(struct kernel_options){ .miss_stage = true, .verbose = true });
	struct answer a = { 0 };
	struct frame f;

	(void)state;
	frame_query(&f, &plain);
	expect_pass("no rule", k, &f, HYDNS_R_MISS);
	answer_addresses(&a, 1, 300);
	assert_true(kernel_publish(k, &plain, &a, 0, NULL));
	frame_query(&f, &plain);
	expect_frame("a rule, beside a miss program", k, &f, &plain, &a, 0, 0);
	kernel_pause(k, true);
	frame_query(&f, &plain);
	expect_pass("paused", k, &f, HYDNS_R_PAUSED);
	kernel_close(k);
}

/* All other tests hold the clock; here the program reads the kernel's. */
static void test_real_clock(void **state)
{
	struct kernel *k = open_with(&(struct kernel_options){ .real_clock = true, .verbose = true });
	struct query miss = plain;
	struct answer a = { 0 };
	struct frame f;

	(void)state;
	miss.name = "www.example.net";
	answer_addresses(&a, 2, 300);
	/* half a second from either neighbour, far more than this test takes */
	assert_true(kernel_publish(k, &plain, &a, SECOND_NS + SECOND_NS / 2, NULL));
	frame_query(&f, &plain);
	expect_frame("by the kernel's clock", k, &f, &plain, &a, 1, 0);
	printf("# time: %u ns a hit", kernel_time(k, &f, TIMED_RUNS));
	frame_query(&f, &miss);
	printf(", %u ns a miss (mean of %d runs, caches as a system call leaves them)\n",
	       kernel_time(k, &f, TIMED_RUNS), TIMED_RUNS);
	kernel_close(k);
}

static void test_verifier_budget(void **state)
{
	(void)state;
	assert_in_range(kernel_verified(kern), 1, VERIFIER_BUDGET);
	assert_in_range(kernel_dry_verified(kern), 1, VERIFIER_BUDGET);
}

/* While nothing is answered, a dry run also says what would be. */
static void test_dry_beneath(void **state)
{
	struct query other = { .name = "www.example.net", .qtype = 1 };
	struct answer a = { 0 };
	struct frame f, g;
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
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
		cmocka_unit_test(test_hits), cmocka_unit_test(test_letters_of_a_long_answer),
		cmocka_unit_test(test_do_and_secure),
		cmocka_unit_test(test_ttl_counts_down),
		cmocka_unit_test(test_static_ttl), cmocka_unit_test(test_no_recursion_desired),
		cmocka_unit_test(test_every_name_length),
		cmocka_unit_test(test_every_answer_length),
		cmocka_unit_test(test_negative),
		cmocka_unit_test(test_empty_answer_shrinks),
		cmocka_unit_test(test_ethernet_padding),
		cmocka_unit_test(test_epoch),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_refresh_claim),
		cmocka_unit_test(test_heartbeat),
		cmocka_unit_test(test_acl),
		cmocka_unit_test(test_everybody_allowed),
		cmocka_unit_test(test_service_goes),
		cmocka_unit_test(test_size_limit),
		cmocka_unit_test(test_zone_answer_and_small_client),
		cmocka_unit_test(test_interface_mtu),
		cmocka_unit_test(test_kill_switch),
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_no_checksum),
		cmocka_unit_test(test_fingerprint_collision),
		cmocka_unit_test(test_authority_counts),
		cmocka_unit_test(test_where_hits_are_counted), cmocka_unit_test(test_shared_hits), cmocka_unit_test(test_order_of_services),
		cmocka_unit_test(test_partial_checksum),
		cmocka_unit_test(test_vlan),
		cmocka_unit_test(test_ipv6_off),
		cmocka_unit_test(test_real_clock),
		cmocka_unit_test(test_verifier_budget), cmocka_unit_test(test_miss_stage), cmocka_unit_test(test_dry_beneath),
	};

	return expect_run(tests);
}
