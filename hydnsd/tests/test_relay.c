/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What hydnsd makes of upstream servers' answers, lists of zones, and the health of servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>

#include "hydnsd/forwarding/forwarding.h"

#define NAME  "\3www\7example\0"
#define NAME_LEN 13

/* -- answers ------------------------------------------------------------------------------------------------------ */
static uint8_t wire[2048];
static size_t wire_len;
static uint8_t octets[HYDNSD_RELAY_OFFER] __attribute__((aligned(8)));
static struct hydns_offer *offer = (struct hydns_offer *)octets;
static struct hydnsd_relay_terms terms;

static bool below_example(void *arg, const uint8_t *name, uint8_t len)
{
	(void)arg;
	return len >= 9 && !memcmp(name + len - 9, "\7example", 9);
}

static void add(const void *data, size_t len)
{
	assert_true(wire_len + len <= sizeof(wire));
	memcpy(wire + wire_len, data, len);
	wire_len += len;
}

#define ADD(text) add(text, sizeof(text) - 1)

static void add16(unsigned v)
{
	const uint8_t o[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	add(o, 2);
}

/* The question in other letters, as a request has them. */
static void begin(uint16_t qtype, unsigned flags, unsigned an, unsigned ns, unsigned ar)
{
	wire_len = 0;
	add16(4711);
	add16(flags);
	add16(1);
	add16(an);
	add16(ns);
	add16(ar);
	ADD("\3wWW\7eXamPle\0");
	add16(qtype);
	add16(1);
	terms = (struct hydnsd_relay_terms){
		.name = (const uint8_t *)NAME, .name_len = NAME_LEN, .qtype = htons(qtype), .max_ttl = 86400,
		.max_negative_ttl = 3600, .same_zone = below_example,
	};
}

static void record(const char *owner, size_t owner_len, unsigned type, unsigned ttl, const void *rdata, size_t len)
{
	add(owner, owner_len);
	add16(type);
	add16(1);
	add16(ttl >> 16);
	add16(ttl & 0xffff);
	add16((unsigned)len);
	add(rdata, len);
}

#define RECORD(owner, type, ttl, rdata) record(owner, sizeof(owner) - 1, type, ttl, rdata, sizeof(rdata) - 1)
#define QUESTION "\xc0\x0c"

static enum hydnsd_relay relay(void)
{
	return hydnsd_relay(wire, wire_len, &terms, offer);
}

static void expect(const void *answer, size_t len, unsigned ttl, unsigned an, unsigned ns)
{
	assert_string_equal(hydnsd_relay_name(relay()), "RELAYED");
	assert_int_equal(offer->ttl, ttl);
	assert_int_equal(ntohs(offer->ancount), an);
	assert_int_equal(ntohs(offer->nscount), ns);
	assert_int_equal(offer->arcount, 0);
	assert_int_equal(offer->name_len, NAME_LEN);
	assert_memory_equal(offer->data, NAME, NAME_LEN);
	assert_int_equal(offer->answer_len, len);
	assert_memory_equal(offer->data + NAME_LEN, answer, len);
}

#define EXPECT(text, ttl, an, ns) expect(text, sizeof(text) - 1, ttl, an, ns)

static void addresses_have_the_least_ttl(void **state)
{
	(void)state;
	begin(1, 0x8580, 2, 1, 1);
	RECORD("\3WwW\7eXamPle\0", 1, 300, "\1\2\3\4");
	RECORD(QUESTION, 1, 200, "\1\2\3\5");
	RECORD("\xc0\x10", 2, 300, "\2ns\xc0\x10");
	RECORD("\0", 41, 0, "");
	EXPECT("\xc0\x0c\0\1\0\1\0\0\0\xc8\0\4\1\2\3\4\xc0\x0c\0\1\0\1\0\0\0\xc8\0\4\1\2\3\5", 200, 2, 0);
	assert_int_equal(ntohs(offer->reply_flags), 0x8080);
}

/* The target's letters are the server's, but for those that it takes from the question. */
static void aliases_are_compressed(void **state)
{
	(void)state;
	begin(1, 0x8580, 2, 0, 0);
	RECORD(QUESTION, 5, 300, "\1A\xc0\x10");
	RECORD("\1a\xc0\x10", 1, 100, "\1\2\3\4");
	EXPECT("\xc0\x0c\0\5\0\1\0\0\1\x2c\0\4\1A\xc0\x10" "\xc0\x29\0\1\0\1\0\0\0\x64\0\4\1\2\3\4", 100, 2, 0);
	begin(1, 0x8580, 2, 0, 0);
	RECORD(QUESTION, 5, 300, "\1A\5other\0");
	RECORD("\1A\5other\0", 1, 100, "\1\2\3\4");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_ALIAS);
	begin(1, 0x8580, 1, 0, 0);
	RECORD(QUESTION, 5, 300, "\1A\xc0\x10");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_ALIAS);
}

