/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/preload/soa.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PRIME 0x100000001b3ULL         /* FNV-1a: who writes a zone gains nothing from a collision in it */

void hydns_zone_soa_shows(struct hydns_zone_soa *soa, const void *octets, size_t len)
{
	const uint8_t *p = octets;

	while (len--)
		soa->shape = (soa->shape ^ *p++) * PRIME;
	soa->shape = (soa->shape ^ 0x100) * PRIME;     /* where one part ends */
}

bool hydns_soas_begin(struct hydns_soas *s, struct hydns_soa_now *now, uint32_t zones, uint32_t element)
{
	*s = (struct hydns_soas){ .now = now, .zones = zones, .element = element };
	s->shape = zones ? calloc(zones, sizeof(*s->shape)) : NULL;
	return s->shape || !zones;
}

void hydns_soas_end(struct hydns_soas *s)
{
	for (uint32_t i = 0; i < s->zones; i++)
		hydns_soas_close(s, i);
	free(s->shape);
	*s = (struct hydns_soas){ 0 };
}

static void advance(struct hydns_soa_now *now)
{
	__atomic_store_n(&now->number, now->number + 1, __ATOMIC_SEQ_CST);
}

bool hydns_soas_close(struct hydns_soas *s, uint32_t zone)
{
	struct hydns_soa_now *now = zone < s->zones ? &s->now[zone] : NULL;

	if (!now || now->number & 1)
		return false;
	advance(now);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);       /* what is written from now on comes after it */
	return now->id;
}

/* RFC 1071, folded, memory order. */
static uint16_t sum_of(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 8 : 0);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static uint64_t new_id(void)
{
	uint64_t id = 0;

	return getrandom(&id, sizeof(id), 0) == sizeof(id) ? id : 0;
}

static void write_signature(struct hydns_soa_now *now, const struct hydns_zone_soa *soa)
{
	now->signature_len = soa->signature_len;
	memcpy(now->fixed, soa->fixed, sizeof(now->fixed));
	memcpy(now->signature, soa->signature, soa->signature_len);
	now->fixed_sum = sum_of(soa->fixed, sizeof(soa->fixed));
	now->signature_sum = sum_of(soa->signature, soa->signature_len);
}

void hydns_soas_open(struct hydns_soas *s, uint32_t zone, const struct hydns_zone_soa *soa)
{
	struct hydns_soa_now *now = zone < s->zones ? &s->now[zone] : NULL;

	if (!now)
		return;
	hydns_soas_close(s, zone);
	if (!now->id || s->shape[zone] != soa->shape)
		now->id = new_id();
	s->shape[zone] = soa->shape;
	memcpy(now->numbers, soa->numbers, sizeof(now->numbers));
	now->numbers_sum = sum_of(soa->numbers, sizeof(soa->numbers));
	write_signature(now, soa);
	advance(now);
}

bool hydns_soas_differs(const struct hydns_soas *s, uint32_t zone, const struct hydns_zone_soa *soa)
{
	return zone < s->zones && s->now[zone].id && s->shape[zone] != soa->shape;
}

bool hydns_soas_is_bare(const struct hydns_soas *s, uint32_t zone)
{
	const struct hydns_soa_now *now = zone < s->zones ? &s->now[zone] : NULL;

	return now && !(now->number & 1) && now->id && !now->signature_len;
}

bool hydns_soas_find(const struct hydns_soas *s, uint32_t zone, bool is_signed, struct hydns_offer_soa *out)
{
	const struct hydns_soa_now *now = zone < s->zones ? &s->now[zone] : NULL;

	if (!now || now->number & 1 || !now->id || (is_signed && !now->signature_len))
		return false;
	*out = (struct hydns_offer_soa){ .id = now->id, .element = s->element + zone * HYDNS_SOA_ELEMENTS };
	return true;
}
