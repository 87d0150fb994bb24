/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Lanes on a real interface: a pair of virtual interfaces in a network namespace of this process. Frames are sent into one
 * end by a packet socket, and a program of a few instructions redirects them at the other end to the socket of the thread
 * that the test names. Skipped where the process may not make namespaces or load programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "plugin/queue/lanes.h"

#define THREADS 2
#define FRAMES  256U
#define MTU     1500
#ifndef AF_XDP
#define AF_XDP 44
#endif
#define WAIT_MS 5000       /* for what must come; nothing waits so long that goes well */

struct world {
	struct hydns_lanes *lanes;
	int sockets, thread_of, program;       /* maps, and the program */
	int wire;                              /* packet socket at the far end */
	unsigned ifindex, far;
	int place;
};

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* return thread_of[0] -> redirect to that socket, or pass */
static int load_program(int thread_of, int sockets)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = thread_of }, { 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_0, .off = 2, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_0 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = sockets }, { 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "to_ring", "GPL", code, sizeof(code) / sizeof(code[0]), NULL);
}

/* As hydnsd does: makes the sockets, enters them into the map. */
static int open_lane(struct world *w)
{
	const struct hydns_lane_setup s = { .id = { .ifindex = w->ifindex, .queue = 0 }, .number = 7, .mtu = MTU, .hops = { 60, 61 },
					    .sends = true };
	int fd[THREADS], place;

	for (__u32 i = 0; i < THREADS; i++) {
		fd[i] = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
		assert_true(fd[i] >= 0);
		assert_int_equal(bpf_map_update_elem(w->sockets, &i, &fd[i], 0), 0);
	}
	for (int tries = 0;; tries++) {                /* a queue is busy for a moment after its sockets were closed */
		int copy[THREADS];

		for (int i = 0; i < THREADS; i++)
			copy[i] = dup(fd[i]);
		place = hydns_lane_open(w->lanes, &s, copy);
		if (place != -EBUSY || tries == 100)
			break;
		for (__u32 i = 0; i < THREADS; i++) {
			close(fd[i]);
			fd[i] = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
			assert_int_equal(bpf_map_update_elem(w->sockets, &i, &fd[i], 0), 0);
		}
		usleep(20000);
	}
	for (int i = 0; i < THREADS; i++)
		close(fd[i]);
	return place;
}

static int make_wire(unsigned ifindex)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)ifindex };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), room = 1 << 24, yes = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	run("ip link add near type veth peer name far && ip link set near up && ip link set far up && "
	    "for f in near far; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done");
	w->ifindex = if_nametoindex("near");
	w->far = if_nametoindex("far");
	w->sockets = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "sockets", 4, 4, THREADS, NULL);
	w->thread_of = bpf_map_create(BPF_MAP_TYPE_ARRAY, "thread_of", 4, 4, 1, NULL);
	w->program = load_program(w->thread_of, w->sockets);
	assert_true(w->program >= 0);
	assert_int_equal(bpf_link_create(w->program, (int)w->ifindex, BPF_XDP, NULL) < 0, 0);
	w->wire = make_wire(w->far);
	w->lanes = hydns_lanes_new(THREADS, FRAMES);
	assert_non_null(w->lanes);
	w->place = open_lane(w);
	assert_true(w->place >= 0);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	hydns_lanes_free(w->lanes);
	run("ip link del near");
	close(w->wire);
	close(w->program);
	close(w->thread_of);
	close(w->sockets);
	free(w);
	return 0;
}

/* --- the far end ----------------------------------------------------------------------------------------- */
static void choose(struct world *w, __u32 thread)
{
	const __u32 zero = 0;

	assert_int_equal(bpf_map_update_elem(w->thread_of, &zero, &thread, 0), 0);
}

static const struct hydns_path from_far = {
	.l2 = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0 }, .l2_len = 14, .local_port = 4321, .remote_port = 53,
	.local = { 10, 99, 0, 2 }, .remote = { 10, 99, 0, 1 },
};

static void send_frame(struct world *w, const void *payload, size_t len)
{
	const struct hydns_ip_options o = { .hops = 64, .mtu = MTU };
	uint8_t frame[HYDNS_FRAME_HEADERS + MTU];
	size_t n = hydns_frame_write(frame, sizeof(frame), &from_far, &o, payload, len);

	assert_int_equal(send(w->wire, frame, n, 0), n);
}

static void send_number(struct world *w, uint32_t number)
{
	send_frame(w, &number, sizeof(number));
}

