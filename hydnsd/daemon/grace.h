/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Grace periods: after one, no XDP program holds anything that was removed before it. Two threads wait for each, and the faster
 * ends it: one by membarrier(MEMBARRIER_CMD_GLOBAL), which takes ten milliseconds and nothing holds up, one by a tour of all CPUs
 * (hydns-kern/loader/cpus.h), which takes a tenth of one where they are not busy. All else happens in the loop.
 */
#ifndef HYDNSD_DAEMON_GRACE_H
#define HYDNSD_DAEMON_GRACE_H

#include <stddef.h>
#include "hydnsd/daemon/loop.h"
#include "hydnsd/rules/rules.h"

struct hydnsd_grace;

/* 0, or a negative errno and a line in why. Call it after rights were dropped: they belong to threads. */
int hydnsd_grace_start(struct hydnsd_loop *l, struct hydnsd_rules *r, struct hydnsd_grace **out,
		       char *why, size_t room);
void hydnsd_grace_stop(struct hydnsd_grace *g);

/* Waits for a grace period; blocks the caller. */
void hydnsd_grace_wait(void);

/* Calls done in the loop after a grace period that begins now or later. 0 or -ENOMEM. */
int hydnsd_grace_after(struct hydnsd_grace *g, void (*done)(void *arg), void *arg);
/* Begins a grace period if slots wait for one and none is under way. */
void hydnsd_grace_reclaim(struct hydnsd_grace *g);

#endif
