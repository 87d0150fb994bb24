/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/proof.h"

#include <string.h>

#define NSECS_OF_NAME   2              /* the name's, and the wildcard's */
#define NSEC3S_OF_TYPE  3              /* of a name without data that only delegations without signatures make exist */
#define NSEC3S_OF_NAME  3              /* the closest encloser's, the name's, and the wildcard's */
#define NSEC3_FIXED     5              /* octets of RDATA before the salt */

/* What an NSEC3 record covers. */
struct link {
	uint8_t own[HYDNS_SHA1_OCTETS], next[HYDNS_SHA1_OCTETS];
	struct hydns_nsec3 how;
};

/* What was read so far. */
struct proof {
	struct hydnsd_rr set;          /* the RRset to which signatures may follow */
	bool has_signature;            /* ... and one has, or there was none yet */
	struct hydnsd_name zone;
	unsigned soas, nsecs, nsec3s;
	struct link link[NSEC3S_OF_NAME];
	unsigned links;                /* of the NSEC3 records, from the first on, those that could be read */
};

static bool same_owner(const struct hydnsd_rr *a, const struct hydnsd_rr *b)
{
	return a->owner.len == b->owner.len && !memcmp(a->owner.octet, b->owner.octet, a->owner.len);
}

/* RFC 4034 section 3.1: RDATA begin with the type. */
static bool add_signature(struct proof *p, const struct hydnsd_message *m, const struct hydnsd_rr *rr)
{
	p->has_signature = p->set.type && rr->rdlen >= 2 && hydnsd_u16(hydnsd_at(m, rr->rdata)) == p->set.type && same_owner(rr, &p->set);
	return p->has_signature;
}

/* RFC 5155 section 3.2. False: it is not as the program hashes. */
static bool read_link(const struct proof *p, const struct hydnsd_message *m, const struct hydnsd_rr *rr, struct link *out)
{
	const uint8_t *rdata = hydnsd_at(m, rr->rdata), *next;

	if (rr->owner.len != 1 + HYDNS_HASHED_LABEL + p->zone.len || !hydns_hash_of_label(rr->owner.octet, out->own) ||
	    rr->rdlen < NSEC3_FIXED || !hydns_nsec3_fits(rdata[0], hydnsd_u16(rdata + 2), rdata[4]) ||
	    rr->rdlen < NSEC3_FIXED + rdata[4] + 1 + HYDNS_SHA1_OCTETS)
		return false;
	out->how = (struct hydns_nsec3){ .iterations = rdata[3], .salt_len = rdata[4] };
	memcpy(out->how.salt, rdata + NSEC3_FIXED, rdata[4]);
	next = rdata + NSEC3_FIXED + rdata[4];
	memcpy(out->next, next + 1, HYDNS_SHA1_OCTETS);
	return next[0] == HYDNS_SHA1_OCTETS;
}

static bool add_set(struct proof *p, const struct hydnsd_message *m, const struct hydnsd_rr *rr)
{
	if (!p->has_signature || !hydnsd_name_below(&rr->owner, p->zone.octet, p->zone.len))
		return false;
	p->soas += rr->type == HYDNS_TYPE_SOA;
	p->nsecs += rr->type == HYDNS_TYPE_NSEC;
	p->nsec3s += rr->type == HYDNS_TYPE_NSEC3;
	if (rr->type == HYDNS_TYPE_NSEC3 && p->links < NSEC3S_OF_NAME && read_link(p, m, rr, &p->link[p->links]))
		p->links++;
	p->set = *rr;
	p->has_signature = false;
	return rr->type == HYDNS_TYPE_SOA || rr->type == HYDNS_TYPE_NSEC || rr->type == HYDNS_TYPE_NSEC3;
}

static bool has_what_it_takes(const struct proof *p, enum hydnsd_denied denied)
{
	if (!p->has_signature)
		return false;
	if (denied == HYDNSD_DENIES_NAME)
		return p->nsecs && p->nsecs <= NSECS_OF_NAME && !p->nsec3s;
	return p->nsecs ? p->nsecs == 1 && !p->nsec3s : p->nsec3s && p->nsec3s <= NSEC3S_OF_TYPE;
}

/* The zone is that of the first SOA. Of a name that has no NSEC3 record itself named puts the encloser's before that. */
static bool find_zone(struct proof *p, const struct hydnsd_message *m, unsigned records, const uint8_t *name, uint8_t len)
{
	struct hydnsd_name of = { .len = len };
	uint32_t pos = hydnsd_answer_start(m);
	struct hydnsd_rr rr = { 0 };

	memcpy(of.octet, name, len);
	while (records-- && rr.type != HYDNS_TYPE_SOA)
		if (!hydnsd_rr_read(m, &pos, &rr, NULL))
			return false;
	p->zone = rr.owner;
	return rr.type == HYDNS_TYPE_SOA && hydnsd_name_below(&of, rr.owner.octet, rr.owner.len);
}

