/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Reads names and RRs of a DNS message that may be hostile. The header is not there: data begins with octet 12, the question,
 * as in offers and rules. Offsets are those of the whole message, so that compression pointers can be used as they are.
 */
#ifndef HYDNSD_RULES_WIRE_H
#define HYDNSD_RULES_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/dns.h"
#include "hydns/rule.h"

#define HYDNSD_HEADER 12
/* Longest message that can become a rule: the answer must fit the largest slot. */
#define HYDNSD_MESSAGE_MAX (HYDNSD_HEADER + HYDNS_QUESTION_MAX + HYDNS_SLOT_MOST)


struct hydnsd_message {
	const uint8_t *data;           /* octet HYDNSD_HEADER of the message */
	uint32_t end;                  /* length of the message */
	uint32_t question_name;        /* octets of the name in the question, uncompressed */
};

struct hydnsd_name {
	uint8_t len;                   /* with the root label */
	uint8_t octet[HYDNS_NAME_MAX]; /* lower case, uncompressed */
};

struct hydnsd_rr {
	uint32_t start, end;
	uint32_t ttl_at;
	uint32_t rdata;
	uint32_t ttl;                  /* host order */
	uint16_t type, class, rdlen;   /* host order */
	struct hydnsd_name owner;
};

/* What is found while names are read. */
struct hydnsd_marks {
	uint8_t octet[HYDNSD_MESSAGE_MAX]; /* by offset, 1: a compression pointer leads there. These must not move or change */
	uint32_t pointers;             /* first of a compressed name: how many there are, ... */
	uint32_t least;                /* ... the least offset to which one leads, ... */
	uint16_t pointer[HYDNS_POINTERS_MOST]; /* ... and the offsets where they stand: of as many as there is room for */
};

/* True for exactly one lower-case, uncompressed name of len octets. */
bool hydnsd_name_valid(const uint8_t *name, size_t len);
/* True when a equals b or lies below it. Both lower case, uncompressed. */
bool hydnsd_name_below(const struct hydnsd_name *a, const uint8_t *b, size_t b_len);

/*
 * Reads the name at *pos, which must end before limit, and moves *pos behind it. compressed: pointers are allowed. Each must
 * lead back, to a label of the question's name or into the answer. marks may be NULL.
 */
bool hydnsd_name_read(const struct hydnsd_message *m, uint32_t *pos, uint32_t limit, bool compressed,
		      struct hydnsd_name *out, struct hydnsd_marks *marks);
/* Reads owner name and fixed part of the RR at *pos, and moves *pos behind its RDATA, which it does not read. */
bool hydnsd_rr_read(const struct hydnsd_message *m, uint32_t *pos, struct hydnsd_rr *out,
		    struct hydnsd_marks *marks);

/* The target of a CNAME. The answer depends on it also when the target owns none of its records, as in a negative answer.
 * False: rr is no CNAME, or is unreadable. */
bool hydnsd_rr_target(const struct hydnsd_message *m, const struct hydnsd_rr *rr, struct hydnsd_name *out);

/* Iterator over the left-out names of a valid block (HYDNS_RULE_LEFT_OUT). */
struct hydnsd_left_out {
	const uint8_t *at;
	unsigned left;
};
/* block: NULL when there are none. */
struct hydnsd_left_out hydnsd_left_out_names(const uint8_t *block);
/* False: there is no other. */
bool hydnsd_left_out_next(struct hydnsd_left_out *names, struct hydnsd_name *out);

/* A type for questions, messages or transactions, not for data (RFC 6895 section 3.1; OPT: RFC 6891). */
static inline bool hydnsd_type_is_meta(uint16_t type)
{
	return type == 0 || type == 41 || (type >= 128 && type <= 255);
}

/* Offset of the first RR. */
static inline uint32_t hydnsd_answer_start(const struct hydnsd_message *m)
{
	return HYDNSD_HEADER + m->question_name + 4;
}

static inline const uint8_t *hydnsd_at(const struct hydnsd_message *m, uint32_t offset)
{
	return m->data + (offset - HYDNSD_HEADER);
}

static inline uint16_t hydnsd_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t hydnsd_u32(const uint8_t *p)
{
	return (uint32_t)hydnsd_u16(p) << 16 | hydnsd_u16(p + 2);
}

#endif
