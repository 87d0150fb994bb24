/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: resolvers that have registered with hydnsd, and why one that runs has not. */
#include "config.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hydnsd/doctor/doctor.h"

#define TEXT 512
#define RECONFIG "hydns-rndc reconfig (rndc for the distribution's own named)"

static bool is_bind(const char *identity)
{
	return !strncmp(identity, "named", 5);
}

/* -- registered ----------------------------------------------------------------------------------------------- */
static void check_heartbeat(struct doctor *d, const json_t *r, const char *who)
{
	const json_t *age = json_object_get(r, FIELD(resolver, heartbeat_age_ms));
	json_int_t ms = json_integer_value(age);

	if (!json_is_number(age) || ms > (json_int_t)(HYDNS_HEARTBEAT_STALE_NS / 1000000))
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
		if (!strcmp(json_string_value(t), text))
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

static void check_registered(struct doctor *d, const json_t *r)
{
	const json_t *obstacles = json_object_get(r, FIELD(resolver, obstacles)), *note;
	const char *who = ctl_str(r, FIELD(resolver, identity));
	size_t i;

	check_heartbeat(d, r, who);
	/* with an obstacle a resolver need not send its addresses and clients */
	if (!json_array_size(obstacles))
		check_services(d, r, who);
	json_array_foreach(json_object_get(r, FIELD(resolver, notes)), i, note)
		if (!doctor_is_of_forwarding(json_string_value(note)))
			check_note(d, who, json_string_value(note), holds(obstacles, json_string_value(note)));
}

/* -- running, but not registered -------------------------------------------------------------------------------- */
/* Whether it can use hyDNS: of Unbound, an option's name is in its executable. */
static bool is_patched(const struct doctor_process *p)
{
	FILE *f;
	char block[65536 + 16];
	size_t carried = 0, n;
	bool found = false;

	if (p->server == DOCTOR_BIND)
		return true;           /* hydns-stock.so serves an unpatched named, too */
	f = fopen(p->program, "re");
	if (!f)
		return true;
	while (!found && (n = fread(block + carried, 1, sizeof(block) - carried, f)) > 0) {
		n += carried;
		found = memmem(block, n, "hydns-socket", 12);
		carried = n < 12 ? n : 12;
		memmove(block, block + n - carried, carried);
	}
	fclose(f);
	return found;
}

static void check_unnamed(struct doctor *d, const struct doctor_process *p)
{
	char mend[2 * TEXT], restart[TEXT];

	doctor_restart_command(p, restart, sizeof(restart));
	if (!is_patched(p))
		doctor_add(d, "resolver", doctor_title(p), DOCTOR_FAIL, "systemctl disable --now unbound; systemctl enable --now "
			   "hydns-unbound", "%s (pid %d) is an Unbound without hyDNS, from another installation", p->program,
			   (int)p->pid);
	else if (p->server == DOCTOR_BIND) {
		snprintf(mend, sizeof(mend), "echo 'plugin query \"hydns.so\" { };' >>%s && %s (with views: into the view that most "
			 "clients use)", p->path, restart);
		doctor_add(d, "resolver", "named", DOCTOR_FAIL, mend, "named (pid %d) runs without the plugin: %s has no statement "
			   "'plugin query \"hydns.so\" { };'", (int)p->pid, p->path);
	} else {
		snprintf(mend, sizeof(mend), "write 'module-config: \"hydns validator iterator\"' into server: of %s, then: %s",
			 p->path, restart);
		doctor_add(d, "resolver", "unbound", DOCTOR_FAIL, mend, "unbound (pid %d) runs without the hydns module: "
			   "module-config of %s %s%s", (int)p->pid, p->path, p->conf.modules[0] ? "is " : "is not set",
			   p->conf.modules);
	}
}

struct identity {
	unsigned uid, gid;
	char groups[1024];         /* " 4 24 998 " */
};

static bool read_identity(pid_t pid, struct identity *out)
{
	char path[64], line[1024];
	unsigned found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		found += sscanf(line, "Uid: %*u %u", &out->uid) == 1;
		found += sscanf(line, "Gid: %*u %u", &out->gid) == 1;
		if (!strncmp(line, "Groups:", 7)) {
			snprintf(out->groups, sizeof(out->groups), " %s ", line + 8);
			for (char *c = out->groups; *c; c++)
				*c = *c == '\n' || *c == '\t' ? ' ' : *c;
			found++;
		}
	}
	if (f)
		fclose(f);
	return found == 3;
}

