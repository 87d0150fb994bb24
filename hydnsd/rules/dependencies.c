/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/dependencies.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "hydnsd/rules/ordinal_set.h"

#define ENTRIES      31
#define TAG_SHIFT    27
#define NUMBER_MASK  (HYDNS_ORDINALS_MOST - 1)
#define TAGS         31                /* 1 to 31, so that no entry is 0 */
#define NAME_MOST    12                /* entries of one tag in a bucket; of more, hydnsd makes an ordinal set */
/* Room for entries, per rule. Rules depend on 1.6 names on average (doc/notebook/rules.md, "Rules by name"), and a bucket is
 * seldom full as long as a third of all entries is empty. */
#define ROOM_TENTHS  24

_Static_assert(1U << TAG_SHIFT == HYDNS_ORDINALS_MOST, "a tag stands before an ordinal");

/* A tag that has a set has one entry in its bucket, with the set's number in place of an ordinal. */
struct bucket {
	uint32_t sets;                 /* tags that have one, by bit */
	uint32_t entry[ENTRIES];       /* tag and ordinal; 0: empty */
};
_Static_assert(sizeof(struct bucket) == 128, "two cache lines");

struct hydnsd_dependencies {
	struct bucket *bucket;
	uint32_t buckets;
	struct hydnsd_ordinal_set *set;
	uint32_t sets;                 /* length of set */
	uint32_t free_set;             /* first of the free ones, linked by `count`; equal to sets: none is free */
	size_t set_bytes;              /* of the sets' tables */
	uint64_t unlisted;             /* pairs of a rule and a name that there was no memory for */
	uint32_t found[HYDNSD_DEPENDENCIES_FOUND];
};

bool hydnsd_dependency_list_add(struct hydnsd_dependency_list *l, uint64_t hash)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->hash[i] == hash)
			return false;
	if (l->count < HYDNSD_DEPENDENCIES_MAX)
		l->hash[l->count++] = hash;
	return true;
}

/* From mmap(): buckets are aligned to cache lines, and pages that are never used take no memory. */
struct hydnsd_dependencies *hydnsd_dependencies_new(uint32_t ordinals)
{
	struct hydnsd_dependencies *o = calloc(1, sizeof(*o));
	void *at;

	if (!o)
		return NULL;
	o->buckets = (uint32_t)((uint64_t)ordinals * ROOM_TENTHS / 10 / ENTRIES) + 1;
	at = mmap(NULL, o->buckets * sizeof(*o->bucket), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		free(o);
		return NULL;
	}
	o->bucket = at;
	return o;
}

void hydnsd_dependencies_free(struct hydnsd_dependencies *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < o->sets; i++)
		free(o->set[i].entry);
	free(o->set);
	munmap(o->bucket, o->buckets * sizeof(*o->bucket));
	free(o);
}

size_t hydnsd_dependencies_bytes(const struct hydnsd_dependencies *o)
{
	return sizeof(*o) + o->buckets * sizeof(*o->bucket) + o->sets * sizeof(*o->set) + o->set_bytes;
}

static struct bucket *bucket_of(const struct hydnsd_dependencies *o, uint64_t hash)
{
	return &o->bucket[(hash >> 32) * o->buckets >> 32];
}

static uint32_t tag_of(uint64_t hash)
{
	return (1 + (uint32_t)(hash & 0xffff) % TAGS) << TAG_SHIFT;
}

static bool has_set(const struct bucket *b, uint32_t tag)
{
	return b->sets >> (tag >> TAG_SHIFT) & 1;
}

/* The first entry of the tag (0: an empty entry); NULL: there is none. */
static uint32_t *entry_of(struct bucket *b, uint32_t tag)
{
	for (uint32_t i = 0; i < ENTRIES; i++)
		if ((b->entry[i] & ~NUMBER_MASK) == tag)
			return &b->entry[i];
	return NULL;
}

static uint32_t count_of(const struct bucket *b, uint32_t tag)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ENTRIES; i++)
		n += (b->entry[i] & ~NUMBER_MASK) == tag;
	return n;
}

/* -- sets ------------------------------------------------------------------------------------------- */
static bool more_sets(struct hydnsd_dependencies *o)
{
	uint32_t room = o->sets ? o->sets * 2 : 64;
	struct hydnsd_ordinal_set *more = realloc(o->set, room * sizeof(*more));

	if (!more)
		return false;
	for (uint32_t i = o->sets; i < room; i++)
		more[i] = (struct hydnsd_ordinal_set){ .count = i + 1 };
	o->set = more;
	o->free_set = o->sets;
	o->sets = room;
	return true;
}

static bool set_add(struct hydnsd_dependencies *o, struct hydnsd_ordinal_set *c, uint32_t ordinal)
{
	uint32_t before = c->entries;
	bool added = hydnsd_ordinal_set_add(c, ordinal);

	o->set_bytes += (c->entries - before) * sizeof(*c->entry);
	return added;
}

static void free_set(struct hydnsd_dependencies *o, uint32_t number)
{
	struct hydnsd_ordinal_set *c = &o->set[number];

	o->set_bytes -= c->entries * sizeof(*c->entry);
	hydnsd_ordinal_set_clear(c);
	c->count = o->free_set;
	o->free_set = number;
}

