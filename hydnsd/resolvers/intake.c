/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/intake.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "hydnsd/control/activity.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/loop.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/resolvers/catch_up.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/rings.h"
#include "hydnsd/resolvers/session_internal.h"
#include "hydnsd/resolvers/withdrawals.h"
#include "hydnsd/rules/signature.h"
#include "hydnsd/rules/lost.h"

#define FRAMES_PER_ROUND 64            /* of each ring */
#define BATCH            16            /* offers that are admitted together */
/* A plugin that fills this much of its ring while hydnsd sleeps would soon fill all of it. So hydnsd polls with short naps
 * for a while. (Polling without naps slows the plugin down: both then fight for the cache line with the ring's head.) */
#define POLL_FAST_OCTETS (HYDNS_RING_BYTES / 4)
#define POLL_FAST_MS     20
#define NAP_NS           200000
/* After a change hydnsd polls for a while: more are likely, and each would write to the doorbell. After an offer it asks for the
 * doorbell for changes alone: to wake for each of 400 offers a second took 2.5 % of a processor. */
#define LINGER_MS        5
#define POLL_MS          2             /* at 1 ms hydnsd took 4.6 % of a processor under a steady flow */
#define OFFERS_WAIT_MS   5

/* -- one frame ------------------------------------------------------------------------------------------ */
static enum hydnsd_rejection check_stamp(const struct hydnsd *d, const struct hydnsd_resolver *r,
					 uint32_t i, const struct hydnsd_answer *answer)
{
	if (r->state != HYDNSD_RESOLVER_READY)
		return HYDNSD_REJECT_NOT_READY;
	if (answer->epoch != hydnsd_resolver_epoch(d, i))
		return HYDNSD_REJECT_EPOCH;
	if (answer->generation < r->min_generation ||
	    hydnsd_changed_names_affect(&r->changed_names, answer->generation, answer->signature))
		return HYDNSD_REJECT_GENERATION;
	return HYDNSD_ACCEPTED;
}

/* Offers that have passed the checks. Several are admitted together, so that the memory each needs arrives in the cache
 * while the others are checked. */
static struct {
	struct hydnsd_answer answer[BATCH];
	uint32_t count;
} batch;                               /* large; one thread */

/* key: of the question; 0: unreadable. */
static void reject(struct hydnsd *d, uint64_t key, enum hydnsd_rejection why)
{
	d->rejected[why]++;
	if (key)
		hydnsd_activity_refused(d, key, why);
}

static void reject_answer(struct hydnsd *d, uint32_t i, const struct hydnsd_answer *a, enum hydnsd_rejection why)
{
	const struct hydns_rule *head = &a->parts.head;

	reject(d, a->parts.key, why);
	if (why == HYDNSD_REJECT_KNOWN)
		return;                /* the question has a rule; most rejections are of this kind */
	hydnsd_missing_record(d->missing, &(struct hydnsd_missing){
		.name = a->parts.name, .name_len = head->name_len, .variant = head->variant, .resolver = (uint8_t)i,
		.qtype = head->qtype, .refused = why, .rate = hydnsd_missing_rate(a->count, a->window_ms),
		.key = a->parts.key, .at_ms = hydnsd_now_ms(),
	});
}

/* For an offer that fails the checks. */
static void reject_offer(struct hydnsd *d, uint32_t i, const struct hydns_offer *o, enum hydnsd_rejection why)
{
	uint64_t key = hydnsd_rejection_is_readable(why) ? hydnsd_activity_key(d, i, o) : 0;

	reject(d, key, why);
	if (!key)
		return;
	hydnsd_missing_record(d->missing, &(struct hydnsd_missing){
		.name = o->data, .name_len = o->name_len, .variant = o->variant, .resolver = (uint8_t)i,
		.qtype = o->qtype, .refused = why, .rate = hydnsd_missing_rate(o->count, o->window_ms),
		.key = key, .at_ms = hydnsd_now_ms(),
	});
}

