/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The table of children that the program reads behind the set of names (hydns/names.h), as set.c keeps it. The program relies on it while
 * its number is even: all names of the zones are in it then, and of the versions that are about to be served. One child too many does no
 * harm, so none is taken out.
 */
#ifndef HYDNS_PLUGIN_PRELOAD_CHILDREN_H
#define HYDNS_PLUGIN_PRELOAD_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/names.h"

/* Children that are to be put into the table. Zero: none. */
struct hydns_children_list {
	struct hydns_child *child;
	size_t count, room;
};

/* Zero: there is no table. Under the set's lock, but for _merge(). */
struct hydns_children {
	struct hydns_names_head *head;  /* NULL: there is no table */
	struct hydns_leaf *leaf;
	size_t room;                    /* children */
	bool merging;
	bool full;                      /* there was no room: closed until it is emptied */
	struct hydns_children_list coming;
};

/* Takes this memory, which is zero, behind the set with this head. The table is closed. */
void hydns_children_begin(struct hydns_children *c, struct hydns_names_head *head, struct hydns_leaf *leaf, uint32_t leaves);
void hydns_children_end(struct hydns_children *c);
/* Takes all out, to be filled anew: those that have gone, too, take room until then. Closed. By the thread that merges. */
void hydns_children_empty(struct hydns_children *c);
/* A child is about to be served, or was found. If the table does not have it, it is closed until the next merge. */
void hydns_children_come(struct hydns_children *c, const struct hydns_child *child);
/* Finds the last child of the key's parent that is the key or comes before it. NULL: there is none. Not while it is being merged. */
const struct hydns_child *hydns_children_before(const struct hydns_children *c, const struct hydns_child *key);
/* To merge: _merge_begins() takes what is coming, false: there is nothing; then _merge(), without the lock, by one thread; then
 * _merge_ends(), which opens the table if nothing has come meanwhile. */
bool hydns_children_merge_begins(struct hydns_children *c, struct hydns_children_list *out);
bool hydns_children_merge(struct hydns_children *c, struct hydns_children_list *list);   /* frees the list. False: there is no room */
void hydns_children_merge_ends(struct hydns_children *c, bool merged);

#endif
