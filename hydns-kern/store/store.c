/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule store's writer: which slot a rule gets, when the index shows it, when its slot may be used
 * again. Besides the shared memory and the spans' 16 octets each it keeps eight octets a rule.
 *
 * A rule has an ordinal and a slot, both from publication on. It is live (the index reaches it) or in limbo (out of
 * the index, but a reader may still hold it); afterwards both are free. Limbo is one queue in the order of removal, so
 * that a grace ticket is nothing but the number of rules that had ever entered it. What was found in memory when the
 * store was opened, and is not live, waits as the first in this queue.
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

/* What an ordinal is, beside 30 bits: its rule's handle or the next free ordinal. A store has at most 2^30 units. */
#define PLACE_FREE  0x00000000U
#define PLACE_LIVE  0x40000000U
#define PLACE_LIMBO 0x80000000U
#define PLACE_BITS  0x3fffffffU
#define NONE        PLACE_BITS

struct hydns_store {
	struct hydns_store_memory m;
	struct hydns_geometry g;
	__u32 hit_rows;
	struct hydns_index index;
	struct hydns_slots slots;
	__u32 *place;                          /* by ordinal: PLACE_*, and handle or link */
	__u32 *hits_before;                    /* by ordinal: sum over rows at publication; in limbo: the next there */
	__u32 free_ordinal;
	__u32 limbo_head, limbo_tail;          /* ordinals */
	__u64 limbo_entered, limbo_left;
	bool settled;                          /* nothing is stale any more from before the store was opened */
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
	return s->place[ordinal] & ~PLACE_BITS ? s->place[ordinal] & PLACE_BITS : 0;
}

__u32 hydns_store_slot_size(const struct hydns_store *s, __u32 handle)
{
	return hydns_class_size(rule_at(s, handle)->size_class);
}

/* Whatever the handle is. */
static bool is_live(const struct hydns_store *s, __u32 handle)
{
	__u32 o;

	if (!hydns_slots_has(&s->slots, handle))
		return false;
	o = hydns_store_ordinal(s, handle);
	return o < hydns_store_ordinals(s) && s->place[o] == (PLACE_LIVE | handle);
}

/* -- limbo ------------------------------------------------------------------------------------------ */
static void limbo_push(struct hydns_store *s, __u32 handle)
{
	__u32 o = hydns_store_ordinal(s, handle);

	s->place[o] = PLACE_LIMBO | handle;
	s->hits_before[o] = NONE;
	if (s->limbo_head == NONE)
		s->limbo_head = o;
	else
		s->hits_before[s->limbo_tail] = o;
	s->limbo_tail = o;
	s->limbo_entered++;
	s->count--;
}

static void limbo_pop(struct hydns_store *s)
{
	__u32 o = s->limbo_head;

	s->limbo_head = s->hits_before[o];
	s->limbo_left++;
	hydns_slots_give(&s->slots, hydns_store_handle(s, o));
	s->place[o] = PLACE_FREE | s->free_ordinal;
	s->free_ordinal = o;
}

bool hydns_store_grace_needed(const struct hydns_store *s)
{
	return s->limbo_entered != s->limbo_left;
}

__u64 hydns_store_grace_begin(struct hydns_store *s)
{
	return s->limbo_entered;
}

static bool in_use(__u32 handle, void *arg)
{
	const struct hydns_store *s = arg;
	__u32 o = hydns_store_ordinal(s, handle);

	return o < hydns_store_ordinals(s) && hydns_store_handle(s, o) == handle;
}

