/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule store's writer: which slot a rule gets, when the index shows it, when its slot may be used
 * again. Its own tables take eight octets a rule, and 16 octets a span.
 *
 * A rule gets an ordinal and a slot when it is published. It is live while the index reaches it, and retired while
 * a reader may still hold it; then ordinal and slot are free. Retired rules are one queue in the order of removal, so
 * a grace ticket is the number of rules that were ever retired. The slots that were in use when the store was opened, but are
 * not live, count as the first of this queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hydns/hash.h"
#include "hydns-kern/store/index.h"
#include "hydns-kern/store/geometry.h"
#include "hydns-kern/store/rule.h"
#include "hydns-kern/store/slots.h"
#include "hydns-kern/store/store.h"

/* State of an ordinal, beside 30 bits for its rule's handle or the next free ordinal. A store has at most 2^30 units. */
#define STATE_FREE    0x00000000U
#define STATE_LIVE    0x40000000U
#define STATE_RETIRED 0x80000000U
#define STATE_LINK    0x3fffffffU     /* the 30 bits */
#define NONE          STATE_LINK

struct hydns_store {
	struct hydns_store_memory m;
	struct hydns_geometry g;
	__u32 hit_rows;
	struct hydns_index index;
	struct hydns_slots slots;
	__u32 *state;                          /* by ordinal: STATE_*, and handle or next free ordinal */
	__u32 *hits_before;                    /* by ordinal: sum over rows at publication; retired: next in the queue */
	__u32 free_ordinal;                    /* first of the list; NONE: none is free */
	__u32 retired_first, retired_last;     /* ordinals */
	__u64 retired_in, retired_out;         /* rules that ever entered and left the queue */
	bool no_unknown;                       /* no span is unknown any more (slots.h) */
	__u32 count;
};

/* -- handles and ordinals --------------------------------------------------------------------------- */
static struct hydns_rule *rule_at(const struct hydns_store *s, __u32 handle)
{
	return (struct hydns_rule *)hydns_slots_at(&s->slots, handle);
}

__u32 hydns_store_ordinal(const struct hydns_store *s, __u32 handle)
{
	return rule_at(s, handle)->ordinal;
}

__u32 hydns_store_ordinals(const struct hydns_store *s)
{
	return s->g.lines * HYDNS_LINE_WORDS;
}

__u32 hydns_store_handle(const struct hydns_store *s, __u32 ordinal)
{
	return s->state[ordinal] & ~STATE_LINK ? s->state[ordinal] & STATE_LINK : 0;
}

__u32 hydns_store_slot_size(const struct hydns_store *s, __u32 handle)
{
	return hydns_class_size(rule_at(s, handle)->size_class);
}

/* Any number may be asked about. */
static bool is_live(const struct hydns_store *s, __u32 handle)
{
	__u32 o;

	if (!hydns_slots_has(&s->slots, handle))
		return false;
	o = hydns_store_ordinal(s, handle);
	return o < hydns_store_ordinals(s) && s->state[o] == (STATE_LIVE | handle);
}

/* -- retired rules ---------------------------------------------------------------------------------- */
static void retire(struct hydns_store *s, __u32 handle)
{
	__u32 o = hydns_store_ordinal(s, handle);

	s->state[o] = STATE_RETIRED | handle;
	s->hits_before[o] = NONE;
	if (s->retired_first == NONE)
		s->retired_first = o;
	else
		s->hits_before[s->retired_last] = o;
	s->retired_last = o;
	s->retired_in++;
	s->count--;
}

static void free_first_retired(struct hydns_store *s)
{
	__u32 o = s->retired_first;

	s->retired_first = s->hits_before[o];
	s->retired_out++;
	hydns_slots_give(&s->slots, hydns_store_handle(s, o));
	s->state[o] = STATE_FREE | s->free_ordinal;
	s->free_ordinal = o;
}

bool hydns_store_grace_needed(const struct hydns_store *s)
{
	return s->retired_in != s->retired_out;
}

__u64 hydns_store_grace_begin(struct hydns_store *s)
{
	return s->retired_in;
}

static bool in_use(__u32 handle, void *arg)
{
	const struct hydns_store *s = arg;
	__u32 o = hydns_store_ordinal(s, handle);

	return o < hydns_store_ordinals(s) && hydns_store_handle(s, o) == handle;
}

/* A ticket older than one that has ended frees nothing. */
void hydns_store_grace_end(struct hydns_store *s, __u64 ticket)
{
	if (!s->no_unknown && ticket) {
		hydns_slots_free_unknown(&s->slots, in_use, s);
		s->no_unknown = true;
		s->retired_out++;
	}
	while (s->retired_out < ticket && s->retired_first != NONE)
		free_first_retired(s);
}

