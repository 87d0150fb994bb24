/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/parking/parked.h"

#include <stdlib.h>
#include <string.h>

#include "hydnsd/rules/wire.h"

/* The table of questions doubles when it has more of them than places, and is small again when the last one leaves. */
#define PLACES_BITS_LEAST 8
#define PLACES_BITS_MOST  16

LIST_HEAD(chain, hydnsd_parked_question);
TAILQ_HEAD(questions, hydnsd_parked_question);

struct of_resolver {
	struct hydnsd_parked_frames by_age;
	struct questions due[HYDNSD_DUE_LISTS];
	uint32_t waiting, frames;
};

struct hydnsd_parked {
	uint32_t most, count, questions;
	uint64_t secret;
	size_t bytes;
	unsigned bits;                 /* 2^bits places */
	struct chain *places;          /* first, or larger ones that were allocated */
	struct chain first[1U << PLACES_BITS_LEAST];
	struct questions all;          /* those that were not looked at for the longest time come first */
	struct of_resolver of[HYDNS_RESOLVERS];
};

static void reset_places(struct hydnsd_parked *p)
{
	if (p->places != p->first)
		free(p->places);
	p->places = p->first;
	p->bits = PLACES_BITS_LEAST;
	memset(p->first, 0, sizeof(p->first));
}

struct hydnsd_parked *hydnsd_parked_new(uint32_t most, uint64_t secret)
{
	struct hydnsd_parked *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->most = most;
	p->secret = secret | 1;
	reset_places(p);
	TAILQ_INIT(&p->all);
	for (struct of_resolver *r = p->of; r < p->of + HYDNS_RESOLVERS; r++) {
		TAILQ_INIT(&r->by_age);
		TAILQ_INIT(&r->due[HYDNSD_DUE_FRESH]);
		TAILQ_INIT(&r->due[HYDNSD_DUE_PACED]);
	}
	return p;
}

static void free_frames(struct hydnsd_parked_frames *frames)
{
	struct hydnsd_parked_frame *f;

	while ((f = TAILQ_FIRST(frames))) {
		TAILQ_REMOVE(frames, f, next);
		free(f);
	}
}

void hydnsd_parked_free(struct hydnsd_parked *p)
{
	struct hydnsd_parked_question *q;

	if (!p)
		return;
	while ((q = TAILQ_FIRST(&p->all))) {
		TAILQ_REMOVE(&p->all, q, all);
		free_frames(&q->waiting_frames);
		free_frames(&q->due_frames);
		free(q);
	}
	reset_places(p);
	free(p);
}

/* -- questions --------------------------------------------------------------------------------------------- */
static struct chain *place(const struct hydnsd_parked *p, uint32_t resolver, uint64_t key)
{
	return &p->places[(key ^ resolver) * p->secret >> (64 - p->bits)];
}

static struct hydnsd_parked_question *find(const struct hydnsd_parked *p, uint32_t resolver, uint64_t key)
{
	struct hydnsd_parked_question *q;

	LIST_FOREACH(q, place(p, resolver, key), chain)
		if (q->key == key && q->resolver == resolver)
			return q;
	return NULL;
}

/* Without memory the chains grow instead. */
static void grow(struct hydnsd_parked *p)
{
	struct chain *larger = p->bits < PLACES_BITS_MOST ? calloc(2UL << p->bits, sizeof(*larger)) : NULL;
	struct hydnsd_parked_question *q;

	if (!larger)
		return;
	if (p->places != p->first)
		free(p->places);
	p->places = larger;
	p->bits++;
	TAILQ_FOREACH(q, &p->all, all)
		LIST_INSERT_HEAD(place(p, q->resolver, q->key), q, chain);
}

