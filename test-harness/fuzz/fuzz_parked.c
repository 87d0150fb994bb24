/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Parked queries in any order of what may happen to them, with records whose lengths, times and keys are hostile, beside a list that
 * does the same slowly: each frame waits, is due, is taken or has gone as the list says, once, and with its own octets. What of a record
 * can't be read is not put. With sanitizers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/parking/checksum.h"
#include "hydnsd/parking/parked.h"
#include "hydnsd/tests/parked.h"
#include "test-harness/fuzz/target.h"

#define COUNT_DEFAULT 4000
#define STEPS_MOST    64
#define MOST          24               /* frames at once: few, so that there is no room now and then */
#define RESOLVERS     3
#define KEYS          5

enum stage { GONE, WAITS, DUE, TAKEN };

/* The slow list: frame number i, whose record says i + 1 as its receive queue. */
static struct {
	enum stage stage;
	uint32_t resolver;
	uint64_t key, at_ns;
} frame[STEPS_MOST];
static unsigned frames;
static uint64_t put, unread, dropped_late;

static struct hydnsd_parked_frame *taken[MOST];
static unsigned in_hand;

static uint32_t some_resolver(void)
{
	return fuzz_below(RESOLVERS);
}

static uint64_t some_key(void)
{
	const uint32_t n = fuzz_below(KEYS);

	return PARKED_KEY(n);
}

/* A query as the program parks it, or with some of it changed. */
static struct parked_query *some_query(void)
{
	static struct parked_query q;

	q = parked_query("www.example.", some_key(), fuzz_below(8) * 100, fuzz_below(2));
	q.record.resolver = (uint8_t)some_resolver();
	q.record.rx_queue = frames + 1;
	if (!fuzz_below(4))
		q.record.dns_off = (uint16_t)fuzz_below(1 << 16);
	if (!fuzz_below(4))
		q.record.name_len = fuzz_octet();
	if (!fuzz_below(4))
		q.record.frame_len = (uint16_t)fuzz_below(fuzz_below(2) ? 1 << 16 : HYDNS_PARKED_FRAME + 1);
	for (unsigned n = fuzz_below(4); n; n--)
		q.octet[fuzz_below(HYDNS_PARKED_FRAME)] = fuzz_octet();
	return &q;
}

static const char *put_one(struct hydnsd_parked *p)
{
	struct parked_query *q = some_query();
	struct hydnsd_parked_asked asked;
	const size_t len = q->record.frame_len < HYDNS_PARKED_FRAME ? q->record.frame_len : HYDNS_PARKED_FRAME;
	struct hydns_parked *exact = malloc(sizeof(*exact) + len);
	bool due = fuzz_below(4) == 0, room = hydnsd_parked_count(p) < MOST;
	const char *wrong = NULL;

	memcpy(exact, q, sizeof(*exact) + len);
	if (!hydnsd_parked_read(exact, &asked)) {
		unread++;
	} else {
		hydnsd_checksum_complete((uint8_t *)(exact + 1), (uint32_t)len, exact->dns_off, exact->ipv6);
		if (hydnsd_parked_put(p, exact, due) != room)
			wrong = room ? "not put, though there is room" : "put where there is no room";
		if (room) {
			frame[frames].stage = due ? DUE : WAITS;
			frame[frames].resolver = exact->resolver;
			frame[frames].key = exact->key;
			frame[frames++].at_ns = exact->at_ns;
			put++;
		}
	}
	free(exact);
	return wrong;
}

static void slow_over(uint32_t resolver, uint64_t key)
{
	for (unsigned i = 0; i < frames; i++)
		if (frame[i].stage == WAITS && frame[i].resolver == resolver && frame[i].key == key)
			frame[i].stage = DUE;
}

/* Those that came before this time; returns how many. */
static uint32_t slow_end(uint32_t resolver, uint64_t before_ns, enum stage to)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < frames; i++)
		if (frame[i].stage == WAITS && frame[i].resolver == resolver && frame[i].at_ns < before_ns) {
			frame[i].stage = to;
			n++;
		}
	return n;
}

static void count_dropped(const struct hydns_parked *record, void *arg)
{
	(void)record;
	++*(uint32_t *)arg;
}

static const char *discard(struct hydnsd_parked *p)
{
	uint32_t resolver = some_resolver(), told = 0, n;
	uint64_t before = fuzz_below(10) * 100;

	n = hydnsd_parked_discard(p, resolver, before, count_dropped, &told);
	dropped_late += n;
	return n != told || n != slow_end(resolver, before, GONE) ? "others were dropped than came too early" : NULL;
}

static const char *time_out(struct hydnsd_parked *p)
{
	uint32_t resolver = some_resolver();
	uint64_t before = fuzz_below(10) * 100;

	return hydnsd_parked_time_out(p, resolver, before) != slow_end(resolver, before, DUE) ? "others are due than came too early" : NULL;
}

/* Whether the frame is what the list has under its number, at this stage; then it is in the caller's hand. */
static const char *take_in_hand(struct hydnsd_parked_frame *f, enum stage from)
{
	uint32_t i = f->record.rx_queue - 1;

	if (i >= frames || frame[i].stage != from || frame[i].resolver != f->record.resolver || frame[i].key != f->record.key)
		return "a frame that the list does not have there";
	frame[i].stage = TAKEN;
	taken[in_hand++] = f;
	return NULL;
}

