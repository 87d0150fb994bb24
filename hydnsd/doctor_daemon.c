/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: hydnsd, what it has pinned, and the resolvers that have registered. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hydnsd/doctor.h"

static bool pin_dir_empty(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool empty = true;

	if (!d)
		return true;
	while (empty && (e = readdir(d)))
		empty = e->d_name[0] == '.';
	closedir(d);
	return empty;
}

static void check_without_daemon(struct doctor *d)
{
	if (d->reach == CTL_REFUSED) {
		doctor_add(d, "daemon", NULL, DOCTOR_FAIL, "mend what the finding names, then run doctor again",
			   "%s", d->why);
		return;
	}
	doctor_add(d, "daemon", NULL, DOCTOR_FAIL, "systemctl start hydnsd; if it does not stay up: "
		   "journalctl -u hydnsd", "%s", d->why);
	if (!pin_dir_empty(d->ctl->pin_dir))
		doctor_add(d, "stale-pins", NULL, DOCTOR_WARN, "start hydnsd, which takes them over; or, to take "
			   "all away, run 'hydnsd --clean'", "%s holds maps and attachments of a hydnsd that no "
			   "longer runs: its rules are answered until they expire, none is renewed",
			   d->ctl->pin_dir);
}

static void check_abi(struct doctor *d)
{
	struct hydns_geometry g;
	char why[CTL_WHY];
	json_int_t abi = ctl_int(d->status, "abi");
	int err;

	if (abi != HYDNS_ABI_VERSION)
		doctor_add(d, "abi", NULL, DOCTOR_FAIL, "install hydnsd, hydnsctl and the resolver's module of one "
			   "version, then restart hydnsd and the resolver", "hydnsd has ABI %" JSON_INTEGER_FORMAT
			   ", hydnsctl %d", abi, HYDNS_ABI_VERSION);
	else
		doctor_add(d, "abi", NULL, DOCTOR_OK, NULL, "hydnsd %s and hydnsctl both have ABI %d",
			   ctl_str(d->status, "version"), HYDNS_ABI_VERSION);
	err = ctl_pins_geometry(d->ctl, &g, why);
	if (err == -EACCES || err == -EPERM)
		doctor_add(d, "pins", NULL, DOCTOR_SKIP, NULL, "%s", why);
	else if (err)
		doctor_add(d, "pins", NULL, DOCTOR_FAIL, "give hydnsctl the pin directory of hydnsd's "
			   "configuration (--pin-dir); if it is the right one, restart hydnsd", "%s", why);
	else if (g.abi_version != HYDNS_ABI_VERSION)
		doctor_add(d, "pins", NULL, DOCTOR_FAIL, "restart hydnsd", "the pinned maps have ABI %u, this "
			   "version %d", g.abi_version, HYDNS_ABI_VERSION);
	else
		doctor_add(d, "pins", NULL, DOCTOR_OK, NULL, "maps are pinned in %s, with %u places for each CPU's "
			   "hit counters", d->ctl->pin_dir, g.lines * HYDNS_LINE_WORDS);
}

static void check_resolver(struct doctor *d, const json_t *r)
{
	const json_t *age = json_object_get(r, "heartbeat_age_ms"), *note;
	const char *who = ctl_str(r, "identity");
	json_int_t ms = json_integer_value(age);
	size_t i;

	if (!json_is_number(age) || ms > (json_int_t)(HYDNS_HEARTBEAT_STALE_NS / 1000000))
		doctor_add(d, "resolver", who, DOCTOR_FAIL, "look whether the resolver hangs or has ended (its log, "
			   "its process); start it again", "no fresh heartbeat: none of its rules is answered");
	else if (strcmp(ctl_str(r, "state"), "ready"))
		doctor_add(d, "resolver", who, DOCTOR_WARN, "wait a few seconds; if it stays so, the resolver's log and "
			   "journalctl -u hydnsd say why", "%s: alive, but not registered with this hydnsd",
			   ctl_str(r, "state"));
	else
		doctor_add(d, "resolver", who, DOCTOR_OK, NULL, "%s, pid %" JSON_INTEGER_FORMAT ", heartbeat %"
			   JSON_INTEGER_FORMAT " ms ago, %" JSON_INTEGER_FORMAT " rules", ctl_str(r, "state"),
			   ctl_int(r, "pid"), ms, ctl_int(r, "rules"));
	if (!json_array_size(json_object_get(r, "services")))
		doctor_add(d, "services", who, DOCTOR_FAIL, "let the resolver listen on UDP at the addresses its "
			   "clients use (interface: lines of unbound.conf)",
			   "it has registered no address and port: no query can be its own");
	if (!ctl_int(r, "acl_entries"))
		doctor_add(d, "access", who, DOCTOR_WARN, "add a plain 'access-control: PREFIX allow' for the "
			   "clients that the kernel shall answer", "no client prefix is a plain allow");
	json_array_foreach(json_object_get(r, "notes"), i, note)
		doctor_add(d, "note", who, DOCTOR_WARN, "change that setting, or leave it if it is meant so: the "
			   "resolver answers such queries itself", "%s", json_string_value(note));
}

static void check_with_daemon(struct doctor *d)
{
	const json_t *resolvers = json_object_get(d->status, "resolvers"), *r;
	size_t i;

	doctor_add(d, "daemon", NULL, DOCTOR_OK, NULL, "hydnsd %s runs as pid %" JSON_INTEGER_FORMAT,
		   ctl_str(d->status, "version"), ctl_int(d->status, "pid"));
	check_abi(d);
	if (json_is_true(json_object_get(d->status, "paused")))
		doctor_add(d, "kill-switch", NULL, DOCTOR_WARN, "hydnsctl resume",
			   "paused: nothing is answered in the kernel");
	else
		doctor_add(d, "kill-switch", NULL, DOCTOR_OK, NULL, "not paused");
	if (!json_array_size(resolvers))
		doctor_add(d, "resolver", NULL, DOCTOR_FAIL, "see that module-config names hydns, that hydns-socket is "
			   "hydnsd's plugin socket as seen inside any chroot, and that the resolver's user may open "
			   "it; the resolver's log says why it could not connect", "no resolver has registered");
	json_array_foreach(resolvers, i, r)
		check_resolver(d, r);
}

void doctor_check_daemon(struct doctor *d)
{
	if (d->status)
		check_with_daemon(d);
	else
		check_without_daemon(d);
}
