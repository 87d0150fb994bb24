/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Checks of offers: good ones become parts of a rule, bad ones are rejected for their own reason. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydns/hash.h"
#include "hydns/names.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/rules/rdata.h"
#include "hydnsd/tests/build.h"

#define NOW_NS 1000000000000ULL

static const struct build_spec one_address = {
	.name = "www.example.com.", .type = 1, .answer = { "www.example.com. 300 IN A 192.0.2.1" },
};
static const struct build_spec chain = {
	.name = "www.example.com.", .type = 1, .answer = {
		"www.example.com. 60 IN CNAME host.example.net.",
		"host.example.net. 30 IN A 192.0.2.1", "host.example.net. 30 IN A 192.0.2.2",
		"host.example.net. 30 IN A 192.0.2.3" },
};

static struct hydnsd_offer_limits limits = { .now_ns = NOW_NS, .seed = 7, .rotates = true, .place_seed = { 3, 4 } };
static union build_offer offer;
static struct hydnsd_answer answer;

static enum hydnsd_rejection check(const struct build_spec *spec)
{
	return hydnsd_offer_check(&offer.offer, build_offer(&offer, spec, NOW_NS), &limits, &answer);
}

static enum hydnsd_rejection recheck(void)
{
	return hydnsd_offer_check(&offer.offer, offer.offer.frame.len, &limits, &answer);
}

static uint8_t *answer_octets(void)
{
	return offer.offer.data + offer.offer.name_len;
}

static void good_offer_is_taken(void **state)
{
	(void)state;
	assert_int_equal(check(&one_address), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.ttl_count, 1);
	assert_int_equal(answer.ttl[0], 2 + 4);        /* pointer, type, class */
	assert_int_equal(answer.parts.head.expire_ms, 300000);
	assert_int_equal(answer.parts.head.rotation_count, 0);
	assert_int_equal(answer.parts.head.name_len, 17);
	assert_memory_equal(answer.parts.answer, answer_octets(), offer.offer.answer_len);
}

static void chain_rotates_its_addresses_alone(void **state)
{
	(void)state;
	assert_int_equal(check(&chain), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.ttl_count, 4);
	assert_int_equal(answer.parts.head.expire_ms, 30000);
	assert_int_equal(answer.parts.head.rotation_count, 1);
	assert_int_equal(answer.parts.rotation[0].first, 1);
	assert_int_equal(answer.parts.rotation[0].last, 3);
	assert_int_equal(answer.parts.rotation[0].len, 3 * 16);
	limits.rotates = false;
	assert_int_equal(check(&chain), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.rotation_count, 0);
	limits.rotates = true;
}

/* Resolvers do not rotate RRSIGs. */
static void signatures_keep_their_places(void **state)
{
	const struct build_spec signed_twice = {
		.name = "www.example.com.", .type = 1, .variant = HYDNS_VARIANT_DO, .answer = {
			"www.example.com. 300 IN A 192.0.2.1", "www.example.com. 300 IN A 192.0.2.2",
			"www.example.com. 300 IN RRSIG A 8 3 300 19700102000000 19700101000000 1 example.com. AAAA",
			"www.example.com. 300 IN RRSIG A 8 3 300 20300101000000 20200101000000 2 example.com. BBBB" },
	};

	(void)state;
	assert_int_equal(check(&signed_twice), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.ttl_count, 4);
	assert_int_equal(answer.parts.head.rotation_count, 1);
	assert_int_equal(answer.parts.rotation[0].first, 0);
	assert_int_equal(answer.parts.rotation[0].last, 1);
}

