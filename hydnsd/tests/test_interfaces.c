/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Where hydnsd attaches the program while links come, go and change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/netdev/netlink.h"
#include "hydnsd/tests/netlink_script.h"

static struct hydnsd d;
static unsigned looked, left;          /* calls of news */

static void count_news(struct hydnsd *of, unsigned leaves)
{
	assert_ptr_equal(of, &d);
	looked += !leaves;
	left += leaves != 0;
}

/* -- notices of links ---------------------------------------------------------------------------------------------- */
static void start_loopback(enum hydnsd_vlan_offload offload)
{
	char why[256];

	d = (struct hydnsd){ .options = { .interface = { .count = 1, .item = { "lo" } }, .attach_mode = HYDNS_ATTACH_GENERIC,
					  .vlan_offload = offload, .partial_checksum = HYDNSD_NO } };
	attached = detached = looked = left = 0;
	assert_int_equal(hydnsd_interfaces_start(&d, count_news, why, sizeof(why)), 0);
}

static void watch_loopback(int first_rc)
{
	attach_rc = first_rc;
	start_loopback(HYDNSD_VLAN_OFFLOAD_TRUST);
	assert_int_equal(attached, 1);
}

/* The lost notice may be the one that hydnsd waits for. */
static void lost_messages_make_it_look(void **state)
{
	struct hydnsd_interface_state l;

	(void)state;
	watch_loopback(-EBUSY);
	attach_rc = 0;
	failure(ENOBUFS);
	heard(heard_arg, 0);
	assert_int_equal(attached, 2);
	assert_true(hydnsd_interfaces_get(&d, 0, &l) && l.attached);
	hydnsd_interfaces_stop(&d, false);
}

/* Only notices of the kernel count. */
static void notices_of_other_processes(void **state)
{
	(void)state;
	watch_loopback(0);
	datagram_from(STRANGER);
	link_of(4711, "lo", "", 0, 0);
	heard(heard_arg, 0);
	assert_int_equal(attached, 1);
	datagram_from(KERNEL);
	link_of(4711, "lo", "", 0, 0);
	heard(heard_arg, 0);
	assert_int_equal(attached, 2);
	hydnsd_interfaces_stop(&d, false);
}

static const struct {
	enum hydns_attach_mode mode;
	uint32_t pending_max;
	bool parks;
} modes[] = {
	{ HYDNS_ATTACH_GENERIC, 1, false }, { HYDNS_ATTACH_DISPATCHER, 1, false }, { HYDNS_ATTACH_NATIVE, 0, false },
	{ HYDNS_ATTACH_NATIVE, 1, true },
};

static void queries_are_parked_in_native_mode_alone(void **state)
{
	char why[256];

	(void)state;
	watch_loopback(0);
	hydnsd_interfaces_stop(&d, false);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		d.options.attach_mode = modes[i].mode;
		d.options.pending_max = modes[i].pending_max;
		if (modes[i].mode != HYDNS_ATTACH_GENERIC)
			links_with("dummy");
		parks_at = parking_left = 0;
		assert_int_equal(hydnsd_interfaces_start(&d, count_news, why, sizeof(why)), 0);
		assert_int_equal(parks_at, modes[i].parks ? if_nametoindex("lo") : 0);
		assert_int_equal(parking_left, 0);
		hydnsd_interfaces_stop(&d, true);
		assert_int_equal(parks_at, 0);
		assert_int_equal(parking_left, 1);
	}
}

/* -- while links change -------------------------------------------------------------------------------------------- */
static bool is_attached(void)
{
	struct hydnsd_interface_state l;

	assert_true(hydnsd_interfaces_get(&d, 0, &l));
	return l.attached;
}

/* "": there is no note. */
static bool note_says(const char *text)
{
	struct hydnsd_interface_state l;

	assert_true(hydnsd_interfaces_get(&d, 0, &l));
	return text[0] ? strstr(l.note, text) != NULL : !l.note[0];
}

/* Notices that cause a look at the tags, then silence. */
static void notice_vlans(unsigned messages)
{
	while (messages--) {
		datagram_from(KERNEL);
		link_of(4711, "other", "vlan", 0, 4712);
	}
	failure(EAGAIN);
	heard(heard_arg, 0);
}

static void watch_in_peace(void)
{
	attach_rc = 0;
	links_with("dummy");
	start_loopback(HYDNSD_VLAN_OFFLOAD_REFUSE);
	assert_int_equal(attached, 1);
	detached = 0;
}

static const struct {
	const char *kind, *says;
} without_native[] = {
	{ "vlan", "no native XDP there: name eth0, on which it lies; or attach-mode: generic" },
	{ "macvlan", "name eth0, on which it lies" },
	{ "bridge", "name its ports: eth1 eth2" },
	{ "dummy", "name the card by which queries come" },
	{ "bond", "balance-xor or 802.3ad, without vlan+srcmac; or name its ports: eth1 eth2" },
	{ "veth", "not now" },         /* the loader's own words stand */
};

