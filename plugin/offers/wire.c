/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Dissects the resolver's own reply as far as the kernel path must know it, and refuses whatever the program could not
 * reproduce octet for octet. Everything after the question stays as the resolver wrote it; its compression pointers stay
 * valid because a question of the same length precedes it. Each name is expanded once, here.
 */
#include <arpa/inet.h>
#include <string.h>
#include "hydns/dns.h"
#include "plugin/changes/changes.h"
#include "plugin/offers/offers.h"

#define HEADER_LEN    12
#define SENTINEL      "root-key-sentinel-"   /* begin of a label (RFC 8509 section 2) */
#define PROOF_RECORDS 4               /* of the authority section, at least: SOA, proof, their signatures */
#define RR_FIXED      10              /* type, class, TTL, RDLENGTH */
#define POINTER_BITS  0xc0
#define POINTER_TO    0x3fff          /* its offset */
#define OPTION_FIXED  4               /* code and length */

struct walk {
	const uint8_t *wire;
	size_t len;
	size_t at;
	size_t used;                    /* octets of a->text */
	unsigned records;
	size_t opt_len;                 /* 0: no OPT so far */
	uint16_t opt_flags;
	bool fixed;
	struct hydns_wire_answer *a;
	enum hydns_not_offered_why why; /* set when the reply is refused for one of these reasons */
};

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

/*
 * Expands a name that may be compressed (RFC 1035 section 4.1.4; pointers lead backwards only) to at most HYDNS_NAME_MAX
 * octets in lower case. Returns the offset after the name where it stands, 0: it is malformed.
 */
static size_t expand(const uint8_t *wire, size_t len, size_t at, uint8_t *name, uint8_t *name_len)
{
	size_t out = 0, end = 0, limit = at;

	while (at < len) {
		uint8_t c = wire[at];

		if ((c & POINTER_BITS) == POINTER_BITS) {
			if (at + 1 >= len)
				return 0;
			if (!end)
				end = at + 2;
			at = get16(wire + at) & POINTER_TO;
			if (at >= limit)       /* each jump goes further back: no loops */
				return 0;
			limit = at;
			continue;
		}
		if (c & POINTER_BITS || at + 1 + c > len || out + 1 + c > HYDNS_NAME_MAX)
			return 0;
		memcpy(name + out, wire + at, 1U + c);
		out += 1U + c;
		at += 1U + c;
		if (c == 0) {
			hydns_name_lower(name, name, out);
			*name_len = (uint8_t)out;
			return end ? end : at;
		}
	}
	return 0;
}

/* The last name of the answer that begins at this offset, or that was read through a pointer to it. */
static const struct hydns_wire_name *known(const struct hydns_wire_answer *a, size_t place)
{
	for (unsigned i = a->names; i-- > 0; )
		if (a->name[i].place == place)
			return &a->name[i];
	return NULL;
}

/* Reads the name at w->at and goes on after it. Its octets stay in a->text once add_name() has taken it. */
static bool read_name(struct walk *w, struct hydns_wire_name *n)
{
	bool pointer = w->len - w->at >= 2 && w->wire[w->at] >= POINTER_BITS;
	size_t place = pointer ? get16(w->wire + w->at) & POINTER_TO : w->at, end;
	const struct hydns_wire_name *same = pointer ? known(w->a, place) : NULL;

	if (same) {
		*n = *same;
		w->at += 2;
		return true;
	}
	n->place = (uint16_t)place;
	n->text = (uint16_t)w->used;
	end = expand(w->wire, w->len, w->at, w->a->text + w->used, &n->len);
	w->at = end;
	return end;
}

static bool meta_type(uint16_t type)
{
	return type == 0 || type == HYDNS_TYPE_OPT || (type >= HYDNS_TYPE_META_FIRST && type <= HYDNS_TYPE_META_LAST);
}

/* Adds a dependency of the answer, unless it is the RRset added last. */
static void add_name(struct walk *w, struct hydns_wire_name n, uint16_t rrtype)
{
	struct hydns_wire_answer *a = w->a;
	const struct hydns_wire_name *last = &a->name[a->names - 1];

	n.rrtype = rrtype;
	if (n.text == last->text && rrtype == last->rrtype)
		return;
	a->name[a->names++] = n;
	if (n.text == w->used)
		w->used += n.len;
}

