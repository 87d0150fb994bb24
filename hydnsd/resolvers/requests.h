/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Messages of a plugin, and what each of them asks for. */
#ifndef HYDNSD_RESOLVERS_REQUESTS_H
#define HYDNSD_RESOLVERS_REQUESTS_H

#include "hydnsd/resolvers/porter.h"

#define HYDNSD_PAYLOAD_MAX (HYDNS_MSG_MAX - sizeof(struct hydns_msg))

struct hydnsd_session;

/* A message as it came, with what its porter has made of the descriptors it brought, if it brought any; those handed
 * on are closed with it. */
struct hydnsd_request {
	struct hydns_msg head;
	uint8_t payload[HYDNSD_PAYLOAD_MAX] __attribute__((aligned(8)));
	int fd[HYDNSD_FDS_MAX];
	unsigned fds;
	const struct hydnsd_delivery *delivery; /* NULL: it brought none */
};

/* Does it, or begins to. False: the plugin does not read its replies, and the connection is to be dropped. */
bool hydnsd_request_handle(struct hydnsd_session *s, const struct hydnsd_request *m);

#endif
