/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/offer.h"

#include <arpa/inet.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydns/hash.h"
#include "hydns/names.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/rules/gap.h"
#include "hydnsd/rules/proof.h"
#include "hydnsd/rules/rdata.h"
#include "hydnsd/rules/signature.h"

#define LIFE_MAX_S      604800U  /* RFC 8767 section 4: a cache caps TTLs at days; and it fits in ms */
#define FAILURE_LIFE_MAX_S 300U  /* RFC 9520 section 3.2 */
#define CLOCK_SLACK_NS  HYDNS_NS_PER_S

/* The program sets what is needed of them. */
#define FLAGS_REFUSED   (HYDNS_FLAGS_OPCODE | HYDNS_FLAG_RD | HYDNS_FLAG_Z | HYDNS_FLAG_AD | HYDNS_FLAG_CD)

const char *hydnsd_rejection_name(enum hydnsd_rejection r)
{
	static const char *const names[] = {
		"",
#define HYDNSD_REJECTION(name, question, text) #name,
#include "hydnsd/rules/rejections.def"
#undef HYDNSD_REJECTION
	};

	return names[r];
}

const char *hydnsd_rejection_text(enum hydnsd_rejection r)
{
	static const char *const texts[] = {
		"",
#define HYDNSD_REJECTION(name, question, text) text,
#include "hydnsd/rules/rejections.def"
#undef HYDNSD_REJECTION
	};

	return texts[r];
}

bool hydnsd_rejection_is_readable(enum hydnsd_rejection r)
{
	enum { UNREADABLE, READABLE };
	static const unsigned char questions[] = {
		READABLE,
#define HYDNSD_REJECTION(name, question, text) question,
#include "hydnsd/rules/rejections.def"
#undef HYDNSD_REJECTION
	};

	return questions[r] == READABLE;
}

static bool lengths_fit(const struct hydns_offer *f, size_t len)
{
	return len >= HYDNS_OFFER_DATA && f->name_len >= 1 &&
	       len - HYDNS_OFFER_DATA >= (size_t)f->name_len + f->answer_len;
}

/* What follows the answer in a frame. */
struct blocks {
	uint64_t account;
	struct hydns_offer_soa soa;
	const uint8_t *errors, *left_out;
	uint16_t errors_len, left_out_len; /* 0: there are none */
};

static bool read_account(const struct hydns_offer *f, size_t len, size_t *at, struct blocks *b)
{
	const size_t octets = HYDNS_ACCOUNT_LEN(f->flags);

	if (len - HYDNS_OFFER_DATA - *at < octets)
		return false;
	memcpy(&b->account, f->data + *at, octets);
	*at += octets;
	return !octets || HYDNS_RATE_KIND(b->account);
}

static bool read_soa(const struct hydns_offer *f, size_t len, size_t *at, struct blocks *b)
{
	if (!f->gap)
		return true;
	if (len - HYDNS_OFFER_DATA - *at < sizeof(b->soa))
		return false;
	memcpy(&b->soa, f->data + *at, sizeof(b->soa));
	*at += sizeof(b->soa);
	return b->soa.id != 0;
}

static bool read_errors(const struct hydns_offer *f, size_t len, size_t *at, struct blocks *b)
{
	size_t room = len - HYDNS_OFFER_DATA - *at;

	if (!(f->flags & HYDNS_RULE_ERRORS))
		return true;
	if (room < sizeof(b->errors_len))
		return false;
	memcpy(&b->errors_len, f->data + *at, sizeof(b->errors_len));
	b->errors = f->data + *at + sizeof(b->errors_len);
	*at += sizeof(b->errors_len) + b->errors_len;
	return b->errors_len <= room - sizeof(b->errors_len) && hydns_errors_valid(b->errors, b->errors_len);
}

static bool read_left_out(const struct hydns_offer *f, size_t len, size_t at, struct blocks *b)
{
	if (!(f->flags & HYDNS_RULE_LEFT_OUT))
		return true;
	b->left_out = f->data + at;
	b->left_out_len = (uint16_t)hydns_left_out_length(b->left_out, len - HYDNS_OFFER_DATA - at);
	return b->left_out_len != 0;
}

