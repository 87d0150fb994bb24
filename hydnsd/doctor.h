/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * hydnsctl doctor: each check adds findings, never prints, never changes anything on the host.
 */
#ifndef HYDNS_DOCTOR_H
#define HYDNS_DOCTOR_H

#include "hydnsd/ctl_common.h"

/* In order of gravity. */
enum doctor_state {
	DOCTOR_OK,
	DOCTOR_SKIP,         /* could not be looked at; the finding says why */
	DOCTOR_WARN,         /* works, but slower, less safely or less completely than it could */
	DOCTOR_FAIL,         /* nothing, or the wrong thing, is answered in the kernel until it is mended */
	DOCTOR_STATES,
};

struct doctor {
	const struct ctl *ctl;
	json_t *status;            /* the daemon's, or NULL */
	char why[CTL_WHY];         /* why there is no status */
	enum ctl_reach reach;
	json_t *checks;            /* findings so far */
	unsigned count[DOCTOR_STATES];
};

/* Adds a finding. check: a short name for scripts, subject: an interface or resolver, or NULL. mend: what
 * to do, NULL when there is nothing; texts are copied. */
void doctor_add(struct doctor *d, const char *check, const char *subject, enum doctor_state state,
		const char *mend, const char *finding, ...) __attribute__((format(printf, 6, 7)));
/* First line of a file without its newline; 0 or a negative errno. */
int doctor_read_line(const char *path, char *out, size_t room);

void doctor_check_host(struct doctor *d);
void doctor_check_daemon(struct doctor *d);
/* names: interfaces to look at; none: those that hydnsd uses, else those that could be used. */
void doctor_check_interfaces(struct doctor *d, int count, char **names);
void doctor_check_sources(struct doctor *d);
void doctor_check_firewall(struct doctor *d);

#endif
