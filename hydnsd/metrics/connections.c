/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/metrics/connections.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct metrics_connection {
	bool used;
	bool ends;                     /* shut down, but not closed yet: counts no more */
	bool asked;
	int fd;
	sa_family_t family;            /* and address: bounds for each do not hold for AF_UNIX */
	uint8_t address[16];
	uint64_t since_ms;
};

struct metrics_connections {
	pthread_mutex_t lock;
	struct metrics_connection slot[METRICS_SLOTS];
};

struct metrics_connections *metrics_connections_new(void)
{
	struct metrics_connections *all = calloc(1, sizeof(*all));

	if (all)
		pthread_mutex_init(&all->lock, NULL);
	return all;
}

void metrics_connections_free(struct metrics_connections *all)
{
	pthread_mutex_destroy(&all->lock);
	free(all);
}

static void read_address(struct metrics_connection *c, const struct sockaddr *from)
{
	c->family = from ? from->sa_family : AF_UNIX;
	if (c->family == AF_INET)
		memcpy(c->address, &((const struct sockaddr_in *)from)->sin_addr, 4);
	else if (c->family == AF_INET6)
		memcpy(c->address, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
}

static bool same_address(const struct metrics_connection *a, const struct metrics_connection *b)
{
	return a->family == b->family && a->family != AF_UNIX && !memcmp(a->address, b->address, sizeof(a->address));
}

static void shut(struct metrics_connection *c)
{
	c->ends = true;
	shutdown(c->fd, SHUT_RDWR);    /* the HTTP library sees the end, and closes it */
}

/* a gives way sooner than b. */
static bool sooner(const struct metrics_connection *a, const struct metrics_connection *b)
{
	return a->asked != b->asked ? !a->asked : a->since_ms < b->since_ms;
}

/* Shuts one down if there are more than so many, new included; of_address: counts those of its address alone. */
static void make_room(struct metrics_connections *all, const struct metrics_connection *new, bool of_address, unsigned most)
{
	struct metrics_connection *first = NULL;
	unsigned count = 0;

	for (struct metrics_connection *c = all->slot; c < all->slot + METRICS_SLOTS; c++) {
		if (!c->used || c->ends || (of_address && !same_address(c, new)))
			continue;
		count++;
		if (c != new && (!first || sooner(c, first)))
			first = c;
	}
	if (count > most && first)
		shut(first);
}

struct metrics_connection *metrics_connection_begin(struct metrics_connections *all, int fd, const struct sockaddr *from, uint64_t now_ms)
{
	struct metrics_connection *c;

	pthread_mutex_lock(&all->lock);
	for (c = all->slot; c < all->slot + METRICS_SLOTS && c->used; c++)
		;
	if (c == all->slot + METRICS_SLOTS) {
		c = NULL;
	} else {
		*c = (struct metrics_connection){ .used = true, .fd = fd, .since_ms = now_ms };
		read_address(c, from);
		make_room(all, c, true, METRICS_CONNECTIONS_PER_ADDRESS);
		make_room(all, c, false, METRICS_CONNECTIONS);
	}
	pthread_mutex_unlock(&all->lock);
	return c;
}

void metrics_connection_asked(struct metrics_connections *all, struct metrics_connection *c)
{
	pthread_mutex_lock(&all->lock);
	c->asked = true;
	pthread_mutex_unlock(&all->lock);
}

void metrics_connection_end(struct metrics_connections *all, struct metrics_connection *c)
{
	pthread_mutex_lock(&all->lock);
	c->used = false;
	pthread_mutex_unlock(&all->lock);
}

void metrics_connections_expire(struct metrics_connections *all, uint64_t now_ms)
{
	pthread_mutex_lock(&all->lock);
	for (struct metrics_connection *c = all->slot; c < all->slot + METRICS_SLOTS; c++)
		if (c->used && !c->ends && now_ms - c->since_ms >= METRICS_CONNECTION_MS)
			shut(c);
	pthread_mutex_unlock(&all->lock);
}
