/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Packet rings between hydnsd and a hand-made plugin, which binds the sockets that it gets and sees queries arrive:
 *
 *     v1 --------- v0, two receive queues, the program in native mode; a UDP socket at 198.51.100.53 port 53
 *   queries
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydns-kern/tests/frame.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/tests/client.h"
#include "hydnsd/tests/running.h"

#define QUEUES   2
#define FRAMES   256
#define SOON_MS  300

static const char *const native[] = { "--attach-mode", "native", NULL };
static const struct query question = { .name = "www.example.", .qtype = 1, .id = 77 };

/* A resolver with its lanes. */
struct resolver {
	struct client c;
	struct hydns_lanes *lanes;
	struct hydns_queue_plan plan;
	int gate;
};
static struct resolver first;
static int service = -1, sender = -1;
static unsigned v0;

/* -- the network --------------------------------------------------------------------------------------------- */
static void command(const char *text)
{
	if (system(text))
		fail_msg("%s fails", text);
}

static int listen_to_queries(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(SERVICE_PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(&a.sin_addr, service4, sizeof(service4));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static int send_from(const char *device)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(device) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static int set_up(void **state)
{
	(void)state;
	command("ip link add v0 address 02:00:00:00:00:53 numrxqueues 2 numtxqueues 2 type veth "
		"peer name v1 address 02:00:00:00:00:07 numrxqueues 2 numtxqueues 2");
	command("sysctl -qw net.ipv6.conf.v0.disable_ipv6=1 net.ipv6.conf.v1.disable_ipv6=1");
	command("ip address add 198.51.100.53/24 dev v0");
	command("ip link set v0 up");
	command("ip link set v1 up");
	command("ip route add 192.0.2.0/24 dev v0");
	v0 = if_nametoindex("v0");
	service = listen_to_queries();
	sender = send_from("v1");
	return 0;
}

static int tear_down(void **state)
{
	clear(state);
	close(service);
	close(sender);
	(void)!system("ip link del v0 2>/dev/null");
	return 0;
}

/* -- a resolver ---------------------------------------------------------------------------------------------- */
/* Sends a request and expects a reply of this type. */
static void ask_hydnsd(struct client *c, uint32_t type, const void *payload, size_t len, uint32_t reply)
{
	client_send(c, type, payload, len);
	assert_int_equal(client_receive(c), reply);
	assert_int_equal(c->in.head.seq, c->seq);
}

static void take_plan(struct resolver *r)
{
	assert_int_equal(r->c.in.head.len, sizeof(r->plan));
	memcpy(&r->plan, r->c.in.payload, sizeof(r->plan));
}

static void ask_plan(struct resolver *r)
{
	const struct hydns_queue_request q = { .parts = HYDNS_QUEUE_CLIENTS };

	ask_hydnsd(&r->c, HYDNS_MSG_QUEUE, &q, sizeof(q), HYDNS_MSG_PLAN);
	take_plan(r);
	assert_int_equal(r->c.in.fds, 1);
	if (r->gate >= 0)
		close(r->gate);
	r->gate = r->c.in.fd[0];
}

static void begin(struct resolver *r, unsigned threads, int socket)
{
	r->gate = -1;
	client_open_as(&r->c, threads, socket);
	r->lanes = hydns_lanes_new(threads, FRAMES);
	assert_non_null(r->lanes);
	hydns_pages_set_queue(r->c.pages, HYDNS_QUEUE_CLIENTS);
}

static void end(struct resolver *r)
{
	hydns_lanes_free(r->lanes);
	if (r->gate >= 0)
		close(r->gate);
	client_close(&r->c);
}

/* Asks for the sockets of a lane and binds them. */
static uint32_t get_lane(struct resolver *r, uint32_t queue)
{
	const struct hydns_lane_key key = { .ifindex = v0, .queue = queue };
	struct hydns_lane_setup s = { .id = { .ifindex = v0, .queue = queue }, .mtu = 1500, .sends = true, .unfinished = true };
	struct hydns_lane_number n;

	ask_hydnsd(&r->c, HYDNS_MSG_LANE, &key, sizeof(key), HYDNS_MSG_SOCKETS);
	memcpy(&n, r->c.in.payload, sizeof(n));
	assert_int_equal(r->c.in.fds, r->c.rings);
	s.number = n.number;
	assert_true(hydns_lane_open(r->lanes, &s, r->c.in.fd) >= 0);
	return n.number;
}

static void open_lane(struct resolver *r, uint32_t number)
{
	const struct hydns_lane_open o = { .number = number, .frame_max = HYDNS_FRAME_MOST };

	ask_hydnsd(&r->c, HYDNS_MSG_OPEN, &o, sizeof(o), HYDNS_MSG_ACK);
}

static void close_lane(struct resolver *r, uint32_t number)
{
	const struct hydns_lane_number n = { .number = number };

	ask_hydnsd(&r->c, HYDNS_MSG_CLOSE, &n, sizeof(n), HYDNS_MSG_ACK);
}

static void open_all(struct resolver *r, uint32_t number[QUEUES])
{
	ask_plan(r);
	for (uint32_t queue = 0; queue < QUEUES; queue++) {
		number[queue] = get_lane(r, queue);
		open_lane(r, number[queue]);
	}
}

/* The program's record of a lane. */
static bool has_record(uint32_t queue, struct hydns_lane *out)
{
	const struct hydns_lane_key key = { .ifindex = v0, .queue = queue };

	return look_up_pin("hydns_lanes", &key, out);
}

/* -- queries ------------------------------------------------------------------------------------------------- */
enum where { NOWHERE, AT_RING, AT_SOCKET };

static void count_query(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	(void)d, (void)way;
	++*(unsigned *)arg;
}

static unsigned in_rings(struct resolver *r)
{
	unsigned n = 0;

	for (unsigned t = 0; r->lanes && t < r->c.rings; t++)
		hydns_lanes_receive(hydns_lanes_thread(r->lanes, t), 64, count_query, &n);
	return n;
}

/* Where a query arrives; another client each time, so that each receive queue and thread has some. */
static enum where send_query(struct resolver *r)
{
	static uint16_t client;
	uint8_t octets[512];
	struct frame f;

	hydns_pages_beat(r->c.pages, hydns_mono_ns());
	frame_query(&f, &question);
	f.data[f.udp] = (uint8_t)(0x40 + (client >> 8 & 15));
	f.data[f.udp + 1] = (uint8_t)client++;
	frame_seal(&f);
	assert_int_equal(send(sender, f.data, f.len, 0), f.len);
	for (int left = SOON_MS; left; left--) {
		if (in_rings(r))
			return AT_RING;
		if (recv(service, octets, sizeof(octets), 0) > 0)
			return AT_SOCKET;
		usleep(1000);
	}
	return NOWHERE;
}

static void expect_all(struct resolver *r, enum where where)
{
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(send_query(r), where);
}

/* -- plans --------------------------------------------------------------------------------------------------- */
static void a_plan_has_what_the_program_is_attached_to(void **state)
{
	const struct hydns_queue_device *d = first.plan.device;

	(void)state;
	start_daemon_on("v0", native);
	begin(&first, 2, service);
	ask_plan(&first);
	assert_int_equal(first.plan.parts, HYDNS_QUEUE_CLIENTS);
	assert_int_equal(first.plan.count, 1);
	assert_int_equal(d->ifindex, v0);
	assert_int_equal(d->mtu, 1500);
	assert_int_equal(d->rx_queues, QUEUES);
	assert_int_equal(d->tx_queues, QUEUES);
	assert_in_range(d->device, 0, HYDNS_QUEUE_DEVICES - 1);
	assert_int_equal(d->flags, HYDNS_QUEUE_DEVICE_NATIVE | HYDNS_QUEUE_DEVICE_UNFINISHED);
	end(&first);
	end_cleanly();
}

/* -- lanes --------------------------------------------------------------------------------------------------- */
static void queries_come_by_rings_from_open_to_close(void **state)
{
	uint32_t number[QUEUES];
	struct hydns_lane record;

	(void)state;
	start_daemon_on("v0", native);
	begin(&first, 2, service);
	ask_plan(&first);
	expect_all(&first, AT_SOCKET);
	for (uint32_t queue = 0; queue < QUEUES; queue++)
		number[queue] = get_lane(&first, queue);
	assert_false(has_record(0, &record));
	expect_all(&first, AT_SOCKET);
	for (uint32_t queue = 0; queue < QUEUES; queue++)
		open_lane(&first, number[queue]);
	assert_true(has_record(1, &record));
	assert_int_equal(record.number, number[1]);
	assert_int_equal(record.threads, 2);
	assert_int_equal(record.frame_max, HYDNS_FRAME_MOST);
	assert_int_equal(record.device, first.plan.device[0].device);
	expect_all(&first, AT_RING);
	for (uint32_t queue = 0; queue < QUEUES; queue++)
		close_lane(&first, number[queue]);
	assert_false(has_record(1, &record));
	expect_all(&first, AT_SOCKET);
	end(&first);
	end_cleanly();
}

static void closing_the_gate_ends_redirection(void **state)
{
	uint32_t number[QUEUES];

	(void)state;
	start_daemon_on("v0", native);
	begin(&first, 1, service);
	open_all(&first, number);
	expect_all(&first, AT_RING);
	close(first.gate);
	first.gate = -1;
	expect_all(&first, AT_SOCKET);
	ask_plan(&first);
	expect_all(&first, AT_RING);
	end(&first);
	end_cleanly();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_plan_has_what_the_program_is_attached_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(queries_come_by_rings_from_open_to_close, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closing_the_gate_ends_redirection, set_up, tear_down),
	};

	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