/* -- hits and claims -------------------------------------------------------------------------------- */
static __u32 hits_in_slot(const struct hydns_store *s, __u32 handle)
{
	return __atomic_load_n(&rule_at(s, handle)->hits, __ATOMIC_RELAXED);
}

__u32 hydns_store_hits_raw(const struct hydns_store *s, __u32 ordinal)
{
	const struct hydns_line *line = s->m.hits + ordinal / HYDNS_LINE_WORDS;
	__u32 handle = hydns_store_handle(s, ordinal), sum = handle ? hits_in_slot(s, handle) : 0;

	for (__u32 row = 0; row < s->hit_rows; row++, line += s->g.lines)
		sum += __atomic_load_n(&line->word[ordinal % HYDNS_LINE_WORDS], __ATOMIC_RELAXED);
	return sum;
}

__u32 hydns_store_hits(const struct hydns_store *s, __u32 handle)
{
	__u32 o = hydns_store_ordinal(s, handle);

	return hydns_store_hits_raw(s, o) - s->hits_before[o];
}

void hydns_store_prefetch_hits(const struct hydns_store *s, __u32 ordinal)
{
	__u32 handle = ordinal < hydns_store_ordinals(s) ? hydns_store_handle(s, ordinal) : 0;

	if (handle)
		__builtin_prefetch(&rule_at(s, handle)->hits);
}

/* Writes only when less than half of the last share is left. */
void hydns_store_count_in_slot(struct hydns_store *s, __u32 handle)
{
	__u32 hits;
	__u16 *end;

	if (!is_live(s, handle))
		return;
	end = &rule_at(s, handle)->hits_end;
	hits = hits_in_slot(s, handle);
	if ((__s16)(*end - hits) < HYDNS_HITS_IN_SLOT / 2)
		__atomic_store_n(end, (__u16)(hits + HYDNS_HITS_IN_SLOT), __ATOMIC_RELAXED);
}

/* The refresh claim of the ordinal's former rule must not delay the new rule's first refresh. */
static void claim_clear(struct hydns_store *s, __u32 ordinal)
{
	__atomic_store_n(&s->m.claims[ordinal / HYDNS_LINE_WORDS].word[ordinal % HYDNS_LINE_WORDS], 0,
			 __ATOMIC_RELAXED);
}

static void make_live(struct hydns_store *s, __u32 ordinal, __u32 handle)
{
	s->state[ordinal] = STATE_LIVE | handle;
	s->hits_before[ordinal] = hydns_store_hits_raw(s, ordinal);
	s->count++;
}

/* Called before the first rule enters the index, and after the last one has left it. */
static void set_empty(const struct hydns_store *s, bool empty)
{
	if (s->m.empty)
		__atomic_store_n(s->m.empty, empty, __ATOMIC_SEQ_CST);
}

/* -- finding ---------------------------------------------------------------------------------------- */
const struct hydns_rule *hydns_store_rule(const struct hydns_store *s, __u32 handle)
{
	return is_live(s, handle) ? rule_at(s, handle) : NULL;
}

/* The index entry whose rule has this key, or NULL. */
static __u64 *entry_of_key(const struct hydns_store *s, __u64 hash, const __u8 *name, __u8 name_len,
			   __u16 qtype, __u8 variant, __u8 resolver)
{
	__u32 fingerprint = hydns_fingerprint(hash);
	__u32 b = hydns_bucket_first(hash, s->index.mask);

	for (int choice = 0; choice < 2; choice++) {
		for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++) {
			__u64 *entry = &s->index.bucket[b].entry[i];
			__u32 handle = hydns_entry_handle(*entry);

			if (*entry >> 32 == fingerprint && is_live(s, handle) &&
			    hydns_rule_has_key(rule_at(s, handle), name, name_len, qtype, variant,
					       resolver))
				return entry;
		}
		b = hydns_bucket_other(b, fingerprint, s->index.mask);
	}
	return NULL;
}

__u32 hydns_store_find(const struct hydns_store *s, const __u8 *name, __u8 name_len, __u16 qtype,
		       __u8 variant, __u8 resolver)
{
	__u64 hash = hydns_key_hash(name, name_len, qtype, variant, resolver, s->g.seed);
	__u64 *entry = entry_of_key(s, hash, name, name_len, qtype, variant, resolver);

	return entry ? hydns_entry_handle(*entry) : 0;
}

__u64 hydns_store_key(const struct hydns_store *s, const struct hydns_rule_parts *p)
{
	const struct hydns_rule *h = &p->head;

	return hydns_key_hash(p->name, h->name_len, h->qtype, h->variant, h->resolver, s->g.seed);
}

