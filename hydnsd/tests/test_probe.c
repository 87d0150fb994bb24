/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The frames of dry runs, compared with those of the packet tests, which other code builds octet by octet. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "hydns-kern/tests/frame.h"
#include "hydnsd/control/probe.h"

static const uint8_t client_cookie[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static uint8_t long_cookie[HYDNSD_PROBE_COOKIE_MOST];
static const char longest[] = "a23456789012345678901234567890123456789012345678901234567890123."
	"b23456789012345678901234567890123456789012345678901234567890123."
	"c23456789012345678901234567890123456789012345678901234567890123."
	"d234567890123456789012345678901234567890123456789012345678901";

static const struct {
	const char *name;
	uint16_t qtype;
	bool norec, edns, dnssec_ok;
	uint16_t edns_size;
	const uint8_t *cookie;
	uint8_t cookie_len;
} queries[] = {
	{ "www.example.com", 1, .edns = false },
	{ "WwW.eXample.com", 28, .edns = false },
	{ ".", 2, .norec = true },
	{ "www.example.com", 1, .edns = true, .edns_size = 1232 },
	{ "www.example.com", 1, .edns = true, .edns_size = 0, .dnssec_ok = true },
	{ "www.example.com", 65280, .norec = true, .edns = true, .edns_size = 4096, .cookie = client_cookie, .cookie_len = 8 },
	{ "odd.example", 16, .edns = true, .edns_size = 512, .cookie = client_cookie, .cookie_len = 1 },
	{ longest, 257, .edns = true, .edns_size = 65535, .dnssec_ok = true, .cookie = long_cookie,
	  .cookie_len = sizeof(long_cookie) },
};
#define QUERIES (sizeof(queries) / sizeof(queries[0]))

static struct hydnsd_query query_of(unsigned i)
{
	struct hydnsd_query q = {
		.qtype = htons(queries[i].qtype), .norec = queries[i].norec, .edns = queries[i].edns,
		.dnssec_ok = queries[i].dnssec_ok, .edns_size = queries[i].edns_size, .cookie_len = queries[i].cookie_len,
	};

	q.name.len = (uint8_t)name_wire(queries[i].name, q.name.octet);
	if (queries[i].cookie)
		memcpy(q.cookie, queries[i].cookie, queries[i].cookie_len);
	return q;
}

/* The same frame, made by the packet tests. */
static void expected(unsigned i, bool ipv6, struct frame *f)
{
	uint8_t option[4 + HYDNSD_PROBE_COOKIE_MOST] = { 0, 10, 0, queries[i].cookie_len };
	struct query q = {
		.name = queries[i].name, .qtype = queries[i].qtype, .ipv6 = ipv6, .norec = queries[i].norec, .edns = queries[i].edns,
		.want_do = queries[i].dnssec_ok, .edns_size = queries[i].edns_size,
	};

	if (queries[i].cookie) {
		memcpy(option + 4, queries[i].cookie, queries[i].cookie_len);
		q.options = option;
		q.options_len = 4 + queries[i].cookie_len;
	}
	frame_query(f, &q);
}

static void one(unsigned i, bool ipv6)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct hydns_service_key service = { .port = htons(SERVICE_PORT) };
	struct hydnsd_query q = query_of(i);
	size_t n = ipv6 ? 16 : 4, addresses;
	struct frame want, got;
	uint8_t client[16];

	memcpy(client, ipv6 ? client6 : mapped, ipv6 ? 16 : 12);
	memcpy(service.addr, ipv6 ? service6 : mapped, ipv6 ? 16 : 12);
	if (!ipv6) {
		memcpy(client + 12, client4, 4);
		memcpy(service.addr + 12, service4, 4);
	}
	expected(i, ipv6, &want);
	got = want;
	memset(got.data, 0xee, sizeof(got.data));
	got.len = hydnsd_probe_frame(&q, client, &service, got.data);
	assert_in_range(got.len, 1, HYDNSD_PROBE_MOST);
	assert_int_equal(got.len, want.len);
	assert_null(frame_wrong(&got));
	assert_int_equal((got.data[0] | got.data[6]) & 1, 0);
	addresses = want.udp - 2 * n;
	assert_memory_equal(got.data + 12, want.data + 12, 2);          /* EtherType */
	assert_memory_equal(got.data + addresses, want.data + addresses, 2 * n);
	assert_memory_equal(got.data + want.udp + 2, want.data + want.udp + 2, 4); /* port and length */
	assert_int_not_equal(got.data[want.udp] << 8 | got.data[want.udp + 1], SERVICE_PORT);
	assert_memory_equal(got.data + want.dns, want.data + want.dns, want.len - want.dns);
}

static void frames_are_those_of_the_packet_tests(void **state)
{
	(void)state;
	memset(long_cookie, 0xab, sizeof(long_cookie));
	for (unsigned i = 0; i < QUERIES; i++) {
		one(i, false);
		one(i, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(frames_are_those_of_the_packet_tests) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