static struct hydnsd_parked_question *add(struct hydnsd_parked *p, uint32_t resolver, uint64_t key)
{
	struct hydnsd_parked_question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->key = key;
	q->resolver = resolver;
	TAILQ_INIT(&q->waiting_frames);
	TAILQ_INIT(&q->due_frames);
	if (p->questions >> p->bits)
		grow(p);
	LIST_INSERT_HEAD(place(p, resolver, key), q, chain);
	TAILQ_INSERT_TAIL(&p->all, q, all);
	p->questions++;
	p->bytes += sizeof(*q);
	return q;
}

static void leave_list(struct hydnsd_parked *p, struct hydnsd_parked_question *q)
{
	if (q->list != HYDNSD_NOT_DUE)
		TAILQ_REMOVE(&p->of[q->resolver].due[q->list], q, next_due);
	q->list = HYDNSD_NOT_DUE;
}

void hydnsd_parked_move(struct hydnsd_parked *p, struct hydnsd_parked_question *q, enum hydnsd_due list)
{
	leave_list(p, q);
	q->list = list;
	TAILQ_INSERT_TAIL(&p->of[q->resolver].due[list], q, next_due);
}

/* Takes away a question that has no frames. */
static void tidy(struct hydnsd_parked *p, struct hydnsd_parked_question *q)
{
	if (!q->due)
		leave_list(p, q);
	if (q->due || q->waiting)
		return;
	LIST_REMOVE(q, chain);
	TAILQ_REMOVE(&p->all, q, all);
	p->bytes -= sizeof(*q);
	free(q);
	if (--p->questions == 0)
		reset_places(p);
}

/* -- frames ------------------------------------------------------------------------------------------------ */
static size_t frame_size(const struct hydns_parked *record)
{
	return sizeof(struct hydnsd_parked_frame) + record->frame_len;
}

/* Inserts f by the time when it came: one that was forwarded again is older than the last ones. */
#define INSERT_BY_TIME(head, f, field) do { \
		struct hydnsd_parked_frame *before = TAILQ_LAST(head, hydnsd_parked_frames); \
\
		while (before && before->record.at_ns > (f)->record.at_ns) \
			before = TAILQ_PREV(before, hydnsd_parked_frames, field); \
		if (before) \
			TAILQ_INSERT_AFTER(head, before, f, field); \
		else \
			TAILQ_INSERT_HEAD(head, f, field); \
	} while (0)

static void wait_for(struct hydnsd_parked *p, struct hydnsd_parked_question *q, struct hydnsd_parked_frame *f)
{
	INSERT_BY_TIME(&q->waiting_frames, f, next);
	INSERT_BY_TIME(&p->of[q->resolver].by_age, f, by_age);
	q->waiting++;
	p->of[q->resolver].waiting++;
}

static void add_due(struct hydnsd_parked *p, struct hydnsd_parked_question *q, struct hydnsd_parked_frame *f)
{
	TAILQ_INSERT_TAIL(&q->due_frames, f, next);
	q->due++;
	if (q->list == HYDNSD_NOT_DUE) /* a paced one keeps its place in the line */
		hydnsd_parked_move(p, q, HYDNSD_DUE_FRESH);
}

/* Takes out the oldest waiting frame of a question. */
static struct hydnsd_parked_frame *wait_no_more(struct hydnsd_parked *p, struct hydnsd_parked_question *q)
{
	struct hydnsd_parked_frame *f = TAILQ_FIRST(&q->waiting_frames);

	TAILQ_REMOVE(&q->waiting_frames, f, next);
	TAILQ_REMOVE(&p->of[q->resolver].by_age, f, by_age);
	q->waiting--;
	p->of[q->resolver].waiting--;
	return f;
}

static void make_due(struct hydnsd_parked *p, struct hydnsd_parked_question *q)
{
	add_due(p, q, wait_no_more(p, q));
}

static void all_due(struct hydnsd_parked *p, struct hydnsd_parked_question *q)
{
	while (q->waiting)
		make_due(p, q);
	q->gone_ns = 0;
}

