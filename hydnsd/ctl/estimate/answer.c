/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/ctl/estimate/answer.h"

#include "hydns/dns.h"
#include "hydns/names.h"
#include "hydns/rule.h"

#define CHAIN_MOST     16              /* aliases that named follows: its max-query-restarts is 11, and all fit */
#define STAND_IN       5               /* octets of the label that a name has which stands for data of the origin (plugin/changes/zone.c) */
#define HEADER         12
#define POINTERS       2               /* of a template, besides one for each record's owner */
#define RESPONSE_MOST  1232            /* octets: named's max-udp-size by default */

/* One answer while it is put together. */
struct building {
	const struct ctl_zone *z;
	uint32_t name;                 /* that the question is for */
	uint16_t type;
	uint32_t answered;             /* whose data the answer section has; or CTL_ZONE_NONE */
	bool dnssec;
	bool authority;                /* it has that section */
	bool below;                    /* the question is for a name below */
	struct ctl_answer *a;
};

/* -- parts ----------------------------------------------------------------------------------------------------------- */
static void add_set(struct building *b, const struct ctl_rrset *s)
{
	if (!s)
		return;
	b->a->octets += s->octets;
	b->a->records += s->records;
	if (b->dnssec) {
		b->a->octets += s->signature_octets;
		b->a->records += s->signatures;
	}
}

static void depend_on(struct building *b, uint32_t left_out)
{
	b->a->places++;
	b->a->left_out += left_out;
}

/* Data of the origin: the answer depends on a name that stands for them, and is never shown. */
static void depend_on_origin(struct building *b)
{
	depend_on(b, STAND_IN + (uint32_t)b->z->origin_len);
}

/* The addresses of a target that the answer section does not have already. False: there are none. */
static bool add_addresses(struct building *b, const struct ctl_target *t)
{
	bool answered = t->name == b->answered;
	const struct ctl_rrset *a = answered && b->type == HYDNS_TYPE_A ? NULL : ctl_zone_find(b->z, t->name, HYDNS_TYPE_A),
			       *aaaa = answered && b->type == HYDNS_TYPE_AAAA ? NULL : ctl_zone_find(b->z, t->name, HYDNS_TYPE_AAAA);

	add_set(b, a);
	add_set(b, aaaa);
	b->a->a |= a != NULL;
	b->a->aaaa |= aaaa != NULL;
	return a || aaaa;
}

/* What the additional section has for an RRset. False: nothing. */
static bool add_targets(struct building *b, const struct ctl_rrset *s)
{
	bool any = false;

	for (uint32_t i = s->targets; i != CTL_ZONE_NONE; i = b->z->target[i].next) {
		const struct ctl_target *t = &b->z->target[i];
		bool shown = t->name != CTL_ZONE_NONE && add_addresses(b, t);

		any |= shown;
		if (t->name != b->name)
			depend_on(b, shown ? 0 : t->len);
		if (t->service_len)
			depend_on(b, t->service_len);
	}
	return any;
}

/* An RRset of several records is rotated. named compresses, so that added addresses point into it, and it can't be. */
static void add_rotated(struct building *b, const struct ctl_rrset *s, bool is_answer)
{
	bool pointed_at, among_first = b->a->records + s->records <= HYDNS_TTLS_MAX;

	add_set(b, s);
	pointed_at = s->type != HYDNS_TYPE_CNAME && add_targets(b, s);
	if (s->records < 2)
		return;
	if (!pointed_at && among_first && b->a->rotations < HYDNS_ROTATIONS_MAX)
		b->a->rotations++;
	else if (is_answer)
		b->a->why = CTL_UNKEPT_ORDER;
}

/* -- sections --------------------------------------------------------------------------------------------------------- */
static void add_authority(struct building *b)
{
	const struct ctl_rrset *ns = ctl_zone_find(b->z, CTL_ZONE_ORIGIN, HYDNS_TYPE_NS);

	if (!b->authority || !ns)
		return;
	depend_on_origin(b);
	add_rotated(b, ns, false);
}

