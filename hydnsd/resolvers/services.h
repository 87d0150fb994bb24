/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which destination addresses and ports the program answers at: those of the sockets that resolvers
 * have handed over, as long as the host has the address. A wildcard socket stands for every address of this host.
 */
#ifndef HYDNSD_RESOLVERS_SERVICES_H
#define HYDNSD_RESOLVERS_SERVICES_H

#include "hydnsd/daemon/daemon.h"

/* Reads the services that the maps hold already. */
int hydnsd_services_start(struct hydnsd *d, char *why, size_t room);
void hydnsd_services_stop(struct hydnsd *d);

/* Another resolver that holds the place of a socket which resolver i tells of; -1: none does, or i has it already. */
int hydnsd_services_holder(const struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s);
/* Resolver i has a socket bound to this. 0, or a negative errno and a line in why. Takes effect at once if the resolver
 * is ready, else when it is. *news: refused, and not before for the same reason; or taken after having been refused. */
int hydnsd_services_add(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s, char *why, size_t room, bool *news);
/* Its socket (all zero: unknown what it is bound to) can't be a service. True if that is news. */
bool hydnsd_services_refused(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s, const char *why);

/* Makes the map hold what ready resolvers' sockets say; keeps what resolvers hold that are not. */
void hydnsd_services_sync(struct hydnsd *d);

/* Walks the services in force. */
void hydnsd_services_each(struct hydnsd *d,
			  void (*fn)(const struct hydns_service_key *, uint32_t resolver, void *),
			  void *arg);

/* Walks what resolver i has told of and does not have (port 0: unknown), with the reasons. */
void hydnsd_services_missing(struct hydnsd *d, uint32_t i,
			     void (*fn)(const struct hydns_service_key *, const char *why, void *), void *arg);

#endif
