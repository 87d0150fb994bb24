/* SPDX-License-Identifier: GPL-2.0-only */
/* A resolver whose zones the program forwards, for tests, and what its upstream servers send. Failures end the test, by cmocka. */
#ifndef HYDNS_TEST_FORWARDING_H
#define HYDNS_TEST_FORWARDING_H

#include "parking.h"
#include "hydns/forwarding.h"

/* Ports that requests leave from. */
#define FIRST       20000
#define PORTS       4096
#define NUMBER      7               /* of the configuration */
#define ZONE        5               /* its place in the plugin's list */
#define GENERATION  41
/* Numbers of upstream servers. */
#define SERVER      2
#define SERVER6     3

struct forwarding {
	struct parking parking;
	struct hydns_forwarding *told;    /* of RESOLVER */
};

extern const uint8_t server4[4], source4[4], server6[16], source6[16], hop_mac[6], own_mac[6];

/* Makes k forward example.com to SERVER. */
void forwarding_open(struct forwarding *f, struct kernel *k);
/* Ends all requests; k stays open. */
void forwarding_close(struct forwarding *f);
/* Adds a zone with these upstream servers (bits), or removes it. */
void forwarding_zone(struct forwarding *f, const char *name, __u32 upstreams, bool add);
/* Makes an upstream server usable, by a way without tags. */
void forwarding_way(struct forwarding *f, unsigned upstream, bool ipv6);

/* The answer that an honest server gives to a request, whose offsets are set. */
struct frame forwarding_reply(const struct frame *request, bool ipv6);
/* Puts octets before the Ethernet type, as VLAN tags are. */
void forwarding_tags(struct frame *f, const uint8_t *tags, size_t len);

#endif
