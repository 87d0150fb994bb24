/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Ways to upstream servers, from this kernel's tables, in a network namespace of its own:
 *
 *     va 192.0.2.1/24, 2001:db8:1::1/64         va.7 10.7.0.1/24, VLAN 7        va.20 VLAN 20 (802.1ad)
 *     va.20.7 10.27.0.1/24, fd27::1/64          VLAN 7 in VLAN 20
 *
 * Exits 77 (skipped) where that can't be made; VLAN devices need the module 8021q.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/forwarding/way.h"

#define MAC "02:00:00:00:01:09"

static bool vlans;
static const uint8_t hop_mac[6] = { 2, 0, 0, 0, 1, 9 }, own_mac[6] = { 2, 0, 0, 0, 0, 1 };

static void command(const char *text)
{
	if (system(text))
		fail_msg("%s", text);
}

static void to_address(const char *text, uint8_t out[16])
{
	memset(out, 0, 16);
	if (strchr(text, ':')) {
		assert_int_equal(inet_pton(AF_INET6, text, out), 1);
		return;
	}
	out[10] = out[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, text, out + 12), 1);
}

static enum hydnsd_way look(const char *server, struct hydns_forward_way *way, uint32_t *device)
{
	*way = (struct hydns_forward_way){ .port = htons(53) };
	to_address(server, way->addr);
	return hydnsd_way_find(way, device);
}

/* tag: two of them. */
static void expect_found(const char *server, const char *source, const uint16_t *tag)
{
	struct hydns_forward_way way;
	uint8_t own[16];
	uint32_t device;

	assert_int_equal(look(server, &way, &device), HYDNSD_WAY_FOUND);
	to_address(source, own);
	assert_memory_equal(way.source, own, 16);
	assert_memory_equal(way.macs, hop_mac, 6);
	assert_memory_equal(way.macs + 6, own_mac, 6);
	assert_int_equal(way.ifindex, if_nametoindex("va"));
	assert_int_equal(device, way.ifindex);
	assert_memory_equal(way.tag, tag, sizeof(way.tag));
}

static void expect_none(const char *server, enum hydnsd_way why, const char *device)
{
	struct hydns_forward_way way, before;
	uint32_t named;

	before = (struct hydns_forward_way){ .port = htons(53) };
	to_address(server, before.addr);
	assert_int_equal(look(server, &way, &named), why);
	assert_memory_equal(&way, &before, sizeof(way));
	assert_int_equal(named, device ? if_nametoindex(device) : 0);
}

static void on_a_link(void **state)
{
	static const uint16_t none[HYDNS_FORWARD_TAGS];

	(void)state;
	expect_found("192.0.2.9", "192.0.2.1", none);
	expect_found("2001:db8:1::9", "2001:db8:1::1", none);
	expect_found("198.51.100.1", "192.0.2.1", none);
	expect_found("2001:db8:2::1", "2001:db8:1::1", none);
	expect_found("203.0.113.1", "192.0.2.1", none);
}

static void without_a_way(void **state)
{
	(void)state;
	expect_none("10.99.0.1", HYDNSD_WAY_NO_ROUTE, NULL);
	expect_none("10.98.0.1", HYDNSD_WAY_NO_ROUTE, NULL);
	expect_none("192.0.2.1", HYDNSD_WAY_NO_ROUTE, NULL);
	expect_none("192.0.2.77", HYDNSD_WAY_NO_NEIGHBOUR, "va");
}

static void in_vlans(void **state)
{
	static const uint16_t one[HYDNS_FORWARD_TAGS] = { HYDNS_FORWARD_TAG(7, false) };
	static const uint16_t two[HYDNS_FORWARD_TAGS] = { HYDNS_FORWARD_TAG(7, false), HYDNS_FORWARD_TAG(20, true) };

	(void)state;
	if (!vlans) {
		puts("skipped: VLAN devices need the module 8021q");
		skip();
	}
	expect_found("10.7.0.9", "10.7.0.1", one);
	expect_found("10.27.0.9", "10.27.0.1", two);
	expect_found("fd27::9", "fd27::1", two);
	command("ip link add link va.20.7 name third type vlan id 9 && ip link set third up && ip addr add 10.9.0.1/24 dev third");
	command("ip neigh add 10.9.0.9 dev third lladdr " MAC);
	expect_none("10.9.0.9", HYDNSD_WAY_NO_ROUTE, "third");
}

static int set_up(void **state)
{
	(void)state;
	command("ip link set lo up && ip link add va type veth peer name vb && ip link set va address 02:00:00:00:00:01 up"
		" && ip link set vb up");
	command("ip addr add 192.0.2.1/24 dev va && ip addr add 2001:db8:1::1/64 dev va nodad");
	command("ip neigh add 192.0.2.9 dev va lladdr " MAC " && ip neigh add 2001:db8:1::9 dev va lladdr " MAC);
	command("ip route add 198.51.100.0/24 via 192.0.2.9 && ip route add 2001:db8:2::/64 via 2001:db8:1::9");
	command("ip route add 203.0.113.0/24 via inet6 2001:db8:1::9 dev va && ip route add blackhole 10.98.0.0/24");
	vlans = !system("ip link add link va name va.7 type vlan id 7 2>/dev/null");
	if (!vlans)
		return 0;
	command("ip link add link va name va.20 type vlan proto 802.1ad id 20 && ip link add link va.20 name va.20.7 type vlan id 7");
	command("for l in va.7 va.20 va.20.7; do ip link set $l up; done; ip addr add 10.7.0.1/24 dev va.7");
	command("ip addr add 10.27.0.1/24 dev va.20.7 && ip addr add fd27::1/64 dev va.20.7 nodad");
	command("ip neigh add 10.7.0.9 dev va.7 lladdr " MAC " && ip neigh add 10.27.0.9 dev va.20.7 lladdr " MAC
		" && ip neigh add fd27::9 dev va.20.7 lladdr " MAC);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_a_link), cmocka_unit_test(without_a_way), cmocka_unit_test(in_vlans),
	};

	if (unshare(CLONE_NEWNET)) {
		puts("skipped: a network namespace can't be made: run as root");
		return 77;
	}
	return cmocka_run_group_tests(tests, set_up, NULL);
}
