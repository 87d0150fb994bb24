/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/preload/children.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 64

static void close_table(struct hydns_children *c)
{
	if (!(c->head->table & 1))
		__atomic_store_n(&c->head->table, c->head->table + 1, __ATOMIC_SEQ_CST);
}

void hydns_children_begin(struct hydns_children *c, struct hydns_names_head *head, struct hydns_leaf *leaf, uint32_t leaves)
{
	*c = (struct hydns_children){ .head = head, .leaf = leaf, .room = (size_t)leaves * HYDNS_LEAF_CHILDREN };
	__atomic_store_n(&head->table, (uint32_t)head->seed[0] | 1, __ATOMIC_SEQ_CST);  /* another than a former table's */
}

void hydns_children_empty(struct hydns_children *c)
{
	if (!c->head)
		return;
	close_table(c);
	c->head->leaves = 0;
	c->coming.count = 0;
	c->full = false;
}

void hydns_children_end(struct hydns_children *c)
{
	free(c->coming.child);
	*c = (struct hydns_children){ 0 };
}

/* -- reading ------------------------------------------------------------------------------------------------ */
static struct hydns_child *at(const struct hydns_children *c, size_t i)
{
	return &c->leaf[i / HYDNS_LEAF_CHILDREN].child[i % HYDNS_LEAF_CHILDREN];
}

/* Behind all that there may be. */
static bool is_empty(const struct hydns_child *child)
{
	return child->parent == UINT64_MAX && child->label[HYDNS_CHILD_WORDS - 1] == UINT64_MAX;
}

static size_t count_of(const struct hydns_children *c)
{
	size_t n = (size_t)c->head->leaves * HYDNS_LEAF_CHILDREN;

	while (n && is_empty(at(c, n - 1)))
		n--;
	return n;
}

/* How many come before the key, or are it. */
static size_t count_before(const struct hydns_children *c, const struct hydns_child *key)
{
	size_t low = 0, high = count_of(c);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (hydns_child_is_behind(at(c, middle), key))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct hydns_child *hydns_children_before(const struct hydns_children *c, const struct hydns_child *key)
{
	size_t n = c->head ? count_before(c, key) : 0;

	return n && at(c, n - 1)->parent == key->parent ? at(c, n - 1) : NULL;
}

static bool has(const struct hydns_children *c, const struct hydns_child *child)
{
	const struct hydns_child *found = hydns_children_before(c, child);

	return found && !hydns_child_is_behind(child, found);
}

/* -- writing ------------------------------------------------------------------------------------------------ */
static bool append(struct hydns_children_list *l, const struct hydns_child *child)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : ROOM_MIN;
		struct hydns_child *more = realloc(l->child, room * sizeof(*more));

		if (!more)
			return false;
		l->child = more;
		l->room = room;
	}
	l->child[l->count++] = *child;
	return true;
}

void hydns_children_come(struct hydns_children *c, const struct hydns_child *child)
{
	if (!c->head || c->full || (!c->merging && has(c, child)))
		return;
	close_table(c);
	c->full = !append(&c->coming, child);
}

bool hydns_children_merge_begins(struct hydns_children *c, struct hydns_children_list *out)
{
	if (!c->head || c->full || !(c->head->table & 1))
		return false;
	*out = c->coming;
	c->coming = (struct hydns_children_list){ 0 };
	c->merging = true;
	return true;
}

static int compare(const void *a, const void *b)
{
	return hydns_child_is_behind(a, b) - hydns_child_is_behind(b, a);
}

/* Leaves those that the table does not have, each once, in order. */
static void sift(const struct hydns_children *c, struct hydns_children_list *l)
{
	size_t left = 0;

	if (l->count)
		qsort(l->child, l->count, sizeof(*l->child), compare);
	for (size_t i = 0; i < l->count; i++)
		if (!has(c, &l->child[i]) && (!left || hydns_child_is_behind(&l->child[i], &l->child[left - 1])))
			l->child[left++] = l->child[i];
	l->count = left;
}

/* Word by word: whoever reads meanwhile reads each word old or new, and then that the table is closed. */
static void store(struct hydns_child *to, const struct hydns_child *child)
{
	HYDNS_WRITE_ONCE(to->parent, child->parent);
	for (int i = 0; i < HYDNS_CHILD_WORDS; i++)
		HYDNS_WRITE_ONCE(to->label[i], child->label[i]);
}

/* From the end on, so that each child moves once; those before the first that comes stay. */
static void put(struct hydns_children *c, const struct hydns_children_list *l)
{
	size_t old = count_of(c), new = l->count, to = old + new;
	struct hydns_child greatest;

	memset(&greatest, 0xff, sizeof(greatest));
	for (size_t i = to; i % HYDNS_LEAF_CHILDREN; i++)
		store(at(c, i), &greatest);
	while (new) {
		bool is_old = old && hydns_child_is_behind(at(c, old - 1), &l->child[new - 1]);

		store(at(c, --to), is_old ? at(c, old - 1) : &l->child[new - 1]);
		old -= is_old;
		new -= !is_old;
	}
}

bool hydns_children_merge(struct hydns_children *c, struct hydns_children_list *l)
{
	size_t count;
	bool fits;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);       /* whoever reads what follows then reads that the table is closed */
	sift(c, l);
	count = count_of(c) + l->count;
	fits = count <= c->room;
	if (fits) {
		put(c, l);
		__atomic_store_n(&c->head->leaves, (uint32_t)((count + HYDNS_LEAF_CHILDREN - 1) / HYDNS_LEAF_CHILDREN), __ATOMIC_RELAXED);
	}
	free(l->child);
	return fits;
}

void hydns_children_merge_ends(struct hydns_children *c, bool merged)
{
	c->merging = false;
	c->full |= !merged;
	if (!c->full && !c->coming.count)
		__atomic_store_n(&c->head->table, c->head->table + 1, __ATOMIC_SEQ_CST);
}
