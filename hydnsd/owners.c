/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/owners.h"

#include <stdlib.h>
#include <sys/mman.h>

#define ENTRIES      HYDNSD_OWNERS_FOUND
#define TAG_SHIFT    27
#define ORDINAL_MASK (HYDNS_ORDINALS_MOST - 1)
#define TAGS         31                /* 1 to 31, so that no entry is 0 */
#define NAME_MOST    12                /* entries of one name in a bucket: more and its rules are only counted */
/* Entries that there is room for, a rule: rules depend on 1.5 names on average (doc/performance.md), and a bucket is
 * seldom full as long as a third of all is empty. */
#define ROOM_TENTHS  24

_Static_assert(1U << TAG_SHIFT == HYDNS_ORDINALS_MOST, "a tag stands before an ordinal");

struct bucket {
	uint32_t without;            /* pairs of a rule and a name that have no entry */
	uint32_t entry[ENTRIES];       /* tag and ordinal; 0: empty */
};
_Static_assert(sizeof(struct bucket) == 128, "two cache lines");

struct hydnsd_owners {
	struct bucket *bucket;
	uint32_t buckets;
};

void hydnsd_owner_list_add(struct hydnsd_owner_list *l, uint64_t hash)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->hash[i] == hash)
			return;
	if (l->count < HYDNSD_OWNERS_MAX)
		l->hash[l->count++] = hash;
}

/* Pages of the kernel's, so that lines are whole, and what is never used takes nothing. */
struct hydnsd_owners *hydnsd_owners_new(uint32_t ordinals)
{
	struct hydnsd_owners *o = calloc(1, sizeof(*o));
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

void hydnsd_owners_free(struct hydnsd_owners *o)
{
	if (!o)
		return;
	munmap(o->bucket, o->buckets * sizeof(*o->bucket));
	free(o);
}

size_t hydnsd_owners_bytes(const struct hydnsd_owners *o)
{
	return sizeof(*o) + o->buckets * sizeof(*o->bucket);
}

static struct bucket *bucket_of(const struct hydnsd_owners *o, uint64_t hash)
{
	return &o->bucket[(hash >> 32) * o->buckets >> 32];
}

static uint32_t tag_of(uint64_t hash)
{
	return (1 + (uint32_t)(hash & 0xffff) % TAGS) << TAG_SHIFT;
}

static void add(struct hydnsd_owners *o, uint64_t hash, uint32_t ordinal)
{
	struct bucket *b = bucket_of(o, hash);
	uint32_t tag = tag_of(hash), same = 0, *empty = NULL;

	for (uint32_t i = 0; i < ENTRIES; i++) {
		if (!b->entry[i] && !empty)
			empty = &b->entry[i];
		same += (b->entry[i] & ~ORDINAL_MASK) == tag;
	}
	if (empty && same < NAME_MOST)
		*empty = tag | ordinal;
	else
		b->without++;
}

/* A rule's pairs of one bucket and tag are alike, so whichever entry is found, as many are left as there should be. */
static void drop(struct hydnsd_owners *o, uint64_t hash, uint32_t ordinal)
{
	struct bucket *b = bucket_of(o, hash);
	uint32_t entry = tag_of(hash) | ordinal;

	for (uint32_t i = 0; i < ENTRIES; i++)
		if (b->entry[i] == entry) {
			b->entry[i] = 0;
			return;
		}
	b->without--;
}

void hydnsd_owners_add(struct hydnsd_owners *o, const struct hydnsd_owner_list *l, uint32_t ordinal)
{
	for (uint32_t i = 0; i < l->count; i++)
		add(o, l->hash[i], ordinal);
}

void hydnsd_owners_drop(struct hydnsd_owners *o, const struct hydnsd_owner_list *l, uint32_t ordinal)
{
	for (uint32_t i = 0; i < l->count; i++)
		drop(o, l->hash[i], ordinal);
}

bool hydnsd_owners_find(const struct hydnsd_owners *o, uint64_t hash, uint32_t found[HYDNSD_OWNERS_FOUND], uint32_t *count)
{
	const struct bucket *b = bucket_of(o, hash);
	uint32_t tag = tag_of(hash), n = 0;

	if (b->without)
		return false;
	for (uint32_t i = 0; i < ENTRIES; i++)
		if ((b->entry[i] & ~ORDINAL_MASK) == tag)
			found[n++] = b->entry[i] & ORDINAL_MASK;
	*count = n;
	return true;
}

void hydnsd_owners_prefetch(const struct hydnsd_owners *o, const struct hydnsd_owner_list *l)
{
	for (uint32_t i = 0; i < l->count && i < 2; i++) {
		const struct bucket *b = bucket_of(o, l->hash[i]);

		__builtin_prefetch(b, 1);
		__builtin_prefetch((const char *)b + 64, 1);
	}
}
