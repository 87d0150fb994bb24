/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Ways against the kernel's own routes and neighbours. Each test has two network namespaces, which end with it:
 *
 *     here: wa 02:00:00:00:00:0a  192.0.2.1/24     2001:db8:1::1/64  <-->  pa 02:00:00:00:00:1a  .2  ::2  fe80::2
 *           wb 02:00:00:00:00:0b  198.51.100.1/24  2001:db8:2::1/64  <-->  pb 02:00:00:00:00:1b  .2  ::2  fe80::2
 *     default routes by pa: 192.0.2.2, fe80::2
 *
 * Ways are made and used as the user nobody. The clock is the test's. Exits 77 (skipped) where namespaces can't be made.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "plugin/queue/neighbours.h"
#include "plugin/queue/ways.h"

#define SKIPPED   77
#define NOBODY    65534
#define PATIENCE  100            /* looks, 100 ms apart */
#define START_MS  1000000U

static const uint64_t seed[2] = { 1, 2 };
static const uint8_t own_a[6] = { 2, 0, 0, 0, 0, 0x0a }, own_b[6] = { 2, 0, 0, 0, 0, 0x0b };
static const uint8_t by_a[6] = { 2, 0, 0, 0, 0, 0x1a }, by_b[6] = { 2, 0, 0, 0, 0, 0x1b };
static struct hydns_ways *ways;
static struct hydns_way_out out;
static uint64_t now_ms;
static pid_t peer;

/* -- the kernel's side ----------------------------------------------------------------------------------------- */
static _Atomic unsigned asked;   /* questions sent to the kernel */
static _Atomic int send_fails;   /* not 0: with this errno */

ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	asked++;
	if (!send_fails)
		return __real_send(fd, data, len, flags);
	errno = send_fails;
	return -1;
}

__attribute__((format(printf, 1, 2))) static void command(const char *format, ...)
{
	char text[2048];
	va_list a;

	va_start(a, format);
	vsnprintf(text, sizeof(text), format, a);
	va_end(a);
	if (system(text))
		fail_msg("%s", text);
}

#define AT_PEER "nsenter -t %d -n sh -ec "

static pid_t start_peer(void)
{
	int ready[2];
	char octet;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(unshare(CLONE_NEWNET) || write(ready[1], "", 1) != 1 || pause());
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &octet, 1), 1);
	close(ready[0]);
	return pid;
}

/* With the rights of a resolver. */
static void as_nobody(bool yes)
{
	assert_int_equal(yes ? setresuid(NOBODY, NOBODY, 0) : setresuid(0, 0, 0), 0);
}

static void pair(const char *side, const char *network, unsigned n)
{
	command("ip link add w%s address 02:00:00:00:00:0%s type veth peer name p%s address 02:00:00:00:00:1%s && "
		"ip link set p%s netns %d && ip link set w%s addrgenmode none && ip link set w%s up && "
		"ip addr add %s.1/24 dev w%s && ip addr add 2001:db8:%u::1/64 dev w%s nodad && ip addr add fe80::1/64 dev w%s nodad",
		side, side, side, side, side, (int)peer, side, side, network, side, n, side, side);
	command(AT_PEER "'ip link set p%s addrgenmode none; ip link set p%s up; ip addr add %s.2/24 dev p%s; "
		"ip addr add 2001:db8:%u::2/64 dev p%s nodad; ip addr add fe80::2/64 dev p%s nodad'",
		(int)peer, side, side, network, side, n, side, side);
}

static int begin(void **state)
{
	(void)state;
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	peer = start_peer();
	command("ip link set lo up");
	pair("a", "192.0.2", 1);
	pair("b", "198.51.100", 2);
	command("ip route add default via 192.0.2.2 && ip route add default via fe80::2 dev wa");
	now_ms = START_MS;
	send_fails = 0;
	as_nobody(true);
	ways = hydns_ways_new(2, seed);
	as_nobody(false);
	return !ways;
}

static int end(void **state)
{
	(void)state;
	hydns_ways_free(ways);
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	return 0;
}

/* -- looks ------------------------------------------------------------------------------------------------------ */
static void address(uint8_t to[16], const char *text)
{
	memset(to, 0, 16);
	if (inet_pton(AF_INET, text, to + 12) == 1)
		to[10] = to[11] = 0xff;
	else
		assert_int_equal(inet_pton(AF_INET6, text, to), 1);
}

static enum hydns_way_result find_by(uint32_t thread, const char *to, const char *source, uint16_t port)
{
	uint8_t from[16];
	struct hydns_route_question q = { .source = source ? from : NULL, .port = port };
	enum hydns_way_result result;

