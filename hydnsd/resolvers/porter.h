/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A porter is a process that takes the descriptors which one plugin sends. To close or to query a descriptor of
 * somebody else's may take as long as he likes: close() of a TCP socket that lingers or of a file of a FUSE file system,
 * getsockname() of a socket that a thread of his has locked. So hydnsd never has such descriptors. Its porter looks at
 * them, hands on those of which nothing can block (rings, which are memfds, and the page, a BPF map), tells what a socket
 * is bound to, and hangs alone if it must.
 */
#ifndef HYDNSD_RESOLVERS_PORTER_H
#define HYDNSD_RESOLVERS_PORTER_H

#include <stdbool.h>
#include <stdint.h>
#include "hydnsd/resolvers/resolver.h"

#define HYDNSD_PORTER "hydnsd-porter"  /* a hydnsd started by this name is one */
#define HYDNSD_FDS_MAX (HYDNS_THREADS_MAX + 1)

/* One message that came with descriptors. */
struct hydnsd_delivery {
	int32_t rc;                    /* 0, -EPROTO: no message, drop the connection; else a refusal */
	char why[HYDNS_WHY];           /* cause and mend of it */
	struct hydnsd_socket socket;   /* SERVICE */
	uint32_t len;                  /* octets of the message */
	uint8_t message[HYDNS_MSG_MAX] __attribute__((aligned(8)));
};

struct hydnsd_porter;

/* Starts one for a connection, which stays the caller's. NULL: it can't be started (errno). */
struct hydnsd_porter *hydnsd_porter_new(int connection);
/* Can be read when a delivery has come, or the porter has ended. */
int hydnsd_porter_fd(const struct hydnsd_porter *p);
/* The next message of the connection is the porter's. One delivery follows. */
bool hydnsd_porter_ask(struct hydnsd_porter *p);
/* Fills *out and fd[HYDNSD_FDS_MAX], the caller's to close; returns how many, -EAGAIN, or -ECONNRESET: it has ended. */
int hydnsd_porter_receive(struct hydnsd_porter *p, struct hydnsd_delivery *out, int *fd);
/* Sends it away; NULL is ignored. It goes when it can, by force after a while. */
void hydnsd_porter_end(struct hydnsd_porter *p);

/* Once a second or so: takes leave of those that have gone ... and how many are still to go. */
void hydnsd_porters_tick(void);
unsigned hydnsd_porters_leaving(void);

/* Closes a connection. What lies in it unread, descriptors perhaps, is closed by another process. */
void hydnsd_connection_close(int connection);

/* True when descriptors come with the next message, which stays unread. */
bool hydnsd_connection_has_fds(int connection);
/* The type of the next message of a plugin, too, 0 if it has none. False: there is no message. */
bool hydnsd_connection_peek(int connection, uint32_t *type, bool *has_fds);

/* The porter itself, in a process of its own. */
int hydnsd_porter_main(void);

#endif
