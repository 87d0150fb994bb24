/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* status, pause and resume. Without the daemon they read and write the pinned maps. */
#include "config.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "hydnsd/ctl/common.h"
#include "hydnsd/daemon/pause.h"

/* "unbound 1.22.0" */
static void resolver_title(const json_t *r, char *out, size_t room)
{
	const char *version = ctl_str(r, FIELD(resolver, version));

	/* A new hydnsd has it from the pins, which hold no names. */
	if (!ctl_str(r, FIELD(resolver, identity))[0])
		snprintf(out, room, "a resolver that has not connected again");
	else
		snprintf(out, room, "%s%s%s", ctl_str(r, FIELD(resolver, identity)), version[0] ? " " : "", version);
}

/* What does not work well on an interface; or what has no packet rings there. */
static const char *interface_note(const json_t *i)
{
	const char *note = ctl_str(i, FIELD(interface, note));

	return note[0] ? note : ctl_str(i, FIELD(interface, no_rings));
}

static void print_interfaces(const json_t *list)
{
	struct ctl_table *t = ctl_table_new("llll");
	const json_t *i;
	size_t n;

	puts("interfaces");
	if (!json_array_size(list))
		puts("  none");
	json_array_foreach(list, n, i) {
		ctl_cell(t, ctl_str(i, FIELD(interface, name)));
		ctl_cell(t, ctl_str(i, FIELD(interface, mode)));
		ctl_cell(t, json_is_true(json_object_get(i, FIELD(interface, attached))) ? "attached" : "NOT ATTACHED");
		ctl_cell(t, interface_note(i));
	}
	ctl_table_print(t, 2);
}

static void print_sources(const json_t *list)
{
	const json_t *s;
	size_t n;

	if (json_array_size(list))
		puts("sources");
	json_array_foreach(list, n, s) {
		const char *mode = ctl_str(s, FIELD(source, rp_filter)), *mend = ctl_str(s, FIELD(source, mend));

		printf("  %s  ", ctl_str(s, FIELD(source, family)));
		if (ctl_str(s, FIELD(source, note))[0])
			printf("%s%s%s\n", ctl_str(s, FIELD(source, note)), mend[0] ? ": " : "", mend);
		else
			printf("answered from where the host has a route to%s%s\n", mode[0] ? "; rp_filter: " : "", mode);
	}
}

/* How many places of a resolver are shown, of those that the kernel answers and of the others; --json has all. */
#define PLACES_MOST 32

/* How many more there are than were shown. */
static void print_rest(const json_t *list)
{
	char more[CTL_TEXT];

	if (json_array_size(list) > PLACES_MOST)
		printf("                and %s more (--json)\n", ctl_count((json_int_t)(json_array_size(list) - PLACES_MOST), more));
}

static void print_services(const json_t *list)
{
	const json_t *s;
	size_t n;

	if (!json_array_size(list))
		return;
	printf("     %-10s ", "services");
	json_array_foreach(list, n, s)
		if (n < PLACES_MOST)
			printf("%s%s", n ? ", " : "", json_string_value(s));
	putchar('\n');
	print_rest(list);
}

static void print_notes(const json_t *list)
{
	const json_t *s;
	size_t n;

	json_array_foreach(list, n, s)
		printf("     %-10s %s\n", n ? "" : "note", json_string_value(s));
}

static void print_missing(const json_t *list)
{
	const json_t *m;
	size_t n;

	json_array_foreach(list, n, m)
		if (n < PLACES_MOST)
			printf("     %-10s %s: %s\n", n ? "" : "MISSING", ctl_str(m, FIELD(missing, service)),
			       ctl_str(m, FIELD(missing, why)));
	print_rest(list);
}

/* "eth0 queue 0 (lane 3, 2 threads): 0 frames waiting, ..." */
static void print_lanes(const json_t *list)
{
	char waiting[CTL_TEXT], unsent[CTL_TEXT], unused[CTL_TEXT], dropped[CTL_TEXT];
	const json_t *l;
	size_t n;

	json_array_foreach(list, n, l)
		printf("     %-10s %s queue %" JSON_INTEGER_FORMAT " (lane %" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT " threads%s): "
		       "%s frames waiting, %s free, %s unsent, %s dropped\n", n ? "" : "rings", ctl_str(l, FIELD(lane, interface)),
		       ctl_int(l, FIELD(lane, queue)), ctl_int(l, FIELD(lane, number)), ctl_int(l, FIELD(lane, threads)),
		       json_is_true(json_object_get(l, FIELD(lane, open))) ? "" : ", not open yet",
		       ctl_count(ctl_int(l, FIELD(lane, waiting)), waiting), ctl_count(ctl_int(l, FIELD(lane, free)), unused),
		       ctl_count(ctl_int(l, FIELD(lane, unsent)), unsent), ctl_count(ctl_int(l, FIELD(lane, dropped)), dropped));
}

