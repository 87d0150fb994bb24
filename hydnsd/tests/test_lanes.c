/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Packet rings between hydnsd and a hand-made plugin, which binds the sockets that it gets and sees queries arrive:
 *
 *     v1 --------- v0, two receive queues, the program in native mode; a UDP socket at 198.51.100.53 port 53
 *   queries
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hydns-kern/tests/frame.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/tests/client.h"
#include "hydnsd/tests/link.h"
#include "hydnsd/tests/running.h"

#define QUEUES   2
#define FRAMES   256
#define QUERIES  32
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
static struct resolver first, second;
static int service = -1, sender = -1;
static unsigned v0;

/* -- the network --------------------------------------------------------------------------------------------- */
static void command(const char *text)
{
	if (system(text))
		fail_msg("%s fails", text);
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

static void expect_refused(struct client *c, uint32_t type, const void *payload, size_t len, const char *text)
{
	ask_hydnsd(c, type, payload, len, HYDNS_MSG_REFUSED);
	c->in.payload[c->in.head.len] = 0;
	if (!strstr((const char *)c->in.payload, text))
		fail_msg("refused for: %s", (const char *)c->in.payload);
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

/* Asks for the sockets of a lane: returns its number, they are in r->c.in.fd. */
static uint32_t ask_lane(struct resolver *r, uint32_t queue)
{
	const struct hydns_lane_key key = { .ifindex = v0, .queue = queue };
	struct hydns_lane_number n;

	ask_hydnsd(&r->c, HYDNS_MSG_LANE, &key, sizeof(key), HYDNS_MSG_SOCKETS);
	memcpy(&n, r->c.in.payload, sizeof(n));
	assert_int_equal(r->c.in.fds, r->c.rings);
	return n.number;
}

/* Asks for sockets of a lane and leaves them alone. */
static uint32_t get_sockets(struct resolver *r, uint32_t queue)
{
	const uint32_t number = ask_lane(r, queue);

	hydns_channel_close_fds(&r->c.in);
	return number;
}

/* The place of the lane that has this number; 0 if the test has none. */
static uint16_t place_of(const struct resolver *r, uint32_t number)
{
	for (uint16_t place = 0; place < HYDNS_LANES_MOST; place++) {
		const struct hydns_lane_setup *s = r->lanes ? hydns_lane_at(r->lanes, place) : NULL;

		if (s && s->number == number)
			return place;
	}
	return 0;
}

static void open_lane(struct resolver *r, uint32_t number)
{
	const struct hydns_lane_open o = { .number = number, .frame_max = HYDNS_FRAME_MOST, .place = place_of(r, number) };

	if (r->lanes && hydns_lane_at(r->lanes, o.place))
		hydns_lane_count_backlog(r->lanes, o.place, hydns_pages_backlogs(r->c.pages, o.place));

	ask_hydnsd(&r->c, HYDNS_MSG_OPEN, &o, sizeof(o), HYDNS_MSG_ACK);
	WAIT_FOR(program_is_settled());
}

static void close_lane(struct resolver *r, uint32_t number)
{
	const struct hydns_lane_number n = { .number = number };

	ask_hydnsd(&r->c, HYDNS_MSG_CLOSE, &n, sizeof(n), HYDNS_MSG_ACK);
}

/* Binds the sockets of a lane, also if the kernel has not yet given the queue free whose last socket was closed.
 * Returns the lane's place or -EBUSY. */
static int bind_lane(struct resolver *r, uint32_t queue, uint32_t *number)
{
	struct hydns_lane_setup s = { .id = { .ifindex = v0, .queue = queue }, .mtu = 1500, .sends = true, .unfinished = true };
	int place;

	*number = s.number = ask_lane(r, queue);
	place = hydns_lane_open(r->lanes, &s, r->c.in.fd);
	if (place == -EBUSY)
		close_lane(r, *number);
	else
		assert_true(place >= 0);
	return place;
}

static uint32_t get_lane(struct resolver *r, uint32_t queue)
{
	uint32_t number;
	int place = -EBUSY;

	WAIT_FOR(place >= 0 || (place = bind_lane(r, queue, &number)) >= 0);
	return number;
}

static void open_all(struct resolver *r, uint32_t number[QUEUES])
{
	ask_plan(r);
	for (uint32_t queue = 0; queue < QUEUES; queue++) {
		number[queue] = get_lane(r, queue);
		open_lane(r, number[queue]);
	}
}

/* hydnsd, and the first resolver with all its lanes. */
static void begin_with_lanes(unsigned threads, uint32_t number[QUEUES])
{
	start_daemon_on("v0", native);
	begin(&first, threads, service);
	open_all(&first, number);
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
	for (unsigned i = 0; i < QUERIES; i++)
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
	assert_int_equal(record.place, place_of(&first, number[1]));
	expect_all(&first, AT_RING);
	for (uint32_t queue = 0; queue < QUEUES; queue++)
		close_lane(&first, number[queue]);
	assert_false(has_record(1, &record));
	expect_all(&first, AT_SOCKET);
	end(&first);
	end_cleanly();
}

/* What the plugin gets sends by this interface alone. */
static void sockets_belong_to_their_interface(void **state)
{
	const struct hydns_lane_key key = { .ifindex = v0, .queue = 0 };
	const struct hydns_pool_size size = { .receive = FRAMES, .send = FRAMES, .sockets = 1 };
	const struct hydns_queue_id elsewhere = { .ifindex = if_nametoindex("v1") };
	struct hydns_pool pool;
	struct hydns_xsk xsk;

	(void)state;
	start_daemon_on("v0", native);
	begin(&first, 1, service);
	ask_plan(&first);
	ask_hydnsd(&first.c, HYDNS_MSG_LANE, &key, sizeof(key), HYDNS_MSG_SOCKETS);
	assert_int_equal(hydns_pool_open(&pool, &xsk, first.c.in.fd[0], &elsewhere, &size), -EINVAL);
	end(&first);
	end_cleanly();
}

static void closing_the_gate_ends_redirection(void **state)
{
	uint32_t number[QUEUES];

	(void)state;
	begin_with_lanes(1, number);
	expect_all(&first, AT_RING);
	close(first.gate);
	first.gate = -1;
	expect_all(&first, AT_SOCKET);
	ask_plan(&first);
	expect_all(&first, AT_RING);
	end(&first);
	end_cleanly();
}

/* -- refusals ------------------------------------------------------------------------------------------------ */
static void refuse_lane(struct client *c, uint32_t ifindex, uint32_t queue, const char *text)
{
	const struct hydns_lane_key key = { .ifindex = ifindex, .queue = queue };

	expect_refused(c, HYDNS_MSG_LANE, &key, sizeof(key), text);
}

static void refuse_open(struct client *c, uint32_t number, uint16_t frame_max, uint16_t place, const char *text)
{
	const struct hydns_lane_open o = { .number = number, .frame_max = frame_max, .place = place };

	expect_refused(c, HYDNS_MSG_OPEN, &o, sizeof(o), text);
}

static void refuse_close(struct client *c, uint32_t number, const char *text)
{
	const struct hydns_lane_number n = { .number = number };

	expect_refused(c, HYDNS_MSG_CLOSE, &n, sizeof(n), text);
}

static void refuse_plan(struct client *c, uint32_t parts, const char *text)
{
	const struct hydns_queue_request q = { .parts = parts };

	expect_refused(c, HYDNS_MSG_QUEUE, &q, sizeof(q), text);
}

static void messages_out_of_order_or_of_another_length(void **state)
{
	static const uint8_t octets[64];
	const uint32_t types[] = { HYDNS_MSG_QUEUE, HYDNS_MSG_LANE, HYDNS_MSG_OPEN, HYDNS_MSG_CLOSE };
	struct hydns_hello h = { .abi_version = HYDNS_ABI_VERSION, .threads = 2, .edns_size = 1232, .max_udp = 1232 };
	struct client *c = &first.c;

	(void)state;
	start_daemon_on("v0", native);
	begin(&first, 2, service);
	for (unsigned i = 0; i < 4; i++)
		expect_refused(c, types[i], octets, sizeof(octets), "of another length");
	refuse_lane(c, v0, 0, "before QUEUE");
	refuse_open(c, 0, 1792, 0, "before QUEUE");
	refuse_close(c, 0, "before QUEUE");
	refuse_plan(c, 0, "unknown parts");
	refuse_plan(c, 4, "unknown parts");
	refuse_plan(c, HYDNS_QUEUE_UPSTREAM, "the host reserves no");
	ask_hydnsd(c, HYDNS_MSG_RESET, &h, sizeof(h), HYDNS_MSG_ACK);
	refuse_plan(c, HYDNS_QUEUE_CLIENTS, "before READY");
	ask_hydnsd(c, HYDNS_MSG_READY, NULL, 0, HYDNS_MSG_ACK);
	ask_plan(&first);
	end(&first);
	end_cleanly();
}

static void lanes_that_nobody_may_have(void **state)
{
	struct client *c = &first.c;
	uint32_t number;

	(void)state;
	start_daemon_on("v0", native);
	begin(&first, 2, service);
	ask_plan(&first);
	refuse_lane(c, v0 + 100, 0, "has no packet rings: use those of the plan");
	refuse_lane(c, if_nametoindex("v1"), 0, "has no packet rings");
	refuse_lane(c, v0, QUEUES, "has no receive queue 2");
	refuse_lane(c, v0, UINT32_MAX, "has no receive queue");
	number = get_lane(&first, 0);
	refuse_open(c, number, 59, 0, "impossible length");
	refuse_open(c, number, 1792, HYDNS_LANES_MOST, "impossible place");
	refuse_open(c, number + 1, 1792, 0, "not this resolver's");
	refuse_open(c, HYDNS_LANES, 1792, 0, "not this resolver's");
	refuse_open(c, UINT32_MAX, 1792, 0, "not this resolver's");
	refuse_close(c, HYDNS_LANES, "impossible lane");
	open_lane(&first, number);
	close_lane(&first, number);
	refuse_open(c, number, 1792, 0, "not this resolver's");
	close_lane(&first, number);            /* again: nothing is redirected to it */
	end(&first);
	end_cleanly();
}

static void hydnsd_may_be_told_to_give_none(void **state)
{
	static const char *const none[] = { "--attach-mode", "native", "--queue", "no", NULL };

	(void)state;
	start_daemon_on("v0", none);
	begin(&first, 1, service);
	refuse_plan(&first.c, HYDNS_QUEUE_CLIENTS, "queue: no");
	refuse_lane(&first.c, v0, 0, "before QUEUE");
	end(&first);
	end_cleanly();
}

/* -- several resolvers ----------------------------------------------------------------------------------------- */
static void a_receive_queue_has_one_resolver(void **state)
{
	struct hydns_lane record;
	uint32_t number[QUEUES];

	(void)state;
	begin_with_lanes(1, number);
	begin(&second, 1, -1);
	ask_plan(&second);
	refuse_lane(&second.c, v0, 0, "receive queue 0 of v0 is resolver 0's (hand-made, process ");
	refuse_open(&second.c, number[0], 1792, 0, "not this resolver's");
	close_lane(&second, number[0]);        /* not his: it stays */
	assert_true(has_record(0, &record));
	expect_all(&first, AT_RING);
	client_send(&first.c, HYDNS_MSG_BYE, NULL, 0);
	assert_int_equal(client_receive(&first.c), HYDNS_MSG_ACK);
	WAIT_FOR(!has_record(0, &record) && !has_record(1, &record));
	hydns_lanes_free(first.lanes);
	close(first.gate);
	close(first.c.sock);
	number[0] = get_lane(&second, 0);
	open_lane(&second, number[0]);
	assert_true(has_record(0, &record));
	assert_int_equal(record.resolver, 1);
	hydns_lanes_free(second.lanes);
	close(second.gate);
	clear(NULL);
}

/* Its page is mapped no longer, as after its end, and hydnsd need not have noticed. */
static void an_ended_process_has_no_lane(void **state)
{
	uint32_t number[QUEUES];
	struct hydns_lane record;

	(void)state;
	begin_with_lanes(1, number);
	begin(&second, 1, -1);
	ask_plan(&second);
	hydns_pages_free(first.c.pages);
	refuse_lane(&second.c, v0, 0, "still sockets of receive queue 0 of v0");
	assert_false(has_record(0, &record));
	assert_false(has_record(1, &record));
	hydns_lanes_free(first.lanes);
	get_sockets(&second, 0);
	hydns_lanes_free(second.lanes);
	clear(NULL);
}

/* -- lanes that a process keeps from one registration to the next ------------------------------------------------ */
/* Says goodbye and registers again with the same sockets, as a plugin does when its resolver reloads. */
static void register_again(struct resolver *r, unsigned threads)
{
	struct hydns_lanes *lanes = r->lanes;

	close(r->gate);
	client_close(&r->c);
	begin(r, threads, service);
	hydns_lanes_free(r->lanes);
	r->lanes = lanes;
}

static void a_process_that_registers_again_keeps_its_lanes(void **state)
{
	uint32_t number[QUEUES];
	struct hydns_lane record;

	(void)state;
	begin_with_lanes(2, number);
	register_again(&first, 2);
	assert_false(has_record(0, &record));
	expect_all(&first, AT_SOCKET);
	ask_plan(&first);
	refuse_lane(&first.c, v0, 0, "still sockets");
	expect_all(&first, AT_SOCKET);
	for (uint32_t queue = 0; queue < QUEUES; queue++)
		open_lane(&first, number[queue]);
	expect_all(&first, AT_RING);
	register_again(&first, 2);
	ask_plan(&first);
	close_lane(&first, number[0]);
	refuse_open(&first.c, number[0], 1792, 0, "not this resolver's");
	open_lane(&first, number[1]);
	register_again(&first, 1);             /* a socket for each thread */
	ask_plan(&first);
	refuse_open(&first.c, number[1], 1792, 0, "not this resolver's");
	hydns_lanes_free(first.lanes);
	first.lanes = hydns_lanes_new(1, FRAMES);
	number[1] = get_sockets(&first, 1);
	end(&first);
	end_cleanly();
}

/* Runs in another process, which must end well. */
static void in_another_process(void (*run)(const uint32_t *number), const uint32_t *number)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		run(number);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void try_to_take(const uint32_t *number)
{
	hydns_lanes_free(first.lanes);         /* this process's descriptors of the sockets */
	begin(&second, 2, -1);
	ask_plan(&second);
	refuse_open(&second.c, number[0], 1792, 0, "not this resolver's");
	close_lane(&second, number[0]);        /* without effect */
	refuse_lane(&second.c, v0, 0, "still sockets");
}

static void nobody_takes_a_lane_that_another_process_keeps(void **state)
{
	uint32_t number[QUEUES];

	(void)state;
	begin_with_lanes(2, number);
	register_again(&first, 2);
	in_another_process(try_to_take, number);
	ask_plan(&first);
	open_lane(&first, number[0]);
	open_lane(&first, number[1]);
	expect_all(&first, AT_RING);
	end(&first);
	end_cleanly();
}

/* -- what an operator sees ------------------------------------------------------------------------------------- */
/* Of the first resolver. The caller owns *reply. */
static const json_t *resolver_in(json_t *reply)
{
	return json_array_get(json_object_get(reply, "resolvers"), 0);
}

static void status_and_stats_show_lanes(void **state)
{
	static const char request[] = "{\"cmd\":\"status\"}";
	uint32_t number[QUEUES];
	struct hydns_lane_level level;
	const json_t *lane;
	json_t *reply;

	(void)state;
	begin_with_lanes(2, number);
	level = (struct hydns_lane_level){ .lane = number[0] + 1, .waiting = 3, .unsent = 4, .free = 500, .dropped = 1ULL << 40 };
	expect_all(&first, AT_RING);
	number[1] = get_sockets(&first, 1);
	first.c.ring[0].ring->lane[3] = level;
	first.c.ring[1].ring->lane[0] = level;
	first.c.ring[1].ring->lane[1] = (struct hydns_lane_level){ .lane = number[1] + 1, .dropped = 100 };
	reply = ask(request);
	lane = json_array_get(json_object_get(resolver_in(reply), "lanes"), 0);
	assert_string_equal(json_string_value(json_object_get(lane, "interface")), "v0");
	assert_int_equal(json_integer_value(json_object_get(lane, "queue")), 0);
	assert_int_equal(json_integer_value(json_object_get(lane, "number")), number[0]);
	assert_int_equal(json_integer_value(json_object_get(lane, "threads")), 2);
	assert_true(json_is_true(json_object_get(lane, "open")));
	assert_int_equal(json_integer_value(json_object_get(lane, "waiting")), 6);
	assert_int_equal(json_integer_value(json_object_get(lane, "unsent")), 8);
	assert_int_equal(json_integer_value(json_object_get(lane, "free")), 500);
	assert_int_equal(json_integer_value(json_object_get(lane, "dropped")), 1ULL << 41);
	lane = json_array_get(json_object_get(resolver_in(reply), "lanes"), 1);
	assert_int_equal(json_integer_value(json_object_get(lane, "queue")), 1);
	assert_true(json_is_false(json_object_get(lane, "open")));
	assert_string_equal(json_string_value(json_object_get(resolver_in(reply), "no_rings")), "");
	json_decref(reply);
	reply = ask("{\"cmd\":\"stats\"}");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(resolver_in(reply), "packet_rings"), "queries")), QUERIES);
	json_decref(reply);
	refuse_lane(&first.c, v0, QUEUES, "has no receive queue 2");
	reply = ask(request);
	assert_non_null(strstr(json_string_value(json_object_get(resolver_in(reply), "no_rings")), "has no receive queue 2"));
	json_decref(reply);
	end(&first);
	end_cleanly();
}

