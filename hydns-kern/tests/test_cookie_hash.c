/* SPDX-License-Identifier: GPL-2.0-only */
/* Hashing, verifying and making cookies: SipHash-2-4 and RFC 9018 appendix A with their published vectors, and time stamps on
 * both sides of every limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "hydns/cookie.h"
#include "hydns-kern/tests/plain_sip.h"
#include "hydns-kern/tests/sip24_vectors.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define NOW 1559734385U

static void siphash_matches_its_authors_vectors(void **state)
{
	const __u64 key[2] = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };
	unsigned char m[64];

	(void)state;
	for (unsigned i = 0; i < sizeof(m); i++)
		m[i] = (unsigned char)i;
	for (unsigned i = 0; i < COUNT(hydns_sip24_vectors); i++)
		assert_true(plain_sip(m, i, key, hydns_sip24_word, hydns_sip24_end) == hydns_sip24_vectors[i]);
}

/* --- RFC 9018, appendix A ---------------------------------------------------------------------------- */
#define SECRET "\xe5\xe9\x73\xe5\xa6\xb2\xa4\x3f\x48\xe7\xdc\x84\x9e\x37\xbf\xcf"
#define V4(address) "\0\0\0\0\0\0\0\0\0\0\xff\xff" address
#define A4_CLIENT "\x20\x01\x0d\xb8\x02\x20\0\1\x59\xde\xd0\xf4\x87\x69\x82\xb8"
#define A4_OLD "\xdd\x3b\xdf\x93\x44\xb6\x78\xb1\x85\xa6\xf5\xcb\x60\xfc\xa7\x15"
#define A4_NEW "\x44\x55\x36\xbc\xd2\x51\x32\x98\x07\x5a\x5d\x37\x96\x63\xc9\x62"

static const struct vector {
	const char *what;
	const char *secret[2];       /* the second: a staging one */
	const char *addr;            /* IPv4-mapped */
	bool ipv6;
	__u32 now;
	const char *asked;           /* the query's cookie; NULL: only the client's part */
	enum hydns_cookie_state state;
	const char *made;            /* the reply's */
} vectors[] = {
	{ "A.1 learning", { SECRET }, V4("\xc6\x33\x64\x64"), false, 1559731985, NULL, HYDNS_COOKIE_CLIENT,
	  "\x24\x64\xc4\xab\xcf\x10\xc9\x57\1\0\0\0\x5c\xf7\x9f\x11\x1f\x81\x30\xc3\xee\xe2\x94\x80" },
	{ "A.2 the same client, renewed", { SECRET }, V4("\xc6\x33\x64\x64"), false, 1559734385,
	  "\x24\x64\xc4\xab\xcf\x10\xc9\x57\1\0\0\0\x5c\xf7\x9f\x11\x1f\x81\x30\xc3\xee\xe2\x94\x80",
	  HYDNS_COOKIE_VALID_RENEW,
	  "\x24\x64\xc4\xab\xcf\x10\xc9\x57\1\0\0\0\x5c\xf7\xa8\x71\xd4\xa5\x64\xa1\x44\x2a\xca\x77" },
	{ "A.3 another client, expired", { SECRET }, V4("\xcb\0\x71\xcb"), false, 1559734700,
	  "\xfc\x93\xfc\x62\x80\x7d\xdb\x86\1\xab\xcd\xef\x5c\xf7\x8f\x71\xa3\x14\x22\x7b\x66\x79\xeb\xf5",
	  HYDNS_COOKIE_INVALID,
	  "\xfc\x93\xfc\x62\x80\x7d\xdb\x86\1\0\0\0\x5c\xf7\xa9\xac\xf7\x3a\x78\x10\xac\xa2\x38\x1e" },
	{ "A.4 IPv6, secret rolled over", { A4_NEW, A4_OLD }, A4_CLIENT, true, 1559741961,
	  "\x22\x68\x1a\xb9\x7d\x52\xc2\x98\1\0\0\0\x5c\xf7\xc5\x79\x26\x55\x6b\xd0\x93\x4c\x72\xf8",
	  HYDNS_COOKIE_VALID_RENEW,
	  "\x22\x68\x1a\xb9\x7d\x52\xc2\x98\1\0\0\0\x5c\xf7\xc6\x09\xa6\xbb\x79\xd1\x66\x25\x50\x7a" },
};

