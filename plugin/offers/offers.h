/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What becomes an offer, and the ring that carries it. Nothing here is for resolvers. */
#ifndef HYDNS_PLUGIN_OFFERS_OFFERS_H
#define HYDNS_PLUGIN_OFFERS_OFFERS_H

#include <stdatomic.h>
#include "plugin/plugin.h"

/* -- key.c: names and questions as keys ------------------------------------------------------------- */
/* Octets of a well-formed uncompressed wire name with its root label; 0: malformed or longer than max. */
size_t hydns_name_length(const uint8_t *name, size_t max);
/* len octets of src to dst in lower case (dst may be src). */
void hydns_name_lower(uint8_t *dst, const uint8_t *src, size_t len);
/* hydns_key_hash() of the lower-cased question; the name may be in any case. authority is 0: the key is
 * the process's own. */
uint64_t hydns_question_key(const struct hydns_question *q, const uint64_t seed[2]);

/* -- wire.c: what may be offloaded ------------------------------------------------------------------- */
struct hydns_wire_answer {
	uint16_t reply_flags;            /* network order, as struct hydns_offer */
	uint16_t ancount, nscount, arcount; /* network order, without the OPT */
	uint16_t answer;                 /* offset into the message of what follows the question ... */
	uint16_t answer_len;             /* ... and its octets, without the OPT */
	uint32_t ttl;                    /* seconds; smallest of all records */
	uint16_t edns_size;              /* payload size of the OPT; 0: there is none */
	uint16_t answer_names;           /* the first of these, which the answer section shows */
	uint16_t names;                  /* names that the answer is built from, beside the question's: */
	uint16_t name[2 * HYDNS_TTLS_MAX]; /* ... owners and CNAME targets, offsets into the message */
	uint16_t rrtype[2 * HYDNS_TTLS_MAX]; /* of the owner's RRset (its RRSIGs count to it); target: 0 */
};
/* HYDNS_NOT_OFFERED_NONE, or why the kernel path can't reproduce this reply to this question and the number that goes with the
 * reason; *out only on success. */
enum hydns_not_offered_why hydns_wire_dissect(const uint8_t *wire, size_t len, const struct hydns_question *q,
				       struct hydns_wire_answer *out, uint32_t *value);
/*
 * Reads a name that may be compressed (RFC 1035 section 4.1.4; pointers lead backwards only). name: at
 * least HYDNS_NAME_MAX octets, filled in lower case with *name_len octets, or NULL for both. Returns the
 * offset after the name where it stands, or 0 when it is malformed.
 */
size_t hydns_wire_name(const uint8_t *wire, size_t len, size_t at, uint8_t *name, size_t *name_len);

/* -- ring.c: the producer of one ring --------------------------------------------------------------- */
struct hydns_producer {
	struct hydns_ring *ring;         /* shared header, the frames HYDNS_RING_DATA after it */
	uint32_t head;                   /* our own: hydnsd could write the shared one */
	int fd;                          /* sealed memfd */
};
int hydns_producer_open(struct hydns_producer *r);       /* negative errno */
void hydns_producer_close(struct hydns_producer *r);
/* Room for a frame of len octets (a multiple of 8) in one piece that leaves so many spare, or NULL: full. */
void *hydns_producer_reserve(struct hydns_producer *r, uint32_t len, uint32_t spare);
/* Publishes the reserved frame. True when hydnsd sleeps and the doorbell must be written. */
bool hydns_producer_commit(struct hydns_producer *r, uint32_t len);
/* Less than half of the ring is in use. */
bool hydns_producer_roomy(const struct hydns_producer *r);
/* Copies the frame at this position, of those before end, as far as there is room; returns its length, 0: it is none.
 * Another thread than the producer's may call it; whether hydnsd has given the frame back meanwhile it must look itself. */
uint32_t hydns_producer_peek(const struct hydns_producer *r, uint32_t position, uint32_t end, void *out, size_t room);

/* -- not_offered.c: why answers were not offered ----------------------------------------------------------------- */
/* In the part of a ring's memory that follows its frames. */
void hydns_not_offered_record(struct hydns_ring *ring, uint64_t key, enum hydns_not_offered_why why, uint32_t value, uint64_t now_ms);

/* -- left_out.c: names that an answer rests on and its reply does not show ----------------------------- */
#define HYDNS_LEFT_OUT_MAX 1024          /* octets; a rule has less room */
struct hydns_left_out {
	uint16_t len;                    /* octets in use: 0, or those of a block as in struct hydns_rule */
	bool overflow;                   /* some were too many */
	uint8_t block[HYDNS_LEFT_OUT_MAX];
};
void hydns_left_out_clear(struct hydns_left_out *l);
/* name: any case, well-formed. One that is there already is not added. */
void hydns_left_out_add(struct hydns_left_out *l, const uint8_t *name, size_t len);
/* The reply shows this name, which is in lower case. */
void hydns_left_out_strike(struct hydns_left_out *l, const uint8_t *name, size_t len);

#endif
