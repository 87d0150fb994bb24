/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule store's writer: which slot a rule gets, when the index shows it, when its slot may be used
 * again. Besides the shared memory it keeps eight octets a slot: a link and the hits at publication.
 *
 * A slot is live (the index reaches it), free (on its class's list) or in limbo (out of the index, but a
 * reader may still hold it). Limbo is one queue in the order of removal, so that a grace ticket is
 * nothing but the number of slots that had ever entered it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hydns/hash.h"
#include "index.h"
#include "rule.h"
#include "store.h"

/* Values of a link besides an ordinal: no ordinal is that large, handles being 31 bits. */
#define LINK_END  0xffffffffU
#define LINK_LIVE 0xfffffffeU

struct hydns_store {
	struct hydns_store_memory m;
	struct hydns_geometry g;
	struct hydns_index index;
	__u32 *link;                           /* by ordinal: LINK_LIVE, or the next in its list */
	__u32 *hits_before;                    /* by ordinal: sum over CPUs at publication */
	__u32 free_head[HYDNS_SLOT_CLASSES];
	__u32 limbo_head, limbo_tail;
	__u64 limbo_entered, limbo_left;
	__u32 count;
};

/* -- handles and ordinals --------------------------------------------------------------------------- */
static __u32 handle_class(__u32 handle)
{
	return handle >> HYDNS_HANDLE_CLASS_SHIFT;
}

__u32 hydns_store_ordinal(const struct hydns_store *s, __u32 handle)
{
	return s->g.base[handle_class(handle)] + (handle & HYDNS_HANDLE_SLOT_MASK);
}

__u32 hydns_store_ordinals(const struct hydns_store *s)
{
	return s->g.lines * HYDNS_LINE_WORDS;
}

__u32 hydns_store_handle(const struct hydns_store *s, __u32 ordinal)
{
	for (__u32 c = HYDNS_SLOT_CLASSES; c--; )
		if (ordinal >= s->g.base[c] && ordinal - s->g.base[c] < s->g.slots[c])
			return c << HYDNS_HANDLE_CLASS_SHIFT | (ordinal - s->g.base[c]);
	return 0;
}

static bool handle_in_range(const struct hydns_store *s, __u32 handle)
{
	return handle && handle_class(handle) < HYDNS_SLOT_CLASSES &&
	       (handle & HYDNS_HANDLE_SLOT_MASK) < s->g.slots[handle_class(handle)];
}

static __u8 *slot_of(const struct hydns_store *s, __u32 handle)
{
	__u32 c = handle_class(handle);

	return s->m.slots[c] + (size_t)(handle & HYDNS_HANDLE_SLOT_MASK) * hydns_slot_sizes[c];
}

static const struct hydns_rule *rule_of(const struct hydns_store *s, __u32 handle)
{
	return (const struct hydns_rule *)slot_of(s, handle);
}

/* -- free slots and limbo --------------------------------------------------------------------------- */
static void free_push(struct hydns_store *s, __u32 handle)
{
	__u32 o = hydns_store_ordinal(s, handle), c = handle_class(handle);

	s->link[o] = s->free_head[c];
	s->free_head[c] = o;
}

/* The smallest class with a free slot that holds space octets; -E2BIG or -ENOSPC when there is none. */
static int class_for(const struct hydns_store *s, __u32 space)
{
	int err = -E2BIG;

	for (int c = 0; c < HYDNS_SLOT_CLASSES; c++) {
		if (hydns_slot_sizes[c] < space)
			continue;
		if (s->free_head[c] != LINK_END)
			return c;
		err = -ENOSPC;
	}
	return err;
}

static __u32 free_pop(struct hydns_store *s, int c)
{
	__u32 o = s->free_head[c];

	s->free_head[c] = s->link[o];
	return hydns_store_handle(s, o);
}

static void limbo_push(struct hydns_store *s, __u32 handle)
{
	__u32 o = hydns_store_ordinal(s, handle);

	s->link[o] = LINK_END;
	if (s->limbo_head == LINK_END)
		s->limbo_head = o;
	else
		s->link[s->limbo_tail] = o;
	s->limbo_tail = o;
	s->limbo_entered++;
}

bool hydns_store_grace_needed(const struct hydns_store *s)
{
	return s->limbo_entered != s->limbo_left;
}

__u64 hydns_store_grace_begin(struct hydns_store *s)
{
	return s->limbo_entered;
}

