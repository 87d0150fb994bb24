/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hostile answers of upstream servers through hydnsd's relay, and the offers that it makes of them through validation and policy: good
 * answers with some octets, counts or letters changed, cut, or made longer. What is relayed must have the answer's records in their
 * order, as ldns reads both messages, each with the least TTL of its RRset; and it must become a rule that ldns reads in every rotation.
 * Now and then a hostile list of zones, as a plugin may send it, through the reader of lists.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ldns/ldns.h>

#include "hydns-kern/store/rule.h"
#include "hydnsd/forwarding/relay.h"
#include "hydnsd/forwarding/zones.h"
#include "hydnsd/tests/build.h"
#include "test-harness/fuzz/target.h"

#define NOW_NS          1000000000000ULL
#define CAPACITY        512
#define COUNT_DEFAULT   100000         /* a share small enough for every test run */
#define MUTATIONS_MAX   5
#define HEADER          12
#define MESSAGE_MOST    1500
#define MAX_TTL         86400
#define MAX_NEGATIVE    3600
#define LISTS_ONE_IN    16             /* one in so many is a list of zones */

static const struct build_spec good[] = {
	{ .name = "www.example.", .type = 1, .answer = { "www.example. 300 IN A 192.0.2.1", "www.example. 200 IN A 192.0.2.2",
	  "www.example. 300 IN A 192.0.2.3" }, .authority_section = { "example. 300 IN NS ns.example." },
	  .additional = { "ns.example. 300 IN A 192.0.2.53" } },
	{ .name = "alias.example.", .type = 28, .answer = { "alias.example. 60 IN CNAME b.example.", "b.example. 50 IN CNAME c.d.example.",
	  "c.d.example. 30 IN AAAA 2001:db8::1", "c.d.example. 30 IN AAAA 2001:db8::2" } },
	{ .name = "example.", .type = 15, .answer = { "example. 3600 IN MX 10 mx1.example.", "example. 3600 IN MX 20 mx2.other." },
	  .additional = { "mx1.example. 3600 IN AAAA 2001:db8::1" } },
	{ .name = "nx.example.", .type = 28, .rcode = 3, .authority_section = {
	  "example. 900 IN SOA ns.example. h.example. 1 7200 3600 1209600 600" } },
	{ .name = "a.b.c.example.", .type = 16, .authority_section = {
	  "b.c.example. 900 IN SOA ns.example. h.b.c.example. 1 7200 3600 1209600 900" } },
	{ .name = "svc.example.", .type = 65, .answer = { "svc.example. 300 IN HTTPS 1 . alpn=h2,h3 ipv4hint=192.0.2.1" } },
	{ .name = "txt.example.", .type = 16, .answer = { "txt.example. 20 IN TXT \"a\" \"bcd\"" } },
	{ .name = "_sip._udp.example.", .type = 33, .answer = { "_sip._udp.example. 300 IN SRV 1 2 5060 sip.example." } },
	{ .name = "example.", .type = 6, .answer = { "example. 900 IN SOA ns.example. h.example. 1 7200 3600 1209600 900" } },
	{ .name = "4.example.", .type = 12, .answer = { "4.example. 300 IN PTR host.example." } },
	{ .name = "s.example.", .type = 44, .answer = { "s.example. 300 IN SSHFP 4 2 "
	  "abababababababababababababababababababababababababababababababab" } },
	{ .name = "caa.example.", .type = 257, .answer = { "caa.example. 300 IN CAA 0 issue \"ca.example\"" } },
	{ .name = "h.example.", .type = 13, .answer = { "h.example. 300 IN HINFO \"cpu\" \"os\"" } },
	{ .name = "c.example.", .type = 5, .answer = { "c.example. 300 IN CNAME www.example." } },
};
#define GOOD (sizeof(good) / sizeof(good[0]))

/* An answer as an upstream server sends it. */
struct message {
	uint8_t octet[MESSAGE_MOST];
	size_t len;
	struct hydnsd_relay_terms terms;
};

static struct message seeds[GOOD];

