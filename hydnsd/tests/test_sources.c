/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Source validation by the routes and settings of the kernel's messages, also while these change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/netdev/netlink.h"
#include "hydnsd/netdev/routes.h"
#include "hydnsd/netdev/rpfilter.h"
#include "hydnsd/netdev/sources.h"
#include "hydnsd/tests/netlink_script.h"

/* -- routes ---------------------------------------------------------------------------------------------------- */
static struct hydnsd_routes routes;
static const struct hydnsd_rpfilter off;

static enum hydnsd_source source(const char *text)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };

	assert_int_equal(inet_pton(AF_INET, text, addr + 12), 1);
	return hydnsd_prefixes_find(routes.prefix, routes.count, addr);
}

static void usual_rules(void)
{
	datagram_from(KERNEL);
	rule(AF_INET, RT_TABLE_LOCAL, 0);
	rule(AF_INET, RT_TABLE_MAIN, 0);
	done();
}

static void local_table(void)
{
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
}

/* Only an interrupted dump is repeated; those of other tables stay. */
static void interrupted_routes_are_asked_for_again(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	rule(AF_INET, RT_TABLE_LOCAL, 0);
	rule(AF_INET, 77, NLM_F_DUMP_INTR);
	done();
	usual_rules();
	local_table();
	datagram_from(KERNEL);
	route("198.51.100.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, 0, AS_ASKED);
	route("192.0.2.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, NLM_F_DUMP_INTR, AS_ASKED);
	done();
	datagram_from(KERNEL);
	route("192.0.2.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, 0, AS_ASKED);
	done();
	assert_int_equal(hydnsd_routes_read(AF_INET, &off, &routes), 0);
	assert_int_equal(requests, 5);
	assert_false(routes.rules);
	assert_int_equal(source("192.0.2.1"), HYDNSD_SOURCE_OWN);
	assert_int_equal(source("192.0.2.2"), HYDNSD_SOURCE_ROUTED);
	assert_int_equal(source("198.51.100.1"), HYDNSD_SOURCE_REFUSED);
	assert_int_equal(routes.routes, 2);
}

static void routes_that_cannot_be_read(void **state)
{
	(void)state;
	routes.count = 4711;
	usual_rules();
	local_table();
	datagram_from(KERNEL);
	route("192.0.2.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, 0, AS_ASKED);
	refusal(ENOMEM);
	assert_int_equal(hydnsd_routes_read(AF_INET, &off, &routes), -ENOMEM);
	assert_int_equal(routes.count, 4711);
	refusal(EPERM);
	assert_int_equal(hydnsd_routes_read(AF_INET, &off, &routes), -EPERM);
}

/* -- rp_filter of devices that queries come by --------------------------------------------------------------------- */
static struct hydnsd_rpfilter rp;

static int read_rpfilter(const char *interface, bool vlan)
{
	const struct hydnsd_list list = { .count = 1, .item = { (char *)interface } };

	return hydnsd_rpfilter_read(&list, vlan, &rp);
}

/* A card in a VRF, one with a VLAN device, one in a bond. Strict are the VLAN device and the bond. */
static void some_devices(void)
{
	datagram_from(KERNEL);
	link_of(11, "card1", "", 20, 0);
	link_of(20, "vrf1", "vrf", 0, 0);
	link_of(12, "card2", "", 0, 0);
	link_of(22, "card2.5", "vlan", 0, 12);
	link_of(13, "card3", "", 23, 0);
	link_of(23, "bond1", "bond", 0, 0);
	done();
	datagram_from(KERNEL);
	setting(NETCONFA_IFINDEX_ALL, 0);
	setting(22, HYDNSD_RPFILTER_STRICT);
	setting(23, HYDNSD_RPFILTER_STRICT);
	done();
}

static void a_vrf_is_named(void **state)
{
	(void)state;
	some_devices();
	assert_int_equal(read_rpfilter("card1", false), 0);
	assert_string_equal(rp.vrf, "card1");
}

static void a_vlan_device_counts_where_tags_do(void **state)
{
	(void)state;
	some_devices();
	assert_int_equal(read_rpfilter("card2", false), 0);
	assert_int_equal(rp.mode, HYDNSD_RPFILTER_OFF);
	assert_false(rp.several);
	some_devices();
	assert_int_equal(read_rpfilter("card2", true), 0);
	assert_int_equal(rp.mode, HYDNSD_RPFILTER_STRICT);
	assert_true(rp.several && rp.count == 1 && rp.device[0] == 22);
}

static void a_bond_counts_for_its_ports(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		some_devices();
		assert_int_equal(read_rpfilter(i ? "bond1" : "card3", false), 0);
		assert_int_equal(rp.mode, HYDNSD_RPFILTER_STRICT);
		assert_true(!rp.several && rp.count == 1 && rp.device[0] == 23);
	}
}

/* Links, then settings: an interrupted dump does not count. */
static void interrupted_settings_are_asked_for_again(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	link_of(11, "card1", "", 20, 0);
	message(NLMSG_NOOP, NLM_F_DUMP_INTR, AS_ASKED, "", 0);
	done();
	datagram_from(KERNEL);
	link_of(11, "card1", "", 0, 0);
	done();
	datagram_from(KERNEL);
	setting(11, HYDNSD_RPFILTER_STRICT);
	message(NLMSG_NOOP, NLM_F_DUMP_INTR, AS_ASKED, "", 0);
	done();
	datagram_from(KERNEL);
	setting(NETCONFA_IFINDEX_ALL, 0);
	done();
	assert_int_equal(read_rpfilter("card1", false), 0);
	assert_int_equal(requests, 4);
	assert_string_equal(rp.vrf, "");
	assert_int_equal(rp.mode, HYDNSD_RPFILTER_OFF);
}

/* -- while routes change ------------------------------------------------------------------------------------------- */
static struct hydnsd d;
static unsigned relisted;

static bool relist(struct hydnsd *daemon)
{
	(void)daemon;
	relisted++;
	return false;
}

static void all_that_sources_read(void)
{
	links_with("dummy");
	datagram_from(KERNEL);
	setting(NETCONFA_IFINDEX_ALL, 0);
	done();
	usual_rules();
	local_table();
	datagram_from(KERNEL);
	route("198.51.100.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, 0, AS_ASKED);
	done();
	refusal(EAFNOSUPPORT);
}

static bool client_is_let_in(void)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };

	assert_int_equal(inet_pton(AF_INET, "198.51.100.7", addr + 12), 1);
	return !hydnsd_sources_refuse(&d, addr);
}

static void routes_that_change_all_the_time(void **state)
{
	struct hydnsd_sources_state v4;
	uint64_t since;
	char why[256];

	(void)state;
	d = (struct hydnsd){ .options = { .interface = { .count = 1, .item = { "lo" } } } };
	all_that_sources_read();
	assert_int_equal(hydnsd_sources_start(&d, relist, why, sizeof(why)), 0);
	assert_true(client_is_let_in());
	relisted = 0;
	changing = true;
	heard(heard_arg, 0);
	hydnsd_sources_tick(&d);
	since = now_ms;
	for (; now_ms < since + HYDNSD_NETLINK_PATIENCE_MS; now_ms += HYDNSD_HOUSEKEEPING_MS) {
		hydnsd_sources_tick(&d);
		assert_true(client_is_let_in());
	}
	assert_int_equal(relisted, 0);
	now_ms = since + HYDNSD_NETLINK_PATIENCE_MS;
	hydnsd_sources_tick(&d);
	assert_false(client_is_let_in());
	assert_true(relisted && hydnsd_sources_get(&d, HYDNSD_IPV4, &v4) && strstr(v4.note, "the routes cannot be read"));
	changing = false;
	all_that_sources_read();
	hydnsd_sources_tick(&d);
	assert_true(client_is_let_in());
	hydnsd_sources_stop(&d);
}

#define ALONE(test) cmocka_unit_test_setup(test, begin_script)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(interrupted_routes_are_asked_for_again),
		ALONE(routes_that_cannot_be_read),
		ALONE(a_vrf_is_named),
		ALONE(a_vlan_device_counts_where_tags_do),
		ALONE(a_bond_counts_for_its_ports),
		ALONE(interrupted_settings_are_asked_for_again),
		ALONE(routes_that_change_all_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