static enum hydnsd_rejection read_blocks(const struct hydns_offer *f, size_t len, struct blocks *b)
{
	size_t at = (size_t)f->name_len + f->answer_len;

	*b = (struct blocks){ 0 };
	if (!read_account(f, len, &at, b))
		return HYDNSD_REJECT_ACCOUNT;
	if (!read_soa(f, len, &at, b))
		return HYDNSD_REJECT_GAP;
	if (!read_errors(f, len, &at, b))
		return HYDNSD_REJECT_ERRORS;
	return read_left_out(f, len, at, b) ? HYDNSD_ACCEPTED : HYDNSD_REJECT_LEFT_OUT;
}

static bool rcode_fits(const struct hydns_offer *f)
{
	switch (ntohs(f->reply_flags) & HYDNS_FLAGS_RCODE) {
	case HYDNS_RCODE_NOERROR:
	case HYDNS_RCODE_NXDOMAIN:
		return !(f->flags & HYDNS_RULE_BOGUS);
	case HYDNS_RCODE_SERVFAIL:     /* a failure that the resolver remembers (RFC 9520) */
		return !(f->ancount | f->nscount | f->arcount) && !(f->flags & (HYDNS_RULE_SECURE | HYDNS_RULE_STATIC_TTL | HYDNS_RULE_KEPT));
	default:
		return false;
	}
}

/* What time does not end can only be from a zone; and a template is. */
static bool flags_fit(const struct hydns_offer *f)
{
	if (f->gap > 1 || (f->gap && !(f->flags & HYDNS_RULE_TEMPLATE)))
		return false;
	return !(f->flags & (HYDNS_RULE_KEPT | HYDNS_RULE_TEMPLATE)) || (f->flags & HYDNS_RULE_STATIC_TTL);
}

static enum hydnsd_rejection check_head(const struct hydns_offer *f)
{
	uint16_t flags = ntohs(f->reply_flags), qtype = ntohs(f->qtype);

	if ((f->variant & ~HYDNS_VARIANTS) || !flags_fit(f))
		return HYDNSD_REJECT_FLAGS;
	if (!hydnsd_name_valid(f->data, f->name_len))
		return HYDNSD_REJECT_NAME;
	if (hydnsd_type_is_meta(qtype) && !(qtype == HYDNS_HASHED_TYPE && (f->flags & HYDNS_RULE_TEMPLATE)))
		return HYDNSD_REJECT_QTYPE;
	if (flags & HYDNS_FLAG_TC)
		return HYDNSD_REJECT_TRUNCATED;
	if (!(flags & HYDNS_FLAG_QR) || (flags & FLAGS_REFUSED))
		return HYDNSD_REJECT_HEADER;
	if (!rcode_fits(f))
		return HYDNSD_REJECT_RCODE;
	if (ntohs(f->ancount) + ntohs(f->nscount) + ntohs(f->arcount) >
	    (f->flags & HYDNS_RULE_STATIC_TTL ? HYDNS_RECORDS_MAX : HYDNS_TTLS_MAX))
		return HYDNSD_REJECT_TOO_MANY;
	return HYDNSD_ACCEPTED;
}

/* The store reads no more of the frame: it copies name, answer and blocks, which fit into out->data. */
static bool blocks_fit(const struct hydns_offer *f, const struct blocks *b)
{
	return HYDNS_RULE_SPACE(f->name_len, f->answer_len, 0, b->left_out_len + HYDNS_ACCOUNT_LEN(f->flags) +
				(b->errors_len ? HYDNS_ERRORS_HEAD + b->errors_len : 0)) <= HYDNS_SLOT_MOST;
}

static uint8_t *copy_block(uint8_t *at, const uint8_t *block, uint16_t len)
{
	if (len)
		memcpy(at, block, len);
	return at + len;
}

