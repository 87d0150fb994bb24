/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/tests/build.h"

#include <arpa/inet.h>
#include <ldns/ldns.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/hash.h"
#include "hydns-kern/loader/loader.h"
#include "hydns-kern/store/geometry.h"

#define HEADER_FLAGS_AT 2
#define TTL_DEFAULT     300
#define COUNT_DEFAULT   10
#define WINDOW_MS       10000
#define BUILD_ERRORS_MAX 700           /* more than a rule holds */

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "cannot build a test's input: %s\n", what);
	abort();
}

/* -- offers ----------------------------------------------------------------------------------------------- */
static void push(ldns_pkt *p, ldns_pkt_section section, const char *const *line)
{
	for (; *line; line++) {
		ldns_rr *rr;

		must(ldns_rr_new_frm_str(&rr, *line, 0, NULL, NULL) == LDNS_STATUS_OK, *line);
		must(ldns_pkt_push_rr(p, section, rr), *line);
	}
}

static uint8_t *make_wire(const struct build_spec *spec, size_t *len)
{
	ldns_pkt *p = ldns_pkt_query_new(ldns_dname_new_frm_str(spec->name), spec->type,
					 LDNS_RR_CLASS_IN, LDNS_QR | LDNS_RA);
	uint8_t *wire;

	ldns_pkt_set_rcode(p, (uint8_t)spec->rcode);
	push(p, LDNS_SECTION_ANSWER, spec->answer);
	push(p, LDNS_SECTION_AUTHORITY, spec->authority_section);
	push(p, LDNS_SECTION_ADDITIONAL, spec->additional);
	must(ldns_pkt2wire(&wire, p, len) == LDNS_STATUS_OK, spec->name);
	ldns_pkt_free(p);
	return wire;
}

/* Writes the block of left-out names; returns its octets. */
static size_t put_left_out(const char *const *name, uint8_t *block)
{
	size_t at = 1;

	block[0] = 0;
	for (; *name; name++, block[0]++) {
		ldns_rdf *rdf = ldns_dname_new_frm_str(*name);

		must(rdf != NULL, *name);
		memcpy(block + at, ldns_rdf_data(rdf), ldns_rdf_size(rdf));
		at += ldns_rdf_size(rdf);
		ldns_rdf_deep_free(rdf);
	}
	return block[0] ? at : 0;
}

/* Writes extended errors with their length before them; returns all octets. */
static size_t put_errors(const char *text, uint8_t *block)
{
	size_t at = 2;
	uint16_t len;

	while (text && *text) {
		size_t n = strcspn(text, " ");
		const uint8_t head[] = { 0, HYDNS_OPTION_ERROR, (uint8_t)((n + 2) >> 8), (uint8_t)(n + 2), 0, 6 };

		must(at + sizeof(head) + n <= BUILD_ERRORS_MAX, text);
		memcpy(block + at, head, sizeof(head));
		memcpy(block + at + sizeof(head), text, n);
		at += sizeof(head) + n;
		text += n + (text[n] == ' ');
	}
	len = (uint16_t)(at - 2);
	memcpy(block, &len, sizeof(len));
	return len ? at : 0;
}

size_t build_offer(union build_offer *out, const struct build_spec *spec, uint64_t now_ns)
{
	uint8_t left_out[4 * HYDNS_NAME_MAX + 1], errors[BUILD_ERRORS_MAX];
	size_t left_out_len = put_left_out(spec->left_out, left_out), errors_len = put_errors(spec->errors, errors);
	size_t len, name_len = 1, frame;
	uint8_t *wire = make_wire(spec, &len);
	uint16_t counts[4];

	for (size_t at = HYDNSD_HEADER; wire[at]; at += 1 + wire[at])
		name_len += 1 + wire[at];
	frame = HYDNS_OFFER_DATA + (len - HYDNSD_HEADER - 4) + errors_len + left_out_len;
	memset(out, 0, frame + 8);
	memcpy(counts, wire + 4, sizeof(counts));
	out->offer = (struct hydns_offer){
		.frame = { .len = (uint32_t)((frame + 7) & ~7UL), .type = HYDNS_FRAME_OFFER },
		.generation = spec->generation ? spec->generation : 1, .base_ns = now_ns, .epoch = 1,
		.ttl = spec->ttl ? spec->ttl : TTL_DEFAULT,
		.count = spec->count ? spec->count : COUNT_DEFAULT, .window_ms = WINDOW_MS,
		.ancount = counts[1], .nscount = counts[2], .arcount = counts[3],
		.qtype = htons(spec->type), .name_len = (uint8_t)name_len,
		.answer_len = (uint16_t)(len - HYDNSD_HEADER - name_len - 4),
		.variant = spec->variant, .flags = spec->flags | (left_out_len ? HYDNS_RULE_LEFT_OUT : 0) |
			 (errors_len ? HYDNS_RULE_ERRORS : 0),
	};
	memcpy(&out->offer.reply_flags, wire + HEADER_FLAGS_AT, 2);
	memcpy(out->offer.data, wire + HYDNSD_HEADER, name_len);
	memcpy(out->offer.data + name_len, wire + HYDNSD_HEADER + name_len + 4, out->offer.answer_len);
	memcpy(out->offer.data + name_len + out->offer.answer_len, errors, errors_len);
	memcpy(out->offer.data + name_len + out->offer.answer_len + errors_len, left_out, left_out_len);
	free(wire);
	return out->offer.frame.len;
}