/* RFC 3597, section 4: names in RDATA of types that are not in RFC 1035 must not be compressed. */
static void names_in_newer_types_are_not_compressed(void **state)
{
	static const struct { uint16_t type; uint8_t before; enum hydnsd_rdata is; } c[] = {
		{ 15, 2, HYDNSD_RDATA_GOOD }, { 33, 6, HYDNSD_RDATA_BAD }, { 39, 0, HYDNSD_RDATA_BAD }, { 36, 2, HYDNSD_RDATA_BAD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		uint8_t data[] = "\7example\0\0\1\0\1" "\xc0\x0c\0\0\0\1\0\0\1\54\0\0" "\0\0\0\0\0\0\0\0";
		struct hydnsd_message m = { .data = data, .question_name = 9 };
		uint8_t *rr = data + 13, *name = rr + 12 + c[i].before;
		uint32_t pos = hydnsd_answer_start(&m);
		struct hydnsd_rr read;

		rr[3] = (uint8_t)c[i].type;
		rr[11] = (uint8_t)(c[i].before + 2);
		name[0] = 0xc0;
		name[1] = 0x0c;
		m.end = HYDNSD_HEADER + 13 + 12 + c[i].before + 2U;
		assert_true(hydnsd_rr_read(&m, &pos, &read, NULL));
		assert_int_equal(hydnsd_rdata_check(&m, &read, NULL), c[i].is);
	}
}

/* A label may hold any octets, also those of another name. */
static void names_are_below_by_whole_labels(void **state)
{
	static const uint8_t example[] = "\7example";
	struct hydnsd_name name = { .len = 10, .octet = "\10\7example" };

	(void)state;
	assert_false(hydnsd_name_below(&name, example, sizeof(example)));
	name = (struct hydnsd_name){ .len = 11, .octet = "\1x\7example" };
	assert_true(hydnsd_name_below(&name, example, sizeof(example)));
	assert_true(hydnsd_name_below(&name, name.octet, name.len));
	name = (struct hydnsd_name){ .len = 9, .octet = "\7example" };
	assert_false(hydnsd_name_below(&name, (const uint8_t *)"\1x\7example", 11));
}

static void unequal_records_rotate(void **state)
{
	const struct build_spec unequal = {
		.name = "t.example.", .type = 16,
		.answer = { "t.example. 30 IN TXT \"a\"", "t.example. 30 IN TXT \"four\"" },
	};

	(void)state;
	assert_int_equal(check(&unequal), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.rotation_count, 1);
	assert_int_equal(answer.parts.rotation[0].start, 0);
	assert_int_equal(answer.parts.rotation[0].len, 12 + 2 + 12 + 5);
	assert_int_equal(answer.parts.rotation[0].last, 1);
}

/* An answer is rejected if the resolver would rotate an RRset of it and the program cannot. */
static void what_cannot_rotate_is_refused_in_the_answer(void **state)
{
	const struct build_spec elsewhere = {
		.name = "www.example.org.", .type = 1,
		.answer = { "www.example.org. 60 IN A 192.0.2.1" },
		.authority_section = { "example.org. 3600 IN NS ns1.example.org.",
			       "example.org. 3600 IN NS ns2.example.org." },
		.additional = { "ns1.example.org. 3600 IN A 192.0.2.1" },
	};
	const struct build_spec pointed_into = {
		.name = "example.org.", .type = 15,
		.answer = { "example.org. 3600 IN MX 10 mx1.example.org.",
			    "example.org. 3600 IN MX 20 mx2.example.org." },
		.additional = { "mx1.example.org. 3600 IN A 192.0.2.1" },
	};

	(void)state;
	assert_int_equal(check(&pointed_into), HYDNSD_REJECT_ROTATION);
	assert_int_equal(check(&elsewhere), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.rotation_count, 0);
	limits.rotates = false;
	assert_int_equal(check(&pointed_into), HYDNSD_ACCEPTED);
	limits.rotates = true;
}

static void set_of(const char *owner, unsigned count, char text[][64], const char *rr[])
{
	for (unsigned i = 0; i < count; i++) {
		snprintf(text[i], sizeof(text[i]), "%s 60 IN A 192.0.2.%u", owner, i);
		rr[i] = text[i];
	}
}

/* An answer from a zone may have more records than a rule has places for TTLs. */
static void only_the_first_records_rotate(void **state)
{
	static char text[HYDNS_RECORDS_MAX + 1][64];
	struct build_spec s = { .name = "www.example.", .type = 1, .flags = HYDNS_RULE_STATIC_TTL };

	(void)state;
	set_of("www.example.", HYDNS_TTLS_MAX, text, s.answer);
	assert_int_equal(check(&s), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.rotation[0].last, HYDNS_TTLS_MAX - 1);
	set_of("www.example.", HYDNS_TTLS_MAX + 1, text, s.answer);
	assert_int_equal(check(&s), HYDNSD_REJECT_ROTATION);
	memset(s.answer, 0, sizeof(s.answer));
	set_of("ns.example.", HYDNS_TTLS_MAX, text, s.additional);
	s.answer[0] = "www.example. 60 IN A 192.0.2.1";
	assert_int_equal(check(&s), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.rotation_count, 0);
	s.flags = 0;
	assert_int_equal(check(&s), HYDNSD_REJECT_TOO_MANY);
}

static void answers_from_zones_have_more_records(void **state)
{
	static char text[HYDNS_RECORDS_MAX + 1][64];
	struct build_spec s = { .name = "www.example.", .type = 1, .flags = HYDNS_RULE_STATIC_TTL };

	(void)state;
	limits.rotates = false;
	set_of("www.example.", HYDNS_RECORDS_MAX, text, s.answer);
	assert_int_equal(check(&s), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.ancount, HYDNS_RECORDS_MAX);
	assert_int_equal(answer.parts.head.ttl_count, HYDNS_TTLS_MAX);
	set_of("www.example.", HYDNS_RECORDS_MAX + 1, text, s.answer);
	assert_int_equal(check(&s), HYDNSD_REJECT_TOO_MANY);
	limits.rotates = true;
}

static void negative_answers_are_taken(void **state)
{
	const struct build_spec nxdomain = {
		.name = "nx.example.com.", .type = 28, .rcode = 3, .authority_section = {
			"example.com. 900 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 900" },
	};
	const struct build_spec empty = { .name = "nodata.example.com.", .type = 28 };

	(void)state;
	assert_int_equal(check(&nxdomain), HYDNSD_ACCEPTED);
	assert_int_equal(check(&empty), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.ttl_count, 0);
}

#define TEMPLATE (HYDNS_RULE_KEPT | HYDNS_RULE_STATIC_TTL | HYDNS_RULE_TEMPLATE)
#define ZONE_SOA "example.com. 900 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 900"

static const struct build_spec denial = {
	.name = "+below+.example.com.", .type = 1, .rcode = 3, .flags = TEMPLATE, .authority_section = { ZONE_SOA },
};
static const struct build_spec nodata = {
	.name = "example.com.", .type = HYDNS_NODATA_TYPE, .flags = TEMPLATE, .authority_section = { ZONE_SOA },
};
static const struct build_spec referral = {
	.name = "+below+.cut.example.com.", .type = 1, .flags = TEMPLATE, .additional = { "ns.cut.example.com. 300 IN A 10.0.2.1" },
	.authority_section = { "cut.example.com. 300 IN NS ns.cut.example.com.", "cut.example.com. 300 IN NS ns.example.com." },
};

/* Whether the offer, with these flags in its header besides, becomes a template. It becomes a rule in any case. */
static bool is_template(const struct build_spec *spec, uint16_t flags)
{
	build_offer(&offer, spec, NOW_NS);
	offer.offer.reply_flags |= htons(flags);
	assert_int_equal(recheck(), HYDNSD_ACCEPTED);
	return answer.parts.head.flags & HYDNS_RULE_TEMPLATE;
}

/* All octets that begin a pointer: no others of these answers are as large. */
static void pointers_are_known(void)
{
	unsigned found = 0;

	for (unsigned i = 0; i < answer.parts.head.answer_len; i++)
		if (answer.parts.answer[i] >= 0xc0) {
			assert_true(found < answer.parts.pointer_count);
			assert_int_equal(answer.parts.pointer[found], i);
			found++;
		}
	assert_int_equal(answer.parts.pointer_count, found);
	assert_true(found);
}

static void answers_to_all_become_templates(void **state)
{
	(void)state;
	assert_true(is_template(&denial, HYDNS_FLAG_AA));
	pointers_are_known();
	assert_true(is_template(&referral, 0));
	pointers_are_known();
	assert_true(is_template(&nodata, HYDNS_FLAG_AA));
	pointers_are_known();
}

static void no_other_answer_becomes_a_template(void **state)
{
	const struct build_spec two = { .name = denial.name, .type = 1, .rcode = 3, .flags = TEMPLATE,
		.authority_section = { ZONE_SOA, "example.com. 900 IN NS ns.example.com." } };
	const struct build_spec of_another = { .name = "+below+.x.example.com.", .type = 1, .rcode = 3, .flags = TEMPLATE,
		.authority_section = { ZONE_SOA } };
	const struct build_spec data = { .name = denial.name, .type = 1, .flags = TEMPLATE, .answer = {
		"+below+.example.com. 900 IN A 192.0.2.1" }, .authority_section = { "example.com. 900 IN NS ns.example.com." } };
	const struct build_spec glued = { .name = "+below+.cut.example.com.", .type = 1, .flags = TEMPLATE,
		.authority_section = { "cut.example.com. 300 IN NS +below+.cut.example.com." } };
	struct build_spec other = denial;

	(void)state;
	assert_false(is_template(&denial, 0));
	assert_false(is_template(&referral, HYDNS_FLAG_AA));
	assert_false(is_template(&two, HYDNS_FLAG_AA));
	assert_false(is_template(&of_another, HYDNS_FLAG_AA));
	assert_false(is_template(&data, 0));
	assert_false(is_template(&glued, 0));          /* a pointer leads to the label that other names do not have */
	other.type = 28;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	assert_false(is_template(&nodata, 0));
	other = nodata;
	other.type = 28;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = nodata;
	other.name = "www.example.com.";               /* whose SOA is that of a name above it */
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = nodata;
	other.rcode = 3;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = nodata;
	other.answer[0] = "example.com. 900 IN NULL \\# 1 00";
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = denial;
	other.name = "+belov+.example.com.";
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = denial;
	other.flags = TEMPLATE & ~HYDNS_RULE_TEMPLATE;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	assert_int_equal(answer.parts.pointer_count, 0);
}

/* -- proofs ------------------------------------------------------------------------------------------------- */
#define PROVES      (HYDNS_RULE_STATIC_TTL | HYDNS_RULE_TEMPLATE)
#define RRSIG(owner, type) owner " 900 IN RRSIG " type " 13 2 900 19700102000000 19700101000000 1 example.com. AAAA"
#define SOA_SIGNED  ZONE_SOA, RRSIG("example.com.", "SOA")
#define NSEC(owner) owner " 900 IN NSEC z.example.com. A RRSIG NSEC", RRSIG(owner, "NSEC")
#define NSEC3(n)    "0" n "00000000000000000000000000000000.example.com. 900 IN NSEC3 1 0 0 - 00000000000000000000000000000001 A", \
		    RRSIG("0" n "00000000000000000000000000000000.example.com.", "NSEC3")

static const struct build_spec proves_name = {
	.name = "b\\000.x.example.com.", .type = 1, .rcode = 3, .flags = PROVES, .variant = HYDNS_VARIANT_DO,
	.authority_section = { SOA_SIGNED, NSEC("y.b.x.example.com."), NSEC("x.example.com.") },
};
static const struct build_spec proves_type = {
	.name = "www.example.com.", .type = HYDNS_NODATA_TYPE, .flags = PROVES, .variant = HYDNS_VARIANT_DO,
	.authority_section = { SOA_SIGNED, NSEC("www.example.com.") },
};
/* As named writes it where the name has no NSEC3 record of its own. */
static const struct build_spec proves_type_above = {
	.name = "www.example.com.", .type = HYDNS_NODATA_TYPE, .flags = PROVES, .variant = HYDNS_VARIANT_DO,
	.authority_section = { NSEC3("a"), SOA_SIGNED, NSEC3("b") },
};
static const struct build_spec proves_type3 = {
	.name = "www.example.com.", .type = HYDNS_NODATA_TYPE, .flags = PROVES, .variant = HYDNS_VARIANT_DO,
	.authority_section = { SOA_SIGNED, NSEC3("a") },
};

static void proofs_become_templates(void **state)
{
	struct build_spec one = proves_name, of_origin = proves_type, keys = proves_type;

	(void)state;
	assert_true(is_template(&proves_name, HYDNS_FLAG_AA));
	pointers_are_known();
	one.authority_section[4] = one.authority_section[5] = NULL;      /* it denies the wildcard, too */
	one.name = "\\000.example.com.";
	assert_true(is_template(&one, HYDNS_FLAG_AA));
	assert_true(is_template(&proves_type, HYDNS_FLAG_AA));
	assert_true(is_template(&proves_type3, HYDNS_FLAG_AA));
	assert_true(is_template(&proves_type_above, HYDNS_FLAG_AA));
	of_origin.name = "example.com.";
	of_origin.flags = TEMPLATE;                                      /* which is preloaded */
	assert_true(is_template(&of_origin, HYDNS_FLAG_AA));
	keys.authority_section[4] = RRSIG("www.example.com.", "NSEC");   /* of another key */
	assert_true(is_template(&keys, HYDNS_FLAG_AA));
}

/* Of a delegation; but without a proof the zone says it, of any. */
static void a_proof_of_no_ds_becomes_one(void **state)
{
	struct build_spec one = proves_type, other = nodata;

	(void)state;
	one.type = HYDNS_TYPE_DS;
	assert_true(is_template(&one, HYDNS_FLAG_AA));
	pointers_are_known();
	assert_false(is_template(&one, 0));
	one.variant = 0;
	assert_false(is_template(&one, HYDNS_FLAG_AA));
	one = proves_type_above;
	one.type = HYDNS_TYPE_DS;
	assert_true(is_template(&one, HYDNS_FLAG_AA));
	other.name = "www.example.com.";
	other.type = HYDNS_TYPE_DS;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
}

/* What is put in place n of the authority section. */
static bool with(const struct build_spec *spec, unsigned n, const char *line)
{
	struct build_spec other = *spec;

	other.authority_section[n] = line;
	return is_template(&other, HYDNS_FLAG_AA);
}

static void other_proofs_become_none(void **state)
{
	struct build_spec other = proves_name;

	(void)state;
	assert_false(is_template(&proves_name, 0));
	other.variant = 0;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = proves_name;
	other.rcode = 0;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = proves_name;
	other.name = "b.x.example.com.";
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other.name = "+below+.x.example.com.";
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other.name = "b\\000.x.example.net.";            /* which is not in the SOA's zone */
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = proves_name;
	other.additional[0] = "ns.example.com. 300 IN A 192.0.2.1";
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = proves_name;
	other.flags = PROVES & ~HYDNS_RULE_STATIC_TTL;
	assert_int_equal(check(&other), HYDNSD_REJECT_FLAGS);
	other = denial;                                  /* a SOA alone proves nothing, and this is not its place */
	other.name = "b\\000.example.com.";
	other.variant = HYDNS_VARIANT_DO;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	assert_false(with(&proves_name, 5, NULL));       /* one without a signature */
	assert_false(with(&proves_name, 2, NULL));       /* none at all */
	assert_false(with(&proves_name, 1, "www.example.com. 900 IN NSEC z.example.com. A"));
	assert_false(with(&proves_name, 3, RRSIG("y.b.x.example.com.", "A")));
	assert_false(with(&proves_name, 3, RRSIG("b.x.example.com.", "NSEC")));
	assert_false(with(&proves_name, 0, "example.com. 900 IN NS ns.example.com."));
	assert_false(with(&proves_name, 4, "x.example.com. 900 IN DS 1 13 2 AAAA"));
	assert_false(with(&proves_name, 4, "x.example.net. 900 IN NSEC z.example.net. A"));
	assert_false(with(&proves_type_above, 0, RRSIG("example.com.", "SOA")));
	assert_false(with(&proves_type_above, 1, NULL));
	assert_false(with(&proves_type_above, 3, RRSIG("www.example.com.", "SOA")));
	other = proves_type_above;
	memcpy(other.authority_section, (const char *[]){ SOA_SIGNED }, 2 * sizeof(char *));
	assert_false(is_template(&other, HYDNS_FLAG_AA));                /* two of them */
	other = proves_name;
	memcpy(other.authority_section, (const char *[]){ SOA_SIGNED, NSEC3("a") }, 4 * sizeof(char *));
	other.authority_section[4] = other.authority_section[5] = NULL;
	assert_false(is_template(&other, HYDNS_FLAG_AA));                /* it is about one name */
	other = proves_name;
	memcpy(other.authority_section + 6, (const char *[]){ NSEC("v.example.com.") }, 2 * sizeof(char *));
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = proves_type;
	other.rcode = 3;
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = proves_type;
	memcpy(other.authority_section + 4, (const char *[]){ NSEC("v.example.com.") }, 2 * sizeof(char *));
	assert_false(is_template(&other, HYDNS_FLAG_AA));
	other = proves_type;
	memcpy(other.authority_section + 4, (const char *[]){ NSEC3("a") }, 2 * sizeof(char *));
	assert_false(is_template(&other, HYDNS_FLAG_AA));
}

/* -- gaps: the zone's present SOA in place of the offer's ------------------------------------------------------ */
#define ID 0x0877665504332211ULL

/* The offer with the words for it. */
static enum hydnsd_rejection with_gap(const struct build_spec *spec, uint16_t flags)
{
	const struct hydns_offer_soa soa = { .id = ID, .element = 0x12345 };

	build_offer(&offer, spec, NOW_NS);
	offer.offer.reply_flags |= htons(flags);
	offer.offer.gap = 1;
	memcpy(answer_octets() + offer.offer.answer_len, &soa, sizeof(soa));
	offer.offer.frame.len = (uint32_t)(HYDNS_OFFER_DATA + offer.offer.name_len + offer.offer.answer_len + sizeof(soa) + 7U) & ~7U;
	return recheck();
}

static void is_left_out(uint16_t at, unsigned len)
{
	static const uint8_t zeros[HYDNS_SIGNATURE_MOST];

	assert_memory_equal(answer.parts.answer + at, zeros, len);
	assert_memory_not_equal(answer_octets() + at, zeros, len);
}

static void gaps_are_found(void **state)
{
	const struct hydns_gap *g;

	(void)state;
	assert_int_equal(with_gap(&denial, HYDNS_FLAG_AA), HYDNSD_ACCEPTED);
	g = answer.parts.gap;
	assert_non_null(g);
	assert_int_equal(g->id[3] << 16 | g->id[2], ID >> 32);
	assert_int_equal(g->id[1] << 16 | g->id[0], (uint32_t)ID);
	assert_int_equal(g->element[1] << 16 | g->element[0], 0x12345);
	assert_int_equal(g->numbers, offer.offer.answer_len - HYDNS_SOA_NUMBERS);
	assert_int_equal(g->signature_len, 0);
	is_left_out(g->numbers, HYDNS_SOA_NUMBERS);
	assert_int_equal(answer.parts.head.variant, HYDNS_VARIANT_TEMPLATE);
	assert_int_equal(with_gap(&proves_name, HYDNS_FLAG_AA), HYDNSD_ACCEPTED);
	assert_int_equal(g->signature_len, 3);                           /* AAAA in base 64, all zeros */
	is_left_out(g->numbers, HYDNS_SOA_NUMBERS);
	is_left_out(g->fixed, HYDNS_RRSIG_FIXED);
	assert_int_equal(g->signature, g->fixed + HYDNS_RRSIG_FIXED + sizeof("\7example\3com"));
	assert_int_equal(is_template(&denial, HYDNS_FLAG_AA), true);
	assert_null(answer.parts.gap);
}

/* Another serial is the same answer. */
static void gaps_make_answers_equal(void **state)
{
	struct build_spec later = denial;
	uint16_t sum;

	(void)state;
	later.authority_section[0] = "example.com. 900 IN SOA ns.example.com. h.example.com. 7 7200 3600 1209600 900";
	with_gap(&denial, HYDNS_FLAG_AA);
	sum = answer.parts.head.answer_sum;
	with_gap(&later, HYDNS_FLAG_AA);
	assert_int_equal(answer.parts.head.answer_sum, sum);
}

static void no_other_answer_has_a_gap(void **state)
{
	struct build_spec two = proves_type, long_one = proves_type, of_another = proves_type, ordinary = denial;
	char text[600] = "example.com. 900 IN RRSIG SOA 8 2 900 19700102000000 19700101000000 1 example.com. ";

	(void)state;
	memmove(&two.authority_section[2], &two.authority_section[1], 3 * sizeof(two.authority_section[0]));
	assert_int_equal(with_gap(&two, HYDNS_FLAG_AA), HYDNSD_REJECT_GAP);
	of_another.authority_section[4] = RRSIG("www.example.com.", "SOA");
	assert_int_equal(with_gap(&of_another, HYDNS_FLAG_AA), HYDNSD_REJECT_GAP);
	memset(text + strlen(text), 'A', 344);                           /* 258 octets */
	long_one.authority_section[1] = text;
	assert_int_equal(with_gap(&long_one, HYDNS_FLAG_AA), HYDNSD_REJECT_GAP);
	assert_int_equal(with_gap(&referral, 0), HYDNSD_REJECT_GAP);
	assert_int_equal(with_gap(&denial, 0), HYDNSD_REJECT_GAP);       /* no template at all */
	ordinary.flags &= (uint8_t)~HYDNS_RULE_TEMPLATE;
	assert_int_equal(with_gap(&ordinary, HYDNS_FLAG_AA), HYDNSD_REJECT_FLAGS);
	with_gap(&denial, HYDNS_FLAG_AA);
	offer.offer.gap = 2;
	assert_int_equal(recheck(), HYDNSD_REJECT_FLAGS);
	offer.offer.gap = 1;
	memset(answer_octets() + offer.offer.answer_len, 0, sizeof(uint64_t));
	assert_int_equal(recheck(), HYDNSD_REJECT_GAP);                  /* the id of no SOA */
	with_gap(&denial, HYDNS_FLAG_AA);
	offer.offer.frame.len = (uint32_t)HYDNS_OFFER_DATA + offer.offer.name_len + offer.offer.answer_len;
	assert_int_equal(recheck(), HYDNSD_REJECT_GAP);
}

/* A pointer to the probe's own label is none to that of another name. */
static void proofs_that_show_the_probe_become_none(void **state)
{
	struct build_spec other = proves_name;

	(void)state;
	other.authority_section[0] = "example.com. 900 IN SOA ns.b\\000.x.example.com. h.example.com. 1 7200 3600 1209600 900";
	assert_false(is_template(&other, HYDNS_FLAG_AA));
}

/* -- proofs that are found by hashes ------------------------------------------------------------------------- */
#define ENCLOSER "\1x\7example\3com"
#define WILDCARD "\1*" ENCLOSER

/* A hash of the chain, counted from one of these on: what the octet is exchanged for that this number is in, and so is the next one's. */
enum { OF_ENCLOSER, OF_NAME, OF_WILDCARD };
struct covering {
	int of;
	int from, to;                          /* beside that hash */
};

static struct {
	struct hydns_nsec3 how;
	uint8_t hash[3][HYDNS_SHA1_OCTETS];
	char name[HYDNS_NAME_MAX], line[8][256];
	struct build_spec spec;
	unsigned lines;
} by_hash;

static void hash_beside(int of, int by, char *out)
{
	uint8_t hash[HYDNS_SHA1_OCTETS], label[1 + HYDNS_HASHED_LABEL];

	memcpy(hash, by_hash.hash[of], sizeof(hash));
	for (int i = HYDNS_SHA1_OCTETS - 1, carry = by; i >= 0 && carry; i--) {
		carry += hash[i];
		hash[i] = (uint8_t)carry;
		carry = carry < 0 ? -1 : carry > 255;
	}
	hydns_hash_to_label(hash, label);
	sprintf(out, "%.*s", HYDNS_HASHED_LABEL, (const char *)label + 1);
}

static void add_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(by_hash.line[by_hash.lines], sizeof(by_hash.line[0]), format, args);
	va_end(args);
	by_hash.spec.authority_section[by_hash.lines] = by_hash.line[by_hash.lines];
	by_hash.lines++;
}

