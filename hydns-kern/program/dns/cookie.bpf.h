/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DNS cookies of a query that has a rule: verifies the query's cookie and prepares the reply's option. A query passes if the
 * resolver would not simply answer it (the client needs a valid cookie and has none). A query with a cookie also passes
 * while the program's secrets are not the resolver's.
 */
#ifndef HYDNS_KERN_PROGRAM_DNS_COOKIE_BPF_H
#define HYDNS_KERN_PROGRAM_DNS_COOKIE_BPF_H

#include "hydns-kern/program/rule/admit.bpf.h"
#include "hydns/cookie.h"

/* Octets of the reply's OPT. */
static __always_inline __u32 hydns_opt_len(const struct hydns_query *q)
{
	if (!q->question.edns)
		return 0;
	return HYDNS_OPT_LEN + (q->reply.cookie_state ? HYDNS_COOKIE_OPTION_LEN : 0);
}

/* The resolver's wall clock, for which BPF has no helper. CLOCK_TAI is ahead of it by tai_offset, whole seconds that hardly
 * ever change, and follows at once when the wall clock is set. */
static __always_inline __u32 hydns_wall_seconds(const struct hydns_resolver_page *page)
{
	__u64 tai = hydns_fixed_tai_ns ? hydns_fixed_tai_ns : bpf_ktime_get_tai_ns();

	return (__u32)(tai / HYDNS_NS_PER_S) - *(const volatile __s32 *)&page->tai_offset;
}

/* Copies the cookie from the query's option. False: there is no server cookie of 16 octets (RFC 9018) in it, and only the
 * client's part is copied. */
static __always_inline bool hydns_cookie_read(struct hydns_query *q)
{
	__u32 at = q->question.cookie_at;

	if (at > HYDNS_QUERY_MAX - HYDNS_COOKIE_CLIENT_LEN)
		return false;
	__builtin_memcpy(&q->reply.cookie[0], q->question.message + at, HYDNS_COOKIE_CLIENT_LEN);
	if (q->question.cookie_len != HYDNS_COOKIE_LEN || at > HYDNS_QUERY_MAX - HYDNS_COOKIE_LEN)
		return false;
	__builtin_memcpy(&q->reply.cookie[1], q->question.message + at + 8, 8);
	__builtin_memcpy(&q->reply.cookie[2], q->question.message + at + 16, 8);
	return true;
}

/* Verifies the query's cookie, puts the reply's into q->reply and returns the state of the query's. HYDNS_COOKIE_NONE (0):
 * the program has no secret of this set, or strict is on and the resolver would refuse the cookie. strict: as BIND does
 * (ns/client.c), which also sends a new cookie in every reply. */
static __noinline __u32 hydns_cookie_answer(struct hydns_query *q, __u32 set, __u32 now, __u32 strict)
{
	const struct hydns_cookie_client client = { .addr = q->packet.client.addr, .ipv6 = q->packet.ipv6 };
	__u32 i = HYDNS_COOKIES_INDEX(q->question.resolver, set);
	const struct hydns_cookies *k = bpf_map_lookup_elem(&hydns_cookies, &i);
	enum hydns_cookie_state state = HYDNS_COOKIE_CLIENT;

	if (!set || !k || *(const volatile __u32 *)&k->set != set || !k->count)
		return HYDNS_COOKIE_NONE;
	if (hydns_cookie_read(q))
		state = hydns_cookie_judge(k, q->reply.cookie, &client, now);
	if (strict && q->question.cookie_len != HYDNS_COOKIE_CLIENT_LEN &&
	    (state < HYDNS_COOKIE_VALID || (__u32)q->reply.cookie[1] != HYDNS_COOKIE_VERSION))
		return HYDNS_COOKIE_NONE;
	if (strict || state != HYDNS_COOKIE_VALID)
		hydns_cookie_make(k->secret[0], q->reply.cookie, &client, now);
	q->reply.option_head[0] = bpf_htons(HYDNS_OPTION_COOKIE);
	q->reply.option_head[1] = bpf_htons(HYDNS_COOKIE_LEN);
	return state;
}

static __always_inline void hydns_count_cookie(const struct hydns_query *q, struct hydns_resolver_count *n)
{
	if (!q->reply.cookie_state)
		return;
	n->cookie_valid += q->reply.cookie_state >= HYDNS_COOKIE_VALID;
	n->cookie_client += q->reply.cookie_state == HYDNS_COOKIE_CLIENT;
	n->cookie_invalid += q->reply.cookie_state == HYDNS_COOKIE_INVALID;
}

static __always_inline void hydns_cookie_state(struct hydns_query *q, const struct hydns_resolver_page *page, __u16 resolver_flags)
{
	q->reply.cookie_state = HYDNS_COOKIE_NONE;
	if (q->question.cookie_len)
		q->reply.cookie_state = hydns_cookie_answer(q, *(const volatile __u32 *)&page->cookies,
							    hydns_wall_seconds(page),
							    resolver_flags & HYDNS_RESOLVER_STRICT_EDNS);
}

/* Whether the cookie was judged before the rule's look-up: for the guard, or for a resolver that limits its clients. */
static __always_inline bool hydns_cookie_judged(__u16 resolver_flags)
{
	return hydns_guard.mode || (resolver_flags & HYDNS_RESOLVER_LIMITS);
}

static __always_inline enum hydns_reason hydns_cookie(struct hydns_query *q,
						      const struct hydns_resolver_page *page, __u16 resolver_flags)
{
	const bool required = q->question.action == HYDNS_ACL_ALLOW_COOKIE;

	if (!q->question.cookie_len && !required) {
		q->reply.cookie_state = HYDNS_COOKIE_NONE;
		return 0;
	}
	if (!hydns_cookie_judged(resolver_flags))
		hydns_cookie_state(q, page, resolver_flags);
	if (required ? q->reply.cookie_state < HYDNS_COOKIE_VALID : !q->reply.cookie_state)
		return HYDNS_R_COOKIE;
	return 0;
}

#endif