/* Moves the tag's entries into a set. False: no memory, and they stay. */
static bool gather(struct hydnsd_dependencies *o, struct bucket *b, uint32_t tag)
{
	uint32_t number;

	if (o->free_set == o->sets && !more_sets(o))
		return false;
	number = o->free_set;
	o->free_set = o->set[number].count;
	o->set[number].count = 0;
	for (uint32_t i = 0; i < ENTRIES; i++)
		if ((b->entry[i] & ~NUMBER_MASK) == tag && !set_add(o, &o->set[number], b->entry[i] & NUMBER_MASK)) {
			free_set(o, number);
			return false;
		}
	for (uint32_t i = 0; i < ENTRIES; i++)
		if ((b->entry[i] & ~NUMBER_MASK) == tag)
			b->entry[i] = 0;
	b->sets |= 1U << (tag >> TAG_SHIFT);
	*entry_of(b, 0) = tag | number;
	return true;
}

/* The tag with most entries, for a full bucket that lacks the newcomer's tag. It has two at least, so it has no set: there are
 * more entries than other tags. */
static uint32_t most_frequent(const struct bucket *b)
{
	uint32_t best = 0, most = 0;

	for (uint32_t i = 0; i < ENTRIES; i++) {
		uint32_t tag = b->entry[i] & ~NUMBER_MASK, n = count_of(b, tag);

		if (n > most) {
			most = n;
			best = tag;
		}
	}
	return best;
}

/* -- pairs -------------------------------------------------------------------------------------------- */
/* An empty entry for the tag, or the entry of its set; NULL: no memory. */
static uint32_t *room_for(struct hydnsd_dependencies *o, struct bucket *b, uint32_t tag)
{
	uint32_t *empty;

	if (has_set(b, tag))
		return entry_of(b, tag);
	empty = entry_of(b, 0);
	if (empty && count_of(b, tag) < NAME_MOST)
		return empty;
	if (empty || entry_of(b, tag))
		return gather(o, b, tag) ? entry_of(b, tag) : NULL;
	return gather(o, b, most_frequent(b)) ? entry_of(b, 0) : NULL;
}

static void add(struct hydnsd_dependencies *o, uint64_t hash, uint32_t ordinal)
{
	struct bucket *b = bucket_of(o, hash);
	uint32_t tag = tag_of(hash), *e = room_for(o, b, tag);

	if (e && !has_set(b, tag))
		*e = tag | ordinal;
	else if (!e || !set_add(o, &o->set[*e & NUMBER_MASK], ordinal))
		o->unlisted++;
}

static bool set_drop(struct hydnsd_dependencies *o, struct bucket *b, uint32_t tag, uint32_t ordinal)
{
	uint32_t *e = entry_of(b, tag), number = *e & NUMBER_MASK;
	struct hydnsd_ordinal_set *c = &o->set[number];
	uint32_t before = c->entries;

	if (!hydnsd_ordinal_set_drop(c, ordinal))
		return false;
	o->set_bytes -= (before - c->entries) * sizeof(*c->entry);
	if (!c->count) {
		free_set(o, number);
		b->sets &= ~(1U << (tag >> TAG_SHIFT));
		*e = 0;
	}
	return true;
}

static bool entry_drop(struct bucket *b, uint32_t entry)
{
	for (uint32_t i = 0; i < ENTRIES; i++)
		if (b->entry[i] == entry) {
			b->entry[i] = 0;
			return true;
		}
	return false;
}

/* Names of one rule may share bucket and tag. Their entries are equal, so it does not matter which one goes. An entry that is
 * not there was counted in unlisted. */
static void drop(struct hydnsd_dependencies *o, uint64_t hash, uint32_t ordinal)
{
	struct bucket *b = bucket_of(o, hash);
	uint32_t tag = tag_of(hash);

	if (!(has_set(b, tag) ? set_drop(o, b, tag, ordinal) : entry_drop(b, tag | ordinal)))
		o->unlisted--;
}

void hydnsd_dependencies_add(struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l, uint32_t ordinal)
{
	for (uint32_t i = 0; i < l->count; i++)
		add(o, l->hash[i], ordinal);
}

void hydnsd_dependencies_drop(struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l, uint32_t ordinal)
{
	for (uint32_t i = 0; i < l->count; i++)
		drop(o, l->hash[i], ordinal);
}

const uint32_t *hydnsd_dependencies_find(struct hydnsd_dependencies *o, uint64_t hash, uint32_t *count)
{
	struct bucket *b = bucket_of(o, hash);
	uint32_t tag = tag_of(hash), n = 0;

	if (o->unlisted)
		return NULL;
	if (has_set(b, tag)) {
		const struct hydnsd_ordinal_set *c = &o->set[*entry_of(b, tag) & NUMBER_MASK];

		if (c->count > HYDNSD_DEPENDENCIES_FOUND)
			return NULL;
		hydnsd_ordinal_set_list(c, o->found);
		*count = c->count;
		return o->found;
	}
	for (uint32_t i = 0; i < ENTRIES; i++)
		if ((b->entry[i] & ~NUMBER_MASK) == tag)
			o->found[n++] = b->entry[i] & NUMBER_MASK;
	*count = n;
	return o->found;
}

void hydnsd_dependencies_prefetch(const struct hydnsd_dependencies *o, const struct hydnsd_dependency_list *l)
{
	for (uint32_t i = 0; i < l->count && i < 2; i++) {
		const struct bucket *b = bucket_of(o, l->hash[i]);

		__builtin_prefetch(b, 1);
		__builtin_prefetch((const char *)b + 64, 1);
	}
}
