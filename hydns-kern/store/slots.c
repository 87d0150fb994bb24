/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>
#include "hydns-kern/store/slots.h"

#define NONE 0xffffffffU
#define LARGE          512     /* octets: a slot of this size or more is large */
#define RESERVED_SHARE 32      /* 1/N of the spans is reserved for large slots */

/* Classes go up by one unit to 16 units, by two to 32, by four to 64, by eight to the largest. */
#define FIRST_UNITS 5
static const struct { __u32 first, units, step; } row[] = {
	{ 0, FIRST_UNITS, 1 }, { 12, 18, 2 }, { 20, 36, 4 }, { 28, 72, 8 },
};
#define ROWS (sizeof(row) / sizeof(row[0]))
_Static_assert(HYDNS_SLOT_MOST == (72 + 3 * 8) * HYDNS_UNIT, "the last class is the largest slot");

static __u32 class_units(__u32 c)
{
	unsigned r = ROWS - 1;

	while (c < row[r].first)
		r--;
	return row[r].units + (c - row[r].first) * row[r].step;
}

__u32 hydns_class_size(__u32 c)
{
	return class_units(c) * HYDNS_UNIT;
}

__u32 hydns_class_for(__u32 space)
{
	__u32 units = (space + HYDNS_UNIT - 1) / HYDNS_UNIT;
	unsigned r = 0;

	if (space > HYDNS_SLOT_MOST)
		return HYDNS_SIZE_CLASSES;
	if (units <= FIRST_UNITS)
		return 0;
	while (r + 1 < ROWS && units > row[r + 1].units - row[r + 1].step)
		r++;
	return row[r].first + (units - row[r].units + row[r].step - 1) / row[r].step;
}

/* -- where slots are -------------------------------------------------------------------------------------- */
/* Slots of this class in a span. The last span of a chunk has fewer: no slot begins in the last HYDNS_SLOT_MOST octets of a
 * chunk, except at their first octet. */
static __u32 slots_in(__u32 span, __u32 c)
{
	__u32 size = hydns_class_size(c);

	if (span % (HYDNS_CHUNK / HYDNS_SPAN) == HYDNS_CHUNK / HYDNS_SPAN - 1)
		return (HYDNS_SPAN - HYDNS_SLOT_MOST) / size + 1;
	return HYDNS_SPAN / size;
}

static __u32 span_of(__u32 handle)
{
	return (handle - 1) / HYDNS_SPAN_UNITS;
}

static __u32 handle_of(__u32 span, __u32 c, __u32 slot)
{
	return span * HYDNS_SPAN_UNITS + slot * class_units(c) + 1;
}

static __u32 slot_of(__u32 handle, __u32 c)
{
	return (handle - 1) % HYDNS_SPAN_UNITS / class_units(c);
}

bool hydns_slots_has(const struct hydns_slots *s, __u32 handle)
{
	return handle && span_of(handle) < s->spans &&
	       (handle - 1) % HYDNS_CHUNK_UNITS <= (HYDNS_CHUNK - HYDNS_SLOT_MOST) / HYDNS_UNIT;
}

/* -- lists of spans --------------------------------------------------------------------------------------- */
static void list_push(struct hydns_slots *s, __u32 *head, __u32 i)
{
	s->span[i].prev = NONE;
	s->span[i].next = *head;
	if (*head != NONE)
		s->span[*head].prev = i;
	*head = i;
}

static void list_drop(struct hydns_slots *s, __u32 *head, __u32 i)
{
	const struct hydns_span *p = &s->span[i];

	if (p->prev == NONE)
		*head = p->next;
	else
		s->span[p->prev].next = p->next;
	if (p->next != NONE)
		s->span[p->next].prev = p->prev;
}

static bool has_room(const struct hydns_slots *s, __u32 i)
{
	const struct hydns_span *p = &s->span[i];

	return p->free || p->ever_used < slots_in(i, p->size_class);
}

static void make_empty(struct hydns_slots *s, __u32 i)
{
	s->span[i] = (struct hydns_span){ .size_class = HYDNS_SIZE_CLASSES };
	list_push(s, &s->empty, i);
	s->empties++;
}

/* -- taking and giving ------------------------------------------------------------------------------------ */
static void span_begin(struct hydns_slots *s, __u32 c)
{
	__u32 i = s->empty;

	if (i == NONE || (hydns_class_size(c) < LARGE && s->empties <= s->spans / RESERVED_SHARE))
		return;
	list_drop(s, &s->empty, i);
	s->empties--;
	s->span[i].size_class = (__u8)c;
	list_push(s, &s->partial[c], i);
}

