/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/lost.h"

#include <stdlib.h>
#include <string.h>

#include "hydns/session.h"

void hydnsd_lost_free(struct hydnsd_lost *l)
{
	free(l->entries);
	*l = (struct hydnsd_lost){ 0 };
}

void hydnsd_lost_all(struct hydnsd_lost *l)
{
	hydnsd_lost_free(l);
	l->all = true;
}

static size_t entry_len(const uint8_t *entry)
{
	return sizeof(struct hydns_lost) + ((const struct hydns_lost *)entry)->name_len;
}

static void forget_taken(struct hydnsd_lost *l)
{
	memmove(l->entries, l->entries + l->first, l->end - l->first);
	l->end -= l->first;
	l->first = 0;
}

void hydnsd_lost_add(struct hydnsd_lost *l, const uint8_t *name, uint8_t name_len, uint16_t qtype, uint8_t variant)
{
	const struct hydns_lost head = { .qtype = qtype, .variant = variant, .name_len = name_len };

	if (l->all)
		return;
	if (!l->entries)
		l->entries = malloc(HYDNSD_LOST_OCTETS);
	if (l->entries && l->end + sizeof(head) + name_len > HYDNSD_LOST_OCTETS)
		forget_taken(l);
	if (!l->entries || l->end + sizeof(head) + name_len > HYDNSD_LOST_OCTETS) {
		hydnsd_lost_all(l);
		return;
	}
	memcpy(l->entries + l->end, &head, sizeof(head));
	memcpy(l->entries + l->end + sizeof(head), name, name_len);
	l->end += (uint32_t)(sizeof(head) + name_len);
}

size_t hydnsd_lost_take(struct hydnsd_lost *l, uint8_t *out, size_t room, bool *all)
{
	size_t taken = 0;

	*all = l->all;
	l->all = false;
	while (l->first < l->end && taken + entry_len(l->entries + l->first) <= room) {
		size_t len = entry_len(l->entries + l->first);

		memcpy(out + taken, l->entries + l->first, len);
		taken += len;
		l->first += (uint32_t)len;
	}
	if (l->first == l->end)
		l->first = l->end = 0;
	return taken;
}
