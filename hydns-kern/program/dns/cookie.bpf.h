/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DNS cookies, for a query that has a rule: judges the query's and prepares the option of the reply. What
 * the resolver does not answer plainly (a client that needs a valid cookie and has none) is left to it,
 * and so is every cookie while the program's secrets are not the resolver's.
 */
#ifndef HYDNS_KERN_PROGRAM_DNS_COOKIE_BPF_H
#define HYDNS_KERN_PROGRAM_DNS_COOKIE_BPF_H

#include "hydns-kern/program/rule/admit.bpf.h"
#include "hydns/cookie.h"

/* Octets that the reply's OPT has. */
static __always_inline __u32 hydns_opt_len(const struct hydns_query *q)
{
	if (!q->question.edns)
		return 0;
	return HYDNS_OPT_LEN + (q->reply.cookie_state ? HYDNS_COOKIE_OPTION_LEN : 0);
}

/* The resolver's wall clock. CLOCK_TAI, because it is the wall clock but for whole seconds that hardly
 * ever change: when the wall clock is set, this one follows in the same moment. */
static __always_inline __u32 hydns_wall_seconds(const struct hydns_resolver_page *page)
{
	__u64 tai = hydns_fixed_tai_ns ? hydns_fixed_tai_ns : bpf_ktime_get_tai_ns();

	return (__u32)(tai / HYDNS_NS) - *(const volatile __s32 *)&page->tai_offset;
}

/* Copies the first octets of the query's option that make up a cookie; false: it is no whole one. */
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

/* The state of the cookie in q; leaves the reply's in its place. 0 (none): no secret of this set, or strict,
 * and the resolver refuses the cookie. strict: as BIND judges (ns/client.c), which also gives a new cookie in
 * every reply. */
static __noinline __u32 hydns_cookie_turn(struct hydns_query *q, __u32 set, __u32 now, __u32 strict)
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

static __always_inline enum hydns_reason hydns_cookie(struct hydns_query *q,
						      const struct hydns_resolver_page *page, __u16 auth_flags)
{
	q->reply.cookie_state = HYDNS_COOKIE_NONE;
	if (!(q->question.cookie_len | q->question.cookie_required))
		return 0;
	if (q->question.cookie_len)
		q->reply.cookie_state = hydns_cookie_turn(q, *(const volatile __u32 *)&page->cookies,
						    hydns_wall_seconds(page),
						    auth_flags & HYDNS_RESOLVER_STRICT_EDNS);
	if (q->question.cookie_required ? q->reply.cookie_state < HYDNS_COOKIE_VALID : !q->reply.cookie_state)
		return HYDNS_R_COOKIE;
	return 0;
}

#endif