/* Of an offer that is to stay. One that a withdrawal has overtaken is as a rule that was withdrawn: the plugin asks for it again. */
static void count_kept(struct hydnsd *d, uint32_t i, const struct hydnsd_answer *a, enum hydnsd_rejection why)
{
	const struct hydns_rule *head = &a->parts.head;

	if (why == HYDNSD_REJECT_GENERATION)
		hydnsd_lost_add(hydnsd_rules_lost(d->rules, i), a->parts.name, head->name_len, head->qtype,
				head->variant & HYDNS_VARIANTS);
	else
		hydnsd_preload_count(&d->resolver[i].preload, why);
}

static void admit_batch(struct hydnsd *d, uint32_t i, uint64_t now_ns)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	const struct hydnsd_offerer by = {
		.resolver = i, .capacity = r->hello.capacity,
		.refresh_percent = r->hello.refresh_percent,
	};

	for (uint32_t n = 0; n < batch.count; n++) {
		struct hydnsd_answer *answer = &batch.answer[n];
		enum hydnsd_rejection why = check_stamp(d, r, i, answer);

		if (!why)
			why = hydnsd_rules_admit(d->rules, &by, answer, now_ns);
		if (answer->parts.head.flags & HYDNS_RULE_KEPT)
			count_kept(d, i, answer, why);
		if (why)
			reject_answer(d, i, answer, why);
	}
	batch.count = 0;
}

static struct hydnsd_offer_limits limits_of(const struct hydnsd *d, const struct hydnsd_resolver *r, uint64_t now_ns)
{
	return (struct hydnsd_offer_limits){
		.now_ns = now_ns, .seed = hydnsd_rules_seed(d->rules), .place_seed = { r->hello.seed[0], r->hello.seed[1] },
		.min_ttl = r->hello.min_ttl, .max_ttl = r->hello.max_ttl,
		.rotates = r->hello.flags & HYDNS_RESOLVER_ROTATES,
	};
}

static void take_offer(struct hydnsd *d, uint32_t i, const struct hydns_offer *o, uint64_t now_ns)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	const struct hydnsd_offer_limits limits = limits_of(d, r, now_ns);
	struct hydnsd_answer *answer = &batch.answer[batch.count];
	enum hydnsd_rejection why = hydnsd_offer_check(o, o->frame.len, &limits, answer);

	d->offers_received++;
	if (why) {
		if (hydnsd_rejection_is_readable(why) && (o->flags & HYDNS_RULE_KEPT))
			hydnsd_preload_count(&r->preload, why);
		reject_offer(d, i, o, why);
		return;
	}
	hydnsd_rules_prepare(d->rules, i, answer);
	if (++batch.count == BATCH)
		admit_batch(d, i, now_ns);
}

enum hydnsd_rejection hydnsd_intake_forwarded(struct hydnsd *d, uint32_t i, const struct hydns_offer *o)
{
	static struct hydnsd_answer answer; /* large; one thread */
	const struct hydnsd_resolver *r = &d->resolver[i];
	const struct hydnsd_offerer by = { .resolver = i, .capacity = r->hello.capacity, .awaited = true };
	uint64_t now_ns = hydnsd_now_ns();
	const struct hydnsd_offer_limits limits = limits_of(d, r, now_ns);
	enum hydnsd_rejection why = hydnsd_offer_check(o, o->frame.len, &limits, &answer);

	if (why) {
		reject_offer(d, i, o, why);
		return why;
	}
	why = check_stamp(d, r, i, &answer);
	if (!why)
		why = hydnsd_rules_admit(d->rules, &by, &answer, now_ns);
	if (why)
		reject_answer(d, i, &answer, why);
	return why == HYDNSD_REJECT_KNOWN ? HYDNSD_ACCEPTED : why;
}

static void change_done(struct hydnsd *d, uint64_t client, uint32_t tag, uint32_t withdrawn)
{
	struct hydnsd_session *s = hydnsd_session_find(d, client);

	(void)withdrawn;
	if (s)
		hydnsd_begun_done(&s->begun, tag);
}

/* Withdraws what depends on the name and was offered before the change. What was offered since shows the changed data, and
 * stays. Where memory fails for a change of data, its frame stays in the ring, for the next session. */
