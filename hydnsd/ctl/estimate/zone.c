/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/ctl/estimate/zone.h"

#include <stdlib.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydns/hash.h"

#define FIRST_ROOM 1024U               /* entries; a power of two */

/* -- tables ------------------------------------------------------------------------------------------------------ */
/* Makes room for one more entry: tables hold as many as the next power of two. False: no memory. */
static bool make_room(void **table, uint32_t count, size_t size)
{
	void *more;

	if (count && (count < FIRST_ROOM || (count & (count - 1))))
		return true;
	if (count > UINT32_MAX / 4)
		return false;          /* numbers end */
	more = realloc(*table, (count ? 2UL * count : FIRST_ROOM) * size);
	if (!more)
		return false;
	*table = more;
	return true;
}

static void put_in_index(struct ctl_zone *z, uint32_t name)
{
	uint32_t at = (uint32_t)z->name[name].hash & z->mask;

	while (z->index[at])
		at = (at + 1) & z->mask;
	z->index[at] = name + 1;
}

/* Keeps the index at most half full. */
static bool grow_index(struct ctl_zone *z)
{
	uint32_t *more, room = z->index ? (z->mask + 1) * 2 : 2 * FIRST_ROOM;

	if (z->index && z->names < room / 4)
		return true;
	more = calloc(room, sizeof(*more));
	if (!more)
		return false;
	free(z->index);
	z->index = more;
	z->mask = room - 1;
	for (uint32_t i = 0; i < z->names; i++)
		put_in_index(z, i);
	return true;
}

/* -- names --------------------------------------------------------------------------------------------------------- */
static bool is_inside(const struct ctl_zone *z, const uint8_t *name, size_t len)
{
	while (len > z->origin_len) {
		len -= 1U + *name;
		name += 1U + *name;
	}
	return len == z->origin_len && !memcmp(name, z->origin, len);
}

/* Two names of a zone of ten million share a hash of 64 bits once in 400,000 zones. */
static uint64_t hash_of(const uint8_t *name, size_t len)
{
	static const __u64 seed[2] = { 0, 0 };

	return hydns_place_hash(name, (__u8)len, seed);
}

static uint32_t look_up(const struct ctl_zone *z, uint64_t hash)
{
	for (uint32_t at = (uint32_t)hash & z->mask; z->index[at]; at = (at + 1) & z->mask)
		if (z->name[z->index[at] - 1].hash == hash)
			return z->index[at] - 1;
	return CTL_ZONE_NONE;
}

/* The number of a name of the zone, which it gets if it has none; its ancestors have theirs, too. CTL_ZONE_NONE: no memory. */
static uint32_t number_of(struct ctl_zone *z, const uint8_t *name, size_t len)
{
	uint64_t hash = hash_of(name, len);
	uint32_t number, parent = CTL_ZONE_NONE;

	if (!grow_index(z))
		return CTL_ZONE_NONE;
	number = look_up(z, hash);
	if (number != CTL_ZONE_NONE)
		return number;
	if (len > z->origin_len) {
		parent = number_of(z, name + 1 + *name, len - 1 - *name);
		if (parent == CTL_ZONE_NONE)
			return CTL_ZONE_NONE;
	}
	if (!grow_index(z) || !make_room((void **)&z->name, z->names, sizeof(*z->name)))
		return CTL_ZONE_NONE;
	z->name[z->names] = (struct ctl_zone_name){ .hash = hash, .parent = parent, .sets = CTL_ZONE_NONE, .len = (uint32_t)len };
	put_in_index(z, z->names);
	return z->names++;
}

uint32_t ctl_zone_cut(const struct ctl_zone *z, uint32_t name)
{
	uint32_t cut = CTL_ZONE_NONE;

	for (; name != CTL_ZONE_NONE && name != CTL_ZONE_ORIGIN; name = z->name[name].parent)
		if (ctl_zone_find(z, name, HYDNS_TYPE_NS))
			cut = name;
	return cut;
}