static struct hydnsd_parked_frame *copy(const struct hydns_parked *record)
{
	struct hydnsd_parked_frame *f = malloc(frame_size(record));

	if (!f)
		return NULL;
	f->refused = 0;
	f->again = false;
	f->record = *record;
	memcpy(f->octet, record + 1, record->frame_len);
	return f;
}

bool hydnsd_parked_put(struct hydnsd_parked *p, const struct hydns_parked *record, bool due)
{
	struct hydnsd_parked_frame *f = p->count < p->most ? copy(record) : NULL;
	struct hydnsd_parked_question *q = f ? find(p, record->resolver, record->key) : NULL;

	if (f && !q)
		q = add(p, record->resolver, record->key);
	if (!q) {
		free(f);
		return false;
	}
	f->question = q;
	p->count++;
	p->of[q->resolver].frames++;
	p->bytes += frame_size(record);
	if (due)
		add_due(p, q, f);
	else
		wait_for(p, q, f);
	return true;
}

/* -- what makes frames due --------------------------------------------------------------------------------- */
void hydnsd_parked_over(struct hydnsd_parked *p, uint32_t resolver, uint64_t key)
{
	struct hydnsd_parked_question *q = find(p, resolver, key);

	if (!q)
		return;
	all_due(p, q);
	if (q->list == HYDNSD_DUE_PACED) /* there may be a rule now */
		hydnsd_parked_move(p, q, HYDNSD_DUE_FRESH);
}

/* The oldest waiting frame of the resolver is the oldest of its question, for both lists are in the order in which they came.
 * NULL: none came before that time. */
static struct hydnsd_parked_question *oldest_before(const struct hydnsd_parked *p, uint32_t resolver, uint64_t before_ns)
{
	struct hydnsd_parked_frame *f = TAILQ_FIRST(&p->of[resolver].by_age);

	return f && f->record.at_ns < before_ns ? f->question : NULL;
}

uint32_t hydnsd_parked_time_out(struct hydnsd_parked *p, uint32_t resolver, uint64_t before_ns)
{
	struct hydnsd_parked_question *q;
	uint32_t n = 0;

	for (; (q = oldest_before(p, resolver, before_ns)); n++)
		make_due(p, q);
	return n;
}

uint32_t hydnsd_parked_discard(struct hydnsd_parked *p, uint32_t resolver, uint64_t before_ns,
			       void (*dropped)(const struct hydns_parked *record, void *arg), void *arg)
{
	struct hydnsd_parked_question *q;
	uint32_t n = 0;

	for (; (q = oldest_before(p, resolver, before_ns)); n++) {
		struct hydnsd_parked_frame *f = wait_no_more(p, q);

		dropped(&f->record, arg);
		hydnsd_parked_drop(p, f);
		tidy(p, q);
	}
	return n;
}

void hydnsd_parked_over_all(struct hydnsd_parked *p, uint32_t resolver)
{
	hydnsd_parked_time_out(p, resolver, UINT64_MAX);
}

void hydnsd_parked_look(struct hydnsd_parked *p, uint64_t now_ns, uint32_t budget,
			bool (*under_way)(void *arg, uint32_t resolver, uint64_t key), void *arg)
{
	for (budget = budget < p->questions ? budget : p->questions; budget; budget--) {
		struct hydnsd_parked_question *q = TAILQ_FIRST(&p->all);

		TAILQ_REMOVE(&p->all, q, all);
		TAILQ_INSERT_TAIL(&p->all, q, all);
		if (!q->waiting || under_way(arg, q->resolver, q->key))
			q->gone_ns = 0;
		else if (!q->gone_ns)
			q->gone_ns = now_ns;
		else if (now_ns - q->gone_ns >= HYDNSD_GONE_NS)
			all_due(p, q);
	}
}

/* -- due frames -------------------------------------------------------------------------------------------- */
struct hydnsd_parked_question *hydnsd_parked_first(struct hydnsd_parked *p, uint32_t resolver, enum hydnsd_due list)
{
	return TAILQ_FIRST(&p->of[resolver].due[list]);
}