static bool below_example(void *arg, const uint8_t *name, uint8_t len)
{
	(void)arg;
	return len >= 9 && !memcmp(name + len - 9, "\7example", 9);
}

static void put16(uint8_t *to, unsigned v)
{
	to[0] = (uint8_t)(v >> 8);
	to[1] = (uint8_t)v;
}

static unsigned get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

/* The message whose records an offer has. */
static size_t message_of(const struct hydns_offer *o, uint8_t out[MESSAGE_MOST])
{
	size_t at = HEADER;

	memset(out, 0, HEADER);
	memcpy(out + 2, &o->reply_flags, 2);
	put16(out + 4, 1);
	memcpy(out + 6, &o->ancount, 2);
	memcpy(out + 8, &o->nscount, 2);
	memcpy(out + 10, &o->arcount, 2);
	memcpy(out + at, o->data, o->name_len);
	at += o->name_len;
	memcpy(out + at, &o->qtype, 2);
	put16(out + at + 2, 1);
	at += 4;
	memcpy(out + at, o->data + o->name_len, o->answer_len);
	return at + o->answer_len;
}

static void make_seeds(void)
{
	static union build_offer built;

	for (unsigned i = 0; i < GOOD; i++) {
		struct message *m = &seeds[i];
		const struct hydns_offer *o = &built.offer;
		uint8_t *name;

		build_offer(&built, &good[i], NOW_NS);
		m->len = message_of(o, m->octet);
		m->octet[2] |= 0x84;           /* QR, AA */
		name = malloc(o->name_len);
		memcpy(name, o->data, o->name_len);
		m->terms = (struct hydnsd_relay_terms){ .name = name, .name_len = o->name_len, .qtype = o->qtype, .max_ttl = MAX_TTL,
							.max_negative_ttl = MAX_NEGATIVE, .same_zone = below_example };
	}
}

/* -- hostile messages ------------------------------------------------------------------------------------------ */
static void change_octet(struct message *m)
{
	static const uint8_t liked[] = { 0, 1, 2, 5, 6, 0x3f, 0x40, 0xc0, 0xc1, 0x0c, 0x10, 0xff, 0x7f, 0x80, 41 };
	size_t from = fuzz_below(4) ? HEADER + m->terms.name_len : 0, at;

	if (from >= m->len)
		return;
	at = from + fuzz_below((uint32_t)(m->len - from));
	m->octet[at] = fuzz_below(2) ? liked[fuzz_below(sizeof(liked))] : (uint8_t)fuzz_next();
}

static void change_count(struct message *m)
{
	if (m->len >= HEADER)
		put16(m->octet + 4 + 2 * fuzz_below(4), fuzz_below(8) ? fuzz_below(5) : (unsigned)fuzz_next() & 0xffff);
}

/* Copies a part of the message over another, or between others: records come twice, names point elsewhere. */
static void copy_part(struct message *m)
{
	uint8_t part[64];
	size_t len = 1 + fuzz_below(sizeof(part)), from, to;

	if (m->len < HEADER + len)
		return;
	from = fuzz_below((uint32_t)(m->len - len + 1));
	memcpy(part, m->octet + from, len);
	to = HEADER + fuzz_below((uint32_t)(m->len - HEADER + 1));
	if (fuzz_below(2) && m->len + len <= sizeof(m->octet)) {
		memmove(m->octet + to + len, m->octet + to, m->len - to);
		m->len += len;
	}
	memcpy(m->octet + to, part, len < m->len - to ? len : m->len - to);
}

static void change_letters(struct message *m)
{
	for (size_t at = HEADER; at < m->len && at < HEADER + (size_t)m->terms.name_len; at++)
		if (m->octet[at] >= 'a' && m->octet[at] <= 'z' && fuzz_below(2))
			m->octet[at] -= 0x20;
}