/* -- again ----------------------------------------------------------------------------------------------------- */
/* What is asked for twice: the former gate and the former sockets are of no use any more. */
static void a_lane_that_the_resolver_has_is_given_anew(void **state)
{
	uint32_t number[QUEUES], other;
	struct hydns_lane record;
	int former;

	(void)state;
	begin_with_lanes(1, number);
	former = first.gate;
	first.gate = -1;
	ask_plan(&first);
	close(former);
	expect_all(&first, AT_RING);
	other = get_sockets(&first, 0);
	assert_int_not_equal(other, number[0]);
	assert_false(has_record(0, &record));
	assert_true(has_record(1, &record));
	refuse_open(&first.c, number[0], 1792, 0, "not this resolver's");
	close_lane(&first, other);
	end(&first);
	end_cleanly();
}

static void lanes_outlive_hydnsd(void **state)
{
	uint32_t number[QUEUES];
	struct hydns_lane before, after;

	(void)state;
	begin_with_lanes(2, number);
	assert_true(has_record(0, &before));
	assert_int_equal(end_daemon(SIGUSR2), 0);
	expect_all(&first, AT_RING);
	hydns_pages_beat(first.c.pages, hydns_mono_ns() + WAIT_MS * HYDNS_NS_PER_MS); /* however long the start takes */
	start_daemon_on("v0", native);
	expect_all(&first, AT_RING);
	hydns_pages_beat(first.c.pages, hydns_mono_ns() + WAIT_MS * HYDNS_NS_PER_MS);
	assert_true(client_reopen(&first.c, service));
	expect_all(&first, AT_RING);
	assert_true(has_record(0, &after));
	assert_memory_equal(&before, &after, sizeof(before));
	ask_plan(&first);
	assert_int_equal(first.plan.device[0].device, before.device);
	open_lane(&first, number[0]);          /* nothing new, and a number that hydnsd knows */
	expect_all(&first, AT_RING);
	close_lane(&first, number[0]);
	close_lane(&first, number[1]);
	expect_all(&first, AT_SOCKET);
	end(&first);
	end_cleanly();
}

