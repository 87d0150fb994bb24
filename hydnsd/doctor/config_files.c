/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: configuration files, checked by the programs that read them. */
#include "config.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hydnsd/doctor/doctor.h"

#define NOT_FOUND 127          /* exit status of a program that could not be started: it, or a library, is missing */

/* -- hydnsd.conf ----------------------------------------------------------------------------------------------- */
static const char *hydnsd_program(void)
{
	return access(HYDNSD_PROGRAM, X_OK) ? "hydnsd" : HYDNSD_PROGRAM;
}

/* Lines are "hydnsd: error: TEXT". While hydnsd runs, only errors count: they would keep it from starting again. */
static unsigned add_lines(struct doctor *d, char *text, const char *path)
{
	char mend[1200], *rest = NULL;
	unsigned found = 0;

	snprintf(mend, sizeof(mend), "change %s as the finding says, then: hydnsd --config %s --check && systemctl %s hydnsd",
		 path, path, d->status ? "restart" : "start");
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *error = strstr(line, "error: "), *warning = strstr(line, "warning: ");

		if (!error && (d->status || !warning))
			continue;
		found++;
		doctor_add(d, "config", "hydnsd.conf", error ? DOCTOR_FAIL : DOCTOR_WARN, mend, "%s",
			   error ? error + 7 : warning + 9);
	}
	return found;
}

static void check_hydnsd(struct doctor *d)
{
	char path[512], *text = NULL;
	/* a pin directory other than the default: hydnsd gets it by its command line, too */
	bool elsewhere = strcmp(d->ctl->pin_dir, HYDNS_PIN_DIR);
	const char *const argv[] = {hydnsd_program(), "--config", path, "--check", elsewhere ? "--pin-dir" : NULL,
				    d->ctl->pin_dir, NULL};
	int err;

	if (ctl_str(d->status, FIELD(status, config))[0])
		snprintf(path, sizeof(path), "%s", ctl_str(d->status, FIELD(status, config)));
	else
		snprintf(path, sizeof(path), "%s/hydnsd.conf", doctor_config_dir());
	if (access(path, R_OK)) {
		doctor_add(d, "config", "hydnsd.conf", DOCTOR_SKIP, NULL, "there is no %s that this user may read", path);
		return;
	}
	err = doctor_run(argv, true, &text);
	if (err < 0 || err == NOT_FOUND)
		doctor_add(d, "config", "hydnsd.conf", DOCTOR_SKIP, NULL, "%s cannot be run to check it", argv[0]);
	else if (!add_lines(d, text, path))
		doctor_add(d, "config", "hydnsd.conf", DOCTOR_OK, NULL, "hydnsd takes %s", path);
	if (err >= 0)
		free(text);
}

/* -- unbound.conf, named.conf ------------------------------------------------------------------------------------ */
struct resolver {
	enum doctor_server server;
	const char *file, *checker, *unit;
	const char *places[3];         /* where the checker may be: beside the running program, and below the prefix */
};

static const struct resolver resolvers[] = {
	{DOCTOR_UNBOUND, "unbound.conf", "unbound-checkconf", "hydns-unbound",
	 {"%s/unbound-checkconf", HYDNS_UNBOUND_PREFIX "/sbin/unbound-checkconf"}},
	{DOCTOR_BIND, "named.conf", "named-checkconf", "hydns-named",
	 {"%s/../bin/named-checkconf", "%s/named-checkconf", HYDNS_BIND_PREFIX "/bin/named-checkconf"}},
};

static void find_checker(const struct resolver *r, const struct doctor_process *p, char *out, size_t room)
{
	char program[256] = "", *dir;

	if (p)
		snprintf(program, sizeof(program), "%s", p->program);
	dir = dirname(program);
	for (unsigned i = 0; i < sizeof(r->places) / sizeof(r->places[0]) && r->places[i]; i++) {
		if (r->places[i][0] == '%')
			snprintf(out, room, "%s%s", dir, r->places[i] + 2);
		else
			snprintf(out, room, "%s", r->places[i]);
		if ((p || r->places[i][0] == '/') && !access(out, X_OK))
			return;
	}
	snprintf(out, room, "%s", r->checker);
}

/* The line that names the mistake, or else the last one. */
static const char *telling_line(char *text)
{
	const char *found = NULL, *last = "it does not say why";
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		last = line;
		if (!found && (strstr(line, "error") || strstr(line, "unknown")))
			found = line;
	}
	return found ? found : last;
}

/* About a directory or key that the first start makes. */
static bool is_of_absence(const char *line)
{
	return strstr(line, "No such file") || strstr(line, "does not exist") || strstr(line, "file not found");
}

/* p: a running resolver that uses the file, or NULL. */
static void check_file(struct doctor *d, const struct resolver *r, const struct doctor_process *p, const char *path)
{
	char checker[512], mend[2400], *text = NULL;
	const char *const argv[] = {checker, path, NULL};
	const char *unit = p && p->unit[0] ? p->unit : r->unit, *line;
	int err;

	find_checker(r, p, checker, sizeof(checker));
	err = doctor_run(argv, true, &text);
	if (err < 0 || err == NOT_FOUND) {
		doctor_add(d, "config", r->file, DOCTOR_SKIP, NULL, "%s cannot be run to check %s", checker, path);
	} else if (err) {
		line = telling_line(text);
		snprintf(mend, sizeof(mend), "correct that, then: %s %s && systemctl restart %s", checker, path, unit);
		if (!p && is_of_absence(line))
			doctor_add(d, "config", r->file, DOCTOR_SKIP, NULL, "%s can be judged after the first start: %s", path, line);
		else
			doctor_add(d, "config", r->file, p ? DOCTOR_WARN : DOCTOR_FAIL, mend, "%s%s", line,
				   p ? ": it would not start again" : "");
	} else {
		doctor_add(d, "config", r->file, DOCTOR_OK, NULL, "%s takes %s", r->checker, path);
	}
	if (err >= 0)
		free(text);
}

/* Checks the files of running resolvers that name hyDNS; of a server that does not run, the installed file. */
static void check_resolver(struct doctor *d, const struct resolver *r)
{
	bool runs = false;
	char path[512];

	for (unsigned i = 0; i < d->processes; i++) {
		const struct doctor_process *p = &d->process[i];

		if (p->server != r->server || !p->conf.readable)
			continue;
		runs = true;
		if ((p->conf.named || p->conf.clause) && !p->root[0])  /* one in a chroot can't be checked from outside */
			check_file(d, r, p, p->path);
	}
	snprintf(path, sizeof(path), "%s/%s", doctor_config_dir(), r->file);
	if (!runs && (!d->servers || d->servers & r->server) && !access(path, R_OK))
		check_file(d, r, NULL, path);
}

void doctor_check_config(struct doctor *d)
{
	check_hydnsd(d);
	for (unsigned i = 0; i < sizeof(resolvers) / sizeof(resolvers[0]); i++)
		check_resolver(d, &resolvers[i]);
}
