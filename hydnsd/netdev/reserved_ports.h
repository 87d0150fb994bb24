/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The ports that the host has reserved, of this process's network namespace. For hydnsd and for hydnsctl's doctor. */
#ifndef HYDNSD_NETDEV_RESERVED_PORTS_H
#define HYDNSD_NETDEV_RESERVED_PORTS_H

#include <stddef.h>
#include "hydns/ports.h"

#define HYDNSD_RESERVED_MEND 160       /* room for a command */

/* Writes the command that reserves HYDNS_PORTS_ADVICE beside what a list (without a newline) reserves already: writing the
 * list replaces it. */
void hydnsd_reserved_ports_command(const char *list, char out[HYDNSD_RESERVED_MEND]);
/*
 * The run that queries to upstream leave from. 0; -ERANGE: the host reserves none that is long enough, and mend is the command
 * that does; another negative errno: the list cannot be read.
 */
int hydnsd_reserved_ports_look(struct hydns_port_run *run, char mend[HYDNSD_RESERVED_MEND]);
/* The same. False: there is none, and why says the cause and the mend. */
bool hydnsd_reserved_ports(struct hydns_port_run *run, char *why, size_t room);

#endif