/* The link is the first two octets of a free slot. */
static __u16 *link_at(struct hydns_slots *s, __u32 i, __u32 slot)
{
	return (__u16 *)hydns_slots_at(s, handle_of(i, s->span[i].size_class, slot));
}

static __u32 span_take(struct hydns_slots *s, __u32 i)
{
	struct hydns_span *p = &s->span[i];
	__u32 slot = p->free ? p->free - 1U : p->ever_used++;

	if (p->free)
		p->free = *link_at(s, i, slot);
	p->used++;
	s->used += class_units(p->size_class);
	if (!has_room(s, i))
		list_drop(s, &s->partial[p->size_class], i);
	return handle_of(i, p->size_class, slot);
}

__u32 hydns_slots_take(struct hydns_slots *s, __u32 *size_class)
{
	__u32 c = *size_class;

	if (s->partial[c] == NONE)
		span_begin(s, c);
	while (c < HYDNS_SIZE_CLASSES && s->partial[c] == NONE)
		c++;
	if (c == HYDNS_SIZE_CLASSES)
		return 0;
	*size_class = c;
	return span_take(s, s->partial[c]);
}

/* A span that was full becomes the first of its list, so that spans with few slots in use can become empty. */
void hydns_slots_give(struct hydns_slots *s, __u32 handle)
{
	__u32 i = span_of(handle), slot = slot_of(handle, s->span[i].size_class);
	struct hydns_span *p = &s->span[i];
	__u32 *partial = &s->partial[p->size_class];
	bool listed = has_room(s, i);

	p->used--;
	s->used -= class_units(p->size_class);
	if (!p->used) {
		if (listed)
			list_drop(s, partial, i);
		make_empty(s, i);
		return;
	}
	*link_at(s, i, slot) = p->free;
	p->free = (__u16)(slot + 1);
	if (!listed)
		list_push(s, partial, i);
}

/* -- taking over ------------------------------------------------------------------------------------------ */
/* The first slot of a span is the first to be written, and no rule's header is all zeros. */
static bool ever_used(const struct hydns_slots *s, __u32 i)
{
	static const __u8 zeros[HYDNS_RULE_DATA];

	return memcmp(s->memory + (__u64)i * HYDNS_SPAN, zeros, sizeof(zeros)) != 0;
}

bool hydns_slots_open(struct hydns_slots *s, __u8 *memory, __u32 spans)
{
	*s = (struct hydns_slots){ .memory = memory, .spans = spans, .empty = NONE };
	memset(s->partial, 0xff, sizeof(s->partial));
	s->span = calloc(spans, sizeof(*s->span));
	if (!s->span)
		return false;
	for (__u32 i = spans; i--; )       /* backwards: the first span is taken first */
		if (ever_used(s, i)) {
			s->span[i] = (struct hydns_span){ .size_class = HYDNS_SIZE_CLASSES, .unknown = 1 };
			s->unknown++;
		} else {
			make_empty(s, i);
		}
	return true;
}

void hydns_slots_close(struct hydns_slots *s)
{
	free(s->span);
}

bool hydns_slots_adopt(struct hydns_slots *s, __u32 handle, __u32 c)
{
	struct hydns_span *p;

	if (!hydns_slots_has(s, handle) || c >= HYDNS_SIZE_CLASSES)
		return false;
	p = &s->span[span_of(handle)];
	if (!p->unknown || (p->used && p->size_class != c) || slot_of(handle, c) >= slots_in(span_of(handle), c) ||
	    handle_of(span_of(handle), c, slot_of(handle, c)) != handle)
		return false;
	p->size_class = (__u8)c;
	p->used++;
	s->used += class_units(c);
	return true;
}

/* Lists the slots that are not in use as free. */
static void span_free_unknown(struct hydns_slots *s, __u32 i, bool (*in_use)(__u32 handle, void *arg), void *arg)
{
	struct hydns_span *p = &s->span[i];

	p->unknown = 0;
	if (!p->used) {
		make_empty(s, i);
		return;
	}
	p->free = 0;
	p->ever_used = (__u16)slots_in(i, p->size_class);
	for (__u32 slot = p->ever_used; slot--; )
		if (!in_use(handle_of(i, p->size_class, slot), arg)) {
			*link_at(s, i, slot) = p->free;
			p->free = (__u16)(slot + 1);
		}
	if (p->free)
		list_push(s, &s->partial[p->size_class], i);
}

void hydns_slots_free_unknown(struct hydns_slots *s, bool (*in_use)(__u32 handle, void *arg), void *arg)
{
	for (__u32 i = s->spans; s->unknown && i--; )
		if (s->span[i].unknown) {
			span_free_unknown(s, i, in_use, arg);
			s->unknown--;
		}
}
