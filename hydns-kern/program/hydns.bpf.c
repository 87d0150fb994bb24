/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The XDP program: it answers from rules and passes everything else unchanged. The stages run in the order of the headers
 * that they read. Each returns HYDNS_R_ANSWERED (0) to go on, or the reason with which the packet ends. The program counts
 * every packet under exactly one reason.
 */
#include "hydns-kern/program/maps.bpf.h"
#include "hydns-kern/program/query.bpf.h"
#include "hydns-kern/program/packet/parse.bpf.h"
#include "hydns-kern/program/dns/message.bpf.h"
#include "hydns-kern/program/rule/admit.bpf.h"
#include "hydns-kern/program/rule/lookup.bpf.h"
#include "hydns-kern/program/dns/cookie.bpf.h"
#include "hydns-kern/program/rule/limited.bpf.h"
#include "hydns-kern/program/rule/rated.bpf.h"
#include "hydns-kern/program/rule/stale.bpf.h"
#include "hydns-kern/program/rule/marked.bpf.h"
#include "hydns-kern/program/rule/answer.bpf.h"
#include "hydns-kern/program/rule/slip.bpf.h"
#include "hydns-kern/program/rule/below.bpf.h"
#include "hydns-kern/program/count.bpf.h"
#include "hydns-kern/program/monitor/monitor.bpf.h"
#include "hydns-kern/program/monitor/analysers.bpf.h"
#include "hydns-kern/program/clock.bpf.h"
#include "hydns-kern/program/miss/miss.bpf.h"
#include "hydns-kern/program/guard/guard.bpf.h"
#include "hydns-kern/program/miss/replay.bpf.h"
#include "hydns-kern/program/miss/sent.bpf.h"
#include "hydns-kern/program/queue/answers.bpf.h"
#include "hydns-kern/program/forward/answer.bpf.h"
#include "hydns-kern/program/queue/queries.bpf.h"
#include "hydns-kern/program/queue/stray.bpf.h"
#include "hydns-kern/program/dry.h"

/* Stages 1 to 3: is this an ordinary query to a service? */
static __always_inline enum hydns_reason hydns_read(struct xdp_md *ctx, struct hydns_query *q)
{
	enum hydns_reason r;

	(r = hydns_parse(ctx, &q->packet)) || (r = hydns_admit_service(q)) || (r = hydns_admit_source(&q->packet)) ||
		(r = hydns_dns_copy(ctx, q)) || (r = hydns_dns_header(&q->question)) ||
		(r = hydns_dns_question(&q->question, q->packet.message_len));
	return r;
}

/* Stage 4 for a resolver that has gone, or that logs or limits its clients' queries or its responses. */
static __always_inline enum hydns_reason hydns_admit_accounted(struct xdp_md *ctx, struct hydns_query *q,
							       const struct hydns_resolver_page *page,
							       struct hydns_resolver_config *cfg, __u64 now, bool dry, bool logs)
{
	enum hydns_reason r;

	if (!(cfg->flags & HYDNS_RESOLVER_READY) || !hydns_resolver_lives(page, now))
		return hydns_stale_allowed(ctx, q, cfg, now, dry) ? hydns_admit_client(q, cfg) : HYDNS_R_RESOLVER_GONE;
	if ((cfg->flags & (HYDNS_RESOLVER_LOGS | HYDNS_RESOLVER_RATES)) && !logs)
		return HYDNS_R_UNLOGGED;
	r = hydns_admit_client(q, cfg);
	q->cpu.counted = 0;
	if (r || !(cfg->flags & HYDNS_RESOLVER_LIMITS))
		return r;
	hydns_cookie_state(q, page, cfg->flags);
	return hydns_within_limit(q, page, cfg->flags & HYDNS_RESOLVER_LOGS, dry, !dry && !logs);
}

/*
 * The other stages, for a query that has been read. now: monotonic nanoseconds. dry: all checks but no change; logs: answers are
 * logged for resolvers that want it, else a resolver that wants it gets HYDNS_R_UNLOGGED. Both are constants in every caller.
 */