static void mutate(struct message *m)
{
	unsigned n = fuzz_below(MUTATIONS_MAX + 1);

	change_letters(m);
	while (n--)
		switch (fuzz_below(8)) {
		case 0: change_count(m); break;
		case 1: copy_part(m); break;
		default: change_octet(m); break;
		}
	if (!fuzz_below(16))
		m->len = fuzz_below((uint32_t)m->len + 1);
	if (!fuzz_below(32) && m->len < sizeof(m->octet)) {
		size_t more = fuzz_below((uint32_t)(sizeof(m->octet) - m->len));

		fuzz_fill(m->octet + m->len, more);
		m->len += more;
	}
}

/* -- what ldns says ------------------------------------------------------------------------------------------------ */
/* The records of the section that is relayed; NULL: ldns can't read it. The other sections of the server's message do not matter. */
static ldns_pkt *parse(const uint8_t *octet, size_t len, bool positive)
{
	uint8_t *copy = malloc(len);
	ldns_pkt *p = NULL;

	memcpy(copy, octet, len);
	put16(copy + 10, 0);
	if (positive)
		put16(copy + 8, 0);
	if (ldns_wire2pkt(&p, copy, len) != LDNS_STATUS_OK)
		p = NULL;
	free(copy);
	return p;
}

/* The target of SVCB and HTTPS. It may not be compressed (RFC 9460), so resolvers relay it as octets; a pointer there would lead into the
 * question, whose letters are not the request's. */
static void lower_target(ldns_rr *rr)
{
	if ((ldns_rr_get_type(rr) == 64 || ldns_rr_get_type(rr) == 65) && ldns_rr_rd_count(rr) > 1)
		ldns_dname2canonical(ldns_rr_rdf(rr, 1));
}

static bool same_record(const ldns_rr *a, const ldns_rr *b)
{
	ldns_rr *x = ldns_rr_clone(a), *y = ldns_rr_clone(b);
	bool same;

	ldns_rr2canonical(x);
	ldns_rr2canonical(y);
	lower_target(x);
	lower_target(y);
	same = !ldns_rr_compare(x, y);
	ldns_rr_free(x);
	ldns_rr_free(y);
	return same;
}

/* A resolver gives an RRset its least TTL, and a denial the least of the SOA's and its last number (RFC 2308 section 3). */
static uint32_t ttl_of(const ldns_rr_list *list, const ldns_rr *of, bool positive)
{
	uint32_t ttl = ldns_rr_ttl(of);

	if (!positive) {
		uint32_t minimum = ldns_rdf2native_int32(ldns_rr_rdf(of, 6));

		return ttl < minimum ? ttl : minimum;
	}
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
		const ldns_rr *o = ldns_rr_list_rr(list, i);

		if (ldns_rr_get_type(o) == ldns_rr_get_type(of) && !ldns_dname_compare(ldns_rr_owner(o), ldns_rr_owner(of)) &&
		    ldns_rr_ttl(o) < ttl)
			ttl = ldns_rr_ttl(o);
	}
	return ttl;
}

static const char *compare(const ldns_rr_list *theirs, const ldns_rr_list *ours, bool positive, uint32_t life)
{
	uint32_t least = UINT32_MAX;

	if (!theirs || ldns_rr_list_rr_count(theirs) != ldns_rr_list_rr_count(ours))
		return "relayed with another number of records";
	for (size_t i = 0; i < ldns_rr_list_rr_count(ours); i++) {
		const ldns_rr *mine = ldns_rr_list_rr(ours, i);
		uint32_t ttl = ttl_of(theirs, ldns_rr_list_rr(theirs, i), positive);

		if (!same_record(ldns_rr_list_rr(theirs, i), mine))
			return "relayed with another record";
		if (ldns_rr_ttl(mine) != ttl || !ttl || ttl > (positive ? MAX_TTL : MAX_NEGATIVE))
			return "relayed with another TTL";
		if (!below_example(NULL, ldns_rdf_data(ldns_rr_owner(mine)), (uint8_t)ldns_rdf_size(ldns_rr_owner(mine))) && positive)
			return "relayed with a record of another zone";
		least = ttl < least ? ttl : least;
	}
	return least == life ? NULL : "the offer lives longer or shorter than its records";
}

