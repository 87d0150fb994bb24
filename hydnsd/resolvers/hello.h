/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* From HELLO to WELCOME: what a resolver says of itself, its rings, page and doorbell. */
#ifndef HYDNSD_RESOLVERS_HELLO_H
#define HYDNSD_RESOLVERS_HELLO_H

#include "hydnsd/resolvers/requests.h"

/* As hydnsd_request_handle(). */
bool hydnsd_hello(struct hydnsd_session *s, const struct hydnsd_request *m);
/* RESET: another configuration, in the same form. */
bool hydnsd_hello_reset(struct hydnsd_session *s, const struct hydnsd_request *m);

#endif