/* The number in the next datagram that comes to the far end; -1: none comes. */
static int64_t receive_number(struct world *w, int wait_ms)
{
	struct pollfd p = { .fd = w->wire, .events = POLLIN };
	struct hydns_datagram d;
	uint8_t frame[2048];
	uint32_t number;

	while (poll(&p, 1, wait_ms) == 1) {
		ssize_t n = recv(w->wire, frame, sizeof(frame), 0);

		if (n > 0 && hydns_frame_read(&d, frame, (size_t)n, false) && d.len >= sizeof(number)) {
			assert_int_equal(frame[14 + 8], 60);           /* the lane's TTL */
			assert_int_equal(d.path.local_port, from_far.local_port);
			assert_memory_equal(d.path.local, from_far.local, 16);
			memcpy(&number, d.payload, sizeof(number));
			return number;
		}
	}
	return -1;
}

/* --- this end -------------------------------------------------------------------------------------------- */
struct taken {
	struct hydns_lane_thread *thread;
	bool reply;
	unsigned count, refused;
	uint32_t last;
	struct hydns_way way;
};

static void take(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	struct taken *t = arg;

	assert_true(d->len >= sizeof(t->last));
	memcpy(&t->last, d->payload, sizeof(t->last));
	t->way = *way;
	t->count++;
	if (t->reply && !hydns_lanes_send(t->thread, way, 0, d->payload, d->len))
		t->refused++;
}

static bool readable(struct hydns_lane_thread *t, int wait_ms)
{
	struct pollfd p = { .fd = hydns_lanes_fd(t), .events = POLLIN };

	return poll(&p, 1, wait_ms) == 1;
}

/* Until the thread has taken so many. */
static void take_until(struct taken *t, unsigned count)
{
	while (t->count < count) {
		assert_true(readable(t->thread, WAIT_MS));
		hydns_lanes_receive(t->thread, 64, take, t);
	}
}

/* --- tests ------------------------------------------------------------------------------------------------ */
static void a_query_is_taken_and_answered(void **state)
{
	struct world *w = *state;
	struct taken t = { .thread = hydns_lanes_thread(w->lanes, 1), .reply = true };

	choose(w, 1);
	assert_false(readable(t.thread, 0));
	send_number(w, 17);
	take_until(&t, 1);
	assert_int_equal(t.last, 17);
	assert_int_equal(t.refused, 0);
	assert_int_equal(t.way.ifindex, w->ifindex);
	assert_int_equal(receive_number(w, WAIT_MS), 17);
	assert_false(readable(t.thread, 0));
	assert_int_equal(hydns_lanes_receive(t.thread, 64, take, &t), 0);
}

/* Many times as many as there are frames: each comes back to the kernel, both ways. */
static void frames_come_back(void **state)
{
	struct world *w = *state;
	struct taken t = { .thread = hydns_lanes_thread(w->lanes, 0), .reply = true };
	const unsigned many = 10 * THREADS * (FRAMES + HYDNS_LANE_SEND_FRAMES);

	choose(w, 0);
	for (unsigned i = 0; i < many; i += 16) {
		for (unsigned k = 0; k < 16; k++)
			send_number(w, i + k);
		take_until(&t, i + 16);
		for (unsigned k = 0; k < 16; k++)
			assert_int_equal(receive_number(w, WAIT_MS), i + k);
	}
	assert_int_equal(t.refused, 0);
	assert_int_equal(hydns_lanes_counts(t.thread)->bad, 0);
	assert_int_equal(hydns_lanes_counts(t.thread)->sent, many);
}

static void what_is_no_datagram_is_counted(void **state)
{
	struct world *w = *state;
	struct taken t = { .thread = hydns_lanes_thread(w->lanes, 0) };
	uint8_t junk[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45 };

	choose(w, 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(send(w->wire, junk, sizeof(junk), 0), sizeof(junk));
		while (readable(t.thread, 0))
			hydns_lanes_receive(t.thread, 64, take, &t);
	}
	send_number(w, 1);
	take_until(&t, 1);
	assert_int_equal(hydns_lanes_counts(t.thread)->bad, 1000);
	assert_int_equal(hydns_lanes_counts(t.thread)->received, 1);
}

/* The frames of a thread that reads nothing are not the other's. */
static void a_stopped_thread_stops_no_other(void **state)
{
	struct world *w = *state;
	struct taken t = { .thread = hydns_lanes_thread(w->lanes, 1), .reply = true };

	choose(w, 0);
	for (unsigned i = 0; i < 4 * THREADS * FRAMES; i++)
		send_number(w, i);
	choose(w, 1);
	for (unsigned i = 0; i < 2 * THREADS * FRAMES; i++) {
		send_number(w, i);
		take_until(&t, i + 1);
		assert_int_equal(receive_number(w, WAIT_MS), i);
	}
	t.thread = hydns_lanes_thread(w->lanes, 0);      /* its ring holds the first ones, and has dropped the rest */
	t.count = 0;
	take_until(&t, FRAMES);
	assert_int_equal(t.last, FRAMES - 1);
	assert_int_equal(hydns_lanes_receive(t.thread, 64, take, &t), 0);
}

