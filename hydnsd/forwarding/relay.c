/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/forwarding/relay.h"

#include <arpa/inet.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydns/forwarding.h"
#include "hydns/rule.h"

#define HEADER         12
#define RR_FIXED       10              /* type, class, TTL, length of RDATA */
#define POINTER        0xc0
#define POINTER_MOST   0x3fff
#define ALIASES_MOST   8               /* as Unbound's scrubber takes without doubt */
#define NAMES_MOST     96              /* that are written; each record has three at most */
#define SUFFIXES_MOST  512
#define BIND_SUFFIXES  48              /* named compresses no further: DNS_COMPRESS_SMALLBITS */
#define MESSAGE_MOST   4096
#define TYPE_SOA       6
#define SOA_NUMBERS    20              /* octets after a SOA's names, the last four of them MINIMUM */
#define ANSWER_FLAGS   0x8080          /* QR and RA: what a resolver sets */
#define FLAG_RA        0x0080

const char *hydnsd_relay_name(enum hydnsd_relay r)
{
	static const char *const names[] = {
		"RELAYED",
#define HYDNSD_NOT_RELAYED(name, text) #name,
#include "hydnsd/forwarding/not_relayed.def"
#undef HYDNSD_NOT_RELAYED
	};

	return names[r];
}

const char *hydnsd_relay_text(enum hydnsd_relay r)
{
	static const char *const texts[] = {
		"it was relayed",
#define HYDNSD_NOT_RELAYED(name, text) text,
#include "hydnsd/forwarding/not_relayed.def"
#undef HYDNSD_NOT_RELAYED
	};

	return texts[r];
}

/* An uncompressed name, in its own letters. */
struct name {
	uint8_t len;
	uint8_t octet[HYDNS_NAME_MAX];
};

struct record {
	struct name owner;
	uint16_t type;
	uint32_t ttl;
	uint32_t rdata, rdlen;         /* in the upstream's message */
};

/* Where the end of a written name stands. */
struct suffix {
	uint16_t offset;               /* in the resolver's message */
	uint16_t name;                 /* which name, ... */
	uint16_t start;                /* ... and from which octet on */
};

struct relay {
	const struct hydnsd_relay_terms *terms;
	uint8_t in[MESSAGE_MOST];      /* the upstream's message; its question in lower case */
	uint32_t in_len, pos;
	uint8_t out[HYDNSD_RELAY_OFFER]; /* the resolver's message from octet HEADER on */
	uint32_t out_len;
	struct name names[NAMES_MOST];
	struct suffix suffixes[SUFFIXES_MOST];
	uint32_t name_count, suffix_count;
	struct record record[HYDNS_FORWARD_RECORDS];
	uint32_t records;
	uint32_t life;
	bool overflow;
	bool capitals;                 /* a name has some */
};