static bool may_connect(const struct identity *who, const struct stat *st)
{
	char group[16];

	snprintf(group, sizeof(group), " %u ", st->st_gid);
	return !who->uid || (who->uid == st->st_uid && (st->st_mode & S_IWUSR)) ||
		((st->st_mode & S_IWGRP) && (who->gid == st->st_gid || strstr(who->groups, group)));
}

static const char *user_name(unsigned uid, char buf[16])
{
	const struct passwd *p = getpwuid(uid);

	snprintf(buf, 16, "%u", uid);
	return p ? p->pw_name : buf;
}

static const char *config_file(const struct doctor *d)
{
	const char *path = ctl_str(d->status, FIELD(status, config));

	return path[0] ? path : "/etc/hydns/hydnsd.conf";
}

static void check_rights_of(struct doctor *d, const struct doctor_process *p, const struct identity *who,
			    const struct stat *st)
{
	const struct group *g = getgrgid(st->st_gid);
	char mend[2 * TEXT], restart[TEXT], user[16], group[16];
	const char *name = user_name(who->uid, user);

	doctor_restart_command(p, restart, sizeof(restart));
	if (!(st->st_mode & S_IWGRP)) {
		snprintf(mend, sizeof(mend), "usermod -aG hydns %s; echo 'plugin-group: hydns' >>%s; systemctl restart hydnsd; %s",
			 name, config_file(d), restart);
		doctor_add(d, "resolver", doctor_title(p), DOCTOR_FAIL, mend, "%s (pid %d) runs as %s, but only root may connect to "
			   "%s: plugin-group is missing from hydnsd.conf", doctor_title(p), (int)p->pid, name, p->conf.socket);
		return;
	}
	snprintf(group, sizeof(group), "%u", st->st_gid);
	snprintf(mend, sizeof(mend), "usermod -aG %s %s; %s", g ? g->gr_name : group, name, restart);
	doctor_add(d, "resolver", doctor_title(p), DOCTOR_FAIL, mend, "%s (pid %d) runs as %s, which is not in group %s "
		   "(plugin-group of hydnsd.conf): it may not connect to %s", doctor_title(p), (int)p->pid, name,
		   g ? g->gr_name : group, p->conf.socket);
}

/* First of hydnsd's plugin sockets; *known: whether path, as seen from hydnsd, is one of them. */
static const char *plugin_socket(const struct doctor *d, const char *path, bool *known)
{
	const json_t *list = json_object_get(d->status, FIELD(status, plugin_sockets)), *s;
	const char *first = json_string_value(json_array_get(list, 0));
	size_t i;

	*known = !first;               /* a hydnsd of a former version does not have the field */
	json_array_foreach(list, i, s)
		*known |= !strcmp(json_string_value(s), path);
	return first ? first : "";
}

static void check_absent_socket(struct doctor *d, const struct doctor_process *p, const char *path)
{
	char mend[4 * TEXT], restart[TEXT], dir[TEXT];
	bool known;
	const char *listens = plugin_socket(d, path, &known);

	doctor_restart_command(p, restart, sizeof(restart));
	if (p->root[0]) {
		snprintf(dir, sizeof(dir), "%s", path);
		*strrchr(dir, '/') = 0;
		snprintf(mend, sizeof(mend), "mkdir -p %s; echo 'plugin-socket: %s' >>%s (and 'plugin-socket: %s' for resolvers outside, "
			 "for the list replaces the default); systemctl restart hydnsd", dir, path, config_file(d), listens);
		doctor_add(d, "resolver", doctor_title(p), DOCTOR_FAIL, mend, "%s (pid %d) runs in the chroot %s: its hydns-socket %s is %s, "
			   "and hydnsd does not listen there", doctor_title(p), (int)p->pid, p->root, p->conf.socket, path);
	} else {
		snprintf(mend, sizeof(mend), "write hydns-socket%s \"%s\"%s into %s, then: %s", p->server == DOCTOR_BIND ? "" : ":",
			 listens, p->server == DOCTOR_BIND ? ";" : "", p->path, restart);
		doctor_add(d, "resolver", doctor_title(p), DOCTOR_FAIL, mend, "hydns-socket in %s is %s, but hydnsd listens at %s", p->path,
			   p->conf.socket, listens);
	}
}

/* A path as the process sees it, with its root and its mounts. */
static void within(const struct doctor_process *p, const char *path, char out[TEXT])
{
	snprintf(out, TEXT, "/proc/%d/root%s", (int)p->pid, path);
}