static void add_nsec3(struct covering c, const char *algorithm)
{
	char own[HYDNS_HASHED_LABEL + 1], next[HYDNS_HASHED_LABEL + 1], salt[2 * HYDNS_NSEC3_SALT_MOST + 3] = "-";

	hash_beside(c.of, c.from, own);
	hash_beside(c.of, c.to, next);
	for (unsigned i = 0; i < by_hash.how.salt_len; i++)
		sprintf(salt + 2 * i, "%02x", by_hash.how.salt[i]);
	add_line("%s.example.com. 900 IN NSEC3 %s 0 %u %s %s A", own, algorithm, by_hash.how.iterations, salt, next);
	add_line("%s.example.com. 900 IN RRSIG NSEC3 13 3 900 19700102000000 19700101000000 1 example.com. AAAA", own);
}

static void begin_by_hash(struct hydns_nsec3 how)
{
	char label[HYDNS_HASHED_LABEL + 1];

	memset(&by_hash, 0, sizeof(by_hash));
	by_hash.how = how;
	hydns_nsec3_hash((const uint8_t *)ENCLOSER, sizeof(ENCLOSER), &how, by_hash.hash[OF_ENCLOSER]);
	hydns_nsec3_hash((const uint8_t *)WILDCARD, sizeof(WILDCARD), &how, by_hash.hash[OF_WILDCARD]);
	memcpy(by_hash.hash[OF_NAME], by_hash.hash[OF_ENCLOSER], HYDNS_SHA1_OCTETS);
	by_hash.hash[OF_NAME][1] ^= 0x80;
	hash_beside(OF_NAME, 0, label);
	snprintf(by_hash.name, sizeof(by_hash.name), "%s.%s.x.example.com.", label, &HYDNS_HASHED_MARK[1]);
	by_hash.spec = (struct build_spec){ .name = by_hash.name, .type = HYDNS_HASHED_TYPE, .rcode = 3, .flags = PROVES,
					    .variant = HYDNS_VARIANT_DO };
	add_line("%s", ZONE_SOA);
	add_line("%s", RRSIG("example.com.", "SOA"));
}

