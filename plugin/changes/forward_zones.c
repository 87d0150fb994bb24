/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/forward_zones.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(HYDNS_FORWARD_UPSTREAMS == 16 && HYDNS_FORWARD_ZONES == 512, "as the notes say");

struct hydns_forward_zones *hydns_forward_zones_new(void)
{
	struct hydns_forward_zones *z = calloc(1, sizeof(*z));

	if (z)
		z->of.zone = calloc(HYDNS_FORWARD_ZONES, sizeof(*z->of.zone));
	if (z && z->of.zone)
		return z;
	free(z);
	return NULL;
}

void hydns_forward_zones_free(struct hydns_forward_zones *z)
{
	if (z)
		free(z->of.zone);
	free(z);
}

/* -- names ---------------------------------------------------------------------------------------------------- */
/* Length octets are below 'A'. */
static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* b is in lower case. */
static bool same(const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (lower(a[i]) != b[i])
			return false;
	return true;
}

static struct hydns_forward_name *find(const struct hydns_forward_zones *z, const uint8_t *name, size_t len)
{
	for (uint32_t i = 0; i < z->of.zones; i++)
		if (z->of.zone[i].name_len == len && same(name, z->of.zone[i].name, len))
			return &z->of.zone[i];
	return NULL;
}

bool hydns_forward_zones_has(const struct hydns_forward_zones *z, const uint8_t *name, size_t len)
{
	return find(z, name, len) != NULL;
}

/* Whether the name is strictly below a zone that is forwarded. */
static bool is_within(const struct hydns_forward_zones *z, const uint8_t *name, size_t len)
{
	for (size_t at = 0; at < len && name[at]; ) {
		const struct hydns_forward_name *above;

		at += 1U + name[at];
		above = at < len ? find(z, name + at, len - at) : NULL;
		if (above && above->upstreams)
			return true;
	}
	return false;
}

void hydns_forward_zones_add(struct hydns_forward_zones *z, const uint8_t *name, size_t len, uint32_t servers)
{
	struct hydns_forward_name *n = find(z, name, len);

	if (n) {
		if (!servers)
			n->upstreams = 0;
		return;
	}
	if (z->of.zones == HYDNS_FORWARD_ZONES) {
		z->overflow = true;
		return;
	}
	n = &z->of.zone[z->of.zones++];
	n->upstreams = servers;
	n->name_len = (uint8_t)len;
	for (size_t i = 0; i < len; i++)
		n->name[i] = lower(name[i]);
}

void hydns_forward_zones_leave_out(struct hydns_forward_zones *z, const uint8_t *name, size_t len)
{
	if (is_within(z, name, len))
		hydns_forward_zones_add(z, name, len, 0);
}

/* -- servers -------------------------------------------------------------------------------------------------- */
static bool is_of_another_host(const uint8_t addr[16])
{
	static const uint8_t mapped[12] = HYDNS_V4_MAPPED, loopback[16] = { [15] = 1 }, none[16];

	if (!memcmp(addr, mapped, sizeof(mapped)))
		return addr[12] != 127 && addr[12] != 0 && addr[12] < 224;
	return memcmp(addr, loopback, 16) && memcmp(addr, none, 16) && addr[0] != 0xff && !(addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80);
}

const char *hydns_forward_zones_server(struct hydns_forward_zones *z, const uint8_t addr[16], uint16_t port, uint32_t *servers)
{
	struct hydns_forward_server s = { .port = port };
	uint32_t i;

	if (!is_of_another_host(addr))
		return "an address of it is the host's own, or of one link: name others";
	memcpy(s.addr, addr, sizeof(s.addr));
	for (i = 0; i < z->of.servers && memcmp(&z->of.server[i], &s, sizeof(s)); i++)
		;
	if (i == HYDNS_FORWARD_UPSTREAMS)
		return "there are more than 16 upstream servers: remove some";
	if (i == z->of.servers)
		z->of.server[z->of.servers++] = s;
	*servers |= 1U << i;
	return NULL;
}

/* -- notes ---------------------------------------------------------------------------------------------------- */
void hydns_forward_zones_refuse(struct hydns_forward_zones *z, const char *what, const char *zone, const char *reason)
{
	if (z->notes.count < HYDNS_FORWARD_NOTES)
		snprintf(z->notes.text[z->notes.count++], HYDNS_FORWARD_NOTE_ROOM, "%s %s is not forwarded in the kernel: %s", what, zone,
			 reason);
}

static bool is_known(const struct hydns_forward_notes *n, const char *text)
{
	for (size_t i = 0; i < n->count; i++)
		if (!strcmp(n->text[i], text))
			return true;
	return false;
}

static void use_notes(const struct hydns_forward_notes *notes, struct hydns_plugin *p, struct hydns_forward_notes *former,
		      void (*log)(enum hydns_log_level level, const char *text))
{
	const char *text[HYDNS_FORWARD_NOTES];

	if (!notes->count && !former->count)
		return;
	for (size_t i = 0; i < notes->count; i++) {
		text[i] = notes->text[i];
		if (!is_known(former, text[i]))
			log(HYDNS_LOG_WARNING, text[i]);
	}
	hydns_plugin_set_notes(p, HYDNS_NOTE_FORWARD, text, notes->count);
	*former = *notes;
}

bool hydns_forward_zones_use(struct hydns_forward_zones *z, struct hydns_plugin *p, struct hydns_forward_notes *former,
			     void (*log)(enum hydns_log_level level, const char *text))
{
	static const struct hydns_plugin_forwards none;

	if (!z) {
		log(HYDNS_LOG_ERROR, "out of memory: no zone is forwarded in the kernel");
		(void)hydns_plugin_forward(p, &none);
		return false;
	}
	if (z->overflow) {
		hydns_forward_zones_refuse(z, "zone", "(all)", "more than 512 zones would have to be left out: remove some, or forward smaller "
					   "zones");
		z->of.zones = z->of.servers = 0;
	}
	(void)hydns_plugin_forward(p, &z->of);
	use_notes(&z->notes, p, former, log);
	return z->of.zones > 0;
}