#define NUMBERS "\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\x3c"

/* Of such types a resolver gives what its cache holds, aliases among it. */
static void denials_of_types_that_caches_answer(void **state)
{
	static const uint16_t types[] = { 24, 25, 30, 46, 47, 50, 255 };

	(void)state;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (unsigned rcode = 0; rcode < 4; rcode += 3) {
			begin(types[i], 0x8580 | rcode, 0, 1, 0);
			RECORD("\xc0\x10", 6, 300, "\2ns\xc0\x10\1h\xc0\x10\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\74");
			assert_int_equal(relay(), HYDNSD_NOT_RELAYED_TYPE);
		}
}

static void negative_answers_have_the_soas_minimum(void **state)
{
	(void)state;
	begin(1, 0x8583, 0, 1, 0);
	RECORD("\xc0\x10", 6, 300, "\2ns\xc0\x10\4root\2ns\xc0\x10" NUMBERS);
	EXPECT("\xc0\x10\0\6\0\1\0\0\0\x3c\0\x20\2ns\xc0\x10\4root\xc0\x29" NUMBERS, 60, 0, 1);
	assert_int_equal(ntohs(offer->reply_flags), 0x8083);
	terms.soa_ttl = true;                                  /* named does not look at the minimum */
	EXPECT("\xc0\x10\0\6\0\1\0\0\1\x2c\0\x20\2ns\xc0\x10\4root\xc0\x29" NUMBERS, 300, 0, 1);
	terms.soa_ttl = false;
	terms.max_negative_ttl = 59;
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_TTL);
	begin(1, 0x8580, 0, 1, 0);
	RECORD("\xc0\x10", 2, 300, "\2ns\xc0\x10");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_REFERRAL);
	begin(1, 0x8583, 0, 1, 0);
	RECORD("\0", 6, 300, "\2ns\xc0\x10\xc0\x10" NUMBERS);
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_RECORDS); /* another zone's */
}

static void what_is_the_resolvers(void **state)
{
	static const struct {
		unsigned flags;
		enum hydnsd_relay why;
	} header[] = {
		{ 0x0580, HYDNSD_NOT_RELAYED_MALFORMED }, { 0x9580, HYDNSD_NOT_RELAYED_MALFORMED },
		{ 0x8780, HYDNSD_NOT_RELAYED_TRUNCATED }, { 0x8582, HYDNSD_NOT_RELAYED_RCODE }, { 0x8585, HYDNSD_NOT_RELAYED_RCODE },
		{ 0x8100, HYDNSD_NOT_RELAYED_REFERRAL }, { 0x8583, HYDNSD_NOT_RELAYED_ALIAS },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(header) / sizeof(header[0]); i++) {
		begin(1, header[i].flags, 1, 0, 0);
		RECORD(QUESTION, 1, 300, "\1\2\3\4");
		assert_int_equal(relay(), header[i].why);
	}
	begin(1, 0x8580, 1, 0, 0);
	RECORD(QUESTION, 1, 0, "\1\2\3\4");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_TTL);
	begin(1, 0x8580, 1, 0, 0);
	RECORD(QUESTION, 1, 86401, "\1\2\3\4");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_TTL);
	begin(1, 0x8580, 2, 0, 0);
	RECORD(QUESTION, 1, 300, "\1\2\3\4");
	RECORD(QUESTION, 1, 300, "\1\2\3\4");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_RECORDS); /* the same twice */
	begin(1, 0x8580, 2, 0, 0);
	RECORD(QUESTION, 1, 300, "\1\2\3\4");
	RECORD(QUESTION, 46, 300, "\1\2\3\4");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_RECORDS);
	begin(2, 0x8580, 1, 0, 0);
	RECORD(QUESTION, 2, 300, "\2ns\xc0\x10");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_TYPE);
	begin(1, 0x8580, 1, 0, 0);
	RECORD(QUESTION, 1, 300, "\1\2\3");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_MALFORMED);
	begin(1, 0x8580, 1, 0, 0);
	RECORD("\xc0\x1d", 1, 300, "\1\2\3\4");                /* a name that points to itself */
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_MALFORMED);
}

