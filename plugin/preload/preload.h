/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Preloaded zones: a thread asks the resolver itself for all that a zone has answers for, so that these are offered and stay in the
 * kernel until they are withdrawn; and again for what was withdrawn, or came. Nothing here is for resolvers.
 */
#ifndef HYDNS_PLUGIN_PRELOAD_PRELOAD_H
#define HYDNS_PLUGIN_PRELOAD_PRELOAD_H

#include <sys/socket.h>
#include "hydns/preload.h"
#include "plugin/plugin.h"

/* -- list.c: questions to ask ------------------------------------------------------------------------------ */
#define HYDNS_PRELOAD_ALL ((1U << HYDNS_PRELOAD_VARIANTS) - 1)

struct hydns_preload_entry {
	uint16_t qtype;                /* host order */
	uint8_t variants;              /* a bit each */
	uint8_t name_len;
	uint8_t name[];                /* wire format */
} __attribute__((packed));

/* Zero: empty. */
struct hydns_preload_list {
	uint8_t *octets;
	size_t len, room;
	size_t questions;              /* counting each variant */
	const _Atomic bool *stopping;  /* no more is taken once it is set; NULL: never */
};
void hydns_preload_list_free(struct hydns_preload_list *l);
/* False: out of memory, or the thread is to end. */
bool hydns_preload_list_append(struct hydns_preload_list *l, const uint8_t *name, size_t len, uint16_t qtype, uint8_t variants);
/* The entry at *at, which moves behind it; NULL: the end. */
const struct hydns_preload_entry *hydns_preload_list_next(const struct hydns_preload_list *l, size_t *at);

/* -- ask.c: asking them ------------------------------------------------------------------------------------ */
struct hydns_preload_asker {
	int fd;                        /* connected to the resolver; -1: closed */
	int stop_fd;                   /* becomes readable when the thread is to end; borrowed */
	uint16_t edns_size;
	uint16_t turn;                 /* part of the next query's ID */
};
/* Opens and connects the socket. *from: its own address. 0 or a negative errno. */
int hydns_preload_asker_open(struct hydns_preload_asker *a, const struct sockaddr *to, socklen_t len, struct sockaddr_storage *from);
void hydns_preload_asker_close(struct hydns_preload_asker *a);
struct hydns_preload_asked {
	size_t asked, replied, refused; /* queries; replies; of these REFUSED */
};
/* Asks the questions from octet at to octet end of the list, and waits for the replies. False: the thread is to end. */
bool hydns_preload_ask(struct hydns_preload_asker *a, const struct hydns_preload_list *l, size_t at, size_t end,
		       struct hydns_preload_asked *out);

/* -- preload.c: the thread --------------------------------------------------------------------------------- */
struct hydns_preload;
/* A version of a zone is about to be committed, or the zone to get other data; and it has been: now what it brings is asked for. Any
 * thread. origin: any case. */
void hydns_preload_version(struct hydns_preload *l, const struct hydns_zone_version *v);
void hydns_preload_settled(struct hydns_preload *l, const uint8_t *origin, size_t len);
/* Ends the thread, and frees; ignores NULL. */
void hydns_preload_stop(struct hydns_preload *l);

#endif
