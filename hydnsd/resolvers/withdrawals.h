/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Withdrawals under way: those that can't be done at once share a pass over the store, a piece of it each turn; then a
 * grace period, then the answers to those who asked. */
#ifndef HYDNSD_RESOLVERS_WITHDRAWALS_H
#define HYDNSD_RESOLVERS_WITHDRAWALS_H

#include "hydnsd/daemon/daemon.h"

/* Who is told. client and tag are the asker's own numbers: it may be gone by then. */
struct hydnsd_withdrawal_end {
	void (*done)(struct hydnsd *d, uint64_t client, uint32_t tag, uint32_t withdrawn);
	uint64_t client;
	uint32_t tag;
	bool grace;                    /* only after a grace period */
	bool patient;                  /* nothing wrong is sent until then: it may wait a moment to share a pass */
};

struct hydnsd_withdrawals *hydnsd_withdrawals_new(void);
void hydnsd_withdrawals_free(struct hydnsd_withdrawals *j);
/* Copies both. What can be done at once is, and without a grace period end.done() comes before this returns. 0 or
 * -ENOMEM (logged; nothing was withdrawn). */
int hydnsd_withdrawals_begin(struct hydnsd *d, const struct hydnsd_withdrawal *w,
			 const struct hydnsd_withdrawal_end *end);
/* How many wait for a pass, or have one. */
uint32_t hydnsd_withdrawals_waiting(const struct hydnsd_withdrawals *j);
/* Works a bounded time. Milliseconds until there is more to do; -1: nothing waits. */
int hydnsd_withdrawals_work(struct hydnsd *d);

#endif
