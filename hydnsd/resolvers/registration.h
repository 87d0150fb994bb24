/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* How a resolver gets an index, a page and a configuration: HELLO, RESET and READY. */
#ifndef HYDNSD_RESOLVERS_REGISTRATION_H
#define HYDNSD_RESOLVERS_REGISTRATION_H

#include <stddef.h>
#include <stdint.h>
#include "hydns/session.h"

struct hydnsd;

/* The session of the resolver that holds this page (-1: no page); 0: there is none. */
uint64_t hydnsd_resolver_session(const struct hydnsd *d, int page_fd);
/*
 * A plugin says HELLO. page_fd: the page it holds, or -1; the caller has ended a former session of that resolver.
 * Returns the index and fills *welcome. *new_page is a descriptor for the plugin, which the caller closes, or -1 when the
 * old page stays. When refused: a negative errno, and a line in why.
 */
int hydnsd_resolver_begin(struct hydnsd *d, uint64_t session, const struct hydns_hello *h, int page_fd,
			  struct hydns_welcome *welcome, int *new_page, char *why, size_t room);
/* Begins another configuration: the program does not answer for the resolver until READY. */
void hydnsd_resolver_reset(struct hydnsd *d, uint32_t i, const struct hydns_hello *h);
/* The configuration is complete: the program answers. 0, or a negative errno and a line in why. */
int hydnsd_resolver_ready(struct hydnsd *d, uint32_t i, char *why, size_t room);

#endif
