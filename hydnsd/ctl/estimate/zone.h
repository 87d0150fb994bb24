/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What of a zone its answers' lengths follow from: names, the lengths of their RRsets, and whose addresses these ask for. No name
 * and no data are kept, but a hash of each name, so that a name takes some 100 octets, and records may come in any order.
 */
#ifndef HYDNSD_CTL_ESTIMATE_ZONE_H
#define HYDNSD_CTL_ESTIMATE_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/common.h"

#define CTL_ZONE_NONE UINT32_MAX       /* no such name, RRset or target */
#define CTL_ZONE_ORIGIN 0U             /* the origin's number as a name */

struct ctl_rrset {
	uint32_t next;                 /* of the same name; or CTL_ZONE_NONE */
	uint16_t type;
	uint16_t records;              /* 0: only its signatures have come so far */
	uint16_t signatures;
	uint32_t octets;               /* of its records in a reply, owner names compressed */
	uint32_t signature_octets;
	uint32_t targets;              /* the first; or CTL_ZONE_NONE */
};

/* A name that a record points to, and whose addresses go into the additional section; or an alias' target. */
struct ctl_target {
	uint32_t next;                 /* of the same RRset */
	uint32_t name;                 /* its number; CTL_ZONE_NONE: it is in another zone */
	uint16_t len;
	uint16_t service_len;          /* of the name below it at which named looks for TLSA; 0: there is none */
};

struct ctl_zone_name {
	uint64_t hash;
	uint32_t parent;               /* CTL_ZONE_NONE: of the origin */
	uint32_t sets;                 /* the first; CTL_ZONE_NONE: only names below it, or records that point to it, have come */
	uint32_t len;
};

struct ctl_zone {
	uint8_t origin[HYDNS_NAME_MAX];
	size_t origin_len;
	struct ctl_zone_name *name;
	struct ctl_rrset *set;
	struct ctl_target *target;
	uint32_t names, sets, targets;
	uint32_t *index;               /* open addressing: a name's number plus one; 0: empty */
	uint32_t mask;                 /* of the index */
	uint64_t records, outside;     /* of the zone; not of it, so ignored */
	uint64_t nsec3, nsec3_octets;  /* NSEC3 records with their signatures */
	bool opt_out;
};

/* One record, as the zone needs it. Names are in wire format, lower case. */
struct ctl_record {
	const uint8_t *owner;
	size_t owner_len;
	uint16_t type;                 /* of a signature, the type that it covers ... */
	bool is_signature;             /* ... and true */
	uint32_t octets;               /* in a reply */
	bool opt_out;                  /* NSEC3 with that flag */
	const uint8_t *target;         /* NULL: none */
	size_t target_len, service_len;
};

/* False: no memory. */
bool ctl_zone_open(struct ctl_zone *z, const uint8_t *origin, size_t len);
void ctl_zone_close(struct ctl_zone *z);
bool ctl_zone_add(struct ctl_zone *z, const struct ctl_record *r);

/* The name's RRset of this type, if it has any record; or NULL. */
const struct ctl_rrset *ctl_zone_find(const struct ctl_zone *z, uint32_t name, uint16_t type);
/* The topmost delegation at or above the name; CTL_ZONE_NONE: there is none. */
uint32_t ctl_zone_cut(const struct ctl_zone *z, uint32_t name);
bool ctl_zone_is_signed(const struct ctl_zone *z);

#endif
