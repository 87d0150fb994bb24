/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/parking/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/parking/checksum.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/ring.h"
#include "hydnsd/resolvers/session.h"

/* Frames that a rule answers, in a round of the loop: about 1.3 ms. */
#define FRAMES_PER_ROUND    2048
/* Questions for whose rule a round looks at most, in each list. */
#define QUESTIONS_PER_ROUND 1024
/* Frames of a resolver that pass to its socket in a millisecond. Its receive buffer of 212,992 octets, the default, holds
 * some 45 of them, since each has a page of its own; and a resolver needs about 50 us for a query that it resolves. */
#define PASS_PER_MS         16
/* The resolver may have no processor just now. So no more pass while so many have that it has not been seen to read; after a while
 * without any they count as read, since it counts no query that it refuses, and a sample of those that come in a storm. */
#define UNREAD_MOST         32
#define UNREAD_MS           50
/* Of frames that should be answered some pass all the same, as the access list says. Up to so many that is no reason to stop. */
#define DEBT_MOST           (4 * PASS_PER_MS)

/* A link that has refused an answer gets the next one a millisecond later; one that refuses a frame so often loses it. */
#define REFUSED_MOST        1000

/* Frames that are taken and not yet replayed. */
static struct {
	struct hydnsd_parked_frame *frame[FRAMES_PER_ROUND];
	uint32_t count;
} taken;                               /* large; one thread */

/* Those of them whose answers a link has refused. */
static struct {
	const struct hydns_parked *record[FRAMES_PER_ROUND];
	uint32_t count;
} refused;

/* -- a batch ---------------------------------------------------------------------------------------------- */
static void write_frames(struct hydnsd *d, const struct hydns_parked *const *record, uint32_t n)
{
	struct hydns_replays *out = hydns_kern_replays(d->kern);

	for (uint32_t k = 0; k < n; k++) {
		struct hydns_replay_frame *f = &out->frame[k];

		f->len = record[k]->frame_len;
		f->tried = 0;
		memcpy(f->octets, record[k] + 1, f->len);
		if (d->with.partial_checksum)
			hydnsd_checksum_complete(f->octets, f->len, record[k]->dns_off, record[k]->ipv6);
	}
}

/* Notes the frames whose answers the link has refused. */
static void note_refused(struct hydnsd *d, const struct hydns_parked *const *record, uint32_t n)
{
	const struct hydns_replays *out = hydns_kern_replays(d->kern);
	struct hydnsd_parking_resolver *r = &d->parking->of[record[0]->resolver];

	for (uint32_t k = 0; k < n; k++) {
		if (!out->frame[k].refused)
			continue;
		r->refused_ms = hydnsd_now_ms();
		r->counts.refused++;
		r->counts.answered--;
		refused.record[refused.count++] = record[k];
	}
}

/* How long those had waited that a rule has answered. */
static void note_waits(struct hydnsd *d, const struct hydns_parked *const *record, uint32_t n)
{
	struct hydnsd_histogram *waited = &d->parking->of[record[0]->resolver].counts.waited;
	const struct hydns_replay_frame *f = hydns_kern_replays(d->kern)->frame;
	uint64_t now = hydnsd_now_ns();

	for (uint32_t k = 0; k < n; k++)
		if (!f[k].passed && !f[k].refused)
			hydnsd_histogram_add(waited, HYDNSD_SCALE_WAIT, now > record[k]->at_ns ? now - record[k]->at_ns : 0, 1);
}

/* Of n frames that came in, those whose answers leave by another link come first in later; returns how many. */
static uint32_t find_later(struct hydnsd *d, const struct hydns_parked *const *record, uint32_t n, const struct hydns_parked **later)
{
	const struct hydns_replays *out = hydns_kern_replays(d->kern);
	uint32_t count = 0;

	for (uint32_t k = 0; k < n; k++)
		if (out->frame[k].passed == HYDNS_REPLAY_LATER)
			later[count++] = record[k];
	return count;
}

/* So many came in again; so many of them no rule has answered. */
static void count_replayed(struct hydnsd_parking_resolver *r, uint32_t done, uint32_t passed)
{
	r->counts.replayed += done;
	r->counts.passed += passed;
	r->counts.answered += done - passed;
	r->may_pass -= passed;
	r->unread += passed;
}

/* Returns how many of n frames came in. *later: how many of those have to come again; with the others that have, they are moved to the
 * beginning. */