static const char *take(struct hydnsd_parked *p)
{
	struct hydnsd_parked_question *q = hydnsd_parked_first(p, some_resolver(), fuzz_below(2) ? HYDNSD_DUE_FRESH : HYDNSD_DUE_PACED);
	struct hydnsd_parked_frame *out[MOST];
	const char *wrong = NULL;
	uint32_t n;

	if (!q)
		return NULL;
	if (fuzz_below(4) == 0) {
		hydnsd_parked_move(p, q, HYDNSD_DUE_PACED);
		return NULL;
	}
	n = hydnsd_parked_take(p, q, out, 1 + fuzz_below(MOST));
	for (uint32_t i = 0; i < n && !wrong; i++)
		wrong = take_in_hand(out[i], DUE);
	return n ? wrong : "a due question without a frame";
}

static const char *pull(struct hydnsd_parked *p)
{
	uint32_t resolver = some_resolver();
	uint64_t key = some_key();
	struct hydnsd_parked_frame *f = hydnsd_parked_pull(p, resolver, key);
	const uint32_t i = f ? f->record.rx_queue - 1 : UINT32_MAX;

	for (unsigned k = 0; k < frames; k++)
		if (frame[k].stage == WAITS && frame[k].resolver == resolver && frame[k].key == key &&
		    (i >= frames || frame[k].at_ns < frame[i].at_ns))
			return "not the oldest that waits";
	return f ? take_in_hand(f, WAITS) : NULL;
}

/* Ends what is in the hand, or puts it back. */
static const char *let_go(struct hydnsd_parked *p, bool back)
{
	struct hydnsd_parked_frame *f;
	uint32_t i;

	if (!in_hand)
		return NULL;
	f = taken[--in_hand];
	i = f->record.rx_queue - 1;
	frame[i].stage = back ? DUE : GONE;
	if (!back)
		hydnsd_parked_drop(p, f);
	else if (!hydnsd_parked_again(p, f))
		return "not put back";
	return NULL;
}

static bool never(void *arg, uint32_t resolver, uint64_t key)
{
	(void)arg;
	(void)resolver;
	(void)key;
	return false;
}

/* Nothing says that they are under way, twice, with the time between that lets them go. */
static void all_gone(struct hydnsd_parked *p)
{
	hydnsd_parked_look(p, 1, UINT32_MAX, never, NULL);
	hydnsd_parked_look(p, 1 + HYDNSD_GONE_NS, UINT32_MAX, never, NULL);
	for (uint32_t r = 0; r < RESOLVERS; r++)
		slow_end(r, UINT64_MAX, DUE);
}

static const char *compare(const struct hydnsd_parked *p)
{
	uint32_t all = 0, waiting[RESOLVERS] = { 0 }, of[RESOLVERS] = { 0 }, questions = 0;
	bool asked[RESOLVERS][KEYS] = { { false } };

	for (unsigned i = 0; i < frames; i++) {
		const uint32_t r = frame[i].resolver, k = (uint32_t)(frame[i].key >> 32);

		if (frame[i].stage == GONE)
			continue;
		all++;
		of[r]++;
		waiting[r] += frame[i].stage == WAITS;
		if (frame[i].stage != TAKEN && !asked[r][k]) {
			asked[r][k] = true;
			questions++;
		}
	}
	for (uint32_t r = 0; r < RESOLVERS; r++)
		if (hydnsd_parked_waiting(p, r) != waiting[r] || hydnsd_parked_of(p, r) != of[r])
			return "another number of a resolver's frames";
	return hydnsd_parked_count(p) != all || hydnsd_parked_questions(p) != questions ? "another number of frames, or of questions" : NULL;
}

static const char *step(struct hydnsd_parked *p)
{
	uint32_t resolver;
	uint64_t key;

	switch (fuzz_below(12)) {
	case 0: return discard(p);
	case 1: return time_out(p);
	case 2: return take(p);
	case 3: return pull(p);
	case 4: return let_go(p, true);
	case 5: return let_go(p, false);
	case 6:
		resolver = some_resolver();
		key = some_key();
		hydnsd_parked_over(p, resolver, key);
		slow_over(resolver, key);
		return NULL;
	case 7:
		all_gone(p);
		return NULL;
	default:
		return put_one(p);
	}
}

static const char *turn(void)
{
	struct hydnsd_parked *p = hydnsd_parked_new(MOST, fuzz_next());
	const size_t empty = hydnsd_parked_bytes(p);
	const char *wrong = NULL;

	frames = in_hand = 0;
	for (unsigned steps = 1 + fuzz_below(STEPS_MOST - 1); steps && !wrong; steps--) {
		wrong = step(p);
		if (!wrong)
			wrong = compare(p);
	}
	while (in_hand)
		let_go(p, false);
	for (uint32_t r = 0; r < RESOLVERS && !wrong; r++) {
		uint32_t told = 0;

		hydnsd_parked_discard(p, r, UINT64_MAX, count_dropped, &told);
		if (hydnsd_parked_waiting(p, r))
			wrong = "frames that wait when all are dropped";
	}
	if (!wrong && !hydnsd_parked_count(p) && hydnsd_parked_bytes(p) != empty)
		wrong = "memory is in use, and no frame";
	hydnsd_parked_free(p);
	return wrong;
}

static int end(void)
{
	printf("%" PRIu64 " frames put, %" PRIu64 " records that can't be read, %" PRIu64 " dropped late\n", put, unread, dropped_late);
	return !put || !unread || !dropped_late;
}

const struct fuzz_target fuzz_target = { .name = "parked", .one = "order", .count = COUNT_DEFAULT, .turn = turn, .end = end };