/* named compresses a name only where the letters are the same, and repeats those that it got. */
static void letters_that_are_kept(void **state)
{
	(void)state;
	begin(1, 0x8580, 1, 0, 0);
	terms.keeps_case = true;
	RECORD(QUESTION, 1, 300, "\1\2\3\4");                   /* the question's are the request's, not the server's */
	assert_int_equal(relay(), HYDNSD_RELAYED);
	begin(1, 0x8580, 1, 0, 0);
	terms.keeps_case = true;
	RECORD("\3WwW\7eXamPle\0", 1, 300, "\1\2\3\4");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_LETTERS);
	begin(5, 0x8580, 1, 0, 0);
	terms.keeps_case = true;
	RECORD(QUESTION, 5, 300, "\1A\xc0\x10");
	assert_int_equal(relay(), HYDNSD_NOT_RELAYED_LETTERS);
	begin(16, 0x8580, 1, 0, 0);
	terms.keeps_case = true;
	RECORD(QUESTION, 16, 300, "\4TEXT");                     /* no name */
	assert_int_equal(relay(), HYDNSD_RELAYED);
}

/* named remembers 48 ends of names to point to. Of each target here three are new, and the question has two. */
static void many_names_that_named_would_not_compress(void **state)
{
	(void)state;
	for (unsigned n = 15; n <= 16; n++) {
		begin(12, 0x8580, n, 0, 0);
		terms.keeps_case = true;
		for (unsigned i = 0; i < n; i++) {
			const char rdata[] = { 1, 'a', 1, 'b', 1, (char)('a' + i), 0 };

			record(QUESTION, 2, 12, 300, rdata, sizeof(rdata));
		}
		assert_int_equal(relay(), n == 15 ? HYDNSD_RELAYED : HYDNSD_NOT_RELAYED_TOO_BIG);
	}
}

static void answers_that_named_adds_to(void **state)
{
	static const struct {
		uint16_t type;
		bool hosts;
	} types[] = { { 15, true }, { 33, true }, { 64, true }, { 65, true }, { 12, false } };

	(void)state;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (int adds = 0; adds < 2; adds++) {
			begin(types[i].type, 0x8580, 1, 0, 0);
			terms.adds = adds;
			if (types[i].type == 33)
				RECORD(QUESTION, 33, 300, "\0\1\0\2\0\65\1a\0");
			else if (types[i].type == 12)
				RECORD(QUESTION, 12, 300, "\1a\0");
			else
				record(QUESTION, 2, types[i].type, 300, "\0\12\1a\0", 5);
			assert_int_equal(relay(), adds && types[i].hosts ? HYDNSD_NOT_RELAYED_TYPE : HYDNSD_RELAYED);
		}
}