/* hydnsd refuses what is no template: nobody could ask for it. */
static bool is_taken(uint16_t flags)
{
	build_offer(&offer, &by_hash.spec, NOW_NS);
	offer.offer.reply_flags |= htons(flags);
	if (recheck() == HYDNSD_REJECT_QTYPE)
		return false;
	assert_true(answer.parts.head.flags & HYDNS_RULE_TEMPLATE);
	assert_true(answer.parts.pointer_count >= by_hash.lines / 2);  /* an owner of each RRset */
	for (unsigned i = 0; i < answer.parts.pointer_count; i++)
		assert_true(answer.parts.answer[answer.parts.pointer[i]] >= 0xc0);
	return true;
}

static bool proves_by(struct hydns_nsec3 how, unsigned n, const struct covering *c)
{
	begin_by_hash(how);
	for (unsigned i = 0; i < n; i++)
		add_nsec3(c[i], "1");
	return is_taken(HYDNS_FLAG_AA);
}

#define PROVES_BY(...) proves_by((struct hydns_nsec3){ 0 }, sizeof((struct covering[]){ __VA_ARGS__ }) / sizeof(struct covering), \
				 (struct covering[]){ __VA_ARGS__ })
#define ITSELF(what)   { what, 0, 1 }
#define AROUND(what)   { what, -1, 1 }

