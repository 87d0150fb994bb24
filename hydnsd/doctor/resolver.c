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

static void check_rights_of(struct doctor *d, const struct doctor_process *p, const struct identity *who,
			    const struct stat *st)
{
	const struct group *g = getgrgid(st->st_gid);
	char mend[2 * TEXT], restart[TEXT], user[16], group[16];
	const char *name = user_name(who->uid, user);

	doctor_restart_command(p, restart, sizeof(restart));
	if (!(st->st_mode & S_IWGRP)) {
		snprintf(mend, sizeof(mend), "usermod -aG hydns %s; echo 'plugin-group: hydns' >>%s; systemctl restart hydnsd; %s",
			 name, doctor_config_file(d), restart);
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
			 "for the list replaces the default); systemctl restart hydnsd", dir, path, doctor_config_file(d), listens);
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

/* Or was refused, which is a finding of its own. */
static bool has_registered(const struct doctor *d, pid_t pid)
{
	const json_t *r;
	size_t i;

	json_array_foreach(json_object_get(d->status, FIELD(status, other_versions)), i, r)
		if (ctl_int(r, FIELD(other_version, pid)) == pid)
			return true;
	json_array_foreach(json_object_get(d->status, FIELD(status, resolvers)), i, r)
		if (ctl_int(r, FIELD(resolver, pid)) == pid)
			return true;
	return false;
}

/* named registers with its first response, which may come late. */
static bool will_register(const struct doctor *d, const struct doctor_process *p)
{
	return p->server == DOCTOR_UNBOUND && p->conf.named && !p->conf.off && !has_registered(d, p->pid);
}

bool doctor_resolvers_come(const struct doctor *d)
{
	const json_t *r;
	size_t i;

	if (!d->status || ctl_int(d->status, FIELD(status, uptime_s)) >= DOCTOR_COME_S)
		return false;
	json_array_foreach(json_object_get(d->status, FIELD(status, resolvers)), i, r)
		if (doctor_registers(r))
			return true;
	for (unsigned p = 0; p < d->processes; p++)
		if (will_register(d, &d->process[p]))
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
	const json_t *others = json_object_get(d->status, FIELD(status, other_versions));
	bool any = json_array_size(resolvers) || json_array_size(others);
	char restart[TEXT];
	size_t i;

	json_array_foreach(resolvers, i, r)
		doctor_check_registered(d, r);
	json_array_foreach(others, i, r) {
		doctor_restart_of(d, ctl_int(r, FIELD(other_version, pid)), restart, sizeof(restart));
		doctor_check_other_version(d, r, restart);
	}
	for (unsigned p = 0; p < d->processes; p++)
		if (!has_registered(d, d->process[p].pid) && (!any || d->process[p].conf.named || d->process[p].conf.clause))
			check_unregistered(d, &d->process[p]);
	if (d->status && !any && !d->processes)
		check_none(d);
}
