/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the program of a former hydnsd has answered from maps that are not taken over. It goes on answering until this
 * hydnsd's program is in its place, and nobody else can tell the resolvers how often: they would miss these answers in
 * their statistics.
 */
#ifndef HYDNSD_DAEMON_FORMER_H
#define HYDNSD_DAEMON_FORMER_H

#include "hydnsd/daemon/daemon.h"

/* Once, when no former program answers any more. Where it can't be read, a line says so. */
void hydnsd_former_read(struct hydnsd *d);
void hydnsd_former_free(struct hydnsd *d);
/* Counts of the resolver that holds this page, since the page was made. Each is told once; false: there are none. */
bool hydnsd_former_take(struct hydnsd *d, int page_fd, struct hydns_counts *out);

#endif