static __always_inline enum hydns_reason hydns_decide(struct xdp_md *ctx, struct hydns_query *q, __u64 now, bool dry, bool logs)
{
	const struct hydns_resolver_page *page;
	struct hydns_resolver_config *cfg;
	const struct hydns_rule *rule;
	__u32 zero = 0, epoch;
	enum hydns_reason r;
	void *page_map;

	cfg = bpf_map_lookup_elem(&hydns_resolver, &q->question.resolver);
	page_map = bpf_map_lookup_elem(&hydns_pages, &q->question.resolver);
	if (!page_map)
		return HYDNS_R_RESOLVER_GONE;
	page = bpf_map_lookup_elem(page_map, &zero);
	if (!cfg || !page)
		return HYDNS_R_NO_ENTRY;
	r = hydns_dns_edns(&q->question, q->packet.message_len, cfg->flags);
	if (r)
		return r;
	/* one comparison tells the ordinary resolver from all others; their code stands out of its way */
	if (__builtin_expect((cfg->flags & (HYDNS_RESOLVER_READY | HYDNS_RESOLVER_ACCOUNTS)) == HYDNS_RESOLVER_READY &&
			     hydns_resolver_lives(page, now), 1))
		r = hydns_admit_client(q, cfg);
	else
		r = hydns_admit_accounted(ctx, q, page, cfg, now, dry, logs);
	if (r)
		return r;
	if (hydns_guard.mode && (r = hydns_guard_admits(q, page, cfg->flags, dry)))
		return r;
	if (logs)
		hydns_key_apart(q);
	else
		hydns_key(&q->question);
	if (hydns_monitor && !dry)
		hydns_monitor_query(q);
	r = hydns_find(&q->question, &rule);
	if (r)
		return q->question.qtype == bpf_htons(HYDNS_TYPE_ANY) ? HYDNS_R_TYPE_ANY : r;
	if (q->question.capitals && (cfg->flags & HYDNS_RESOLVER_KEEPS_CASE))
		return HYDNS_R_LETTER_CASE;
	r = hydns_cookie(q, page, cfg->flags);
	if (r)
		return r;
	epoch = *(const volatile __u32 *)&page->epoch;
	if (rule->epoch != epoch && !hydns_unmarked(q, page, rule, epoch))
		return HYDNS_R_EPOCH;
	return hydns_answer(ctx, q, cfg, rule, now, dry, logs, false);
}

/* All stages. */
static __always_inline enum hydns_reason hydns_core(struct xdp_md *ctx, struct hydns_query *q, __u64 now, bool dry, bool logs)
{
	enum hydns_reason r = hydns_read(ctx, q);

	if (!r)
		r = hydns_decide(ctx, q, now, dry, logs);
	return hydns_guard.mode ? hydns_guard_unread(r, dry) : r;
}

/* The store holds no rule, there is no lane, and nobody parks, limits, monitors or guards: no query needs to be read. */
static __always_inline bool hydns_nothing_to_do(void)
{
	__u32 zero = 0;
	const struct hydns_geometry *meta = bpf_map_lookup_elem(&hydns_meta, &zero);

	return !hydns_monitor && !hydns_guard.mode && meta &&
	       *(const volatile __u32 *)&meta->empty && !(hydns_queue && *(const volatile __u32 *)&meta->lanes) &&
	       !(hydns_miss_stage && *(const volatile __u32 *)&meta->parking) &&
	       !*(const volatile __u32 *)&meta->limits;
}

/* What becomes of a packet that is not answered, once it has been analysed. */
static __always_inline int hydns_go_on(struct xdp_md *ctx, struct hydns_query *q, __u32 reason)
{
	if ((hydns_miss_stage || hydns_forward_stage || hydns_guard_stage) && q)
		q->cpu.reason = reason;
	if (hydns_guard_stage && q && hydns_guard_looks(q, reason)) {
		bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_GUARD);
		/* hydnsd has ended: there is nobody who writes a reply */
		if (reason == HYDNS_R_GUARD_TRUNCATED)
			reason = HYDNS_R_GUARDED;
	}
	if (hydns_miss_stage && q) {
		/* A tail call returns only when its entry is empty. */
		if (HYDNS_MAY_BE_CARRIER(reason))
			bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_REPLAY);
		if (q->cpu.replaying) {
			if (hydns_forward_stage && q->cpu.tried && HYDNS_MAY_PARK(reason))
				bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_FORWARD);
			if (HYDNS_LOOKED_UP >> reason & 1)
				hydns_limit_pass(q);
			return hydns_replayed(ctx, reason);
		}
		if (HYDNS_MAY_PARK(reason))
			bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_MISS);
	}
	if (hydns_forward_stage && q && reason == HYDNS_R_NOT_SERVICE && hydns_is_upstream(bpf_ntohs(q->packet.service.port)))
		bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_FORWARDED);
	if (q && HYDNS_LOOKED_UP >> reason & 1)
		hydns_limit_pass(q);
	hydns_count(ctx, reason);
	if (hydns_queue && HYDNS_QUERY_TO_RING(reason))
		return hydns_query_to_ring(ctx);
	if (hydns_queue && reason == HYDNS_R_NOT_SERVICE && hydns_is_upstream(bpf_ntohs(q->packet.service.port)))
		return hydns_answer_to_ring(ctx);
	return hydns_action(reason);
}

/* What becomes of a packet that is not answered. */
static __always_inline int hydns_leave(struct xdp_md *ctx, struct hydns_query *q, __u32 reason)
{
	if (hydns_monitor && q)
		hydns_monitor_passed(q, reason);
	if (hydns_analysis_stage && q)
		hydns_analyse(ctx, q, reason, XDP_PASS);
	return hydns_go_on(ctx, q, reason);
}

/* A query that no rule of its own answers. A tail call returns only when its entry is empty. */
static __always_inline void hydns_look_below(struct xdp_md *ctx, struct hydns_query *q, __u32 reason)
{
	if (!hydns_names_stage || !q || (reason != HYDNS_R_MISS && reason != HYDNS_R_TYPE_ANY))
		return;
	q->cpu.reason = reason;
	bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_BELOW);
}

