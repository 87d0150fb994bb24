/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The control socket: one JSON object a line each way (protocol.def, doc/control-protocol.md). */
#ifndef HYDNSD_CONTROL_CONTROL_H
#define HYDNSD_CONTROL_CONTROL_H

#include "hydnsd/daemon/daemon.h"

int hydnsd_control_start(struct hydnsd *d, char *why, size_t room);
/* Every second: listens again after it ran out of descriptors. */
void hydnsd_control_tick(struct hydnsd *d);
void hydnsd_control_stop(struct hydnsd *d);

#endif