	address(q.remote, to);
	if (source)
		address(from, source);
	as_nobody(true);
	result = hydns_way_find(ways, thread, &q, now_ms, &out);
	as_nobody(false);
	return result;
}

static enum hydns_way_result find(const char *to, const char *source)
{
	return find_by(0, to, source, 53);
}

static void follow(void)
{
	as_nobody(true);
	hydns_ways_follow(ways);
	as_nobody(false);
}

static void wait_for_notices(void)
{
	struct pollfd p = { .fd = hydns_ways_fd(ways), .events = POLLIN };

	poll(&p, 1, 100);
	follow();
}

/* What a datagram does that takes an ordinary socket. */
static void send_by_socket(const char *to)
{
	uint8_t remote[16];
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(53) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	address(remote, to);
	memcpy(&a.sin6_addr, remote, sizeof(remote));
	sendto(fd, "", 1, 0, (struct sockaddr *)&a, sizeof(a));
	close(fd);
}

/* The way by source, which may be chosen; datagrams take sockets until there is one. */
static void expect_way(const char *to, const char *source, const uint8_t own[6], const uint8_t next_hop[6])
{
	enum hydns_way_result result = find(to, source);
	uint8_t remote[16];
	bool ipv6;

	for (int looks = 0; result != HYDNS_WAY_FOUND && looks < PATIENCE; looks++) {
		send_by_socket(to);
		wait_for_notices();
		result = find(to, source);
	}
	assert_int_equal(result, HYDNS_WAY_FOUND);
	address(remote, to);
	ipv6 = strchr(to, ':') != NULL;
	assert_memory_equal(out.path.l2, next_hop, 6);
	assert_memory_equal(out.path.l2 + 6, own, 6);
	assert_int_equal(out.path.l2_len, 14);
	assert_int_equal(out.path.l2[12] << 8 | out.path.l2[13], ipv6 ? 0x86dd : 0x0800);
	assert_int_equal(out.path.ipv6, ipv6);
	assert_int_equal(out.path.remote_port, 53);
	assert_memory_equal(out.path.remote, ipv6 ? remote : remote + 12, ipv6 ? 16 : 4);
	assert_int_equal(out.ifindex, if_nametoindex(own[5] == own_b[5] ? "wb" : "wa"));
}

static void expect_source(const char *text)
{
	uint8_t want[16];

	address(want, text);
	if (out.path.ipv6)
		assert_memory_equal(out.path.local, want, 16);
	else
		assert_memory_equal(out.path.local, want + 12, 4);
}

/* The first look makes a place, the link thread asks, and then it is known. */
static enum hydns_way_result find_after_asking(const char *to, const char *source)
{
	find(to, source);
	follow();
	return find(to, source);
}

/* -- tests ------------------------------------------------------------------------------------------------------- */
static void a_neighbour_is_found(void **state)
{
	(void)state;
	assert_int_equal(find("192.0.2.2", NULL), HYDNS_WAY_NO_NEIGHBOUR);
	expect_way("192.0.2.2", NULL, own_a, by_a);
	expect_source("192.0.2.1");
	assert_int_equal(out.mtu, 1500);
	expect_way("2001:db8:2::2", NULL, own_b, by_b);
	expect_source("2001:db8:2::1");
	assert_int_equal(out.mtu, 1500);
}

static void a_gateway_is_found(void **state)
{
	(void)state;
	expect_way("203.0.113.53", NULL, own_a, by_a);
	expect_source("192.0.2.1");
	expect_way("2001:db8:53::53", NULL, own_a, by_a);
	expect_source("2001:db8:1::1");
	command("ip route add 203.0.113.0/24 via inet6 fe80::2 dev wb");
	follow();
	expect_way("203.0.113.53", NULL, own_b, by_b);
	expect_source("198.51.100.1");
}

/* An entry that never changes has no notice either. */
static void what_was_known_before_is_asked_for(void **state)
{
	(void)state;
	command("ip neigh replace 192.0.2.2 lladdr %s dev wa nud permanent", "02:00:00:00:00:1a");
	command("ip neigh replace fe80::2 lladdr %s dev wa nud permanent", "02:00:00:00:00:1a");
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_NEIGHBOUR);
	assert_int_equal(find("2001:db8:53::53", NULL), HYDNS_WAY_NO_NEIGHBOUR);
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(find("2001:db8:53::53", NULL), HYDNS_WAY_FOUND);
	asked = 0;
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(asked, 0);
}

