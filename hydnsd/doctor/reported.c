/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: what hydnsd's replies tell by themselves, without a look at the host. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "hydnsd/doctor/doctor.h"

#define TEXT 512
#define RECONFIG "hydns-rndc reconfig (rndc for the distribution's own named)"

/* -- hydnsd and interfaces ------------------------------------------------------------------------------------ */
void doctor_check_kill_switch(struct doctor *d)
{
	if (json_is_true(json_object_get(d->status, FIELD(status, paused))))
		doctor_add(d, "kill-switch", NULL, DOCTOR_WARN, "hydnsctl resume",
			   "paused: nothing is answered in the kernel");
	else
		doctor_add(d, "kill-switch", NULL, DOCTOR_OK, NULL, "not paused");
}

void doctor_check_attached(struct doctor *d, const json_t *interface)
{
	const char *name = ctl_str(interface, FIELD(interface, name)), *note = ctl_str(interface, FIELD(interface, note));

	if (json_is_true(json_object_get(interface, FIELD(interface, attached))))
		doctor_add(d, "attached", name, DOCTOR_OK, NULL, "%s%s%s", ctl_str(interface, FIELD(interface, mode)), note[0] ? ": " : "",
			   note);
	else
		doctor_add(d, "attached", name, DOCTOR_FAIL, "do what the finding says; hydnsd then attaches by itself",
			   "hydnsd is not attached: %s", note);
}

void doctor_check_no_interface(struct doctor *d)
{
	char mend[TEXT];

	snprintf(mend, sizeof(mend), "echo 'interface: eth0' >>%s && systemctl reload hydnsd (the interface on which queries arrive)",
		 doctor_config_file(d));
	doctor_add(d, "link", NULL, DOCTOR_FAIL, mend, d->status ? "hydnsd's configuration names no interface: nothing is answered "
		   "in the kernel" : "there is no Ethernet interface that is up; name one as argument of doctor");
}

/* -- resolvers that have registered ----------------------------------------------------------------------------- */
static bool is_bind(const char *identity)
{
	return !strncmp(identity, "named", 5);
}

bool doctor_registers(const json_t *resolver)
{
	return !strcmp(ctl_str(resolver, FIELD(resolver, state)), "configuring");
}

static void check_heartbeat(struct doctor *d, const json_t *r, const char *who)
{
	const json_t *age = json_object_get(r, FIELD(resolver, heartbeat_age_ms));
	json_int_t ms = json_integer_value(age);

	if (!strcmp(ctl_str(r, FIELD(resolver, state)), "stale"))
		doctor_add(d, "resolver", who, DOCTOR_FAIL, is_bind(who) ? "systemctl restart hydns-named; why it crashed: journalctl -u "
			   "hydns-named" : "systemctl restart hydns-unbound; why it crashed: journalctl -u hydns-unbound",
			   "it has crashed, and only its rules in the kernel go on (hydns-stale-after-crash): all other names fail");
	else if (!json_is_number(age) || ms > (json_int_t)(HYDNS_HEARTBEAT_STALE_NS / 1000000))
		doctor_add(d, "resolver", who, DOCTOR_FAIL, is_bind(who) ? "systemctl restart hydns-named; if it hangs again: "
			   "journalctl -u hydns-named" : "systemctl restart hydns-unbound; if it hangs again: journalctl -u "
			   "hydns-unbound", "no fresh heartbeat: none of its rules is answered");
	else if (strcmp(ctl_str(r, FIELD(resolver, state)), "ready"))
		doctor_add(d, "resolver", who, DOCTOR_WARN, "wait a few seconds; if it stays so: journalctl -u hydnsd",
			   "%s: alive, but not registered with this hydnsd", ctl_str(r, FIELD(resolver, state)));
	else
		doctor_add(d, "resolver", who, DOCTOR_OK, NULL, "%s, pid %" JSON_INTEGER_FORMAT ", heartbeat %"
			   JSON_INTEGER_FORMAT " ms ago, %" JSON_INTEGER_FORMAT " rules", ctl_str(r, FIELD(resolver, state)),
			   ctl_int(r, FIELD(resolver, pid)), ms, ctl_int(r, FIELD(resolver, rules)));
}

static bool holds(const json_t *list, const char *text)
{
	const json_t *t;
	size_t i;

	json_array_foreach(list, i, t)
		if (!strcmp(ctl_text(t), text))
			return true;
	return false;
}

/* An obstacle keeps all answers out of the kernel. */
static void check_note(struct doctor *d, const char *who, const char *note, bool obstacle)
{
	const char *reload = is_bind(who) ? "change that in named.conf, then: " RECONFIG :
		"change that in unbound.conf, then: hydns-unbound-control reload";
	char mend[TEXT];

	snprintf(mend, sizeof(mend), "%s%s", reload, obstacle ? "" : "; or leave it if it is meant so");
	doctor_add(d, "note", who, obstacle ? DOCTOR_FAIL : DOCTOR_WARN, mend, "%s%s",
		   obstacle ? "no answer is offered to the kernel: " : "", note);
}