/* -- store -------------------------------------------------------------------------------------------------- */
static void *zeroed(size_t count, size_t size)
{
	void *p = aligned_alloc(64, (count * size + 63) & ~63UL);

	must(p != NULL, "memory");
	return memset(p, 0, count * size);
}

static void open_rules(struct build_store *s, uint32_t capacity, uint32_t min_hits, uint64_t now_ns)
{
	const struct hydns_policy_options policy = {
		.capacity = capacity, .min_hits = min_hits, .hysteresis = 10,
	};

	s->rules = hydnsd_rules_open(&s->memory, &policy, 0x5eed, now_ns);
	must(s->rules != NULL, "memory for rules");
}

void build_store_open(struct build_store *s, uint32_t capacity, uint32_t min_hits, uint64_t now_ns)
{
	hydns_geometry_for(capacity, 2, 2, &s->geometry);
	s->geometry.seed[0] = 1;
	s->geometry.seed[1] = 2;
	s->hits = zeroed((size_t)s->geometry.cpus * s->geometry.lines, sizeof(*s->hits));
	s->memory = (struct hydns_store_memory){
		.geometry = &s->geometry, .hits = s->hits,
		.index = zeroed(s->geometry.buckets, sizeof(struct hydns_bucket)),
		.claims = zeroed(s->geometry.lines, sizeof(struct hydns_line)),
		.slots = zeroed(hydns_geometry_chunks(&s->geometry), HYDNS_CHUNK),
		.seen = zeroed(s->geometry.lines, sizeof(struct hydns_line)),
		.tallies = zeroed(1, sizeof(struct hydns_tallies)),
	};
	open_rules(s, capacity, min_hits, now_ns);
}

void build_store_reopen(struct build_store *s, uint32_t capacity, uint64_t now_ns)
{
	hydnsd_rules_close(s->rules);
	open_rules(s, capacity, 0, now_ns);
}

void build_store_close(struct build_store *s)
{
	hydnsd_rules_close(s->rules);
	free(s->hits);
	free(s->memory.index);
	free(s->memory.claims);
	free(s->memory.slots);
	free(s->memory.seen);
	free(s->memory.tallies);
}

void build_store_hit(struct build_store *s, uint32_t handle, uint32_t hits)
{
	uint32_t o = hydns_store_ordinal(hydnsd_rules_store(s->rules), handle);
	struct hydns_rule *rule = (void *)(s->memory.slots + (size_t)(handle - 1) * HYDNS_UNIT);

	for (; hits; hits--)
		if ((int16_t)(rule->hits_end - rule->hits) > 0)
			rule->hits++;
		else
			s->hits[(o % 2) * s->geometry.lines + o / HYDNS_LINE_WORDS].word[o % HYDNS_LINE_WORDS]++;
}

void build_store_grace(struct build_store *s)
{
	hydnsd_rules_grace_begin(s->rules);
	hydnsd_rules_grace_end(s->rules);
}

/* -- reading rules ------------------------------------------------------------------------------------------- */
static void put16(uint8_t *to, uint16_t network)
{
	memcpy(to, &network, 2);
}

static size_t make_message(const struct hydns_rule *r, uint8_t *out)
{
	memset(out, 0, HYDNSD_HEADER);
	put16(out + HEADER_FLAGS_AT, r->reply_flags);
	put16(out + 4, htons(1));
	put16(out + 6, htons(r->ancount));
	put16(out + 8, htons(r->nscount));
	put16(out + 10, htons(r->arcount));
	memcpy(out + HYDNSD_HEADER, r->data, r->name_len + 4U + r->answer_len);
	return HYDNSD_HEADER + r->name_len + 4U + r->answer_len;
}

static uint16_t ttl_offset(const struct hydns_rule *r, unsigned i)
{
	uint16_t offset;

	memcpy(&offset, (const uint8_t *)r + HYDNS_RULE_TTLS(r->name_len, r->answer_len) + 2 * i, 2);
	return offset;
}