static uint32_t try_batch(struct hydnsd *d, const struct hydns_parked **record, uint32_t n, uint32_t *later, bool *gone)
{
	uint32_t passed = 0, done, ended;
	int rc;

	write_frames(d, record, n);
	rc = hydns_kern_replay(d->kern, record[0]->ifindex, record[0]->rx_queue, n, &passed);
	*gone = rc == -ENODEV;
	done = rc < 0 ? 0 : (uint32_t)rc < n ? (uint32_t)rc : n;
	note_refused(d, record, done);
	note_waits(d, record, done);
	*later = find_later(d, record, done, record);
	ended = done - *later;
	count_replayed(&d->parking->of[record[0]->resolver], ended, passed < ended ? passed : ended);
	memmove(record + *later, record + done, (n - done) * sizeof(*record));
	return done;
}

/* 1 to HYDNS_REPLAYS frames of one resolver that came by one queue. What does not come in when it is tried a second time is lost; so
 * are all where the program is not attached: a replay would wait for two grace periods. */
static void replay_batch(struct hydnsd *d, const struct hydns_parked *const *record, uint32_t n)
{
	uint32_t i = record[0]->resolver, left = n, failures = 0;
	const struct hydns_parked *rest[HYDNS_REPLAYS];
	bool gone = !hydnsd_interfaces_attached_to(d, record[0]->ifindex);

	memcpy(rest, record, n * sizeof(*rest));
	while (left && !gone && failures < 2) {
		uint32_t later, done = try_batch(d, rest, left, &later, &gone);

		failures += done < left;
		left -= done - later;
	}
	d->parking->of[i].counts.lost += left;
	__atomic_sub_fetch(&hydns_kern_parking(d->kern, i)->waiting, n, __ATOMIC_RELAXED);
}

void hydnsd_replay_now(struct hydnsd *d, const struct hydns_parked *record)
{
	replay_batch(d, &record, 1);
	d->parking->of[record->resolver].counts.lost += refused.count;
	refused.count = 0;
}

