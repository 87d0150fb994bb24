/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hostile DNS cookies: whole ones that a secret of the resolver has made, for this client or another, at any time, some octets changed;
 * or any octets. A second opinion, which shares no code with cookie.h, says what each is (RFC 9018; SipHash-2-4 as Aumasson and Bernstein
 * describe it, 2012). With sanitizers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hydns/cookie.h"
#include "test-harness/fuzz/target.h"

#define MESSAGE_MOST (16 + 16)         /* what is hashed: the cookie before its hash, and an address */

/* What of a turn both opinions get. */
struct asked {
	struct hydns_cookies secrets;
	__u64 cookie[HYDNS_COOKIE_WORDS];
	uint8_t addr[16] __attribute__((aligned(8)));
	bool ipv6;
	uint32_t now;
};

static uint64_t counts[HYDNS_COOKIE_VALID_RENEW + 1];

/* -- the second opinion --------------------------------------------------------------------------------------------- */
static uint64_t rotated(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], unsigned n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotated(v[1], 13) ^ v[0];
		v[3] = rotated(v[3], 16) ^ v[2];
		v[0] = rotated(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotated(v[1], 17) ^ v[2];
		v[3] = rotated(v[3], 21) ^ v[0];
		v[2] = rotated(v[2], 32);
	}
}

static uint64_t octets_as_number(const uint8_t *p, size_t len)
{
	uint64_t number = 0;

	for (size_t i = 0; i < len; i++)
		number |= (uint64_t)p[i] << 8 * i;
	return number;
}

static uint64_t siphash(const uint8_t key[16], const uint8_t *m, size_t len)
{
	const uint64_t k0 = octets_as_number(key, 8), k1 = octets_as_number(key + 8, 8);
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573 };

	for (size_t at = 0; at <= len; at += 8) {
		const size_t left = len - at;
		const uint64_t word = octets_as_number(m + at, left < 8 ? left : 8) | (left < 8 ? (uint64_t)len << 56 : 0);

		v[3] ^= word;
		rounds(v, 2);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static bool made_by(const struct asked *a, const uint8_t secret[16])
{
	const size_t skipped = a->ipv6 ? 0 : 12;
	const uint8_t *cookie = (const uint8_t *)a->cookie;
	uint8_t m[MESSAGE_MOST];

	memcpy(m, cookie, 16);
	memcpy(m + 16, a->addr + skipped, 16 - skipped);
	return siphash(secret, m, 32 - skipped) == octets_as_number(cookie + 16, 8);
}

/* RFC 9018 section 4.3. RFC 1982 says of times half of all apart nothing, and then this is none of either. */
static enum hydns_cookie_state opinion_of_time(uint32_t stamp, uint32_t now)
{
	int64_t age = (int32_t)(now - stamp);

	if (age == INT32_MIN)
		return HYDNS_COOKIE_VALID;
	if (age > 60 * 60 || age < -5 * 60)
		return HYDNS_COOKIE_INVALID;
	return age > 30 * 60 ? HYDNS_COOKIE_VALID_RENEW : HYDNS_COOKIE_VALID;
}

static enum hydns_cookie_state opinion(const struct asked *a)
{
	const uint8_t *c = (const uint8_t *)a->cookie;
	const uint32_t stamp = (uint32_t)c[12] << 24 | (uint32_t)c[13] << 16 | (uint32_t)c[14] << 8 | c[15];
	const enum hydns_cookie_state state = opinion_of_time(stamp, a->now);

	if (c[8] != 1 || state == HYDNS_COOKIE_INVALID)
		return HYDNS_COOKIE_INVALID;
	if (a->secrets.count > 0 && made_by(a, (const uint8_t *)a->secrets.secret[0]))
		return state;
	if (a->secrets.count > 1 && made_by(a, (const uint8_t *)a->secrets.secret[1]))
		return HYDNS_COOKIE_VALID_RENEW;
	return HYDNS_COOKIE_INVALID;
}

/* -- turns -------------------------------------------------------------------------------------------------------------- */
_Static_assert(HYDNS_COOKIE_SECRETS == 2, "the opinion knows two");

static void draw_client(struct asked *a)
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

	a->ipv6 = fuzz_below(2);
	fuzz_fill(a->addr, sizeof(a->addr));
	if (!a->ipv6)
		memcpy(a->addr, v4_mapped, sizeof(v4_mapped));
}

