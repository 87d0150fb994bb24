/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Bounds on HTTP connections. None lives longer than a few seconds, however slowly its client sends or reads. When there are too
 * many, of one address or in all, the oldest that has not asked for anything yet gives way to the new one, else the oldest: so
 * clients that are slow keep out nobody who is not.
 */
#ifndef HYDNSD_METRICS_CONNECTIONS_H
#define HYDNSD_METRICS_CONNECTIONS_H

#include <stdint.h>
#include <sys/socket.h>

#define METRICS_CONNECTIONS             64
#define METRICS_CONNECTIONS_PER_ADDRESS 16
#define METRICS_CONNECTION_MS           10000
/* Those that were told to end, but that the HTTP library has not closed yet, need room, too. */
#define METRICS_SLOTS                   (2 * METRICS_CONNECTIONS)

struct metrics_connections;
struct metrics_connection;

/* NULL: out of memory. */
struct metrics_connections *metrics_connections_new(void);
void metrics_connections_free(struct metrics_connections *all);

/* A new connection; from: its peer, or NULL. Others may be shut down for it. NULL: no slot. */
struct metrics_connection *metrics_connection_begin(struct metrics_connections *all, int fd, const struct sockaddr *from, uint64_t now_ms);
/* It has sent a whole request. */
void metrics_connection_asked(struct metrics_connections *all, struct metrics_connection *c);
/* To be called before its descriptor is closed. */
void metrics_connection_end(struct metrics_connections *all, struct metrics_connection *c);
/* Shuts down those that have lasted too long. By any thread. */
void metrics_connections_expire(struct metrics_connections *all, uint64_t now_ms);

#endif
