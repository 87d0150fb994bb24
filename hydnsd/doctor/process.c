/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: the resolvers that run here, and how they were started. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hydnsd/doctor/doctor.h"

#define ARGUMENTS_MAX 64

static void link_text(pid_t pid, const char *what, char *out, size_t room)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	n = readlink(path, out, room - 1);
	out[n > 0 ? n : 0] = 0;
}

static bool same_namespace(pid_t a, pid_t b)
{
	char x[64], y[64];

	link_text(a, "ns/net", x, sizeof(x));
	link_text(b, "ns/net", y, sizeof(y));
	return x[0] && !strcmp(x, y);
}

/* Calls fn for each process until it returns true. */
static pid_t each_process(bool (*fn)(pid_t pid, const char *program, void *arg), void *arg)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	char program[256];
	pid_t found = 0;

	while (dir && !found && (e = readdir(dir))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (pid <= 0)
			continue;
		link_text(pid, "exe", program, sizeof(program));
		program[strcspn(program, " ")] = 0;            /* the kernel adds " (deleted)" after an upgrade */
		if (program[0] && fn(pid, program, arg))
			found = pid;
	}
	if (dir)
		closedir(dir);
	return found;
}

struct wanted {
	const char *name;
	bool (*is)(pid_t pid, void *arg);
	void *arg;
};

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_wanted(pid_t pid, const char *program, void *arg)
{
	const struct wanted *w = arg;

	return !strcmp(file_name(program), w->name) && same_namespace(pid, getpid()) && w->is(pid, w->arg);
}

pid_t doctor_find_program(const char *name, bool (*is)(pid_t pid, void *arg), void *arg)
{
	return each_process(is_wanted, &(struct wanted){ name, is, arg });
}

/* The value of the last "-X value" or "-Xvalue" on the command line. */
static void argument(pid_t pid, char letter, char *out, size_t room)
{
	char path[64], text[4096];
	FILE *f;
	size_t n;

	out[0] = 0;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	for (const char *a = text + strlen(text) + 1; a < text + n; a += strlen(a) + 1) {
		if (a[0] != '-' || a[1] != letter)
			continue;
		if (!a[2])
			a += 3;
		else
			a += 2;
		if (a < text + n)
			snprintf(out, room, "%s", a);
	}
}

/* From "0::/system.slice/hydns-unbound.service". */
static void find_unit(struct doctor_process *p)
{
	char path[64], line[256], *end;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)p->pid);
	if (doctor_read_line(path, line, sizeof(line)))
		return;
	end = strstr(line, ".service");
	if (!end || end[8])
		return;
	*end = 0;
	snprintf(p->unit, sizeof(p->unit), "%.120s", file_name(line));
}

/* Unbound resolves its path outside of the chroot, named within. */
static void find_configuration(struct doctor_process *p)
{
	char given[256], within[256] = "", copy[256];

	argument(p->pid, 'c', given, sizeof(given));
	if (p->server == DOCTOR_BIND)
		argument(p->pid, 't', within, sizeof(within));
	snprintf(copy, sizeof(copy), "%s", p->program);
	if (!given[0] && p->server == DOCTOR_BIND)
		snprintf(given, sizeof(given), "/etc/bind/named.conf");
	else if (!given[0]) {
		snprintf(given, sizeof(given), "%.200s/etc/unbound/unbound.conf", dirname(dirname(copy)));
		if (access(given, F_OK))
			snprintf(given, sizeof(given), "/etc/unbound/unbound.conf");
	}
	if (given[0] == '/')
		snprintf(p->path, sizeof(p->path), "%.100s%.150s", within, given);
	else
		snprintf(p->path, sizeof(p->path), "/proc/%d/cwd/%.200s", (int)p->pid, given);
	doctor_conf_read(p->server, p->path, within, &p->conf);
}

struct search {
	struct doctor *d;
	pid_t self;
};

static bool add_resolver(pid_t pid, const char *program, void *arg)
{
	struct search *s = arg;
	struct doctor *d = s->d;
	const char *name = file_name(program);
	enum doctor_server server = !strcmp(name, "unbound") ? DOCTOR_UNBOUND : DOCTOR_BIND;
	struct doctor_process *p = &d->process[d->processes];

	if ((server == DOCTOR_BIND && strcmp(name, "named") != 0) || d->processes == DOCTOR_PROCESSES ||
	    !same_namespace(pid, s->self))
		return false;
	memset(p, 0, sizeof(*p));
	p->pid = pid;
	p->server = server;
	snprintf(p->program, sizeof(p->program), "%s", program);
	link_text(pid, "root", p->root, sizeof(p->root));
	if (!strcmp(p->root, "/"))
		p->root[0] = 0;
	find_unit(p);
	find_configuration(p);
	d->processes++;
	return false;
}

/* Sets d->servers: those that have registered or are configured for hyDNS, else those that run, else those with a file. */
static void find_servers(struct doctor *d)
{
	const json_t *r;
	char path[512];
	bool registered;
	size_t i;

	json_array_foreach(json_object_get(d->status, FIELD(status, resolvers)), i, r) {
		if (!strncmp(ctl_str(r, FIELD(resolver, identity)), "unbound", 7))
			d->servers |= DOCTOR_UNBOUND;
		else if (!strncmp(ctl_str(r, FIELD(resolver, identity)), "named", 5))
			d->servers |= DOCTOR_BIND;
	}
	registered = d->servers;
	for (unsigned p = 0; p < d->processes; p++)
		if (!registered && (d->process[p].conf.named || d->process[p].conf.clause))
			d->servers |= d->process[p].server;
	if (d->servers)
		return;
	for (unsigned p = 0; p < d->processes; p++)
		d->servers |= d->process[p].server;
	if (d->servers)
		return;
	snprintf(path, sizeof(path), "%s/unbound.conf", doctor_config_dir());
	d->servers |= access(path, F_OK) ? 0 : DOCTOR_UNBOUND;
	snprintf(path, sizeof(path), "%s/named.conf", doctor_config_dir());
	d->servers |= access(path, F_OK) ? 0 : DOCTOR_BIND;
}

void doctor_find_processes(struct doctor *d)
{
	struct search s = { d, d->status ? (pid_t)ctl_int(d->status, FIELD(status, pid)) : getpid() };

	each_process(add_resolver, &s);
	find_servers(d);
}

/* -- one of them ------------------------------------------------------------------------------------------------ */
const struct doctor_process *doctor_process_of(const struct doctor *d, pid_t pid)
{
	for (unsigned i = 0; i < d->processes; i++)
		if (d->process[i].pid == pid)
			return &d->process[i];
	return NULL;
}

const char *doctor_title(const struct doctor_process *p)
{
	return p->server == DOCTOR_BIND ? "named" : "unbound";
}

void doctor_restart_command(const struct doctor_process *p, char *out, size_t room)
{
	if (p->unit[0])
		snprintf(out, room, "systemctl restart %s", p->unit);
	else
		snprintf(out, room, "restart %s (pid %d)", doctor_title(p), (int)p->pid);
}

void doctor_restart_of(const struct doctor *d, json_int_t pid, char *out, size_t room)
{
	const struct doctor_process *p = doctor_process_of(d, (pid_t)pid);

	if (p)
		doctor_restart_command(p, out, room);
	else
		snprintf(out, room, "restart the resolver");
}

bool doctor_holds_socket(pid_t pid, unsigned long inode)
{
	char path[300], link[64], wanted[64];
	const struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = 0;
		found = !strcmp(link, wanted);
	}
	if (dir)
		closedir(dir);
	return found;
}