/* A resolver that ended meanwhile leaves none to the next hydnsd; nor does one that is told to give none. */
static void a_restart_ends_what_no_longer_fits(void **state)
{
	static const char *const none[] = { "--attach-mode", "native", "--queue", "no", NULL };
	static const char *const generic[] = { "--attach-mode", "generic", NULL };
	const char *const *const with[] = { none, generic };
	uint32_t number[QUEUES];
	struct hydns_lane record;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		begin_with_lanes(2, number);
		assert_int_equal(end_daemon(SIGUSR2), 0);
		assert_true(has_record(0, &record));
		hydns_pages_beat(first.c.pages, hydns_mono_ns() + WAIT_MS * HYDNS_NS_PER_MS);
		start_daemon_on("v0", with[i]);
		assert_false(has_record(0, &record));
		expect_all(&first, AT_SOCKET);
		assert_true(client_reopen(&first.c, service));
		end(&first);
		end_cleanly();
	}
}

/* -- interfaces that change -------------------------------------------------------------------------------------- */
static void expect_plan(struct resolver *r)
{
	assert_int_equal(client_receive(&r->c), HYDNS_MSG_PLAN);
	assert_int_equal(r->c.in.head.seq, 0);
	assert_int_equal(r->c.in.fds, 0);
	take_plan(r);
}

