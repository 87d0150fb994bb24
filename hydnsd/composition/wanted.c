/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/composition/wanted.h"

#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "hydnsd/composition/exchange.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/forwarding/forwarding.h"
#include "hydnsd/forwarding/zones.h"
#include "hydnsd/guard/guard.h"
#include "hydnsd/netdev/routing.h"
#include "hydnsd/parking/parked.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/resolvers/lane_requests.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/netdev/prefixes.h"

const char *hydnsd_part_name(enum hydnsd_part p)
{
	static const char *const names[] = {
#define HYDNS_PART(name, constant, text) #name,
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	};

	return names[p];
}

const char *hydnsd_part_text(enum hydnsd_part p)
{
	static const char *const texts[] = {
#define HYDNS_PART(name, constant, text) text,
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	};

	return texts[p];
}

struct hydns_composition hydnsd_composition_of(const struct hydnsd_wanted *w)
{
	return (struct hydns_composition){
#define HYDNS_PART(name, constant, text) .name = w->part[HYDNSD_PART_##name],
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
		.limits = w->limits,
	};
}

static void say(struct hydnsd_wanted *w, enum hydnsd_part p, bool in, const char *why)
{
	w->part[p] = in;
	snprintf(w->why[p], sizeof(w->why[p]), "%s", why);
}

/* An option says so: at once. */
static void ordered(struct hydnsd_wanted *w, enum hydnsd_part p, bool in, const char *option, const char *value)
{
	w->part[p] = in;
	snprintf(w->why[p], sizeof(w->why[p]), "%s: %s", option, value);
}

/* The host has what asks for it: at once, too. what: NULL, it has not. */
static void found(struct hydnsd_wanted *w, enum hydnsd_part p, const char *what, const char *nothing)
{
	say(w, p, what, what ? what : nothing);
}

static void stays(struct hydnsd_wanted *w, enum hydnsd_part p, const char *nobody)
{
	w->part[p] = true;
	snprintf(w->why[p], sizeof(w->why[p]), "%s now; it stays for a minute", nobody);
}

/* A resolver asks for it, or has done so lately. who: NULL, nobody does. */
static void asked(struct hydnsd *d, struct hydnsd_wanted *w, enum hydnsd_part p, const char *who, const char *nobody)
{
	uint64_t now = hydnsd_now_ns(), *last = &d->asked_ns[p];

	if (who)
		*last = now;
	if (who || !*last || now - *last >= HYDNSD_PART_STAYS_NS)
		say(w, p, who, who ? who : nobody);
	else
		stays(w, p, nobody);
}

/* -- what the host has ------------------------------------------------------------------------------------ */
/* An address besides ::1. */
static bool has_ipv6_address(void)
{
	FILE *f = fopen("/proc/net/if_inet6", "re");
	char address[33], name[IF_NAMESIZE];
	bool found = false;

	while (f && !found && fscanf(f, "%32s %*s %*s %*s %*s %15s", address, name) == 2)
		found = strcmp(address, "00000000000000000000000000000001") != 0;
	if (f)
		fclose(f);
	return found;
}

static void note_ipv6(const struct hydns_service_key *key, uint32_t resolver, void *found)
{
	(void)resolver;
	*(bool *)found |= !hydnsd_is_mapped(key->addr);
}

static void want_ipv6(struct hydnsd *d, struct hydnsd_wanted *w)
{
	bool address = has_ipv6_address(), service = false;

	if (d->options.ipv6 != HYDNSD_AUTO) {
		ordered(w, HYDNSD_PART_ipv6, d->options.ipv6 == HYDNSD_YES, "ipv6", d->options.ipv6 == HYDNSD_YES ? "yes" : "no");
		return;
	}
	if (d->services)
		hydnsd_services_each(d, note_ipv6, &service);
	found(w, HYDNSD_PART_ipv6, address ? "the host has an IPv6 address" : service ? "a resolver listens over IPv6" : NULL,
	      "the host has no IPv6 address");
}

static void want_vlan(struct hydnsd *d, struct hydnsd_wanted *w)
{
	const char *device = d->facts.tagged;
	char why[HYDNSD_PART_WHY];

	if (d->options.vlan != HYDNSD_AUTO) {
		ordered(w, HYDNSD_PART_vlan, d->options.vlan == HYDNSD_YES, "vlan", d->options.vlan == HYDNSD_YES ? "yes" : "no");
		return;
	}
	snprintf(why, sizeof(why), "%s takes tagged frames", device);
	found(w, HYDNSD_PART_vlan, device[0] ? why : NULL, "no VLAN lies on the interfaces");
}

/* Where the host has one interface alone, routing leads back the way that the query came, but for the neighbour that it goes to. */
static void want_fib(struct hydnsd *d, struct hydnsd_wanted *w)
{
	const char *off = hydnsd_routing_off(d->options.ipv6 == HYDNSD_YES || has_ipv6_address());
	char why[HYDNSD_PART_WHY];

	if (d->options.reply_path != HYDNSD_REPLY_AUTO) {
		ordered(w, HYDNSD_PART_fib, d->options.reply_path == HYDNSD_REPLY_FIB, "reply-path",
			d->options.reply_path == HYDNSD_REPLY_FIB ? "fib" : "swap");
		return;
	}
	if (off) {
		snprintf(why, sizeof(why), "the kernel looks up routes for XDP only when %s is 1", off);
		found(w, HYDNSD_PART_fib, NULL, why);
	} else {
		found(w, HYDNSD_PART_fib, d->facts.several ? "the host routes, by several interfaces" : NULL, "the host has one interface");
	}
}