static void a_given_source_counts(void **state)
{
	(void)state;
	command("ip addr add 192.0.2.9/24 dev wa && ip addr add 2001:db8:1::9/64 dev wa nodad");
	follow();
	expect_way("203.0.113.53", "192.0.2.9", own_a, by_a);
	expect_source("192.0.2.9");
	expect_way("203.0.113.53", NULL, own_a, by_a);
	expect_source("192.0.2.1");
	expect_way("2001:db8:53::53", "2001:db8:1::9", own_a, by_a);
	expect_source("2001:db8:1::9");
	expect_way("2001:db8:53::53", "2001:db8:1::1", own_a, by_a);
	expect_source("2001:db8:1::1");
	assert_int_equal(find("203.0.113.53", "192.0.2.10"), HYDNS_WAY_NO_WAY);
	assert_int_equal(find("2001:db8:53::53", "2001:db8:1::10"), HYDNS_WAY_NO_WAY);
	assert_int_equal(find("2001:db8:53::53", "192.0.2.9"), HYDNS_WAY_NO_WAY);
	assert_int_equal(find("203.0.113.53", "2001:db8:1::9"), HYDNS_WAY_NO_WAY);
	command("ip addr del 192.0.2.9/24 dev wa && ip addr del 2001:db8:1::9/64 dev wa");
	follow();
	assert_int_equal(find("203.0.113.53", "192.0.2.9"), HYDNS_WAY_NO_WAY);
	assert_int_equal(find("2001:db8:53::53", "2001:db8:1::9"), HYDNS_WAY_NO_WAY);
}

static void permanent(const char *to, const char *dev, const char *ethernet)
{
	command("ip neigh replace %s lladdr %s dev %s nud permanent", to, ethernet, dev);
}

static void static_neighbours(void)
{
	permanent("192.0.2.2", "wa", "02:00:00:00:00:1a");
	permanent("198.51.100.2", "wb", "02:00:00:00:00:1b");
	permanent("fe80::2", "wa", "02:00:00:00:00:1a");
	permanent("fe80::2", "wb", "02:00:00:00:00:1b");
}

static void one_of_several_next_hops_is_chosen(const char *format)
{
	bool by[2] = { false };
	char to[64];

	for (int i = 1; i < 64; i++) {
		snprintf(to, sizeof(to), format, i);
		assert_int_equal(find_after_asking(to, NULL), HYDNS_WAY_FOUND);
		assert_true(out.path.l2[5] == by_a[5] || out.path.l2[5] == by_b[5]);
		assert_int_equal(out.path.l2[11], out.path.l2[5] - 0x10);
		by[out.path.l2[5] == by_b[5]] = true;
	}
	assert_true(by[0] && by[1]);
}

static void multipath_routes(void **state)
{
	(void)state;
	static_neighbours();
	command("ip route add 203.0.113.0/24 nexthop via 192.0.2.2 nexthop via 198.51.100.2 && "
		"ip route add 2001:db8:53::/64 nexthop via fe80::2 dev wa nexthop via fe80::2 dev wb");
	one_of_several_next_hops_is_chosen("203.0.113.%d");
	one_of_several_next_hops_is_chosen("2001:db8:53::%x");
}

/* With this setting the kernel looks at neighbours when it chooses, and tells nobody. */
static void another_next_hop_is_chosen_when_one_fails(void **state)
{
	(void)state;
	static_neighbours();
	command("echo 1 >/proc/sys/net/ipv4/fib_multipath_use_neigh && "
		"ip route add 203.0.113.0/24 nexthop via 192.0.2.2 nexthop via 198.51.100.2");
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	command("ip neigh replace %s dev %s nud failed", out.path.l2[5] == by_a[5] ? "192.0.2.2" : "198.51.100.2",
		out.path.l2[5] == by_a[5] ? "wa" : "wb");
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_NEIGHBOUR);
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
}

static void policy_rules(void **state)
{
	(void)state;
	static_neighbours();
	command("ip addr add 192.0.2.9/24 dev wa && ip route add default via 198.51.100.2 table 77");
	assert_int_equal(find_after_asking("203.0.113.53", "192.0.2.9"), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_a, 6);
	command("ip rule add from 192.0.2.9 lookup 77");
	follow();
	assert_int_equal(find_after_asking("203.0.113.53", "192.0.2.9"), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_b, 6);
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_a, 6);

	command("ip rule add ipproto 17 dport 5353 lookup 77");
	follow();
	assert_int_equal(find_by(0, "203.0.113.53", NULL, 5353), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_b, 6);
	assert_int_equal(out.path.remote_port, 5353);
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_a, 6);

	command("ip rule add uidrange %d-%d lookup 77", NOBODY, NOBODY);
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_b, 6);
}