/* More than the ring holds within one call: the rest is refused, and nothing is lost for good. */
static void a_full_ring_refuses(void **state)
{
	struct world *w = *state;
	struct taken t = { .thread = hydns_lanes_thread(w->lanes, 0), .reply = true };
	bool sent = true;
	uint32_t n;

	choose(w, 0);
	send_number(w, 0);
	take_until(&t, 1);
	assert_int_equal(receive_number(w, WAIT_MS), 0);
	run("ip link set near down");
	for (n = 1; n <= 4 * HYDNS_LANE_SEND_FRAMES && sent; n++)
		sent = hydns_lanes_send(t.thread, &t.way, 0, (const uint8_t *)&n, sizeof(n));
	assert_false(sent);
	assert_int_equal(hydns_lanes_counts(t.thread)->detour[HYDNS_DETOUR_STUCK], 1);
	run("ip link set near up");
	assert_true(readable(t.thread, WAIT_MS));        /* it is tried again by itself */
	hydns_lanes_receive(t.thread, 64, take, &t);
	for (int tries = 0; tries < 100 && !sent; tries++) {
		if (readable(t.thread, 50))
			hydns_lanes_receive(t.thread, 64, take, &t);
		sent = hydns_lanes_send(t.thread, &t.way, 0, (const uint8_t *)&n, sizeof(n));
	}
	assert_true(sent);
	for (int64_t got = -1; got != n;) {
		got = receive_number(w, WAIT_MS);
		assert_true(got >= 0);
	}
}

static void too_long_is_left_to_the_socket(void **state)
{
	struct world *w = *state;
	struct taken t = { .thread = hydns_lanes_thread(w->lanes, 0) };
	uint8_t payload[MTU] = { 0 };

	choose(w, 0);
	send_number(w, 0);
	take_until(&t, 1);
	assert_true(hydns_lanes_send(t.thread, &t.way, 0, payload, MTU - 28));
	assert_false(hydns_lanes_send(t.thread, &t.way, 0, payload, MTU - 27));
	assert_int_equal(hydns_lanes_counts(t.thread)->detour[HYDNS_DETOUR_TOO_LONG], 1);
}

static void a_closed_lane_is_gone(void **state)
{
	struct world *w = *state;
	struct taken t = { .thread = hydns_lanes_thread(w->lanes, 0) };
	struct hydns_way other = { 0 };
	const uint8_t payload[4] = { 0 };

	choose(w, 0);
	send_number(w, 0);
	take_until(&t, 1);
	assert_true(hydns_lanes_sender(t.thread, t.way.ifindex, &other));
	hydns_lane_close(w->lanes, w->place, 0, NULL, NULL);
	assert_false(hydns_lanes_send(t.thread, &t.way, 0, payload, sizeof(payload)));
	assert_false(hydns_lanes_sender(t.thread, t.way.ifindex, &other));
	w->place = open_lane(w);
	assert_true(w->place >= 0);
	assert_false(hydns_lanes_send(t.thread, &t.way, 0, payload, sizeof(payload)));
	send_number(w, 5);
	take_until(&t, 2);
	assert_true(hydns_lanes_send(t.thread, &t.way, 0, payload, sizeof(payload)));
	assert_int_equal(hydns_lanes_counts(t.thread)->detour[HYDNS_DETOUR_LANE_GONE], 2);
}

struct worker {
	struct taken taken;
	_Atomic bool stop;
};

static void *work(void *arg)
{
	struct worker *k = arg;

	while (!atomic_load(&k->stop))
		if (readable(k->taken.thread, 10))
			hydns_lanes_receive(k->taken.thread, 64, take, &k->taken);
	return NULL;
}

/* What lies in the rings is read first; threads that are at work are waited for. */
static void lanes_close_under_load(void **state)
{
	struct world *w = *state;
	struct worker k = { .taken = { .thread = hydns_lanes_thread(w->lanes, 0), .reply = true } };
	unsigned sent = 0;
	pthread_t thread;

	choose(w, 0);
	assert_int_equal(pthread_create(&thread, NULL, work, &k), 0);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 200; i++)
			send_number(w, sent++);
		hydns_lane_close(w->lanes, w->place, WAIT_MS, NULL, NULL);
		w->place = open_lane(w);
		assert_true(w->place >= 0);
	}
	atomic_store(&k.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(k.taken.count, sent);
	assert_int_equal(k.taken.refused, 0);
}

static bool possible(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int fd;

	setrlimit(RLIMIT_MEMLOCK, &all);
	if (geteuid() != 0 || unshare(CLONE_NEWNET))
		return false;
	fd = socket(AF_XDP, SOCK_RAW, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_query_is_taken_and_answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(frames_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_datagram_is_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_stopped_thread_stops_no_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_ring_refuses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_long_is_left_to_the_socket, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_closed_lane_is_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lanes_close_under_load, set_up, tear_down),
	};

	if (!possible()) {
		fprintf(stderr, "skipped: needs root and AF_XDP\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
