/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What becomes of the rules of a resolver that crashes, where stale answers are on. The client asks over a veth pair:
 *
 *     v0, 198.51.100.53, with the program  <-- veth pair -->  v1, the client, 192.0.2.7
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hydns-kern/tests/frame.h"
#include "hydns/dns.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/tests/client.h"
#include "hydnsd/tests/link.h"
#include "hydnsd/tests/running.h"

#define REPLY_MS 300                   /* a query that is not answered in this time by the kernel is not */

static struct client client;
static int service = -1, wire = -1;

static int open_wire(void)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("v1") };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void start_here(void)
{
	start_daemon_on("v0", (const char *const[]){ "--attach-mode", "generic", NULL });
}

static int set_up(void **state)
{
	(void)state;
	make_link();
	service = listen_to_queries();
	wire = open_wire();
	start_here();
	return 0;
}

static int tear_down(void **state)
{
	clear(state);
	if (service >= 0)
		close(service);
	close(wire);
	service = -1;
	(void)!system("ip link del v0 2>/dev/null");
	return 0;
}

/* -- asking ------------------------------------------------------------------------------------------------- */
/* The TTL of the reply's last record, an address; -1: none came. Others' frames are passed over. */
static long receive_ttl(uint16_t id)
{
	struct pollfd p = { .fd = wire, .events = POLLIN };
	uint8_t f[FRAME_MAX];
	uint32_t ttl;

	while (poll(&p, 1, REPLY_MS) > 0) {
		ssize_t n = recv(wire, f, sizeof(f), 0);

		/* Ethernet, IPv4 and UDP headers, then the message: from port 53, with this id */
		if (n < 54 || f[12] != 8 || f[13] || f[23] != IPPROTO_UDP || f[34] || f[35] != SERVICE_PORT || f[42] != id >> 8 ||
		    f[43] != (id & 0xff))
			continue;
		memcpy(&ttl, f + n - 10, sizeof(ttl));
		return ntohl(ttl);
	}
	return -1;
}

static long ask_ttl(const char *name)
{
	static uint16_t id;
	struct frame f;

	frame_query(&f, &(struct query){ .name = name, .qtype = 1, .id = ++id });
	assert_int_equal(send(wire, f.data, f.len, 0), f.len);
	return receive_ttl(id);
}

static void offer(const char *name, unsigned ttl)
{
	struct build_spec spec = { .name = name, .type = 1, .ttl = ttl };
	char record[128];

	snprintf(record, sizeof(record), "%s %u IN A 192.0.2.1", name, ttl);
	spec.answer[0] = record;
	client_offer_spec(&client, 0, &spec);
}

static json_int_t of_stale(const char *key)
{
	return number_of_resolver("{\"cmd\": \"status\"}", "stale", key);
}

/* A resolver with www.example. (300 s) and denied.example. (NXDOMAIN) in the kernel. */
static void begin(uint32_t longest)
{
	struct build_spec denied = { .name = "denied.example.", .type = 1, .rcode = HYDNS_RCODE_NXDOMAIN,
				     .authority_section = { "example. 300 IN SOA a. b. 1 2 3 4 300" } };

	client_open_stale(&client, service, 30, longest);
	offer("www.example.", 300);
	client_offer_spec(&client, 0, &denied);
	WAIT_FOR(rules() == 2);
	hydns_pages_beat(client.pages, hydns_mono_ns());
	WAIT_FOR(ask_ttl("www.example") >= 0);
}

static void crash(void)
{
	client_crash(&client);
	close(service);
	service = -1;
}

/* -- tests -------------------------------------------------------------------------------------------------- */
static void rules_outlive_a_crash(void **state)
{
	(void)state;
	begin(3600);
	crash();
	WAIT_FOR(resolver_is("stale"));
	WAIT_FOR(rules() == 1);
	WAIT_FOR(number_of_resolver("{\"cmd\": \"status\"}", "stale", "since_ms") > 1500); /* no heartbeat counts so long */
	assert_true(ask_ttl("www.example") > 30);
	assert_int_equal(ask_ttl("denied.example"), -1);
	assert_int_equal(of_stale("replies"), 0);
	end_cleanly();
}

static void with_the_stale_ttl_and_for_a_time(void **state)
{
	(void)state;
	begin(3);
	offer("short.example.", 2);
	WAIT_FOR(rules() == 3);
	client_withdraw(&client, HYDNS_SCOPE_NAME, (const uint8_t *)"\3www\7example", 13, 1);
	assert_int_equal(client_receive(&client), HYDNS_MSG_ACK);
	crash();
	WAIT_FOR(resolver_is("stale"));
	WAIT_FOR(ask_ttl("short.example") == 30);
	assert_int_equal(ask_ttl("www.example"), -1);
	WAIT_FOR(of_stale("replies") > 0 || (number("{\"cmd\": \"stats\"}", "stale_replies") > 0));
	WAIT_FOR(resolver_is("none"));
	assert_int_equal(ask_ttl("short.example"), -1);
	assert_int_equal(rules(), 0);
	end_cleanly();
}