static void fill_head(const struct hydns_offer *f, const struct blocks *b, struct hydnsd_answer *out)
{
	uint8_t *behind = out->data + f->name_len + 4 + f->answer_len;
	struct hydns_rule *head = &out->parts.head;
	uint16_t class = htons(HYDNS_CLASS_IN);

	memset(&out->parts, 0, sizeof(out->parts));
	memcpy(out->data, f->data, f->name_len);
	memcpy(out->data + f->name_len, &f->qtype, 2);
	memcpy(out->data + f->name_len + 2, &class, 2);
	memcpy(out->data + f->name_len + 4, f->data + f->name_len, f->answer_len);
	head->base_ns = f->base_ns;
	head->reply_flags = f->reply_flags;
	head->ancount = (uint8_t)ntohs(f->ancount);
	head->nscount = (uint8_t)ntohs(f->nscount);
	head->arcount = (uint8_t)ntohs(f->arcount);
	head->answer_len = f->answer_len;
	head->name_len = f->name_len;
	head->variant = f->variant;
	head->flags = f->flags;
	head->qtype = f->qtype;
	out->parts.name = out->data;
	out->parts.answer = out->data + f->name_len + 4;
	out->parts.ttl = out->ttl;
	out->parts.account = b->account;
	out->parts.errors = b->errors_len ? behind : NULL;
	out->parts.errors_len = b->errors_len;
	behind = copy_block(behind, b->errors, b->errors_len);
	out->parts.left_out = b->left_out_len ? behind : NULL;
	out->parts.left_out_len = b->left_out_len;
	copy_block(behind, b->left_out, b->left_out_len);
	out->generation = f->generation;
	out->epoch = f->epoch;
	out->count = f->count;
	out->window_ms = f->window_ms;
}

/* The RRset that is being read: RRs that follow one another. */
struct run {
	uint32_t start, end;
	uint32_t ttl_in_rr;
	uint32_t first;                /* number of its first RR in the answer */
	uint32_t count;
	uint16_t type;
	unsigned section;
	bool uneven;                   /* its owner names are written in different lengths */
	struct hydnsd_name owner;
};

static bool same_rrset(const struct run *run, const struct hydnsd_rr *rr, unsigned section)
{
	return run->count && run->section == section && run->type == rr->type &&
	       rr->owner.len == run->owner.len &&
	       memcmp(rr->owner.octet, run->owner.octet, rr->owner.len) == 0;
}

/* The state of reading one offer. */
struct reading {
	const struct hydnsd_offer_limits *limits;
	struct hydnsd_message message;
	struct hydnsd_marks marks;
	struct hydnsd_answer *out;
	struct run run;
	uint32_t records;              /* read so far */
	bool answer_fixed;             /* an RRset of the answer section cannot be rotated */
	uint32_t min_ttl;
};

static bool marked(const struct reading *r, uint32_t offset, uint32_t len)
{
	return memchr(r->marks.octet + hydnsd_answer_start(&r->message) + offset, 1, len) != NULL;
}

/* Decides whether a finished RRset is rotated: its owner names must be written in one length, and its TTLs be among the rule's. RRSIGs
 * are not, as in replies of resolvers. In other sections than the answer no client uses the order, so there an RRset may stay as it
 * is. */
static void end_run(struct reading *r)
{
	struct hydns_rule *head = &r->out->parts.head;
	struct run *run = &r->run;

	if (!r->limits->rotates || run->count < 2 || run->type == HYDNS_TYPE_RRSIG)
		;
	else if (!run->uneven && head->rotation_count < HYDNS_ROTATIONS_MAX && run->first + run->count <= HYDNS_TTLS_MAX)
		r->out->parts.rotation[head->rotation_count++] = (struct hydns_rotation){
			.start = (run->start - hydnsd_answer_start(&r->message)) & 0x7ff,
			.len = (run->end - run->start) & 0x7ff,
			.first = run->first & 0x1f,
			.last = (run->first + run->count - 1) & 0x1f,
		};
	else if (run->section == 0)
		r->answer_fixed = true;
	run->count = 0;
}