/* "complete, ..." */
static void print_log(const json_t *l)
{
	const char *mode = ctl_str(l, FIELD(resolver_log, mode));

	if (strcmp(mode, "no") == 0)
		return;
	printf("     %-10s %s", "log", mode);
	if (ctl_int(l, FIELD(resolver_log, one_in)) > 1)
		printf(", one answer in %" JSON_INTEGER_FORMAT, ctl_int(l, FIELD(resolver_log, one_in)));
	puts(json_is_true(json_object_get(l, FIELD(resolver_log, connected))) ? "" : ", NOT CONNECTED: the resolver's log says why");
}

/* "40 queries a second from one address, 100 with a valid cookie; ..." */
static void print_limits(const json_t *l)
{
	char a[CTL_TEXT], b[CTL_TEXT];

	if (!ctl_int(l, FIELD(limits, queries)))
		return;
	printf("     %-10s %s queries a second from one address, %s with a valid cookie", "limits", ctl_count(ctl_int(l, FIELD(limits, queries)), a),
	       ctl_int(l, FIELD(limits, with_cookie)) ? ctl_count(ctl_int(l, FIELD(limits, with_cookie)), b) : "any number");
	if (ctl_int(l, FIELD(limits, slip)))
		printf("; above that one in %s", ctl_count(ctl_int(l, FIELD(limits, slip)), a));
	puts(json_is_true(json_object_get(l, FIELD(limits, backoff))) ? ", with backoff" : "");
}

/* "20 responses a second to a client; above that one in 2 with TC" */
static void print_rates(const json_t *r)
{
	const struct { const char *field, *what; } kinds[] = {
		{ FIELD(rates, responses), "responses" }, { FIELD(rates, nodata), "nodata" }, { FIELD(rates, nxdomains), "nxdomains" },
		{ FIELD(rates, referrals), "referrals" }, { FIELD(rates, errors), "errors" }, { FIELD(rates, all), "in all" },
	};
	const char *sep = "";

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const json_int_t most = ctl_int(r, kinds[i].field);

		if (!most)
			continue;
		if (!*sep)
			printf("     %-10s ", "rates");
		printf("%s%" JSON_INTEGER_FORMAT " %s%s", sep, most, kinds[i].what, *sep ? "" : " a second");
		sep = ", ";
	}
	if (!*sep)
		return;
	if (ctl_int(r, FIELD(rates, slip)))
		printf("; above that one in %" JSON_INTEGER_FORMAT " with TC", ctl_int(r, FIELD(rates, slip)));
	puts(json_is_true(json_object_get(r, FIELD(rates, log_only))) ? "; all are answered (log-only)" : "");
}

/* "CRASHED 12 s ago; ..." */
static void print_stale(const json_t *s)
{
	char a[CTL_TEXT], b[CTL_TEXT];

	if (!json_is_true(json_object_get(s, FIELD(stale, serving))))
		return;
	printf("     %-10s CRASHED %s ago; its rules go on, with TTL %" JSON_INTEGER_FORMAT " once their own is over: %s such replies. START IT\n",
	       "STALE", ctl_duration(ctl_int(s, FIELD(stale, since_ms)), a), ctl_int(s, FIELD(stale, ttl)),
	       ctl_count(ctl_int(s, FIELD(stale, replies)), b));
}

static void print_rules(const json_t *r)
{
	json_int_t preloaded = ctl_int(r, FIELD(resolver, preloaded));
	char text[CTL_TEXT];

	printf("     %-10s %s, ", "rules", ctl_count(ctl_int(r, FIELD(resolver, rules)), text));
	if (preloaded)
		printf("%s of them preloaded, ", ctl_count(preloaded, text));
	printf("epoch %" JSON_INTEGER_FORMAT ", ", ctl_int(r, FIELD(resolver, epoch)));
}

