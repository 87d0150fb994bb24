/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reply path by routing tables, in a network namespace:
 *
 *     rta 192.0.2.1/24, 2001:db8:1::1/64   the client's network, where queries come in
 *     rtb 10.9.0.1/24, fd09::1/64          another network, with a router to the client's
 *
 * This enters the neighbours by hand. Test runs come from rta, so a route out of rta means XDP_TX, and a route out of rtb a
 * redirection if the program is attached there, too. Exits 77 (skipped) where BPF can't be loaded.
 */
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "expect.h"

static struct kernel *routed;
static struct query asked[2] = {
	{ .name = "www.example.com", .qtype = 1, .id = 7 },
	{ .name = "www.example.com", .qtype = 1, .id = 8, .ipv6 = true },
};
static struct answer answer;

static void forwarding(bool on)
{
	command(on ? "echo 1 >/proc/sys/net/ipv4/conf/lo/forwarding" : "echo 0 >/proc/sys/net/ipv4/conf/lo/forwarding");
	command(on ? "echo 1 >/proc/sys/net/ipv6/conf/lo/forwarding" : "echo 0 >/proc/sys/net/ipv6/conf/lo/forwarding");
}

/* The program answers q by this action, from device's Ethernet address to 02:00:00:00:01:to. */
static void expect_sent(const char *what, const struct query *q, int action, const char *device, __u8 to)
{
	__u8 want[FRAME_MAX], mac[6] = { 2, 0, 0, 0, 1, to };
	struct frame f;
	size_t len = answer_message(&answer, q, 0, 0, EDNS_SIZE, want);
	char path[64], text[18] = "";
	unsigned own[6];
	int reason, got;
	FILE *in;

	frame_query(&f, q);
	got = kernel_run(routed, &f, &reason);
	if (got != action || reason != HYDNS_R_ANSWERED)
		fail_msg("%s: action %d, reason %d", what, got, reason);
	assert_null(frame_wrong(&f));
	assert_int_equal(f.len - f.dns, len);
	assert_memory_equal(f.data + f.dns, want, len);
	if (memcmp(f.data, mac, 6))
		fail_msg("%s: to another neighbour", what);
	snprintf(path, sizeof(path), "ip -br link show %s | awk '{print $3}'", device);
	in = popen(path, "r");
	assert_true(in && fgets(text, sizeof(text), in));
	pclose(in);
	assert_int_equal(sscanf(text, "%x:%x:%x:%x:%x:%x", own, own + 1, own + 2, own + 3, own + 4, own + 5), 6);
	for (int i = 0; i < 6; i++)
		if (f.data[6 + i] != own[i])
			fail_msg("%s: not from %s's address", what, device);
}

static void expect_both_pass(const char *what, int reason)
{
	for (int i = 0; i < 2; i++) {
		struct frame f;

		frame_query(&f, &asked[i]);
		expect_pass(what, routed, &f, reason);
	}
}

static void test_same_interface(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		expect_sent("a neighbour", &asked[i], XDP_TX, "rta", 7);
	/* by a router on the same link, which the query did not come from */
	command("ip route add 192.0.2.7/32 via 192.0.2.3");
	command("ip route add 2001:db8:1::7/128 via 2001:db8:1::3");
	for (int i = 0; i < 2; i++)
		expect_sent("a router", &asked[i], XDP_TX, "rta", 3);
	command("ip route del 192.0.2.7/32");
	command("ip route del 2001:db8:1::7/128");
}

static void test_another_interface(void **state)
{
	(void)state;
	command("ip route add 192.0.2.7/32 via 10.9.0.2");
	command("ip route add 2001:db8:1::7/128 via fd09::2");
	expect_both_pass("out of an interface without the program", HYDNS_R_NO_ROUTE);
	kernel_allow_egress(routed, if_nametoindex("rtb"), true);
	for (int i = 0; i < 2; i++)
		expect_sent("out of another interface", &asked[i], XDP_REDIRECT, "rtb", 2);
	kernel_allow_egress(routed, if_nametoindex("rtb"), false);
	command("ip route del 192.0.2.7/32");
	command("ip route del 2001:db8:1::7/128");
}

/* A policy rule for packets of this host applies, as it does to the resolver's own replies. */
static void test_policy_rule(void **state)
{
	(void)state;
	command("ip rule add from 198.51.100.53 iif lo lookup 77");
	command("ip route add default via 192.0.2.3 table 77");
	expect_sent("policy rule", &asked[0], XDP_TX, "rta", 3);
	command("ip rule del from 198.51.100.53 iif lo lookup 77");
	expect_sent("no policy rule", &asked[0], XDP_TX, "rta", 7);
}