static void extend_run(struct reading *r, const struct hydnsd_rr *rr, unsigned section)
{
	if (same_rrset(&r->run, rr, section)) {
		r->run.count++;
		r->run.end = rr->end;
		r->run.uneven |= rr->ttl_at - rr->start != r->run.ttl_in_rr;
		return;
	}
	end_run(r);
	r->run = (struct run){
		.start = rr->start, .end = rr->end, .ttl_in_rr = rr->ttl_at - rr->start,
		.first = r->records - 1, .count = 1, .type = rr->type,
		.section = section, .owner = rr->owner,
	};
}

/* Adds a name that the answer depends on. */
static void add_name(struct hydnsd_answer *a, const struct hydnsd_offer_limits *l, const uint8_t *name, uint8_t len)
{
	struct hydnsd_dependency_list *o = &a->dependencies;

	if (hydnsd_dependency_list_add(o, hydnsd_name_hash(name, len, l->seed, &a->signature)) &&
	    o->count <= HYDNS_RULE_PLACES_MAX)
		a->parts.place[o->count - 1] = HYDNS_PLACE(hydns_place_hash(name, len, l->place_seed));
}

static void record_name(struct reading *r, const struct hydnsd_name *name)
{
	struct hydnsd_answer *a = r->out;

	if (name->len == a->parts.head.name_len && !memcmp(name->octet, a->data, name->len))
		return;                /* the question's name, which most records have, is there already */
	add_name(a, r->limits, name->octet, name->len);
}

/* Clears no more than the message is long: offers come by the million. */
static void begin_reading(struct reading *r, const struct hydnsd_offer_limits *limits, struct hydnsd_answer *out)
{
	const struct hydns_rule *head = &out->parts.head;

	r->limits = limits;
	r->out = out;
	r->message = (struct hydnsd_message){
		.data = out->data, .question_name = head->name_len,
		.end = HYDNSD_HEADER + head->name_len + 4U + head->answer_len,
	};
	memset(r->marks.octet, 0, r->message.end);
	r->marks.pointers = 0;
	r->marks.least = UINT32_MAX;
	r->run.count = r->records = 0;
	r->answer_fixed = false;
	r->min_ttl = UINT32_MAX;
}

static void record_left_out(struct reading *r)
{
	struct hydnsd_left_out names = hydnsd_left_out_names(r->out->parts.left_out);
	struct hydnsd_name name;

	while (hydnsd_left_out_next(&names, &name))
		record_name(r, &name);
}

static enum hydnsd_rejection read_record(struct reading *r, uint32_t *pos, unsigned section)
{
	struct hydns_rule *head = &r->out->parts.head;
	struct hydnsd_name target;
	struct hydnsd_rr rr;

	if (!hydnsd_rr_read(&r->message, pos, &rr, &r->marks))
		return HYDNSD_REJECT_RECORD;
	switch (hydnsd_rdata_check(&r->message, &rr, &r->marks)) {
	case HYDNSD_RDATA_META:
		return HYDNSD_REJECT_RECORD_TYPE;
	case HYDNSD_RDATA_BAD:
		return HYDNSD_REJECT_RECORD_DATA;
	case HYDNSD_RDATA_GOOD:
		break;
	}
	if (rr.class != HYDNS_CLASS_IN)
		return HYDNSD_REJECT_RECORD_CLASS;
	if (rr.ttl > HYDNS_TTL_MAX || (rr.ttl == 0 && !(head->flags & HYDNS_RULE_STATIC_TTL)))
		return HYDNSD_REJECT_TTL;
	if (rr.ttl < r->min_ttl)
		r->min_ttl = rr.ttl;
	if (r->records++ < HYDNS_TTLS_MAX)
		r->out->ttl[head->ttl_count++] = (uint16_t)(rr.ttl_at - hydnsd_answer_start(&r->message));
	record_name(r, &rr.owner);
	if (hydnsd_rr_target(&r->message, &rr, &target))
		record_name(r, &target);
	extend_run(r, &rr, section);
	return HYDNSD_ACCEPTED;
}