static void what_no_plain_frame_can_take(void **state)
{
	static const char *const none[] = {
		"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.5", "2001:db8:53::1", "2001:db8:53::2",
		"2001:db8:53::3", "2001:db8:53::4", "2001:db8:53::5", "127.0.0.1", "192.0.2.1", "192.0.2.255", "255.255.255.255",
		"224.0.0.1", "0.0.0.0", "::1", "2001:db8:1::1", "2001:db8:1::", "ff02::1", "fe80::2", "::",
	};

	(void)state;
	static_neighbours();
	command("ip route add blackhole 203.0.113.1 && ip route add unreachable 203.0.113.2 && ip route add prohibit 203.0.113.3 && "
		"ip route add 203.0.113.4 dev lo && ip route add throw 203.0.113.5");
	command("ip route add blackhole 2001:db8:53::1 && ip route add unreachable 2001:db8:53::2 && "
		"ip route add prohibit 2001:db8:53::3 && ip route add 2001:db8:53::4 dev lo && ip route add throw 2001:db8:53::5");
	/* a route that is thrown in the main table goes on to the next one, which has none */
	command("echo 1 >/proc/sys/net/ipv6/conf/wa/forwarding");   /* 2001:db8:1:: becomes the routers' anycast address */
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		if (find_after_asking(none[i], NULL) != HYDNS_WAY_NO_WAY)
			fail_msg("%s has a way", none[i]);
	assert_int_equal(find_after_asking("203.0.113.6", NULL), HYDNS_WAY_FOUND);
	command("ip route del default");
	follow();
	assert_int_equal(find("203.0.113.6", NULL), HYDNS_WAY_NO_WAY);
}

static void tunnels_are_not_taken(void **state)
{
	(void)state;
	static_neighbours();
	command("ip addr add 192.0.2.4/24 dev wa");
	if (system("ip route add 203.0.113.0/24 encap ip id 7 dst 192.0.2.2 dev wa 2>/dev/null")) {
		print_message("this kernel has no routes with encapsulation\n");
		return;
	}
	permanent("203.0.113.7", "wa", "02:00:00:00:00:1a");
	assert_int_equal(find_after_asking("203.0.113.7", NULL), HYDNS_WAY_NO_WAY);
}

static void a_changed_default_route_is_seen(void **state)
{
	struct pollfd p;

	(void)state;
	static_neighbours();
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	follow();
	p = (struct pollfd){ .fd = hydns_ways_fd(ways), .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0);
	command("ip route replace default via 198.51.100.2");
	assert_int_equal(poll(&p, 1, 0), 1);
	follow();
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_b, 6);
	expect_source("198.51.100.1");
	command("ip -6 route add 2001:db8:53::/64 via fe80::2 dev wb");
	follow();
	assert_int_equal(find_after_asking("2001:db8:53::53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_b, 6);
}

/* Objects of their own, whose changes are no changes of a route. */
static void a_changed_nexthop_is_seen(void **state)
{
	(void)state;
	static_neighbours();
	command("echo 0 >/proc/sys/net/ipv4/nexthop_compat_mode");
	command("ip nexthop add id 7 via 192.0.2.2 dev wa && ip route add 203.0.113.0/24 nhid 7");
	follow();
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_a, 6);
	command("ip nexthop replace id 7 via 198.51.100.2 dev wb");
	follow();
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_b, 6);
}

static void changed_ethernet_addresses_are_seen(void **state)
{
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 0x2a }, third[6] = { 2, 0, 0, 0, 0, 0x3a };

	(void)state;
	static_neighbours();
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_a, 6);
	permanent("192.0.2.2", "wa", "02:00:00:00:00:2a");
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, other, 6);
	/* the router gets another card, and asks for our address by it */
	command("ip neigh del 192.0.2.2 dev wa");
	follow();
	expect_way("203.0.113.53", NULL, own_a, by_a);
	command(AT_PEER "'ip link set pa address 02:00:00:00:00:3a; bash -c \"echo >/dev/udp/192.0.2.1/9\"'", (int)peer);
	for (int looks = 0; memcmp(out.path.l2, third, 6) && looks < PATIENCE; looks++) {
		wait_for_notices();
		now_ms += HYDNS_NEIGHBOUR_REFRESH_MS / 2;
		find("203.0.113.53", NULL);
	}
	assert_memory_equal(out.path.l2, third, 6);
	/* our own */
	command("ip link set wa address 02:00:00:00:00:4a");
	follow();
	expect_way("203.0.113.53", NULL, (const uint8_t[6]){ 2, 0, 0, 0, 0, 0x4a }, third);
}