static void test_no_way(void **state)
{
	(void)state;
	command("ip route add 192.0.2.7/32 via 192.0.2.99");
	command("ip route add 2001:db8:1::7/128 via 2001:db8:1::99");
	expect_both_pass("no neighbour", HYDNS_R_NO_ROUTE);
	command("ip route replace blackhole 192.0.2.7/32");
	command("ip route del 2001:db8:1::7/128");
	command("ip route add unreachable 2001:db8:1::7/128");
	expect_both_pass("no route", HYDNS_R_NO_ROUTE);
	command("ip route del 192.0.2.7/32");
	command("ip route del 2001:db8:1::7/128");
	forwarding(false);
	expect_both_pass("forwarding off: the kernel looks nothing up", HYDNS_R_NO_ROUTE);
	forwarding(true);
	expect_sent("forwarding on again", &asked[0], XDP_TX, "rta", 7);
}

static void test_route_mtu(void **state)
{
	struct query q = { .name = "big.example.com", .qtype = 16, .id = 9, .edns = true, .edns_size = 1232 };
	struct answer big = { 0 };
	__u8 text[600] = { 0 };
	struct frame f;

	(void)state;
	answer_add(&big, ANSWER, NULL, 16, 300, text, sizeof(text));
	assert_true(kernel_publish(routed, &q, &big, 0, NULL));
	command("ip route add 192.0.2.7/32 dev rta mtu lock 600");
	frame_query(&f, &q);
	expect_pass("larger than the route's locked MTU", routed, &f, HYDNS_R_TOO_BIG);
	command("ip route del 192.0.2.7/32");
	assert_int_equal(kernel_shoot(routed, &f), XDP_TX);
}

static void test_not_looked_up(void **state)
{
	struct query tagged = asked[0];
	struct frame f;

	(void)state;
	tagged.vlan_tags = 1;
	frame_query(&f, &tagged);
	expect_pass("VLAN", routed, &f, HYDNS_R_NO_ROUTE);
	frame_query(&f, &asked[1]);
	memcpy(f.data + f.l3 + 8, "\xfe\x80", 2);
	frame_seal(&f);
	expect_pass("link-local", routed, &f, HYDNS_R_NO_ROUTE);
}

static int set_up(void **state)
{
	(void)state;
	command("ip link set lo up");
	command("ip link add rta type veth peer name rtc");
	command("ip link add rtb type veth peer name rtd");
	command("for l in rta rtb rtc rtd; do ip link set $l up; done");
	command("ip addr add 192.0.2.1/24 dev rta && ip addr add 10.9.0.1/24 dev rtb");
	command("ip addr add 2001:db8:1::1/64 dev rta nodad && ip addr add fd09::1/64 dev rtb nodad");
	command("ip neigh add 192.0.2.7 dev rta lladdr 02:00:00:00:01:07");
	command("ip neigh add 192.0.2.3 dev rta lladdr 02:00:00:00:01:03");
	command("ip neigh add 2001:db8:1::7 dev rta lladdr 02:00:00:00:01:07");
	command("ip neigh add 2001:db8:1::3 dev rta lladdr 02:00:00:00:01:03");
	command("ip neigh add 10.9.0.2 dev rtb lladdr 02:00:00:00:01:02");
	command("ip neigh add fd09::2 dev rtb lladdr 02:00:00:00:01:02");
	forwarding(true);
	kernel_set_ingress(routed, if_nametoindex("rta"));
	answer_addresses(&answer, 2, 300);
	return kernel_publish(routed, &asked[0], &answer, 0, NULL) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_interface),
		cmocka_unit_test(test_another_interface),
		cmocka_unit_test(test_policy_rule),
		cmocka_unit_test(test_no_way),
		cmocka_unit_test(test_route_mtu),
		cmocka_unit_test(test_not_looked_up),
	};
	const char *why = "a network namespace can't be made: run as root";
	int failed;

	if (!unshare(CLONE_NEWNET))
		routed = kernel_open(&(struct kernel_options){ .fib = true, .vlan = true, .verbose = true }, &why);
	if (!routed) {
		printf("skipped: %s\n", why);
		return SKIPPED;
	}
	failed = cmocka_run_group_tests(tests, set_up, NULL);
	kernel_close(routed);
	return failed;
}