static void print_resolver(const json_t *r)
{
	char title[96], a[CTL_TEXT], b[CTL_TEXT];

	resolver_title(r, title, sizeof(title));
	printf("  %" JSON_INTEGER_FORMAT "  %s, pid %" JSON_INTEGER_FORMAT ", %s\n", ctl_int(r, FIELD(resolver, authority)),
	       title, ctl_int(r, FIELD(resolver, pid)), ctl_str(r, FIELD(resolver, state)));
	print_rules(r);
	if (json_is_number(json_object_get(r, FIELD(resolver, heartbeat_age_ms))))
		printf("heartbeat %s ago\n", ctl_duration(ctl_int(r, FIELD(resolver, heartbeat_age_ms)), b));
	else
		puts("no heartbeat");
	print_stale(json_object_get(r, FIELD(resolver, stale)));
	print_services(json_object_get(r, FIELD(resolver, services)));
	print_missing(json_object_get(r, FIELD(resolver, missing)));
	if (ctl_int(r, FIELD(resolver, acl_entries)))
		printf("     %-10s %s access-control prefixes\n", "clients",
		       ctl_count(ctl_int(r, FIELD(resolver, acl_entries)), a));
	else
		printf("     %-10s none: every client is left to the resolver\n", "clients");
	print_lanes(json_object_get(r, FIELD(resolver, lanes)));
	if (ctl_int(r, FIELD(resolver, rings_full)))
		printf("     %-10s %s packets found a packet ring full, and took sockets\n", "",
		       ctl_count(ctl_int(r, FIELD(resolver, rings_full)), a));
	if (ctl_str(r, FIELD(resolver, no_rings))[0])
		printf("     %-10s %s\n", "NO RINGS", ctl_str(r, FIELD(resolver, no_rings)));
	if (ctl_str(r, FIELD(resolver, no_upstream_rings))[0])
		printf("     %-10s to upstream: %s\n", "NO RINGS", ctl_str(r, FIELD(resolver, no_upstream_rings)));
	print_log(json_object_get(r, FIELD(resolver, log)));
	print_limits(json_object_get(r, FIELD(resolver, limits)));
	print_rates(json_object_get(r, FIELD(resolver, rates)));
	ctl_print_parking(json_object_get(r, FIELD(resolver, parking)));
	ctl_print_forwarding(json_object_get(r, FIELD(resolver, forwarding)));
	print_notes(json_object_get(r, FIELD(resolver, notes)));
}

static const char *pause_text(bool paused, bool kept)
{
	if (paused)
		return kept ? "PAUSED: every query goes to the resolver ('hydnsctl resume' ends this)" :
		       "PAUSED, but not beyond the next stop of hydnsd ('hydnsctl pause' again makes it last)";
	return kept ? "on, but PAUSED from the next start of hydnsd ('hydnsctl resume' ends this)" : "on";
}

static void print_other_versions(const json_t *s)
{
	static const char *const mend[] = {
		[CTL_OUTDATED_RESOLVER] = "restart the resolver", [CTL_OUTDATED_HYDNSD] = "restart hydnsd",
		[CTL_OUTDATED_BOTH] = "restart both",
	};
	json_int_t abi = ctl_int(s, FIELD(status, abi));
	char who[CTL_TEXT];
	const json_t *o;
	size_t n;

	json_array_foreach(json_object_get(s, FIELD(status, other_versions)), n, o)
		printf("REFUSED      the plugin in process %" JSON_INTEGER_FORMAT " (%s) speaks ABI %" JSON_INTEGER_FORMAT ", hydnsd %"
		       JSON_INTEGER_FORMAT ": %s\n", ctl_int(o, FIELD(other_version, pid)), ctl_process(o, who),
		       ctl_int(o, FIELD(other_version, abi)), abi, mend[ctl_outdated(abi, ctl_int(o, FIELD(other_version, abi)))]);
}