/* Another process, without a plugin. */
static void whoever_listens_answers_alone(void **state)
{
	(void)state;
	begin(3600);
	crash();
	WAIT_FOR(resolver_is("stale"));
	assert_true(ask_ttl("www.example") > 30);
	service = listen_to_queries();
	assert_int_equal(ask_ttl("www.example"), -1);
	WAIT_FOR(resolver_is("none"));
	assert_int_equal(rules(), 0);
	end_cleanly();
}

static void a_resolver_that_registers_takes_the_address(void **state)
{
	struct client next;

	(void)state;
	begin(3600);
	crash();
	WAIT_FOR(resolver_is("stale"));
	service = listen_to_queries();
	client_open_stale(&next, service, 30, 3600);
	WAIT_FOR(resolver_is("ready"));
	WAIT_FOR(rules() == 0);
	assert_int_equal(ask_ttl("www.example"), -1);
	client_close(&next);
	end_cleanly();
}

static void a_stop_in_order_is_no_crash(void **state)
{
	(void)state;
	begin(3600);
	hydns_pages_beat(client.pages, 0);
	crash();
	WAIT_FOR(resolver_is("none"));
	assert_int_equal(ask_ttl("www.example"), -1);
	end_cleanly();
}

static void without_the_option_rules_go(void **state)
{
	(void)state;
	begin(0);
	crash();
	WAIT_FOR(resolver_is("none"));
	assert_int_equal(ask_ttl("www.example"), -1);
	end_cleanly();
}

static void suspended_rules_do_not_come_back(void **state)
{
	(void)state;
	begin(3600);
	hydns_pages_suspend(client.pages);
	crash();
	WAIT_FOR(resolver_is("none"));
	assert_int_equal(ask_ttl("www.example"), -1);
	end_cleanly();
}

/* What the resolver had said when it ended, and hydnsd had not read, still counts: frames of its rings, and messages. */
static void the_last_words_are_heard(void **state)
{
	(void)state;
	begin(3600);
	offer("a.example.", 300);
	offer("b.example.", 300);
	WAIT_FOR(rules() == 4);
	kill(daemon_pid, SIGSTOP);
	client_changed(&client, 0, (const uint8_t *)"\1a\7example", 11, 2);
	client_withdraw(&client, HYDNS_SCOPE_NAME, (const uint8_t *)"\1b\7example", 11, 2);
	crash();
	kill(daemon_pid, SIGCONT);
	WAIT_FOR(resolver_is("stale"));
	WAIT_FOR(rules() == 1);
	assert_true(ask_ttl("www.example") > 30);
	assert_int_equal(ask_ttl("a.example"), -1);
	assert_int_equal(ask_ttl("b.example"), -1);
	end_cleanly();
}

static void a_broken_ring_ends_them(void **state)
{
	struct hydns_frame broken = { .len = 8, .type = 99 };

	(void)state;
	begin(3600);
	kill(daemon_pid, SIGSTOP);
	client_put(&client, 0, &broken, sizeof(broken));
	crash();
	kill(daemon_pid, SIGCONT);
	WAIT_FOR(resolver_is("none"));
	assert_int_equal(ask_ttl("www.example"), -1);
	end_cleanly();
}

/* The program sees by itself that nobody renews the lease; and the next hydnsd does not take it up. */
static void without_hydnsd_nothing_lasts(void **state)
{
	(void)state;
	begin(3600);
	crash();
	WAIT_FOR(resolver_is("stale"));
	assert_true(ask_ttl("www.example") > 30);
	assert_int_equal(end_daemon(SIGKILL), SIGKILL);
	WAIT_FOR(ask_ttl("www.example") == -1);
	start_here();
	WAIT_FOR(resolver_is("none"));
	assert_int_equal(rules(), 0);
	assert_int_equal(ask_ttl("www.example"), -1);
	end_cleanly();
}

#define ON_WIRE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_WIRE(rules_outlive_a_crash), ON_WIRE(with_the_stale_ttl_and_for_a_time), ON_WIRE(whoever_listens_answers_alone),
		ON_WIRE(a_resolver_that_registers_takes_the_address), ON_WIRE(a_stop_in_order_is_no_crash),
		ON_WIRE(without_the_option_rules_go), ON_WIRE(suspended_rules_do_not_come_back), ON_WIRE(the_last_words_are_heard),
		ON_WIRE(a_broken_ring_ends_them), ON_WIRE(without_hydnsd_nothing_lasts),
	};

	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