/* -- a round ---------------------------------------------------------------------------------------------- */
static int compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* Frames of one batch stand together, the oldest first. */
static int by_batch(const void *a, const void *b)
{
	const struct hydns_parked *x = &(*(struct hydnsd_parked_frame *const *)a)->record;
	const struct hydns_parked *y = &(*(struct hydnsd_parked_frame *const *)b)->record;
	int order = compare(x->resolver, y->resolver);

	if (!order)
		order = compare(x->ifindex, y->ifindex);
	if (!order)
		order = compare(x->rx_queue, y->rx_queue);
	return order ? order : x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static bool same_batch(const struct hydns_parked *a, const struct hydns_parked *b)
{
	return a->resolver == b->resolver && a->ifindex == b->ifindex && a->rx_queue == b->rx_queue;
}

/* Whether a link has refused an answer of this resolver in this millisecond. */
static bool is_refused_now(const struct hydnsd *d, uint32_t i)
{
	return d->parking->of[i].refused_ms == hydnsd_now_ms();
}

/* A link that is full takes no other frame of this round either. */
static void hold_back(struct hydnsd *d, const struct hydns_parked *const *record, uint32_t n)
{
	__atomic_sub_fetch(&hydns_kern_parking(d->kern, record[0]->resolver)->waiting, n, __ATOMIC_RELAXED);
	for (uint32_t k = 0; k < n; k++)
		refused.record[refused.count++] = record[k];
}

/* Of a record that was taken. */
static struct hydnsd_parked_frame *frame_of(const struct hydns_parked *record)
{
	return (struct hydnsd_parked_frame *)((char *)record - offsetof(struct hydnsd_parked_frame, record));
}

/* One that was refused is due again. */
static bool comes_again(struct hydnsd *d, struct hydnsd_parked_frame *f)
{
	struct hydnsd_parking_resolver *r = &d->parking->of[f->record.resolver];

	if (++f->refused < REFUSED_MOST && hydnsd_parked_again(d->parking->parked, f)) {
		__atomic_add_fetch(&hydns_kern_parking(d->kern, f->record.resolver)->waiting, 1, __ATOMIC_RELAXED);
		return true;
	}
	r->counts.lost++;
	return false;
}

static void end_taken(struct hydnsd *d)
{
	for (uint32_t k = 0; k < refused.count; k++)
		frame_of(refused.record[k])->again = true;
	for (uint32_t k = 0; k < taken.count; k++) {
		bool again = taken.frame[k]->again;

		taken.frame[k]->again = false;
		if (!again || !comes_again(d, taken.frame[k]))
			hydnsd_parked_drop(d->parking->parked, taken.frame[k]);
	}
	taken.count = refused.count = 0;
}

static void replay_taken(struct hydnsd *d)
{
	const struct hydns_parked *record[HYDNS_REPLAYS];
	uint32_t n = 0;

	qsort(taken.frame, taken.count, sizeof(taken.frame[0]), by_batch);
	for (uint32_t k = 0; k < taken.count; k++) {
		record[n++] = &taken.frame[k]->record;
		if (n < HYDNS_REPLAYS && k + 1 < taken.count && same_batch(record[0], &taken.frame[k + 1]->record))
			continue;
		if (is_refused_now(d, record[0]->resolver))
			hold_back(d, record, n);
		else
			replay_batch(d, record, n);
		n = 0;
	}
	end_taken(d);
}

static void take(struct hydnsd *d, struct hydnsd_parked_question *q, uint32_t most)
{
	uint32_t room = FRAMES_PER_ROUND - taken.count;

	taken.count += hydnsd_parked_take(d->parking->parked, q, taken.frame + taken.count, most < room ? most : room);
}

/* Whether the program would answer the question by a rule now. */
static bool has_rule(struct hydnsd *d, const struct hydnsd_parked_question *q)
{
	const struct hydns_parked *record = &hydnsd_parked_oldest(q)->record;
	struct hydns_store *store = hydnsd_rules_store(d->rules);
	struct hydnsd_parked_asked asked;
	struct hydns_rule_parts parts = { .name = asked.name, .key = record->rule_key };
	const struct hydns_rule *rule;

	if (d->parking->paused || !hydnsd_parked_read(record, &asked))
		return false;
	parts.head = (struct hydns_rule){
		.name_len = record->name_len, .qtype = asked.qtype, .variant = record->variant, .resolver = record->resolver,
	};
	rule = hydns_store_rule(store, hydns_store_find_parts(store, &parts));
	return rule && rule->epoch == hydnsd_resolver_epoch(d, q->resolver) && !hydnsd_resolver_suspends(d, rule);
}

/* Takes what a rule answers; the others join the line of those that pass. */
static void take_answered(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_parked *p = d->parking->parked;
	struct hydnsd_parked_question *q;

	if (is_refused_now(d, i))
		return;
	for (uint32_t n = 0; n < QUESTIONS_PER_ROUND && taken.count < FRAMES_PER_ROUND &&
	     d->parking->of[i].may_pass > -DEBT_MOST && (q = hydnsd_parked_first(p, i, HYDNSD_DUE_FRESH)); n++) {
		if (has_rule(d, q))
			take(d, q, FRAMES_PER_ROUND);
		else
			hydnsd_parked_move(p, q, HYDNSD_DUE_PACED);
	}
}

/* What a rule answers by now leaves the line of those that pass: the first frame that passes makes the resolver offer. */
static void leave_line(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_parked *p = d->parking->parked;
	struct hydnsd_parked_question *q = hydnsd_parked_first(p, i, HYDNSD_DUE_PACED), *next;

	for (uint32_t n = 0; q && n < QUESTIONS_PER_ROUND; n++, q = next) {
		next = hydnsd_parked_next(q);
		if (has_rule(d, q))
			hydnsd_parked_move(p, q, HYDNSD_DUE_FRESH);
	}
}

/* Takes as many as may pass: one frame of the first question, which then goes to the end of the line, and so on. So each question
 * soon has its first. */
static void take_passing(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_parked *p = d->parking->parked;
	struct hydnsd_parked_question *q;

	if (!d->parking->hurry)
		leave_line(d, i);
	for (int64_t left = d->parking->of[i].may_pass;
	     left > 0 && taken.count < FRAMES_PER_ROUND && (q = hydnsd_parked_first(p, i, HYDNSD_DUE_PACED)); left--) {
		bool more = q->due > 1;

		take(d, q, 1);
		if (more)
			hydnsd_parked_move(p, q, HYDNSD_DUE_PACED);
	}
}

/* For each resolver, another one first in each round. */
static void for_each(struct hydnsd *d, void (*take_some)(struct hydnsd *d, uint32_t i))
{
	for (uint32_t n = 0; n < HYDNS_RESOLVERS; n++) {
		uint32_t i = (d->parking->turn + n) % HYDNS_RESOLVERS;

		if (!hydnsd_parking_holds(d, i))
			take_some(d, i);
	}
	if (taken.count)
		replay_taken(d);
}

static void look_what_was_read(struct hydnsd *d, uint32_t i, uint64_t now_ms)
{
	struct hydnsd_parking_resolver *r = &d->parking->of[i];
	struct hydnsd_ring_counts now;
	uint64_t read;

	hydnsd_session_ring_counts(d, d->resolver[i].session, &now);
	read = now.queries > r->queries ? now.queries - r->queries : 0;
	r->queries = now.queries;
	if (read || !r->unread)
		r->read_ms = now_ms;
	if (now_ms - r->read_ms >= UNREAD_MS)
		read = r->unread;
	r->unread -= read < r->unread ? read : r->unread;
}

static int64_t lower(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void fill(struct hydnsd *d, uint64_t now_ms)
{
	struct hydnsd_parking *p = d->parking;
	int64_t more = (int64_t)(now_ms - p->paced_ms) * PASS_PER_MS;

	p->paced_ms = now_ms;
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_parking_resolver *r = &p->of[i];

		look_what_was_read(d, i, now_ms);
		r->may_pass = lower(r->may_pass + more, PASS_PER_MS);
		if (p->hurry)
			r->may_pass = FRAMES_PER_ROUND;
		else if (r->unread > UNREAD_MOST - PASS_PER_MS)
			r->may_pass = lower(r->may_pass, (int64_t)UNREAD_MOST - (int64_t)r->unread);
	}
}

/* Whether frames are due that need not wait for the next millisecond (now), or any. */
static bool any_due(struct hydnsd *d, bool now)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		bool fresh = hydnsd_parked_first(d->parking->parked, i, HYDNSD_DUE_FRESH);

		if (hydnsd_parking_holds(d, i))
			continue;
		if (now ? fresh && d->parking->of[i].may_pass > -DEBT_MOST && !is_refused_now(d, i) :
			  fresh || hydnsd_parked_first(d->parking->parked, i, HYDNSD_DUE_PACED))
			return true;
	}
	return false;
}

