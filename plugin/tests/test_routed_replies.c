/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Replies to clients by packet rings, back or by the host's routes, on a real interface (veth.h). Skipped where the process
 * may not make namespaces or load programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "plugin/queue/lanes_internal.h"
#include "plugin/queue/ways.h"
#include "plugin/tests/veth.h"

#define THREAD 1
#define SERVICE_PORT 53
#define CLIENT_PORT  4321

static struct veth veth;
static struct hydns_ways *ways;
static struct hydns_lane_thread *thread;
static const uint64_t now_ms = 1000000;
static const uint8_t router[HYDNS_ETHERNET] = { 2, 0, 0, 0, 0, 9 }, far[HYDNS_ETHERNET] = { 2, 0, 0, 0, 0, 2 };

static int set_up(void **state)
{
	(void)state;
	veth_begin(&veth);
	veth_run("for f in near lo; do echo 0 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done; ip link set lo up; "
		 "ip addr add 10.99.0.1/24 dev near && ip addr add fd99::1/64 dev near nodad && "
		 "ip neigh replace 10.99.0.2 lladdr 02:00:00:00:00:02 dev near nud permanent && "
		 "ip neigh replace fd99::2 lladdr 02:00:00:00:00:02 dev near nud permanent");
	ways = hydns_ways_new(VETH_THREADS, (const uint64_t[2]){ 1, 2 });
	assert_non_null(ways);
	thread = hydns_lanes_thread(veth.lanes, THREAD);
	hydns_lanes_route(veth.lanes, ways);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	veth_end(&veth);
	hydns_ways_free(ways);
	return 0;
}

/* The way of a query from this client, by a router that is not on the way back. */
static struct hydns_way came_from(const char *client)
{
	struct hydns_way way = { 0 };
	struct hydns_path *p = &way.path;

	assert_true(hydns_lanes_sender(thread, veth.ifindex, &way));
	p->ipv6 = inet_pton(AF_INET, client, p->remote) != 1;
	if (p->ipv6)
		assert_int_equal(inet_pton(AF_INET6, client, p->remote), 1);
	assert_int_equal(inet_pton(p->ipv6 ? AF_INET6 : AF_INET, p->ipv6 ? "fd99::1" : "10.99.0.1", p->local), 1);
	p->remote_port = CLIENT_PORT;
	p->local_port = SERVICE_PORT;
	p->l2_len = 14;
	memcpy(p->l2, router, sizeof(router));
	memcpy(p->l2 + HYDNS_ETHERNET, (const uint8_t[]){ 2, 0, 0, 0, 0, 1 }, HYDNS_ETHERNET);
	memcpy(p->l2 + 2 * HYDNS_ETHERNET, p->ipv6 ? "\x86\xdd" : "\x08\x00", 2);
	return way;
}

static bool reply(const struct hydns_way *way, size_t len)
{
	static const uint8_t payload[VETH_MTU];

	return hydns_lanes_reply(thread, way, 0, payload, len, now_ms);
}

/* The first look at a way makes a place, and then the link thread asks the kernel for the Ethernet address. */
static void learn(const struct hydns_way *way)
{
	(void)reply(way, 1);
	hydns_ways_follow(ways);
}

static void expect_detour(const struct hydns_way *way, size_t len, enum hydns_detour why)
{
	struct hydns_queue_counts *counts = hydns_lanes_counts(thread);
	const uint64_t before = counts->detour[why], sent = counts->sent;

	assert_false(reply(way, len));
	assert_int_equal(counts->detour[why], before + 1);
	assert_int_equal(counts->sent, sent);
}

/* A reply of len octets comes, of this way's addresses and ports, to this Ethernet address. */
static void expect_reply(const struct hydns_way *way, size_t len, const uint8_t to[HYDNS_ETHERNET])
{
	struct pollfd p = { .fd = veth.wire, .events = POLLIN };
	struct hydns_datagram d;
	uint8_t frame[2048];

	while (poll(&p, 1, VETH_WAIT_MS) == 1) {
		ssize_t n = recv(veth.wire, frame, sizeof(frame), 0);

		if (n < 0 || !hydns_frame_read(&d, frame, (size_t)n, true) || d.path.remote_port != SERVICE_PORT || d.len != len)
			continue;
		assert_int_equal(d.path.local_port, CLIENT_PORT);
		assert_memory_equal(d.path.local, way->path.remote, sizeof(d.path.local));
		assert_memory_equal(d.path.remote, way->path.local, sizeof(d.path.remote));
		assert_memory_equal(frame, to, HYDNS_ETHERNET);
		return;
	}
	fail_msg("no reply has come");
}

/* --- tests ------------------------------------------------------------------------------------------------ */
static void back_where_the_query_came_from(void **state)
{
	const struct hydns_way way = came_from("10.99.0.2");

	(void)state;
	hydns_lanes_route(veth.lanes, NULL);
	assert_true(reply(&way, 40));
	expect_reply(&way, 40, router);
}