static void changes_are_told(void **state)
{
	uint32_t number[QUEUES];
	struct hydns_lane record;

	(void)state;
	begin_with_lanes(2, number);
	command("ip link set v0 mtu 1400");
	expect_plan(&first);
	assert_int_equal(first.plan.count, 1);
	assert_int_equal(first.plan.device[0].mtu, 1400);
	expect_all(&first, AT_RING);
	command("ip link del v0");
	expect_plan(&first);
	assert_int_equal(first.plan.count, 0);
	assert_false(has_record(0, &record));
	assert_false(has_record(1, &record));
	refuse_lane(&first.c, v0, 0, "has no packet rings");
	refuse_open(&first.c, number[0], 1792, 0, "not this resolver's");
	end(&first);
	end_cleanly();
}

/* The kernel keeps receive queues that have bound sockets; these are not bound. */
static void a_queue_that_goes_takes_its_lane_along(void **state)
{
	struct hydns_lane_key key = { .ifindex = v0 };
	struct hydns_lane_number n;
	struct hydns_lane record;
	int fd[QUEUES];

	(void)state;
	start_daemon_on("v0", native);
	begin(&first, 1, service);
	ask_plan(&first);
	for (; key.queue < QUEUES; key.queue++) {
		ask_hydnsd(&first.c, HYDNS_MSG_LANE, &key, sizeof(key), HYDNS_MSG_SOCKETS);
		memcpy(&n, first.c.in.payload, sizeof(n));
		fd[key.queue] = first.c.in.fd[0];
		open_lane(&first, n.number);
	}
	command("ethtool -L v1 tx 1");
	command("ethtool -L v0 rx 1");
	kill(daemon_pid, SIGHUP);              /* it looks every five seconds, and now */
	expect_plan(&first);
	assert_int_equal(first.plan.device[0].rx_queues, 1);
	assert_true(has_record(0, &record));
	assert_false(has_record(1, &record));
	close(fd[0]);
	close(fd[1]);
	end(&first);
	end_cleanly();
}

