/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What `stats' says of the monitor. */
#ifndef HYDNSD_CONTROL_MONITORED_H
#define HYDNSD_CONTROL_MONITORED_H

#include <jansson.h>

#include "hydnsd/daemon/daemon.h"

json_t *hydnsd_monitored(struct hydnsd *d);

#endif
