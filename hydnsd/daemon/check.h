/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Whether a configuration, correct in itself, fits this host. */
#ifndef HYDNSD_DAEMON_CHECK_H
#define HYDNSD_DAEMON_CHECK_H

#include "hydnsd/daemon/options.h"

/* Logs each thing that does not fit, with its mend: as an error what keeps hydnsd from starting, as a warning that with
 * which it starts, but answers nothing or less. Prints the result, and returns the exit status. Touches nothing. */
int hydnsd_check(const struct hydnsd_options *o);
/* The warnings that only the operator can do something about, at the start; others are logged when they are met. */
void hydnsd_check_start(const struct hydnsd_options *o);

#endif