/* Of a sound answer, every beginning is malformed, and each octet that changes gives an answer or a cause, and no harm. */
static void broken_answers_do_no_harm(void **state)
{
	static uint8_t whole[2048];
	size_t len;

	(void)state;
	begin(15, 0x8580, 2, 1, 1);
	RECORD(QUESTION, 15, 300, "\0\12\4mail\xc0\x10");
	RECORD(QUESTION, 15, 300, "\0\24\5mail2\4mail\7example\0");
	RECORD("\xc0\x10", 2, 300, "\2ns\xc0\x10");
	RECORD("\0", 41, 0, "");
	assert_int_equal(relay(), HYDNSD_RELAYED);
	len = wire_len;
	memcpy(whole, wire, len);
	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *exact = malloc(cut + 1);          /* so that a sanitizer sees what is read beyond */

		memcpy(exact, whole, cut);
		assert_int_not_equal(hydnsd_relay(exact, cut, &terms, offer), HYDNSD_RELAYED);
		free(exact);
	}
	for (size_t at = 0; at < len; at++)
		for (unsigned v = 0; v < 256; v++) {
			memcpy(wire, whole, len);
			wire[at] = (uint8_t)v;
			assert_in_range(hydnsd_relay(wire, len, &terms, offer), HYDNSD_RELAYED, HYDNSD_RELAYS - 1);
		}
}

static void many_records_are_too_many(void **state)
{
	(void)state;
	for (unsigned n = HYDNS_FORWARD_RECORDS; n <= HYDNS_FORWARD_RECORDS + 1; n++) {
		begin(1, 0x8580, n, 0, 0);
		for (unsigned i = 0; i < n; i++) {
			const uint8_t rdata[4] = { 192, 0, 2, (uint8_t)i };

			record(QUESTION, 2, 1, 300, rdata, sizeof(rdata));
		}
		assert_int_equal(relay(), n <= HYDNS_FORWARD_RECORDS ? HYDNSD_RELAYED : HYDNSD_NOT_RELAYED_TOO_BIG);
	}
}

/* -- zones -------------------------------------------------------------------------------------------------------- */
static struct {
	struct hydns_forwards head;
	struct hydns_forward_server server[2];
	struct hydns_forward_name zone[3];
} message;

static void zone(unsigned i, const char *name, size_t len, uint32_t servers)
{
	message.zone[i] = (struct hydns_forward_name){ .upstreams = servers, .name_len = (uint8_t)len };
	memcpy(message.zone[i].name, name, len);
}

static void sound_message(void)
{
	memset(&message, 0, sizeof(message));
	message.head = (struct hydns_forwards){ .number = 3, .flags = HYDNS_FORWARDS_FIRST | HYDNS_FORWARDS_LAST, .upstreams = 2,
						.zones = 3 };
	for (int i = 0; i < 2; i++) {
		memset(message.server[i].addr + 10, 0xff, 2);
		memcpy(message.server[i].addr + 12, "\xc0\0\2\1", 4);
		message.server[i].addr[15] += (uint8_t)i;
		message.server[i].port = htons(53);
	}
	zone(0, "\7example", 9, 3);
	zone(1, "\5inner\7example", 15, 0);
	zone(2, "\0", 1, 1);
}

static void the_longest_zone_counts(void **state)
{
	struct hydnsd_zones *z = NULL;

	(void)state;
	sound_message();
	assert_null(hydnsd_zones_add(&z, &message, sizeof(message)));
	assert_int_equal(z->forwarded, 2);
	assert_int_equal(hydnsd_zones_find(z, (const uint8_t *)"\1a\7example", 11), 0);
	assert_int_equal(hydnsd_zones_find(z, (const uint8_t *)"\7example", 9), 0);
	assert_int_equal(hydnsd_zones_find(z, (const uint8_t *)"\1a\5inner\7example", 17), 1);
	assert_int_equal(hydnsd_zones_find(z, (const uint8_t *)"\3org", 5), 2);
	free(z);
}

static void bad_lists_are_refused(void **state)
{
	struct hydnsd_zones *z = NULL;

	(void)state;
#define REFUSED(change) do { \
		sound_message(); \
		change; \
		assert_non_null(hydnsd_zones_add(&z, &message, sizeof(message))); \
	} while (0)
	REFUSED(message.head.number = 0);
	REFUSED(message.head.flags = HYDNS_FORWARDS_LAST);     /* no beginning */
	REFUSED(message.head.zones = 2);
	REFUSED(message.head.zones = HYDNS_FORWARD_ZONES + 1);
	REFUSED(message.server[0].port = 0);
	REFUSED(message.server[1].addr[12] = 127);
	REFUSED(message.server[1].addr[12] = 224);
	REFUSED(message.zone[0].upstreams = 4);                /* a server that is not named */
	REFUSED(message.zone[0].name[1] = 'E');                /* not in lower case */
	REFUSED(message.zone[0].name_len = 8);
	REFUSED(message.zone[1] = message.zone[0]);
