/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A hand-made plugin, for what the plugin library would never send. For cmocka tests. */
#ifndef HYDNSD_TESTS_CLIENT_H
#define HYDNSD_TESTS_CLIENT_H

#include "hydnsd/tests/build.h"
#include "plugin/internal.h"

#define CLIENT_RINGS 2

struct client {
	int sock;
	uint32_t seq;                  /* of the last message sent */
	unsigned rings;
	struct hydns_producer ring[CLIENT_RINGS];
	struct hydns_pages *pages;
	struct hydns_channel_message in;
	int doorbell;
	uint32_t stale_ttl, stale_longest; /* of HELLO */
};

/* Connects and gets READY. The access list allows all clients. */
void client_open(struct client *c);
/* The same with so many rings, at most CLIENT_RINGS, and this UDP socket as a service (-1: none). */
void client_open_as(struct client *c, unsigned rings, int service);
/* The same, where rules outlive the resolver for so many seconds, with that TTL. */
void client_open_stale(struct client *c, int service, uint32_t ttl, uint32_t longest);
/* As if its process were killed: unmaps the page, and closes all but the service. */
void client_crash(struct client *c);
/* Connects again, with rings and page, and gets READY. Returns whether the page was adopted. */
bool client_reopen(struct client *c, int service);
void client_close(struct client *c);
/* Sends HELLO with these descriptors as its rings, then the page if there is one. Returns the type of the reply, which is in
 * c->in. */
uint32_t client_hello(struct client *c, const int *ring, unsigned rings);
void client_send(struct client *c, uint32_t type, const void *payload, size_t len);
/* Returns the type of the next message, which is in c->in; 0: none came within WAIT_MS. */
uint32_t client_receive(struct client *c);
bool client_has_message(const struct client *c);
void client_withdraw(struct client *c, uint32_t scope, const uint8_t *name, size_t len, uint64_t generation);

/* Offers an address of this name ("www.example."), made at this generation. Waits until the ring has room. */
void client_offer(struct client *c, unsigned ring, const char *name, uint64_t generation);
/* Any frame. */
void client_put(struct client *c, unsigned ring, const void *frame, uint32_t len);
/* Any other answer, with the epoch of the page. */
void client_offer_spec(struct client *c, unsigned ring, const struct build_spec *spec);
/* The same as client_offer(), to stay. */
void client_preload(struct client *c, unsigned ring, const char *name, uint64_t generation);
void client_changed(struct client *c, unsigned ring, const uint8_t *name, uint8_t len, uint64_t generation);
/* True when hydnsd has acted upon everything that was put into the rings. */
bool client_taken(const struct client *c);

#endif