/* NULL, or what is wrong with the offer. *readable: whether ldns can say. */
static const char *judge(const struct message *m, const struct hydns_offer *o, bool *readable)
{
	uint8_t octet[MESSAGE_MOST];
	bool positive = get16(m->octet + 6);
	ldns_pkt *ours, *theirs;
	const char *wrong;

	if (o->name_len != m->terms.name_len || memcmp(o->data, m->terms.name, o->name_len) || o->qtype != m->terms.qtype)
		return "relayed for another question";
	if ((ntohs(o->reply_flags) & 0x780f) != (get16(m->octet + 2) & 0x780f) || (m->octet[2] & 2) || !(m->octet[2] & 0x80))
		return "relayed with other flags, or of no complete answer";
	ours = parse(octet, message_of(o, octet), false);
	theirs = parse(m->octet, m->len, positive);
	*readable = theirs != NULL;
	if (!theirs)
		wrong = NULL;          /* resolvers relay octets of such types, as a TXT's, as they are */
	else if (!ours)
		wrong = "ldns can read what was relayed, and not the offer";
	else
		wrong = compare(positive ? ldns_pkt_answer(theirs) : ldns_pkt_authority(theirs),
				positive ? ldns_pkt_answer(ours) : ldns_pkt_authority(ours), positive, o->ttl);
	ldns_pkt_free(ours);
	ldns_pkt_free(theirs);
	return wrong;
}

static void show(const struct message *m)
{
	for (size_t i = 0; i < m->len; i++)
		fprintf(stderr, "%02x", m->octet[i]);
	fputc('\n', stderr);
}

/* -- one answer ------------------------------------------------------------------------------------------------------ */
struct counts {
	uint64_t relayed, unread, published, lists;
};

/* The offer as a resolver's: what is published must be readable. */
static const char *publish(struct build_store *s, struct hydns_offer *o, struct counts *n)
{
	static struct hydnsd_answer answer;
	const struct hydnsd_offer_limits limits = { .now_ns = NOW_NS, .seed = 0x5eed, .rotates = true };
	const struct hydnsd_offerer by = { .resolver = 1, .awaited = true };
	const struct hydns_rule *head = &answer.parts.head;
	uint32_t handle;

	o->generation = 1;
	o->base_ns = NOW_NS;
	o->count = 2;
	o->window_ms = 1000;
	if (hydnsd_offer_check(o, o->frame.len, &limits, &answer) || hydnsd_rules_admit(s->rules, &by, &answer, NOW_NS))
		return NULL;
	n->published++;
	handle = hydns_store_find(hydnsd_rules_store(s->rules), answer.parts.name, head->name_len, head->qtype, head->variant,
				  head->resolver);
	return handle ? build_rule_fault(hydns_store_rule(hydnsd_rules_store(s->rules), handle)) : "published, but not found";
}

static const char *one(struct build_store *s, struct counts *n)
{
	static uint8_t octets[HYDNSD_RELAY_OFFER] __attribute__((aligned(8)));
	struct hydns_offer *offer = (struct hydns_offer *)octets;
	struct message m = seeds[fuzz_below(GOOD)];
	enum hydnsd_relay why;
	bool readable = false;
	const char *wrong;
	uint8_t *exact;

	mutate(&m);
	exact = malloc(m.len ? m.len : 1);     /* so that a sanitizer sees each octet read beyond it */
	memcpy(exact, m.octet, m.len);
	fuzz_fill(octets, sizeof(octets));     /* what it leaves unset is seen as well */
	why = hydnsd_relay(exact, m.len, &m.terms, offer);
	free(exact);
	if (why)
		return why < HYDNSD_RELAYS ? NULL : "no such cause";
	n->relayed++;
	wrong = judge(&m, offer, &readable);
	n->unread += !readable;
	if (!wrong && readable)
		wrong = publish(s, offer, n);
	if (wrong)
		show(&m);
	return wrong;
}

