/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What becomes of a parked query when its resolver says goodbye and comes back, as Unbound does when it reloads. */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydns-kern/tests/frame.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/tests/client.h"
#include "hydnsd/tests/link.h"
#include "hydnsd/tests/running.h"
#include "plugin/offers/offers.h"

#define NAME "\3www\7example"

static struct client client;
static int service = -1;

static int set_up(void **state)
{
	(void)state;
	make_link();
	service = listen_to_queries();
	start_daemon_on("v0", (const char *const[]){ "--attach-mode", "native", NULL });
	return 0;
}

static int tear_down(void **state)
{
	clear(state);
	close(service);
	(void)!system("ip link del v0 2>/dev/null");
	return 0;
}

static void say(uint32_t type, const void *payload, size_t len, int fd)
{
	const struct hydns_msg head = { .type = type, .len = (uint32_t)len };

	assert_int_equal(hydns_channel_send(client.sock, &head, payload, &fd, fd >= 0), 0);
	assert_int_equal(client_receive(&client), HYDNS_MSG_ACK);
}

/* All but READY. */
static void configure(void)
{
	const struct { struct hydns_acl_list list; struct hydns_acl_entry everyone; } acl = {
		.list.count = 1, .everyone.action = HYDNS_ACL_ALLOW,
	};
	const struct hydns_hello h = {
		.abi_version = HYDNS_ABI_VERSION, .threads = 1, .edns_size = 1232, .max_udp = 1232, .pid = (uint32_t)getpid(),
		.admission = 1, .park_ms = WAIT_MS, .pending_max = 100, .pending_per_question = 100, .identity = "hand-made", .version = "1",
	};

	say(HYDNS_MSG_RESET, &h, sizeof(h), -1);
	say(HYDNS_MSG_SERVICE, NULL, 0, service);
	say(HYDNS_MSG_ACL, &acl, sizeof(acl), -1);
	hydns_pages_beat(client.pages, hydns_mono_ns());
}

static json_int_t parked(void)
{
	return number_of_resolver("{\"cmd\": \"stats\"}", "parking", "parked");
}

static void send_query(void)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("v1") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	struct frame f;

	frame_query(&f, &(struct query){ .name = "www.example", .qtype = 1 });
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(send(fd, f.data, f.len, 0), f.len);
	close(fd);
}

/* Has the query come to the resolver's socket? */
static bool came(void)
{
	uint8_t got[512];

	return recv(service, got, sizeof(got), MSG_PEEK) > 0;
}

/* Of the question of send_query(). */
static uint64_t key(void)
{
	const struct hydns_question q = { .name = (const uint8_t *)NAME, .name_len = sizeof(NAME), .qtype = 1 };

	return hydns_question_key(&q, (const uint64_t[2]){ 0 });
}

static void park_one(void)
{
	client_open_as(&client, 1, -1);
	configure();
	say(HYDNS_MSG_READY, NULL, 0, -1);
	WAIT_FOR(program_is_settled());
	assert_true(hydns_pages_under_way(client.pages, key(), (uint32_t)hydns_mono_coarse_ms()));
	hydns_pages_beat(client.pages, hydns_mono_ns());
	send_query();
	WAIT_FOR(parked() == 1);
	assert_false(came());
}

static void what_is_parked_waits_for_the_resolver_to_come_back(void **state)
{
	uint64_t left;

	(void)state;
	park_one();
	left = hydns_mono_ns();
	hydns_pages_over(client.pages, key());
	say(HYDNS_MSG_BYE, NULL, 0, -1);
	close(client.doorbell);
	assert_int_equal(client_hello(&client, &client.ring[0].fd, 1), HYDNS_MSG_WELCOME);
	client.doorbell = client.in.fd[0];
	configure();
	/* hydnsd has answered requests since: what it does not hold went in the round of BYE */
	assert_true((number("{\"cmd\": \"pending\"}", "waiting") == 1 && !came()) ||
		    hydns_mono_ns() - left > HYDNSD_PARKING_HELD_MS * HYDNS_NS_PER_MS);
	say(HYDNS_MSG_READY, NULL, 0, -1);
	WAIT_FOR(came());
	close(client.sock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_parked_waits_for_the_resolver_to_come_back, set_up, tear_down),
	};

	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