static void withdraw_older(struct hydnsd_session *s, struct hydnsd_withdrawal *w)
{
	const struct hydnsd_withdrawal_end end = {
		.done = change_done, .client = s->id, .tag = hydnsd_begun_add(&s->begun), .patient = w->rrtype,
	};

	w->resolver = (uint32_t)s->resolver;
	w->scope = HYDNS_SCOPE_NAME;
	if (!hydnsd_withdrawals_begin(s->daemon, w, 1, &end))
		return;
	if (w->rrtype)
		change_done(s->daemon, s->id, end.tag, 0);
	else
		hydnsd_session_end(s, "out of memory: give hydnsd more");
}

/* Rules of other questions that show the RRset get its TTL. Until then they send one that is too low, and nothing worse. */
static void update_rules_that_show(struct hydnsd_session *s, const struct hydnsd_ttl_update *n)
{
	struct hydnsd_withdrawal w = {
		.generation = n->generation, .rrtype = ntohs(n->rrtype), .section = n->section, .end_ns = n->end_ns,
		.name_len = n->name_len,
	};

	memcpy(w.name, n->name, n->name_len);
	withdraw_older(s, &w);
}

/* Carries out the TTL updates that were due by then. */
static void follow_ttl_updates(struct hydnsd_session *s, uint64_t by_ms)
{
	struct hydnsd_rules *rules = s->daemon->rules;
	uint64_t now_ns = hydnsd_now_ns();
	const struct hydnsd_ttl_update *n;

	while ((n = hydnsd_ttl_updates_take(&s->ttl_updates, by_ms))) {
		if (n->shared)
			update_rules_that_show(s, n);
		else if (n->section != HYDNS_SECTION_AUTHORITY)
			hydnsd_rules_withdraw_older(rules, (uint32_t)s->resolver, n->name, n->name_len, n->rrtype,
					      n->generation, now_ns);
	}
}

/* False when the frame is broken. */
static bool take_changed(struct hydnsd_session *s, const struct hydns_changed *c)
{
	struct hydnsd *d = s->daemon;
	struct hydnsd_resolver *r = &d->resolver[s->resolver];
	struct hydnsd_withdrawal w = { .generation = c->generation, .name_len = c->name_len };

	if (c->frame.len < offsetof(struct hydns_changed, data) + c->name_len || c->section > HYDNS_SECTION_AUTHORITY ||
	    !hydnsd_name_valid(c->data, c->name_len))
		return false;
	s->changed_ms = hydnsd_now_ms();
	hydnsd_changed_names_record(&r->changed_names, c->generation,
			    hydnsd_signature_of(c->data, c->name_len, hydnsd_rules_seed(d->rules)));
	if (c->ttl_of) {
		hydnsd_ttl_updates_put(&s->ttl_updates, c, hydnsd_now_ms());
		return true;
	}
	d->changed++;
	memcpy(w.name, c->data, c->name_len);
	withdraw_older(s, &w);
	return true;
}

static bool take_frame(struct hydnsd_session *s, const union hydnsd_frame *f, uint64_t now_ns)
{
	struct hydnsd *d = s->daemon;

	switch (f->head.type) {
	case HYDNS_FRAME_OFFER:
		take_offer(d, (uint32_t)s->resolver, &f->offer, now_ns);
		return true;
	case HYDNS_FRAME_CHANGED:
		admit_batch(d, (uint32_t)s->resolver, now_ns); /* offers that came before the change */
		return f->head.len >= sizeof(f->changed) && take_changed(s, &f->changed);
	case HYDNS_FRAME_OVER:
		if (f->head.len < sizeof(f->over))
			return false;
		admit_batch(d, (uint32_t)s->resolver, now_ns); /* the answer, so that its rule stands first */
		hydnsd_parking_over(d, (uint32_t)s->resolver, f->over.key);
		return true;
	default:
		return false;
	}
}

/* -- all rings of a session ------------------------------------------------------------------------------ */
/* True while too much of what was taken from the rings is under way. */
static bool choked(const struct hydnsd_session *s)
{
	return hydnsd_begun_full(&s->begun) || hydnsd_ttl_updates_full(&s->ttl_updates);
}