/* Signatures have the TTL of the RRset that they cover (RFC 4034 section 3), and are replaced with it. */
static uint16_t rrset_type(uint16_t type, const uint8_t *rdata, uint16_t rdlength)
{
	return type == HYDNS_TYPE_RRSIG && rdlength >= 2 ? get16(rdata) : type;
}

/* The first option at this offset, before end; 0: it is malformed, else its octets. */
static size_t option_at(const struct walk *w, size_t at, size_t end)
{
	size_t len = end - at < OPTION_FIXED ? 0 : (size_t)OPTION_FIXED + get16(w->wire + at + 2);

	return len <= end - at ? len : 0;
}

/* The options from w->at to end: a cookie, which the program makes itself, then extended errors, which the rule has. */
static bool options_ok(struct walk *w, size_t end)
{
	size_t at = w->at, len = option_at(w, at, end);

	if (len && get16(w->wire + at) == HYDNS_OPTION_COOKIE) {
		at += len;
		len = option_at(w, at, end);
	}
	w->a->errors = (uint16_t)at;
	w->a->errors_len = (uint16_t)(end - at);
	for (; len && get16(w->wire + at) == HYDNS_OPTION_ERROR && len >= OPTION_FIXED + 2; len = option_at(w, at, end))
		at += len;
	if (at == end && w->a->errors_len > HYDNS_ERRORS_MOST)
		w->why = HYDNS_NOT_OFFERED_TOO_LARGE;
	return at == end && !w->why;
}

/* The OPT at this offset must be one that the program makes itself: version 0 (RFC 6891), a cookie, the rule's extended errors. */
static bool opt_ok(struct walk *w, size_t start, uint16_t rdlength)
{
	const uint8_t *p = w->wire + w->at;
	uint32_t ttl = get32(p + 4);

	if (w->wire[start] != 0 || ttl >> 16 != 0 || (ttl & ~HYDNS_EDNS_DO & 0xffff))
		return false;
	w->opt_len = HYDNS_OPT_LEN + rdlength;
	w->opt_flags = (uint16_t)ttl;
	w->a->edns_size = get16(p + 2);
	w->at += RR_FIXED;
	if (!options_ok(w, w->at + rdlength))
		return false;
	w->at += rdlength;
	return true;
}

/* The target of an alias, which fills its RDATA, from w->at on. */
static bool target_ok(struct walk *w, size_t rdlength)
{
	struct hydns_wire_name target;
	size_t end = w->at + rdlength;

	if (!read_name(w, &target) || w->at != end)
		return false;
	add_name(w, target, HYDNS_NAMES_ALL);
	return true;
}

static bool record_ok(struct walk *w, bool additional)
{
	struct hydns_wire_name owner;
	size_t start = w->at;
	uint16_t type, rdlength;
	const uint8_t *p;
	uint32_t ttl;

	if (!read_name(w, &owner) || w->len - w->at < RR_FIXED || w->opt_len)
		return false;
	p = w->wire + w->at;
	type = get16(p);
	rdlength = get16(p + 8);
	if (w->len - w->at - RR_FIXED < rdlength)
		return false;
	if (type == HYDNS_TYPE_OPT && additional)
		return opt_ok(w, start, rdlength);
	ttl = get32(p + 4);
	if (ttl == 0 && !w->fixed)
		w->why = HYDNS_NOT_OFFERED_ZERO_TTL;
	else if (++w->records > (w->fixed ? HYDNS_RECORDS_MAX : HYDNS_TTLS_MAX))
		w->why = HYDNS_NOT_OFFERED_MANY_RECORDS;
	if (meta_type(type) || get16(p + 2) != HYDNS_CLASS_IN || ttl > HYDNS_TTL_MAX || w->why)
		return false;
	if (ttl < w->a->ttl)
		w->a->ttl = ttl;
	add_name(w, owner, rrset_type(type, p + RR_FIXED, rdlength));
	w->at += RR_FIXED;
	if (type == HYDNS_TYPE_CNAME)
		return target_ok(w, rdlength);
	w->at += rdlength;
	return true;
}