/* A ticket that a later one overtook frees nothing more; one never given frees nothing it should not. */
void hydns_store_grace_end(struct hydns_store *s, __u64 ticket)
{
	if (!s->settled && ticket) {
		hydns_slots_free_unknown(&s->slots, in_use, s);
		s->settled = true;
		s->limbo_left++;
	}
	while (s->limbo_left < ticket && s->limbo_head != NONE)
		limbo_pop(s);
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

/* Nothing is written where most of the last share is left. */
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

/* A former rule's refresh claim must not hold back the first refresh of the next one of this ordinal. */
static void claim_clear(struct hydns_store *s, __u32 ordinal)
{
	__atomic_store_n(&s->m.claims[ordinal / HYDNS_LINE_WORDS].word[ordinal % HYDNS_LINE_WORDS], 0,
			 __ATOMIC_RELAXED);
}

static void make_live(struct hydns_store *s, __u32 ordinal, __u32 handle)
{
	s->place[ordinal] = PLACE_LIVE | handle;
	s->hits_before[ordinal] = hydns_store_hits_raw(s, ordinal);
	s->count++;
}

/* Before the first rule can be found, and after the last no longer can. */
static void tell_empty(const struct hydns_store *s, bool empty)
{
	if (s->m.empty)
		__atomic_store_n(s->m.empty, empty, __ATOMIC_SEQ_CST);
}

/* -- finding ---------------------------------------------------------------------------------------- */
const struct hydns_rule *hydns_store_rule(const struct hydns_store *s, __u32 handle)
{
	return is_live(s, handle) ? rule_at(s, handle) : NULL;
}

/* The place of the entry whose rule has this key, or NULL. */
static __u64 *place_of_key(const struct hydns_store *s, __u64 hash, const __u8 *name, __u8 name_len,
			   __u16 qtype, __u8 variant, __u8 resolver)
{
	__u32 fingerprint = hydns_fingerprint(hash);
	__u32 b = hydns_bucket_first(hash, s->index.mask);

	for (int choice = 0; choice < 2; choice++) {
		for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++) {
			__u64 *place = &s->index.bucket[b].entry[i];
			__u32 handle = hydns_entry_handle(*place);

			if (*place >> 32 == fingerprint && is_live(s, handle) &&
			    hydns_rule_has_key(rule_at(s, handle), name, name_len, qtype, variant,
					       resolver))
				return place;
		}
		b = hydns_bucket_other(b, fingerprint, s->index.mask);
	}
	return NULL;
}

__u32 hydns_store_find(const struct hydns_store *s, const __u8 *name, __u8 name_len, __u16 qtype,
		       __u8 variant, __u8 resolver)
{
	__u64 hash = hydns_key_hash(name, name_len, qtype, variant, resolver, s->g.seed);
	__u64 *place = place_of_key(s, hash, name, name_len, qtype, variant, resolver);

	return place ? hydns_entry_handle(*place) : 0;
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

static __u64 *place_of_parts(const struct hydns_store *s, const struct hydns_rule_parts *p, __u64 key)
{
	const struct hydns_rule *h = &p->head;

	return place_of_key(s, key, p->name, h->name_len, h->qtype, h->variant, h->resolver);
}

__u32 hydns_store_find_parts(const struct hydns_store *s, const struct hydns_rule_parts *p)
{
	__u64 *place = place_of_parts(s, p, p->key ? p->key : hydns_store_key(s, p));

	return place ? hydns_entry_handle(*place) : 0;
}

__u32 hydns_store_next(const struct hydns_store *s, __u32 handle)
{
	__u32 o = handle ? hydns_store_ordinal(s, handle) + 1 : 0;

	for (; o < hydns_store_ordinals(s); o++)
		if (s->place[o] & PLACE_LIVE)
			return hydns_store_handle(s, o);
	return 0;
}

__u32 hydns_store_count(const struct hydns_store *s)
{
	return s->count;
}

bool hydns_store_crowded(const struct hydns_store *s)
{
	__u64 all = (__u64)s->g.spans * HYDNS_SPAN_UNITS;

	return s->slots.used > all - all / HYDNS_STORE_SPARE;
}

size_t hydns_store_bytes(const struct hydns_store *s)
{
	return sizeof(*s) + s->g.spans * sizeof(*s->slots.span) +
	       hydns_store_ordinals(s) * (sizeof(*s->place) + sizeof(*s->hits_before));
}

/* -- publishing and removing ------------------------------------------------------------------------ */
/* A slot of a fitting size with an ordinal of its own, neither live yet; 0: there is none. */
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
	s->free_ordinal = s->place[*ordinal];
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
	__u64 hash, *place;

	if (!hydns_rule_parts_valid(p))
		return -EINVAL;
	size_class = hydns_class_for(HYDNS_RULE_SPACE(h->name_len, h->answer_len, h->ttl_count, hydns_parts_rest(p)));
	if (size_class == HYDNS_SIZE_CLASSES)
		return -E2BIG;
	hash = p->key ? p->key : hydns_store_key(s, p);
	place = place_of_parts(s, p, hash);
	if (place)
		old = hydns_entry_handle(*place);
	else
		place = hydns_index_room(&s->index, hash);
	if (!place)
		return -ENOBUFS;
	new = take(s, size_class, &ordinal);
	if (!new)
		return -ENOSPC;
	hydns_rule_write(rule_at(s, new), p);
	claim_clear(s, ordinal);
	make_live(s, ordinal, new);
	if (s->count == 1)
		tell_empty(s, false);
	hydns_index_set(place, hydns_entry_make(hydns_fingerprint(hash), new));
	if (old)
		limbo_push(s, old);
	*handle = new;
	*replaced = old;
	return 0;
}

