/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program's reply is, octet by octet, what the resolver would have sent. The clock is fixed at NOW_NS. Exits 77 (skipped)
 * where BPF programs can't be loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "expect.h"

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
		{ "query with AD, answer not secure", { .ad = true } },
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

/* A short answer is copied after the query's question; a long one together with the rule's, which is in lower case. */
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
	answer_addresses(&signed_a, 1, 300);
	answer_add(&signed_a, ANSWER, NULL, 46, 300, rrsig, sizeof(rrsig));
	h[0] = publish_address(kern, &plain, &a);
	expect_query_passes("DO, rule for no DO", &with_do, HYDNS_R_MISS);
	h[1] = kernel_publish(kern, &with_do, &signed_a, 0, NULL);
	expect_answer("secure, query without AD", &plain, &a, 0);
	expect_answer("secure, query with AD", &ad, &a, 0);
	expect_answer("secure, DO", &with_do, &signed_a, 0);
	kernel_remove(kern, h[0]);
	kernel_remove(kern, h[1]);
}

/* The reply has the query's RD, and queries with and without RD have different rules. */
static void test_no_recursion_desired(void **state)
{
	struct query norec = plain, norec_do = plain;
	struct answer a = { 0 }, referral = { .flags = 0x8000 };
	__u32 h[2];

	(void)state;
	norec.norec = norec_do.norec = norec_do.edns = norec_do.want_do = true;
	norec_do.edns_size = 1232;
	answer_add(&referral, AUTHORITY, NULL, 2, 300, (const __u8 *)"\2ns\300\14", 5);
	h[0] = publish_address(kern, &plain, &a);
	expect_query_passes("RD clear, rule for RD set", &norec, HYDNS_R_MISS);
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
		{ 301 * SECOND_NS, 301 }, /* past the end: no TTL goes below 0 */
		{ -3000000ULL, 0 }, /* base_ns between two ticks of the coarse clock */
	};
	/* Names of even and odd length, so that the answer begins at an odd and at an even offset. */
	static const char *name[] = { "a.example", "ab.example" };

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		for (size_t n = 0; n < 2; n++) {
			struct query q = { .name = name[n], .qtype = 16, .id = i, .edns = i & 1,
					   .ipv6 = i & 2 };
			struct answer a = { 0 };
			__u32 handle;

			/* RDATA of odd length puts the TTLs after it at odd offsets. */
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
	expect_answer("answer from a zone", &plain, &a, 100);
	kernel_remove(kern, handle);
}

/* More records than a rule has places for their TTLs, which stand: of a referral to many servers, for instance. */
static void test_most_records(void **state)
{
	struct query q = { .name = "many.example", .qtype = 2, .edns = true, .edns_size = 1232 };
	struct answer a = { .static_ttl = true };
	__u32 handle;

	(void)state;
	for (unsigned i = 0; i < HYDNS_RECORDS_MAX; i++)
		answer_add(&a, i < 13 ? AUTHORITY : ADDITIONAL, NULL, 1, 300 + 256 * i, (uint8_t[]){ 203, 0, 113, (uint8_t)i }, 4);
	handle = kernel_publish(kern, &q, &a, 7 * SECOND_NS, NULL);
	assert_true(handle);
	expect_answer("as many records as a rule holds", &q, &a, 7);
	kernel_remove(kern, handle);
}

/* Writes a dotted name of exactly len octets on the wire; there is none of 2. */
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

/* Two extended errors of together len octets, the first with the code alone. */
static size_t make_errors(__u8 *out, size_t len)
{
	static const __u8 first[] = { 0, 15, 0, 2, 0, 22 };
	const __u8 second[] = { 0, 15, (len - 10) >> 8, len - 10, 0, 6 };

	memcpy(out, first, 6);
	memcpy(out + 6, second, 6);
	for (size_t i = 12; i < len; i++)
		out[i] = 'a' + i % 26;
	return len;
}

/* Clients with EDNS get them behind their cookie, others the same answer without. */
static void expect_errors(const char *what, struct query q, const struct answer *a)
{
	struct answer without = *a;

	q.edns = q.want_do;
	without.errors_len = 0;
	if (!q.edns)
		expect_answer(what, &q, &without, 0);
	q.edns = true;
	q.edns_size = 1232;
	expect_answer(what, &q, a, 0);
	q.options = cookie;
	q.options_len = sizeof(cookie);
	expect_answer(what, &q, a, 0);
	q.ipv6 = true;
	expect_answer(what, &q, a, 0);
}

static void test_extended_errors(void **state)
{
	static const char *name[] = { "a.example", "ab.example", "wWw.EXAMPLE.cOm", "." };
	static const __u16 length[] = { 12, 13, 14, 15, 100, 511, HYDNS_ERRORS_MOST };
	static const __u16 places[] = { 1, 2, 3 };
	__u8 errors[HYDNS_ERRORS_MOST];

	(void)state;
	for (size_t i = 0; i < 8 * sizeof(length) / sizeof(*length); i++) {
		struct query q = { .name = name[i % 4], .qtype = 1, .id = i, .want_do = i & 4 };
		struct answer failure = { .flags = REPLY_FLAGS | 2, .errors = errors }, one = { .errors = errors };
		__u32 handle;

		failure.errors_len = one.errors_len = make_errors(errors, length[i / 8]);
		kernel_depends_on(kern, places, i % 4);
		handle = kernel_publish(kern, &q, &failure, 0, NULL);
		assert_true(handle);
		expect_errors("a failure", q, &failure);
		kernel_remove(kern, handle);
		answer_addresses(&one, 1, 300);
		handle = kernel_publish(kern, &q, &one, 0, NULL);
		assert_true(handle);
		expect_errors("an answer", q, &one);
		kernel_remove(kern, handle);
	}
	kernel_depends_on(kern, NULL, 0);
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

static void test_no_checksum(void **state)
{
	struct answer a = { 0 };
	struct frame f;
	__u32 handle;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	frame_query(&f, &plain);
	f.data[f.udp + 6] = f.data[f.udp + 7] = 0;
	expect_frame("IPv4 without UDP checksum", kern, &f, &plain, &a, 0, 0);
	kernel_remove(kern, handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hits), cmocka_unit_test(test_letters_of_a_long_answer),
		cmocka_unit_test(test_do_and_secure), cmocka_unit_test(test_no_recursion_desired),
		cmocka_unit_test(test_ttl_counts_down), cmocka_unit_test(test_static_ttl), cmocka_unit_test(test_most_records),
		cmocka_unit_test(test_every_name_length), cmocka_unit_test(test_every_answer_length),
		cmocka_unit_test(test_negative), cmocka_unit_test(test_empty_answer_shrinks),
		cmocka_unit_test(test_ethernet_padding), cmocka_unit_test(test_extended_errors), cmocka_unit_test(test_no_checksum),
	};

	return expect_run(tests);
}
