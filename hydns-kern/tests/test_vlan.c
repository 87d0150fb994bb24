/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VLAN devices on a real veth pair:
 *
 *     hka (the program is attached)  <-- veth -->  hkb, hkb.10, hkb.20 (802.1ad), hkb.20.30
 *
 * A query sent on one of hkb's devices must be answered on that device. Whether the program sees the tag depends on the sender:
 * with tx-vlan-offload on, the tag is in the packet's metadata and not in the frame. Then hydnsd must not attach the program,
 * which would answer on the wrong VLAN; a test shows that, too. Exits 77 (skipped) without root or without VLAN devices.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <bpf/bpf.h>
#include "expect.h"

#define WAIT_MS    2000
#define SILENCE_MS 200

static struct kernel *vlans;
static struct answer answer = { .static_ttl = true };  /* the clock runs */
static struct query asked = { .name = "www.example.com", .qtype = 1, .id = 0x1701 };

static int try_command(const char *text)
{
	int status = system(text);

	if (status)
		printf("# %s: status %d\n", text, status);
	return status;
}

/* A socket that receives every packet of a device, except those that it sends. */
static int listen_on(const char *device)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(device),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	assert_true(fd >= 0 && a.sll_ifindex);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* True when the asked question's answer comes to this socket in time. */
static bool answer_comes(int fd, int ms)
{
	struct frame f, want;
	__u8 message[FRAME_MAX];
	size_t len = answer_message(&answer, &asked, 0, 0, EDNS_SIZE, message);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	frame_query(&want, &asked);
	while (poll(&p, 1, ms) > 0) {
		struct sockaddr_ll from;
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, f.data, sizeof(f.data), 0, (struct sockaddr *)&from, &from_len);

		/* Skips the query, which is seen as it goes out. Offsets are of an untagged frame, as the device has it. */
		if (n == (ssize_t)(want.dns + len) && from.sll_pkttype != PACKET_OUTGOING &&
		    !memcmp(f.data + want.dns, message, len))
			return true;
	}
	return false;
}

/* Sends the query on a device. *here: it is answered there; *untagged: it is answered on hkb, without a tag. */
static void ask_on(const char *device, bool *here, bool *untagged)
{
	int own = listen_on(device), below = listen_on("hkb");
	struct frame f;

	kernel_beat(vlans);
	frame_query(&f, &asked);
	assert_int_equal(send(own, f.data, f.len, 0), f.len);
	*here = answer_comes(own, WAIT_MS);
	*untagged = strcmp(device, "hkb") && answer_comes(below, *here ? 0 : SILENCE_MS);
	close(own);
	close(below);
}

static void expect_answered(const char *device)
{
	bool here, untagged;

	ask_on(device, &here, &untagged);
	if (!here)
		fail_msg("%s: no answer on it", device);
}

static const char *const devices[] = { "hkb", "hkb.10", "hkb.20", "hkb.20.30" };

static void expect_all_answered(void)
{
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		expect_answered(devices[i]);
}

static void test_tags_in_the_frame(void **state)
{
	(void)state;
	assert_int_equal(try_command("ethtool -K hkb tx-vlan-offload off tx-vlan-stag-hw-insert off"), 0);
	assert_int_equal(try_command("ethtool -K hka rx-vlan-offload off rx-vlan-stag-hw-parse off"), 0);
	expect_all_answered();
	/* The receive offload of a veth strips no tag: the sender decides. */
	assert_int_equal(try_command("ethtool -K hka rx-vlan-offload on rx-vlan-stag-hw-parse on"), 0);
	expect_all_answered();
}

/* Why hydnsd must not attach the program to such a link. */
static void test_stripped_tag_gets_a_reply_on_the_wrong_vlan(void **state)
{
	bool here, untagged;

	(void)state;
	assert_int_equal(try_command("ethtool -K hkb tx-vlan-offload on"), 0);
	assert_int_equal(try_command("ethtool -K hka rx-vlan-offload off"), 0);
	ask_on("hkb.10", &here, &untagged);
	assert_false(here);
	assert_true(untagged);
}

static int set_up(void **state)
{
	(void)state;
	if (try_command("ip link set hka up") || try_command("ip link set hkb up") ||
	    try_command("ip link add link hkb name hkb.20 type vlan proto 802.1ad id 20") ||
	    try_command("ip link add link hkb.20 name hkb.20.30 type vlan id 30") ||
	    try_command("ip link set hkb.10 up") || try_command("ip link set hkb.20 up") || try_command("ip link set hkb.20.30 up"))
		return -1;
	vlans = open_with(&(struct kernel_options){ .vlan = true, .real_clock = true, .verbose = true });
	/* A veth receives from XDP_TX only with a program of its own. On hkb ours passes all: no reply is to a service. */
	if (kernel_attach(vlans, "hka") < 0 || kernel_attach(vlans, "hkb") < 0)
		return -1;
	answer_addresses(&answer, 1, 3600);
	return kernel_publish(vlans, &asked, &answer, 0, NULL) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	kernel_close(vlans);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tags_in_the_frame),
		cmocka_unit_test(test_stripped_tag_gets_a_reply_on_the_wrong_vlan),
	};

	if (unshare(CLONE_NEWNET) || try_command("ip link add hka type veth peer name hkb") ||
	    try_command("ip link add link hkb name hkb.10 type vlan id 10 2>/dev/null")) {
		puts("skipped: needs root, iproute2 and VLAN devices (module 8021q)");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
