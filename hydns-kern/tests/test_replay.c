/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Live replays: parked frames come in once more, and replies leave by the link, all others reach a socket:
 *
 *     hka (the program is attached, a UDP socket)  <-- veth -->  hkb (replies are read)
 *
 * Exits 77 (skipped) where BPF can't be loaded.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include "parking.h"
#include "hydns-kern/loader/kern.h"

#define WAIT_MS 5000
#define CROWD   (40 * HYDNS_REPLAYS)

static struct kernel *attached;
static struct parking parking;
static int listener = -1, server = -1, peer_link = -1;

static unsigned ifindex(void)
{
	return if_nametoindex("hka");
}

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* Replays a query once for each id from first on, in batches; returns how many passed. */
static unsigned replay(const struct query *ask, unsigned first, unsigned count)
{
	unsigned passed = 0;

	for (unsigned done = 0; done < count; done += HYDNS_REPLAYS) {
		unsigned n = count - done < HYDNS_REPLAYS ? count - done : HYDNS_REPLAYS;
		__u32 some;

		for (unsigned i = 0; i < n; i++) {
			struct query q = *ask;
			struct frame f;

			q.id = first + done + i;
			frame_query(&f, &q);
			parking.replays->frame[i].len = f.len;
			memcpy(parking.replays->frame[i].octets, f.data, f.len);
		}
		kernel_beat(attached);
		assert_int_equal(hydns_replay_run(kernel_prog_fd(attached), parking.replays, true, ifindex(), 0, n, &some), (int)n);
		passed += some;
	}
	return passed;
}

/* Marks the ids of messages that come at the descriptor, until none is missing. headers: octets before the message. */
static void expect_ids(int fd, size_t headers, bool reply, unsigned count)
{
	static bool seen[1U << 16];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	unsigned left = count;

	memset(seen, 0, sizeof(seen));
	while (left && poll(&p, 1, WAIT_MS) > 0) {
		__u8 data[2048], *m = data + headers;
		ssize_t n = recv(fd, data, sizeof(data), 0);
		unsigned id;

		if (n < (ssize_t)headers + 12 || !(m[2] & 0x80) != !reply)
			continue;
		id = m[0] << 8 | m[1];
		if (seen[id])
			fail_msg("message %u came twice", id);
		seen[id] = true;
		left--;
	}
	if (left)
		fail_msg("%u of %u messages did not come", left, count);
}

/* As many at once as a crowd has, each answered once. */
static void all_replays_of_a_rule_are_answered(void **state)
{
	struct answer a = { 0 };
	__u64 begun;

	(void)state;
	publish_address(attached, &plain, &a);
	begun = now_ns();
	assert_int_equal(replay(&plain, 0, CROWD), 0);
	printf("# time: %llu ns a replayed query, of %d\n", (unsigned long long)((now_ns() - begun) / CROWD), CROWD);
	expect_ids(listener, 14 + 20 + 8, true, CROWD);
}

static void replays_without_a_rule_reach_the_socket(void **state)
{
	struct query q = plain;

	(void)state;
	q.name = "other.example.com";
	parking_begin(&parking, &q, 0, now_ns());
	assert_int_equal(replay(&q, 0, 16), 16);
	expect_ids(server, 0, false, 16);
	assert_int_equal(parking_drain(&parking), 0);
	parking_end(&parking, &q, 0);
}

/* The peer takes nothing without a program of its own. */
static void what_the_link_refuses_is_known(void **state)
{
	struct answer a = { 0 };
	struct query q = plain;
	unsigned refused = 0;

	(void)state;
	q.name = "refused.example.com";
	publish_address(attached, &q, &a);
	assert_int_equal(replay(&q, 0, 40), 0);
	for (unsigned i = 0; i < 40; i++)
		refused += parking.replays->frame[i].refused;
	assert_int_equal(refused, 0);
	expect_ids(listener, 14 + 20 + 8, true, 40);
	close(peer_link);
	assert_int_equal(replay(&q, 0, 40), 0);
	for (unsigned i = 0; i < 40; i++)
		refused += parking.replays->frame[i].refused;
	assert_int_equal(refused, 40);
	peer_link = kernel_attach(attached, "hkb");
	assert_true(peer_link >= 0);
}

static void an_interface_that_has_gone_is_an_error(void **state)
{
	__u32 passed;

	(void)state;
	assert_int_equal(hydns_replay_run(kernel_prog_fd(attached), parking.replays, true, 4711, 0, 1, &passed), -ENODEV);
}

static void open_sockets(void)
{
	struct sockaddr_ll link = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(SERVICE_PORT) };
	int room = 1 << 25;

	memcpy(&a.sin_addr, service4, 4);
	link.sll_ifindex = (int)if_nametoindex("hkb");
	listener = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&link, sizeof(link)), 0);
	assert_int_equal(bind(server, (struct sockaddr *)&a, sizeof(a)), 0);
}

static int set_up(void **state)
{
	char text[256];

	(void)state;
	command("f=/proc/sys/net/ipv6/conf/default/disable_ipv6; [ ! -e $f ] || echo 1 >$f");
	command("ip link set lo up && ip link add hka type veth peer name hkb && ip link set hkb up");
	snprintf(text, sizeof(text), "ip link set hka address %02x:%02x:%02x:%02x:%02x:%02x up && ip addr add %u.%u.%u.%u/32 dev hka"
		 " && ip route add %u.%u.%u.%u/32 dev hka", service_mac[0], service_mac[1], service_mac[2], service_mac[3],
		 service_mac[4], service_mac[5], service4[0], service4[1], service4[2], service4[3], client4[0], client4[1],
		 client4[2], client4[3]);
	command(text);
	open_sockets();
	parking_open(&parking, attached);
	peer_link = kernel_attach(attached, "hkb");
	return kernel_attach(attached, "hka") >= 0 && peer_link >= 0 && kernel_watch_sent(attached) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_replays_of_a_rule_are_answered), cmocka_unit_test(replays_without_a_rule_reach_the_socket),
		cmocka_unit_test(what_the_link_refuses_is_known),
		cmocka_unit_test(an_interface_that_has_gone_is_an_error),
	};
	const char *why = "a network namespace can't be made: run as root";
	int failed;

	if (!unshare(CLONE_NEWNET))
		attached = kernel_open(&(struct kernel_options){ .real_clock = true, .miss_stage = true, .verbose = true }, &why);
	if (!attached) {
		printf("skipped: %s\n", why);
		return SKIPPED;
	}
	failed = cmocka_run_group_tests(tests, set_up, NULL);
	kernel_close(attached);
	return failed;
}
