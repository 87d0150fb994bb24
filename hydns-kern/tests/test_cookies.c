/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EDNS options and DNS cookies, in single packets by BPF_PROG_TEST_RUN. Clock and wall clock are fixed. test_cookie_hash checks
 * the hash of cookies with published vectors; here the same header makes cookies, and the tests check which option is in the
 * reply, at which offset, and which queries pass. Exits 77 (skipped) where BPF programs can't be loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "hydns/cookie.h"
#include "expect.h"

#define SET        5
#define COUNT(a)   (sizeof(a) / sizeof(*(a)))
#define OPTION     (4 + HYDNS_COOKIE_LEN)
#define TIMED_RUNS 2000

static const struct hydns_cookies secrets = {
	.set = SET, .count = 2, .secret = { { 0x1111, 0x2222 }, { 0x3333, 0x4444 } },
};
static const __u64 stranger[2] = { 0x5555, 0x6666 };
static const __u8 client_part[HYDNS_COOKIE_CLIENT_LEN] = { 1, 2, 3, 4, 5, 6, 7, 8 };

/* --- cookies and options -------------------------------------------------------------------------------- */
/* Writes the server cookie for the client's part that is already in out. */
static void make_server_cookie(const __u64 secret[2], bool ipv6, __u32 stamp, __u8 out[HYDNS_COOKIE_LEN])
{
	__u8 addr[16] __attribute__((aligned(8))) = { [10] = 0xff, [11] = 0xff };
	const struct hydns_cookie_client c = { .addr = addr, .ipv6 = ipv6 };
	__u64 cookie[HYDNS_COOKIE_WORDS];

	if (ipv6)
		memcpy(addr, client6, 16);
	else
		memcpy(addr + 12, client4, 4);
	memcpy(cookie, out, HYDNS_COOKIE_LEN);
	hydns_cookie_make(secret, cookie, &c, stamp);
	memcpy(out, cookie, HYDNS_COOKIE_LEN);
}

static void make_cookie(const __u64 secret[2], bool ipv6, __u32 stamp, __u8 out[HYDNS_COOKIE_LEN])
{
	memcpy(out, client_part, sizeof(client_part));
	make_server_cookie(secret, ipv6, stamp, out);
}

static size_t put_option(__u8 *at, __u16 code, const __u8 *data, __u16 len)
{
	at[0] = code >> 8;
	at[1] = code;
	at[2] = len >> 8;
	at[3] = len;
	if (len)
		memcpy(at + 4, data, len);
	return 4 + len;
}

/* --- what to expect --------------------------------------------------------------------------------------- */
/* The program answers q from a, with this cookie (NULL: none) in the OPT, or passes it with another reason. */
static void expect(const char *what, const struct query *q, const struct answer *a, int reason,
		   const __u8 *cookie)
{
	struct query with = *q;

	with.cookie = cookie;
	if (reason == HYDNS_R_ANSWERED)
		expect_answer(what, &with, a, 0);
	else
		expect_query_passes(what, &with, reason);
}

static struct query question(const __u8 *options, size_t len, bool ipv6)
{
	return (struct query){ .name = "www.example.com", .qtype = 1, .id = 0x4711, .edns = true,
			       .edns_size = 1232, .options = options, .options_len = len, .ipv6 = ipv6 };
}

/* --- fixture: one rule, a resolver that answers cookies ----------------------------------------------------- */
static const struct hydns_resolver_config answers_cookies = {
	.flags = HYDNS_RESOLVER_READY, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1,
};
static struct answer answer;
static __u32 rule;

static int setup(void **state)
{
	struct query q = question(NULL, 0, false);

	(void)state;
	memset(&answer, 0, sizeof(answer));
	answer_addresses(&answer, 2, 300);
	rule = kernel_publish(kern, &q, &answer, 0, NULL);
	kernel_config(kern, &answers_cookies);
	kernel_cookies(kern, SET, &secrets);
	kernel_page(kern)->cookies = SET;
	return rule ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	kernel_remove(kern, rule);
	kernel_config(kern, NULL);
	kernel_page(kern)->cookies = 0;
	kernel_page(kern)->tai_offset = TAI_OFFSET;
	return 0;
}

