/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The operator's program for conditions that begin and end (option monitor-hook). It runs without a shell, as the user that hydnsd
 * runs as, without any capability, with nothing of hydnsd's but standard error; one at a time, in the order of the events. After its
 * time is over it is killed, and whatever it leaves in its process group is, too. The event loop waits for none of that: a thread
 * of its own starts the program and waits for it.
 */
#ifndef HYDNSD_MONITOR_HOOK_H
#define HYDNSD_MONITOR_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "hydnsd/daemon/loop.h"

#define HYDNSD_HOOK_WAITING 16         /* events that wait for a run to end; others are left out */
#define HYDNSD_HOOK_ENV     8
#define HYDNSD_HOOK_TEXT    160        /* octets of a variable, cut */

/* Variables of the environment, `NAME=value'; empty: not set. */
struct hydnsd_hook_event {
	char env[HYDNSD_HOOK_ENV][HYDNSD_HOOK_TEXT];
};
struct hydnsd_hook_counts {
	uint64_t run, failed, killed, left_out;        /* failed: not started, or a status other than 0 */
};
struct hydnsd_hook;

/* path: absolute; copied. NULL: out of memory or descriptors. */
struct hydnsd_hook *hydnsd_hook_new(struct hydnsd_loop *loop, const char *path, uint32_t most_s);
/* Kills what runs. Ignores NULL. */
void hydnsd_hook_free(struct hydnsd_hook *h);
void hydnsd_hook_tell(struct hydnsd_hook *h, const struct hydnsd_hook_event *e);
void hydnsd_hook_counts(const struct hydnsd_hook *h, struct hydnsd_hook_counts *out);

#endif