static void proofs_by_hash_become_templates(void **state)
{
	static const struct covering three[] = { ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD) };

	(void)state;
	assert_true(PROVES_BY(ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD)));
	assert_true(PROVES_BY(ITSELF(OF_ENCLOSER), ITSELF(OF_NAME), AROUND(OF_WILDCARD)));
	assert_true(PROVES_BY({ OF_ENCLOSER, 0, 0 }));           /* the only one of its chain, which covers all others */
	assert_true(PROVES_BY({ OF_ENCLOSER, 0, -1 }));
	assert_true(PROVES_BY(ITSELF(OF_ENCLOSER), { OF_NAME, 0, -1 }));  /* the last one */
	assert_true(PROVES_BY(ITSELF(OF_ENCLOSER), { OF_NAME, -1, -2 }));
	assert_true(proves_by((struct hydns_nsec3){ .iterations = HYDNS_NSEC3_ITERATIONS_MOST }, 3, three));
	assert_true(proves_by((struct hydns_nsec3){ .iterations = 1, .salt_len = HYDNS_NSEC3_SALT_MOST, .salt = { 1, 2, 255 } }, 3, three));
}

static void other_proofs_by_hash_become_none(void **state)
{
	static const struct covering three[] = { ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD) };

	(void)state;
	assert_false(PROVES_BY(AROUND(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD)));      /* of another encloser */
	assert_false(PROVES_BY(AROUND(OF_NAME), ITSELF(OF_ENCLOSER), AROUND(OF_WILDCARD)));      /* in another order */
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER), AROUND(OF_WILDCARD), AROUND(OF_NAME)));
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER), AROUND(OF_NAME)));
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER), AROUND(OF_WILDCARD)));
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER)));
	assert_false(PROVES_BY({ OF_NAME, 0, -1 }, AROUND(OF_WILDCARD)));
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER), { OF_NAME, 1, 2 }, AROUND(OF_WILDCARD)));    /* the name's hash lies before it */
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER), { OF_NAME, -1, 0 }, AROUND(OF_WILDCARD)));
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER), AROUND(OF_NAME), ITSELF(OF_WILDCARD)));      /* there is a wildcard */
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER), AROUND(OF_NAME), { OF_WILDCARD, -1, 0 }));
	assert_false(PROVES_BY({ OF_ENCLOSER, 0, -1 }, AROUND(OF_NAME), AROUND(OF_WILDCARD)));   /* two that are not needed */
	assert_false(PROVES_BY(ITSELF(OF_ENCLOSER), { OF_NAME, 0, -1 }, AROUND(OF_WILDCARD)));
	assert_false(proves_by((struct hydns_nsec3){ .iterations = HYDNS_NSEC3_ITERATIONS_MOST + 1 }, 3, three));
	begin_by_hash((struct hydns_nsec3){ 0 });
	for (unsigned i = 0; i < 3; i++)
		add_nsec3(three[i], "2");
	assert_false(is_taken(HYDNS_FLAG_AA));
	begin_by_hash((struct hydns_nsec3){ 0 });
	for (unsigned i = 0; i < 3; i++, by_hash.how.salt_len = 1)
		add_nsec3(three[i], "1");
	assert_false(is_taken(HYDNS_FLAG_AA));
	assert_true(proves_by((struct hydns_nsec3){ 0 }, 3, three));
	by_hash.spec.authority_section[7] = NULL;
	assert_false(is_taken(HYDNS_FLAG_AA));
	memcpy(by_hash.spec.authority_section + 6, (const char *[]){ NSEC("x.example.com.") }, 2 * sizeof(char *));
	assert_false(is_taken(HYDNS_FLAG_AA));
}

/* -- proofs about all names below one, which begin above it ---------------------------------------------------------- */
#define BELOW_ENCLOSER "\1e" ENCLOSER

static bool proves_all_below(const char *name, unsigned n, const struct covering *c)
{
	begin_by_hash((struct hydns_nsec3){ 0 });
	hydns_nsec3_hash((const uint8_t *)BELOW_ENCLOSER, sizeof(BELOW_ENCLOSER), &by_hash.how, by_hash.hash[OF_NAME]);
	by_hash.spec.name = name;
	by_hash.spec.type = HYDNS_BELOW_TYPE;
	for (unsigned i = 0; i < n; i++)
		add_nsec3(c[i], "1");
	return is_template(&by_hash.spec, HYDNS_FLAG_AA);
}

#define PROVES_ALL_BELOW(name, ...) proves_all_below(name, sizeof((struct covering[]){ __VA_ARGS__ }) / sizeof(struct covering), \
						     (struct covering[]){ __VA_ARGS__ })

