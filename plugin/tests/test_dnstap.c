/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which dnstap messages a logged answer has, and what is in them. That real readers read them, test_dnstap.py sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
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
	struct hydns_dnstap_head head;
	size_t len;

	hydns_dnstap_begin(&head, o);
	len = hydns_dnstap_message(o, &head, &r.head, reply, 0, out);
	if (!len)
		return 0;
	assert_int_equal(out[0], 15 << 3);         /* Dnstap.type */
	assert_int_equal(out[2], 14 << 3 | 2);     /* Dnstap.message, whose length is one octet here */
	assert_int_equal(out[4], 1 << 3);
	return out[5];
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
	struct hydns_dnstap_head head;
	uint8_t out[HYDNS_DNSTAP_MOST];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	hydns_dnstap_begin(&head, &o);
	r->query_len = HYDNS_QUERY_MAX;
	r->reply_len = HYDNS_LOGGED_REPLY;
	r->ipv6 = 1;
	assert_in_range(hydns_dnstap_message(&o, &head, r, true, INT64_MAX, out), HYDNS_LOGGED_REPLY, sizeof(out));
	assert_in_range(hydns_dnstap_message(&o, &head, r, false, INT64_MAX, out), HYDNS_QUERY_MAX, sizeof(out));
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

/* -- the resolver's own messages ------------------------------------------------------------------------------- */
#define FRAME 4000             /* octets of a frame, which the room is no multiple of */

static void frame_of(uint32_t number, uint8_t out[FRAME])
{
	for (uint32_t i = 0; i < FRAME; i++)
		out[i] = (uint8_t)(number * 7 + i % 251);
}

/* Reads what was written, and that it is the frames from number on. */
static void expect_frames(int fd, uint32_t number, unsigned n)
{
	uint8_t is[FRAME], expected[FRAME];

	for (; n; n--, number++) {
		assert_int_equal(recv(fd, is, FRAME, MSG_WAITALL), FRAME);
		frame_of(number, expected);
		assert_memory_equal(is, expected, FRAME);
	}
}

static unsigned fill(struct hydns_own_frames *f, uint32_t number)
{
	uint8_t frame[FRAME];
	enum hydns_own_put put;
	unsigned n = 0, half = 0;

	do {
		frame_of(number + n, frame);
		put = hydns_own_frames_put(f, frame, FRAME);
		half += put == HYDNS_OWN_HALF;
		n += put != HYDNS_OWN_FULL;
	} while (put != HYDNS_OWN_FULL);
	assert_int_equal(half, 1);
	return n;
}

struct reader {
	int fd;
	uint32_t number;
	unsigned n;
};

static void *read_frames(void *reader)
{
	const struct reader *r = reader;

	expect_frames(r->fd, r->number, r->n);
	return NULL;
}

/* They come out as they went in, and what was not written is there still, while others come. */
static void test_own_frames(void **state)
{
	struct hydns_own_frames f;
	_Atomic bool stopping = false;
	int fd[2], gone[2], error;
	uint32_t number = 0;

	(void)state;
	assert_true(hydns_own_frames_init(&f));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	for (int round = 0; round < 3; round++) {
		unsigned first = fill(&f, number), then;
		struct hydns_stream s = { .fd = fd[0], .is_socket = true, .one_way = true, .stopping = &stopping };
		struct hydns_stream lost = { .is_socket = true, .one_way = true, .stopping = &stopping };
		struct reader r = { .fd = fd[1], .number = number };
		pthread_t thread;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, gone), 0);
		lost.fd = gone[0];
		close(gone[1]);
		assert_int_equal(hydns_own_frames_write(&f, &lost, &error), 0);
		assert_true(error < 0);
		then = fill(&f, number + first);
		r.n = first + then;
		assert_int_equal(pthread_create(&thread, NULL, read_frames, &r), 0);
		assert_int_equal(hydns_own_frames_write(&f, &s, &error), first * FRAME);
		assert_int_equal(hydns_own_frames_write(&f, &s, &error), then * FRAME);
		assert_int_equal(error, 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		number += r.n;
	}
	assert_int_equal(hydns_own_frames_write(&f, &(struct hydns_stream){ .fd = -1 }, &error), 0);
	assert_int_equal(error, 0);
	close(fd[0]);
	close(fd[1]);
	hydns_own_frames_destroy(&f);
}