/* -- lists of zones --------------------------------------------------------------------------------------------------- */
static size_t make_list(uint8_t *out)
{
	struct hydns_forwards *f = (void *)out;
	struct hydns_forward_server *server = (void *)(f + 1);
	struct hydns_forward_name zone;
	unsigned servers = fuzz_below(4), zones = fuzz_below(6);
	uint8_t *at = (uint8_t *)(server + servers);

	*f = (struct hydns_forwards){ .number = 1 + fuzz_below(3), .flags = (uint16_t)fuzz_below(4), .upstreams = (uint16_t)servers,
				      .zones = (uint16_t)zones, .max_ttl = MAX_TTL };
	for (unsigned i = 0; i < servers; i++) {
		server[i] = (struct hydns_forward_server){ .port = (uint16_t)fuzz_next() };
		fuzz_fill(server[i].addr, 16);
	}
	for (unsigned i = 0; i < zones; i++) {
		const struct message *m = &seeds[fuzz_below(GOOD)];

		memset(&zone, 0, sizeof(zone));
		zone.upstreams = fuzz_below(16);
		zone.name_len = m->terms.name_len;
		memcpy(zone.name, m->terms.name, zone.name_len);
		if (zone.name_len > 1 && fuzz_below(2))
			zone.name[1] = (uint8_t)('a' + fuzz_below(26));
		memcpy(at, &zone, sizeof(zone));
		at += sizeof(zone);
	}
	return (size_t)(at - out);
}

/* Whatever is taken has sound names and numbers, and is found. */
static const char *judge_list(const struct hydnsd_zones *z)
{
	for (uint32_t i = 0; i < z->count; i++) {
		if (z->zone[i].upstreams >> z->servers)
			return "a zone with a server that there is not";
		if (hydnsd_zones_find(z, z->zone[i].name, z->zone[i].name_len) != (int)i)
			return "a zone that is not found";
	}
	return z->count > HYDNS_FORWARD_ZONES || z->servers > HYDNS_FORWARD_UPSTREAMS ? "more zones or servers than there may be" : NULL;
}

static const char *one_list(struct hydnsd_zones **z, struct counts *n)
{
	static uint8_t list[sizeof(struct hydns_forwards) + 4 * sizeof(struct hydns_forward_server) + 6 * sizeof(struct hydns_forward_name)]
		__attribute__((aligned(8)));
	size_t len = make_list(list);
	uint8_t *exact;

	for (unsigned i = fuzz_below(4); i; i--)
		list[fuzz_below((uint32_t)len)] = (uint8_t)fuzz_next();
	if (!fuzz_below(8))
		len = fuzz_below((uint32_t)len + 1);
	exact = malloc(len ? len : 1);
	memcpy(exact, list, len);
	n->lists += !hydnsd_zones_add(z, exact, len);
	free(exact);
	return *z ? judge_list(*z) : NULL;
}

static struct build_store store;
static struct counts counts;
static struct hydnsd_zones *zones;

static const char *turn(void)
{
	static uint64_t turns;

	if (++turns % 64 == 0)
		build_store_grace(&store);
	return fuzz_below(LISTS_ONE_IN) ? one(&store, &counts) : one_list(&zones, &counts);
}

static int begin(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	make_seeds();
	build_store_open(&store, CAPACITY, 0, NOW_NS);
	return 0;
}

static int end(void)
{
	const struct counts *n = &counts;

	printf("%" PRIu64 " answers relayed, as ldns reads them but for %" PRIu64 " that it can't read, %" PRIu64 " published; %" PRIu64
	       " lists taken\n", n->relayed, n->unread, n->published, n->lists);
	free(zones);
	for (unsigned i = 0; i < GOOD; i++)
		free((void *)seeds[i].terms.name);
	build_store_close(&store);
	return n->relayed < 2 * n->unread || !n->published || !n->lists;
}

const struct fuzz_target fuzz_target = {
	.name = "relay", .one = "answer", .count = COUNT_DEFAULT, .begin = begin, .turn = turn, .end = end,
};