static void proofs_from_above_become_templates(void **state)
{
	static const char *const names[] = { "+below+.e.x.example.com.", "+below+.f.e.x.example.com.", "+below+.g.f.e.x.example.com." };

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(PROVES_ALL_BELOW(names[i], ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD)));
		assert_true(PROVES_ALL_BELOW(names[i], ITSELF(OF_ENCLOSER), ITSELF(OF_NAME), AROUND(OF_WILDCARD))); /* as Unbound does */
	}
}

static void other_proofs_below_become_none(void **state)
{
	(void)state;
	/* with another encloser: the name itself, another one, or none */
	assert_false(PROVES_ALL_BELOW("+below+.x.example.com.", ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD)));
	assert_false(PROVES_ALL_BELOW("+below+.e.y.example.com.", ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD)));
	assert_false(PROVES_ALL_BELOW("+below+.e.x.example.com.", AROUND(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD)));
	/* of another name right below the encloser; with a wildcard; and with records that are not needed, or of another kind */
	assert_false(PROVES_ALL_BELOW("+below+.w.x.example.com.", ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD)));
	assert_false(PROVES_ALL_BELOW("+below+.e.x.example.com.", ITSELF(OF_ENCLOSER), AROUND(OF_NAME), ITSELF(OF_WILDCARD)));
	assert_false(PROVES_ALL_BELOW("+below+.e.x.example.com.", { OF_ENCLOSER, 0, -1 }, AROUND(OF_NAME), AROUND(OF_WILDCARD)));
	assert_true(PROVES_ALL_BELOW("+below+.e.x.example.com.", ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD)));
	assert_false(is_template(&by_hash.spec, 0));
	by_hash.spec.rcode = 0;
	assert_false(is_template(&by_hash.spec, HYDNS_FLAG_AA));
	by_hash.spec.rcode = 3;
	memcpy(by_hash.spec.authority_section + 6, (const char *[]){ NSEC("x.example.com.") }, 2 * sizeof(char *));
	assert_false(is_template(&by_hash.spec, HYDNS_FLAG_AA));
}

/* What stands at such a name, or is asked or answered in another way. */
static void nothing_else_stands_at_hashes(void **state)
{
	static const struct covering three[] = { ITSELF(OF_ENCLOSER), AROUND(OF_NAME), AROUND(OF_WILDCARD) };
	struct build_spec good;

	(void)state;
	assert_true(proves_by((struct hydns_nsec3){ 0 }, 3, three));
	good = by_hash.spec;
	assert_false(is_taken(0));
	by_hash.spec.rcode = 0;
	assert_false(is_taken(HYDNS_FLAG_AA));
	by_hash.spec = good;
	by_hash.spec.variant = 0;
	assert_false(is_taken(HYDNS_FLAG_AA));
	by_hash.spec = good;
	by_hash.spec.flags = HYDNS_RULE_STATIC_TTL;
	assert_false(is_taken(HYDNS_FLAG_AA));
	by_hash.spec = good;
	by_hash.spec.authority_section[0] = "example.com. 900 IN SOA ns.+nsec3+-------------------------.x.example.com. h.example.com. 1 2 3 4 900";
	assert_false(is_taken(HYDNS_FLAG_AA));
	by_hash.spec = good;
	by_hash.name[0] = 'w';
	assert_false(is_taken(HYDNS_FLAG_AA));
	by_hash.spec.name = "x.example.com.";
	assert_false(is_taken(HYDNS_FLAG_AA));
	by_hash.spec = good;
	by_hash.spec.type = 1;                           /* the name alone makes no template */
	assert_false(is_template(&by_hash.spec, HYDNS_FLAG_AA));
}

/* A failure that the resolver remembers lives as long as the resolver says, and 5 minutes at most (RFC 9520, section 3.2). */
static void failures_are_taken(void **state)
{
	struct build_spec failure = { .name = "dead.example.com.", .type = 1, .rcode = 2 };

	(void)state;
	failure.ttl = 5;
	assert_int_equal(check(&failure), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.expire_ms, 5000);
	failure.ttl = 301;
	assert_int_equal(check(&failure), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.expire_ms, 300000);
	failure.ttl = 1;               /* hydns-min-ttl is meant for answers */
	limits.min_ttl = 2;
	assert_int_equal(check(&failure), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.expire_ms, 1000);
	limits.min_ttl = 0;
	failure.authority_section[0] = "example.com. 900 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 900";
	assert_int_equal(check(&failure), HYDNSD_REJECT_RCODE);
}

static void extended_errors_are_taken(void **state)
{
	struct build_spec bogus = {
		.name = "bogus.example.com.", .type = 1, .rcode = 2, .flags = HYDNS_RULE_BOGUS, .errors = "one other", .ttl = 60,
		.left_out = { "example.com." },
	};
	static const uint8_t options[] = "\0\17\0\5\0\6one" "\0\17\0\7\0\6other";

	(void)state;
	assert_int_equal(check(&bogus), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.flags, HYDNS_RULE_BOGUS | HYDNS_RULE_ERRORS | HYDNS_RULE_LEFT_OUT);
	assert_int_equal(answer.parts.errors_len, sizeof(options) - 1);
	assert_memory_equal(answer.parts.errors, options, sizeof(options) - 1);
	assert_int_equal(answer.parts.left_out_len, 1 + 13);
	assert_memory_equal(answer.parts.left_out, "\1\7example\3com", 14);
	bogus.rcode = 0;               /* an answer may have errors, but is not bogus */
	assert_int_equal(check(&bogus), HYDNSD_REJECT_RCODE);
	bogus.flags = 0;
	assert_int_equal(check(&bogus), HYDNSD_ACCEPTED);
}

static void malformed_errors_are_refused(void **state)
{
	struct build_spec failure = { .name = "a.example.", .type = 1, .rcode = 2, .errors = "text" };
	static const struct {
		unsigned at;           /* in the block: length, code, octets, error's code, text */
		uint8_t octet;
	} broken[] = { { 0, 0 }, { 0, 9 }, { 0, 11 }, { 1, 1 }, { 1, 0xff }, { 2, 1 }, { 3, 10 }, { 5, 5 }, { 5, 7 }, { 5, 1 } };
	char text[HYDNS_ERRORS_MOST + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		assert_int_equal(check(&failure), HYDNSD_ACCEPTED);
		answer_octets()[offer.offer.answer_len + broken[i].at] = broken[i].octet;
		assert_int_equal(recheck(), HYDNSD_REJECT_ERRORS);
	}
	memset(text, 'x', sizeof(text));
	text[HYDNS_ERRORS_MOST - 6] = 0;
	failure.errors = text;
	assert_int_equal(check(&failure), HYDNSD_ACCEPTED);
	text[HYDNS_ERRORS_MOST - 6] = 'x';
	text[HYDNS_ERRORS_MOST - 5] = 0;
	assert_int_equal(check(&failure), HYDNSD_REJECT_ERRORS);
}

/* The program reads errors from the first part of a slot. */
static void errors_behind_a_long_answer_are_refused(void **state)
{
	char line[BUILD_RRS_MAX][64];
	struct build_spec s = { .name = "a.example.", .type = 16, .errors = "text" };
	unsigned taken = 0;

	(void)state;
	for (unsigned i = 0; i < 30; i++) {
		snprintf(line[i], sizeof(line[i]), "a.example. 300 IN TXT \"%030u\"", i);
		s.answer[i] = line[i];
		if (check(&s) == HYDNSD_ACCEPTED)
			taken++;
		else
			assert_int_equal(check(&s), HYDNSD_REJECT_TOO_BIG);
	}
	assert_int_equal(taken, (HYDNS_ERRORS_AT_MOST - 48 - 11 - 4 - 4 - 2) / (43 + 2));
}