/* How long the resolver took, by replies that have left alone. */
static void time_is_counted(void **state)
{
	const struct hydns_queue_counts *counts = hydns_lanes_counts(thread);
	struct hydns_way way = came_from("10.99.0.2");
	const uint64_t before = counts->took[HYDNS_WAIT_AT_MOST_5000000], sum = counts->took_us;

	(void)state;
	hydns_lanes_route(veth.lanes, NULL);
	way.came_us = hydns_lanes_now_us() - 3000000;
	assert_true(reply(&way, 40));
	expect_reply(&way, 40, router);
	assert_int_equal(counts->took[HYDNS_WAIT_AT_MOST_5000000], before + 1);
	assert_in_range(counts->took_us - sum, 3000000, 5000000);
	way.made++;
	assert_false(reply(&way, 40));
	assert_int_equal(counts->took[HYDNS_WAIT_AT_MOST_5000000], before + 1);
}

static void bounds_of_times(void **state)
{
	(void)state;
	assert_int_equal(hydns_wait_bucket(0), HYDNS_WAIT_AT_MOST_200);
	assert_int_equal(hydns_wait_bucket(200), HYDNS_WAIT_AT_MOST_200);
	assert_int_equal(hydns_wait_bucket(201), HYDNS_WAIT_AT_MOST_1000);
	assert_int_equal(hydns_wait_bucket(5000000), HYDNS_WAIT_AT_MOST_5000000);
	assert_int_equal(hydns_wait_bucket(5000001), HYDNS_WAIT_LONGER);
	assert_int_equal(hydns_wait_bucket(UINT32_MAX), HYDNS_WAIT_LONGER);
}

static void where_the_routes_lead(void **state)
{
	static const char *const client[] = { "10.99.0.2", "fd99::2", "203.0.113.7", "2001:db8::7" };

	(void)state;
	veth_run("ip route add 203.0.113.0/24 via 10.99.0.2; ip route add 2001:db8::/64 via fd99::2");
	for (unsigned i = 0; i < sizeof(client) / sizeof(client[0]); i++) {
		const struct hydns_way way = came_from(client[i]);

		learn(&way);
		assert_true(reply(&way, 40));
		expect_reply(&way, 40, far);
	}
}

/* The route of a reply is the one of the address that was asked. */
static void by_the_service_address(void **state)
{
	struct hydns_way way = came_from("203.0.113.7");

	(void)state;
	veth_run("ip addr add 10.99.1.1/32 dev lo && ip route add 203.0.113.0/24 via 10.99.0.2 table 7 && "
		 "ip rule add from 10.99.1.1 lookup 7");
	hydns_ways_follow(ways);
	expect_detour(&way, 40, HYDNS_DETOUR_NO_WAY);
	memcpy(way.path.local, (const uint8_t[]){ 10, 99, 1, 1 }, 4);
	learn(&way);
	assert_true(reply(&way, 40));
	expect_reply(&way, 40, far);
}

static void longer_than_the_path_carries(void **state)
{
	struct hydns_way way;

	(void)state;
	veth_run("ip route add 203.0.113.0/24 via 10.99.0.2 mtu lock 700");
	way = came_from("203.0.113.7");
	learn(&way);
	assert_true(reply(&way, 700 - 28));
	expect_reply(&way, 700 - 28, far);
	expect_detour(&way, 700 - 27, HYDNS_DETOUR_TOO_LONG);
}

static void sockets_for_what_no_ring_can_take(void **state)
{
	const struct hydns_way nowhere = came_from("198.51.100.1"), near = came_from("10.99.0.2"), other = came_from("10.98.0.2");

	(void)state;
	expect_detour(&nowhere, 40, HYDNS_DETOUR_NO_WAY);
	expect_detour(&near, 40, HYDNS_DETOUR_NO_NEIGHBOUR);
	hydns_ways_follow(ways);
	assert_true(reply(&near, 40));
	veth_run("ip neigh replace 10.99.0.2 lladdr 02:00:00:00:00:02 dev near nud stale; "
		 "ip link add nearer type veth peer name farther && ip link set nearer up && ip link set farther up && "
		 "ip addr add 10.98.0.1/24 dev nearer && "
		 "ip neigh replace 10.98.0.2 lladdr 02:00:00:00:00:03 dev nearer nud permanent");
	hydns_ways_follow(ways);
	expect_detour(&near, 40, HYDNS_DETOUR_REFRESH_NEIGHBOUR);
	learn(&other);
	expect_detour(&other, 40, HYDNS_DETOUR_OTHER_DEVICE);
	veth_run("ip link del nearer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(back_where_the_query_came_from, set_up, tear_down), cmocka_unit_test_setup_teardown(time_is_counted, set_up, tear_down), cmocka_unit_test_setup_teardown(bounds_of_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(where_the_routes_lead, set_up, tear_down),
		cmocka_unit_test_setup_teardown(by_the_service_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(longer_than_the_path_carries, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sockets_for_what_no_ring_can_take, set_up, tear_down),
	};

	if (!veth_possible()) {
		fprintf(stderr, "skipped: needs root and AF_XDP\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