/* A ticket that a later one overtook frees nothing more; one never given frees nothing it should not. */
void hydns_store_grace_end(struct hydns_store *s, __u64 ticket)
{
	while (s->limbo_left < ticket && s->limbo_head != LINK_END) {
		__u32 o = s->limbo_head;

		s->limbo_head = s->link[o];
		s->limbo_left++;
		free_push(s, hydns_store_handle(s, o));
	}
}

/* -- hits and claims -------------------------------------------------------------------------------- */
static __u32 hits_sum(const struct hydns_store *s, __u32 ordinal)
{
	const struct hydns_line *line = s->m.hits + ordinal / HYDNS_LINE_WORDS;
	__u32 sum = 0;

	for (__u32 cpu = 0; cpu < s->g.cpus; cpu++, line += s->g.lines)
		sum += __atomic_load_n(&line->word[ordinal % HYDNS_LINE_WORDS], __ATOMIC_RELAXED);
	return sum;
}

__u32 hydns_store_hits(const struct hydns_store *s, __u32 handle)
{
	__u32 o = hydns_store_ordinal(s, handle);

	return hits_sum(s, o) - s->hits_before[o];
}

/* A former rule's refresh claim must not hold back the first refresh of its successor in the slot. */
static void claim_clear(struct hydns_store *s, __u32 ordinal)
{
	__atomic_store_n(&s->m.claims[ordinal / HYDNS_LINE_WORDS].word[ordinal % HYDNS_LINE_WORDS], 0,
			 __ATOMIC_RELAXED);
}

static void make_live(struct hydns_store *s, __u32 handle)
{
	__u32 o = hydns_store_ordinal(s, handle);

	s->link[o] = LINK_LIVE;
	s->hits_before[o] = hits_sum(s, o);
	s->count++;
}

/* -- finding ---------------------------------------------------------------------------------------- */
static bool is_live(const struct hydns_store *s, __u32 handle)
{
	return handle_in_range(s, handle) && s->link[hydns_store_ordinal(s, handle)] == LINK_LIVE;
}

const struct hydns_rule *hydns_store_rule(const struct hydns_store *s, __u32 handle)
{
	return is_live(s, handle) ? rule_of(s, handle) : NULL;
}

/* The place of the entry whose rule has this key, or NULL. */
static __u64 *place_of_key(const struct hydns_store *s, __u64 hash, const __u8 *name, __u8 name_len,
			   __u16 qtype, __u8 variant, __u8 authority)
{
	__u32 fingerprint = hydns_fingerprint(hash);
	__u32 b = hydns_bucket_first(hash, s->index.mask);

	for (int choice = 0; choice < 2; choice++) {
		for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++) {
			__u64 *place = &s->index.bucket[b].entry[i];
			__u32 handle = hydns_entry_handle(*place);

			if (*place >> 32 == fingerprint && is_live(s, handle) &&
			    hydns_rule_has_key(rule_of(s, handle), name, name_len, qtype, variant,
					       authority))
				return place;
		}
		b = hydns_bucket_other(b, fingerprint, s->index.mask);
	}
	return NULL;
}

__u32 hydns_store_find(const struct hydns_store *s, const __u8 *name, __u8 name_len, __u16 qtype,
		       __u8 variant, __u8 authority)
{
	__u64 hash = hydns_key_hash(name, name_len, qtype, variant, authority, s->g.seed);
	__u64 *place = place_of_key(s, hash, name, name_len, qtype, variant, authority);

	return place ? hydns_entry_handle(*place) : 0;
}

__u32 hydns_store_next(const struct hydns_store *s, __u32 handle)
{
	__u32 o = handle ? hydns_store_ordinal(s, handle) + 1 : 0;

	for (; o < hydns_store_ordinals(s); o++)
		if (s->link[o] == LINK_LIVE)
			return hydns_store_handle(s, o);
	return 0;
}

__u32 hydns_store_count(const struct hydns_store *s)
{
	return s->count;
}

