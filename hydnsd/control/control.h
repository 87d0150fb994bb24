/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The control socket: one JSON object a line each way (doc/control-protocol.md). */
#ifndef HYDNSD_CONTROL_CONTROL_H
#define HYDNSD_CONTROL_CONTROL_H

#include "hydnsd/daemon/daemon.h"

int hydnsd_control_start(struct hydnsd *d, char *why, size_t room);
/* Every second: listens again where no descriptor was left for a client. */
void hydnsd_control_tick(struct hydnsd *d);
void hydnsd_control_stop(struct hydnsd *d);

#endif