/* --- states ------------------------------------------------------------------------------------------------- */
enum outcome { SAME, NEW, PASSED };
static const struct {
	const char *what;
	const __u64 *secret;         /* NULL: only the client's part */
	__u32 age;
	__u16 len;                   /* of the option; 0: HYDNS_COOKIE_LEN */
	__u8 version;                /* 0: 1 */
	__u8 change;                 /* octet to change, 0: none */
	enum outcome outcome;
	enum hydns_cookie_state counted;
} cases[] = {
	{ "client's alone", NULL, 0, 8, 0, 0, NEW, HYDNS_COOKIE_CLIENT },
	{ "fresh", secrets.secret[0], 0, 0, 0, 0, SAME, HYDNS_COOKIE_VALID },
	{ "30 minutes", secrets.secret[0], 1800, 0, 0, 0, SAME, HYDNS_COOKIE_VALID },
	{ "a second more", secrets.secret[0], 1801, 0, 0, 0, NEW, HYDNS_COOKIE_VALID },
	{ "an hour", secrets.secret[0], 3600, 0, 0, 0, NEW, HYDNS_COOKIE_VALID },
	{ "expired", secrets.secret[0], 3601, 0, 0, 0, NEW, HYDNS_COOKIE_INVALID },
	{ "5 minutes ahead", secrets.secret[0], -300U, 0, 0, 0, SAME, HYDNS_COOKIE_VALID },
	{ "from the future", secrets.secret[0], -301U, 0, 0, 0, NEW, HYDNS_COOKIE_INVALID },
	{ "half the circle away", secrets.secret[0], 1U << 31, 0, 0, 0, SAME, HYDNS_COOKIE_VALID },
	{ "staging secret", secrets.secret[1], 5, 0, 0, 0, NEW, HYDNS_COOKIE_VALID },
	{ "staging secret, expired", secrets.secret[1], 3601, 0, 0, 0, NEW, HYDNS_COOKIE_INVALID },
	{ "another secret", stranger, 5, 0, 0, 0, NEW, HYDNS_COOKIE_INVALID },
	{ "version 2", secrets.secret[0], 5, 0, 2, 0, NEW, HYDNS_COOKIE_INVALID },
	{ "reserved octet changed", secrets.secret[0], 5, 0, 0, 10, NEW, HYDNS_COOKIE_INVALID },
	{ "hash changed", secrets.secret[0], 5, 0, 0, 23, NEW, HYDNS_COOKIE_INVALID },
	{ "client's part changed", secrets.secret[0], 5, 0, 0, 7, NEW, HYDNS_COOKIE_INVALID },
	{ "16 octets", secrets.secret[0], 5, 16, 0, 0, NEW, HYDNS_COOKIE_CLIENT },
	{ "23 octets", secrets.secret[0], 5, 23, 0, 0, NEW, HYDNS_COOKIE_CLIENT },
	{ "25 octets", secrets.secret[0], 5, 25, 0, 0, NEW, HYDNS_COOKIE_CLIENT },
	{ "40 octets", secrets.secret[0], 5, 40, 0, 0, NEW, HYDNS_COOKIE_CLIENT },
	{ "1 octet", NULL, 0, 1, 0, 0, PASSED, 0 },
	{ "7 octets", NULL, 0, 7, 0, 0, PASSED, 0 },
	{ "9 octets", NULL, 0, 9, 0, 0, PASSED, 0 },
	{ "15 octets", secrets.secret[0], 0, 15, 0, 0, PASSED, 0 },
	{ "41 octets", secrets.secret[0], 0, 41, 0, 0, PASSED, 0 },
};

static void expect_counted(const char *what, const struct hydns_resolver_count *before,
			   enum hydns_cookie_state state)
{
	struct hydns_resolver_count after;

	kernel_counts(kern, &after);
	if (after.cookie_valid - before->cookie_valid != (state == HYDNS_COOKIE_VALID) ||
	    after.cookie_client - before->cookie_client != (state == HYDNS_COOKIE_CLIENT) ||
	    after.cookie_invalid - before->cookie_invalid != (state == HYDNS_COOKIE_INVALID))
		fail_msg("%s: wrongly counted", what);
}

