/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsctl preload --estimate: what a zone's file asks for, and how long answers are. Lengths are those of named's responses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <ldns/ldns.h>

#include "hydns/hash.h"
#include "hydns/preload.h"
#include "hydnsd/ctl/estimate/estimate.h"
#include "hydnsd/ctl/estimate/zone_file.h"
#include "hydnsd/rules/kept.h"

/* 64 octets, as of ECDSA P-256 */
#define SIGNED(type, origin) " RRSIG " type " 13 2 300 20301211125104 20261127232202 16278 " origin " ZSSuTSbQTKH7IWv/e7jnInfiWW4K7uPyJ0G" \
	"oXgG87F5l4vBJFRW1zL0IBqORB2sswPNYXMQlvSDKFS94UP5Usw==\n"
#define SOA "@ SOA ns hostmaster 1 3600 900 604800 60\n"
#define BEGIN(origin) "$ORIGIN " origin "\n$TTL 300\n" SOA

/* 240 octets; relative to itself it is too long */
#define LABEL "0123456789012345678901234567890123456789012345678901234567."
#define LONG_NAME LABEL LABEL LABEL "0123456789012345678901234567890123456789012345678901234567"

/* -- files ------------------------------------------------------------------------------------------------------------- */
static bool read_text(const char *text, const char *origin, struct ctl_zone *z, char why[CTL_ZONE_WHY])
{
	char path[] = "/tmp/test_estimate_XXXXXX";
	struct ctl_zone_file file = { .path = path, .origin = origin };
	int fd = mkstemp(path);
	bool ok;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	ok = ctl_zone_read(&file, z, why);
	unlink(path);
	if (!ok)               /* what follows the path */
		memmove(why, why + sizeof(path) - 1, strlen(why + sizeof(path) - 1) + 1);
	return ok;
}

static void open_zone(const char *text, struct ctl_zone *z)
{
	char why[CTL_ZONE_WHY] = "";

	if (!read_text(text, NULL, z, why))
		fail_msg("%s", why);
}

static struct ctl_estimate estimate(const char *text)
{
	struct ctl_estimate e;
	struct ctl_zone z;

	open_zone(text, &z);
	ctl_estimate(&z, &e);
	ctl_zone_close(&z);
	return e;
}

/* Of any origin: the SOA, and a type that it does not have. */
#define OF_ORIGIN 2

/* -- questions --------------------------------------------------------------------------------------------------------- */
static void what_is_asked(void **state)
{
	static const struct {
		const char *records;
		unsigned names, types, unkept; /* beside what is asked of any origin; types: each is asked in four variants */
	} c[] = {
		{ "@ NS ns\nns A 192.0.2.1\n", 2, 3, 0 },                        /* and what is below the origin */
		{ "a A 192.0.2.1\na A 192.0.2.2\na AAAA 2001:db8::1\n", 2, 2, 0 },
		{ "x.y.z A 192.0.2.1\n", 2, 1, 0 },                             /* names without data are not asked for */
		{ "alias CNAME www\nwww A 192.0.2.1\n", 3, 4, 0 },              /* for A and AAAA, too */
		{ "alias CNAME www\n", 2, 3, 2 },                               /* NXDOMAIN */
		{ "cut NS ns.cut\nns.cut A 192.0.2.1\n", 3, 5, 0 },             /* A, AAAA, and below */
		{ "cut NS ns.other.test.\ncut DS 1 13 2 0123456789012345678901234567890123456789012345678901234567890123\n", 2, 5, 0 },
		{ "cut NS cut\ncut A 192.0.2.1\n", 2, 5, 0 },
		{ "www A 192.0.2.1\nwww NSEC example.test. A\nwww" SIGNED("A", "example.test."), 2, 1, 0 },
		{ "www.elsewhere.test. A 192.0.2.1\n", 1, 0, 0 },
		{ "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3ton A\n", 1, 0, 0 },
		{ SOA, 1, 0, 0 },                                               /* a transfer's end */
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct ctl_estimate e;

		snprintf(text, sizeof(text), "%s%s", BEGIN("example.test."), c[i].records);
		e = estimate(text);
		print_message("%s", c[i].records);
		assert_int_equal(e.names, c[i].names);
		assert_int_equal(e.questions, HYDNS_PRELOAD_VARIANTS * (OF_ORIGIN + c[i].types));
		assert_int_equal(e.unkept[CTL_UNKEPT_NEGATIVE], HYDNS_PRELOAD_VARIANTS * c[i].unkept);
	}
}