static bool rcode_ok(unsigned rcode, bool failure)
{
	return failure ? rcode == HYDNS_RCODE_SERVFAIL : rcode == HYDNS_RCODE_NOERROR || rcode == HYDNS_RCODE_NXDOMAIN;
}

static bool header_ok(const uint8_t *wire, bool failure, struct hydns_wire_answer *a, enum hydns_not_offered_why *why)
{
	uint16_t flags = get16(wire + 2);

	if (flags & HYDNS_FLAG_TC)
		*why = HYDNS_NOT_OFFERED_TRUNCATED;
	else if (!rcode_ok(flags & HYDNS_FLAGS_RCODE, failure))
		*why = HYDNS_NOT_OFFERED_ERROR;
	if ((flags & (HYDNS_FLAG_QR | HYDNS_FLAGS_OPCODE | HYDNS_FLAG_Z | HYDNS_FLAG_CD)) != HYDNS_FLAG_QR ||
	    get16(wire + 4) != 1 || *why)
		return false;
	a->reply_flags = htons(flags & (uint16_t)~(HYDNS_FLAG_RD | HYDNS_FLAG_AD | HYDNS_FLAG_CD));
	return true;
}

/* Asks for the trust anchors that the resolver validates with now: data of a zone have nothing to do with them. name: in lower case. */
static bool is_sentinel(const uint8_t *name, bool fixed)
{
	const size_t begin = sizeof(SENTINEL) - 1;

	return !fixed && name[0] > begin && !memcmp(name + 1, SENTINEL, begin);
}

/* Its name becomes the first of the answer's. */
static bool question_ok(struct walk *w, const struct hydns_question *q)
{
	const uint8_t *p = w->wire + HEADER_LEN;
	uint8_t *asked = w->a->text, replied[HYDNS_NAME_MAX];
	size_t n = q->name_len;

	if (hydns_name_length(q->name, n) != n || n == 0 || w->len < HEADER_LEN + n + 4 || meta_type(q->qtype))
		return false;
	hydns_name_lower(asked, q->name, n);
	hydns_name_lower(replied, p, n);
	w->a->name[0] = (struct hydns_wire_name){ .place = HEADER_LEN, .len = (uint8_t)n, .rrtype = HYDNS_NAMES_ALL };
	w->a->names = w->a->answer_names = 1;
	w->used = n;
	if (is_sentinel(asked, w->fixed)) {
		w->why = HYDNS_NOT_OFFERED_SENTINEL;
		return false;
	}
	return !memcmp(asked, replied, n) && get16(p + n) == q->qtype && get16(p + n + 2) == HYDNS_CLASS_IN;
}

/* A failure has no record; its life is the resolver's. */
static bool records_ok(struct walk *w, bool failure)
{
	const unsigned first = get16(w->wire + 6) + get16(w->wire + 8);
	const unsigned all = first + get16(w->wire + 10);

	for (unsigned i = 0; i < all; i++) {
		if (!record_ok(w, i >= first))
			return false;
		if (i < get16(w->wire + 6))
			w->a->answer_names = w->a->names;
	}
	if (w->at == w->len && !w->records && !failure)     /* nothing says how long it may live */
		w->why = HYDNS_NOT_OFFERED_NO_RECORD;
	return w->at == w->len && !w->records == failure;
}

/* True: a and w are complete; else w->why may say why not. */
static bool message_ok(struct walk *w, const struct hydns_question *q)
{
	bool wants_do = q->variant & HYDNS_VARIANT_DO;
	size_t space;

	if (w->len < HEADER_LEN || w->len > UINT16_MAX || q->variant & ~HYDNS_VARIANTS ||
	    !header_ok(w->wire, q->failure, w->a, &w->why) || !question_ok(w, q))
		return false;
	w->at = HEADER_LEN + q->name_len + 4U;
	w->a->answer = (uint16_t)w->at;
	if (!records_ok(w, q->failure) || wants_do != !!(w->opt_flags & HYDNS_EDNS_DO))
		return false;
	space = HYDNS_RULE_SPACE(q->name_len, w->len - w->opt_len - w->a->answer, w->records,
				 w->a->errors_len + (q->account ? HYDNS_RULE_ACCOUNT : 0));
	if (space > HYDNS_SLOT_MOST)
		w->why = HYDNS_NOT_OFFERED_TOO_LARGE;
	return space <= HYDNS_SLOT_MOST;
}

