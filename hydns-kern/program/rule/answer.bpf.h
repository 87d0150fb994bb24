/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage 6: the reply. hydns_answer_check() is the last check that can pass a query, but for hydns_resize(), which passes it
 * when there is no room. hydns_answer_write() changes the frame; a packet is dropped if that fails, because it can't be passed
 * half-written.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_ANSWER_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_ANSWER_BPF_H

#include "hydns-kern/program/rule/content.bpf.h"
#include "hydns-kern/program/rule/headers.bpf.h"
#include "hydns-kern/program/rule/options.bpf.h"
#include "hydns-kern/program/rule/rotate.bpf.h"
#include "hydns-kern/program/rule/soa.bpf.h"
#include "hydns-kern/program/rule/template.bpf.h"
#include "hydns-kern/program/rule/logged.bpf.h"
#include "hydns-kern/program/rule/rated.bpf.h"

/* Most octets of a DNS message from this resolver to this client. */
static __always_inline __u32 hydns_answer_limit(const struct hydns_query *q,
						const struct hydns_resolver_config *cfg)
{
	__u32 limit = HYDNS_PLAIN_UDP;

	if (q->question.edns && q->question.edns_size > limit)
		limit = q->question.edns_size;
	return limit < cfg->max_udp ? limit : cfg->max_udp;
}

/* What rules of two kinds ask for beside room. BIND as an authoritative server leaves additional data out for a client with a small
 * EDNS size, and shows them to others. And resolvers cut extended errors that find no room: Unbound goes by the size that it tells
 * clients, whatever they say. */
static __always_inline bool hydns_special_fits(const struct hydns_query *q, const struct hydns_resolver_config *cfg,
					       const struct hydns_rule *rule, const struct hydns_layout *layout)
{
	if ((rule->flags & HYDNS_RULE_STATIC_TTL) && q->question.edns && q->question.edns_size <= HYDNS_PLAIN_UDP)
		return false;
	return !(rule->flags & HYDNS_RULE_ERRORS) || layout->dns_len <= cfg->edns_size;
}

static __always_inline bool hydns_answer_fits(struct xdp_md *ctx, const struct hydns_query *q,
					      const struct hydns_resolver_config *cfg,
					      const struct hydns_rule *rule, const struct hydns_layout *layout)
{
	__u32 dns_len = layout->dns_len, ip_len = q->packet.dns_off - q->packet.l3_off + dns_len, mtu = 0;

	if ((rule->flags & (HYDNS_RULE_STATIC_TTL | HYDNS_RULE_ERRORS)) && !hydns_special_fits(q, cfg, rule, layout))
		return false;
	if (dns_len > hydns_answer_limit(q, cfg))
		return false;
	/* Routers do not fragment IPv6, and the program does not know the path's MTU. The resolver's socket fragments larger
	 * replies. */
	if (q->packet.ipv6)
		return ip_len <= HYDNS_IPV6_EVERY_PATH;
	return ip_len <= HYDNS_IPV4_EVERY_PATH || (!bpf_check_mtu(ctx, 0, &mtu, 0, 0) && ip_len <= mtu);
}

/* 0, or why the program must not answer this query from this rule now. */
static __always_inline enum hydns_reason hydns_answer_check(struct xdp_md *ctx, struct hydns_query *q,
							    const struct hydns_resolver_config *cfg,
							    const struct hydns_rule *rule,
							    const struct hydns_layout *layout, __u64 now, bool dry)
{
	/* base_ns comes from the fine clock and now from the coarse one, so base_ns may be slightly ahead. */
	__u64 age = now > rule->base_ns ? now - rule->base_ns : 0;
	enum hydns_reason r;

	if (age >= rule->expire_ms * HYDNS_NS_PER_MS)
		return HYDNS_R_EXPIRED;
	if (!hydns_answer_fits(ctx, q, cfg, rule, layout))
		return HYDNS_R_TOO_BIG;
	r = hydns_route(ctx, q, q->packet.dns_off - q->packet.l3_off + layout->dns_len);
	if (r)
		return r;
	if (age >= rule->refresh_ms * HYDNS_NS_PER_MS && hydns_claim_refresh(rule, now, dry))
		return HYDNS_R_REFRESH;
	return 0;
}

/* 0, or -1 with the frame half-written. */
static __always_inline int hydns_answer_write(struct xdp_md *ctx, struct hydns_query *q,
					      const struct hydns_resolver_config *cfg,
					      const struct hydns_rule *rule, struct hydns_layout *layout, bool below)
{
	__u64 fixed = (__u64)q->question.qtype + bpf_htons(HYDNS_CLASS_IN);

	layout->sum = q->question.name_sum + hydns_sum_at(fixed, q->question.name_len);
	if (below ? hydns_store_below(ctx, q, rule, layout) : hydns_write_data(ctx, q, rule, layout))
		return -1;
	if (hydns_write_ttls(ctx, rule, layout))
		return -1;
	if (below && (hydns_write_pointers(ctx, q, rule, layout) || hydns_write_gap(ctx, q, layout)))
		return -1;
	if (rule->rotation_count && (cfg->flags & HYDNS_RESOLVER_ROTATES) &&
	    hydns_rotate_all(ctx, q, rule, layout, cfg->flags & HYDNS_RESOLVER_SHUFFLES))
		return -1;
	if (hydns_write_opt(ctx, q, cfg, rule, layout))
		return -1;
	return hydns_write_headers(ctx, q, rule, layout);
}