static void run_case(size_t i, bool ipv6, __u32 wall)
{
	__u8 cookie[64] = { 0 }, made[HYDNS_COOKIE_LEN], option[80];
	struct hydns_resolver_count before;
	size_t len = cases[i].len ? cases[i].len : HYDNS_COOKIE_LEN;
	struct query q;

	memcpy(cookie, client_part, sizeof(client_part));
	if (cases[i].secret)
		make_cookie(cases[i].secret, ipv6, wall - cases[i].age, cookie);
	cookie[8] = cases[i].version ? cases[i].version : cookie[8];
	cookie[cases[i].change] ^= cases[i].change ? 0x80 : 0;
	q = question(option, put_option(option, 10, cookie, len), ipv6);
	kernel_counts(kern, &before);
	if (cases[i].outcome == PASSED) {
		expect(cases[i].what, &q, &answer, HYDNS_R_EDNS_UNUSUAL, NULL);
		return;
	}
	memcpy(made, cookie, HYDNS_COOKIE_LEN);
	make_server_cookie(secrets.secret[0], ipv6, wall, made);
	expect(cases[i].what, &q, &answer, HYDNS_R_ANSWERED, cases[i].outcome == SAME ? cookie : made);
	expect_counted(cases[i].what, &before, cases[i].counted);
}

static void test_states(void **state)
{
	/* also where 32 bits wrap around; CLOCK_TAI is fixed, so the offset sets the wall clock */
	static const __u32 wall[] = { WALL_S, 100, 0xffffffff, 0x80000000 };

	(void)state;
	for (size_t w = 0; w < COUNT(wall); w++) {
		kernel_page(kern)->tai_offset = (__s32)(WALL_S + TAI_OFFSET - wall[w]);
		for (size_t i = 0; i < 2 * COUNT(cases); i++)
			run_case(i / 2, i & 1, wall[w]);
	}
}

/* The cookie comes first, as both resolvers put it. */
static void test_before_extended_errors(void **state)
{
	static const __u8 errors[] = "\0\17\0\7\0\6bogus";
	struct answer a = { .flags = REPLY_FLAGS | 2, .errors = errors, .errors_len = sizeof(errors) - 1 };
	__u8 cookie[HYDNS_COOKIE_LEN], option[OPTION];
	__u32 handle;
	struct query q;

	(void)state;
	make_cookie(secrets.secret[0], false, WALL_S, cookie);
	q = question(option, put_option(option, 10, cookie, sizeof(cookie)), false);
	q.name = "bogus.example";
	handle = kernel_publish(kern, &q, &a, 0, NULL);
	assert_true(handle);
	expect("a cookie and an extended error", &q, &a, HYDNS_R_ANSWERED, cookie);
	kernel_remove(kern, handle);
}

/* --- the page and the map --------------------------------------------------------------------------------- */
static void test_set_must_match_the_page(void **state)
{
	static const struct {
		const char *what;
		__u32 page, set, count;
		int reason;
	} c[] = {
		{ "same set", SET, SET, 2, HYDNS_R_ANSWERED },
		{ "one secret", SET, SET, 1, HYDNS_R_ANSWERED },
		{ "no secret", SET, SET, 0, HYDNS_R_COOKIE },
		{ "older set in the map", SET + 2, SET, 2, HYDNS_R_COOKIE },
		{ "newer set in the map", SET, SET + 2, 2, HYDNS_R_COOKIE },
		{ "set of the other entry", SET + 1, SET, 2, HYDNS_R_COOKIE },
		{ "no set in the map", SET, 0, 2, HYDNS_R_COOKIE },
		{ "no set on the page", 0, 0, 2, HYDNS_R_COOKIE },
	};
	__u8 option[OPTION], made[HYDNS_COOKIE_LEN];
	struct query plain = question(NULL, 0, false), q = question(option, 12, false);

	(void)state;
	put_option(option, 10, client_part, sizeof(client_part));
	make_cookie(secrets.secret[0], false, WALL_S, made);
	for (size_t i = 0; i < COUNT(c); i++) {
		struct hydns_cookies k = secrets;

		k.set = c[i].set;
		k.count = c[i].count;
		kernel_cookies(kern, SET, &k);
		kernel_page(kern)->cookies = c[i].page;
		expect(c[i].what, &q, &answer, c[i].reason, made);
		expect("no cookie", &plain, &answer, HYDNS_R_ANSWERED, NULL);
	}
	kernel_page(kern)->cookies = 0;
	kernel_cookies(kern, SET, &(struct hydns_cookies){ 0 });
}