/* What it can't make is the resolver's. */
static void test_own_that_are_not_taken(void **state)
{
	static const uint8_t wire[HYDNS_LOGGED_REPLY + 1] = { 0 };
	const struct hydns_dnstap_options replies = { .responses = true }, of_zones = { .auth_responses = true };
	const struct sockaddr_in in = { .sin_family = AF_INET };
	const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct hydns_tap_message m = { .reply = true, .client = (const void *)&in, .service = (const void *)&in, .wire = wire,
				       .len = HYDNS_LOGGED_REPLY };
	const struct hydns_dnstap_head none = { .len = 0 };
	uint8_t out[4 + HYDNS_DNSTAP_MOST];

	(void)state;
	assert_in_range(hydns_own_frame(&replies, &none, &m, out), HYDNS_LOGGED_REPLY, sizeof(out));
	m.len++;
	assert_int_equal(hydns_own_frame(&replies, &none, &m, out), 0);
	m.len = 12;
	m.reply = false;
	assert_int_equal(hydns_own_frame(&replies, &none, &m, out), 0);
	m.reply = true;
	m.service = (const void *)&in6;
	assert_int_equal(hydns_own_frame(&replies, &none, &m, out), 0);
	m.client = (const void *)&in6;
	assert_in_range(hydns_own_frame(&replies, &none, &m, out), 12, 200);
	m.auth = true;
	assert_int_equal(hydns_own_frame(&replies, &none, &m, out), 0);
	m.zone = wire;
	m.zone_len = HYDNS_NAME_MAX;
	assert_in_range(hydns_own_frame(&of_zones, &none, &m, out), HYDNS_NAME_MAX, HYDNS_NAME_MAX + 200);
	m.zone_len++;
	assert_int_equal(hydns_own_frame(&of_zones, &none, &m, out), 0);
}

/* named's replies have the time of their query, too. */
static void test_times_of_own(void **state)
{
	const struct hydns_dnstap_options o = { .responses = true, .query_time = true };
	const struct sockaddr_in in = { .sin_family = AF_INET };
	const uint8_t wire[12] = { 0 };
	const struct hydns_tap_message m = { .reply = true, .query_ns = 5 * (int64_t)HYDNS_NS_PER_S + 7, .client = (const void *)&in,
					     .real_ns = 6 * (int64_t)HYDNS_NS_PER_S + 8, .service = (const void *)&in, .wire = wire,
					     .len = sizeof(wire) };
	/* seconds and, in four octets, nanoseconds: fields 8 and 9 of the query, 12 and 13 of the response */
	const uint8_t times[] = { 8 << 3, 5, 9 << 3 | 5, 7, 0, 0, 0, 12 << 3, 6, 13 << 3 | 5, 8, 0, 0, 0 };
	const struct hydns_dnstap_head none = { .len = 0 };
	uint8_t out[4 + HYDNS_DNSTAP_MOST];

	(void)state;
	assert_in_range(hydns_own_frame(&o, &none, &m, out), sizeof(times), 127);
	assert_memory_equal(out + 27, times, sizeof(times));       /* behind type, family, protocol, addresses and ports */
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
		cmocka_unit_test(test_thread_tells_the_resolver), cmocka_unit_test(test_own_frames),
		cmocka_unit_test(test_own_that_are_not_taken), cmocka_unit_test(test_times_of_own),
		cmocka_unit_test(test_zones), cmocka_unit_test(test_many_zones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