static void print_status(const json_t *s)
{
	char a[CTL_TEXT], b[CTL_TEXT], share[CTL_TEXT], mem[CTL_TEXT];
	json_int_t rules = ctl_int(s, FIELD(status, rules)), capacity = ctl_int(s, FIELD(status, capacity));
	json_int_t fitting = ctl_int(s, FIELD(status, fitting));
	const json_t *r, *resolvers = json_object_get(s, FIELD(status, resolvers));
	size_t n;

	printf("hydnsd       %s, ABI %" JSON_INTEGER_FORMAT ", pid %" JSON_INTEGER_FORMAT ", up %s\n",
	       ctl_str(s, FIELD(status, version)), ctl_int(s, FIELD(status, abi)), ctl_int(s, FIELD(status, pid)),
	       ctl_duration(ctl_int(s, FIELD(status, uptime_s)) * 1000, a));
	printf("kernel path  %s\n", pause_text(json_is_true(json_object_get(s, FIELD(status, paused))),
					 json_is_true(json_object_get(s, FIELD(status, paused_kept)))));
	printf("rules        %s of %s (%s)", ctl_count(rules, a), ctl_count(capacity, b),
	       ctl_share((double)rules, (double)capacity, share));
	printf(", %s waiting for a grace period\n", ctl_count(ctl_int(s, FIELD(status, limbo)), a));
	if (fitting && fitting < capacity)
		printf("             full: answers are so large that %s rules fit; for more, raise capacity\n",
		       ctl_count(fitting, a));
	printf("memory       %s of maps", ctl_bytes(ctl_real(s, FIELD(status, memory_bytes)), mem));
	printf(", %s in hydnsd\n", ctl_bytes(ctl_real(s, FIELD(status, daemon_bytes)), mem));
	printf("plugins      %s of at most %s connections\n", ctl_count(ctl_int(s, FIELD(status, plugin_connections)), a),
	       ctl_count(ctl_int(s, FIELD(status, plugin_connections_most)), b));
	print_other_versions(s);
	print_interfaces(json_object_get(s, FIELD(status, interfaces)));
	print_sources(json_object_get(s, FIELD(status, sources)));
	ctl_print_composition(json_object_get(s, FIELD(status, composition)));
	puts("resolvers");
	if (!json_array_size(resolvers))
		puts("  none has registered");
	json_array_foreach(resolvers, n, r)
		print_resolver(r);
}

/* -- without the daemon --------------------------------------------------------------------------------- */

static void add_link(const char *ifname, unsigned ifindex, void *arg)
{
	char now[IF_NAMESIZE] = "";
	const char *note = "";

	/* The index is that of the interface's own namespace, which need not be this one. */
	if (!ifindex)
		note = "the interface has gone";
	else if (!if_indextoname(ifindex, now) || strcmp(now, ifname))
		note = "renamed, or in another network namespace";
	json_array_append_new(arg, json_pack("{s:s, s:b, s:s}", FIELD(interface, name), ifname,
		FIELD(interface, attached), ifindex != 0, FIELD(interface, note), note));
}

static json_t *page_objects(const struct ctl *c)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < HYDNS_RESOLVERS; i++) {
		__u32 epoch;
		__u64 age;

		if (ctl_pins_page(c, i, &epoch, &age))
			continue;
		json_array_append_new(list, json_pack("{s:i, s:I, s:o, s:s}", FIELD(resolver, authority), (int)i,
			FIELD(resolver, epoch), (json_int_t)epoch,
			FIELD(resolver, heartbeat_age_ms), age == UINT64_MAX ? json_null() : json_integer(age / 1000000),
			FIELD(resolver, state), age <= HYDNS_HEARTBEAT_STALE_NS ? "alive" : "gone"));
	}
	return list;
}

static int status_from_pins(const struct ctl *c, const char *no_daemon)
{
	struct hydns_geometry g;
	json_t *links, *pages, *o;
	char why[CTL_WHY], a[CTL_TEXT];
	bool paused;
	json_int_t slots;
	size_t n;
	const json_t *p;

	if (!ctl_pins_exist(c)) {
		ctl_error("%s", no_daemon);
		ctl_error("nothing is pinned in %s either: no query is answered in the kernel%s", c->pin_dir,
			  hydns_pause_is_recorded(c->state_dir) ? "; and PAUSED when hydnsd is started, until 'hydnsctl "
			  "resume'" : "");
		return CTL_ERROR;
	}
	if (ctl_pins_paused(c, &paused, why) || ctl_pins_geometry(c, &g, why)) {
		ctl_error("%s", no_daemon);
		ctl_error("%s", why);
		return CTL_ERROR;
	}
	links = json_array();
	ctl_pins_links(c, add_link, links);
	pages = page_objects(c);
	slots = (json_int_t)g.lines * HYDNS_LINE_WORDS;
	o = json_pack("{s:b, s:I, s:b, s:b, s:I, s:o, s:o}", FIELD(status, daemon), 0,
		      FIELD(status, abi), (json_int_t)g.abi_version, FIELD(status, paused), paused,
		      FIELD(status, paused_kept), hydns_pause_is_recorded(c->state_dir), FIELD(status, slots), slots,
		      FIELD(status, interfaces), links, FIELD(status, resolvers), pages);
	if (c->json) {
		ctl_json(o);
		return CTL_OK;
	}
	printf("hydnsd       NOT RUNNING\n             %s\n", no_daemon);
	printf("kernel path  %s (read from %s, ABI %u)\n", paused ? "PAUSED" :
	       "on: rules already published are answered until they expire", c->pin_dir, g.abi_version);
	printf("slots        %s\n", ctl_count(slots, a));
	print_interfaces(links);
	puts(json_array_size(pages) ? "resolvers" : "resolvers\n  none");
	json_array_foreach(pages, n, p) {
		printf("  %" JSON_INTEGER_FORMAT "  %s, epoch %" JSON_INTEGER_FORMAT "\n",
		       ctl_int(p, FIELD(resolver, authority)), ctl_str(p, FIELD(resolver, state)),
		       ctl_int(p, FIELD(resolver, epoch)));
	}
	json_decref(o);
	return CTL_OK;
}