static void test_one_secret_of_two(void **state)
{
	struct hydns_cookies k = secrets;
	__u8 cookie[HYDNS_COOKIE_LEN], made[HYDNS_COOKIE_LEN], option[OPTION];
	struct query q = question(option, OPTION, false);

	(void)state;
	make_cookie(secrets.secret[0], false, WALL_S, made);
	make_cookie(secrets.secret[1], false, WALL_S - 1, cookie);
	put_option(option, 10, cookie, sizeof(cookie));
	k.count = 1;
	kernel_cookies(kern, SET, &k);
	for (int n = 0; n < 2; n++) {
		struct hydns_resolver_count before;

		kernel_counts(kern, &before);
		expect("dropped, or staging", &q, &answer, HYDNS_R_ANSWERED, made);
		expect_counted("dropped, or staging", &before, n ? HYDNS_COOKIE_VALID : HYDNS_COOKIE_INVALID);
		kernel_cookies(kern, SET, &secrets);
	}
}

/* --- clients that need a valid cookie ------------------------------------------------------------------------ */
static void test_allow_cookie(void **state)
{
	__u8 any[16] = { 0 }, cookie[HYDNS_COOKIE_LEN], made[HYDNS_COOKIE_LEN], option[OPTION];
	struct query q = question(option, OPTION, true), none = question(NULL, 0, true), no_edns = none;
	struct query own = question(option, 12, true);

	(void)state;
	no_edns.edns = false;
	make_cookie(secrets.secret[0], true, WALL_S, made);
	kernel_acl(kern, any, 0, HYDNS_ACL_ALLOW_COOKIE);
	expect("no EDNS", &no_edns, &answer, HYDNS_R_COOKIE, NULL);
	expect("no cookie", &none, &answer, HYDNS_R_COOKIE, NULL);
	put_option(option, 10, client_part, sizeof(client_part));
	expect("client's alone", &own, &answer, HYDNS_R_COOKIE, NULL);
	make_cookie(secrets.secret[0], true, WALL_S - 7, cookie);
	put_option(option, 10, cookie, sizeof(cookie));
	expect("valid", &q, &answer, HYDNS_R_ANSWERED, cookie);
	kernel_config(kern, NULL);
	expect("valid, but the resolver ignores cookies", &q, &answer, HYDNS_R_COOKIE, NULL);
	kernel_config(kern, &answers_cookies);
	make_cookie(secrets.secret[1], true, WALL_S, cookie);
	put_option(option, 10, cookie, sizeof(cookie));
	expect("staging", &q, &answer, HYDNS_R_ANSWERED, made);
	make_cookie(secrets.secret[0], true, WALL_S - 3601, cookie);
	put_option(option, 10, cookie, sizeof(cookie));
	expect("expired", &q, &answer, HYDNS_R_COOKIE, NULL);
	kernel_acl(kern, any, 0, HYDNS_ACL_ALLOW);
	expect("expired, but not required", &q, &answer, HYDNS_R_ANSWERED, made);
	expect("no EDNS, allowed", &no_edns, &answer, HYDNS_R_ANSWERED, NULL);
}

/* --- resolvers with other flags ------------------------------------------------------------------------------- */
static const struct hydns_resolver_config strict = {
	.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_STRICT_EDNS, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1,
};

/* The program answers a valid cookie with a new one. A query with an invalid cookie or with another option passes. */
static void test_strict(void **state)
{
	__u8 cookie[HYDNS_COOKIE_LEN], made[HYDNS_COOKIE_LEN], options[2 * OPTION];
	struct query q = question(options, OPTION, false), own = question(options, 12, false);
	struct query two = question(options, 2 * OPTION, false), padded = question(options, 4, false);

	(void)state;
	kernel_config(kern, &strict);
	make_cookie(secrets.secret[0], false, WALL_S, made);
	for (size_t i = 0; i < 2; i++) {
		make_cookie(secrets.secret[i], false, WALL_S - 9, cookie);
		put_option(options + put_option(options, 10, cookie, sizeof(cookie)), 10, cookie, sizeof(cookie));
		expect("valid", &q, &answer, HYDNS_R_ANSWERED, made);
		expect("and another", &two, &answer, HYDNS_R_EDNS_UNUSUAL, NULL);
	}
	make_cookie(stranger, false, WALL_S, cookie);
	put_option(options, 10, cookie, sizeof(cookie));
	expect("forged", &q, &answer, HYDNS_R_COOKIE, NULL);
	put_option(options, 10, client_part, sizeof(client_part));
	expect("client's alone", &own, &answer, HYDNS_R_ANSWERED, made);
	put_option(options, 12, NULL, 0);
	expect("padding", &padded, &answer, HYDNS_R_EDNS_UNUSUAL, NULL);
	kernel_config(kern, &answers_cookies);
}