/* Near the limits, or anywhere. */
static uint32_t draw_time(uint32_t now)
{
	static const uint32_t ages[] = { 0, 1, 1800, 3600, (uint32_t)-1, (uint32_t)-300, 1U << 31 };
	const uint32_t which = fuzz_below(sizeof(ages) / sizeof(ages[0]) + 1);

	if (which == sizeof(ages) / sizeof(ages[0]))
		return (uint32_t)fuzz_next();
	return now - ages[which] - 1 + fuzz_below(3);
}

static void draw(struct asked *a)
{
	*a = (struct asked){ .now = (uint32_t)fuzz_next() };
	a->secrets.count = fuzz_below(HYDNS_COOKIE_SECRETS + 2);        /* one more than there are */
	fuzz_fill((uint8_t *)a->secrets.secret, sizeof(a->secrets.secret));
	draw_client(a);
	fuzz_fill((uint8_t *)a->cookie, sizeof(a->cookie));
	if (fuzz_below(8))
		hydns_cookie_make(a->secrets.secret[fuzz_below(HYDNS_COOKIE_SECRETS)], a->cookie,
				  &(struct hydns_cookie_client){ .addr = a->addr, .ipv6 = a->ipv6 }, draw_time(a->now));
	for (uint32_t n = fuzz_below(4) ? 0 : 1 + fuzz_below(3); n; n--)
		((uint8_t *)a->cookie)[fuzz_below(sizeof(a->cookie))] ^= (uint8_t)(1U << fuzz_below(8));
	if (!fuzz_below(8))
		a->addr[15 - fuzz_below(4)] ^= (uint8_t)(1U << fuzz_below(8));
}

static enum hydns_cookie_state judge(const struct asked *a)
{
	return hydns_cookie_judge(&a->secrets, a->cookie, &(struct hydns_cookie_client){ .addr = a->addr, .ipv6 = a->ipv6 }, a->now);
}

static const char *turn(void)
{
	enum hydns_cookie_state state;
	struct asked a, before;

	draw(&a);
	before = a;
	state = judge(&a);
	counts[state]++;
	if (memcmp(&a, &before, sizeof(a)) != 0)
		return "judging it has changed it";
	if (state != opinion(&a))
		return "it is judged otherwise than RFC 9018 says";
	hydns_cookie_make(a.secrets.secret[0], a.cookie, &(struct hydns_cookie_client){ .addr = a.addr, .ipv6 = a.ipv6 }, a.now);
	if (a.cookie[0] != before.cookie[0])
		return "the client's part of the one that is made is not the client's";
	if (judge(&a) != (a.secrets.count ? HYDNS_COOKIE_VALID : HYDNS_COOKIE_INVALID) || opinion(&a) != judge(&a))
		return "the one that is made is not valid";
	return NULL;
}

static int end(void)
{
	printf("%" PRIu64 " valid, %" PRIu64 " to be renewed, %" PRIu64 " not valid\n", counts[HYDNS_COOKIE_VALID],
	       counts[HYDNS_COOKIE_VALID_RENEW], counts[HYDNS_COOKIE_INVALID]);
	return !counts[HYDNS_COOKIE_VALID] || !counts[HYDNS_COOKIE_VALID_RENEW] || !counts[HYDNS_COOKIE_INVALID];
}

const struct fuzz_target fuzz_target = { .name = "cookies", .one = "cookie", .count = 200000, .turn = turn, .end = end };
