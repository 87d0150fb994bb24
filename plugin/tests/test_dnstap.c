/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which dnstap messages a logged answer has, and what is in them. That real readers read them, test_dnstap.py sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "plugin/dnstap/dnstap.h"

struct record {
	struct hydns_logged head;
	uint8_t query[12], reply[12];
};

static struct record record_of(bool rd, bool ra)
{
	struct record r = { .head = { .query_len = 12, .reply_len = 12, .client_port = htons(40001), .service_port = htons(53) } };

	r.query[2] = rd;
	r.reply[2] = 0x80 | rd;
	r.reply[3] = ra ? 0x80 : 0;
	return r;
}

/* The type of the message, of its first field; 0: there is none. */
static unsigned type_in(const struct hydns_dnstap_options *o, bool rd, bool ra, bool reply)
{
	struct record r = record_of(rd, ra);
	uint8_t out[HYDNS_DNSTAP_MOST];
	size_t len = hydns_dnstap_message(o, &r.head, reply, 0, out);

	if (!len)
		return 0;
	assert_int_equal(out[0], 14 << 3 | 2);     /* Dnstap.message, whose length is one octet here */
	assert_int_equal(out[2], 1 << 3);
	return out[3];
}

/* named: a query is of a client if it asks for recursion and gets it, a reply if it asks. */
static void test_types_by_flags(void **state)
{
	const struct hydns_dnstap_options o = { .by_flags = true, .queries = true, .responses = true, .auth_queries = true,
						.auth_responses = true };

	(void)state;
	assert_int_equal(type_in(&o, true, true, false), 5);
	assert_int_equal(type_in(&o, true, true, true), 6);
	assert_int_equal(type_in(&o, true, false, false), 1);
	assert_int_equal(type_in(&o, true, false, true), 6);
	assert_int_equal(type_in(&o, false, true, false), 1);
	assert_int_equal(type_in(&o, false, true, true), 2);
}

static void test_what_is_not_wanted(void **state)
{
	const struct hydns_dnstap_options clients = { .by_flags = true, .queries = true, .responses = true };
	const struct hydns_dnstap_options replies = { .responses = true };

	(void)state;
	assert_int_equal(type_in(&clients, false, false, false), 0);
	assert_int_equal(type_in(&clients, false, false, true), 0);
	assert_int_equal(type_in(&replies, true, true, false), 0);
	assert_int_equal(type_in(&replies, false, false, true), 6);
}

/* Texts that are too long are cut: a message always fits. */
static void test_longest(void **state)
{
	static char text[2000];
	static uint8_t octets[sizeof(struct hydns_logged) + HYDNS_QUERY_MAX + HYDNS_LOGGED_REPLY];
	const struct hydns_dnstap_options o = { .queries = true, .responses = true, .query_time = true, .identity = text, .version = text };
	struct hydns_logged *r = (void *)octets;
	uint8_t out[HYDNS_DNSTAP_MOST];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	r->query_len = HYDNS_QUERY_MAX;
	r->reply_len = HYDNS_LOGGED_REPLY;
	r->ipv6 = 1;
	assert_in_range(hydns_dnstap_message(&o, r, true, INT64_MAX, out), HYDNS_LOGGED_REPLY, sizeof(out));
	assert_in_range(hydns_dnstap_message(&o, r, false, INT64_MAX, out), HYDNS_QUERY_MAX, sizeof(out));
}

/* While the collector is away rings wait, but not without end. */
static void test_rings_that_wait(void **state)
{
	const struct hydns_dnstap_options o = { .to = HYDNS_DNSTAP_UNIX, .path = "/nonexistent/collector", .queries = true };
	struct hydns_tap_level level = { 0 };
	struct hydns_tap *t = hydns_tap_start(&o, &level);
	int fd, taken = 0;

	(void)state;
	assert_non_null(t);
	while (hydns_tap_ring(t, fd = dup(STDIN_FILENO)) && taken < 1000)
		taken++;
	close(fd);                     /* not the tap's */
	assert_in_range(taken, 2, 16);
	hydns_tap_stop(t);
	assert_int_equal(level.connected, 0);
	assert_int_equal(level.written, 0);
}

