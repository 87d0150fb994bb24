/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Receives messages of plugins: those with descriptors by the porter, the others here. */
#ifndef HYDNSD_RESOLVERS_MESSAGES_H
#define HYDNSD_RESOLVERS_MESSAGES_H

#include <stdint.h>

/* For hydnsd_loop_watch(), with a struct hydnsd_session: receives a bounded number of messages and handles them. */
void hydnsd_messages_readable(void *session, uint32_t events);

#endif