static void test_letters(void **state)
{
	const struct hydns_resolver_config keeps = {
		.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_KEEPS_CASE, .edns_size = EDNS_SIZE, .max_udp = 4096,
		.acl_half = 1,
	};
	struct query small = question(NULL, 0, false), capital = small, last = small;

	(void)state;
	capital.name = "Www.example.com";
	last.name = "www.example.coM";
	expect("capital", &capital, &answer, HYDNS_R_ANSWERED, NULL);
	kernel_config(kern, &keeps);
	expect("small letters", &small, &answer, HYDNS_R_ANSWERED, NULL);
	expect("a capital", &capital, &answer, HYDNS_R_LETTER_CASE, NULL);
	expect("a capital at the end", &last, &answer, HYDNS_R_LETTER_CASE, NULL);
	kernel_config(kern, &answers_cookies);
}

/* --- several options ------------------------------------------------------------------------------------------ */
static void test_options(void **state)
{
	static const struct {
		const char *what;
		const char *codes;   /* of the options, in this order; 10 is a client's cookie */
		unsigned len;        /* of the other options */
		int reason;
		bool cookie;
	} c[] = {
		{ "PADDING", "\14\12", 31, HYDNS_R_ANSWERED, true },
		{ "PADDING after", "\12\14", 32, HYDNS_R_ANSWERED, true },
		{ "KEEPALIVE", "\13", 0, HYDNS_R_ANSWERED, false },
		{ "KEEPALIVE with data", "\13", 2, HYDNS_R_ANSWERED, false },
		{ "CHAIN, KEY-TAG, EDE", "\15\16\17", 9, HYDNS_R_ANSWERED, false },
		{ "LLQ, UL, DAU, DHU, N3U", "\1\2\5\6\7", 3, HYDNS_R_ANSWERED, false },
		{ "unassigned", "\176\177\12\175", 1, HYDNS_R_ANSWERED, true },
		{ "seven and the cookie", "\14\14\14\14\14\14\14\12", 5, HYDNS_R_ANSWERED, true },
		{ "eight and the cookie", "\14\14\14\14\14\14\14\14\12", 5, HYDNS_R_EDNS_UNUSUAL, false },
		{ "two cookies", "\12\12", 0, HYDNS_R_ANSWERED, true },
		{ "NSID", "\3", 0, HYDNS_R_EDNS_UNUSUAL, false },
		{ "cookie and NSID", "\12\3", 0, HYDNS_R_EDNS_UNUSUAL, false },
		{ "CLIENT-SUBNET", "\12\10", 7, HYDNS_R_EDNS_UNUSUAL, false },
		{ "EXPIRE", "\11", 0, HYDNS_R_EDNS_UNUSUAL, false },
	};
	static const __u8 filler[64] = { 0 };
	__u8 made[HYDNS_COOKIE_LEN];

	(void)state;
	make_cookie(secrets.secret[0], false, WALL_S, made);
	for (size_t i = 0; i < COUNT(c); i++) {
		__u8 options[400];
		size_t len = 0;

		for (const char *code = c[i].codes; *code; code++)
			len += *code == 10 ? put_option(options + len, 10, client_part, 8) :
					     put_option(options + len, *code, filler, c[i].len);
		expect(c[i].what, &(struct query){ .name = "www.example.com", .qtype = 1, .edns = true,
		       .edns_size = 1232, .options = options, .options_len = len }, &answer, c[i].reason,
		       c[i].cookie ? made : NULL);
	}
}

/* The program ignores a second COOKIE option, even a malformed one. */
static void test_second_cookie(void **state)
{
	__u8 options[80], cookie[HYDNS_COOKIE_LEN];
	struct query q = question(options, 0, false);

	(void)state;
	make_cookie(secrets.secret[0], false, WALL_S - 1, cookie);
	q.options_len = put_option(options, 10, cookie, sizeof(cookie));
	q.options_len += put_option(options + q.options_len, 10, cookie, 3);
	expect("a malformed one second", &q, &answer, HYDNS_R_ANSWERED, cookie);
	q.options_len = put_option(options, 10, cookie, 3);
	q.options_len += put_option(options + q.options_len, 10, cookie, sizeof(cookie));
	expect("a malformed one first", &q, &answer, HYDNS_R_EDNS_UNUSUAL, NULL);
	kernel_config(kern, NULL);
	expect("a malformed one, resolver ignores cookies", &q, &answer, HYDNS_R_ANSWERED, NULL);
}

