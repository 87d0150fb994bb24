/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each part of the program costs a query, by difference: copies of the program run by BPF_PROG_TEST_RUN, one composed as the
 * running one, and for each part one without it. The copies have maps of their own, with one resolver and one rule, so nothing of
 * the running program is read but its configuration, and nothing is written: no packet is sent, none counted, no budget debited.
 *
 * hydnsctl does it in its own process, as root: loading takes seconds of processor time, for which hydnsd's loop has no room, and a
 * process that is killed leaves nothing behind.
 */
#ifndef HYDNS_KERN_COST_COST_H
#define HYDNS_KERN_COST_COST_H

#include <stdbool.h>
#include <stddef.h>
#include "hydns/resolver.h"
#include "hydns-kern/cost/again.h"
#include "hydns-kern/loader/open.h"

enum hydns_cost_query {
	HYDNS_COST_ANSWERED,           /* a rule answers it */
	HYDNS_COST_NO_RULE,
	HYDNS_COST_QUERIES
};

struct hydns_cost_setup {
	int prog_fd;                   /* the running hydns_xdp */
	struct hydns_service_key service;
	const __u8 *name;              /* that has a rule: A, IN; wire format, lower case */
	__u8 name_len;
	struct hydns_again_frame query[HYDNS_COST_QUERIES]; /* to that service, over IPv4 */
	__u32 egress;                  /* interface by which replies may be routed; 0: none */
	unsigned seconds;              /* after so many no other program is loaded */
	void (*progress)(unsigned loaded, unsigned of, void *arg); /* before each copy is loaded, but the first and the last */
	void *arg;
};

struct hydns_cost {
	bool measured;
	int instructions;              /* of BPF, as the kernel has translated them */
	double ns[HYDNS_COST_QUERIES];
};

struct hydns_costs {
	struct hydns_cost whole;       /* the program with all its parts */
	struct hydns_cost part[HYDNS_PARTS]; /* what each adds; parts that are not in are not measured */
	double noise[HYDNS_COST_QUERIES];  /* nanoseconds by which two copies of the same program differ */
};

/* Needs the rights for loading and for reading others' programs: root. */
int hydns_costs_measure(const struct hydns_cost_setup *s, struct hydns_costs *out, char why[HYDNS_WHY]);

#endif