void hydns_store_prefetch(const struct hydns_store *s, __u64 key)
{
	__u32 first = hydns_bucket_first(key, s->index.mask);

	__builtin_prefetch(&s->index.bucket[first], 1);
	__builtin_prefetch(&s->index.bucket[hydns_bucket_other(first, hydns_fingerprint(key), s->index.mask)]);
}

static __u64 *entry_of_parts(const struct hydns_store *s, const struct hydns_rule_parts *p, __u64 key)
{
	const struct hydns_rule *h = &p->head;

	return entry_of_key(s, key, p->name, h->name_len, h->qtype, h->variant, h->resolver);
}

__u32 hydns_store_find_parts(const struct hydns_store *s, const struct hydns_rule_parts *p)
{
	__u64 *entry = entry_of_parts(s, p, p->key ? p->key : hydns_store_key(s, p));

	return entry ? hydns_entry_handle(*entry) : 0;
}

__u32 hydns_store_next(const struct hydns_store *s, __u32 handle)
{
	__u32 o = handle ? hydns_store_ordinal(s, handle) + 1 : 0;

	for (; o < hydns_store_ordinals(s); o++)
		if (s->state[o] & STATE_LIVE)
			return hydns_store_handle(s, o);
	return 0;
}

__u32 hydns_store_count(const struct hydns_store *s)
{
	return s->count;
}

bool hydns_store_nearly_full(const struct hydns_store *s)
{
	__u64 all = (__u64)s->g.spans * HYDNS_SPAN_UNITS;

	return s->slots.used > all - all / HYDNS_STORE_SPARE;
}

__u64 hydns_store_slot_bytes(const struct hydns_store *s)
{
	return (__u64)s->slots.used * HYDNS_UNIT;
}

size_t hydns_store_bytes(const struct hydns_store *s)
{
	return sizeof(*s) + s->g.spans * sizeof(*s->slots.span) +
	       hydns_store_ordinals(s) * (sizeof(*s->state) + sizeof(*s->hits_before));
}

/* -- publishing and removing ------------------------------------------------------------------------ */
/* Takes a slot of a fitting size and an ordinal for it; 0: there is none. */
static __u32 take(struct hydns_store *s, __u32 size_class, __u32 *ordinal)
{
	struct hydns_rule *rule;
	__u32 handle;

	if (s->free_ordinal == NONE)
		return 0;
	handle = hydns_slots_take(&s->slots, &size_class);
	if (!handle)
		return 0;
	*ordinal = s->free_ordinal;
	s->free_ordinal = s->state[*ordinal];
	rule = rule_at(s, handle);
	rule->hits = 0;
	rule->hits_end = HYDNS_HITS_IN_SLOT;
	rule->ordinal = *ordinal;
	rule->size_class = size_class & (HYDNS_SIZE_CLASSES - 1);
	return handle;
}

int hydns_store_publish(struct hydns_store *s, const struct hydns_rule_parts *p, __u32 *handle,
			__u32 *replaced)
{
	const struct hydns_rule *h = &p->head;
	__u32 new, ordinal, size_class, old = 0;
	__u64 hash, *entry;

	if (!hydns_rule_parts_valid(p))
		return -EINVAL;
	size_class = hydns_class_for(HYDNS_RULE_SPACE(h->name_len, h->answer_len, h->ttl_count, hydns_parts_rest(p)));
	if (size_class == HYDNS_SIZE_CLASSES)
		return -E2BIG;
	hash = p->key ? p->key : hydns_store_key(s, p);
	entry = entry_of_parts(s, p, hash);
	if (entry)
		old = hydns_entry_handle(*entry);
	else
		entry = hydns_index_room(&s->index, hash);
	if (!entry)
		return -ENOBUFS;
	new = take(s, size_class, &ordinal);
	if (!new)
		return -ENOSPC;
	hydns_rule_write(rule_at(s, new), p);
	claim_clear(s, ordinal);
	make_live(s, ordinal, new);
	if (s->count == 1)
		set_empty(s, false);
	hydns_index_set(entry, hydns_entry_make(hydns_fingerprint(hash), new));
	if (old)
		retire(s, old);
	*handle = new;
	*replaced = old;
	return 0;
}

void hydns_store_remove(struct hydns_store *s, __u32 handle)
{
	__u64 *entry;

	if (!is_live(s, handle))
		return;
	entry = hydns_index_find(&s->index, hydns_rule_hash(rule_at(s, handle), s->g.seed), handle);
	if (entry)
		hydns_index_set(entry, 0);
	retire(s, handle);
	if (s->count == 0)
		set_empty(s, true);
}