int hydnsd_replay_work(struct hydnsd *d)
{
	struct hydnsd_parking *p = d->parking;
	uint64_t now_ms = hydnsd_now_ms();
	bool pass = p->hurry || now_ms != p->paced_ms;

	if (!any_due(d, false))
		return -1;
	p->turn = (p->turn + 1) % HYDNS_RESOLVERS;
	p->paused = false;
	hydns_kern_paused(d->kern, &p->paused);
	if (pass)
		fill(d, now_ms);
	for_each(d, take_answered);
	if (pass)
		for_each(d, take_passing);
	if (any_due(d, true))
		return 0;
	return any_due(d, false) ? 1 : -1;
}

/* -- another upstream server ------------------------------------------------------------------------------ */
/* A rule may have come meanwhile: then it answers the frame, as it would in a round. */
bool hydnsd_replay_forward(struct hydnsd *d, uint32_t i, uint64_t key, uint32_t tried)
{
	struct hydnsd_parked_frame *f = hydnsd_parked_pull(d->parking->parked, i, key);
	struct hydns_replay_frame *out = &hydns_kern_replays(d->kern)->frame[0];
	struct hydnsd_parking_resolver *r = &d->parking->of[i];
	const struct hydns_parked *record;
	uint32_t passed = 0;

	if (!f)
		return false;
	taken.frame[taken.count++] = f;
	record = &f->record;
	write_frames(d, &record, 1);
	out->tried = tried;
	out->at_ns = record->at_ns;
	__atomic_sub_fetch(&hydns_kern_parking(d->kern, i)->waiting, 1, __ATOMIC_RELAXED);
	if (!hydnsd_interfaces_attached_to(d, record->ifindex) ||
	    hydns_kern_replay(d->kern, record->ifindex, record->rx_queue, 1, &passed) != 1) {
		r->counts.lost++;
	} else if (out->passed != HYDNS_REPLAY_FORWARDED) {
		count_replayed(r, 1, passed);
		note_refused(d, &record, 1);
	}
	end_taken(d);
	return true;
}
