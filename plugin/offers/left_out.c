/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Left-out names as a block: their number, then the names. There are a handful at most, so each is found by looking at all.
 */
#include <string.h>
#include "plugin/offers/offers.h"

/* Where in the block the name begins, and its number; the block's end: it is not there. */
static size_t place_of(const struct hydns_left_out *l, const uint8_t *name, size_t len, size_t *number)
{
	HYDNS_FOR_LEFT_OUT(l, i, at)
		if (l->name_len[i] == len && !memcmp(l->block + at, name, len)) {
			*number = i;
			return at;
		}
	return l->len;
}

void hydns_left_out_clear(struct hydns_left_out *l)
{
	l->len = 0;
	l->overflow = false;
}

void hydns_left_out_add(struct hydns_left_out *l, const uint8_t *name, size_t len)
{
	size_t end = l->len ? l->len : 1, names = l->len ? l->block[0] : 0, same;
	uint8_t lower[HYDNS_NAME_MAX];

	hydns_name_lower(lower, name, len);
	if (place_of(l, lower, len, &same) < l->len)
		return;
	if (end + len > sizeof(l->block) || names == HYDNS_LEFT_OUT_NAMES) {
		l->overflow = true;
		return;
	}
	memcpy(l->block + end, lower, len);
	l->name_len[names] = (uint8_t)len;
	l->block[0] = (uint8_t)(names + 1);
	l->len = (uint16_t)(end + len);
}

void hydns_left_out_strike(struct hydns_left_out *l, const uint8_t *name, size_t len)
{
	size_t number, at = place_of(l, name, len, &number);

	if (at >= l->len)
		return;
	memmove(l->block + at, l->block + at + len, l->len - at - len);
	l->block[0]--;
	memmove(l->name_len + number, l->name_len + number + 1, l->block[0] - number);
	l->len = l->block[0] ? (uint16_t)(l->len - len) : 0;
}
