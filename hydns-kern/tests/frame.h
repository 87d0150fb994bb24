/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queries as frames, answers as rules, and checks of replies. Plain code, octet by octet, that shares with the program under
 * test only the layouts of hydns/rule.h and hydns/resolver.h. Integers are in host order unless said.
 */
#ifndef HYDNS_TEST_FRAME_H
#define HYDNS_TEST_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/rule.h"

#define FRAME_MAX 4096

struct frame {
	uint8_t data[FRAME_MAX];
	size_t len;
	size_t l3, udp, dns;     /* offsets of the headers */
	bool ipv6;
};

/* What a query has; a member of 0 means the ordinary. */
struct query {
	const char *name;        /* dotted, as the client writes it; "." is the root */
	uint16_t qtype;
	uint16_t id;
	bool ipv6, ad, edns, want_do, norec;
	uint16_t edns_size;
	const uint8_t *options;  /* EDNS options */
	uint16_t options_len;
	const uint8_t *cookie;   /* 24 octets of the COOKIE option expected in the reply; NULL: it has none */
	unsigned vlan_tags;
};

#define SERVICE_PORT 53
#define CLIENT_PORT  40001

extern const uint8_t client4[4], service4[4], client6[16], service6[16];
extern const uint8_t client_mac[6], service_mac[6];

#define NAME_ZERO '\177' /* stands for a zero octet in a name */
/* Wire format of a dotted name; returns its length with the root label. */
size_t name_wire(const char *dotted, uint8_t *out);
void frame_query(struct frame *f, const struct query *q);
/* Writes the lengths and checksums that f->len needs. */
void frame_seal(struct frame *f);
/* Writes the checksums alone, over the UDP datagram as its header says, but not beyond the frame. */
void frame_checksums(struct frame *f);
/* Writes the UDP checksum that a local sender leaves for the hardware: the pseudo-header's sum alone. */
void frame_partial(struct frame *f);
/* RFC 1071 sum, folded, of octets in network order, added to start. */
uint16_t sum16(const uint8_t *p, size_t len, uint32_t start);
/* NULL, or what is wrong with a frame's lengths or checksums. */
const char *frame_wrong(const struct frame *f);

/* An answer: what is between the question and the OPT. */
struct answer {
	uint8_t data[2048];
	uint16_t len;
	uint16_t ttl[HYDNS_TTLS_MAX];
	unsigned ttls;
	uint16_t count[3];       /* records by section */
	uint16_t flags;          /* of the reply, without RD, AD, CD */
	bool secure, static_ttl;
	const uint8_t *errors;   /* EDNS options of extended errors, which clients with EDNS get */
	uint16_t errors_len;
	const uint16_t *pointer; /* of a template: where its compression pointers are in data */
	unsigned pointers;
	const struct hydns_gap *gap; /* of a template: NULL, or what it leaves out of data, where zeros are */
	uint64_t account;        /* what its responses are counted by, or 0 */
	struct hydns_rotation rotation[HYDNS_ROTATIONS_MAX];
	unsigned rotations;
	bool shuffles;           /* the resolver rotates the records after the first one, too */
};
enum section { ANSWER, AUTHORITY, ADDITIONAL };
#define REPLY_FLAGS 0x8080       /* QR, RA */
#define REPLY_AA    0x0400
#define REPLY_TC    0x0200
#define REPLY_AD    0x0020

/* Appends a record; owner NULL: a pointer to the question's name. */
void answer_add(struct answer *a, enum section s, const char *owner, uint16_t type, uint32_t ttl,
		const void *rdata, uint16_t rdlen);
/* Appends count A records of the question's name; several rotate. */
void answer_addresses(struct answer *a, unsigned count, uint32_t ttl);

/* Makes the last count records an RRset that rotates. */
void answer_rotates(struct answer *a, unsigned count);

/* Writes the DNS message that the resolver would send to q from a, seconds after it got a. rotation: number of the record
 * that comes first in a rotated RRset, modulo their count. Returns the message's length. */
size_t answer_message(const struct answer *a, const struct query *q, uint32_t seconds, uint32_t rotation,
		      uint16_t edns_size, uint8_t *out);

#endif
