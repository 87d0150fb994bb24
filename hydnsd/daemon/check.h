/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Whether a correct configuration fits this host. */
#ifndef HYDNSD_DAEMON_CHECK_H
#define HYDNSD_DAEMON_CHECK_H

#include "hydnsd/daemon/options.h"

/* Logs each thing that does not fit, with its mend: an error keeps hydnsd from starting; with a warning it starts, but answers
 * less or nothing. Prints the result, and returns the exit status. Changes nothing. */
int hydnsd_check(const struct hydnsd_options *o);
/* At the start: logs the warnings about options that are missing. hydnsd itself logs the others when it comes to them. */
void hydnsd_check_start(const struct hydnsd_options *o);

#endif
