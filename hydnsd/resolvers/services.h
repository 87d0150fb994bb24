/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The addresses and ports at which the program answers: those of the sockets that resolvers have handed over, as long as the
 * host has the address. A wildcard socket stands for every address of the host.
 */
#ifndef HYDNSD_RESOLVERS_SERVICES_H
#define HYDNSD_RESOLVERS_SERVICES_H

#include "hydnsd/daemon/daemon.h"

/* Reads the services that the map holds already. */
int hydnsd_services_start(struct hydnsd *d, char *why, size_t room);
void hydnsd_services_stop(struct hydnsd *d);

/* The other resolver that has the address and port of this socket; -1: none has, or resolver i has it already. */
int hydnsd_services_holder(const struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s);
/* Resolver i has this socket. 0, or a negative errno and a line in why. Takes effect when the resolver is ready.
 * *news: the socket is refused for another reason than before, or taken after a refusal. */
int hydnsd_services_add(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s, char *why, size_t room, bool *news);
/* Resolver i's socket (all zero: bound to something unknown) cannot be a service. True if that is news. */
bool hydnsd_services_refused(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s, const char *why);

/* Brings the map in line with the sockets of ready resolvers. Resolvers that are not ready keep what they have in it. */
void hydnsd_services_sync(struct hydnsd *d);

/* Calls fn for each service in the map. */
void hydnsd_services_each(struct hydnsd *d,
			  void (*fn)(const struct hydns_service_key *, uint32_t resolver, void *),
			  void *arg);

/* Calls fn for each socket of resolver i that is no service (port 0: unknown), with the reason. */
void hydnsd_services_missing(struct hydnsd *d, uint32_t i,
			     void (*fn)(const struct hydns_service_key *, const char *why, void *), void *arg);

#endif