/* A is asked for as the name's data, and because there is a cut: two questions, one rule. */
static void what_is_asked_twice_is_one_rule(void **state)
{
	struct ctl_estimate e = estimate(BEGIN("example.test.") "cut NS ns.other.test.\ncut A 192.0.2.1\n");

	(void)state;
	assert_int_equal(e.questions, 4 * (OF_ORIGIN + 2 + 2 + 1));
	assert_int_equal(e.rules, 4 * (OF_ORIGIN + 2 + 1 + 1));
}

/* With DO, where a zone is signed; a signed delegation's is its own data. */
static void what_is_asked_for_lack_of_ds(void **state)
{
	struct ctl_estimate alone = estimate(BEGIN("nsec.test.") "@" SIGNED("SOA", "nsec.test.")),
			    e = estimate(BEGIN("nsec.test.") "@" SIGNED("SOA", "nsec.test.") "cut NS ns.other.test.\n");

	(void)state;
	assert_int_equal(e.questions, alone.questions + 4 * 4 + 2);
	assert_int_equal(e.rules, alone.rules + 4 * 4 + 2);
}

/* An alias to another zone: with RD named refuses to follow it. */
static void what_leaves_the_zone(void **state)
{
	struct ctl_estimate e = estimate(BEGIN("example.test.") "out CNAME www.other.test.\n");

	(void)state;
	assert_int_equal(e.unkept[CTL_UNKEPT_NEGATIVE], 2 * 2);
}

/* -- answers ----------------------------------------------------------------------------------------------------------- */
#define UNSIGNED BEGIN("unsigned.test.") \
	"@ NS ns\n@ NS ns2\n@ MX 10 host\n@ TXT hello\nns A 192.0.2.1\nns2 A 192.0.2.2\nwww A 192.0.2.10\n*.wild A 192.0.2.13\n" \
	"many A 192.0.2.20\nmany A 192.0.2.21\nmany A 192.0.2.22\nalias CNAME www\ntochain CNAME alias\nout CNAME www.other.test.\n" \
	"srv SRV 0 0 53 www\nptr PTR www\ntree DNAME elsewhere.test.\naway NS ns.other.test.\ncut NS ns.cut\nns.cut A 192.0.2.15\n" \
	"child2 NS ns.child2\nchild2 NS ns.other.test.\nns.child2 A 192.0.2.50\n" \
	"child2 DS 12345 13 2 0123456789012345678901234567890123456789012345678901234567890123\n"
#define NSEC BEGIN("nsec.test.") \
	"@" SIGNED("SOA", "nsec.test.") "@ NS ns\n@ NS ns2\n@" SIGNED("NS", "nsec.test.") "ns A 192.0.2.1\nns" SIGNED("A", "nsec.test.") \
	"ns2 A 192.0.2.2\nns2" SIGNED("A", "nsec.test.") "www A 192.0.2.10\nwww" SIGNED("A", "nsec.test.") \
	"www NSEC nsec.test. A RRSIG NSEC\nwww" SIGNED("NSEC", "nsec.test.") "alias CNAME www\nalias" SIGNED("CNAME", "nsec.test.") \
	"away NS ns.other.test.\naway NSEC deep.a.b NS RRSIG NSEC\naway" SIGNED("NSEC", "nsec.test.") \
	"child2 NS ns.child2\nchild2 NS ns.other.test.\nns.child2 A 192.0.2.50\n" \
	"child2 DS 12345 13 2 0123456789012345678901234567890123456789012345678901234567890123\nchild2" SIGNED("DS", "nsec.test.")

static uint32_t number_of(const struct ctl_zone *z, const char *text)
{
	static const __u64 seed[2];
	ldns_rdf *name = ldns_dname_new_frm_str(text);
	uint64_t hash = hydns_place_hash(ldns_rdf_data(name), (__u8)ldns_rdf_size(name), seed);
	uint32_t i = 0;

	ldns_rdf_deep_free(name);
	while (i < z->names && z->name[i].hash != hash)
		i++;
	assert_true(i < z->names);
	return i;
}

