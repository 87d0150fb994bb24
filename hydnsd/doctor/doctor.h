/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsctl doctor: each check adds findings; it prints nothing, and changes nothing on the host. */
#ifndef HYDNSD_DOCTOR_DOCTOR_H
#define HYDNSD_DOCTOR_DOCTOR_H

#include <sys/types.h>

#include "hydnsd/ctl/common.h"

/* Sorted by severity. */
enum doctor_state {
	DOCTOR_OK,
	DOCTOR_SKIP,         /* could not be looked at; the finding says why */
	DOCTOR_WARN,         /* works, but slower, less safely or less completely than it could */
	DOCTOR_FAIL,         /* the kernel answers nothing, or wrongly, until it is mended */
	DOCTOR_STATES,
};

enum doctor_server { DOCTOR_UNBOUND = 1, DOCTOR_BIND = 2 };

/* What a resolver's configuration says of hyDNS. */
struct doctor_conf {
	bool readable;
	bool named;                /* Unbound: module-config has the module; BIND: there is the plugin statement */
	bool clause;               /* Unbound: there is a hydns: clause */
	bool off;                  /* hydns-enable no */
	bool no_client_rings;      /* hydns-queue no */
	bool no_upstream_rings;    /* hydns-queue-upstream no */
	char modules[160];         /* Unbound: value of module-config; "": not given */
	char socket[128];          /* hydns-socket, or its default */
};

/* A resolver process in the network namespace that is looked at. */
struct doctor_process {
	pid_t pid;
	enum doctor_server server;
	char program[256];         /* its executable */
	char root[256];            /* its root directory; "": that of this process */
	char path[256];            /* its configuration, as this process finds it */
	char unit[128];            /* of systemd, or "" */
	struct doctor_conf conf;
};
#define DOCTOR_PROCESSES 16

struct doctor {
	const struct ctl *ctl;
	json_t *status, *stats;    /* the daemon's, or NULL */
	char why[CTL_WHY];         /* why there is no status */
	enum ctl_reach reach;
	json_t *interfaces;        /* names of those that are looked at */
	struct doctor_process process[DOCTOR_PROCESSES];
	unsigned processes;
	unsigned servers;          /* enum doctor_server, ored: mends name their options; 0: those of both */
	json_t *checks;            /* findings so far */
	unsigned count[DOCTOR_STATES];
};

/* -- findings.c ------------------------------------------------------------------------------------------- */
/* Adds a finding. check: a short name for scripts, subject: an interface or resolver, or NULL. mend: what
 * to do, NULL when there is nothing; texts are copied. */
void doctor_add(struct doctor *d, const char *check, const char *subject, enum doctor_state state,
		const char *mend, const char *finding, ...) __attribute__((format(printf, 6, 7)));
/* hydnsd's configuration file. */
const char *doctor_config_file(const struct doctor *d);
/* Writes the text for the servers of this host, or both texts. */
void doctor_words(const struct doctor *d, char *out, size_t room, const char *unbound, const char *bind);

/* -- files.c ---------------------------------------------------------------------------------------------- */
/* First line of a file without its newline; 0 or a negative errno. */
int doctor_read_line(const char *path, char *out, size_t room);
/* Where the configuration files are: $HYDNS_CONFIG_DIR, or /etc/hydns. */
const char *doctor_config_dir(void);

/* -- run.c: other programs ----------------------------------------------------------------------------- */
/*
 * Runs a program. *out: its output, NUL-terminated; free() it. errors: its standard error is part of that, and an exit status
 * above 0, which is returned, is no error. 0, -ENOENT when it is not installed, or another negative errno.
 */
int doctor_run(const char *const argv[], bool errors, char **out);

/* -- process.c, resolver_conf.c: resolvers that run ----------------------------------------------------- */
/* Fills d->process and d->servers. */
void doctor_find_processes(struct doctor *d);
/* Pid of a process in this network namespace whose executable has this name and for which is() is true; 0: none. */
pid_t doctor_find_program(const char *name, bool (*is)(pid_t pid, void *arg), void *arg);
/* One of d->process, or NULL. */
const struct doctor_process *doctor_process_of(const struct doctor *d, pid_t pid);
/* "named" or "unbound". */
const char *doctor_title(const struct doctor_process *p);
/* What restarts it: a command when it is a unit of systemd. */
void doctor_restart_command(const struct doctor_process *p, char *out, size_t room);
void doctor_restart_of(const struct doctor *d, json_int_t pid, char *out, size_t room);
/* Whether the process has a descriptor of the socket with this inode. */
bool doctor_holds_socket(pid_t pid, unsigned long inode);
void doctor_conf_read(enum doctor_server server, const char *path, const char *root, struct doctor_conf *out);

/* -- reported.c: what hydnsd's replies tell by themselves ---------------------------------------------------- */
#define DOCTOR_RESTART "systemctl restart hydnsd; if it does not stay up: journalctl -u hydnsd"
void doctor_check_kill_switch(struct doctor *d);
/* One of hydnsd's interfaces, and that there is none. */
void doctor_check_attached(struct doctor *d, const json_t *interface);
void doctor_check_no_interface(struct doctor *d);
/* Whether it is about to register: it has not sent its addresses and clients all. */
bool doctor_registers(const json_t *resolver);
/* A resolver of hydnsd's status; and packets that found no room, since its threads did not read the others in time. */
void doctor_check_registered(struct doctor *d, const json_t *resolver);
void doctor_check_drops(struct doctor *d, const json_t *resolver);
/* A plugin that hydnsd has refused because it is of another version. */
/* restart: the command that restarts its resolver. */
void doctor_check_other_version(struct doctor *d, const json_t *other_version, const char *restart);
/* The findings of all these checks, a list; needs no right. status, stats: hydnsd's replies, or NULL, and why there are none. */
json_t *doctor_reported(const json_t *status, const json_t *stats, const char *why);

/* -- checks -------------------------------------------------------------------------------------------------- */
void doctor_check_host(struct doctor *d);
void doctor_check_daemon(struct doctor *d);
/* Whether hydnsd has just started, and a resolver may still register by itself. */
#define DOCTOR_COME_S 5
bool doctor_resolvers_come(const struct doctor *d);
/* Resolvers that have registered, and those that run but have not. */
void doctor_check_resolvers(struct doctor *d);
/* names: interfaces to look at; none: those that hydnsd uses, else those that could be used. */
void doctor_check_interfaces(struct doctor *d, int count, char **names);
/* Packet rings: ports of queries to upstream, locked memory. In hydnsd's network namespace, as the interfaces. */
void doctor_check_rings(struct doctor *d);
/* The most threads of a resolver that has packet rings on an interface; 0: none has. */
unsigned doctor_ring_threads(const struct doctor *d, const char *interface);
/* Zones that the kernel shall forward; in hydnsd's network namespace, too. */
void doctor_check_forwarding(struct doctor *d);
/* Whether that check looks at this note. */
bool doctor_is_of_forwarding(const char *note);
void doctor_check_sources(struct doctor *d);
/* Configuration files, by the programs that read them. */
void doctor_check_config(struct doctor *d);
void doctor_check_firewall(struct doctor *d);

#endif
