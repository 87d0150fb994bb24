/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: zones whose queries the kernel shall forward, and their upstream servers. Says nothing where no resolver wants any. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hydnsd/doctor/doctor.h"
#include "hydnsd/netdev/reserved_ports.h"

#define TEXT   512
#define REFUSED "forwarded in the kernel: "

bool doctor_is_of_forwarding(const char *note)
{
	return strstr(note, REFUSED) != NULL;
}

static const char *reload(const char *who)
{
	return strncmp(who, "named", 5) ? "hydns-unbound-control reload" : "hydns-rndc reconfig";
}

/* -- zones that are wanted ---------------------------------------------------------------------------------- */
/* Requests leave from ports that the host reserves. True: that is what keeps all zones. */
static bool check_ports(struct doctor *d, const char *who)
{
	char command[HYDNSD_RESERVED_MEND], mend[TEXT];
	struct hydns_port_run run;

	if (hydnsd_reserved_ports_look(&run, command) != -ERANGE)
		return false;
	snprintf(mend, sizeof(mend), "%s (and in /etc/sysctl.d), then: %s", command, reload(who));
	doctor_add(d, "forwarding", who, DOCTOR_WARN, mend, "no zone is forwarded in the kernel: the host reserves no %u ports in a row, "
		   "which requests leave from", HYDNS_PORTS_LEAST);
	return true;
}

/* A note says the cause, a colon, and what to do. */
static void check_note(struct doctor *d, const char *who, const char *note)
{
	const char *cause = strstr(note, REFUSED) + strlen(REFUSED), *colon = strstr(cause, ": ");
	bool is_hydnsds = strstr(cause, "hydnsd.conf") != NULL;
	char mend[2 * TEXT];

	if (!strncmp(note, "no zone", 7) && check_ports(d, who))
		return;
	if (colon && !is_hydnsds)
		snprintf(mend, sizeof(mend), "%s, then: %s", colon + 2, reload(who));
	else
		snprintf(mend, sizeof(mend), "%s", colon ? colon + 2 : "see the log of the resolver");
	doctor_add(d, "forwarding", who, DOCTOR_WARN, mend, "%.*s", colon ? (int)(colon - note) : (int)strlen(note), note);
}

/* -- upstream servers ----------------------------------------------------------------------------------------- */
/* "192.0.2.1" or "2001:db8::1", and the port, of "192.0.2.1:53" or "[2001:db8::1]:53". */
static void split(const char *server, char address[TEXT], const char **port)
{
	const char *colon = strrchr(server, ':');
	size_t skip = server[0] == '[', len = colon && colon > server + skip ? (size_t)(colon - server) - 2 * skip : 0;

	snprintf(address, TEXT, "%.*s", (int)len, server + skip);
	*port = colon ? colon + 1 : "53";
}

/* Whether hydnsd shall be attached to it. */
static bool is_named(const struct doctor *d, const char *interface)
{
	const json_t *i;
	size_t n;

	json_array_foreach(json_object_get(d->status, FIELD(status, interfaces)), n, i)
		if (!strcmp(ctl_str(i, FIELD(interface, name)), interface))
			return true;
	return false;
}

/* What to do about a state of an upstream server. False: nothing. */
static bool mend_of(const struct doctor *d, const json_t *u, const char *zone, char mend[2 * TEXT])
{
	const char *state = ctl_str(u, FIELD(upstream, state)), *device = ctl_str(u, FIELD(upstream, interface)), *port;
	char address[TEXT];

	split(ctl_str(u, FIELD(upstream, address)), address, &port);
	if (!strcmp(state, "silent"))
		snprintf(mend, 2 * TEXT, "dig -p %s @%s %s SOA: does it answer? hydnsd tries it again by itself", port, address, zone);
	else if (!strcmp(state, "no-route"))
		snprintf(mend, 2 * TEXT, "ip route get %s: give it a route by an Ethernet interface", address);
	else if (!strcmp(state, "no-neighbour"))
		snprintf(mend, 2 * TEXT, "ip neigh show dev %s; ip route get %s: is the next hop there, and the link up?",
			 device[0] ? device : "DEVICE", address);
	else if (!strcmp(state, "detached") && is_named(d, device))
		snprintf(mend, 2 * TEXT, "hydnsctl doctor %s: why is it not attached?", device);
	else if (!strcmp(state, "detached"))
		snprintf(mend, 2 * TEXT, "echo 'interface: %s' >>%s && systemctl reload hydnsd", device, doctor_config_file(d));
	else if (!strcmp(state, "tagged"))
		snprintf(mend, 2 * TEXT, "sed -i 's/^vlan: no/vlan: auto/' %s && hydnsctl reload", doctor_config_file(d));
	else
		return false;
	return true;
}

static void check_zones(struct doctor *d, const char *who, const json_t *forwarding)
{
	const json_t *zones = json_object_get(forwarding, FIELD(forwarding, zones)), *u;
	size_t i, servers = json_array_size(json_object_get(forwarding, FIELD(forwarding, upstreams))), bad = 0;
	const char *zone = json_string_value(json_array_get(zones, 0));
	char mend[2 * TEXT];

	if (!zone)
		return;
	json_array_foreach(json_object_get(forwarding, FIELD(forwarding, upstreams)), i, u) {
		if (!mend_of(d, u, zone, mend))
			continue;
		bad++;
		doctor_add(d, "forwarding", who, DOCTOR_WARN, mend, "the kernel sends upstream server %s no query: %s",
			   ctl_str(u, FIELD(upstream, address)), ctl_str(u, FIELD(upstream, why)));
	}
	if (!bad)
		doctor_add(d, "forwarding", who, DOCTOR_OK, NULL, "%zu zones are forwarded in the kernel, to %zu upstream servers",
			   json_array_size(zones), servers);
}

/* No rule answers a tagged query when replies are routed, so none is forwarded. */
static void check_tagged(struct doctor *d)
{
	const json_t *r, *left;
	char count[CTL_TEXT];
	size_t i;

	if (!json_is_true(json_object_get(d->status, FIELD(status, routed))) || !json_is_true(json_object_get(d->status, FIELD(status, vlan))))
		return;
	json_array_foreach(json_object_get(d->stats, FIELD(stats, resolvers)), i, r) {
		left = json_object_get(json_object_get(r, FIELD(resolver_counts, forwarding)), FIELD(forwarding_counts, left));
		if (ctl_int(left, "FRAME"))
			doctor_add(d, "forwarding", ctl_str(r, FIELD(resolver_counts, identity)), DOCTOR_WARN, "reply-path: swap, if "
				   "replies may go back as queries came; or leave it", "%s queries in a VLAN, or too long, were left to the resolver: "
				   "with reply-path: fib no reply to one is routed", ctl_count(ctl_int(left, "FRAME"), count));
	}
}

void doctor_check_forwarding(struct doctor *d)
{
	const json_t *r, *note;
	size_t i, n;

	json_array_foreach(json_object_get(d->status, FIELD(status, resolvers)), i, r) {
		const char *who = ctl_str(r, FIELD(resolver, identity));

		json_array_foreach(json_object_get(r, FIELD(resolver, notes)), n, note)
			if (doctor_is_of_forwarding(ctl_text(note)))
				check_note(d, who, ctl_text(note));
		check_zones(d, who, json_object_get(r, FIELD(resolver, forwarding)));
	}
	check_tagged(d);
}