static enum hydnsd_rejection read_records(struct reading *r)
{
	const struct hydns_rule *head = &r->out->parts.head;
	const unsigned counts[] = { head->ancount, head->nscount, head->arcount };
	uint32_t pos = hydnsd_answer_start(&r->message);

	for (unsigned section = 0; section < 3; section++)
		for (unsigned i = 0; i < counts[section]; i++) {
			enum hydnsd_rejection why = read_record(r, &pos, section);

			if (why)
				return why;
		}
	end_run(r);
	return pos == r->message.end ? HYDNSD_ACCEPTED : HYDNSD_REJECT_TRAILING;
}

/* A compression pointer must not lead into octets that the program changes. Into a TTL: the offer is broken. Into an RRset
 * that is rotated: the RRset loses its rotation, for an honest resolver may compress so. */
static enum hydnsd_rejection check_marks(struct reading *r)
{
	struct hydns_rotation *rotation = r->out->parts.rotation;
	struct hydns_rule *head = &r->out->parts.head;
	unsigned left = 0;

	for (unsigned i = 0; i < head->ttl_count; i++)
		if (marked(r, r->out->ttl[i], 4))
			return HYDNSD_REJECT_RECORD;
	for (unsigned i = 0; i < head->rotation_count; i++) {
		struct hydns_rotation g = rotation[i];

		if (!marked(r, g.start, g.len))
			rotation[left++] = g;
		else if (g.first < head->ancount)
			r->answer_fixed = true;
	}
	head->rotation_count = (uint8_t)left;
	return r->answer_fixed ? HYDNSD_REJECT_ROTATION : HYDNSD_ACCEPTED;
}

static bool is_failure(const struct hydns_rule *head)
{
	return (ntohs(head->reply_flags) & HYDNS_FLAGS_RCODE) == HYDNS_RCODE_SERVFAIL;
}

static uint32_t longest_life(const struct hydns_rule *head)
{
	return head->flags & HYDNS_RULE_KEPT ? HYDNS_KEPT_LIFE : LIFE_MAX_S;
}

/* A rule ends before its smallest TTL would be sent as 0. A failure has none, and its life is the resolver's, however short. */
static enum hydnsd_rejection set_life(struct reading *r, uint32_t offered)
{
	const struct hydnsd_offer_limits *l = r->limits;
	struct hydns_rule *head = &r->out->parts.head;
	uint32_t life = offered;

	if (life == 0 || life > HYDNS_TTL_MAX)
		return HYDNSD_REJECT_TTL;
	if (life < l->min_ttl && !is_failure(head))
		return HYDNSD_REJECT_MIN_TTL;
	if (!(head->flags & HYDNS_RULE_STATIC_TTL) && life > r->min_ttl)
		life = r->min_ttl;
	if (l->max_ttl && life > l->max_ttl && !(head->flags & HYDNS_RULE_KEPT))
		life = l->max_ttl;
	if (is_failure(head) && life > FAILURE_LIFE_MAX_S)
		life = FAILURE_LIFE_MAX_S;
	if (life > longest_life(head))
		life = longest_life(head);
	head->expire_ms = life * 1000;
	if (head->base_ns > l->now_ns) {
		if (head->base_ns - l->now_ns > CLOCK_SLACK_NS)
			return HYDNSD_REJECT_CLOCK;
		head->base_ns = l->now_ns;
	}
	if (l->now_ns - head->base_ns >= life * HYDNS_NS_PER_S)
		return HYDNSD_REJECT_EXPIRED;
	return HYDNSD_ACCEPTED;
}

/* The name at which an answer for others than the question would stand, as an offset in the question's: the parent of names that do
 * not exist, or the name that has no data of the type. False: the question is none of these. */
static bool template_stands_at(const struct hydnsd_answer *a, uint32_t *at)
{
	const struct hydns_rule *head = &a->parts.head;
	uint8_t hash[HYDNS_SHA1_OCTETS];

	*at = HYDNS_HASHED_LEN;
	if (head->qtype == htons(HYDNS_HASHED_TYPE))
		return hydns_is_hashed_name(a->data, head->name_len, hash);
	*at = hydns_denies_types(ntohs(head->qtype)) ? 0 : 1U + a->data[0];
	return !*at || (head->qtype == htons(HYDNS_BELOW_TYPE) && hydns_is_below_name(a->data, head->name_len));
}