static uint32_t number_of(const struct walk *w)
{
	const unsigned records = w->len < HEADER_LEN ? 0 : get16(w->wire + 6) + get16(w->wire + 8) + get16(w->wire + 10);

	switch (w->why) {
	case HYDNS_NOT_OFFERED_ERROR:
		return get16(w->wire + 2) & HYDNS_FLAGS_RCODE;
	case HYDNS_NOT_OFFERED_MANY_RECORDS:
		return records;
	case HYDNS_NOT_OFFERED_TOO_LARGE:
		return (uint32_t)w->len;
	default:
		return 0;
	}
}

enum hydns_not_offered_why hydns_wire_dissect(const uint8_t *wire, size_t len, const struct hydns_question *q,
					      struct hydns_wire_answer *a, uint32_t *value)
{
	struct walk w = { .wire = wire, .len = len, .fixed = q->fixed, .a = a };

	a->ttl = HYDNS_TTL_MAX;
	a->edns_size = 0;
	a->errors_len = 0;
	if (!message_ok(&w, q)) {
		*value = number_of(&w);
		return w.why ? w.why : HYDNS_NOT_OFFERED_UNREADABLE;
	}
	a->answer_len = (uint16_t)(len - w.opt_len - a->answer);
	memcpy(&a->ancount, wire + 6, 2);
	memcpy(&a->nscount, wire + 8, 2);
	a->arcount = htons((uint16_t)(get16(wire + 10) - (w.opt_len != 0)));
	return HYDNS_NOT_OFFERED_NONE;
}

bool hydns_wire_denies(const uint8_t *wire, size_t len)
{
	return len >= HEADER_LEN && !get16(wire + 6) && (get16(wire + 2) & HYDNS_FLAG_AA);
}

bool hydns_wire_may_be_for_all(const uint8_t *wire, size_t len, bool proves)
{
	if (len < HEADER_LEN || get16(wire + 6))
		return false;
	if (!(get16(wire + 2) & HYDNS_FLAG_AA))
		return !proves;
	return proves ? get16(wire + 8) >= PROOF_RECORDS : get16(wire + 8) == 1;
}

/* How many names there are in the RDATA of this type, from its beginning on, that are looked at. */
static unsigned names_in(uint16_t type)
{
	return type == HYDNS_TYPE_SOA ? 2 : type == HYDNS_TYPE_NS ? 1 : 0;
}

bool hydns_wire_names(const uint8_t *wire, size_t len, void (*fn)(void *arg, const uint8_t *name, size_t name_len), void *arg)
{
	unsigned left = len < HEADER_LEN ? 0U : (unsigned)get16(wire + 6) + get16(wire + 8) + get16(wire + 10);
	uint8_t name[HYDNS_NAME_MAX], name_len;
	size_t at = len < HEADER_LEN ? 0 : expand(wire, len, HEADER_LEN, name, &name_len);

	for (at = at ? at + 4 : 0; at && left; left--) {
		size_t end;

		at = expand(wire, len, at, name, &name_len);
		if (!at || len < at + RR_FIXED || len < at + RR_FIXED + get16(wire + at + 8))
			return false;
		if (get16(wire + at) != HYDNS_TYPE_RRSIG && get16(wire + at) != HYDNS_TYPE_NSEC && get16(wire + at) != HYDNS_TYPE_NSEC3)
			fn(arg, name, name_len);
		end = at + RR_FIXED + get16(wire + at + 8);
		for (unsigned n = names_in(get16(wire + at)), in = (unsigned)at + RR_FIXED; n; n--) {
			in = (unsigned)expand(wire, end, in, name, &name_len);
			if (!in)
				return false;
			fn(arg, name, name_len);
		}
		at = end;
	}
	return at != 0;
}