/* -- publishing and removing ------------------------------------------------------------------------ */
int hydns_store_publish(struct hydns_store *s, const struct hydns_rule_parts *p, __u32 *handle,
			__u32 *replaced)
{
	const struct hydns_rule *h = &p->head;
	__u32 new, old = 0;
	__u64 hash, *place;
	int c;

	if (!hydns_rule_parts_valid(p))
		return -EINVAL;
	c = class_for(s, HYDNS_RULE_SPACE(h->name_len, h->answer_len + p->left_out_len, h->ttl_count));
	if (c < 0)
		return c;
	hash = hydns_key_hash(p->name, h->name_len, h->qtype, h->variant, h->authority, s->g.seed);
	place = place_of_key(s, hash, p->name, h->name_len, h->qtype, h->variant, h->authority);
	if (place)
		old = hydns_entry_handle(*place);
	else
		place = hydns_index_room(&s->index, hash);
	if (!place)
		return -ENOBUFS;

	new = free_pop(s, c);
	hydns_rule_write(slot_of(s, new), hydns_slot_sizes[c], p);
	claim_clear(s, hydns_store_ordinal(s, new));
	make_live(s, new);
	hydns_index_set(place, hydns_entry_make(hydns_fingerprint(hash), new));
	if (old) {
		limbo_push(s, old);
		s->count--;
	}
	*handle = new;
	*replaced = old;
	return 0;
}

void hydns_store_remove(struct hydns_store *s, __u32 handle)
{
	__u64 *place;

	if (!is_live(s, handle))
		return;
	place = hydns_index_place_of(&s->index, hydns_rule_hash(rule_of(s, handle), s->g.seed), handle);
	if (place)
		hydns_index_set(place, 0);
	limbo_push(s, handle);
	s->count--;
}

void hydns_store_set_refresh(struct hydns_store *s, __u32 handle, __u32 refresh_ms)
{
	if (is_live(s, handle))
		__atomic_store_n(&((struct hydns_rule *)slot_of(s, handle))->refresh_ms, refresh_ms, __ATOMIC_RELAXED);
}

/* -- taking memory over ----------------------------------------------------------------------------- */
/* Whether an entry found in a bucket is one that publish or a relocation left there. A slot reached
 * twice (a writer died between the two stores of a move), or a key that stands there already, is not. */
static bool entry_sound(const struct hydns_store *s, __u32 bucket, __u64 entry)
{
	__u32 handle = hydns_entry_handle(entry), fingerprint = (__u32)(entry >> 32);
	const struct hydns_rule *r;
	__u64 hash;
	__u32 first;

	if (!handle_in_range(s, handle) || is_live(s, handle))
		return false;
	r = rule_of(s, handle);
	if (!hydns_rule_valid(r, hydns_slot_sizes[handle_class(handle)]))
		return false;
	hash = hydns_rule_hash(r, s->g.seed);
	first = hydns_bucket_first(hash, s->index.mask);
	if (hydns_fingerprint(hash) != fingerprint ||
	    (bucket != first && bucket != hydns_bucket_other(first, fingerprint, s->index.mask)))
		return false;
	return !place_of_key(s, hash, r->data, r->name_len, r->qtype, r->variant, r->authority);
}

static void adopt_index(struct hydns_store *s)
{
	for (__u32 b = 0; b <= s->index.mask; b++)
		for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++) {
			__u64 *place = &s->index.bucket[b].entry[i];

			if (!*place)
				continue;
			if (entry_sound(s, b, *place))
				make_live(s, hydns_entry_handle(*place));
			else
				hydns_index_set(place, 0);
		}
}

/* Every slot that is not live: free if nothing was ever written there, else in limbo, because a reader
 * may hold it since before the index entry went. Backwards, so that low slots are used first. */
static void adopt_unused(struct hydns_store *s)
{
	for (__u32 o = hydns_store_ordinals(s); o--; ) {
		__u32 handle = hydns_store_handle(s, o);

		if (!handle || s->link[o] == LINK_LIVE)
			continue;
		if (rule_of(s, handle)->name_len)
			limbo_push(s, handle);
		else
			free_push(s, handle);
	}
}

struct hydns_store *hydns_store_open(const struct hydns_store_memory *m)
{
	struct hydns_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->m = *m;
	s->g = *m->geometry;
	s->index = (struct hydns_index){ m->index, s->g.buckets - 1 };
	s->limbo_head = s->limbo_tail = LINK_END;
	for (int c = 0; c < HYDNS_SLOT_CLASSES; c++)
		s->free_head[c] = LINK_END;
	s->link = malloc(hydns_store_ordinals(s) * sizeof(*s->link));
	s->hits_before = calloc(hydns_store_ordinals(s), sizeof(*s->hits_before));
	if (!s->link || !s->hits_before) {
		hydns_store_close(s);
		return NULL;
	}
	memset(s->link, 0xff, hydns_store_ordinals(s) * sizeof(*s->link));
	adopt_index(s);
	adopt_unused(s);
	return s;
}

void hydns_store_close(struct hydns_store *s)
{
	if (!s)
		return;
	free(s->link);
	free(s->hits_before);
	free(s);
}