/* --- the option's offset -------------------------------------------------------------------------------------- */
/* Even and odd lengths before it; queries up to the longest that the program reads. */
static void test_every_place(void **state)
{
	static const __u8 text[40] = { 0 };
	__u8 options[HYDNS_QUERY_MAX], cookie[HYDNS_COOKIE_LEN], padding[HYDNS_QUERY_MAX] = { 0 };

	(void)state;
	for (unsigned n = 0; n < 32; n++) {
		struct query q = { .name = n & 1 ? "p.example" : "pq.example", .qtype = 16, .id = n, .edns = true,
				   .edns_size = 1232, .options = options, .ipv6 = n & 2 };
		unsigned before = 12 + (n & 1 ? 11 : 12) + 4 + HYDNS_OPT_LEN;
		struct answer a = { 0 };
		__u32 handle;

		answer_add(&a, ANSWER, NULL, 16, 77, text, 1 + n / 4);
		handle = kernel_publish(kern, &q, &a, 0, NULL);
		assert_true(handle);
		make_cookie(secrets.secret[0], q.ipv6, WALL_S - n, cookie);
		q.options_len = n & 16 ? put_option(options, 12, padding, HYDNS_QUERY_MAX - before - OPTION - 4) : 0;
		q.options_len += put_option(options + q.options_len, 10, cookie, sizeof(cookie));
		expect("place", &q, &a, HYDNS_R_ANSWERED, cookie);
		kernel_remove(kern, handle);
	}
}

static void test_size_limit(void **state)
{
	static const __u8 text[1000] = { 0 };
	__u8 option[OPTION], made[HYDNS_COOKIE_LEN];
	struct query q = { .name = "big.example", .qtype = 16, .edns = true, .edns_size = 700, .options = option,
			   .options_len = 12 };
	struct answer a = { 0 };
	unsigned fixed = 12 + 13 + 4 + 12 + HYDNS_OPT_LEN + OPTION;
	__u32 handle;

	(void)state;
	put_option(option, 10, client_part, sizeof(client_part));
	make_cookie(secrets.secret[0], false, WALL_S, made);
	answer_add(&a, ANSWER, NULL, 16, 77, text, 700 - fixed);
	handle = kernel_publish(kern, &q, &a, 0, NULL);
	expect("fits with its cookie", &q, &a, HYDNS_R_ANSWERED, made);
	q.edns_size--;
	expect("one octet too large", &q, &a, HYDNS_R_TOO_BIG, NULL);
	q.options_len = 0;
	expect("without a cookie", &q, &a, HYDNS_R_ANSWERED, NULL);
	kernel_remove(kern, handle);
}

/* Prints how long hits take. */
static void test_time(void **state)
{
	struct kernel *held = kern;
	__u8 option[OPTION], cookie[HYDNS_COOKIE_LEN];
	struct query none = question(NULL, 0, false), own = question(option, 12, false);
	struct frame f;

	kern = open_with(&(struct kernel_options){ .real_clock = true });
	assert_int_equal(setup(state), 0);
	frame_query(&f, &none);
	printf("# time: %u ns a hit without a cookie", kernel_time(kern, &f, TIMED_RUNS));
	put_option(option, 10, client_part, sizeof(client_part));
	frame_query(&f, &own);
	printf(", %u ns with a client's", kernel_time(kern, &f, TIMED_RUNS));
	make_cookie(secrets.secret[0], false, (__u32)time(NULL), cookie);
	own.options_len = put_option(option, 10, cookie, sizeof(cookie));
	frame_query(&f, &own);
	printf(", %u ns with a whole one\n", kernel_time(kern, &f, TIMED_RUNS));
	kernel_close(kern);
	kern = held;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_states, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_extended_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_set_must_match_the_page, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_secret_of_two, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allow_cookie, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strict, setup, teardown),
		cmocka_unit_test_setup_teardown(test_letters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_options, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_cookie, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_size_limit, setup, teardown),
		cmocka_unit_test(test_time),
	};

	return expect_run(tests);
}