/* named does not show its sockets to a plugin, so the plugin finds them in /proc. */
static bool check_proc(struct doctor *d, const struct doctor_process *p)
{
	char path[TEXT], mend[3 * TEXT], restart[TEXT];
	struct stat st;

	within(p, "/proc/stat", path);
	if (p->server != DOCTOR_BIND || !stat(path, &st))
		return true;
	doctor_restart_command(p, restart, sizeof(restart));
	snprintf(mend, sizeof(mend), "mkdir -p %s/proc; mount -t proc proc %s/proc; %s", p->root, p->root, restart);
	doctor_add(d, "resolver", "named", DOCTOR_FAIL, mend, "named (pid %d) runs in the chroot %s, where there is no /proc: the "
		   "plugin cannot find named's sockets, and offers nothing", (int)p->pid, p->root);
	return false;
}

static void check_connection(struct doctor *d, const struct doctor_process *p)
{
	char seen[TEXT], path[TEXT], mend[TEXT];
	struct identity who;
	struct stat st;
	bool known;

	snprintf(seen, sizeof(seen), "%s%s", p->root, p->conf.socket);
	within(p, p->conf.socket, path);
	plugin_socket(d, seen, &known);
	if (!check_proc(d, p))
		return;
	if (stat(path, &st) || !known)
		check_absent_socket(d, p, seen);
	else if (read_identity(p->pid, &who) && !may_connect(&who, &st))
		check_rights_of(d, p, &who, &st);
	else if (p->server == DOCTOR_BIND)
		doctor_add(d, "resolver", "named", DOCTOR_WARN, "ask it once: dig @ADDRESS . NS; if it stays so, its log says why "
			   "(journalctl -u hydns-named)", "named (pid %d) has the plugin, but has not registered: it does with its first "
			   "response", (int)p->pid);
	else {
		snprintf(mend, sizeof(mend), "journalctl -u %s, for lines with 'hydns:'", p->unit[0] ? p->unit : "hydns-unbound");
		doctor_add(d, "resolver", "unbound", DOCTOR_FAIL, mend, "unbound (pid %d) has the module, but has not registered",
			   (int)p->pid);
	}
}

static void check_unregistered(struct doctor *d, const struct doctor_process *p)
{
	char mend[2 * TEXT], restart[TEXT];

	if (!p->conf.readable) {
		doctor_add(d, "resolver", doctor_title(p), DOCTOR_SKIP, "run doctor as root", "%s (pid %d) has not registered, and its "
			   "configuration %s cannot be read", doctor_title(p), (int)p->pid, p->path);
	} else if (!p->conf.named) {
		check_unnamed(d, p);
	} else if (p->conf.off) {
		doctor_restart_command(p, restart, sizeof(restart));
		snprintf(mend, sizeof(mend), "set hydns-enable to yes in %s, then: %s", p->path, restart);
		doctor_add(d, "resolver", doctor_title(p), DOCTOR_FAIL, mend, "hydns-enable is no in %s: %s (pid %d) offers nothing",
			   p->path, doctor_title(p), (int)p->pid);
	} else if (d->status) {
		check_connection(d, p);
	}
}

static bool has_registered(const struct doctor *d, pid_t pid)
{
	const json_t *r;
	size_t i;

	json_array_foreach(json_object_get(d->status, FIELD(status, resolvers)), i, r)
		if (ctl_int(r, FIELD(resolver, pid)) == pid)
			return true;
	return false;
}

static void check_none(struct doctor *d)
{
	char mend[TEXT];

	doctor_words(d, mend, sizeof(mend), "systemctl enable --now hydns-unbound; if it does not stay up: journalctl -u "
		     "hydns-unbound", "systemctl enable --now hydns-named; if it does not stay up: journalctl -u hydns-named");
	doctor_add(d, "resolver", NULL, DOCTOR_FAIL, mend, "no resolver has registered, and neither unbound nor named runs %s",
		   "in hydnsd's network namespace");
}

/* Looks at a resolver that has nothing to do with hyDNS only while none has registered. */
void doctor_check_resolvers(struct doctor *d)
{
	const json_t *resolvers = json_object_get(d->status, FIELD(status, resolvers)), *r;
	bool any = json_array_size(resolvers);
	size_t i;

	json_array_foreach(resolvers, i, r)
		check_registered(d, r);
	for (unsigned p = 0; p < d->processes; p++)
		if (!has_registered(d, d->process[p].pid) && (!any || d->process[p].conf.named || d->process[p].conf.clause))
			check_unregistered(d, &d->process[p]);
	if (d->status && !any && !d->processes)
		check_none(d);
}