static void check_services(struct doctor *d, const json_t *r, const char *who)
{
	if (!json_array_size(json_object_get(r, FIELD(resolver, services))))
		doctor_add(d, "services", who, DOCTOR_FAIL, is_bind(who) ?
			   "name the addresses that clients ask in listen-on and listen-on-v6 of named.conf, then: " RECONFIG :
			   "name the addresses that clients ask in interface: lines of unbound.conf, then restart Unbound",
			   "it has registered no address and port: no query can be its own");
	/* a hydnsd of a former version does not have the field */
	if (json_object_get(r, FIELD(resolver, clients_allowed)) && !ctl_int(r, FIELD(resolver, clients_allowed)))
		doctor_add(d, "access", who, DOCTOR_FAIL, is_bind(who) ?
			   "let the clients in by 'allow-recursion { PREFIX; };' in options of named.conf (on an authoritative server: "
			   "'recursion no;'), then: " RECONFIG :
			   "add 'access-control: PREFIX allow' for the clients to server: of unbound.conf, then: "
			   "hydns-unbound-control reload", "%s lets in no client but this host itself: the kernel answers nobody",
			   is_bind(who) ? "allow-query or allow-recursion of named.conf" : "access-control of unbound.conf");
}

void doctor_check_registered(struct doctor *d, const json_t *r)
{
	const json_t *obstacles = json_object_get(r, FIELD(resolver, obstacles)), *note;
	const char *who = ctl_str(r, FIELD(resolver, identity));
	size_t i;

	check_heartbeat(d, r, who);
	/* with an obstacle a resolver need not send its addresses and clients */
	if (!json_array_size(obstacles) && !doctor_registers(r))
		check_services(d, r, who);
	json_array_foreach(json_object_get(r, FIELD(resolver, notes)), i, note)
		if (!doctor_is_of_forwarding(ctl_text(note)))
			check_note(d, who, ctl_text(note), holds(obstacles, ctl_text(note)));
}

/* -- resolvers whose plugin is of another version --------------------------------------------------------------- */
void doctor_check_other_version(struct doctor *d, const json_t *o, const char *restart)
{
	json_int_t hydnsd = ctl_int(d->status, FIELD(status, abi)), plugin = ctl_int(o, FIELD(other_version, abi));
	const enum ctl_outdated outdated = ctl_outdated(hydnsd, plugin);
	char mend[TEXT], name[CTL_TEXT];
	const char *who = ctl_process(o, name);

	snprintf(mend, sizeof(mend), "%s%s%s", outdated == CTL_OUTDATED_RESOLVER ? "" : "systemctl restart hydnsd",
		 outdated == CTL_OUTDATED_BOTH ? "; " : "", outdated == CTL_OUTDATED_HYDNSD ? "" : restart);
	doctor_add(d, "version", who, DOCTOR_FAIL, mend, "its plugin (pid %" JSON_INTEGER_FORMAT ") speaks ABI %" JSON_INTEGER_FORMAT
		   ", hydnsd %" JSON_INTEGER_FORMAT ": the resolver answers every query itself", ctl_int(o, FIELD(other_version, pid)), plugin,
		   hydnsd);
}

/* -- packet rings ----------------------------------------------------------------------------------------------- */
void doctor_check_drops(struct doctor *d, const json_t *resolver)
{
	static const char mend[] = "more threads, or hydns-queue-frames (1024 by default, at most 4096)";
	json_int_t full = ctl_int(resolver, FIELD(resolver, rings_full));
	const char *who = ctl_str(resolver, FIELD(resolver, identity));
	char count[CTL_TEXT];
	uint64_t dropped = 0;
	const json_t *l;
	size_t n;

	json_array_foreach(json_object_get(resolver, FIELD(resolver, lanes)), n, l)
		dropped += (uint64_t)ctl_int(l, FIELD(lane, dropped));
	if (dropped)
		doctor_add(d, "drops", who, DOCTOR_WARN, mend, "its packet rings had no room for %s frames, which are lost: its threads "
			   "have not read the others in time", ctl_count((json_int_t)dropped, count));
	if (full)
		doctor_add(d, "full-rings", who, DOCTOR_WARN, mend, "%s packets found a packet ring full, and took sockets, which cost more: "
			   "its threads have not read the others in time", ctl_count(full, count));
}

/* -- all of it ---------------------------------------------------------------------------------------------------- */
static void check_all(struct doctor *d)
{
	const json_t *interfaces = json_object_get(d->status, FIELD(status, interfaces)), *i;
	const json_t *resolvers = json_object_get(d->status, FIELD(status, resolvers)), *r;
	const json_t *others = json_object_get(d->status, FIELD(status, other_versions));
	char who[CTL_TEXT];
	size_t n;

	doctor_check_kill_switch(d);
	json_array_foreach(interfaces, n, i)
		doctor_check_attached(d, i);
	if (!json_array_size(interfaces))
		doctor_check_no_interface(d);
	json_array_foreach(resolvers, n, r) {
		doctor_check_registered(d, r);
		doctor_check_drops(d, r);
	}
	json_array_foreach(others, n, r)
		doctor_check_other_version(d, r, is_bind(ctl_process(r, who)) ? "systemctl restart hydns-named" : "systemctl restart hydns-unbound");
	if (!json_array_size(resolvers) && !json_array_size(others))
		doctor_add(d, "resolver", NULL, DOCTOR_FAIL, "hydnsctl doctor says why", "no resolver has registered");
	doctor_check_forwarding(d);
	doctor_check_sources(d);
}

json_t *doctor_reported(const json_t *status, const json_t *stats, const char *why)
{
	struct doctor d = {.status = (json_t *)status, .stats = (json_t *)stats, .checks = json_array()};

	if (status)
		check_all(&d);
	else
		doctor_add(&d, "daemon", NULL, DOCTOR_FAIL, DOCTOR_RESTART, "%s", why);
	return d.checks;
}