static void set_state(const char *state)
{
	command("ip neigh replace 192.0.2.2 lladdr 02:00:00:00:00:1a dev wa nud %s", state);
	follow();
	now_ms += HYDNS_NEIGHBOUR_REFRESH_MS;
}

static void states_of_a_neighbour(void **state)
{
	static const char *const usable[] = { "reachable", "permanent", "noarp" };
	static const char *const doubtful[] = { "stale", "probe" };

	(void)state;
	command(AT_PEER "'ip addr del 192.0.2.2/24 dev pa'", (int)peer);     /* else it answers, and becomes reachable */
	find("203.0.113.53", NULL);
	for (int i = 0; i < 3; i++) {
		set_state(usable[i]);
		assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	}
	for (int i = 0; i < 2; i++) {
		set_state(doubtful[i]);
		assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_REFRESH_NEIGHBOUR);
		assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	}
	set_state("delay");    /* the kernel takes what it was told for a sign of life, and soon says reachable */
	if (find("203.0.113.53", NULL) == HYDNS_WAY_REFRESH_NEIGHBOUR)
		assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	set_state("failed");
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_NEIGHBOUR);
	set_state("permanent");
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	command("ip neigh del 192.0.2.2 dev wa");
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_NEIGHBOUR);
}

static void a_doubtful_neighbour_takes_one_socket_a_second(void **state)
{
	(void)state;
	find("203.0.113.53", NULL);
	set_state("stale");
	assert_int_equal(find_by(1, "203.0.113.53", NULL, 53), HYDNS_WAY_REFRESH_NEIGHBOUR);
	assert_int_equal(find_by(0, "203.0.113.53", NULL, 53), HYDNS_WAY_FOUND);
	assert_int_equal(find_by(0, "203.0.113.99", NULL, 53), HYDNS_WAY_FOUND);
	now_ms += HYDNS_NEIGHBOUR_REFRESH_MS - 1;
	assert_int_equal(find_by(1, "203.0.113.53", NULL, 53), HYDNS_WAY_FOUND);
	now_ms++;
	assert_int_equal(find_by(0, "203.0.113.99", NULL, 53), HYDNS_WAY_REFRESH_NEIGHBOUR);
	assert_int_equal(find_by(1, "203.0.113.53", NULL, 53), HYDNS_WAY_FOUND);
}

/* And those make the kernel ask the neighbour: it becomes reachable again, or it is found to be gone. */
static void sockets_refresh_a_neighbour(void **state)
{
	enum hydns_way_result result = HYDNS_WAY_REFRESH_NEIGHBOUR;

	(void)state;
	command("echo 1 >/proc/sys/net/ipv4/neigh/wa/delay_first_probe_time");
	find("203.0.113.53", NULL);
	set_state("stale");
	for (int looks = 0; result == HYDNS_WAY_REFRESH_NEIGHBOUR && looks < PATIENCE; looks++) {
		send_by_socket("203.0.113.53");
		wait_for_notices();
		now_ms += HYDNS_NEIGHBOUR_REFRESH_MS;
		result = find("203.0.113.53", NULL);
	}
	assert_int_equal(result, HYDNS_WAY_FOUND);
	command("echo 0 >/proc/sys/net/ipv4/neigh/wa/ucast_solicit; echo 1 >/proc/sys/net/ipv4/neigh/wa/retrans_time_ms");
	command(AT_PEER "'ip addr del 192.0.2.2/24 dev pa'", (int)peer);
	set_state("stale");
	for (int looks = 0; result != HYDNS_WAY_NO_NEIGHBOUR && looks < PATIENCE; looks++) {
		send_by_socket("203.0.113.53");
		wait_for_notices();
		now_ms += HYDNS_NEIGHBOUR_REFRESH_MS;
		result = find("203.0.113.53", NULL);
	}
	assert_int_equal(result, HYDNS_WAY_NO_NEIGHBOUR);
}

static void nobody_is_there(void **state)
{
	(void)state;
	command("echo 10 >/proc/sys/net/ipv4/neigh/wa/retrans_time_ms");
	for (int looks = 0; looks < 5; looks++) {
		assert_int_equal(find("192.0.2.77", NULL), HYDNS_WAY_NO_NEIGHBOUR);
		send_by_socket("192.0.2.77");
		wait_for_notices();
	}
	assert_int_equal(find("192.0.2.77", NULL), HYDNS_WAY_NO_NEIGHBOUR);
}

