/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Takes what plugins write to their rings: offers, which become rules, and changes, which withdraw some. Each round takes a
 * bounded number of frames from each ring, so that no resolver starves another.
 */
#ifndef HYDNSD_RESOLVERS_INTAKE_H
#define HYDNSD_RESOLVERS_INTAKE_H

#include "hydnsd/rules/offer.h"

struct hydnsd;
struct hydnsd_session;

/* Returns how long the loop may sleep, in ms; 0: there is more to do; -1: until the plugin rings the doorbell. */
int hydnsd_intake_work(struct hydnsd_session *s);
/* For a resolver whose process has ended: acts upon all that its rings hold. False: not all could be. */
bool hydnsd_intake_finish(struct hydnsd_session *s);
/* An offer of hydnsd's own: the answer to a forwarded query, which its client waits for. ACCEPTED: there is a rule. */
enum hydnsd_rejection hydnsd_intake_forwarded(struct hydnsd *d, uint32_t i, const struct hydns_offer *o);

#endif
