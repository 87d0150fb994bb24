/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The list of zones that the program may forward, while a resolver's code makes it: zones with their servers, the zones within them that
 * are left out, and notes on those that are refused. For any thread, but one at a time.
 */
#ifndef PLUGIN_FORWARD_ZONES_H
#define PLUGIN_FORWARD_ZONES_H

#include "plugin/plugin.h"

#define HYDNS_FORWARD_NOTES     8
#define HYDNS_FORWARD_NOTE_ROOM 320

struct hydns_forward_notes {
	size_t count;
	char text[HYDNS_FORWARD_NOTES][HYDNS_FORWARD_NOTE_ROOM];
};
struct hydns_forward_zones {
	struct hydns_plugin_forwards of;
	struct hydns_forward_notes notes;
	bool overflow;            /* more zones than hydnsd takes */
};

/* NULL: no memory. */
struct hydns_forward_zones *hydns_forward_zones_new(void);
void hydns_forward_zones_free(struct hydns_forward_zones *z);

/* Names are in wire format, any case. */
bool hydns_forward_zones_has(const struct hydns_forward_zones *z, const uint8_t *name, size_t len);
/* servers: bits, as _server() has set them. */
void hydns_forward_zones_add(struct hydns_forward_zones *z, const uint8_t *name, size_t len, uint32_t servers);
/* Names at and below this one are not forwarded, whatever was said before, if a forwarded zone is above it. */
void hydns_forward_zones_leave_out(struct hydns_forward_zones *z, const uint8_t *name, size_t len);
/* Adds the bit of the server to *servers. addr: 16 octets, IPv4 as ::ffff:a.b.c.d; port: network order. NULL: it is there; else why it
 * can't be asked. */
const char *hydns_forward_zones_server(struct hydns_forward_zones *z, const uint8_t addr[16], uint16_t port, uint32_t *servers);
/* Notes that the zone is not forwarded. what: as the configuration calls it. */
void hydns_forward_zones_refuse(struct hydns_forward_zones *z, const char *what, const char *zone, const char *reason);

/*
 * Gives the list to the plugin, or an empty one if it has too many zones (z NULL: no memory for one), and the notes, of which *former is
 * what was noted last. log: those that are news. Returns whether any zone may be forwarded.
 */
bool hydns_forward_zones_use(struct hydns_forward_zones *z, struct hydns_plugin *p, struct hydns_forward_notes *former,
			     void (*log)(enum hydns_log_level level, const char *text));

#endif