/* Whether the answer denies what it is asked for, and proves that. */
static bool denies_with_proof(const struct reading *r, uint32_t at)
{
	const struct hydns_rule *head = &r->out->parts.head;
	const unsigned flags = ntohs(head->reply_flags);
	const uint8_t *name = r->out->data + at, len = (uint8_t)(head->name_len - at);
	uint8_t hash[HYDNS_SHA1_OCTETS];

	if (!(head->variant & HYDNS_VARIANT_DO) || head->arcount || !(flags & HYDNS_FLAG_AA) ||
	    (flags & HYDNS_FLAGS_RCODE) != (at ? HYDNS_RCODE_NXDOMAIN : HYDNS_RCODE_NOERROR))
		return false;
	if (at && head->qtype == htons(HYDNS_BELOW_TYPE) && !hydns_is_probe(r->out->data))
		return hydnsd_is_proof_from_above(&r->message, head->nscount, name, len);
	if (head->qtype != htons(HYDNS_HASHED_TYPE))
		return hydnsd_is_proof(&r->message, head->nscount, at ? HYDNSD_DENIES_NAME : HYDNSD_DENIES_TYPE, name, len);
	return hydns_hash_of_label(r->out->data, hash) && hydnsd_is_proof_by_hash(&r->message, head->nscount, hash, name, len);
}

/*
 * Whether the records are those of an answer for all queries that such a template is for: behind a probe or a hash, up to the next one;
 * at a name that lacks the type, all types that it lacks; below a name, all there, if the proof begins above it. Else all names below the
 * one at this offset, or all that lack the type: then it is a denial with its SOA alone, which proves nothing of the name or type, or a
 * referral to its servers, which is about itself.
 */
static bool is_for_all(const struct reading *r, uint32_t at)
{
	const struct hydns_rule *head = &r->out->parts.head;
	const unsigned flags = ntohs(head->reply_flags), rcode = flags & HYDNS_FLAGS_RCODE;
	uint32_t pos = hydnsd_answer_start(&r->message);
	struct hydnsd_rr first;

	if (head->ancount || !head->nscount)
		return false;
	if (at && (hydns_is_probe(r->out->data) || head->qtype == htons(HYDNS_HASHED_TYPE)))
		return denies_with_proof(r, at);
	if (head->nscount > 1 && (!at || (flags & HYDNS_FLAG_AA)))
		return denies_with_proof(r, at);
	if (!hydnsd_rr_read(&r->message, &pos, &first, NULL) ||
	    first.owner.len != head->name_len - at || memcmp(first.owner.octet, r->out->data + at, first.owner.len) != 0)
		return false;
	if (flags & HYDNS_FLAG_AA)
		return rcode == (at ? HYDNS_RCODE_NXDOMAIN : HYDNS_RCODE_NOERROR) && head->nscount == 1 && !head->arcount &&
		       first.type == HYDNS_TYPE_SOA;
	return at && rcode == HYDNS_RCODE_NOERROR && first.type == HYDNS_TYPE_NS;
}

/* What the program writes there is no part of the answer that is checked and summed up. */
static bool leave_out(void *arg, uint32_t at, uint32_t len)
{
	struct reading *r = arg;

	if (marked(r, at, len))
		return false;          /* a name is written there */
	memset(r->out->data + r->out->parts.head.name_len + 4 + at, 0, len);
	return true;
}

/* Of a template that shows a SOA, in place of which the zone's present one belongs. */
static bool make_gap(struct reading *r, const struct hydns_offer_soa *soa)
{
	struct hydns_gap *g = &r->out->gap;

	if (!hydnsd_gap_find(&r->message, r->out->parts.head.nscount, g) || !hydnsd_gap_each(g, leave_out, r))
		return false;
	for (unsigned i = 0; i < 4; i++)
		g->id[i] = (uint16_t)(soa->id >> 16 * i);
	g->element[0] = (uint16_t)soa->element;
	g->element[1] = (uint16_t)(soa->element >> 16);
	r->out->parts.gap = g;
	return true;
}

