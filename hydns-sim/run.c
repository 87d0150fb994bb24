/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/run.h"

#include <string.h>
#include "hydns-sim/resolver.h"

#define SECOND 1000000U

struct run {
	const struct contender_kind *kind;
	const struct sim_trace *trace;
	struct contender *contender;
	struct resolver *resolver;
	struct run_result *out;
	uint64_t second, installs_then;        /* for installs a second */
	uint64_t installs_warm, warm_us;
	uint64_t marked_answer_us;
	bool marked_hit, warm;
};

static void take_answer(struct run *r, const struct sim_answer *a, uint64_t now_us)
{
	if (a->id == r->trace->marked && !r->marked_answer_us)
		r->marked_answer_us = now_us;
	if (r->trace->ttl[a->id] && r->kind->answered(r->contender, a, now_us))
		resolver_refresh(r->resolver, a->id, now_us);
}

static bool play(struct run *r, const struct sim_request *q)
{
	uint64_t now_us = SIM_BASE_US + q->at_us, at_us;
	struct sim_answer a;

	while (resolver_done(r->resolver, now_us, &a, &at_us))
		take_answer(r, &a, at_us);
	if (r->kind->query(r->contender, q->id, now_us)) {
		if (q->id == r->trace->marked && !r->marked_hit) {
			r->marked_hit = true;
			r->out->marked_ms = (double)(now_us - r->marked_answer_us) / 1000;
		}
		return true;
	}
	if (resolver_query(r->resolver, q->id, now_us, &a))
		take_answer(r, &a, now_us);
	return false;
}

/* Once a simulated second: what is counted by the second. */
static void each_second(struct run *r, uint64_t at_us)
{
	struct contender_stats s;

	r->kind->stats(r->contender, &s);
	if (s.rules > r->out->rules_most)
		r->out->rules_most = s.rules;
	if (r->warm && at_us / SECOND == r->second + 1 && s.installs - r->installs_then > r->out->installs_most_s)
		r->out->installs_most_s = s.installs - r->installs_then;
	r->installs_then = s.installs;
	r->second = at_us / SECOND;
}

static void end_interval(struct run *r, struct run_interval *i, uint64_t *installs, uint64_t from_us, uint64_t to_us)
{
	struct contender_stats s;

	r->kind->stats(r->contender, &s);
	i->installs = s.installs - *installs;
	i->seconds = (double)(to_us - from_us) / SECOND;
	*installs = s.installs;
}

static void begin_counting(struct run *r, uint64_t at_us)
{
	struct contender_stats s;

	r->kind->stats(r->contender, &s);
	r->warm = true;
	r->installs_warm = s.installs;
	r->warm_us = at_us;
}

static void play_all(struct run *r, const struct run_options *o)
{
	const struct sim_trace *t = r->trace;
	size_t warm = (size_t)(o->warm_up * (double)t->count), interval = 0, each = t->count / RUN_INTERVALS + 1;
	size_t halve = o->halve_at > 0 ? (size_t)(o->halve_at * (double)t->count) : t->count;
	uint64_t from_us = 0, installs = 0;

	for (size_t n = 0; n < t->count; n++) {
		const struct sim_request *q = &t->request[n];
		bool hit;

		if (q->at_us / SECOND != r->second)
			each_second(r, q->at_us);
		if (n / each != interval) {
			end_interval(r, &r->out->interval[interval], &installs, from_us, q->at_us);
			from_us = q->at_us;
			interval = n / each;
		}
		if (n == warm)
			begin_counting(r, q->at_us);
		if (n == halve)
			r->kind->set_capacity(r->contender, o->capacity / 2, SIM_BASE_US + q->at_us);
		hit = play(r, q);
		r->out->interval[interval].requests++;
		r->out->interval[interval].hits += hit;
		r->out->requests += n >= warm;
		r->out->hits += n >= warm && hit;
	}
	if (t->count)
		end_interval(r, &r->out->interval[interval], &installs, from_us, t->request[t->count - 1].at_us);
}

static void finish(struct run *r)
{
	uint64_t end_us = r->trace->count ? r->trace->request[r->trace->count - 1].at_us : 0;

	r->kind->stats(r->contender, &r->out->stats);
	r->out->lookups = resolver_lookups(r->resolver);
	if (end_us > r->warm_us)
		r->out->installs_s = (double)(r->out->stats.installs - r->installs_warm) * SECOND /
				     (double)(end_us - r->warm_us);
}

bool sim_run(const struct contender_kind *kind, const struct sim_trace *t, const struct run_options *o,
	     struct run_result *out)
{
	struct run r = { .kind = kind, .trace = t, .out = out };

	memset(out, 0, sizeof(*out));
	out->kind = kind;
	out->capacity = o->capacity;
	out->marked_ms = -1;
	if (o->halve_at > 0 && !kind->set_capacity)
		return false;
	r.contender = kind->open(t, o->capacity);
	r.resolver = resolver_open(t, o->latency_ms);
	if (r.contender && r.resolver) {
		play_all(&r, o);
		finish(&r);
	}
	if (r.contender)
		kind->close(r.contender);
	if (r.resolver)
		resolver_close(r.resolver);
	return r.contender && r.resolver;
}