static void test_no_ring(void **state)
{
	struct hydns_log_reader r = { .fd = -1 };
	int fd = memfd_create("no ring", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_false(hydns_log_reader_open(&r, fd));
	assert_int_equal(r.fd, -1);
	close(fd);
}

/* Threads of the resolver's own kind may need it to be told of others. */
static _Atomic int begun, ended;

static void begins(void)
{
	begun++;
}

static void ends(void)
{
	ended += begun;
}

static void test_thread_tells_the_resolver(void **state)
{
	const struct hydns_dnstap_options o = { .to = HYDNS_DNSTAP_NOWHERE, .thread_begins = begins, .thread_ends = ends };
	struct hydns_tap_level level = { 0 };
	struct hydns_tap *t = hydns_tap_start(&o, &level);

	(void)state;
	assert_non_null(t);
	hydns_tap_stop(t);
	assert_int_equal(begun, 1);
	assert_int_equal(ended, 1);
}

#define NAME(text) ((const uint8_t *)(text)), sizeof(text)

static void test_zones(void **state)
{
	struct hydns_tap_zones *z = hydns_tap_zones_new();
	const unsigned ds = 43, a = 1;

	(void)state;
	assert_non_null(z);
	assert_int_equal(hydns_tap_zones_find(z, NAME("\3www\3own"), a), SIZE_MAX);
	hydns_tap_zones_add(z, NAME("\3own"));
	hydns_tap_zones_add(z, NAME("\3sub\3own"));
	hydns_tap_zones_add(z, NAME("\3own"));
	assert_int_equal(hydns_tap_zones_find(z, NAME("\3www\3own"), a), 4);
	assert_int_equal(hydns_tap_zones_find(z, NAME("\3www\3sub\3own"), a), 4);
	assert_int_equal(hydns_tap_zones_find(z, NAME("\3sub\3own"), a), 0);
	assert_int_equal(hydns_tap_zones_find(z, NAME("\3sub\3own"), ds), 4);      /* the zone above */
	assert_int_equal(hydns_tap_zones_find(z, NAME("\3own"), ds), 0);            /* which this server has not */
	assert_int_equal(hydns_tap_zones_find(z, NAME("\5other"), a), SIZE_MAX);
	hydns_tap_zones_add(z, NAME(""));
	assert_int_equal(hydns_tap_zones_find(z, NAME("\5other"), a), 6);
	hydns_tap_zones_forget(z);
	assert_int_equal(hydns_tap_zones_find(z, NAME("\3own"), a), SIZE_MAX);
	hydns_tap_zones_free(z);
}

/* More zones than there is room for: those that are known stay, and nothing loops. */
static void test_many_zones(void **state)
{
	struct hydns_tap_zones *z = hydns_tap_zones_new();
	uint8_t name[6] = { 4 };
	unsigned known = 0;

	(void)state;
	for (uint32_t i = 0; i < 200000; i++) {
		memcpy(name + 1, &i, sizeof(i));
		hydns_tap_zones_add(z, name, sizeof(name));
		if (i < 1000)
			assert_int_equal(hydns_tap_zones_find(z, name, sizeof(name), 1), 0);
		known += hydns_tap_zones_find(z, name, sizeof(name), 1) == 0;
	}
	assert_in_range(known, 60000, 65536);
	hydns_tap_zones_free(z);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types_by_flags), cmocka_unit_test(test_what_is_not_wanted), cmocka_unit_test(test_longest),
		cmocka_unit_test(test_rings_that_wait), cmocka_unit_test(test_no_ring),
		cmocka_unit_test(test_thread_tells_the_resolver), cmocka_unit_test(test_zones), cmocka_unit_test(test_many_zones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