static void a_link_that_is_down_has_no_way(void **state)
{
	(void)state;
	expect_way("192.0.2.2", NULL, own_a, by_a);
	command(AT_PEER "'ip link set pa down'", (int)peer);
	for (int looks = 0; find("192.0.2.2", NULL) != HYDNS_WAY_NO_WAY && looks < PATIENCE; looks++)
		wait_for_notices();
	assert_int_equal(find("192.0.2.2", NULL), HYDNS_WAY_NO_WAY);
	command(AT_PEER "'ip link set pa up'", (int)peer);
	expect_way("192.0.2.2", NULL, own_a, by_a);
	command("ip link set wa down");
	follow();
	assert_int_equal(find("192.0.2.2", NULL), HYDNS_WAY_NO_WAY);
	command("ip link set wa up");
	expect_way("192.0.2.2", NULL, own_a, by_a);
}

static void a_removed_address_is_no_source(void **state)
{
	(void)state;
	static_neighbours();
	command("echo 1 >/proc/sys/net/ipv4/conf/wa/promote_secondaries");
	command("ip addr add 192.0.2.9/24 dev wa && ip addr add 2001:db8:1::9/64 dev wa nodad");
	follow();
	assert_int_equal(find_after_asking("192.0.2.2", NULL), HYDNS_WAY_FOUND);
	expect_source("192.0.2.1");
	assert_int_equal(find_after_asking("2001:db8:53::53", NULL), HYDNS_WAY_FOUND);
	command("ip addr del 192.0.2.1/24 dev wa && ip addr del 2001:db8:1::1/64 dev wa");
	follow();
	assert_int_equal(find_after_asking("192.0.2.2", NULL), HYDNS_WAY_FOUND);
	expect_source("192.0.2.9");
	assert_int_equal(find_after_asking("2001:db8:53::53", NULL), HYDNS_WAY_FOUND);
	expect_source("2001:db8:1::9");
}

