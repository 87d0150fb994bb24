/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef HYDNSD_METRICS_HOST_H
#define HYDNSD_METRICS_HOST_H

#include <stdbool.h>

/* Whether a Host header names this host as only this host can be reached: localhost or a loopback address, with a port or without.
 * No other name will do: whoever owns one can let it lead here. */
bool metrics_host_is_local(const char *host);

#endif