static void rfc9018_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(vectors); i++) {
		const struct vector *v = &vectors[i];
		__u8 addr[16] __attribute__((aligned(8)));
		const struct hydns_cookie_client client = { .addr = addr, .ipv6 = v->ipv6 };
		struct hydns_cookies k = { .set = 1 };
		__u64 cookie[HYDNS_COOKIE_WORDS] = { 0 };

		print_message("%s\n", v->what);
		memcpy(addr, v->addr, sizeof(addr));
		for (; k.count < 2 && v->secret[k.count]; k.count++)
			memcpy(k.secret[k.count], v->secret[k.count], HYDNS_COOKIE_SECRET_LEN);
		memcpy(cookie, v->asked ? v->asked : v->made, v->asked ? HYDNS_COOKIE_LEN : HYDNS_COOKIE_CLIENT_LEN);
		if (v->asked)
			assert_int_equal(hydns_cookie_judge(&k, cookie, &client, v->now), v->state);
		hydns_cookie_make(k.secret[0], cookie, &client, v->now);
		assert_memory_equal(cookie, v->made, HYDNS_COOKIE_LEN);
	}
}

/* --- time ---------------------------------------------------------------------------------------------- */
static void time_stamps(void **state)
{
	static const struct {
		__u32 age;           /* modulo 2^32, so that a stamp may be in the future */
		enum hydns_cookie_state state;
	} c[] = {
		{ 0, HYDNS_COOKIE_VALID }, { 1, HYDNS_COOKIE_VALID }, { 1800, HYDNS_COOKIE_VALID },
		{ 1801, HYDNS_COOKIE_VALID_RENEW }, { 3600, HYDNS_COOKIE_VALID_RENEW },
		{ 3601, HYDNS_COOKIE_INVALID }, { 0x7fffffff, HYDNS_COOKIE_INVALID },
		{ 0x80000000, HYDNS_COOKIE_VALID }, /* RFC 1982 does not order the two; Unbound accepts it */
		{ 0x80000001, HYDNS_COOKIE_INVALID }, { -301U, HYDNS_COOKIE_INVALID },
		{ -300U, HYDNS_COOKIE_VALID }, { -1U, HYDNS_COOKIE_VALID },
	};
	static const __u32 now[] = { NOW, 0, 100, 0x7fffffff, 0x80000000, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < COUNT(c); i++)
		for (size_t n = 0; n < COUNT(now); n++)
			assert_int_equal(hydns_cookie_time(now[n] - c[i].age, now[n]), c[i].state);
}

static void every_bit_counts(void **state)
{
	const __u8 addr[16] __attribute__((aligned(8))) = V4("\xc6\x33\x64\x64");
	const struct hydns_cookie_client client = { .addr = addr };
	struct hydns_cookies k = { .set = 1, .count = 1 };
	__u64 good[HYDNS_COOKIE_WORDS] = { 0x0102030405060708ULL };

	(void)state;
	memcpy(k.secret[0], SECRET, HYDNS_COOKIE_SECRET_LEN);
	hydns_cookie_make(k.secret[0], good, &client, NOW);
	assert_int_equal(hydns_cookie_judge(&k, good, &client, NOW), HYDNS_COOKIE_VALID);
	for (unsigned bit = 0; bit < 8 * HYDNS_COOKIE_LEN; bit++) {
		__u64 bad[HYDNS_COOKIE_WORDS];

		memcpy(bad, good, sizeof(bad));
		bad[bit / 64] ^= 1ULL << bit % 64;
		assert_int_equal(hydns_cookie_judge(&k, bad, &client, NOW), HYDNS_COOKIE_INVALID);
	}
	k.count = 0;
	assert_int_equal(hydns_cookie_judge(&k, good, &client, NOW), HYDNS_COOKIE_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_matches_its_authors_vectors),
		cmocka_unit_test(rfc9018_vectors),
		cmocka_unit_test(time_stamps),
		cmocka_unit_test(every_bit_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