struct hydnsd_parked_question *hydnsd_parked_next(const struct hydnsd_parked_question *q)
{
	return TAILQ_NEXT(q, next_due);
}

uint32_t hydnsd_parked_take(struct hydnsd_parked *p, struct hydnsd_parked_question *q, struct hydnsd_parked_frame **out,
			    uint32_t most)
{
	uint32_t n = 0;

	for (; n < most && q->due; n++, q->due--) {
		out[n] = TAILQ_FIRST(&q->due_frames);
		TAILQ_REMOVE(&q->due_frames, out[n], next);
		out[n]->question = NULL;
	}
	tidy(p, q);
	return n;
}

void hydnsd_parked_drop(struct hydnsd_parked *p, struct hydnsd_parked_frame *f)
{
	p->count--;
	p->of[f->record.resolver].frames--;
	p->bytes -= frame_size(&f->record);
	free(f);
}

struct hydnsd_parked_frame *hydnsd_parked_pull(struct hydnsd_parked *p, uint32_t resolver, uint64_t key)
{
	struct hydnsd_parked_question *q = find(p, resolver, key);
	struct hydnsd_parked_frame *f = q && q->waiting ? wait_no_more(p, q) : NULL;

	if (!f)
		return NULL;
	f->question = NULL;
	tidy(p, q);
	return f;
}

bool hydnsd_parked_again(struct hydnsd_parked *p, struct hydnsd_parked_frame *f)
{
	struct hydnsd_parked_question *q = find(p, f->record.resolver, f->record.key);

	if (!q)
		q = add(p, f->record.resolver, f->record.key);
	if (!q)
		return false;
	f->question = q;
	add_due(p, q, f);
	return true;
}

/* -- looking ----------------------------------------------------------------------------------------------- */
uint32_t hydnsd_parked_count(const struct hydnsd_parked *p)
{
	return p->count;
}

uint32_t hydnsd_parked_waiting(const struct hydnsd_parked *p, uint32_t resolver)
{
	return p->of[resolver].waiting;
}

uint32_t hydnsd_parked_of(const struct hydnsd_parked *p, uint32_t resolver)
{
	return p->of[resolver].frames;
}

uint32_t hydnsd_parked_questions(const struct hydnsd_parked *p)
{
	return p->questions;
}

size_t hydnsd_parked_bytes(const struct hydnsd_parked *p)
{
	size_t places = p->places == p->first ? 0 : sizeof(*p->places) << p->bits;

	return sizeof(*p) + p->bytes + places;
}

const struct hydnsd_parked_frame *hydnsd_parked_oldest(const struct hydnsd_parked_question *q)
{
	return q->due ? TAILQ_FIRST(&q->due_frames) : TAILQ_FIRST(&q->waiting_frames);
}

void hydnsd_parked_each(const struct hydnsd_parked *p, void (*fn)(const struct hydnsd_parked_question *q, void *arg), void *arg)
{
	const struct hydnsd_parked_question *q;

	TAILQ_FOREACH(q, &p->all, all)
		fn(q, arg);
}

bool hydnsd_parked_read(const struct hydns_parked *record, struct hydnsd_parked_asked *out)
{
	const uint8_t *name = (const uint8_t *)(record + 1) + record->dns_off + HYDNSD_HEADER;

	if (record->resolver >= HYDNS_RESOLVERS || !record->name_len || record->frame_len > HYDNS_PARKED_FRAME ||
	    record->dns_off + HYDNSD_HEADER + record->name_len + sizeof(out->qtype) > record->frame_len)
		return false;
	for (unsigned i = 0; i < record->name_len; i++) /* no length of a label is a letter */
		out->name[i] = (uint8_t)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
	memcpy(&out->qtype, name + record->name_len, sizeof(out->qtype));
	return true;
}