/* Nothing is left of the program: a query that left by a ring now would get its answer by a port that nobody has. */
static void a_stop_is_told_first(void **state)
{
	(void)state;
	start_daemon_on("v0", native);
	begin(&first, 1, service);
	ask_plan(&first);
	end_cleanly();
	expect_plan(&first);
	assert_int_equal(first.plan.parts, 0);
	assert_int_equal(first.plan.count, 0);
	hydns_lanes_free(first.lanes);
	clear(NULL);
}

/* -- modes and kinds ---------------------------------------------------------------------------------------------- */
static void generic_mode_is_for_one_thread(void **state)
{
	uint32_t number[QUEUES];

	(void)state;
	start_daemon_on("v0", NULL);
	begin(&first, 2, service);
	ask_plan(&first);
	assert_int_equal(first.plan.count, 0);
	refuse_lane(&first.c, v0, 0, "generic mode");
	end(&first);
	begin(&first, 1, service);
	open_all(&first, number);
	assert_int_equal(first.plan.device[0].flags, HYDNS_QUEUE_DEVICE_UNFINISHED);
	expect_all(&first, AT_RING);
	end(&first);
	end_cleanly();
}

static void devices_on_others_have_no_lanes(void **state)
{
	(void)state;
	command("ip link add b0 type bridge");
	start_daemon_on("b0", NULL);
	begin(&first, 1, service);
	ask_plan(&first);
	assert_int_equal(first.plan.count, 0);
	refuse_lane(&first.c, if_nametoindex("b0"), 0, "has no packet rings");
	end(&first);
	end_cleanly();
	command("ip link del b0");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plan_has_what_the_program_is_attached_to),
		TEST(queries_come_by_rings_from_open_to_close),
		TEST(sockets_belong_to_their_interface),
		TEST(closing_the_gate_ends_redirection),
		TEST(messages_out_of_order_or_of_another_length),
		TEST(lanes_that_nobody_may_have),
		TEST(hydnsd_may_be_told_to_give_none),
		TEST(a_receive_queue_has_one_resolver),
		TEST(an_ended_process_has_no_lane),
		TEST(a_process_that_registers_again_keeps_its_lanes),
		TEST(nobody_takes_a_lane_that_another_process_keeps),
		TEST(status_and_stats_show_lanes),
		TEST(a_lane_that_the_resolver_has_is_given_anew),
		TEST(lanes_outlive_hydnsd),
		TEST(a_restart_ends_what_no_longer_fits),
		TEST(changes_are_told),
		TEST(a_queue_that_goes_takes_its_lane_along),
		TEST(a_stop_is_told_first),
		TEST(generic_mode_is_for_one_thread),
		TEST(devices_on_others_have_no_lanes),
	};

	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