/* Copies the RRset from answer into out, beginning with RR number `by`. */
static void rotate(const struct hydns_rule *r, const uint8_t *answer, uint8_t *out,
		   const struct hydns_rotation *g, unsigned by)
{
	unsigned head = ttl_offset(r, g->first + by) - ttl_offset(r, g->first);

	memcpy(out + g->start, answer + g->start + head, g->len - head);
	memcpy(out + g->start + g->len - head, answer + g->start, head);
}

/* The program counts down as many TTLs as there are RRs, and the rule ends before one is 0. */
static const char *ttl_fault(const struct hydns_rule *r, const ldns_pkt *p)
{
	ldns_rr_list *all = ldns_pkt_all_noquestion(p);
	const char *fault = NULL;

	if (ldns_rr_list_rr_count(all) != r->ttl_count)
		fault = "as many TTLs as RRs";
	for (size_t i = 0; i < ldns_rr_list_rr_count(all); i++) {
		uint32_t ttl = ldns_rr_ttl(ldns_rr_list_rr(all, i));

		if (!(r->flags & HYDNS_RULE_STATIC_TTL) && (uint64_t)ttl * 1000 < r->expire_ms)
			fault = "a TTL would be sent as 0";
	}
	ldns_rr_list_deep_free(all);
	return fault;
}

/* True when the rule has the place of this name, which is in lower case. The tests' resolvers have no seed. */
static bool has_place(const struct hydns_rule *r, const uint8_t *name, size_t len)
{
	static const __u64 no_seed[2];
	uint16_t place = HYDNS_PLACE(hydns_place_hash(name, (uint8_t)len, no_seed));

	for (unsigned i = 0; i < r->place_count; i++)
		if (hydns_rule_place(r, i) == place)
			return true;
	return false;
}

static bool has_place_of(const struct hydns_rule *r, const ldns_rdf *name)
{
	ldns_rdf *lower = ldns_rdf_clone(name);
	bool has;

	ldns_dname2canonical(lower);
	has = has_place(r, ldns_rdf_data(lower), ldns_rdf_size(lower));
	ldns_rdf_deep_free(lower);
	return has;
}

static bool has_places_left_out(const struct hydns_rule *r)
{
	struct hydnsd_left_out names = hydnsd_left_out_names(hydns_rule_left_out(r));
	struct hydnsd_name name;

	while (hydnsd_left_out_next(&names, &name))
		if (!has_place(r, name.octet, name.len))
			return false;
	return true;
}

/* The rule has the place of each name that it depends on. */
static const char *places_fault(const struct hydns_rule *r, const ldns_pkt *p)
{
	ldns_rr_list *all = ldns_pkt_all(p);
	bool has = has_places_left_out(r);

	for (size_t i = 0; i < ldns_rr_list_rr_count(all); i++) {
		const ldns_rr *rr = ldns_rr_list_rr(all, i);

		has = has && has_place_of(r, ldns_rr_owner(rr));
		if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_CNAME && ldns_rr_rd_count(rr))
			has = has && has_place_of(r, ldns_rr_rdf(rr, 0));
	}
	ldns_rr_list_deep_free(all);
	return has || !r->place_count ? NULL : "a name without its place";
}

static const char *message_fault(const struct hydns_rule *r, const uint8_t *wire, size_t len)
{
	const char *fault = NULL;
	ldns_pkt *p = NULL;

	if (ldns_wire2pkt(&p, wire, len) != LDNS_STATUS_OK)
		return "ldns cannot read the message";
	if (ldns_pkt_ancount(p) != r->ancount || ldns_pkt_nscount(p) != r->nscount ||
	    ldns_pkt_arcount(p) != r->arcount)
		fault = "the counts differ";
	else if (ldns_pkt_size(p) != len)
		fault = "octets after the last record";
	else if (ldns_pkt_edns(p) || ldns_pkt_tc(p) || !ldns_pkt_qr(p))
		fault = "OPT, TC or no QR";
	else if (!(fault = places_fault(r, p)))
		fault = ttl_fault(r, p);
	ldns_pkt_free(p);
	return fault;
}

const char *build_rule_fault(const struct hydns_rule *rule)
{
	uint8_t wire[HYDNSD_MESSAGE_MAX];
	size_t len = make_message(rule, wire);
	uint8_t *answer = wire + HYDNSD_HEADER + rule->name_len + 4;
	const char *fault = message_fault(rule, wire, len);

	for (unsigned i = 0; !fault && i < rule->rotation_count; i++) {
		const struct hydns_rotation g = hydns_rule_rotation(rule, i);

		for (unsigned by = 0; !fault && by <= (unsigned)(g.last - g.first); by++) {
			rotate(rule, rule->data + rule->name_len + 4, answer, &g, by);
			fault = message_fault(rule, wire, len);
		}
	}
	return fault;
}
