/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replies as large as a link takes, and one octet more, on links of several MTUs:
 *
 *     hka (the program is attached)  <-- veth -->  hkb
 *
 * A veth copies what a socket sends into a buffer hardly longer than the packet, whereas a network card's frames have a page
 * each. So this sends the queries as frames made in the kernel (live test runs), which also have a page, and reads the replies
 * from hkb. Exits 77 (skipped) where BPF can't be loaded.
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
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <bpf/bpf.h>
#include "expect.h"

#define WAIT_MS         5000
#define IPV6_EVERY_PATH 1280
#define ANSWER_MOST     (HYDNS_SLOT_MOST - HYDNS_RULE_SPACE(13, 0, 1, 0))

static struct kernel *attached;
static int sender = -1, listener = -1;

/* A program that sends each frame out of the interface that it comes from. */
static int load_sender(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_TX },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "hydns_send", "GPL", code, 2, NULL);
}

static void send_frame(const struct frame *f)
{
	struct xdp_md from = { .data_end = f->len, .ingress_ifindex = if_nametoindex("hkb") };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f->data, .data_size_in = f->len, .ctx_in = &from,
		    .ctx_size_in = sizeof(from), .repeat = 1, .batch_size = 1, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	if (bpf_prog_test_run_opts(sender, &opts))
		fail_msg("a live frame can't be sent: %s", strerror(errno));
}

/* Waits until one more packet is counted; returns its reason. */
static int reason_of_next(__u64 before[HYDNS_REASONS])
{
	__u64 now[HYDNS_REASONS];

	for (int ms = 0; ms < WAIT_MS; ms++) {
		kernel_reasons(attached, now);
		for (int r = 0; r < HYDNS_REASONS; r++)
			if (now[r] > before[r] && r != HYDNS_R_NOT_UDP && r != HYDNS_R_NOT_IP)
				return r;
		usleep(1000);
	}
	return -1;
}

/* Reads the reply to q from hkb and compares it with a. */
static void expect_on_the_wire(const char *what, const struct query *q, const struct answer *a)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct frame reply;
	__u8 want[FRAME_MAX];
	size_t len = answer_message(a, q, 0, 0, EDNS_SIZE, want);

	frame_query(&reply, q);
	while (poll(&p, 1, WAIT_MS) > 0) {
		ssize_t n = recv(listener, reply.data, sizeof(reply.data), 0);

		if (n < (ssize_t)(reply.dns + 12) || !(reply.data[reply.dns + 2] & 0x80))
			continue;   /* neighbour discovery and the like */
		reply.len = n;
		if (frame_wrong(&reply))
			fail_msg("%s: wrong %s", what, frame_wrong(&reply));
		assert_int_equal(reply.len - reply.dns, len);
		assert_memory_equal(reply.data + reply.dns, want, len);
		return;
	}
	fail_msg("%s: no reply came", what);
}

/* Checks a query whose reply has ip_len octets of IP packet. */
static void expect_size(unsigned mtu, bool ipv6, unsigned ip_len, bool answered)
{
	struct query q = { .name = "mtu.example", .qtype = 16, .id = ip_len, .ipv6 = ipv6, .edns = true, .edns_size = 4096 };
	unsigned fixed = (ipv6 ? 40 : 20) + 8 + 12 + 13 + 4 + 12 + HYDNS_OPT_LEN;
	struct answer a = { .static_ttl = true };
	static const __u8 text[FRAME_MAX];
	__u64 before[HYDNS_REASONS];
	struct frame f;
	char what[64];
	__u32 handle;
	int reason;

	snprintf(what, sizeof(what), "MTU %u, IPv%d, packet of %u octets", mtu, ipv6 ? 6 : 4, ip_len);
	answer_add(&a, ANSWER, NULL, 16, 300, text, ip_len - fixed);
	handle = kernel_publish(attached, &q, &a, 0, NULL);
	if (!handle)
		fail_msg("%s: no rule", what);
	frame_query(&f, &q);
	kernel_beat(attached);
	kernel_reasons(attached, before);
	send_frame(&f);
	reason = reason_of_next(before);
	if (reason != (answered ? HYDNS_R_ANSWERED : HYDNS_R_TOO_BIG))
		fail_msg("%s: counted as reason %d", what, reason);
	if (answered)
		expect_on_the_wire(what, &q, &a);
	kernel_remove(attached, handle);
}

static void set_mtu(unsigned mtu)
{
	char text[96];

	snprintf(text, sizeof(text), "ip link set hka mtu %u && ip link set hkb mtu %u", mtu, mtu);
	command(text);
}

static void test_sizes(void **state)
{
	static const unsigned mtus[] = { 576, 1280, 1500, 9000 };
	unsigned most4 = 20 + 8 + 12 + 13 + 4 + ANSWER_MOST + HYDNS_OPT_LEN;

	(void)state;
	for (size_t i = 0; i < sizeof(mtus) / sizeof(*mtus); i++) {
		unsigned mtu = mtus[i];

		set_mtu(mtu);
		expect_size(mtu, false, mtu < most4 ? mtu : most4, true);
		if (mtu < most4)
			expect_size(mtu, false, mtu + 1, false);
		if (mtu < IPV6_EVERY_PATH)
			continue;      /* no link for IPv6 */
		expect_size(mtu, true, IPV6_EVERY_PATH, true);
		expect_size(mtu, true, IPV6_EVERY_PATH + 1, false);
	}
}

static int set_up(void **state)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };

	(void)state;
	/* or the program counts the kernel's own multicast reports among the queries */
	command("f=/proc/sys/net/ipv6/conf/default/disable_ipv6; [ ! -e $f ] || echo 1 >$f");
	command("ip link add hka type veth peer name hkb && ip link set hka up && ip link set hkb up");
	set_mtu(9000);      /* whether the program can be attached to such a link is part of the test */
	a.sll_ifindex = (int)if_nametoindex("hkb");
	listener = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	sender = load_sender();
	/* A veth receives from XDP_TX only with a program of its own. On hkb ours passes all: no reply is to a service. */
	return listener >= 0 && !bind(listener, (struct sockaddr *)&a, sizeof(a)) && sender >= 0 &&
	       kernel_attach(attached, "hka") >= 0 && kernel_attach(attached, "hkb") >= 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
	};
	const char *why = "a network namespace can't be made: run as root";
	int failed;

	if (!unshare(CLONE_NEWNET))
		attached = kernel_open(&(struct kernel_options){ .real_clock = true, .verbose = true }, &why);
	if (!attached) {
		printf("skipped: %s\n", why);
		return SKIPPED;
	}
	failed = cmocka_run_group_tests(tests, set_up, NULL);
	kernel_close(attached);
	return failed;
}