static uint16_t u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t u32(const uint8_t *p)
{
	return (uint32_t)u16(p) << 16 | u16(p + 2);
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

static bool same(const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (lower(a[i]) != lower(b[i]))
			return false;
	return true;
}

static bool same_name(const struct name *a, const struct name *b)
{
	return a->len == b->len && same(a->octet, b->octet, a->len);
}

/* -- reading -------------------------------------------------------------------------------------------------- */
/* Follows pointers that lead back, each further than the one before. */
static bool read_name(const struct relay *r, uint32_t *pos, struct name *out)
{
	uint32_t at = *pos, before = at;
	bool jumped = false;

	for (out->len = 0; at < r->in_len; ) {
		uint8_t label = r->in[at];

		if ((label & POINTER) == POINTER) {
			uint32_t to;

			if (at + 2 > r->in_len)
				return false;
			to = u16(r->in + at) & POINTER_MOST;
			if (!jumped)
				*pos = at + 2;
			if (to < HEADER || to >= before)
				return false;
			jumped = true;
			at = before = to;
			continue;
		}
		if (label > 63 || at + 1U + label > r->in_len || out->len + 1U + label > HYDNS_NAME_MAX)
			return false;
		memcpy(out->octet + out->len, r->in + at, 1U + label);
		out->len = (uint8_t)(out->len + 1U + label);
		at += 1U + label;
		if (label)
			continue;
		if (!jumped)
			*pos = at;
		return true;
	}
	return false;
}

static bool read_record(struct relay *r, struct record *out, uint16_t *class)
{
	const uint8_t *p;

	if (!read_name(r, &r->pos, &out->owner) || r->in_len - r->pos < RR_FIXED)
		return false;
	p = r->in + r->pos;
	out->type = u16(p);
	*class = u16(p + 2);
	out->ttl = u32(p + 4);
	out->rdlen = u16(p + 8);
	out->rdata = r->pos + RR_FIXED;
	if (r->in_len - out->rdata < out->rdlen)
		return false;
	r->pos = out->rdata + out->rdlen;
	return true;
}

/* Copies the message with its question in lower case: where names point into it, the letters are the request's random ones. */
static bool take(struct relay *r, const uint8_t *message, size_t len)
{
	const struct hydnsd_relay_terms *t = r->terms;
	size_t question = t->name_len + 4U;

	if (len > sizeof(r->in) || len < HEADER + question)
		return false;
	memcpy(r->in, message, len);
	r->in_len = (uint32_t)len;
	for (size_t i = 0; i < t->name_len; i++)
		r->in[HEADER + i] = lower(r->in[HEADER + i]);
	if (u16(r->in + 4) != 1 || memcmp(r->in + HEADER, t->name, t->name_len) ||
	    memcmp(r->in + HEADER + t->name_len, &t->qtype, 2) || u16(r->in + HEADER + t->name_len + 2) != HYDNS_CLASS_IN)
		return false;
	r->pos = HEADER + (uint32_t)question;
	return true;
}

/* -- writing ------------------------------------------------------------------------------------------------- */
static void put(struct relay *r, const void *octets, size_t len)
{
	if (r->overflow || len > sizeof(r->out) - r->out_len) {
		r->overflow = true;
		return;
	}
	memcpy(r->out + r->out_len, octets, len);
	r->out_len += (uint32_t)len;
}

static void put16(struct relay *r, uint16_t v)
{
	const uint8_t octets[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	put(r, octets, sizeof(octets));
}

/* Where this end of the name was written first; 0: nowhere. */
static uint16_t find_suffix(const struct relay *r, const struct name *n, uint32_t start)
{
	for (uint32_t i = 0; i < r->suffix_count; i++) {
		const struct suffix *s = &r->suffixes[i];
		const struct name *of = &r->names[s->name];

		if (of->len - s->start == (int)(n->len - start) && same(of->octet + s->start, n->octet + start, n->len - start))
			return s->offset;
	}
	return 0;
}

/* Remembers the labels of a name from the beginning up to end, which stand at offset. */
static void remember(struct relay *r, const struct name *n, uint32_t end, uint32_t offset)
{
	if (!end)
		return;
	if (r->name_count == NAMES_MOST || offset + HYDNS_NAME_MAX > POINTER_MOST) {
		r->overflow = true;
		return;
	}
	r->names[r->name_count] = *n;
	for (uint32_t at = 0; at < end && n->octet[at]; at += 1U + n->octet[at]) {
		if (r->suffix_count == (r->terms->keeps_case ? BIND_SUFFIXES : SUFFIXES_MOST)) {
			r->overflow = true;
			return;
		}
		r->suffixes[r->suffix_count++] = (struct suffix){
			.offset = (uint16_t)(offset + at), .name = (uint16_t)r->name_count, .start = (uint16_t)at,
		};
	}
	r->name_count++;
}

static bool has_capitals(const struct name *n)
{
	for (unsigned i = 0; i < n->len; i++)      /* length octets are below 'A' */
		if (n->octet[i] >= 'A' && n->octet[i] <= 'Z')
			return true;
	return false;
}

/* Its longest end that was written before becomes a pointer; the root alone never does. */
static void put_compressed(struct relay *r, const struct name *n)
{
	uint32_t offset = HEADER + r->out_len, at = 0;
	uint16_t to = 0;

	r->capitals |= has_capitals(n);

	while (n->octet[at] && !(to = find_suffix(r, n, at)))
		at += 1U + n->octet[at];
	put(r, n->octet, to ? at : n->len);
	if (to)
		put16(r, (uint16_t)(POINTER << 8 | to));
	remember(r, n, at, offset);
}

/* -- RDATA --------------------------------------------------------------------------------------------------- */
/* Types that are relayed. Those without names are octets. NS is none of them: resolvers add addresses to such an answer. */
static const struct layout {
	uint16_t type;
	uint8_t before, names, after;  /* octets, names, octets */
	bool compressed;               /* resolvers compress the names: RFC 3597 section 4 */
	bool rest;                     /* any octets */
	bool hosts;                    /* it names hosts, whose addresses named adds to the answer if it has them */
} layouts[] = {
	{ .type = 1, .before = 4 }, { .type = 28, .before = 16 },
	{ .type = 5, .names = 1, .compressed = true },
	{ .type = 6, .names = 2, .after = SOA_NUMBERS, .compressed = true }, { .type = 12, .names = 1, .compressed = true },
	{ .type = 15, .before = 2, .names = 1, .compressed = true, .hosts = true },
	{ .type = 33, .before = 6, .names = 1, .hosts = true },
	{ .type = 13, .rest = true }, { .type = 16, .rest = true }, { .type = 44, .rest = true }, { .type = 52, .rest = true },
	{ .type = 64, .rest = true, .hosts = true }, { .type = 65, .rest = true, .hosts = true }, { .type = 257, .rest = true },
};

static const struct layout *layout_of(uint16_t type)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].type == type)
			return &layouts[i];
	return NULL;
}