static int measure(const struct ctl *c, json_t *reply)
{
	json_t *composition = json_object_get(reply, FIELD(status, composition));
	char why[CTL_WHY];
	int rc = c->measure ? ctl_measure(json_object_get(composition, FIELD(composition, programs)), c->measure, why) : 0;

	if (!rc && c->costs)
		rc = ctl_costs(reply, why);
	if (rc)
		ctl_error("%s", why);
	return rc;
}

int ctl_cmd_status(const struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ctl_show(c, "status", measure, print_status, status_from_pins);
}

/* -- pause, resume ------------------------------------------------------------------------------------------ */

/* Without hydnsd: sets the pinned map, if there is one, and the record for the next hydnsd. */
static enum ctl_reach set_paused_alone(const struct ctl *c, bool pause, const char **where, char why[CTL_WHY])
{
	bool pinned = ctl_pins_exist(c);
	int rc;

	if (pinned && ctl_pins_pause(c, pause, why))
		return CTL_REFUSED;
	rc = hydns_pause_record(c->state_dir, pause);
	if (rc) {
		snprintf(why, CTL_WHY, "cannot record in %s that hydnsd is to be %s: %s: mend that, or name another with "
			 "--state-dir and state-dir: in hydnsd.conf%s", c->state_dir, pause ? "paused" : "resumed",
			 strerror(-rc), pinned ? "; until hydnsd is started it is done in the pinned map" : "");
		return CTL_REFUSED;
	}
	*where = pinned ? " (hydnsd is not running; done in the pinned map)" :
		 " (hydnsd is not running; this holds when it is started)";
	return CTL_ANSWERED;
}

/* Refuses what hydnsd has done now, but cannot do at its next start. */
static enum ctl_reach check_kept(const json_t *reply, bool pause, char why[CTL_WHY])
{
	const char *error = ctl_str(reply, FIELD(pause, not_kept)), *state_dir = ctl_str(reply, FIELD(pause, state_dir));

	if (!error[0])
		return CTL_ANSWERED;
	snprintf(why, CTL_WHY, "%s, but only until hydnsd is stopped, for it cannot record it in %s: %s: mend that, and "
		 "repeat the command", pause ? "paused" : "resumed", state_dir, error);
	return CTL_REFUSED;
}

static int set_paused(const struct ctl *c, bool pause)
{
	json_t *reply = NULL;
	char why[CTL_WHY];
	enum ctl_reach reach = ctl_call(c, json_pack("{s:s}", "cmd", pause ? "pause" : "resume"), &reply, why);
	const char *where = "";

	if (reach == CTL_NO_DAEMON)
		reach = set_paused_alone(c, pause, &where, why);
	else if (reach == CTL_ANSWERED)
		reach = check_kept(reply, pause, why);
	if (reach != CTL_ANSWERED) {
		ctl_error("%s", why);
		json_decref(reply);
		return CTL_ERROR;
	}
	hydns_pause_sync(reply ? ctl_str(reply, FIELD(pause, state_dir)) : c->state_dir);
	json_decref(reply);
	printf("%s%s\n", pause ? "paused: every query goes to the resolver until 'hydnsctl resume'" :
	       "resumed: rules are answered in the kernel again", where);
	return CTL_OK;
}

int ctl_cmd_pause(const struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return set_paused(c, true);
}

int ctl_cmd_resume(const struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return set_paused(c, false);
}
