/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/preload/preload.h"

#include <stdlib.h>
#include <string.h>
#include "hydns/names.h"

#define ROOM_MIN 4096

void hydns_preload_list_free(struct hydns_preload_list *l)
{
	free(l->octets);
	*l = (struct hydns_preload_list){ .stopping = l->stopping };
}

bool hydns_preload_list_append(struct hydns_preload_list *l, const uint8_t *name, size_t len, uint16_t qtype, uint8_t variants)
{
	const struct hydns_preload_entry head = { .qtype = qtype, .variants = variants, .name_len = (uint8_t)len };

	if (len > HYDNS_NAME_MAX || (l->stopping && atomic_load(l->stopping)))
		return false;
	if (l->len + sizeof(head) + len > l->room) {
		size_t room = l->room ? l->room * 2 : ROOM_MIN;
		uint8_t *more = realloc(l->octets, room);

		if (!more)
			return false;
		l->octets = more;
		l->room = room;
	}
	memcpy(l->octets + l->len, &head, sizeof(head));
	memcpy(l->octets + l->len + sizeof(head), name, len);
	l->len += sizeof(head) + len;
	l->questions += (size_t)__builtin_popcount(variants);
	return true;
}

bool hydns_preload_add(struct hydns_preload_list *l, const uint8_t *name, size_t len, uint16_t qtype)
{
	return hydns_preload_list_append(l, name, len, qtype, HYDNS_PRELOAD_ALL);
}

size_t hydns_preload_below_name(const uint8_t *name, size_t len, uint8_t *out)
{
	if (len + HYDNS_BELOW_LABEL_LEN > HYDNS_NAME_MAX)
		return 0;
	memcpy(out, HYDNS_BELOW_LABEL, HYDNS_BELOW_LABEL_LEN);
	memcpy(out + HYDNS_BELOW_LABEL_LEN, name, len);
	return len + HYDNS_BELOW_LABEL_LEN;
}

bool hydns_preload_add_below(struct hydns_preload_list *l, const uint8_t *name, size_t len)
{
	uint8_t below[HYDNS_NAME_MAX];
	size_t below_len = hydns_preload_below_name(name, len, below);

	return !below_len || hydns_preload_add(l, below, below_len, HYDNS_BELOW_TYPE);
}

bool hydns_preload_add_no_ds(struct hydns_preload_list *l, const uint8_t *name, size_t len)
{
	return hydns_preload_list_append(l, name, len, HYDNS_TYPE_DS, HYDNS_PRELOAD_PROOFS);
}

bool hydns_preload_is_of_template(const uint8_t *name, size_t len, uint16_t qtype)
{
	return hydns_denies_types(qtype) || (qtype == HYDNS_BELOW_TYPE && hydns_is_below_name(name, (__u32)len));
}

const struct hydns_preload_entry *hydns_preload_list_next(const struct hydns_preload_list *l, size_t *at)
{
	const struct hydns_preload_entry *e = (const struct hydns_preload_entry *)(l->octets + *at);

	if (*at >= l->len)
		return NULL;
	*at += sizeof(*e) + e->name_len;
	return e;
}
