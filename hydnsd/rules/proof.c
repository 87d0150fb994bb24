/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/proof.h"

#include <string.h>

#define NSECS_OF_NAME   2              /* the name's, and the wildcard's */
#define NSEC3S_OF_TYPE  3              /* of a name without data that only delegations without signatures make exist */

/* What was read so far. */
struct proof {
	struct hydnsd_rr set;          /* the RRset to which signatures may follow */
	bool has_signature;            /* ... and one has */
	struct hydnsd_name zone;
	unsigned nsecs, nsec3s;
};

static bool same_owner(const struct hydnsd_rr *a, const struct hydnsd_rr *b)
{
	return a->owner.len == b->owner.len && !memcmp(a->owner.octet, b->owner.octet, a->owner.len);
}

/* RFC 4034 section 3.1: RDATA begin with the type. */
static bool add_signature(struct proof *p, const struct hydnsd_message *m, const struct hydnsd_rr *rr)
{
	p->has_signature = rr->rdlen >= 2 && hydnsd_u16(hydnsd_at(m, rr->rdata)) == p->set.type && same_owner(rr, &p->set);
	return p->has_signature;
}

static bool add_set(struct proof *p, const struct hydnsd_rr *rr)
{
	if (!p->has_signature || !hydnsd_name_below(&rr->owner, p->zone.octet, p->zone.len))
		return false;
	p->nsecs += rr->type == HYDNS_TYPE_NSEC;
	p->nsec3s += rr->type == HYDNS_TYPE_NSEC3;
	p->set = *rr;
	p->has_signature = false;
	return rr->type == HYDNS_TYPE_NSEC || rr->type == HYDNS_TYPE_NSEC3;
}

static bool has_what_it_takes(const struct proof *p, enum hydnsd_denied denied)
{
	if (!p->has_signature)
		return false;
	if (denied == HYDNSD_DENIES_NAME)
		return p->nsecs && p->nsecs <= NSECS_OF_NAME && !p->nsec3s;
	return p->nsecs ? p->nsecs == 1 && !p->nsec3s : p->nsec3s && p->nsec3s <= NSEC3S_OF_TYPE;
}

bool hydnsd_is_proof(const struct hydnsd_message *m, unsigned records, enum hydnsd_denied denied, const uint8_t *name, uint8_t len)
{
	struct hydnsd_name of = { .len = len };
	uint32_t pos = hydnsd_answer_start(m);
	struct proof p = { 0 };
	struct hydnsd_rr rr;

	memcpy(of.octet, name, len);
	if (!records || !hydnsd_rr_read(m, &pos, &p.set, NULL) || p.set.type != HYDNS_TYPE_SOA ||
	    !hydnsd_name_below(&of, p.set.owner.octet, p.set.owner.len))
		return false;
	p.zone = p.set.owner;
	while (--records)
		if (!hydnsd_rr_read(m, &pos, &rr, NULL) ||
		    !(rr.type == HYDNS_TYPE_RRSIG ? add_signature(&p, m, &rr) : add_set(&p, &rr)))
			return false;
	return has_what_it_takes(&p, denied);
}
