/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The ports that the host has reserved, of this process's network namespace. */
#ifndef HYDNSD_NETDEV_RESERVED_PORTS_H
#define HYDNSD_NETDEV_RESERVED_PORTS_H

#include <stddef.h>
#include "hydns/ports.h"

/* The run that queries to upstream leave from. False: there is none, and why says the cause and the mend. */
bool hydnsd_reserved_ports(struct hydns_port_run *run, char *why, size_t room);

#endif