/* One SOA, of a zone that the name is in, and so many records with it that may be a proof. */
static bool read_proof(struct proof *p, const struct hydnsd_message *m, unsigned records, const uint8_t *name, uint8_t len)
{
	uint32_t pos = hydnsd_answer_start(m);
	struct hydnsd_rr rr;

	p->has_signature = true;
	if (!find_zone(p, m, records, name, len))
		return false;
	while (records--)
		if (!hydnsd_rr_read(m, &pos, &rr, NULL) ||
		    !(rr.type == HYDNS_TYPE_RRSIG ? add_signature(p, m, &rr) : add_set(p, m, &rr)))
			return false;
	return p->soas == 1;
}

bool hydnsd_is_proof(const struct hydnsd_message *m, unsigned records, enum hydnsd_denied denied, const uint8_t *name, uint8_t len)
{
	struct proof p = { 0 };

	return read_proof(&p, m, records, name, len) && has_what_it_takes(&p, denied);
}

/* -- NSEC3 ---------------------------------------------------------------------------------------------------- */
/* Whether the hash lies behind the record's own and before the next one; the last record's next is the chain's first. */
static bool covers(const struct link *l, const uint8_t *hash)
{
	bool behind = memcmp(l->own, hash, HYDNS_SHA1_OCTETS) < 0, before = memcmp(hash, l->next, HYDNS_SHA1_OCTETS) < 0;

	return memcmp(l->own, l->next, HYDNS_SHA1_OCTETS) < 0 ? behind && before : behind || before;
}

static bool has(const struct link *l, const uint8_t *hash)
{
	return !memcmp(l->own, hash, HYDNS_SHA1_OCTETS);
}

/* Number of the record that covers the hash, or, if it may, has it; links: there is none. */
static unsigned record_for(const struct proof *p, const uint8_t *hash, bool may_have)
{
	unsigned i = 0;

	while (i < p->links && !covers(&p->link[i], hash) && !(may_have && has(&p->link[i], hash)))
		i++;
	return i;
}

static bool same_way(const struct proof *p)
{
	for (unsigned i = 1; i < p->links; i++)
		if (memcmp(&p->link[i].how, &p->link[0].how, sizeof(p->link[0].how)) != 0)
			return false;
	return true;
}

/* *hash: of the wildcard right below the name. False: it would be too long for a name. */
static bool hash_wildcard(const struct hydns_nsec3 *how, const uint8_t *name, uint8_t len, uint8_t *hash)
{
	uint8_t wildcard[HYDNS_NAME_MAX] = "\1*";

	if (len > HYDNS_NAME_MAX - 2)
		return false;
	memcpy(wildcard + 2, name, len);
	hydns_nsec3_hash(wildcard, len + 2U, how, hash);
	return true;
}

/* Whether the records are the first one, those of these numbers, and no other, each in its place. */
static bool are_all(const struct proof *p, unsigned of_name, unsigned of_wildcard)
{
	const unsigned count = 1U + (of_name > 0) + (of_wildcard > of_name);

	return of_name <= 1 && of_wildcard <= of_name + 1 && p->links == count;
}

/* Of SOA and NSEC3 records alone, all of which could be read. */
static bool read_links(struct proof *p, const struct hydnsd_message *m, unsigned records, const uint8_t *name, uint8_t len)
{
	return read_proof(p, m, records, name, len) && p->has_signature && !p->nsecs && p->links && p->links == p->nsec3s && same_way(p);
}

/* Whether the records are those of the encloser, whose own hash is given, of the next closer name's hash, and of the wildcard. */
static bool denies(const struct proof *p, const uint8_t *encloser, uint8_t len, const uint8_t own[HYDNS_SHA1_OCTETS],
		   const uint8_t hash[HYDNS_SHA1_OCTETS])
{
	uint8_t wildcard[HYDNS_SHA1_OCTETS];

	return has(&p->link[0], own) && hash_wildcard(&p->link[0].how, encloser, len, wildcard) &&
	       are_all(p, record_for(p, hash, true), record_for(p, wildcard, false));
}

bool hydnsd_is_proof_by_hash(const struct hydnsd_message *m, unsigned records, const uint8_t hash[HYDNS_SHA1_OCTETS], const uint8_t *name,
			     uint8_t len)
{
	uint8_t own[HYDNS_SHA1_OCTETS];
	struct proof p = { 0 };

	if (!read_links(&p, m, records, name, len))
		return false;
	hydns_nsec3_hash(name, len, &p.link[0].how, own);
	return denies(&p, name, len, own, hash);
}

bool hydnsd_is_proof_from_above(const struct hydnsd_message *m, unsigned records, const uint8_t *name, uint8_t len)
{
	uint8_t own[HYDNS_SHA1_OCTETS], closer[HYDNS_SHA1_OCTETS];
	struct proof p = { 0 };

	if (!read_links(&p, m, records, name, len))
		return false;
	hydns_nsec3_hash(name, len, &p.link[0].how, own);
	while (len > p.zone.len) {
		memcpy(closer, own, sizeof(closer));
		len = (uint8_t)(len - 1 - name[0]);
		name += 1 + name[0];
		hydns_nsec3_hash(name, len, &p.link[0].how, own);
		if (denies(&p, name, len, own, closer))
			return true;
	}
	return false;
}