/* A proof that the name does not have something: its NSEC, or so many records of NSEC3. */
static void add_proof(struct building *b, uint32_t name, unsigned records)
{
	const struct ctl_zone *z = b->z;

	if (!b->dnssec || !ctl_zone_is_signed(z))
		return;
	if (!z->nsec3) {
		add_set(b, ctl_zone_find(z, name, HYDNS_TYPE_NSEC));
		return;
	}
	b->a->octets += (uint32_t)(records * z->nsec3_octets / z->nsec3);
	b->a->records += records * 2;          /* with its signature */
	depend_on(b, 0);
}

/* With opt-out, two records of NSEC3 prove that a delegation is not signed. */
static void add_proof_of_cut(struct building *b, uint32_t cut)
{
	add_proof(b, cut, b->z->opt_out ? 2 : 1);
}

static void add_referral(struct building *b, uint32_t cut)
{
	const struct ctl_rrset *ds = ctl_zone_find(b->z, cut, HYDNS_TYPE_DS);

	if (cut != b->name)
		depend_on(b, 0);
	add_rotated(b, ctl_zone_find(b->z, cut, HYDNS_TYPE_NS), false);
	if (!ds)
		add_proof_of_cut(b, cut);
	else if (b->dnssec && ctl_zone_is_signed(b->z))
		add_set(b, ds);
}

static void add_soa(struct building *b)
{
	add_set(b, ctl_zone_find(b->z, CTL_ZONE_ORIGIN, HYDNS_TYPE_SOA));
	depend_on_origin(b);
}

static void add_no_data(struct building *b, uint32_t name)
{
	add_soa(b);
	add_proof(b, name, 1);
}

static void add_data(struct building *b, uint32_t name, const struct ctl_rrset *s)
{
	b->answered = name;
	if (name == CTL_ZONE_ORIGIN)
		depend_on_origin(b);
	add_rotated(b, s, true);
	add_authority(b);
}

/* -- answers ----------------------------------------------------------------------------------------------------------- */
static bool is_there(const struct ctl_zone *z, uint32_t name)
{
	return z->name[name].sets != CTL_ZONE_NONE;
}

/* Follows an alias. What it leads to in another zone is refused to who wants recursion, and a name that is not there is NXDOMAIN. */
static void add_alias(struct building *b, const struct ctl_rrset *cname)
{
	uint32_t name = b->name, cut;
	const struct ctl_rrset *s;

	for (unsigned i = 0; cname && i < CHAIN_MOST; i++) {
		add_set(b, cname);
		name = cname->targets == CTL_ZONE_NONE ? CTL_ZONE_NONE : b->z->target[cname->targets].name;
		if (name == CTL_ZONE_NONE || !is_there(b->z, name))
			break;
		depend_on(b, 0);
		cname = ctl_zone_find(b->z, name, HYDNS_TYPE_CNAME);
	}
	if (name == CTL_ZONE_NONE) {
		if (!b->authority)
			b->a->why = CTL_UNKEPT_NEGATIVE;
		return;
	}
	cut = ctl_zone_cut(b->z, name);
	s = ctl_zone_find(b->z, name, b->type);
	if (cname || !is_there(b->z, name))
		b->a->why = CTL_UNKEPT_NEGATIVE;
	else if (cut != CTL_ZONE_NONE)
		add_referral(b, cut);
	else if (s)
		add_data(b, name, s);
	else
		add_no_data(b, name);
}

/* named adds nothing to DS and DNSKEY, and no NS to the origin's NS. */
static bool has_authority(uint16_t type, unsigned variant)
{
	return variant & HYDNS_VARIANT_NO_RD && type != HYDNS_TYPE_NS && type != HYDNS_TYPE_DS && type != HYDNS_TYPE_DNSKEY;
}

/* Octets of the question's name. */
static uint32_t asked_len(const struct ctl_zone *z, uint32_t name, bool below)
{
	return z->name[name].len + (below ? HYDNS_BELOW_LABEL_LEN : 0);
}