void hydns_store_remove(struct hydns_store *s, __u32 handle)
{
	__u64 *place;

	if (!is_live(s, handle))
		return;
	place = hydns_index_place_of(&s->index, hydns_rule_hash(rule_at(s, handle), s->g.seed), handle);
	if (place)
		hydns_index_set(place, 0);
	limbo_push(s, handle);
	if (s->count == 0)
		tell_empty(s, true);
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
/* Whether an entry found in a bucket is one that publish or a relocation left there. A slot or an ordinal reached
 * twice (a writer died between the two stores of a move), or a key that stands there already, is not. */
static bool entry_sound(const struct hydns_store *s, __u32 bucket, __u64 entry)
{
	__u32 handle = hydns_entry_handle(entry), fingerprint = (__u32)(entry >> 32);
	const struct hydns_rule *r;
	__u64 hash;
	__u32 first;

	if (!hydns_slots_has(&s->slots, handle))
		return false;
	r = rule_at(s, handle);
	if (r->ordinal >= hydns_store_ordinals(s) || (s->place[r->ordinal] & ~PLACE_BITS) ||
	    !hydns_rule_valid(r, hydns_class_size(r->size_class)))
		return false;
	hash = hydns_rule_hash(r, s->g.seed);
	first = hydns_bucket_first(hash, s->index.mask);
	if (hydns_fingerprint(hash) != fingerprint ||
	    (bucket != first && bucket != hydns_bucket_other(first, fingerprint, s->index.mask)))
		return false;
	return !place_of_key(s, hash, r->data, r->name_len, r->qtype, r->variant, r->resolver);
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

/* Backwards, so that low ordinals are used first. */
static void adopt_ordinals(struct hydns_store *s)
{
	s->free_ordinal = NONE;
	for (__u32 o = hydns_store_ordinals(s); o--; )
		if (!(s->place[o] & PLACE_LIVE)) {
			s->place[o] = PLACE_FREE | s->free_ordinal;
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
	s->limbo_head = s->limbo_tail = NONE;
	s->place = calloc(hydns_store_ordinals(s), sizeof(*s->place));
	s->hits_before = calloc(hydns_store_ordinals(s), sizeof(*s->hits_before));
	if (!hydns_slots_open(&s->slots, m->slots, s->g.spans) || !s->place || !s->hits_before) {
		hydns_store_close(s);
		return NULL;
	}
	adopt_index(s);
	adopt_ordinals(s);
	s->settled = !hydns_slots_stale(&s->slots);
	s->limbo_entered = !s->settled;
	tell_empty(s, s->count == 0);
	return s;
}

void hydns_store_close(struct hydns_store *s)
{
	if (!s)
		return;
	hydns_slots_close(&s->slots);
	free(s->place);
	free(s->hits_before);
	free(s);
}