/* Takes *taken frames. False: one is broken. */
static bool take_frames(struct hydnsd_session *s, struct hydnsd_ring *r, uint64_t now_ns, uint32_t *taken)
{
	static union hydnsd_frame frame; /* large; one thread */

	for (*taken = 0; *taken < FRAMES_PER_ROUND && !choked(s) && !s->dead; ++*taken) {
		enum hydnsd_taken t = hydnsd_ring_take(r, &frame);

		if (t == HYDNSD_TAKEN_NONE)
			break;
		if (t == HYDNSD_TAKEN_BROKEN || !take_frame(s, &frame, now_ns))
			return false;
	}
	return true;
}

static bool drain(struct hydnsd_session *s, struct hydnsd_ring *r, bool *more)
{
	uint64_t now_ns = hydnsd_now_ns();
	uint32_t taken;
	bool whole = take_frames(s, r, now_ns, &taken);

	admit_batch(s->daemon, (uint32_t)s->resolver, now_ns);
	if (s->dead)
		return true;
	hydnsd_ring_give_back(r, &s->begun);
	if (taken)
		s->busy_ms = now_ns / HYDNS_NS_PER_MS;
	if (r->head - r->tail >= POLL_FAST_OCTETS)
		s->poll_fast_until_ms = now_ns / HYDNS_NS_PER_MS + POLL_FAST_MS;
	*more |= taken == FRAMES_PER_ROUND || choked(s);
	return whole;
}

/* Shorter than the loop can wait. */
static void nap(void)
{
	const struct timespec t = { .tv_nsec = NAP_NS };

	nanosleep(&t, NULL);
}

/* Returns what hydnsd_intake_work() does. offers: some came a moment ago. */
static int fall_asleep(struct hydnsd_session *s, bool offers)
{
	hydnsd_rings_need_wakeup(s, offers ? HYDNS_WAKEUP_CHANGES : HYDNS_WAKEUP_ALL);
	if (!hydnsd_rings_any_ready(s))
		return offers ? OFFERS_WAIT_MS : -1;
	hydnsd_rings_need_wakeup(s, HYDNS_WAKEUP_NONE);
	return 0;
}

/* Returns what hydnsd_intake_work() does. */
static int poll_rings(struct hydnsd_session *s)
{
	bool more = false;
	uint64_t now_ms;

	if (s->rings == 0)
		return -1;
	hydnsd_rings_set_threshold(s);
	for (uint32_t i = 0; i < s->rings; i++)
		hydnsd_ring_give_back(&s->ring[i], &s->begun);
	if (s->asleep)
		return -1;
	for (uint32_t i = 0; i < s->rings && !s->dead; i++)
		if (!drain(s, &s->ring[i], &more)) {
			s->daemon->sessions_dropped++;
			hydnsd_session_end(s, "a ring holds a broken frame: use a plugin of this hydnsd's "
					   "version, or look for a fault in it");
			return 0;
		}
	if (more)
		return choked(s) ? POLL_MS : 0;
	now_ms = hydnsd_now_ms();
	if (now_ms < s->poll_fast_until_ms) {
		nap();
		return 0;
	}
	return now_ms - s->changed_ms < LINGER_MS ? POLL_MS : fall_asleep(s, now_ms - s->busy_ms < OFFERS_WAIT_MS);
}

/* Up to where the heads are now: somebody else may hold a ring, and go on writing. */
bool hydnsd_intake_finish(struct hydnsd_session *s)
{
	uint32_t head[HYDNS_THREADS_MAX];
	bool more;

	hydnsd_rings_heads(s, head);
	for (uint32_t i = 0; i < s->rings; i++)
		while ((int32_t)(s->ring[i].tail - head[i]) < 0) {
			uint32_t before = s->ring[i].tail;

			follow_ttl_updates(s, UINT64_MAX);
			if (!drain(s, &s->ring[i], &more) || s->dead || s->ring[i].tail == before)
				return false;
		}
	follow_ttl_updates(s, UINT64_MAX);
	return !s->dead;
}

int hydnsd_intake_work(struct hydnsd_session *s)
{
	int wait;

	follow_ttl_updates(s, hydnsd_now_ms());
	wait = poll_rings(s);
	hydnsd_catch_up_work(s);
	hydnsd_preload_work(s);
	return hydnsd_sooner(wait, hydnsd_ttl_updates_next(&s->ttl_updates, hydnsd_now_ms()));
}