/* False: it does not have the layout. */
static bool put_fields(struct relay *r, const struct record *rr, const struct layout *l)
{
	uint32_t pos = rr->rdata, end = rr->rdata + rr->rdlen;

	if (rr->rdlen < l->before)
		return false;
	put(r, r->in + pos, l->before);
	pos += l->before;
	for (unsigned i = 0; i < l->names; i++) {
		struct name n;
		uint32_t stored = r->in_len;
		bool read;

		r->in_len = end;       /* a name ends within its RDATA */
		read = read_name(r, &pos, &n);
		r->in_len = stored;
		if (!read || pos > end)
			return false;
		if (l->compressed)
			put_compressed(r, &n);
		else
			put(r, n.octet, n.len);
	}
	if (l->rest ? pos > end : end - pos != l->after)
		return false;
	put(r, r->in + pos, end - pos);
	return true;
}

static enum hydnsd_relay put_record(struct relay *r, const struct record *rr, uint32_t ttl)
{
	const struct layout *l = layout_of(rr->type);
	uint32_t length_at, rdlen;

	if (!l || (l->hosts && r->terms->adds))
		return HYDNSD_NOT_RELAYED_TYPE;
	put_compressed(r, &rr->owner);
	put16(r, rr->type);
	put16(r, HYDNS_CLASS_IN);
	put16(r, (uint16_t)(ttl >> 16));
	put16(r, (uint16_t)ttl);
	length_at = r->out_len;
	put16(r, 0);
	if (!put_fields(r, rr, l))
		return HYDNSD_NOT_RELAYED_MALFORMED;
	if (r->overflow)
		return HYDNSD_NOT_RELAYED_TOO_BIG;
	if (r->capitals && r->terms->keeps_case)
		return HYDNSD_NOT_RELAYED_LETTERS;
	rdlen = r->out_len - length_at - 2;
	r->out[length_at] = (uint8_t)(rdlen >> 8);
	r->out[length_at + 1] = (uint8_t)rdlen;
	return HYDNSD_RELAYED;
}

/* -- sections ------------------------------------------------------------------------------------------------ */
static bool in_zone(const struct relay *r, const struct name *n)
{
	uint8_t name[HYDNS_NAME_MAX];

	for (unsigned i = 0; i < n->len; i++)
		name[i] = lower(n->octet[i]);
	return r->terms->same_zone(r->terms->arg, name, n->len);
}

/* The same record twice is shown once by a resolver. */
static bool repeated(const struct relay *r, const struct record *rr)
{
	for (const struct record *o = r->record; o < r->record + r->records; o++)
		if (o->type == rr->type && o->rdlen == rr->rdlen && same_name(&o->owner, &rr->owner) &&
		    !memcmp(r->in + o->rdata, r->in + rr->rdata, rr->rdlen))
			return true;
	return false;
}

/* Reads count records, which are collected. */
static enum hydnsd_relay collect(struct relay *r, uint32_t count)
{
	for (; count; count--) {
		struct record *rr = &r->record[r->records];
		uint16_t class;

		if (r->records == HYDNS_FORWARD_RECORDS)
			return HYDNSD_NOT_RELAYED_TOO_BIG;
		if (!read_record(r, rr, &class))
			return HYDNSD_NOT_RELAYED_MALFORMED;
		if (class != HYDNS_CLASS_IN || repeated(r, rr))
			return HYDNSD_NOT_RELAYED_RECORDS;
		r->records++;
	}
	return HYDNSD_RELAYED;
}

/* Reads the others to the message's end. */
static enum hydnsd_relay skip(struct relay *r, uint32_t count)
{
	struct record rr;
	uint16_t class;