/* ... and of one that is, or is dropped once its frame has changed. */
static __always_inline int hydns_finish(struct xdp_md *ctx, struct hydns_query *q, enum hydns_reason reason)
{
	int action = hydns_action(reason) == XDP_TX ? hydns_send(&q->reply) : XDP_DROP;

	hydns_count(ctx, reason);
	if (hydns_analysis_stage)
		hydns_analyse(ctx, q, HYDNS_R_ANSWERED, action);
	return action;
}

/* frags: links with a large MTU have frames of several buffers. A query is never one of them. */
SEC("xdp.frags")
int hydns_xdp(struct xdp_md *ctx)
{
	__u32 zero = 0, reason;
	struct hydns_switch *s = bpf_map_lookup_elem(&hydns_switch, &zero);
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);

	if (!s || !q)
		reason = HYDNS_R_NO_ENTRY;
	else if (hydns_enters(ctx, s))
		reason = HYDNS_R_PAUSED;
	else
		reason = hydns_nothing_to_do() ? HYDNS_R_EMPTY : hydns_core(ctx, q, hydns_now(&q->cpu), false, false);
	if (reason == HYDNS_R_ANSWERED)
		return hydns_finish(ctx, q, HYDNS_R_ANSWERED);
	/* A tail call returns only when its entry is empty. */
	if (hydns_log_stage && reason == HYDNS_R_UNLOGGED)
		bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_LOGGED);
	hydns_look_below(ctx, q, reason);
	return hydns_leave(ctx, q, reason);
}

/* The same for a query that hydns_xdp has read, of a resolver that logs or limits its responses. */
SEC("xdp.frags")
int hydns_logged(struct xdp_md *ctx)
{
	__u32 zero = 0, reason;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);

	if (!q)
		return XDP_PASS;
	reason = hydns_decide(ctx, q, hydns_now(&q->cpu), false, true);
	if (reason == HYDNS_R_ANSWERED)
		return hydns_finish(ctx, q, HYDNS_R_ANSWERED);
	if (reason == HYDNS_R_REFUSED)
		bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_REFUSED);
	hydns_look_below(ctx, q, reason);
	return hydns_leave(ctx, q, reason);
}

/* The same for a query that no rule of its own answers, and whose name may be known not to exist. */
SEC("xdp.frags")
int hydns_below(struct xdp_md *ctx)
{
	__u32 zero = 0, reason;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);

	if (!q)
		return XDP_PASS;
	reason = hydns_decide_below(ctx, q, hydns_now(&q->cpu), false, true);
	if (reason == HYDNS_R_ANSWERED) {
		hydns_count_below(q);
		return hydns_finish(ctx, q, HYDNS_R_ANSWERED);
	}
	/* of these two q->cpu.reason says already how the query ends */
	if (reason != HYDNS_R_MISS && reason != HYDNS_R_REFUSED)
		q->cpu.reason = reason;
	bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_REFUSED);
	return XDP_PASS;
}

/* Ends a query whose answer is not given: q->cpu.reason says why. */
SEC("xdp.frags")
int hydns_refused(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);

	if (!q)
		return XDP_PASS;
	if (q->cpu.reason == HYDNS_R_LIMIT_TRUNCATED)
		return hydns_finish(ctx, q, hydns_slip(ctx, q));
	return hydns_leave(ctx, q, q->cpu.reason);
}

/* Goes on with a query that the analysers have seen, or the guard. */
SEC("xdp.frags")
int hydns_left(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);

	return q ? hydns_go_on(ctx, q, q->cpu.reason) : XDP_PASS;
}

/*
 * The dry run: with which reason a frame would end. hydnsd alone runs it (BPF_PROG_TEST_RUN). It runs the same stages up to
 * where the frame would change. It writes only its scratch, and is loaded with a hydns_scratch of its own, because a packet
 * may interrupt a test run (Linux 6.1). It is a program of its own so that hydns_xdp has no instruction for it.
 */
SEC("?xdp")
int hydns_dry(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct hydns_switch *s = bpf_map_lookup_elem(&hydns_switch, &zero);
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	__u32 reason;

	if (!s || !q)
		return HYDNS_DRY_RESULT(HYDNS_R_NO_ENTRY, HYDNS_R_NO_ENTRY);
	reason = hydns_core(ctx, q, hydns_now(&q->cpu), true, true);
	if (hydns_dry_names && (reason == HYDNS_R_MISS || reason == HYDNS_R_TYPE_ANY)) {
		__u32 below = hydns_decide_below(ctx, q, hydns_now(&q->cpu), true, true);

		reason = below == HYDNS_R_MISS ? reason : below;
	}
	if (reason == HYDNS_R_REFUSED)
		reason = q->cpu.reason;
	if (*(const volatile __u32 *)&s->paused)
		return HYDNS_DRY_RESULT(HYDNS_R_PAUSED, reason);
	return HYDNS_DRY_RESULT(hydns_nothing_to_do() ? HYDNS_R_EMPTY : reason, reason);
}

char _license[] SEC("license") = "GPL";