/* A device that lies on eth0, and has the ports eth1 and eth2. */
static void a_driver_without_native_xdp(void **state)
{
	unsigned own = if_nametoindex("lo");
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(without_native) / sizeof(without_native[0]); i++) {
		watch_loopback(0);
		hydnsd_interfaces_stop(&d, false);
		attach_rc = -EOPNOTSUPP;
		d.options.attach_mode = HYDNS_ATTACH_NATIVE;
		datagram_from(KERNEL);
		link_of(own, "lo", without_native[i].kind, 0, 4711);
		link_of(4711, "eth0", "", 0, 0);
		link_of(4712, "eth1", "", own, 0);
		link_of(4713, "eth2", "", own, 0);
		done();
		assert_int_equal(hydnsd_interfaces_start(&d, count_news, why, sizeof(why)), 0);
		assert_false(is_attached());
		assert_true(note_says(without_native[i].says));
		hydnsd_interfaces_stop(&d, false);
	}
}

/* What the links ask of the program, in native mode: tags are in the frames of a plain device. */
static void facts_follow_the_links(void **state)
{
	unsigned own = if_nametoindex("lo");

	(void)state;
	watch_loopback(0);
	assert_string_equal(d.facts.tagged, "");
	d.options.attach_mode = HYDNS_ATTACH_NATIVE;
	datagram_from(KERNEL);
	link_of(own, "lo", "", 0, 0);
	link_of(4711, "other", "vlan", 0, own);
	done();
	hydnsd_interfaces_retry(&d);
	assert_string_equal(d.facts.tagged, "other");
	changing = true;
	hydnsd_interfaces_retry(&d);   /* what can't be read stays */
	assert_string_equal(d.facts.tagged, "other");
	changing = false;
	links_with("dummy");
	hydnsd_interfaces_retry(&d);
	assert_string_equal(d.facts.tagged, "");
	hydnsd_interfaces_stop(&d, false);
}

/* Until then every tick looks, and cannot read the links. */
static void tick_until(uint64_t then_ms)
{
	for (; now_ms < then_ms; now_ms += HYDNSD_HOUSEKEEPING_MS) {
		unsigned before = requests;

		hydnsd_interfaces_tick(&d);
		assert_true(requests > before);
		assert_int_equal(detached, 0);
	}
	now_ms = then_ms;
}

/* While the links cannot be read the program stays attached, for some time, and each tick reads them again. */
static void links_that_change_all_the_time(void **state)
{
	uint64_t since;

	(void)state;
	watch_in_peace();
	changing = true;
	notice_vlans(1);
	since = now_ms;
	tick_until(since + HYDNSD_NETLINK_PATIENCE_MS - 1);
	hydnsd_interfaces_tick(&d);
	assert_true(is_attached() && note_says(""));
	now_ms = since + HYDNSD_NETLINK_PATIENCE_MS;
	hydnsd_interfaces_tick(&d);
	assert_false(is_attached());
	assert_true(note_says("cannot see whether VLAN devices lie on it"));
	changing = false;
	links_with("dummy");
	hydnsd_interfaces_tick(&d);
	assert_true(is_attached());
	hydnsd_interfaces_stop(&d, false);
}

/* After a burst its result counts at once, and the time limit begins again. */
static void a_burst_of_link_changes(void **state)
{
	uint64_t since;

	(void)state;
	watch_in_peace();
	for (int i = 0; i < 2; i++) {
		changing = true;
		notice_vlans(1);
		since = now_ms;
		tick_until(since + HYDNSD_NETLINK_PATIENCE_MS - 1);
		changing = false;
		links_with("dummy");
		hydnsd_interfaces_tick(&d);
		assert_true(is_attached());
	}
	changing = true;
	notice_vlans(1);
	changing = false;
	assert_true(is_attached());
	links_with("vlan");
	hydnsd_interfaces_tick(&d);
	assert_false(is_attached());
	assert_true(note_says("other takes VLAN tags from it"));
	hydnsd_interfaces_stop(&d, false);
}

/* A former hydnsd's program stays attached. */
static void a_start_while_links_change(void **state)
{
	(void)state;
	attach_rc = 0;
	changing = true;
	start_loopback(HYDNSD_VLAN_OFFLOAD_REFUSE);
	tick_until(now_ms + HYDNSD_NETLINK_PATIENCE_MS - 1);
	assert_int_equal(attached, 0);
	changing = false;
	links_with("dummy");
	hydnsd_interfaces_tick(&d);
	assert_true(is_attached() && note_says(""));
	hydnsd_interfaces_stop(&d, false);
}

/* hydnsd does not read all links of the host for each notice of a burst. */
static void a_burst_is_looked_at_once(void **state)
{
	unsigned before;

	(void)state;
	watch_in_peace();
	before = requests;
	changing = true;
	notice_vlans(1);
	before = requests - before;            /* tries of one look */
	requests = 0;
	notice_vlans(SCRIPT / 2);
	assert_int_equal(requests, before);
	hydnsd_interfaces_stop(&d, false);
}

#define ALONE(test) cmocka_unit_test_setup(test, begin_script)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(lost_messages_make_it_look),
		ALONE(notices_of_other_processes),
		ALONE(facts_follow_the_links),
		ALONE(a_driver_without_native_xdp),
		ALONE(queries_are_parked_in_native_mode_alone),
		ALONE(links_that_change_all_the_time),
		ALONE(a_burst_of_link_changes),
		ALONE(a_start_while_links_change),
		ALONE(a_burst_is_looked_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