	for (; count; count--)
		if (!read_record(r, &rr, &class))
			return HYDNSD_NOT_RELAYED_MALFORMED;
	return r->pos == r->in_len ? HYDNSD_RELAYED : HYDNSD_NOT_RELAYED_MALFORMED;
}

/* A resolver gives all records of an RRset the least of their TTLs. */
static uint32_t least_ttl(const struct relay *r, const struct record *of)
{
	uint32_t ttl = of->ttl;

	for (const struct record *o = r->record; o < r->record + r->records; o++)
		if (o->type == of->type && same_name(&o->owner, &of->owner) && o->ttl < ttl)
			ttl = o->ttl;
	return ttl;
}

static enum hydnsd_relay put_with_ttl(struct relay *r, const struct record *rr, uint32_t ttl, uint32_t most)
{
	if (!ttl || ttl > most || ttl > HYDNS_TTL_MAX)
		return HYDNSD_NOT_RELAYED_TTL;
	if (ttl < r->life)
		r->life = ttl;
	return put_record(r, rr, ttl);
}

/* The aliases must be a chain from the question's name within the zone, and end with an RRset of the question's type. */
static enum hydnsd_relay check_chain(struct relay *r)
{
	uint16_t qtype = ntohs(r->terms->qtype);
	uint32_t aliases = 0, last = 0;
	struct name expected;

	expected.len = r->terms->name_len;
	memcpy(expected.octet, r->terms->name, expected.len);
	for (struct record *rr = r->record; rr < r->record + r->records; rr++) {
		uint32_t pos = rr->rdata;

		if (!same_name(&rr->owner, &expected))
			return HYDNSD_NOT_RELAYED_RECORDS;
		if (rr->type == qtype) {
			last++;
			continue;
		}
		if (rr->type != HYDNS_TYPE_CNAME || last)
			return HYDNSD_NOT_RELAYED_RECORDS;
		if (!read_name(r, &pos, &expected) || pos != rr->rdata + rr->rdlen)
			return HYDNSD_NOT_RELAYED_MALFORMED;
		if (++aliases > ALIASES_MOST || !in_zone(r, &expected))
			return HYDNSD_NOT_RELAYED_ALIAS;
	}
	if (qtype == HYDNS_TYPE_CNAME && last > 1)
		return HYDNSD_NOT_RELAYED_RECORDS;
	return last ? HYDNSD_RELAYED : HYDNSD_NOT_RELAYED_ALIAS;
}

static enum hydnsd_relay positive(struct relay *r, const uint16_t count[3])
{
	enum hydnsd_relay why = collect(r, count[0]);

	if (!why)
		why = check_chain(r);
	if (!why)
		why = skip(r, (uint32_t)count[1] + count[2]);
	for (uint32_t i = 0; i < r->records && !why; i++)
		why = put_with_ttl(r, &r->record[i], least_ttl(r, &r->record[i]), r->terms->max_ttl);
	return why;
}

/* True when b is a's name or an ancestor's. */
static bool at_or_above(const struct name *a, const struct name *b)
{
	for (uint32_t at = 0; at < a->len; at += 1U + a->octet[at])
		if (a->len - at == b->len)
			return same(a->octet + at, b->octet, b->len);
	return false;
}

/* The SOA's TTL is that of the answer: RFC 2308 section 3. By section 5 its minimum is a bound, which servers have applied, if they
 * follow the RFC. */
static enum hydnsd_relay negative(struct relay *r, const uint16_t count[3])
{
	enum hydnsd_relay why = count[1] == 1 ? collect(r, 1) : HYDNSD_NOT_RELAYED_REFERRAL;
	const struct record *soa = r->record;
	uint32_t minimum, ttl;
	struct name asked;

	if (why)
		return why;
	asked.len = r->terms->name_len;
	memcpy(asked.octet, r->terms->name, asked.len);
	if (soa->type != TYPE_SOA || !at_or_above(&asked, &soa->owner))
		return HYDNSD_NOT_RELAYED_REFERRAL;
	if (!in_zone(r, &soa->owner))
		return HYDNSD_NOT_RELAYED_RECORDS;
	if (soa->rdlen < SOA_NUMBERS)
		return HYDNSD_NOT_RELAYED_MALFORMED;
	why = skip(r, count[2]);
	if (why)
		return why;
	minimum = u32(r->in + soa->rdata + soa->rdlen - 4);
	ttl = soa->ttl < minimum || r->terms->soa_ttl ? soa->ttl : minimum;
	return put_with_ttl(r, soa, ttl, r->terms->max_negative_ttl < r->terms->max_ttl ? r->terms->max_negative_ttl :
			    r->terms->max_ttl);
}