#undef REFUSED
	sound_message();
	assert_non_null(hydnsd_zones_add(&z, &message, sizeof(message) - 1));
	assert_non_null(hydnsd_zones_add(&z, &message, 3));
	free(z);
}

/* -- servers ------------------------------------------------------------------------------------------------------ */
static void timeouts_follow_round_trips(void **state)
{
	struct hydnsd_upstream u = { .way = HYDNSD_WAY_FOUND };

	(void)state;
	assert_int_equal(hydnsd_upstream_timeout_ms(&u), 400);
	hydnsd_upstream_answered(&u, 100 * HYDNS_NS_PER_MS);
	assert_int_equal(hydnsd_upstream_timeout_ms(&u), 300); /* RFC 6298: R + 4 * R / 2 */
	for (int i = 0; i < 100; i++)
		hydnsd_upstream_answered(&u, 100000);
	assert_int_equal(hydnsd_upstream_timeout_ms(&u), 50);
	hydnsd_upstream_timed_out(&u, 1000);
	assert_int_equal(hydnsd_upstream_timeout_ms(&u), 100);
	hydnsd_upstream_answered(&u, 90 * HYDNS_NS_PER_MS);
	assert_in_range(hydnsd_upstream_timeout_ms(&u), 90, 110);
	for (int i = 0; i < 100; i++)
		hydnsd_upstream_answered(&u, 5 * HYDNS_NS_PER_S);
	assert_int_equal(hydnsd_upstream_timeout_ms(&u), 1000);
}

static void three_failures_are_a_pause(void **state)
{
	struct hydnsd_forward_resolver r = { .upstream = { { .way = HYDNSD_WAY_FOUND }, { .way = HYDNSD_WAY_FOUND },
							   { .way = HYDNSD_WAY_NO_ROUTE } } };
	uint64_t now = 1000;

	(void)state;
	assert_int_equal(hydnsd_upstreams_usable(&r, now), 3);
	hydnsd_upstream_timed_out(&r.upstream[0], now);
	hydnsd_upstream_timed_out(&r.upstream[0], now);
	assert_int_equal(hydnsd_upstreams_usable(&r, now), 3);
	hydnsd_upstream_timed_out(&r.upstream[0], now);
	hydnsd_upstream_timed_out(&r.upstream[0], now);        /* was open then */
	assert_int_equal(hydnsd_upstreams_usable(&r, now + 999), 2);
	assert_int_equal(hydnsd_upstreams_usable(&r, now + 1000), 3);
	hydnsd_upstream_timed_out(&r.upstream[0], now + 1100);
	assert_int_equal(hydnsd_upstreams_usable(&r, now + 1100 + 1999), 2);
	assert_int_equal(hydnsd_upstreams_usable(&r, now + 1100 + 2000), 3);
	hydnsd_upstream_answered(&r.upstream[0], 1000000);
	hydnsd_upstream_answered(&r.upstream[1], 402 * HYDNS_NS_PER_MS);
	assert_int_equal(hydnsd_upstreams_usable(&r, now), 1); /* the other is too slow beside it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_have_the_least_ttl), cmocka_unit_test(aliases_are_compressed),
		cmocka_unit_test(negative_answers_have_the_soas_minimum),
		cmocka_unit_test(denials_of_types_that_caches_answer), cmocka_unit_test(what_is_the_resolvers),
		cmocka_unit_test(broken_answers_do_no_harm), cmocka_unit_test(letters_that_are_kept),
		cmocka_unit_test(many_names_that_named_would_not_compress),
		cmocka_unit_test(answers_that_named_adds_to), cmocka_unit_test(many_records_are_too_many),
		cmocka_unit_test(the_longest_zone_counts), cmocka_unit_test(bad_lists_are_refused),
		cmocka_unit_test(timeouts_follow_round_trips), cmocka_unit_test(three_failures_are_a_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