static bool is_too_large(const struct building *b)
{
	uint32_t question = asked_len(b->z, b->name, b->below) + 4;

	return HEADER + question + b->a->octets + HYDNS_OPT_LEN > RESPONSE_MOST || b->a->records > HYDNS_RECORDS_MAX ||
	       ctl_answer_space(b->z, b->name, b->below, b->a) > HYDNS_SLOT_MOST;
}

/* Of a template. */
static void add_pointers(struct building *b, bool denial)
{
	b->a->pointers = POINTERS + b->a->records;
	b->a->gap = denial;
}

static void add_template_of_types(struct building *b)
{
	add_no_data(b, CTL_ZONE_ORIGIN);
	add_pointers(b, true);
}

static void add_template_of_no_ds(struct building *b)
{
	add_soa(b);
	add_proof_of_cut(b, b->name);
	add_pointers(b, true);
}

void ctl_answer(const struct ctl_zone *z, uint32_t name, uint16_t type, unsigned variant, struct ctl_answer *out)
{
	struct building b = { .z = z, .name = name, .type = type, .answered = CTL_ZONE_NONE, .dnssec = variant & HYDNS_VARIANT_DO,
			      .authority = has_authority(type, variant), .a = out };
	uint32_t cut = ctl_zone_cut(z, name);
	const struct ctl_rrset *s = ctl_zone_find(z, name, type), *cname = ctl_zone_find(z, name, HYDNS_TYPE_CNAME);

	*out = (struct ctl_answer){ .places = 1 };
	if (cut != CTL_ZONE_NONE && !(cut == name && type == HYDNS_TYPE_DS))
		add_referral(&b, cut);
	else if (cut != CTL_ZONE_NONE && !s && b.dnssec && ctl_zone_is_signed(z))
		add_template_of_no_ds(&b);
	else if (s)
		add_data(&b, name, s);
	else if (cname)
		add_alias(&b, cname);
	else if (name == CTL_ZONE_ORIGIN && type == HYDNS_NODATA_TYPE)
		add_template_of_types(&b);
	else
		out->why = CTL_UNKEPT_NEGATIVE;
	if (out->why == CTL_KEPT && is_too_large(&b))
		out->why = CTL_UNKEPT_SIZE;
}

/* A denial of a signed zone proves that neither the name nor a wildcard is there, and with NSEC3 which of the names above it is. */
void ctl_answer_below(const struct ctl_zone *z, uint32_t name, unsigned variant, struct ctl_answer *out)
{
	struct building b = { .z = z, .name = name, .type = HYDNS_BELOW_TYPE, .answered = CTL_ZONE_NONE, .below = true,
			      .dnssec = variant & HYDNS_VARIANT_DO, .a = out };
	uint32_t cut = ctl_zone_cut(z, name);

	*out = (struct ctl_answer){ .places = 1 };
	if (cut != CTL_ZONE_NONE) {
		depend_on(&b, 0);
		add_referral(&b, cut);
	} else {
		add_no_data(&b, name);
		add_proof(&b, name, 2);
	}
	if (is_too_large(&b))
		out->why = CTL_UNKEPT_SIZE;
	if (cut != CTL_ZONE_NONE || !b.dnssec || !ctl_zone_is_signed(z))       /* else it proves something of its own question */
		add_pointers(&b, cut == CTL_ZONE_NONE);
}

uint32_t ctl_answer_space(const struct ctl_zone *z, uint32_t name, bool below, const struct ctl_answer *a)
{
	uint32_t ttls = a->records < HYDNS_TTLS_MAX ? a->records : HYDNS_TTLS_MAX;
	uint32_t rest = a->rotations * HYDNS_ROTATION_LEN + (a->left_out ? 1 + a->left_out : 0);

	if (a->places <= HYDNS_RULE_PLACES_MAX)
		rest += a->places * (uint32_t)sizeof(__u16);
	if (a->pointers)
		rest += HYDNS_POINTERS_LEN(a->pointers | (a->gap ? HYDNS_POINTERS_GAP : 0));
	return HYDNS_RULE_SPACE(asked_len(z, name, below), a->octets, ttls, rest);
}