/* Of an offer that may be a template: makes one of it, or an ordinary rule if it is none. */
static void make_template(struct reading *r)
{
	struct hydnsd_answer *a = r->out;
	struct hydns_rule *head = &a->parts.head;
	const struct hydnsd_marks *m = &r->marks;
	uint32_t at;

	if (!template_stands_at(a, &at) || (head->flags & HYDNS_RULE_ERRORS) || head->answer_len > HYDNS_BELOW_ANSWER_MOST ||
	    m->pointers > HYDNS_POINTERS_MOST || m->least < HYDNSD_HEADER + at || !is_for_all(r, at)) {
		head->flags &= (uint8_t)~HYDNS_RULE_TEMPLATE;
		return;
	}
	for (uint32_t i = 0; i < m->pointers; i++)
		a->pointer[i] = (uint16_t)(m->pointer[i] - hydnsd_answer_start(&r->message));
	head->variant |= HYDNS_VARIANT_TEMPLATE;
	a->parts.pointer = a->pointer;
	a->parts.pointer_count = (uint16_t)m->pointers;
}

/* Where in the slot the extended errors would begin. */
static uint32_t errors_at(const struct hydns_rule_parts *p)
{
	return HYDNS_RULE_SPACE(p->head.name_len, p->head.answer_len, p->head.ttl_count,
				p->head.rotation_count * HYDNS_ROTATION_LEN + p->head.place_count * sizeof(p->place[0]) +
				HYDNS_ACCOUNT_LEN(p->head.flags));
}

enum hydnsd_rejection hydnsd_offer_check(const struct hydns_offer *frame, size_t len,
					 const struct hydnsd_offer_limits *limits,
					 struct hydnsd_answer *out)
{
	struct reading r;
	struct hydns_rule *head = &out->parts.head;
	enum hydnsd_rejection why;
	struct blocks blocks;

	if (!lengths_fit(frame, len))
		return HYDNSD_REJECT_FRAME;
	why = check_head(frame);
	if (!why)
		why = read_blocks(frame, len, &blocks);
	if (why)
		return why;
	if (!blocks_fit(frame, &blocks))
		return HYDNSD_REJECT_TOO_BIG;
	fill_head(frame, &blocks, out);
	out->signature = 0;
	out->dependencies.count = 0;
	add_name(out, limits, frame->data, frame->name_len);
	begin_reading(&r, limits, out);
	record_left_out(&r);
	why = read_records(&r);
	if (!why)
		why = check_marks(&r);
	if (!why)
		why = set_life(&r, frame->ttl);
	if (why)
		return why;
	if (head->flags & HYDNS_RULE_TEMPLATE)
		make_template(&r);
	if (head->qtype == htons(HYDNS_HASHED_TYPE) && !(head->flags & HYDNS_RULE_TEMPLATE))
		return HYDNSD_REJECT_QTYPE;    /* nobody could ask for it */
	if (frame->gap && (!(head->flags & HYDNS_RULE_TEMPLATE) || !make_gap(&r, &blocks.soa)))
		return HYDNSD_REJECT_GAP;
	if (out->dependencies.count <= HYDNS_RULE_PLACES_MAX)
		head->place_count = (uint8_t)out->dependencies.count;
	if (HYDNS_RULE_SPACE(head->name_len, head->answer_len, head->ttl_count, hydns_parts_rest(&out->parts)) >
	    HYDNS_SLOT_MOST || (out->parts.errors_len && errors_at(&out->parts) > HYDNS_ERRORS_AT_MOST))
		return HYDNSD_REJECT_TOO_BIG;
	head->answer_sum = hydns_answer_sum(out->parts.answer, head->answer_len, out->ttl,
					    head->ttl_count);
	return HYDNSD_ACCEPTED;
}
