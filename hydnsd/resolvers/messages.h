/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* How messages of a plugin are received: those with descriptors by its porter, the others here. */
#ifndef HYDNSD_RESOLVERS_MESSAGES_H
#define HYDNSD_RESOLVERS_MESSAGES_H

#include <stdint.h>

/* For hydnsd_loop_watch(), with a struct hydnsd_session: takes some, and does what they ask for. */
void hydnsd_messages_readable(void *session, uint32_t events);

#endif
