/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Makes an offer of an upstream server's answer, as the resolver would relay it: the same records in the same order, encoded as the resolver
 * encodes them (names compressed, TTLs of an RRset alike, no authority section in a positive answer). What the resolver might treat in
 * another way is left to it. Without I/O. The message is hostile input.
 */
#ifndef HYDNSD_FORWARDING_RELAY_H
#define HYDNSD_FORWARDING_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/ring.h"

/* Why an answer is left to the resolver. */
enum hydnsd_relay {
	HYDNSD_RELAYED,
#define HYDNSD_NOT_RELAYED(name, text) HYDNSD_NOT_RELAYED_##name,
#include "hydnsd/forwarding/not_relayed.def"
#undef HYDNSD_NOT_RELAYED
	HYDNSD_RELAYS
};
const char *hydnsd_relay_name(enum hydnsd_relay r);
const char *hydnsd_relay_text(enum hydnsd_relay r);

struct hydnsd_relay_terms {
	const uint8_t *name;           /* of the question, lower case */
	uint8_t name_len;
	uint16_t qtype;                /* network order */
	uint32_t max_ttl, max_negative_ttl;
	bool keeps_case;               /* HYDNS_RESOLVER_KEEPS_CASE: names are compressed only where their letters are the same */
	bool adds, soa_ttl;            /* HYDNS_FORWARDS_ADDS, HYDNS_FORWARDS_SOA_TTL */
	/* Whether the resolver would send queries for this name (lower case) where it sent this one. */
	bool (*same_zone)(void *arg, const uint8_t *name, uint8_t len);
	void *arg;
};

/* Octets of the longest offer. */
#define HYDNSD_RELAY_OFFER 2048

/* message: len octets, from the header on; its question is the request's. *offer, of HYDNSD_RELAY_OFFER octets: all but stamp, time and
 * sightings is set. */
enum hydnsd_relay hydnsd_relay(const uint8_t *message, size_t len, const struct hydnsd_relay_terms *terms,
			       struct hydns_offer *offer);

#endif