/* Octets of the message without its OPT; 0: the answer is not kept. */
static uint32_t message(const struct ctl_zone *z, const char *name, ldns_rr_type type, unsigned variant)
{
	uint32_t number = number_of(z, name);
	struct ctl_answer a;

	ctl_answer(z, number, (uint16_t)type, variant, &a);
	return a.why == CTL_KEPT ? 12 + z->name[number].len + 4 + a.octets : 0;
}

/* That these differ from named's by some octets is known: names in data share their end with the question's alone. */
#define NEAR 4

static void answers_are_as_long_as_nameds(void **state)
{
	static const struct {
		const char *zone, *name;
		ldns_rr_type type;
		uint32_t octets[HYDNS_PRELOAD_VARIANTS];
	} c[] = {
		{ UNSIGNED, "www.unsigned.test.", LDNS_RR_TYPE_A, { 51, 51, 118, 118 } },
		{ UNSIGNED, "ns.unsigned.test.", LDNS_RR_TYPE_A, { 50, 50, 98, 98 } },
		{ UNSIGNED, "*.wild.unsigned.test.", LDNS_RR_TYPE_A, { 54, 54, 121, 121 } },
		{ UNSIGNED, "many.unsigned.test.", LDNS_RR_TYPE_A, { 84, 84, 151, 151 } },
		{ UNSIGNED, "unsigned.test.", LDNS_RR_TYPE_SOA, { 81, 81, 145, 145 } },
		{ UNSIGNED, "unsigned.test.", LDNS_RR_TYPE_MX, { 52, 52, 119, 119 } },
		{ UNSIGNED, "unsigned.test.", LDNS_RR_TYPE_NS, { 0, 0, 0, 0 } },
		{ UNSIGNED, "alias.unsigned.test.", LDNS_RR_TYPE_CNAME, { 55, 55, 122, 122 } },
		{ UNSIGNED, "alias.unsigned.test.", LDNS_RR_TYPE_A, { 71, 71, 138, 138 } },
		{ UNSIGNED, "alias.unsigned.test.", LDNS_RR_TYPE_AAAA, { 105, 105, 105, 105 } },
		{ UNSIGNED, "tochain.unsigned.test.", LDNS_RR_TYPE_A, { 93, 93, 160, 160 } },
		{ UNSIGNED, "out.unsigned.test.", LDNS_RR_TYPE_A, { 0, 0, 59, 59 } },
		{ UNSIGNED, "srv.unsigned.test.", LDNS_RR_TYPE_SRV, { 88, 88, 155, 155 } },
		{ UNSIGNED, "ptr.unsigned.test.", LDNS_RR_TYPE_PTR, { 53, 53, 120, 120 } },
		{ UNSIGNED, "tree.unsigned.test.", LDNS_RR_TYPE_DNAME, { 64, 64, 131, 131 } },
		{ UNSIGNED, "away.unsigned.test.", LDNS_RR_TYPE_A, { 59, 59, 59, 59 } },
		{ UNSIGNED, "away.unsigned.test.", LDNS_RR_TYPE_DS, { 0, 0, 0, 0 } },
		{ UNSIGNED, "ns.cut.unsigned.test.", LDNS_RR_TYPE_A, { 68, 68, 68, 68 } },
		{ UNSIGNED, "child2.unsigned.test.", LDNS_RR_TYPE_NS, { 94, 94, 94, 94 } },
		{ UNSIGNED, "child2.unsigned.test.", LDNS_RR_TYPE_DS, { 86, 86, 86, 86 } },
		{ NSEC, "www.nsec.test.", LDNS_RR_TYPE_A, { 47, 152, 114, 534 } },
		{ NSEC, "alias.nsec.test.", LDNS_RR_TYPE_A, { 67, 277, 134, 659 } },
		{ NSEC, "alias.nsec.test.", LDNS_RR_TYPE_AAAA, { 101, 447, 101, 447 } },
		{ NSEC, "away.nsec.test.", LDNS_RR_TYPE_A, { 55, 200, 55, 200 } },
		{ NSEC, "away.nsec.test.", LDNS_RR_TYPE_DS, { 0, 332, 0, 332 } },
		{ NSEC, "child2.nsec.test.", LDNS_RR_TYPE_A, { 90, 243, 90, 243 } },
		{ NSEC, "child2.nsec.test.", LDNS_RR_TYPE_DS, { 82, 187, 82, 187 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct ctl_zone z;

		open_zone(c[i].zone, &z);
		for (unsigned variant = 0; variant < HYDNS_PRELOAD_VARIANTS; variant++) {
			uint32_t octets = message(&z, c[i].name, c[i].type, variant), nameds = c[i].octets[variant];

			if (octets < nameds || octets > nameds + (nameds ? NEAR : 0))
				fail_msg("%s, type %d, variant %u: %u octets, named's have %u", c[i].name, c[i].type, variant, octets, nameds);
		}
		ctl_zone_close(&z);
	}
}

/* named orders addresses by the client's family unless it is told which come first. */
static void both_families_of_glue(void **state)
{
	struct ctl_estimate e = estimate(BEGIN("example.test.") "cut NS ns.cut\nns.cut A 192.0.2.1\nns.cut AAAA 2001:db8::1\n");

	(void)state;
	assert_int_equal(e.glue, 4 * (3 + 2 + 1));
}

static void answers_that_are_too_large(void **state)
{
	char text[8192] = BEGIN("example.test.");
	struct ctl_estimate e;

	(void)state;
	for (int i = 0; i < 7; i++)                /* more octets than a response */
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "long TXT \"%0200d\"\n", i);
	e = estimate(text);
	assert_int_equal(e.unkept[CTL_UNKEPT_SIZE], 4);
	assert_int_equal(e.rules, 4 * OF_ORIGIN);
}

static struct ctl_estimate of_referral(unsigned servers)
{
	char text[8192] = BEGIN("example.test.");

	for (unsigned i = 0; i < servers; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "cut NS n%u.cut\nn%u.cut A 192.0.2.%u\n", i, i, i);
	return estimate(text);
}

/* Those of an answer's RRset that are not among the first would not rotate; those of a referral need not. */
static void answers_with_many_records(void **state)
{
	char text[8192] = BEGIN("example.test.");
	struct ctl_estimate e;

	(void)state;
	for (int i = 0; i <= HYDNS_TTLS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "many A 192.0.2.%d\n", i);
	e = estimate(text);
	assert_int_equal(e.unkept[CTL_UNKEPT_ORDER], 4);
	e = of_referral(HYDNS_RECORDS_MAX / 2);
	assert_int_equal(e.unkept[CTL_UNKEPT_SIZE], 0);
	e = of_referral(HYDNS_RECORDS_MAX / 2 + 1);
	assert_int_not_equal(e.unkept[CTL_UNKEPT_SIZE], 0);
}

/* Records may come in any order, and RRsets in parts. */
static void order_does_not_matter(void **state)
{
	struct ctl_estimate one = estimate(BEGIN("example.test.") "a A 192.0.2.1\na A 192.0.2.2\na MX 10 b\nb A 192.0.2.3\nb CNAME c\n");
	struct ctl_estimate other = estimate(BEGIN("example.test.") "b CNAME c\na A 192.0.2.2\nb A 192.0.2.3\na MX 10 b\nA A 192.0.2.1\n");

	(void)state;
	assert_memory_equal(&one, &other, sizeof(one));
}

/* -- capacity ------------------------------------------------------------------------------------------------------------ */
static char *many_names(unsigned n, const char *data)
{
	size_t room = 64 + n * 300UL, len;
	char *text = malloc(room);

	assert_non_null(text);
	len = (size_t)snprintf(text, room, "%s", BEGIN("example.test."));
	for (unsigned i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, room - len, "n%u %s\n", i, data);
	return text;
}

static void assert_least(const struct ctl_estimate *e)
{
	uint32_t capacity = ctl_estimate_capacity(e);

	assert_true(ctl_estimate_fits(e, capacity));
	assert_false(ctl_estimate_fits(e, capacity - 1));
}

static void capacity_is_the_least_that_fits(void **state)
{
	char *small = many_names(20000, "A 192.0.2.1");
	char *large = many_names(2000, "TXT \"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
				       "45678901234567890123456789012345678901234567890123456789012345678901234567890123456789\"");
	struct ctl_estimate e = estimate(small);
	uint32_t capacity = ctl_estimate_capacity(&e);

	(void)state;
	assert_int_equal(e.names, 20001);
	assert_int_equal(e.rules, 4 * (OF_ORIGIN + 20000));
	assert_in_range(capacity, e.rules * 4 / 3 - 2, e.rules * 4 / 3 + 2);     /* answers are small: their number decides */
	assert_least(&e);
	e = estimate(large);
	assert_true(ctl_estimate_capacity(&e) > 3 * e.rules / 2);            /* their octets do */
	assert_least(&e);
	free(small);
	free(large);
}

/* -- errors -------------------------------------------------------------------------------------------------------------- */
static void errors_have_file_and_line(void **state)
{
	static const struct {
		const char *text, *origin, *why;
	} c[] = {
		{ "", NULL, ": there is no record in it" },
		{ "; nothing\n\n$TTL 300\n", NULL, ": there is no record in it" },
		{ SOA, NULL, ":1: a relative name" },
		{ "x.test. SOA ns.x.test. h.x.test. 1 2 3 4 5\n\nx.test. NS ns\n", NULL, ":3: a relative name" },
		{ "www A 192.0.2.1\n", "x.test.", ":1: the first record is not the zone's SOA" },
		{ SOA "\n; more\nwww A 192.0.2\n", "x.test.", ":4: Syntax error" },
		{ SOA "www A 192.0.2\n\n\n; more\nftp A 192.0.2.1\n", "x.test.", ":2: Syntax error" },
		{ SOA "www A ( 192.0.2.1\n 192.0.2.2 )\nftp A 192.0.2.1\n", "x.test.", ":3: Syntax error" },
		{ SOA "www A 192.0.2.1\nwww NOSUCH 1", "x.test.", ":3: Syntax error" },
		{ SOA "www CH A 192.0.2.1\n", "x.test.", ":2: the record's class" },
		{ SOA LONG_NAME " A 192.0.2.1\n", LONG_NAME ".test.", ":2: a name of more than 255" },
		{ SOA "$INCLUDE other\n", "x.test.", ":2: a directive" },
		{ SOA "$GENERATE 1-3 h$ A 192.0.2.$\n", "x.test.", ":2: a directive" },
	};
	char why[CTL_ZONE_WHY];
	struct ctl_zone z;

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		assert_false(read_text(c[i].text, c[i].origin, &z, why));
		if (strncmp(why, c[i].why, strlen(c[i].why)) != 0)
			fail_msg("%s: '%s', not '%s'", c[i].text, why, c[i].why);
	}
}

