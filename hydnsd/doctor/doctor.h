/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * hydnsctl doctor: each check adds findings, never prints, never changes anything on the host.
 */
#ifndef HYDNSD_DOCTOR_DOCTOR_H
#define HYDNSD_DOCTOR_DOCTOR_H

#include <sys/types.h>

#include "hydnsd/ctl/common.h"

/* In order of gravity. */
enum doctor_state {
	DOCTOR_OK,
	DOCTOR_SKIP,         /* could not be looked at; the finding says why */
	DOCTOR_WARN,         /* works, but slower, less safely or less completely than it could */
	DOCTOR_FAIL,         /* nothing, or the wrong thing, is answered in the kernel until it is mended */
	DOCTOR_STATES,
};

enum doctor_kind { DOCTOR_UNBOUND = 1, DOCTOR_BIND = 2 };

/* What a resolver's configuration says of hyDNS. */
struct doctor_conf {
	bool readable;
	bool named;                /* Unbound: the module stands in module-config; BIND: the plugin statement is there */
	bool clause;               /* Unbound: there is a hydns: clause */
	bool off;                  /* hydns-enable no */
	char modules[160];         /* Unbound: module-config; "": not given */
	char socket[128];          /* hydns-socket, or its default */
};

/* A resolver that runs in the network namespace in question. */
struct doctor_process {
	pid_t pid;
	enum doctor_kind kind;
	char program[256];         /* its executable */
	char root[256];            /* its root directory; "": the one of this process */
	char path[256];            /* its configuration, as this process finds it */
	char unit[128];            /* of systemd, or "" */
	struct doctor_conf conf;
};
#define DOCTOR_PROCESSES 16

struct doctor {
	const struct ctl *ctl;
	json_t *status;            /* the daemon's, or NULL */
	char why[CTL_WHY];         /* why there is no status */
	enum ctl_reach reach;
	json_t *interfaces;        /* names of those looked at */
	struct doctor_process process[DOCTOR_PROCESSES];
	unsigned processes;
	unsigned kinds;            /* enum doctor_kind: in whose words mends speak; 0: in both's */
	json_t *checks;            /* findings so far */
	unsigned count[DOCTOR_STATES];
};

/* -- findings.c ------------------------------------------------------------------------------------------- */
/* Adds a finding. check: a short name for scripts, subject: an interface or resolver, or NULL. mend: what
 * to do, NULL when there is nothing; texts are copied. */
void doctor_add(struct doctor *d, const char *check, const char *subject, enum doctor_state state,
		const char *mend, const char *finding, ...) __attribute__((format(printf, 6, 7)));
/* The text for the resolvers of this host, or both. */
void doctor_words(const struct doctor *d, char *out, size_t room, const char *unbound, const char *bind);

/* -- files.c ---------------------------------------------------------------------------------------------- */
/* First line of a file without its newline; 0 or a negative errno. */
int doctor_read_line(const char *path, char *out, size_t room);
/* Where the configuration files are: $HYDNS_CONFIG_DIR, or /etc/hydns. */
const char *doctor_config_dir(void);

/* -- run.c: other programs ----------------------------------------------------------------------------- */
/*
 * Output of a program, NUL-terminated; the caller frees. 0, -ENOENT when it is not installed, or another negative
 * errno. errors: with what it writes to standard error, and its exit status, above 0, is no error.
 */
int doctor_run(const char *const argv[], bool errors, char **out);

/* -- process.c, resolver_conf.c: resolvers that run ----------------------------------------------------- */
/* Fills d->process and d->kinds. */
void doctor_find_processes(struct doctor *d);
/* The number of a process of that name (of its executable) in this network namespace for which is() is true, or 0. */
pid_t doctor_find_program(const char *name, bool (*is)(pid_t pid, void *arg), void *arg);
void doctor_conf_read(enum doctor_kind kind, const char *path, const char *root, struct doctor_conf *out);

/* -- checks -------------------------------------------------------------------------------------------------- */
void doctor_check_host(struct doctor *d);
void doctor_check_daemon(struct doctor *d);
/* Resolvers that have registered, and those that run and have not. */
void doctor_check_resolvers(struct doctor *d);
/* names: interfaces to look at; none: those that hydnsd uses, else those that could be used. */
void doctor_check_interfaces(struct doctor *d, int count, char **names);
void doctor_check_sources(struct doctor *d);
/* Configuration files, by the programs that read them. */
void doctor_check_config(struct doctor *d);
void doctor_check_firewall(struct doctor *d);

#endif