void hydns_store_set_refresh(struct hydns_store *s, __u32 handle, __u32 refresh_ms)
{
	if (is_live(s, handle))
		__atomic_store_n(&rule_at(s, handle)->refresh_ms, refresh_ms, __ATOMIC_RELAXED);
}

bool hydns_store_set_ttl(struct hydns_store *s, __u32 handle, __u16 at, __u32 ttl)
{
	const __u8 to[4] = { (__u8)(ttl >> 24), (__u8)(ttl >> 16), (__u8)(ttl >> 8), (__u8)ttl };
	__u32 other = sizeof(to);
	struct hydns_rule *r;
	__u8 *field;

	if (!is_live(s, handle))
		return false;
	r = rule_at(s, handle);
	if (at + sizeof(to) > r->answer_len)
		return false;
	field = r->data + (hydns_rule_answer(r) - r->data) + at;
	for (__u32 i = 0; i < sizeof(to); i++) {
		if (field[i] == to[i])
			continue;
		if (other < sizeof(to))
			return false;
		other = i;
	}
	if (other < sizeof(to))
		__atomic_store_n(&field[other], to[other], __ATOMIC_RELAXED);
	return true;
}

/* -- taking memory over ----------------------------------------------------------------------------- */
/* Whether an entry found in this bucket is valid: a whole rule whose hash belongs here. A second entry of the same slot,
 * ordinal or key is not: it stays when a writer ends between the two stores of a move. */
static bool entry_sound(const struct hydns_store *s, __u32 bucket, __u64 entry)
{
	__u32 handle = hydns_entry_handle(entry), fingerprint = (__u32)(entry >> 32);
	const struct hydns_rule *r;
	__u64 hash;
	__u32 first;

	if (!hydns_slots_has(&s->slots, handle))
		return false;
	r = rule_at(s, handle);
	if (r->ordinal >= hydns_store_ordinals(s) || (s->state[r->ordinal] & ~STATE_LINK) ||
	    !hydns_rule_valid(r, hydns_class_size(r->size_class)))
		return false;
	hash = hydns_rule_hash(r, s->g.seed);
	first = hydns_bucket_first(hash, s->index.mask);
	if (hydns_fingerprint(hash) != fingerprint ||
	    (bucket != first && bucket != hydns_bucket_other(first, fingerprint, s->index.mask)))
		return false;
	return !entry_of_key(s, hash, r->data, r->name_len, r->qtype, r->variant, r->resolver);
}

static void adopt_entry(struct hydns_store *s, __u32 bucket, __u64 *entry)
{
	__u32 handle = hydns_entry_handle(*entry);

	if (entry_sound(s, bucket, *entry) && hydns_slots_adopt(&s->slots, handle, rule_at(s, handle)->size_class))
		make_live(s, hydns_store_ordinal(s, handle), handle);
	else
		hydns_index_set(entry, 0);
}

static void adopt_index(struct hydns_store *s)
{
	for (__u32 b = 0; b <= s->index.mask; b++)
		for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++)
			if (s->index.bucket[b].entry[i])
				adopt_entry(s, b, &s->index.bucket[b].entry[i]);
}

/* Lists the free ordinals; backwards, so that the lowest is used first. */
static void adopt_ordinals(struct hydns_store *s)
{
	s->free_ordinal = NONE;
	for (__u32 o = hydns_store_ordinals(s); o--; )
		if (!(s->state[o] & STATE_LIVE)) {
			s->state[o] = STATE_FREE | s->free_ordinal;
			s->free_ordinal = o;
		}
}

struct hydns_store *hydns_store_open(const struct hydns_store_memory *m)
{
	struct hydns_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->m = *m;
	s->g = *m->geometry;
	s->hit_rows = hydns_geometry_hit_rows(&s->g);
	s->index = (struct hydns_index){ m->index, s->g.buckets - 1 };
	s->retired_first = s->retired_last = NONE;
	s->state = calloc(hydns_store_ordinals(s), sizeof(*s->state));
	s->hits_before = calloc(hydns_store_ordinals(s), sizeof(*s->hits_before));
	if (!hydns_slots_open(&s->slots, m->slots, s->g.spans) || !s->state || !s->hits_before) {
		hydns_store_close(s);
		return NULL;
	}
	adopt_index(s);
	adopt_ordinals(s);
	s->no_unknown = !hydns_slots_has_unknown(&s->slots);
	s->retired_in = !s->no_unknown;
	set_empty(s, s->count == 0);
	return s;
}

void hydns_store_close(struct hydns_store *s)
{
	if (!s)
		return;
	hydns_slots_close(&s->slots);
	free(s->state);
	free(s->hits_before);
	free(s);
}
