/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Withdrawals under way. Those that cannot be done at once share a scan of the store, a piece of it each round of the
 * event loop. After the scan, and a grace period where that is asked for, whoever asked is notified.
 */
#ifndef HYDNSD_RESOLVERS_WITHDRAWALS_H
#define HYDNSD_RESOLVERS_WITHDRAWALS_H

#include "hydnsd/daemon/daemon.h"

/* What follows a withdrawal. client and tag are the asker's own numbers: it may be gone by then. */
struct hydnsd_withdrawal_end {
	void (*done)(struct hydnsd *d, uint64_t client, uint32_t tag, uint32_t withdrawn); /* rules; NULL: nothing */
	uint64_t client;
	uint32_t tag;
	bool grace;                    /* a grace period comes before done() */
	bool patient;                  /* no wrong answer is sent meanwhile: it may wait a moment to share a scan */
};

struct hydnsd_withdrawals *hydnsd_withdrawals_new(void);
void hydnsd_withdrawals_free(struct hydnsd_withdrawals *all);
/* Begins the first n of w, at least one, with one end for all of them. Copies w and end. Does at once what can be done at once;
 * without a grace period it calls end.done() before it returns if that was all. 0 or -ENOMEM (logged; nothing was withdrawn). */
int hydnsd_withdrawals_begin(struct hydnsd *d, const struct hydnsd_withdrawal *w, size_t n,
			 const struct hydnsd_withdrawal_end *end);
/* How many wait for a scan, or have one. */
uint32_t hydnsd_withdrawals_waiting(const struct hydnsd_withdrawals *all);
/* Works a bounded time. Milliseconds until there is more to do; -1: nothing waits. */
int hydnsd_withdrawals_work(struct hydnsd *d);

#endif
