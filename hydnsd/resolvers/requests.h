/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Carries out what messages of a plugin ask for. */
#ifndef HYDNSD_RESOLVERS_REQUESTS_H
#define HYDNSD_RESOLVERS_REQUESTS_H

#include "hydnsd/resolvers/porter.h"

#define HYDNSD_PAYLOAD_MAX (HYDNS_MSG_MAX - sizeof(struct hydns_msg))

struct hydnsd_session;

/* A message as it came. If it brought descriptors, the porter has judged them and handed on some or none; the receiver
 * closes these after the message. */
struct hydnsd_request {
	struct hydns_msg head;
	uint8_t payload[HYDNSD_PAYLOAD_MAX] __attribute__((aligned(8)));
	int fd[HYDNSD_FDS_MAX];
	unsigned fds;
	const struct hydnsd_delivery *delivery; /* NULL: it brought none */
};

/* Does what the message asks for, or begins to. False: the plugin does not read its replies; drop the connection. */
bool hydnsd_request_handle(struct hydnsd_session *s, const struct hydnsd_request *m);

#endif