static void lives_are_bounded(void **state)
{
	struct build_spec s = one_address;

	(void)state;
	s.ttl = 5000;                  /* the record's own TTL is smaller */
	assert_int_equal(check(&s), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.expire_ms, 300000);
	s.ttl = 10;
	assert_int_equal(check(&s), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.expire_ms, 10000);
	limits.min_ttl = 11;
	assert_int_equal(check(&s), HYDNSD_REJECT_MIN_TTL);
	limits.min_ttl = 0;
	limits.max_ttl = 60;
	s.ttl = 300;
	assert_int_equal(check(&s), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.expire_ms, 60000);
	limits.max_ttl = 0;
}

static void clocks_are_checked(void **state)
{
	(void)state;
	check(&one_address);
	offer.offer.base_ns = NOW_NS - 300 * HYDNS_NS_PER_S;
	assert_int_equal(recheck(), HYDNSD_REJECT_EXPIRED);
	offer.offer.base_ns = NOW_NS - 299 * HYDNS_NS_PER_S;
	assert_int_equal(recheck(), HYDNSD_ACCEPTED);
	offer.offer.base_ns = NOW_NS + 1000;
	assert_int_equal(recheck(), HYDNSD_ACCEPTED);
	assert_true(answer.parts.head.base_ns <= NOW_NS);
	offer.offer.base_ns = NOW_NS + 2 * HYDNS_NS_PER_S;
	assert_int_equal(recheck(), HYDNSD_REJECT_CLOCK);
}

/* One thing wrong at a time. */
struct fault {
	const char *what;
	void (*break_it)(void);
	enum hydnsd_rejection why;
};

static void upper_case(void) { offer.offer.data[1] = 'W'; }
static void long_label(void) { offer.offer.data[0] = 64; }
static void no_root(void) { offer.offer.data[offer.offer.name_len - 1] = 1; }
static void short_name(void) { offer.offer.name_len--; }
static void beyond_frame(void) { offer.offer.answer_len += 64; }
static void no_qr(void) { offer.offer.reply_flags = htons(0x0080); }
static void rd(void) { offer.offer.reply_flags |= htons(0x0100); }
static void cd(void) { offer.offer.reply_flags |= htons(0x0010); }
static void opcode(void) { offer.offer.reply_flags |= htons(0x0800); }
static void tc(void) { offer.offer.reply_flags |= htons(0x0200); }
static void servfail(void) { offer.offer.reply_flags |= htons(2); }
static void any(void) { offer.offer.qtype = htons(255); }
static void axfr(void) { offer.offer.qtype = htons(252); }
static void variant(void) { offer.offer.variant = HYDNS_VARIANTS + 1; }
static void flags(void) { offer.offer.flags = 0x80; }
static void kept(void) { offer.offer.flags = HYDNS_RULE_KEPT; }
static void no_account(void) { offer.offer.flags = HYDNS_RULE_COUNTED; }
static void bogus(void) { offer.offer.flags = HYDNS_RULE_BOGUS; }
static void no_errors(void) { offer.offer.flags = HYDNS_RULE_ERRORS; }
static void one_too_many(void) { offer.offer.ancount = htons(2); }
static void one_too_few(void) { offer.offer.ancount = 0; }
static void far_too_many(void) { offer.offer.nscount = htons(HYDNS_TTLS_MAX); }
static void forward_pointer(void) { answer_octets()[1] = 0x3c; }
static void self_pointer(void) { answer_octets()[1] = (uint8_t)(12 + 17 + 4); }
static void into_question_type(void) { answer_octets()[1] = 12 + 17; }
static void into_a_label(void) { answer_octets()[1] = 13; }
static void into_the_header(void) { answer_octets()[1] = 0; }
static void class_chaos(void) { answer_octets()[5] = 3; }
static void opt(void) { answer_octets()[3] = 41; }
static void tsig(void) { answer_octets()[3] = 250; }
static void zero_ttl(void) { memset(answer_octets() + 6, 0, 4); }
static void huge_ttl(void) { answer_octets()[6] = 0x80; }
static void long_rdata(void) { answer_octets()[11] = 5; }
static void short_rdata(void) { answer_octets()[11] = 3; }
static void type_aaaa(void) { answer_octets()[3] = 28; }
static void dead_on_arrival(void) { offer.offer.ttl = 0; }

static const struct fault faults[] = {
	{ "upper case", upper_case, HYDNSD_REJECT_NAME },
	{ "a label of 64 octets", long_label, HYDNSD_REJECT_NAME },
	{ "no root label", no_root, HYDNSD_REJECT_NAME },
	{ "a name cut short", short_name, HYDNSD_REJECT_NAME },
	{ "longer than its frame", beyond_frame, HYDNSD_REJECT_FRAME },
	{ "no QR", no_qr, HYDNSD_REJECT_HEADER },
	{ "RD", rd, HYDNSD_REJECT_HEADER },
	{ "CD", cd, HYDNSD_REJECT_HEADER },
	{ "an opcode", opcode, HYDNSD_REJECT_HEADER },
	{ "TC", tc, HYDNSD_REJECT_TRUNCATED },
	{ "SERVFAIL", servfail, HYDNSD_REJECT_RCODE },
	{ "type ANY", any, HYDNSD_REJECT_QTYPE },
	{ "type AXFR", axfr, HYDNSD_REJECT_QTYPE },
	{ "an unknown variant", variant, HYDNSD_REJECT_FLAGS },
	{ "unknown flags", flags, HYDNSD_REJECT_FLAGS },
	{ "an answer from a cache that is to stay", kept, HYDNSD_REJECT_FLAGS },
	{ "an account that is not there", no_account, HYDNSD_REJECT_ACCOUNT },
	{ "an answer that is bogus", bogus, HYDNSD_REJECT_RCODE },
	{ "extended errors that are not there", no_errors, HYDNSD_REJECT_ERRORS },
	{ "a record too many counted", one_too_many, HYDNSD_REJECT_RECORD },
	{ "a record too few counted", one_too_few, HYDNSD_REJECT_TRAILING },
	{ "more records than a rule takes", far_too_many, HYDNSD_REJECT_TOO_MANY },
	{ "a pointer forward", forward_pointer, HYDNSD_REJECT_RECORD },
	{ "a pointer to itself", self_pointer, HYDNSD_REJECT_RECORD },
	{ "a pointer into the question's type", into_question_type, HYDNSD_REJECT_RECORD },
	{ "a pointer into a label", into_a_label, HYDNSD_REJECT_RECORD },
	{ "a pointer into the header", into_the_header, HYDNSD_REJECT_RECORD },
	{ "class CH", class_chaos, HYDNSD_REJECT_RECORD_CLASS },
	{ "an OPT record", opt, HYDNSD_REJECT_RECORD_TYPE },
	{ "a TSIG record", tsig, HYDNSD_REJECT_RECORD_TYPE },
	{ "TTL 0", zero_ttl, HYDNSD_REJECT_TTL },
	{ "TTL beyond 2^31-1", huge_ttl, HYDNSD_REJECT_TTL },
	{ "RDATA beyond the end", long_rdata, HYDNSD_REJECT_RECORD },
	{ "an address of 3 octets", short_rdata, HYDNSD_REJECT_RECORD_DATA },
	{ "an AAAA of 4 octets", type_aaaa, HYDNSD_REJECT_RECORD_DATA },
	{ "an offer for no time", dead_on_arrival, HYDNSD_REJECT_TTL },
};