static void want_partial_checksum(struct hydnsd *d, struct hydnsd_wanted *w)
{
	char why[HYDNSD_PART_WHY];
	const char *leaves = d->facts.unfinished;

	if (d->options.partial_checksum != HYDNSD_AUTO) {
		ordered(w, HYDNSD_PART_partial_checksum, d->options.partial_checksum == HYDNSD_YES, "partial-checksum",
			d->options.partial_checksum == HYDNSD_YES ? "yes" : "no");
		return;
	}
	snprintf(why, sizeof(why), "%s leaves checksums unfinished", leaves);
	found(w, HYDNSD_PART_partial_checksum, leaves[0] ? why : NULL, "no interface leaves checksums unfinished");
}

/* -- what resolvers ask for ------------------------------------------------------------------------------- */
static bool parks(const struct hydnsd *d, uint32_t i)
{
	return d->parking && (d->parking->of[i].most || hydnsd_parked_count(d->parking->parked));
}

static bool forwards(const struct hydnsd *d, uint32_t i)
{
	const struct hydnsd_zones *z = d->forwarding ? d->forwarding->of[i].zones : NULL;

	return z && z->forwarded;
}

static bool logs(const struct hydnsd *d, uint32_t i)
{
	return d->resolver[i].config.flags & (HYDNS_RESOLVER_LOGS | HYDNS_RESOLVER_RATES);
}

static bool preloads(const struct hydnsd *d, uint32_t i)
{
	return d->kern && hydns_kern_has_names(d->kern, i);
}

/* By the first resolver that asks, called with its name. */
static void want_of_resolvers(struct hydnsd *d, struct hydnsd_wanted *w, enum hydnsd_part p,
			      bool (*asks)(const struct hydnsd *d, uint32_t i), const char *text, const char *nobody)
{
	char why[HYDNSD_PART_WHY];

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		if (!asks(d, i))
			continue;
		snprintf(why, sizeof(why), "resolver %u (%.80s) %s", i, d->resolver[i].hello.identity, text);
		asked(d, w, p, why, nobody);
		return;
	}
	asked(d, w, p, NULL, nobody);
}

static bool takes_rings(const struct hydnsd *d)
{
	return (d->sessions && hydnsd_lane_requests_wanted(d)) || (d->kern && hydns_kern_stray_asked(d->kern));
}

static void want_queue(struct hydnsd *d, struct hydnsd_wanted *w)
{
	bool any = takes_rings(d);

	if (d->options.queue == HYDNSD_QUEUE_NO)
		ordered(w, HYDNSD_PART_queue, false, "queue", "no");
	else
		asked(d, w, HYDNSD_PART_queue, any ? "a resolver takes packets by rings" : NULL, "no resolver takes packets by rings");
}

uint32_t hydnsd_asking(const struct hydnsd *d)
{
	bool park = false, forward = false, log = false, preload = false;

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		park |= parks(d, i);
		forward |= forwards(d, i);
		log |= logs(d, i);
		preload |= preloads(d, i);
	}
	return (uint32_t)park | (uint32_t)forward << 1 | (uint32_t)log << 2 |
	       (uint32_t)takes_rings(d) << 3 | (uint32_t)preload << 4;
}

void hydnsd_wanted(struct hydnsd *d, struct hydnsd_wanted *out)
{
	const struct hydnsd_options *o = &d->options;

	want_ipv6(d, out);
	want_vlan(d, out);
	want_fib(d, out);
	want_partial_checksum(d, out);
	want_queue(d, out);
	if (!o->pending_max)
		ordered(out, HYDNSD_PART_parking, false, "pending-max", "0");
	else
		want_of_resolvers(d, out, HYDNSD_PART_parking, parks, "lets queries wait", "no resolver lets queries wait");
	if (!o->pending_max || !o->forwarding)
		ordered(out, HYDNSD_PART_forwarding, false, o->forwarding ? "pending-max" : "forwarding", o->forwarding ? "0" : "no");
	else
		want_of_resolvers(d, out, HYDNSD_PART_forwarding, forwards, "has zones forwarded", "no resolver has zones forwarded");
	out->part[HYDNSD_PART_parking] |= out->part[HYDNSD_PART_forwarding];
	want_of_resolvers(d, out, HYDNSD_PART_logs, logs, "logs or limits answers", "no resolver logs or limits answers");
	want_of_resolvers(d, out, HYDNSD_PART_names, preloads, "preloads zones", "no resolver preloads zones");
	ordered(out, HYDNSD_PART_monitor, o->monitor, "monitor", o->monitor ? "yes" : "no");
	ordered(out, HYDNSD_PART_guard, o->guard, "guard", hydnsd_guard_mode_text(o));
	out->limits = hydnsd_guard_limits(o);
}
