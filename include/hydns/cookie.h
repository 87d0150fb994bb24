/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DNS cookies (RFC 7873) with server cookies of version 1 (RFC 9018: SipHash-2-4, Aumasson and Bernstein
 * 2012), one definition for BPF and userspace. Judged as Unbound does it (util/edns.c): a cookie is also
 * refused for its time before its hash is looked at, and one that a staging secret verifies is renewed.
 *
 * A whole cookie is three words as they stand in the option: the client's cookie; version, three reserved
 * octets and the time stamp in network order; the hash. Octets are in memory order, on little-endian
 * machines only.
 */
#ifndef HYDNS_COOKIE_H
#define HYDNS_COOKIE_H

#include "hydns/hash.h"
#include "hydns/resolver.h"

#define HYDNS_COOKIE_CLIENT_LEN 8     /* RFC 7873 section 4: a client's cookie alone, */
#define HYDNS_COOKIE_MIN        16    /* or followed by a server's of 8 */
#define HYDNS_COOKIE_MAX        40    /* to 32 octets */
#define HYDNS_COOKIE_LEN        24    /* one of RFC 9018, client's and server's */
#define HYDNS_COOKIE_WORDS      (HYDNS_COOKIE_LEN / 8)
#define HYDNS_COOKIE_VERSION    1
/* RFC 9018 section 4.3, in seconds */
#define HYDNS_COOKIE_OLDEST     3600
#define HYDNS_COOKIE_RENEW      1800
#define HYDNS_COOKIE_FUTURE     300

enum hydns_cookie_state {
	HYDNS_COOKIE_NONE,           /* the query has none */
	HYDNS_COOKIE_CLIENT,         /* no server cookie of this kind: a new one is made */
	HYDNS_COOKIE_INVALID,        /* forged, expired, from the future: a new one is made */
	HYDNS_COOKIE_VALID,          /* sent back as it is */
	HYDNS_COOKIE_VALID_RENEW,    /* as good, but a new one is made */
};

/* A client's address as hashed: family by ipv6; addr IPv4-mapped, network order, aligned to 8. */
struct hydns_cookie_client {
	const __u8 *addr;
	__u8 ipv6;
};

HYDNS_INLINE void hydns_sip24_word(struct hydns_sip *s, __u64 m)
{
	s->v3 ^= m;
	hydns_sip_round(s);
	hydns_sip_round(s);
	s->v0 ^= m;
}

HYDNS_INLINE __u64 hydns_sip24_end(struct hydns_sip *s)
{
	s->v2 ^= 0xff;
	hydns_sip_round(s);
	hydns_sip_round(s);
	hydns_sip_round(s);
	hydns_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* The hash of a cookie, RFC 9018 section 4.4, from its first two words. */
HYDNS_INLINE __u64 hydns_cookie_hash(const __u64 secret[2], const __u64 cookie[HYDNS_COOKIE_WORDS],
				     const struct hydns_cookie_client *c)
{
	const __u64 *addr = (const void *)c->addr;
	__u64 length = 16 + (c->ipv6 ? 16 : 4);
	struct hydns_sip s;

	hydns_sip_begin(&s, secret);
	hydns_sip24_word(&s, cookie[0]);
	hydns_sip24_word(&s, cookie[1]);
	if (c->ipv6) {
		hydns_sip24_word(&s, addr[0]);
		hydns_sip24_word(&s, addr[1]);
	}
	/* SipHash's last word: what is left of the message, and its length on top */
	hydns_sip24_word(&s, length << 56 | (c->ipv6 ? 0 : addr[1] >> 32));
	return hydns_sip24_end(&s);
}

/* What a cookie's time stamp says at now, both seconds that wrap (RFC 1982). */
HYDNS_INLINE enum hydns_cookie_state hydns_cookie_time(__u32 stamp, __u32 now)
{
	__u32 age = now - stamp;

	if (age == 1U << 31) /* RFC 1982 leaves it open which is the later one; Unbound sees no distance */
		return HYDNS_COOKIE_VALID;
	if (age < 1U << 31)
		return age > HYDNS_COOKIE_OLDEST ? HYDNS_COOKIE_INVALID :
		       age > HYDNS_COOKIE_RENEW ? HYDNS_COOKIE_VALID_RENEW : HYDNS_COOKIE_VALID;
	return stamp - now > HYDNS_COOKIE_FUTURE ? HYDNS_COOKIE_INVALID : HYDNS_COOKIE_VALID;
}

/* Judges a whole cookie of HYDNS_COOKIE_LEN octets. k: at least one secret, the first is the active one. */
HYDNS_INLINE enum hydns_cookie_state hydns_cookie_judge(const struct hydns_cookies *k,
							const __u64 cookie[HYDNS_COOKIE_WORDS],
							const struct hydns_cookie_client *c, __u32 now)
{
	enum hydns_cookie_state state;

	if ((__u8)cookie[1] != HYDNS_COOKIE_VERSION)
		return HYDNS_COOKIE_INVALID;
	state = hydns_cookie_time(__builtin_bswap32(cookie[1] >> 32), now);
	if (state == HYDNS_COOKIE_INVALID)
		return state;
	for (unsigned i = 0; i < HYDNS_COOKIE_SECRETS && i < k->count; i++)
		if (hydns_cookie_hash(k->secret[i], cookie, c) == cookie[2])
			return i ? HYDNS_COOKIE_VALID_RENEW : state;
	return HYDNS_COOKIE_INVALID;
}

/* Makes the cookie of now for the client's own in cookie[0]. */
HYDNS_INLINE void hydns_cookie_make(const __u64 secret[2], __u64 cookie[HYDNS_COOKIE_WORDS],
				    const struct hydns_cookie_client *c, __u32 now)
{
	cookie[1] = (__u64)__builtin_bswap32(now) << 32 | HYDNS_COOKIE_VERSION;
	cookie[2] = hydns_cookie_hash(secret, cookie, c);
}

#endif