static void bad_offers_are_told_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		assert_int_equal(check(&one_address), HYDNSD_ACCEPTED);
		faults[i].break_it();
		if (recheck() != faults[i].why)
			fail_msg("%s: %s instead of %s", faults[i].what,
				 hydnsd_rejection_name(recheck()), hydnsd_rejection_name(faults[i].why));
	}
}

static uint16_t place_of(const char *name)
{
	uint8_t wire[HYDNS_NAME_MAX] = { 0 }, len = 0;

	for (; *name; name += strcspn(name, ".") + 1) {
		wire[len] = (uint8_t)strcspn(name, ".");
		memcpy(wire + len + 1, name, wire[len]);
		len = (uint8_t)(len + 1 + wire[len]);
	}
	wire[len] = 0;
	return HYDNS_PLACE(hydns_place_hash(wire, (uint8_t)(len + 1), limits.place_seed));
}

static bool has_place(const char *name)
{
	for (unsigned i = 0; i < answer.parts.head.place_count; i++)
		if (answer.parts.place[i] == place_of(name))
			return true;
	return false;
}

/* Each name that the answer depends on has its place, once. If there are too many, none has. */
static void places_of_all_names_are_noted(void **state)
{
	struct build_spec proof = {
		.name = "no.example.com.", .type = 1, .rcode = 3,
		.authority_section = { "example.com. 300 IN SOA ns.example.com. h.example.com. 1 2 3 4 5" },
		.left_out = { "a.example.com.", "*.example.com.", "b.example.com." },
	}, many = { .name = "0.example.", .type = 1 };
	char line[10][64];

	(void)state;
	assert_int_equal(check(&one_address), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.place_count, 1);
	assert_true(has_place("www.example.com."));
	assert_int_equal(check(&chain), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.place_count, 2);
	assert_true(has_place("www.example.com.") && has_place("host.example.net."));
	assert_int_equal(check(&proof), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.head.place_count, 5);
	assert_true(has_place("no.example.com.") && has_place("example.com.") && has_place("a.example.com.") &&
		    has_place("*.example.com.") && has_place("b.example.com."));
	for (int i = 0; i < HYDNS_RULE_PLACES_MAX; i++) {
		snprintf(line[i], sizeof(line[i]), "%d.example. 300 IN CNAME %d.example.", i, i + 1);
		many.answer[i] = line[i];
		assert_int_equal(check(&many), HYDNSD_ACCEPTED);
		assert_int_equal(answer.parts.head.place_count, i + 2 <= HYDNS_RULE_PLACES_MAX ? i + 2 : 0);
	}
}

static void malformed_names_left_out_are_refused(void **state)
{
	const struct build_spec with = {
		.name = "a.example.", .type = 1, .answer = { "a.example. 300 IN A 192.0.2.1" },
		.left_out = { "zz.example.", "." },
	};
	static const struct {
		unsigned at;               /* in the block: 2, 2 z z 7 e x a m p l e 0, 0 */
		uint8_t octet;
	} broken[] = { { 0, 0 }, { 0, 200 }, { 1, 0xc0 }, { 1, 0x3f }, { 3, 'Z' } };
	uint8_t *block;

	(void)state;
	assert_int_equal(check(&with), HYDNSD_ACCEPTED);
	assert_int_equal(answer.parts.left_out_len, 1 + 12 + 1);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		assert_int_equal(check(&with), HYDNSD_ACCEPTED);
		block = answer_octets() + offer.offer.answer_len;
		block[broken[i].at] = broken[i].octet;
		assert_int_equal(recheck(), HYDNSD_REJECT_LEFT_OUT);
	}
}

/* A name in a TTL would change with time. */
static void pointers_into_ttls_are_refused(void **state)
{
	const struct build_spec two = {
		.name = "a.example.", .type = 1,
		.answer = { "a.example. 65792 IN CNAME b.example.", "b.example. 300 IN A 192.0.2.1" },
	};
	uint8_t *rr;

	(void)state;
	assert_int_equal(check(&two), HYDNSD_ACCEPTED);
	rr = answer_octets();
	memcpy(rr + 6, "\x01\x61\x00\x00", 4); /* a TTL that reads as the name "a." */
	rr[16] = 0xc0;                 /* the second owner name points to it */
	rr[17] = (uint8_t)(12 + 11 + 4 + 6);
	assert_int_equal(recheck(), HYDNSD_REJECT_RECORD);
}

static void prefixes_of_an_offer_never_pass(void **state)
{
	size_t len = build_offer(&offer, &chain, NOW_NS);

	(void)state;
	for (size_t cut = 0; cut + 8 <= len; cut++) {
		struct hydns_offer *exact = malloc(cut ? cut : 1);

		memcpy(exact, &offer, cut);
		assert_int_equal(hydnsd_offer_check(exact, cut, &limits, &answer), HYDNSD_REJECT_FRAME);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_offer_is_taken),
		cmocka_unit_test(answers_to_all_become_templates), cmocka_unit_test(no_other_answer_becomes_a_template),
		cmocka_unit_test(proofs_become_templates), cmocka_unit_test(a_proof_of_no_ds_becomes_one), cmocka_unit_test(other_proofs_become_none),
		cmocka_unit_test(proofs_by_hash_become_templates), cmocka_unit_test(other_proofs_by_hash_become_none),
		cmocka_unit_test(nothing_else_stands_at_hashes),
		cmocka_unit_test(proofs_from_above_become_templates), cmocka_unit_test(other_proofs_below_become_none),
		cmocka_unit_test(proofs_that_show_the_probe_become_none),
		cmocka_unit_test(chain_rotates_its_addresses_alone),
		cmocka_unit_test(signatures_keep_their_places), cmocka_unit_test(names_in_newer_types_are_not_compressed),
		cmocka_unit_test(names_are_below_by_whole_labels), cmocka_unit_test(unequal_records_rotate),
		cmocka_unit_test(what_cannot_rotate_is_refused_in_the_answer), cmocka_unit_test(only_the_first_records_rotate),
		cmocka_unit_test(answers_from_zones_have_more_records),
		cmocka_unit_test(negative_answers_are_taken),
		cmocka_unit_test(failures_are_taken), cmocka_unit_test(extended_errors_are_taken),
		cmocka_unit_test(malformed_errors_are_refused), cmocka_unit_test(errors_behind_a_long_answer_are_refused),
		cmocka_unit_test(lives_are_bounded),
		cmocka_unit_test(clocks_are_checked),
		cmocka_unit_test(bad_offers_are_told_apart),
		cmocka_unit_test(places_of_all_names_are_noted),
		cmocka_unit_test(malformed_names_left_out_are_refused),
		cmocka_unit_test(gaps_are_found), cmocka_unit_test(gaps_make_answers_equal), cmocka_unit_test(no_other_answer_has_a_gap),
		cmocka_unit_test(pointers_into_ttls_are_refused),
		cmocka_unit_test(prefixes_of_an_offer_never_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
