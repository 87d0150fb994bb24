/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/forwarding/zones.h"

#include <stdlib.h>
#include <string.h>

#include "hydnsd/rules/wire.h"

static uint32_t hash(const uint8_t *name, uint8_t len)
{
	uint32_t h = 2166136261U;

	for (uint8_t i = 0; i < len; i++)
		h = (h ^ name[i]) * 16777619U;
	return h % HYDNSD_ZONE_PLACES;
}

static int find_exact(const struct hydnsd_zones *z, const uint8_t *name, uint8_t len)
{
	for (uint32_t at = hash(name, len); z->place[at]; at = (at + 1) % HYDNSD_ZONE_PLACES) {
		const struct hydns_forward_name *zone = &z->zone[z->place[at] - 1];

		if (zone->name_len == len && !memcmp(zone->name, name, len))
			return z->place[at] - 1;
	}
	return -1;
}

int hydnsd_zones_find(const struct hydnsd_zones *z, const uint8_t *name, uint8_t len)
{
	for (uint8_t at = 0; at < len; at = (uint8_t)(at + 1 + name[at])) {
		int i = find_exact(z, name + at, (uint8_t)(len - at));

		if (i >= 0 || !name[at])
			return i;
	}
	return -1;
}

/* Addresses that a request can be sent to: unicast, of another host. */
static bool may_be_asked(const struct hydns_forward_server *s)
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff }, loopback[16] = { [15] = 1 }, none[16];
	const uint8_t *a = s->addr;

	if (!s->port)
		return false;
	if (!memcmp(a, v4_mapped, sizeof(v4_mapped)))
		return a[12] != 0 && a[12] != 127 && a[12] < 224;
	return a[0] != 0xff && !(a[0] == 0xfe && (a[1] & 0xc0) == 0x80) && memcmp(a, loopback, 16) && memcmp(a, none, 16);
}

static const char *add_servers(struct hydnsd_zones *z, const struct hydns_forward_server *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!may_be_asked(&s[i]))
			return "FORWARDS with an upstream server that is no unicast address of another host";
		z->server[z->servers++] = s[i];
	}
	return NULL;
}

static const char *add_zone(struct hydnsd_zones *z, const struct hydns_forward_name *n)
{
	uint32_t at;

	if (z->count == HYDNS_FORWARD_ZONES)
		return "FORWARDS with too many zones";
	if (!hydnsd_name_valid(n->name, n->name_len) || n->upstreams >> z->servers)
		return "FORWARDS with a zone whose name is malformed, or with an upstream server that is not named";
	if (find_exact(z, n->name, n->name_len) >= 0)
		return "FORWARDS with one zone twice";
	for (at = hash(n->name, n->name_len); z->place[at]; at = (at + 1) % HYDNSD_ZONE_PLACES)
		;
	z->zone[z->count] = *n;
	z->place[at] = (uint16_t)++z->count;
	z->forwarded += n->upstreams != 0;
	return NULL;
}

const char *hydnsd_zones_add(struct hydnsd_zones **z, const void *message, size_t len)
{
	const struct hydns_forwards *f = message;
	const struct hydns_forward_server *servers = (const void *)(f + 1);
	const struct hydns_forward_name *zones;
	const char *fault = NULL;

	if (len < sizeof(*f) || f->upstreams > HYDNS_FORWARD_UPSTREAMS || f->zones > HYDNS_FORWARD_ZONES || !f->number ||
	    len != sizeof(*f) + f->upstreams * sizeof(*servers) + f->zones * sizeof(*zones))
		return "FORWARDS whose counts do not fit its length";
	if (f->flags & HYDNS_FORWARDS_FIRST) {
		free(*z);
		*z = calloc(1, sizeof(**z));
		if (!*z)
			return "out of memory";
		(*z)->number = f->number;
		(*z)->max_ttl = f->max_ttl;
		(*z)->max_negative_ttl = f->max_negative_ttl;
		(*z)->flags = f->flags;
	} else if (!*z || (*z)->number != f->number || f->upstreams) {
		return "FORWARDS without their beginning";
	}
	zones = (const void *)(servers + f->upstreams);
	fault = add_servers(*z, servers, f->upstreams);
	for (uint32_t i = 0; i < f->zones && !fault; i++) {
		struct hydns_forward_name zone;

		memcpy(&zone, &zones[i], sizeof(zone));
		fault = add_zone(*z, &zone);
	}
	return fault;
}
