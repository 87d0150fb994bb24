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
/* Of well-formed names in wire format and lower case: whether the last of_len octets of the name are a name; whether they are this one. */
bool hydns_name_ends_with(const uint8_t *name, size_t len, size_t of_len);
bool hydns_name_is_in(const uint8_t *name, size_t len, const uint8_t *of, size_t of_len);
/* hydns_key_hash() of the lower-cased question; the name may be in any case. The resolver index is 0, because the key is
 * the process's own. */
uint64_t hydns_question_key(const struct hydns_question *q, const uint64_t seed[2]);

/* -- wire.c: what may be offloaded ------------------------------------------------------------------- */
/* A name that the answer depends on: an owner name, or the target of an alias. */
struct hydns_wire_name {
	uint16_t text;                   /* offset into the answer's text: so many octets ... */
	uint8_t len;                     /* ... of the uncompressed name in lower case; others may share them */
	uint16_t place;                  /* offset into the message of the name, or of what its pointer leads to */
	uint16_t rrtype;                 /* of the owner's RRset, of which its RRSIGs are part; else HYDNS_NAMES_ALL */
};
#define HYDNS_WIRE_NAMES (1 + 2 * HYDNS_RECORDS_MAX)
struct hydns_wire_answer {
	uint16_t reply_flags;            /* network order, as struct hydns_offer */
	uint16_t ancount, nscount, arcount; /* network order, without the OPT */
	uint16_t answer;                 /* offset into the message of what follows the question ... */
	uint16_t answer_len;             /* ... and its octets, without the OPT */
	uint32_t ttl;                    /* seconds; smallest of all records */
	uint16_t edns_size;              /* payload size of the OPT; 0: there is none */
	uint16_t errors, errors_len;     /* offset into the message, and octets, of the OPT's extended errors; 0: there are none */
	uint16_t names;                  /* the question's name comes first */
	uint16_t answer_names;           /* the first of them, up to the answer section's end */
	struct hydns_wire_name name[HYDNS_WIRE_NAMES];
	uint8_t text[(HYDNS_WIRE_NAMES + 1) * HYDNS_NAME_MAX]; /* one more: a name is read before it is known to be added */
};
/* HYDNS_NOT_OFFERED_NONE, or why the program can't reproduce this reply to this question; then *value is the number that
 * belongs to the reason, and *a undefined. a need not be initialized. */
enum hydns_not_offered_why hydns_wire_dissect(const uint8_t *wire, size_t len, const struct hydns_question *q,
					      struct hydns_wire_answer *a, uint32_t *value);

/* Whether the reply may be the answer to other questions, too: a referral, or a denial with one record, which thus proves nothing of its
 * own. proves: a denial that does, with SOA, proof and their signatures. */
bool hydns_wire_may_be_for_all(const uint8_t *wire, size_t len, bool proves);
/* Whether it is its zone's own, in which there is nothing that was asked for: a denial, which shows the zone's SOA, and no referral. */
bool hydns_wire_denies(const uint8_t *wire, size_t len);
/* Calls fn for each name that may be compressed in the reply of len octets, after its question: owner names, and those in NS and SOA
 * records. Not for the owners of NSEC records, which exist, nor of signatures. name: lower case. False: it is malformed. */
bool hydns_wire_names(const uint8_t *wire, size_t len, void (*fn)(void *arg, const uint8_t *name, size_t name_len), void *arg);

/* -- ring.c: the producer of one ring --------------------------------------------------------------- */
/* Octets of a ring that other frames leave free. An offer is repeated, and hydnsd finds the end of a resolution by itself; a
 * change or TTL update that finds no room ends all rules. */
#define HYDNS_RING_FOR_CHANGES (HYDNS_RING_BYTES / 4)
struct hydns_producer {
	struct hydns_ring *ring;         /* shared header, the frames HYDNS_RING_DATA after it */
	uint32_t head;                   /* our own: hydnsd could write the shared one */
	int fd;                          /* sealed memfd */
};
int hydns_producer_open(struct hydns_producer *r);       /* negative errno */
void hydns_producer_close(struct hydns_producer *r);
/* Room for a frame of len octets (a multiple of 8) in one piece, if at least spare octets stay free; else NULL. */
void *hydns_producer_reserve(struct hydns_producer *r, uint32_t len, uint32_t spare);
/* Publishes the reserved frame. True when hydnsd sleeps and the doorbell must be written. */
bool hydns_producer_commit(struct hydns_producer *r, uint32_t len);
/* Less than half of the ring is in use. */
bool hydns_producer_roomy(const struct hydns_producer *r);
/* Copies the frame at this position, which must end at or before end, up to room octets; returns its length, 0: it is
 * broken. Any thread may call it; it must look itself whether hydnsd has consumed the frame meanwhile. */
uint32_t hydns_producer_peek(const struct hydns_producer *r, uint32_t position, uint32_t end, void *out, size_t room);

/* -- not_offered.c: why answers were not offered --------------------------------------------------------- */
/* In the part of a ring's memory that follows its frames. */
void hydns_not_offered_record(struct hydns_ring *ring, uint64_t key, enum hydns_not_offered_why why, uint32_t value,
			      uint64_t now_ms);

/* -- doorbell.c ----------------------------------------------------------------------------------------- */
/* Publishes the frame of len octets that was reserved in the thread's ring, and wakes hydnsd if it sleeps. */
void hydns_thread_commit(struct hydns_thread *t, uint32_t len);

/* -- left_out.c: left-out names of the next offer ---------------------------------------------------------- */
#define HYDNS_LEFT_OUT_MAX   1024        /* octets; a rule has less room */
#define HYDNS_LEFT_OUT_NAMES 255         /* their number is one octet */
struct hydns_left_out {
	uint16_t len;                    /* octets in use: 0, or those of a block as in struct hydns_rule */
	bool overflow;                   /* some found no room */
	uint8_t block[HYDNS_LEFT_OUT_MAX];
	uint8_t name_len[HYDNS_LEFT_OUT_NAMES]; /* of the block's names, as they stand in it */
};
/* Goes over the names, each at block + at with name_len[i] octets. */
#define HYDNS_FOR_LEFT_OUT(l, i, at) \
	for (size_t i = 0, at = 1; at < (l)->len; at += (l)->name_len[i++])
void hydns_left_out_clear(struct hydns_left_out *l);
/* name: any case, well-formed. A name that is there already is not added again. */
void hydns_left_out_add(struct hydns_left_out *l, const uint8_t *name, size_t len);
/* The reply shows this name, which is in lower case. */
void hydns_left_out_strike(struct hydns_left_out *l, const uint8_t *name, size_t len);

#endif
