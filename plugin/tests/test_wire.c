/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What is dissected and what is refused, on messages made by ldns and damaged octet by octet. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "hydns/dns.h"
#include "plugin/changes/changes.h"
#include "plugin/offers/offers.h"
#include "plugin/tests/reply.h"

#define A     1
#define AAAA  28
#define OPT   41
#define ANY   255
#define SERVFAIL 2
#define NXDOMAIN 3
#define REFUSED 5
#define HEADER 12

#define SOA "example.org. 300 IN SOA ns.example.org. admin.example.org. 1 7200 3600 1209600 300"

static const struct reply_spec plain = { .name = "www.example.org.", .type = A,
	.answer = { "www.example.org. 120 IN A 192.0.2.1", "www.example.org. 60 IN A 192.0.2.2" } };

static int dissect(struct reply *r, struct hydns_wire_answer *a)
{
	uint32_t value;

	return hydns_wire_dissect(r->wire, r->len, &r->question, a, &value) ? -EINVAL : 0;
}

static void good_replies(void **state)
{
	static const struct {
		const char *what;
		struct reply_spec spec;
		unsigned an, ns, ar, names;
		uint32_t ttl;
	} row[] = {
		{ "two addresses", plain, 2, 0, 0, 1, 60 },
		{ "EDNS", { .name = "www.example.org.", .type = A, .edns = true,
			.answer = { "www.example.org. 120 IN A 192.0.2.1" } }, 1, 0, 0, 1, 120 },
		{ "signed", { .name = "www.example.org.", .type = A, .edns = true, .dnssec_ok = true,
			.answer = { "www.example.org. 120 IN A 192.0.2.1",
				"www.example.org. 120 IN RRSIG A 13 3 120 20300101000000 20200101000000 1 "
				"example.org. 1111" } }, 2, 0, 0, 1, 120 },
		{ "CNAME chain", { .name = "a.example.org.", .type = A, .answer = {
			"a.example.org. 9 IN CNAME b.example.net.", "b.example.net. 7 IN CNAME c.example.net.",
			"c.example.net. 8 IN A 192.0.2.3" } }, 3, 0, 0, 5, 7 },
		{ "NXDOMAIN", { .name = "no.example.org.", .type = A, .rcode = NXDOMAIN,
			.authority = { SOA } }, 0, 1, 0, 1, 300 },
		{ "NODATA", { .name = "www.example.org.", .type = AAAA, .authority = { SOA } }, 0, 1, 0, 1, 300 },
		{ "glue and OPT", { .name = "example.org.", .type = 15, .edns = true,
			.answer = { "example.org. 50 IN MX 10 mx.example.org." },
			.additional = { "mx.example.org. 40 IN A 192.0.2.9",
				"mx.example.org. 45 IN AAAA 2001:db8::9" } }, 1, 0, 2, 2, 40 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct hydns_wire_answer a;
		struct reply r;

		print_message("%s\n", row[i].what);
		reply_make(&r, &row[i].spec);
		assert_int_equal(dissect(&r, &a), 0);
		assert_int_equal(ntohs(a.ancount), row[i].an);
		assert_int_equal(ntohs(a.nscount), row[i].ns);
		assert_int_equal(ntohs(a.arcount), row[i].ar);
		assert_int_equal(a.ttl, row[i].ttl);
		assert_in_range(a.names, 1 + row[i].names, HYDNS_WIRE_NAMES);
		assert_int_equal(a.answer, HEADER + r.question.name_len + 4);
		assert_int_equal(a.answer + a.answer_len + (row[i].spec.edns ? HYDNS_OPT_LEN : 0), r.len);
		assert_int_equal(a.edns_size, row[i].spec.edns ? 1232 : 0);
		assert_int_equal(ntohs(a.reply_flags), 0x8080 | row[i].spec.rcode);
		reply_free(&r);
	}
}

/* A failure that the resolver remembers: SERVFAIL without records, and only where the resolver says so. */
static void failures(void **state)
{
	static const struct {
		struct reply_spec spec;
		int expected;
	} row[] = {
		{ { .name = "dead.example.org.", .type = A, .rcode = SERVFAIL }, 0 },
		{ { .name = "dead.example.org.", .type = A, .rcode = SERVFAIL, .edns = true, .dnssec_ok = true }, 0 },
		{ { .name = "dead.example.org.", .type = A, .rcode = SERVFAIL, .authority = { SOA } }, -EINVAL },
		{ { .name = "dead.example.org.", .type = A, .rcode = NXDOMAIN, .authority = { SOA } }, -EINVAL },
		{ { .name = "dead.example.org.", .type = A, .rcode = REFUSED }, -EINVAL },
		{ { .name = "dead.example.org.", .type = A }, -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct hydns_wire_answer a;
		struct reply r;

		reply_make(&r, &row[i].spec);
		r.question.failure = true;
		assert_int_equal(dissect(&r, &a), row[i].expected);
		if (row[i].expected == 0) {
			assert_int_equal(a.answer_len, 0);
			assert_int_equal(a.names, 1);
			assert_int_equal(a.ttl, HYDNS_TTL_MAX);
			r.question.failure = false;
			assert_int_equal(dissect(&r, &a), -EINVAL);
		}
		reply_free(&r);
	}
}

/* Every owner and CNAME target is among the names. */
static void names_are_complete(void **state)
{
	static const struct reply_spec chain = { .name = "a.example.org.", .type = A, .answer = {
		"a.example.org. 9 IN CNAME B.example.net.", "b.example.net. 7 IN CNAME gone.example.com." },
		.authority = { "example.com. 300 IN SOA ns.example.com. x.example.com. 1 2 3 4 5" } };
	static const char *const want[] = { "\1a\7example\3org", "\1b\7example\3net",
		"\4gone\7example\3com", "\7example\3com" };
	struct hydns_wire_answer a;
	struct reply r;

	(void)state;
	reply_make(&r, &chain);
	assert_int_equal(dissect(&r, &a), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		bool found = false;

		for (unsigned k = 0; k < a.names; k++)
			found |= a.name[k].len == strlen(want[i]) + 1 &&
				 !memcmp(a.text + a.name[k].text, want[i], a.name[k].len);
		assert_true(found);
	}
	reply_free(&r);
}

/* A name that a pointer repeats is not expanded again: the RRsets of one owner share its text. */
static void names_are_expanded_once(void **state)
{
	static const struct reply_spec chain = { .name = "a.example.org.", .type = A, .answer = {
		"a.example.org. 9 IN CNAME b.example.net.", "b.example.net. 7 IN A 192.0.2.1" },
		.authority = { "example.net. 300 IN NS ns.example.net." },
		.additional = { "ns.example.net. 300 IN A 192.0.2.2", "ns.example.net. 300 IN AAAA 2001:db8::2" } };
	static const char *const text = "\1a\7example\3org\0" "\1b\7example\3net\0" "\7example\3net\0" "\2ns\7example\3net";
	static const struct { unsigned text, type; } want[] = {
		{ 0, HYDNS_NAMES_ALL }, { 0, 5 }, { 15, HYDNS_NAMES_ALL }, { 15, A }, { 30, 2 }, { 43, A }, { 43, AAAA } };
	struct hydns_wire_answer a;
	struct reply r;

	(void)state;
	reply_make(&r, &chain);
	assert_int_equal(dissect(&r, &a), 0);
	assert_int_equal(a.names, sizeof(want) / sizeof(want[0]));
	assert_int_equal(a.answer_names, 4);
	assert_memory_equal(a.text, text, 43 + 16);
	for (unsigned i = 0; i < a.names; i++) {
		assert_int_equal(a.name[i].text, want[i].text);
		assert_int_equal(a.name[i].rrtype, want[i].type);
	}
	reply_free(&r);
}

static void question_case_is_ignored(void **state)
{
	struct hydns_wire_answer a;
	struct reply r;

	(void)state;
	reply_make(&r, &plain);
	r.wire[HEADER + 1] = 'W';
	r.name[2] = 'W';
	assert_int_equal(dissect(&r, &a), 0);
	r.name[2] = 'x';
	assert_int_equal(dissect(&r, &a), -EINVAL);
	reply_free(&r);
}

static void bad_specs(void **state)
{
	static const struct reply_spec spec[] = {
		{ .name = "www.example.org.", .type = A, .rcode = 2, .authority = { SOA } },
		{ .name = "www.example.org.", .type = A, .rcode = 5, .authority = { SOA } },
		{ .name = "www.example.org.", .type = A },
		{ .name = "www.example.org.", .type = A, .answer = { "www.example.org. 0 IN A 192.0.2.1" } },
		{ .name = "www.example.org.", .type = A, .answer = { "www.example.org. 9 CH A 192.0.2.1" } },
		{ .name = "www.example.org.", .type = ANY, .answer = { "www.example.org. 9 IN A 192.0.2.1" } },
		{ .name = "www.example.org.", .type = 252, .answer = { "www.example.org. 9 IN A 192.0.2.1" } },
	};
	struct hydns_wire_answer a;
	struct reply r;

	(void)state;
	for (size_t i = 0; i < sizeof(spec) / sizeof(spec[0]); i++) {
		reply_make(&r, &spec[i]);
		assert_int_equal(dissect(&r, &a), -EINVAL);
		reply_free(&r);
	}
}

/* An answer from a zone may have more of them. */
static void more_records_than_a_rule_holds(void **state)
{
	struct reply_spec many = { .name = "m.example.org.", .type = A };
	char line[REPLY_RRS_MAX][64];
	struct hydns_wire_answer a;
	struct reply r;

	(void)state;
	for (int i = 0; i <= HYDNS_RECORDS_MAX; i++) {
		snprintf(line[i], sizeof(line[i]), "m.example.org. 60 IN A 192.0.2.%d", i);
		many.answer[i] = line[i];
		reply_make(&r, &many);
		for (int fixed = 0; fixed < 2; fixed++) {
			r.question.fixed = fixed;
			assert_int_equal(dissect(&r, &a), i < (fixed ? HYDNS_RECORDS_MAX : HYDNS_TTLS_MAX) ? 0 : -EINVAL);
		}
		reply_free(&r);
	}
}

static void too_large_for_a_slot(void **state)
{
	static char text[7][300];
	struct reply_spec spec = { .name = "t.example.org.", .type = 16 };
	struct hydns_wire_answer a;
	struct reply r;

	(void)state;
	for (int i = 0; i < 7; i++) {
		snprintf(text[i], sizeof(text[i]), "t.example.org. 60 IN TXT \"%d%0240d\"", i, 0);
		spec.answer[i] = text[i];
		reply_make(&r, &spec);
		assert_int_equal(dissect(&r, &a), i < 5 ? 0 : -EINVAL);
		reply_free(&r);
	}
}

/* One field of a good reply changed so that the kernel path could not reproduce it. */
static void damaged_fields(void **state)
{
	static const struct reply_spec signed_opt = { .name = "www.example.org.", .type = A, .edns = true,
		.dnssec_ok = true, .answer = { "www.example.org. 120 IN A 192.0.2.1" } };
	enum { FROM_START, FROM_OPT };
	static const struct { const char *what; int from; size_t at; uint8_t xor; } row[] = {
		{ "QR", FROM_START, 2, 0x80 }, { "opcode", FROM_START, 2, 0x08 }, { "TC", FROM_START, 2, 0x02 },
		{ "Z", FROM_START, 3, 0x40 }, { "CD", FROM_START, 3, 0x10 }, { "QDCOUNT 0", FROM_START, 5, 1 },
		{ "QDCOUNT 3", FROM_START, 5, 2 }, { "ANCOUNT", FROM_START, 7, 2 }, { "ARCOUNT", FROM_START, 11, 1 },
		{ "qtype", FROM_START, 12 + 17 + 1, 1 }, { "class", FROM_START, 12 + 17 + 3, 1 },
		{ "TTL beyond 2^31", FROM_START, 12 + 17 + 4 + 2 + 4, 0x80 },
		{ "RDLENGTH", FROM_START, 12 + 17 + 4 + 2 + 9, 1 },
		{ "pointer to itself", FROM_START, 12 + 17 + 4 + 1, 12 ^ 33 },
		{ "OPT's owner", FROM_OPT, 0, 1 }, { "extended rcode", FROM_OPT, 5, 1 }, { "version", FROM_OPT, 6, 1 },
		{ "DO", FROM_OPT, 7, 0x80 }, { "EDNS flags", FROM_OPT, 8, 1 }, { "OPT's RDLENGTH", FROM_OPT, 10, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct hydns_wire_answer a;
		struct reply r;

		reply_make(&r, &signed_opt);
		assert_int_equal(dissect(&r, &a), 0);
		r.wire[row[i].at + (row[i].from == FROM_OPT ? r.len - HYDNS_OPT_LEN : 0)] ^= row[i].xor;
		if (dissect(&r, &a) != -EINVAL)
			fail_msg("accepted in spite of its %s", row[i].what);
		reply_free(&r);
	}
}

static void opt_must_be_last(void **state)
{
	static const struct reply_spec spec = { .name = "e.org.", .type = A, .edns = true,
		.answer = { "e.org. 9 IN A 192.0.2.1" }, .additional = { "x.org. 9 IN A 192.0.2.2" } };
	uint8_t opt[HYDNS_OPT_LEN], glue[64];
	struct hydns_wire_answer a;
	struct reply r;
	size_t at;

	(void)state;
	reply_make(&r, &spec);
	assert_int_equal(dissect(&r, &a), 0);
	memcpy(opt, r.wire + r.len - sizeof(opt), sizeof(opt));
	at = HEADER + r.question.name_len + 4 + 16;     /* behind the answer */
	memcpy(glue, r.wire + at, r.len - sizeof(opt) - at);
	memcpy(r.wire + at, opt, sizeof(opt));
	memcpy(r.wire + at + sizeof(opt), glue, r.len - sizeof(opt) - at);
	assert_int_equal(dissect(&r, &a), -EINVAL);
	reply_free(&r);
}

/* The client's own cookie is no part of the answer. Extended errors behind it are; the program can't make any other option. */
static void opt_may_hold_a_cookie(void **state)
{
	static const struct reply_spec spec = { .name = "e.org.", .type = A, .edns = true,
		.answer = { "e.org. 9 IN A 192.0.2.1" } };
	static const struct { const char *what; uint8_t option[36]; uint8_t len; bool good; uint8_t errors; } row[] = {
		{ "a cookie", { 0, 10, 0, 24 }, 28, true, 0 }, { "a short cookie", { 0, 10, 0, 8 }, 12, true, 0 },
		{ "NSID", { 0, 3, 0, 24 }, 28, false, 0 }, { "cookie and more", { 0, 10, 0, 24 }, 32, false, 0 },
		{ "an extended error", { 0, 15, 0, 4, 0, 6, 'n', 'o' }, 8, true, 8 },
		{ "two of them behind a cookie", { 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 15, 0, 2, 0, 6, 0, 15, 0, 3, 0, 7, 'x' }, 25, true, 13 },
		{ "a cookie behind one", { 0, 15, 0, 2, 0, 6, 0, 10, 0, 8 }, 18, false, 0 },
		{ "an error without a code", { 0, 15, 0, 1, 0 }, 5, false, 0 }, { "beyond the OPT", { 0, 15, 0, 3, 0, 6 }, 6, false, 0 },
		{ "an error and half an option", { 0, 15, 0, 2, 0, 6, 0, 15 }, 8, false, 0 },
		{ "cookie beyond the OPT", { 0, 10, 0, 25 }, 28, false, 0 }, { "half an option", { 0, 10 }, 2, false, 0 },
	};
	struct hydns_wire_answer plain_one, a;
	struct reply r;

	(void)state;
	reply_make(&r, &spec);
	assert_int_equal(dissect(&r, &plain_one), 0);
	r.wire = realloc(r.wire, r.len + sizeof(row[0].option));
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		size_t len = r.len;

		memcpy(r.wire + r.len, row[i].option, row[i].len);
		r.wire[r.len - 1] = row[i].len;
		r.len += row[i].len;
		if (dissect(&r, &a) != (row[i].good ? 0 : -EINVAL))
			fail_msg("%s: %s", row[i].what, row[i].good ? "refused" : "accepted");
		if (row[i].good) {
			assert_int_equal(a.answer_len, plain_one.answer_len);
			assert_int_equal(a.arcount, plain_one.arcount);
			assert_int_equal(a.errors_len, row[i].errors);
			assert_int_equal(row[i].errors ? a.errors + a.errors_len : r.len, r.len);
		}
		r.len = len;
	}
	reply_free(&r);
}

/* Every shorter message is refused, and so is every longer one; nothing outside is read (run it under
 * AddressSanitizer: each message stands in a block of its own length). */
static void cut_and_padded(void **state)
{
	struct hydns_wire_answer a;
	struct reply r;

	(void)state;
	reply_make(&r, &plain);
	for (size_t n = 0; n <= r.len + 1; n++) {
		uint32_t value;
		uint8_t *copy = calloc(1, n ? n : 1);

		memcpy(copy, r.wire, n < r.len ? n : r.len);
		assert_int_equal(hydns_wire_dissect(copy, n, &r.question, &a, &value) == 0, n == r.len);
		free(copy);
	}
	reply_free(&r);
}

/* Octets at random: whatever comes, an accepted answer lies inside the message. */
static void random_damage(void **state)
{
	static const struct reply_spec spec = { .name = "a.example.org.", .type = A, .edns = true, .answer = {
		"a.example.org. 9 IN CNAME b.example.net.", "b.example.net. 7 IN A 192.0.2.7" } };
	struct hydns_wire_answer a;
	unsigned accepted = 0;
	uint32_t value;
	struct reply r;

	(void)state;
	srand(1);
	reply_make(&r, &spec);
	for (int i = 0; i < 200000; i++) {
		uint8_t *copy = malloc(r.len);

		memcpy(copy, r.wire, r.len);
		for (int k = rand() % 4; k >= 0; k--)
			copy[(size_t)rand() % r.len] = (uint8_t)rand();
		if (hydns_wire_dissect(copy, r.len, &r.question, &a, &value) == 0) {
			accepted++;
			assert_true(a.ttl > 0);
			assert_in_range(a.answer + a.answer_len, a.answer, r.len);
			for (unsigned k = 0; k < a.names; k++)
				assert_int_equal(hydns_name_length(a.text + a.name[k].text, HYDNS_NAME_MAX), a.name[k].len);
		}
		free(copy);
	}
	reply_free(&r);
	assert_true(accepted > 0);
}

static void names(void **state)
{
	uint8_t longest[HYDNS_NAME_MAX + 1] = { 0 };

	(void)state;
	for (int i = 0; i < 254; i += 2)
		longest[i] = 1;
	assert_int_equal(hydns_name_length(longest, 255), 255);
	assert_int_equal(hydns_name_length(longest, 254), 0);
	assert_int_equal(hydns_name_length((const uint8_t *)"\0", 1), 1);
	assert_int_equal(hydns_name_length((const uint8_t *)"\300\14\0", 3), 0);
	assert_int_equal(hydns_name_length((const uint8_t *)"\3ab", 3), 0);
}

/* A header with these flags and counts of records. */
/* Questions for trust anchors (RFC 8509), but where a zone of the server's own has the name. */
static void sentinels(void **state)
{
	static const struct {
		const char *name;
		bool fixed;
		enum hydns_not_offered_why why;
	} row[] = {
		{ "root-key-sentinel-is-ta-20326.example.org.", false, HYDNS_NOT_OFFERED_SENTINEL },
		{ "ROOT-Key-sentinel-not-ta-20326.example.org.", false, HYDNS_NOT_OFFERED_SENTINEL },
		{ "root-key-sentinel-is-ta-20326.example.org.", true, HYDNS_NOT_OFFERED_NONE },
		{ "www.root-key-sentinel-is-ta-20326.example.org.", false, HYDNS_NOT_OFFERED_NONE },
		{ "root-key-sentinel.example.org.", false, HYDNS_NOT_OFFERED_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		char record[128];
		struct hydns_wire_answer a;
		struct reply r;
		uint32_t value;

		snprintf(record, sizeof(record), "%s 120 IN A 192.0.2.1", row[i].name);
		reply_make(&r, &(struct reply_spec){ .name = row[i].name, .type = A, .answer = { record } });
		r.question.fixed = row[i].fixed;
		assert_int_equal(hydns_wire_dissect(r.wire, r.len, &r.question, &a, &value), row[i].why);
		reply_free(&r);
	}
}

static bool may_be_for_all_with(uint16_t flags, uint8_t answers, uint8_t authority, bool proves)
{
	const uint8_t wire[] = { 0, 1, (uint8_t)(flags >> 8), (uint8_t)flags, 0, 1, 0, answers, 0, authority, 0, 1 };

	return hydns_wire_may_be_for_all(wire, sizeof(wire), proves);
}

static bool may_be_for_all(uint16_t flags, uint8_t answers, uint8_t authority)
{
	return may_be_for_all_with(flags, answers, authority, false);
}

static bool denies(uint16_t flags, uint8_t answers)
{
	const uint8_t wire[] = { 0, 1, (uint8_t)(flags >> 8), (uint8_t)flags, 0, 1, 0, answers, 0, 6, 0, 1 };

	return hydns_wire_denies(wire, sizeof(wire));
}

static void denials(void **state)
{
	(void)state;
	assert_true(denies(HYDNS_FLAG_AA | HYDNS_RCODE_NXDOMAIN, 0));
	assert_true(denies(HYDNS_FLAG_AA, 0));
	assert_false(denies(HYDNS_FLAG_AA, 1));
	assert_false(denies(0, 0));            /* a referral */
	assert_false(hydns_wire_denies((const uint8_t *)"", 0));
}

static void answers_to_other_questions(void **state)
{
	(void)state;
	assert_true(may_be_for_all(HYDNS_FLAG_AA | HYDNS_RCODE_NXDOMAIN, 0, 1));
	assert_true(may_be_for_all(HYDNS_FLAG_AA, 0, 1));
	assert_true(may_be_for_all(0, 0, 4));          /* a referral has many */
	assert_false(may_be_for_all(HYDNS_FLAG_AA | HYDNS_RCODE_NXDOMAIN, 0, 6));
	assert_false(may_be_for_all(HYDNS_FLAG_AA, 0, 0));
	assert_false(may_be_for_all(HYDNS_FLAG_AA, 1, 1));
	assert_false(may_be_for_all(0, 1, 1));
	assert_false(hydns_wire_may_be_for_all((const uint8_t *)"", 0, false));
	assert_true(may_be_for_all_with(HYDNS_FLAG_AA | HYDNS_RCODE_NXDOMAIN, 0, 6, true));
	assert_true(may_be_for_all_with(HYDNS_FLAG_AA, 0, 4, true));
	assert_false(may_be_for_all_with(HYDNS_FLAG_AA, 0, 1, true));
	assert_false(may_be_for_all_with(HYDNS_FLAG_AA, 1, 4, true));
	assert_false(may_be_for_all_with(0, 0, 4, true));
}

int main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(good_replies), cmocka_unit_test(failures), cmocka_unit_test(names_are_complete), cmocka_unit_test(names_are_expanded_once),
		cmocka_unit_test(question_case_is_ignored), cmocka_unit_test(bad_specs),
		cmocka_unit_test(more_records_than_a_rule_holds), cmocka_unit_test(too_large_for_a_slot), cmocka_unit_test(damaged_fields),
		cmocka_unit_test(opt_must_be_last), cmocka_unit_test(opt_may_hold_a_cookie),
		cmocka_unit_test(cut_and_padded), cmocka_unit_test(denials), cmocka_unit_test(answers_to_other_questions),
		cmocka_unit_test(random_damage), cmocka_unit_test(names), cmocka_unit_test(sentinels),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