static void files_that_are_none(void **state)
{
	static const char *const path[] = { "/nonexistent/zone", "/tmp", "/dev/zero" };
	char why[CTL_ZONE_WHY];
	struct ctl_zone z;

	(void)state;
	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		assert_false(ctl_zone_read(&(struct ctl_zone_file){ .path = path[i] }, &z, why));
		assert_int_equal(strncmp(why, path[i], strlen(path[i])), 0);
	}
}

static void an_origin_that_is_given(void **state)
{
	char why[CTL_ZONE_WHY];
	struct ctl_zone z;

	(void)state;
	assert_true(read_text(SOA "@ NS ns\n", "Example.test.", &z, why));
	assert_int_equal(z.origin_len, 14);
	assert_memory_equal(z.origin, "\7example\4test", 14);
	ctl_zone_close(&z);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked), cmocka_unit_test(what_is_asked_twice_is_one_rule), cmocka_unit_test(what_is_asked_for_lack_of_ds), cmocka_unit_test(what_leaves_the_zone),
		cmocka_unit_test(answers_are_as_long_as_nameds), cmocka_unit_test(both_families_of_glue),
		cmocka_unit_test(answers_that_are_too_large), cmocka_unit_test(answers_with_many_records), cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(capacity_is_the_least_that_fits), cmocka_unit_test(errors_have_file_and_line),
		cmocka_unit_test(files_that_are_none), cmocka_unit_test(an_origin_that_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