bool ctl_zone_open(struct ctl_zone *z, const uint8_t *origin, size_t len)
{
	*z = (struct ctl_zone){ .origin_len = len };
	memcpy(z->origin, origin, len);
	if (number_of(z, origin, len) == CTL_ZONE_ORIGIN)
		return true;
	ctl_zone_close(z);
	return false;
}

void ctl_zone_close(struct ctl_zone *z)
{
	free(z->name);
	free(z->set);
	free(z->target);
	free(z->index);
	*z = (struct ctl_zone){ 0 };
}

/* -- RRsets ---------------------------------------------------------------------------------------------------------- */
static struct ctl_rrset *find_set(const struct ctl_zone *z, uint32_t name, uint16_t type)
{
	for (uint32_t i = z->name[name].sets; i != CTL_ZONE_NONE; i = z->set[i].next)
		if (z->set[i].type == type)
			return &z->set[i];
	return NULL;
}

const struct ctl_rrset *ctl_zone_find(const struct ctl_zone *z, uint32_t name, uint16_t type)
{
	const struct ctl_rrset *s = find_set(z, name, type);

	return s && s->records ? s : NULL;
}

bool ctl_zone_is_signed(const struct ctl_zone *z)
{
	const struct ctl_rrset *soa = ctl_zone_find(z, CTL_ZONE_ORIGIN, HYDNS_TYPE_SOA);

	return soa && soa->signatures;
}

/* NULL: no memory. */
static struct ctl_rrset *set_for(struct ctl_zone *z, uint32_t name, uint16_t type)
{
	struct ctl_rrset *s = find_set(z, name, type);

	if (s || !make_room((void **)&z->set, z->sets, sizeof(*z->set)))
		return s;
	s = &z->set[z->sets];
	*s = (struct ctl_rrset){ .next = z->name[name].sets, .type = type, .targets = CTL_ZONE_NONE };
	z->name[name].sets = z->sets++;
	return s;
}

/* target: its number; CTL_ZONE_NONE: it is in another zone. */
static bool add_target(struct ctl_zone *z, struct ctl_rrset *s, uint32_t target, const struct ctl_record *r)
{
	if (!make_room((void **)&z->target, z->targets, sizeof(*z->target)))
		return false;
	z->target[z->targets] = (struct ctl_target){
		.next = s->targets, .name = target, .len = (uint16_t)r->target_len, .service_len = (uint16_t)r->service_len,
	};
	s->targets = z->targets++;
	return true;
}

static bool add_to_set(struct ctl_zone *z, struct ctl_rrset *s, const struct ctl_record *r, uint32_t target)
{
	if (r->is_signature) {
		s->signatures += s->signatures < UINT16_MAX;
		s->signature_octets += r->octets;
		return true;
	}
	s->records += s->records < UINT16_MAX;
	s->octets += r->octets;
	return !r->target || add_target(z, s, target, r);
}

/* A transfer ends with the SOA once more. */
static bool is_second_soa(const struct ctl_zone *z, const struct ctl_record *r)
{
	return r->type == HYDNS_TYPE_SOA && !r->is_signature && ctl_zone_find(z, CTL_ZONE_ORIGIN, HYDNS_TYPE_SOA);
}

bool ctl_zone_add(struct ctl_zone *z, const struct ctl_record *r)
{
	uint32_t name, target = CTL_ZONE_NONE;
	struct ctl_rrset *s;

	if (!is_inside(z, r->owner, r->owner_len)) {
		z->outside++;
		return true;
	}
	if (is_second_soa(z, r))
		return true;
	z->records++;
	if (r->type == HYDNS_TYPE_NSEC3) {      /* at a name of its own, which nobody asks for */
		z->nsec3 += !r->is_signature;
		z->nsec3_octets += r->octets;
		z->opt_out |= r->opt_out;
		return true;
	}
	name = number_of(z, r->owner, r->owner_len);
	if (name == CTL_ZONE_NONE)
		return false;
	if (r->target && is_inside(z, r->target, r->target_len)) {
		target = number_of(z, r->target, r->target_len);
		if (target == CTL_ZONE_NONE)
			return false;
	}
	s = set_for(z, name, r->type);
	return s && add_to_set(z, s, r, target);
}
