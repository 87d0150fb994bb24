/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory-mapped arrays. All are writable but the hits; valid until hydns_kern_close(). */
#ifndef HYDNS_KERN_LOADER_ARRAYS_H
#define HYDNS_KERN_LOADER_ARRAYS_H

#include "hydns/rule.h"
#include "hydns-kern/loader/open.h"

const struct hydns_geometry *hydns_kern_geometry(const struct hydns_kern *k);
__u8 *hydns_kern_slots(struct hydns_kern *k);
struct hydns_bucket *hydns_kern_index(struct hydns_kern *k);
const struct hydns_line *hydns_kern_hits(struct hydns_kern *k); /* hydns_geometry_hit_rows() rows of geometry->lines lines */
struct hydns_line *hydns_kern_claims(struct hydns_kern *k);     /* geometry->lines lines */
__u32 *hydns_kern_seen(struct hydns_kern *k);                   /* hits already accounted for, by ordinal */
struct hydns_tallies *hydns_kern_tallies(struct hydns_kern *k);
/* The word of hydns_meta that says whether the store is empty; for hydns_store_open(). */
__u32 *hydns_kern_empty(struct hydns_kern *k);
/* The next page serial, counted in the pinned maps. A page's first epoch is its serial << 16 without HYDNS_EPOCH_FLAGS: the
 * same one comes again after 16,384 pages. */
__u32 hydns_kern_next_page_serial(struct hydns_kern *k);

#endif