static __always_inline void hydns_count_answer(const struct hydns_query *q, __u32 dns_len)
{
	struct hydns_resolver_count *n = bpf_map_lookup_elem(&hydns_answers, &q->question.resolver);

	if (!n)
		return;
	n->answered++;
	n->ipv6 += q->packet.ipv6;
	n->edns += q->question.edns;
	n->ad += q->question.ad;
	n->octets += dns_len;
	hydns_count_cookie(q, n);
}

/*
 * Makes the frame as long as the reply. Normally it moves the frame's end. A veth copies a query into a buffer hardly longer
 * than the query, but leaves headroom for XDP; then this moves the frame's start and the headers. 0, or the reason; the frame
 * has changed only with ABORTED.
 */
static __always_inline enum hydns_reason hydns_resize(struct xdp_md *ctx, struct hydns_query *q,
						      struct hydns_layout *layout)
{
	int growth = (int)(q->packet.dns_off + layout->dns_len) - (int)q->packet.frame_len;
	__u64 headers = q->packet.dns_off;

	layout->question_stands = !bpf_xdp_adjust_tail(ctx, growth);
	if (layout->question_stands)
		return 0;
	if (growth <= 0 || !hydns_bounded(&headers, HYDNS_HEADERS_MAX) ||
	    bpf_xdp_load_bytes(ctx, 0, q->reply.group_head, headers) || bpf_xdp_adjust_head(ctx, -growth))
		return HYDNS_R_NO_ROOM;
	return bpf_xdp_store_bytes(ctx, 0, q->reply.group_head, headers) ? HYDNS_R_ABORTED : 0;
}

/*
 * The log and the limit of responses decide last. Why they refuse an answer goes to q->cpu.reason, from where a program of its own reads
 * it: with a number that the verifier does not know, or with a few constants, it would follow all ways out of the program for each of
 * the many states here, more instructions than it allows.
 */
#define HYDNS_R_REFUSED HYDNS_R_LIMIT_SLIP

static __always_inline enum hydns_reason hydns_refuse(struct hydns_query *q, int reason)
{
	q->cpu.reason = reason;
	return reason == HYDNS_R_ANSWERED ? HYDNS_R_ANSWERED : HYDNS_R_REFUSED;
}

/*
 * dry: stops before the frame changes and counts nothing. logs: this program logs and limits answers of resolvers that want it. below:
 * the rule is the template for the query's name, and not the query's own rule.
 */
static __always_inline enum hydns_reason hydns_answer(struct xdp_md *ctx, struct hydns_query *q,
						      const struct hydns_resolver_config *cfg,
						      const struct hydns_rule *rule, __u64 now, bool dry, bool logs, bool below)
{
	bool logged = logs && !dry && (cfg->flags & HYDNS_RESOLVER_LOGS), rated = logs && (cfg->flags & HYDNS_RESOLVER_RATES);
	struct hydns_layout layout = {};
	enum hydns_reason r;
	__u32 *hits;

	layout.data_len = (__u64)q->question.name_len + 4 + rule->answer_len;
	layout.dns_len = HYDNS_DNS_HEADER + layout.data_len + hydns_opt_len(q);
	if ((rule->flags & HYDNS_RULE_ERRORS) && q->question.edns)
		layout.dns_len += hydns_errors_len((void *)rule);
	r = hydns_answer_check(ctx, q, cfg, rule, &layout, now, dry);
	if (r)
		return r;
	if (dry && (cfg->flags & HYDNS_RESOLVER_LOGS) && !hydns_can_log(q))
		return HYDNS_R_UNLOGGED;
	if (dry)
		return rated ? hydns_refuse(q, hydns_rate(q, (void *)rule, true)) : HYDNS_R_ANSWERED;
	layout.answer_off = q->packet.dns_off + HYDNS_DNS_HEADER + q->question.name_len + 4;
	layout.ttls = HYDNS_RULE_TTLS(below ? rule->name_len : q->question.name_len, rule->answer_len);
	hits = hydns_hits_here(&q->cpu, rule);
	if (!hits)
		return HYDNS_R_NO_ENTRY;
	/* Unlike the query's id and the time, by which the resolver rotates, the count of answers from this rule is evenly
	 * spread: a client may always use the same id. */
	hydns_choose_rotation(rule, hits, &q->reply);
	if (!(rule->flags & HYDNS_RULE_STATIC_TTL) && now > rule->base_ns)
		layout.seconds = (now - rule->base_ns) / HYDNS_NS_PER_S;
	if (logged && (r = hydns_refuse(q, hydns_log_begin(ctx, q))))
		return r;
	if (rated && (r = hydns_refuse(q, hydns_rate(q, (void *)rule, false))))
		return r;
	r = hydns_resize(ctx, q, &layout);
	if (r) {
		if (rated)
			hydns_rate_return(q, (void *)rule);
		return r;
	}
	if (hydns_answer_write(ctx, q, cfg, rule, &layout, below))
		return HYDNS_R_ABORTED;
	if (logged)
		hydns_log_end(ctx, q, layout.dns_len);
	hydns_count_hit(&q->cpu, rule, hits);
	hydns_count_answer(q, layout.dns_len);
	return HYDNS_R_ANSWERED;
}

#endif
