/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Names that an answer rests on and its reply does not show, as a block: their number, then the names. A
 * handful at most, so they are found by looking at each.
 */
#include <string.h>
#include "plugin/offers/offers.h"

#define NAMES_MAX 255                 /* the number is one octet */

/* Where in the block the name begins; the block's end: it is not there. */
static size_t place_of(const struct hydns_left_out *l, const uint8_t *name, size_t len)
{
	size_t at = 1;

	while (at < l->len) {
		size_t there = hydns_name_length(l->block + at, l->len - at);

		if (there == len && !memcmp(l->block + at, name, len))
			break;
		at += there;
	}
	return at;
}

void hydns_left_out_clear(struct hydns_left_out *l)
{
	l->len = 0;
	l->overflow = false;
}

void hydns_left_out_add(struct hydns_left_out *l, const uint8_t *name, size_t len)
{
	uint8_t lower[HYDNS_NAME_MAX];
	size_t end = l->len ? l->len : 1;

	hydns_name_lower(lower, name, len);
	if (l->len && place_of(l, lower, len) < l->len)
		return;
	if (end + len > sizeof(l->block) || (l->len && l->block[0] == NAMES_MAX)) {
		l->overflow = true;
		return;
	}
	memcpy(l->block + end, lower, len);
	l->block[0] = l->len ? (uint8_t)(l->block[0] + 1) : 1;
	l->len = (uint16_t)(end + len);
}

void hydns_left_out_strike(struct hydns_left_out *l, const uint8_t *name, size_t len)
{
	size_t at;

	if (!l->len)
		return;
	at = place_of(l, name, len);
	if (at >= l->len)
		return;
	memmove(l->block + at, l->block + at + len, l->len - at - len);
	l->block[0]--;
	l->len = l->block[0] ? (uint16_t)(l->len - len) : 0;
}
