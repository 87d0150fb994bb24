/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What plugins write to their rings: offers, which become rules, and changes, which withdraw some. Offers are taken in
 * batches, so many frames a ring and turn that no resolver can starve another.
 */
#ifndef HYDNSD_RESOLVERS_INTAKE_H
#define HYDNSD_RESOLVERS_INTAKE_H

struct hydnsd_session;

/* Takes a bounded number of frames out of every ring of a session; returns how long the loop may sleep, in ms: 0 there is
 * more, 1 offers were flowing a moment ago, -1 the plugin will ring the doorbell. */
int hydnsd_intake_work(struct hydnsd_session *s);

#endif