static void the_mtu_is_that_of_interface_or_path(void **state)
{
	(void)state;
	static_neighbours();
	command("ip link set wa mtu 1400 && ip route add 203.0.113.0/25 via 192.0.2.2 mtu 1000 && "
		"ip route add 203.0.113.128/26 via 192.0.2.2 mtu 576 && ip route add 203.0.113.192/26 via 192.0.2.2 mtu 575 && "
		"ip route add 203.0.113.53 via 192.0.2.2 mtu 9000 && ip route add 2001:db8:53::/64 via fe80::2 dev wa mtu 1300");
	follow();
	assert_int_equal(find_after_asking("192.0.2.2", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(out.mtu, 1400);
	assert_int_equal(find_after_asking("203.0.113.1", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(out.mtu, 1000);
	assert_int_equal(find_after_asking("203.0.113.129", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(out.mtu, 576);
	assert_int_equal(find_after_asking("203.0.113.193", NULL), HYDNS_WAY_NO_WAY);
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(out.mtu, 1400);
	assert_int_equal(find_after_asking("2001:db8:53::53", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(out.mtu, 1300);
	command("ip link set wa mtu 575");
	follow();
	assert_int_equal(find_after_asking("192.0.2.2", NULL), HYDNS_WAY_NO_WAY);
}

static void an_interface_made_again_is_another_one(void **state)
{
	uint32_t former;

	(void)state;
	expect_way("192.0.2.2", NULL, own_a, by_a);
	former = out.ifindex;
	command("ip link del wa");
	follow();
	assert_int_equal(find("192.0.2.2", NULL), HYDNS_WAY_NO_WAY);
	pair("a", "192.0.2", 1);
	follow();
	expect_way("192.0.2.2", NULL, own_a, by_a);
	assert_int_not_equal(out.ifindex, former);
}

static void find_many(unsigned many)
{
	struct hydns_route_question q = { .port = 53 };

	for (uint32_t i = 0; i < many; i++) {
		const uint32_t host = htonl(0xcb000000U + i * 77);      /* 203.0.0.0 and on */

		address(q.remote, "203.0.0.0");
		memcpy(q.remote + 12, &host, sizeof(host));
		assert_int_equal(hydns_way_find(ways, 0, &q, now_ms, &out), HYDNS_WAY_FOUND);
		assert_memory_equal(out.path.remote, &host, sizeof(host));
		assert_memory_equal(out.path.l2, by_a, 6);
	}
}

static void more_destinations_than_are_kept(void **state)
{
	(void)state;
	static_neighbours();
	find_after_asking("203.0.113.53", NULL);
	find_many(1000);
	asked = 0;
	find_many(1000);
	assert_true(asked < 20);        /* those whose set is full */
	find_many(10000);
	asked = 0;
	find_many(10000);
	assert_true(asked >= 10000 - HYDNS_WAYS);
	/* and no longer than they may be */
	find("203.0.113.53", NULL);
	asked = 0;
	now_ms += HYDNS_WAY_LIFE_MS - 1;
	find("203.0.113.53", NULL);
	assert_int_equal(asked, 0);
	now_ms++;
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(asked, 1);
}

/* Answers that there is no way are kept, too. */
static void no_way_is_kept(void **state)
{
	(void)state;
	command("ip route add blackhole 203.0.113.0/24");
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_WAY);
	asked = 0;
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_WAY);
	assert_int_equal(asked, 0);
	static_neighbours();
	command("ip route del blackhole 203.0.113.0/24");
	follow();
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
}

/* While a destination on the link asks for a place each. */
static void neighbours_in_use_keep_their_places(void **state)
{
	struct hydns_route_question q = { .port = 53 };

	(void)state;
	static_neighbours();
	command("ip route add 10.0.0.0/8 dev wa");
	follow();
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	for (uint32_t i = 0; i < 20 * HYDNS_NEIGHBOURS; i++) {
		const uint32_t host = htonl(0x0a000001U + i);

		address(q.remote, "10.0.0.0");
		memcpy(q.remote + 12, &host, sizeof(host));
		assert_int_equal(hydns_way_find(ways, 0, &q, now_ms, &out), HYDNS_WAY_NO_NEIGHBOUR);
		if (i % 100 == 0) {
			now_ms += HYDNS_NEIGHBOUR_KEPT_MS / 10;
			assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
		}
	}
	/* one that is not used loses its place, and gets another */
	now_ms += HYDNS_NEIGHBOUR_KEPT_MS + 1;
	assert_int_equal(find_after_asking("2001:db8:53::53", NULL), HYDNS_WAY_FOUND);
	now_ms += HYDNS_NEIGHBOUR_KEPT_MS + 1;
	for (uint32_t i = 0; i < 20 * HYDNS_NEIGHBOURS; i++) {
		const uint32_t host = htonl(0x0b000001U + i);

		memcpy(q.remote + 12, &host, sizeof(host));
		q.remote[12] = 10;
		q.remote[13] = 200;
		hydns_way_find(ways, 0, &q, now_ms, &out);
	}
	find("2001:db8:53::53", NULL);
	now_ms += HYDNS_NEIGHBOUR_KEPT_MS + 1;
	assert_int_equal(find_after_asking("2001:db8:53::53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_a, 6);
}

static void ask_places(struct hydns_neighbours *n, uint32_t from)
{
	struct hydns_neighbour_place p;
	uint8_t at[16];

	for (uint32_t i = from; i < from + 20 * HYDNS_NEIGHBOURS; i++) {
		address(at, "::");
		memcpy(at + 12, &i, sizeof(i));
		hydns_neighbours_place(n, 1, at, (uint32_t)now_ms, &p);
	}
}

static void a_place_is_given_away_when_it_is_not_used(void **state)
{
	struct hydns_neighbours *n = hydns_neighbours_new(seed);
	struct hydns_neighbour_place p;
	uint8_t at[16], ethernet[6];
	struct hydns_rtnl r;

	(void)state;
	static_neighbours();
	assert_int_equal(hydns_rtnl_open(&r), 0);
	address(at, "192.0.2.2");
	assert_true(hydns_neighbours_place(n, if_nametoindex("wa"), at, (uint32_t)now_ms, &p));
	assert_int_equal(hydns_neighbour_read(n, p, (uint32_t)now_ms, ethernet), HYDNS_NEIGHBOUR_UNKNOWN);
	hydns_neighbours_ask(n, &r);
	assert_int_equal(hydns_neighbour_read(n, p, (uint32_t)now_ms, ethernet), HYDNS_NEIGHBOUR_USABLE);
	assert_memory_equal(ethernet, by_a, 6);
	now_ms += HYDNS_NEIGHBOUR_KEPT_MS;
	ask_places(n, 1);
	assert_int_equal(hydns_neighbour_read(n, p, (uint32_t)now_ms, ethernet), HYDNS_NEIGHBOUR_USABLE);
	now_ms += HYDNS_NEIGHBOUR_KEPT_MS + 1;
	ask_places(n, 1000000);
	assert_int_equal(hydns_neighbour_read(n, p, (uint32_t)now_ms, ethernet), HYDNS_NEIGHBOUR_REPLACED);
	hydns_rtnl_close(&r);
	hydns_neighbours_free(n);
}

static void lost_notices_are_made_up_for(void **state)
{
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 0x2b };
	const int least = 1;

	(void)state;
	static_neighbours();
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_int_equal(find_after_asking("198.51.100.2", NULL), HYDNS_WAY_FOUND);
	follow();
	assert_int_equal(setsockopt(hydns_ways_fd(ways), SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
	command("seq 1 250 | sed 's/.*/neigh add 192.0.2.& lladdr 02:00:00:00:01:01 dev wb/' | ip -batch - && "
		"ip route replace default via 198.51.100.2");
	permanent("198.51.100.2", "wb", "02:00:00:00:00:2b");
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, other, 6);
	assert_int_equal(find("198.51.100.2", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, other, 6);
	/* and when the kernel can't be asked, what was known counts no longer */
	command("seq 1 250 | sed 's/.*/neigh del 192.0.2.& lladdr 02:00:00:00:01:01 dev wb/' | ip -batch -");
	permanent("198.51.100.2", "wb", "02:00:00:00:00:1b");
	send_fails = ENOBUFS;
	follow();
	send_fails = 0;
	assert_int_equal(find("198.51.100.2", NULL), HYDNS_WAY_NO_NEIGHBOUR);
	follow();
	assert_int_equal(find("198.51.100.2", NULL), HYDNS_WAY_FOUND);
	assert_memory_equal(out.path.l2, by_b, 6);
}

static void errors_are_not_kept(void **state)
{
	struct rlimit l, few;

	(void)state;
	static_neighbours();
	follow();
	send_fails = ENOBUFS;
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_WAY);
	send_fails = 0;
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_NEIGHBOUR);
	send_fails = ENOBUFS;
	follow();
	assert_int_equal(find("203.0.113.53", NULL), HYDNS_WAY_NO_WAY);
	send_fails = 0;
	assert_int_equal(find_after_asking("203.0.113.53", NULL), HYDNS_WAY_FOUND);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	few = (struct rlimit){ .rlim_cur = (rlim_t)hydns_ways_fd(ways) + 2, .rlim_max = l.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_null(hydns_ways_new(2, seed));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

/* A resolver thread reads while the link thread writes: each address is one of the two that there are. */
static _Atomic bool stop;

static void *keep_finding(void *arg)
{
	struct hydns_route_question q = { .port = 53 };
	struct hydns_way_out o;
	uintptr_t wrong = 0;

	(void)arg;
	address(q.remote, "203.0.113.53");
	while (!atomic_load(&stop)) {
		if (hydns_way_find(ways, 1, &q, now_ms, &o) != HYDNS_WAY_FOUND)
			continue;
		wrong += o.path.l2[1] != o.path.l2[5] || (o.path.l2[1] != 0x11 && o.path.l2[1] != 0x22);
	}
	return (void *)wrong;
}

static void threads_read_whole_addresses(void **state)
{
	pthread_t thread;
	void *wrong;

	(void)state;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, keep_finding, NULL), 0);
	for (int i = 0; i < 50; i++) {
		permanent("192.0.2.2", "wa", i % 2 ? "02:11:11:11:11:11" : "02:22:22:22:22:22");
		hydns_ways_follow(ways);
		if (i % 10 == 0)
			command("ip route replace 10.0.0.0/8 via 192.0.2.2 metric %d", i);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, &wrong), 0);
	assert_null(wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(a_neighbour_is_found), TEST(a_gateway_is_found), TEST(what_was_known_before_is_asked_for),
		TEST(a_given_source_counts), TEST(multipath_routes), TEST(another_next_hop_is_chosen_when_one_fails),
		TEST(policy_rules), TEST(what_no_plain_frame_can_take),
		TEST(tunnels_are_not_taken), TEST(a_changed_default_route_is_seen), TEST(a_changed_nexthop_is_seen),
		TEST(changed_ethernet_addresses_are_seen), TEST(states_of_a_neighbour),
		TEST(a_doubtful_neighbour_takes_one_socket_a_second), TEST(sockets_refresh_a_neighbour), TEST(nobody_is_there),
		TEST(a_link_that_is_down_has_no_way), TEST(a_removed_address_is_no_source),
		TEST(the_mtu_is_that_of_interface_or_path), TEST(an_interface_made_again_is_another_one),
		TEST(more_destinations_than_are_kept), TEST(no_way_is_kept), TEST(neighbours_in_use_keep_their_places),
		TEST(a_place_is_given_away_when_it_is_not_used),
		TEST(lost_notices_are_made_up_for), TEST(errors_are_not_kept), TEST(threads_read_whole_addresses),
	};

	if (geteuid() || unshare(CLONE_NEWNET)) {
		printf("skipped: a network namespace can't be made: run as root\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