static void write_offer(const struct relay *r, uint16_t rcode, bool positive_answer, struct hydns_offer *o)
{
	uint32_t question = r->terms->name_len + 4U, answer = r->out_len - question;
	uint32_t len = (HYDNS_OFFER_DATA + r->terms->name_len + answer + 7U) & ~7U;
	const uint16_t records = htons((uint16_t)r->records);

	memset(o, 0, len);
	o->frame = (struct hydns_frame){ .len = len, .type = HYDNS_FRAME_OFFER };
	o->ttl = r->life;
	o->reply_flags = htons(ANSWER_FLAGS | rcode);
	o->ancount = positive_answer ? records : 0;
	o->nscount = positive_answer ? 0 : records;
	o->qtype = r->terms->qtype;
	o->answer_len = (uint16_t)answer;
	o->name_len = r->terms->name_len;
	memcpy(o->data, r->terms->name, o->name_len);
	memcpy(o->data + o->name_len, r->out + question, answer);
}

/* The question's name is the first that others can point to. */
static void begin(struct relay *r)
{
	const uint16_t class = htons(HYDNS_CLASS_IN);
	struct name asked;

	asked.len = r->terms->name_len;
	memcpy(asked.octet, r->terms->name, asked.len);
	put(r, asked.octet, asked.len);
	put(r, &r->terms->qtype, sizeof(r->terms->qtype));
	put(r, &class, sizeof(class));
	remember(r, &asked, asked.len, HEADER);
}

/* Whether a resolver answers a question of this type from what its cache holds at the name, beside an alias too: SIG, KEY, NXT, RRSIG,
 * NSEC, NSEC3, ANY. Then even a denial by the server is not what the resolver would give. */
static bool is_of_the_cache(uint16_t qtype)
{
	static const uint16_t types[] = { 24, 25, 30, 46, 47, 50, 255 };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (qtype == types[i])
			return true;
	return false;
}

static enum hydnsd_relay check_header(const struct relay *r)
{
	uint16_t flags = u16(r->in + 2), rcode = flags & HYDNS_FLAGS_RCODE;

	if (!(flags & HYDNS_FLAG_QR) || (flags & HYDNS_FLAGS_OPCODE))
		return HYDNSD_NOT_RELAYED_MALFORMED;
	if (flags & HYDNS_FLAG_TC)
		return HYDNSD_NOT_RELAYED_TRUNCATED;
	if (rcode != HYDNS_RCODE_NOERROR && rcode != HYDNS_RCODE_NXDOMAIN)
		return HYDNSD_NOT_RELAYED_RCODE;
	/* a server that neither recurses nor knows the zone is lame */
	return flags & (HYDNS_FLAG_AA | FLAG_RA) ? HYDNSD_RELAYED : HYDNSD_NOT_RELAYED_REFERRAL;
}

enum hydnsd_relay hydnsd_relay(const uint8_t *message, size_t len, const struct hydnsd_relay_terms *terms,
			       struct hydns_offer *offer)
{
	static struct relay r;         /* large; one thread */
	enum hydnsd_relay why;
	uint16_t count[3], rcode;

	r.terms = terms;
	r.out_len = r.name_count = r.suffix_count = r.records = 0;
	r.overflow = r.capitals = false;
	r.life = UINT32_MAX;
	if (!take(&r, message, len))
		return HYDNSD_NOT_RELAYED_MALFORMED;
	why = check_header(&r);
	if (why)
		return why;
	if (is_of_the_cache(ntohs(terms->qtype)))
		return HYDNSD_NOT_RELAYED_TYPE;
	begin(&r);
	for (int i = 0; i < 3; i++)
		count[i] = u16(r.in + 6 + 2 * i);
	rcode = u16(r.in + 2) & HYDNS_FLAGS_RCODE;
	if (count[0] && rcode != HYDNS_RCODE_NOERROR)
		return HYDNSD_NOT_RELAYED_ALIAS;
	why = count[0] ? positive(&r, count) : negative(&r, count);
	if (why)
		return why;
	if (HYDNS_RULE_SPACE(terms->name_len, r.out_len - terms->name_len - 4U, r.records, 0) > HYDNS_SLOT_MOST)
		return HYDNSD_NOT_RELAYED_TOO_BIG;
	write_offer(&r, rcode, count[0], offer);
	return HYDNSD_RELAYED;
}
