/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A porter is a process that receives the descriptors which one plugin sends. Closing or querying a foreign descriptor may
 * block as long as its sender likes: close() of a TCP socket that lingers, or of a file of a FUSE file system; getsockname()
 * of a socket that one of his threads has locked. So hydnsd never has such descriptors. The porter examines them. It hands on
 * those that cannot block (rings, which are memfds, and the page, a BPF map), reports what a socket is bound to, and if
 * something blocks, the porter alone does.
 */
#ifndef HYDNSD_RESOLVERS_PORTER_H
#define HYDNSD_RESOLVERS_PORTER_H

#include <stdbool.h>
#include <stdint.h>
#include "hydnsd/resolvers/resolver.h"

#define HYDNSD_PORTER "hydnsd-porter"  /* hydnsd is a porter when started by this name */
#define HYDNSD_FDS_MAX (HYDNS_THREADS_MAX + 1)

/* One message that came with descriptors. */
struct hydnsd_delivery {
	int32_t rc;                    /* 0; -EPROTO: no message, drop the connection; another negative errno: refuse it */
	char why[HYDNS_WHY];           /* cause and mend of a refusal */
	struct hydnsd_socket socket;   /* SERVICE */
	uint32_t len;                  /* octets of the message */
	uint8_t message[HYDNS_MSG_MAX] __attribute__((aligned(8)));
};

struct hydnsd_porter;

/* Starts one for a connection, which stays the caller's. NULL: it cannot be started (errno). */
struct hydnsd_porter *hydnsd_porter_new(int connection);
/* Becomes readable when a delivery has come, or the porter has ended. */
int hydnsd_porter_fd(const struct hydnsd_porter *p);
/* Lets the porter receive the next message of the connection. One delivery follows. */
bool hydnsd_porter_ask(struct hydnsd_porter *p);
/* Fills *out and fd[HYDNSD_FDS_MAX], the caller's to close; returns how many, -EAGAIN, or -ECONNRESET: it has ended. */
int hydnsd_porter_receive(struct hydnsd_porter *p, struct hydnsd_delivery *out, int *fd);
/* Lets it end, after a while by force; ignores NULL. */
void hydnsd_porter_end(struct hydnsd_porter *p);

/* To be called about once a second: reaps porters that have ended, kills those that take too long, and starts those that could not
 * be started to close a connection. */
void hydnsd_porters_tick(void);
/* How many are still to end, or to be started for that. */
unsigned hydnsd_porters_leaving(void);

/* Closes a connection. Another process closes what lies in it unread, which may be descriptors. */
void hydnsd_connection_close(int connection);

/* True when the next message brings descriptors; it stays unread. */
bool hydnsd_connection_has_fds(int connection);
/* The same, and the type of a plugin's message (0: it has none). False: there is no message. */
bool hydnsd_connection_peek(int connection, uint32_t *type, bool *has_fds);

/* The porter itself, in a process of its own. */
int hydnsd_porter_main(void);

#endif
