/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/forwards.h"

#include <net/if.h>
#include <string.h>

#include "hydnsd/control/report.h"
#include "hydnsd/control/text.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/forwarding/forwarding.h"

static const struct hydnsd_forward_resolver none;

static const struct hydnsd_forward_resolver *resolver(const struct hydnsd *d, uint32_t i)
{
	return d->forwarding ? &d->forwarding->of[i] : &none;
}

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static const char *server_text(const struct hydnsd_upstream *u, char out[HYDNSD_SERVICE_TEXT])
{
	struct hydns_service_key key = { .port = u->server.port };

	memcpy(key.addr, u->server.addr, sizeof(key.addr));
	return hydnsd_service_text(&key, out);
}

static json_t *upstream(const struct hydnsd_upstream *u, bool usable, uint64_t now_ms)
{
	char address[HYDNSD_SERVICE_TEXT], device[IF_NAMESIZE] = "";
	bool down = u->down_until_ms > now_ms;

	if (u->device)
		if_indextoname(u->device, device);
	return json_pack("{s:s, s:b, s:s, s:s, s:s, s:o, s:i, s:i, s:o, s:o, s:o}", "address", server_text(u, address), "usable", usable,
		"why", usable ? "" : u->way != HYDNSD_WAY_FOUND ? hydnsd_way_text(u->way) :
		down ? "it did not answer" : "another one answers sooner",
		"state", usable ? "usable" : u->way != HYDNSD_WAY_FOUND ? hydnsd_way_name(u->way) : down ? "silent" : "slower",
		"interface", device, "rtt_us", number(u->srtt_us), "timeout_ms", (int)hydnsd_upstream_timeout_ms(u), "open", (int)u->open_count,
		"sent", number(u->sent), "answers", number(u->answers), "timeouts", number(u->timeouts));
}

static json_t *zones(const struct hydnsd_zones *z)
{
	char text[HYDNSD_NAME_TEXT];
	json_t *list = json_array();

	for (uint32_t n = 0; z && n < z->count; n++)
		if (z->zone[n].upstreams)
			json_array_append_new(list, json_string(hydnsd_name_text(z->zone[n].name, z->zone[n].name_len, text)));
	return list;
}

json_t *hydnsd_forwards_state(struct hydnsd *d, uint32_t i)
{
	const struct hydnsd_forward_resolver *r = resolver(d, i);
	uint64_t now_ms = hydnsd_now_ms();
	uint32_t usable = r->zones ? hydns_kern_forwarding(d->kern, i)->usable : 0;
	json_t *list = json_array();

	for (uint32_t n = 0; r->zones && n < r->zones->servers; n++)
		json_array_append_new(list, upstream(&r->upstream[n], usable >> n & 1, now_ms));
	return json_pack("{s:o, s:i, s:o, s:i}", "zones", zones(r->zones), "left_out",
		r->zones ? (int)(r->zones->count - r->zones->forwarded) : 0, "upstreams", list, "open", (int)r->open);
}

json_t *hydnsd_forwards_counts(struct hydnsd *d, uint32_t i)
{
	static const char *const left_names[] = {
#define HYDNS_FORWARD_LEFT(name, text) #name,
#include "hydns/forward_left.def"
#undef HYDNS_FORWARD_LEFT
	};
	const struct hydnsd_forward_counts *c = &resolver(d, i)->counts;
	json_t *left = json_object(), *not_relayed = json_object();
	struct hydns_forward_count program;

	hydnsd_forwarding_program_counts(d, i, &program);
	for (unsigned n = 0; n < HYDNS_FORWARD_LEFTS; n++)
		json_object_set_new(left, left_names[n], number(program.left[n]));
	for (unsigned n = HYDNSD_RELAYED + 1; n < HYDNSD_RELAYS; n++)
		json_object_set_new(not_relayed, hydnsd_relay_name((enum hydnsd_relay)n), number(c->not_relayed[n]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sent", number(program.sent), "joined",
		number(program.joined), "answers", number(program.answers),
		"took", hydnsd_report_histogram(&c->took, HYDNSD_SCALE_WAIT), "mismatched", number(program.mismatched), "left", left,
		"relayed", number(c->relayed), "not_relayed", not_relayed, "rejected", number(c->rejected), "timed_out",
		number(c->timed_out), "again", number(c->again), "ended", number(c->ended), "late", number(c->late));
}

const char *hydnsd_forwards_upstream(struct hydnsd *d, uint32_t i, uint64_t key)
{
	static char text[HYDNSD_SERVICE_TEXT];
	const struct hydnsd_upstream *u = hydnsd_forwarding_asked(d, i, key);

	return u ? server_text(u, text) : "";
}

const char *hydnsd_forwards_words(struct hydnsd *d, uint32_t i, const uint8_t *name, uint8_t len, uint8_t variant)
{
	const struct hydnsd_zones *z = d->forwarding ? d->forwarding->of[i].zones : NULL;
	int zone = z && len ? hydnsd_zones_find(z, name, len) : -1;

	if (zone < 0 || variant || !z->zone[zone].upstreams)
		return "";
	return z->zone[zone].upstreams & hydns_kern_forwarding(d->kern, i)->usable ?
	       "; the kernel sends the next query to an upstream server of its forwarded zone" :
	       "; its zone is forwarded, but no upstream server of it can be asked now (hydnsctl status)";
}
