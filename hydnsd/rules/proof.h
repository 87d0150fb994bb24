/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Whether the authority section of an offer is a denial with its proof, as servers of signed zones send it to a query with DO. */
#ifndef HYDNSD_RULES_PROOF_H
#define HYDNSD_RULES_PROOF_H

#include "hydns/nsec3.h"
#include "hydnsd/rules/wire.h"

enum hydnsd_denied { HYDNSD_DENIES_NAME, HYDNSD_DENIES_TYPE };

/*
 * True if the first records of the message, so many of them, are the SOA of a zone that this name is in, wherever it stands, and the zone's
 * proof: of a name NSEC records, at most 2; of a type one NSEC record, or NSEC3 records, at most 3. Each RRset is followed by its
 * signatures.
 */
bool hydnsd_is_proof(const struct hydnsd_message *m, unsigned records, enum hydnsd_denied denied, const uint8_t *name, uint8_t len);
/*
 * The same of the proof with NSEC3 records that names do not exist whose closest encloser is this name, and that hash to what is behind
 * this hash in the chain: the record of the closest encloser, the one that covers the hash or has it, and the one that covers the
 * wildcard (RFC 5155 section 7.2.2). These in that order, each once, and no other.
 */
bool hydnsd_is_proof_by_hash(const struct hydnsd_message *m, unsigned records, const uint8_t hash[HYDNS_SHA1_OCTETS], const uint8_t *name,
			     uint8_t len);
/*
 * The same of names below this one, all of them: the first record is that of a name above it, and the second one for the name right below
 * that, which is this name or one above it.
 */
bool hydnsd_is_proof_from_above(const struct hydnsd_message *m, unsigned records, const uint8_t *name, uint8_t len);

#endif
