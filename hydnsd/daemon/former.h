/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Counts of a former hydnsd's program whose maps are not taken over. It answers until this hydnsd's program replaces it. hydnsd
 * passes its counts to the resolvers, whose statistics would lack these answers.
 */
#ifndef HYDNSD_DAEMON_FORMER_H
#define HYDNSD_DAEMON_FORMER_H

#include "hydnsd/daemon/daemon.h"

/* Call it once, when no former program answers any more. Logs what can't be read. */
void hydnsd_former_read(struct hydnsd *d);
void hydnsd_former_free(struct hydnsd *d);
/* Counts of the resolver that holds this page, since the page was made. Gives them once; false: there are none. */
bool hydnsd_former_take(struct hydnsd *d, int page_fd, struct hydns_counts *out);

#endif
