/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Lanes on a real interface: frames are sent into one end of a virtual pair by a packet socket, and come to the lane at the
 * other end (veth.h). Skipped where the process may not make namespaces or load programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "plugin/tests/veth.h"

static int set_up(void **state)
{
	struct veth *v = calloc(1, sizeof(*v));

	veth_begin(v);
	*state = v;
	return 0;
}

static int tear_down(void **state)
{
	veth_end(*state);
	free(*state);
	return 0;
}

/* --- the far end ----------------------------------------------------------------------------------------- */
static const struct hydns_path from_far = {
	.l2 = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0 }, .l2_len = 14, .local_port = 4321, .remote_port = 53,
	.local = { 10, 99, 0, 2 }, .remote = { 10, 99, 0, 1 },
};

static void send_frame(struct veth *v, const void *payload, size_t len)
{
	const struct hydns_ip_options o = { .hops = 64, .mtu = VETH_MTU };
	uint8_t frame[HYDNS_FRAME_HEADERS + VETH_MTU];
	size_t n = hydns_frame_write(frame, sizeof(frame), &from_far, &o, payload, len);

	assert_int_equal(send(v->wire, frame, n, 0), n);
}

static void send_number(struct veth *v, uint32_t number)
{
	send_frame(v, &number, sizeof(number));
}

/* The number in the next datagram that comes to the far end; -1: none comes. */
static int64_t receive_number(struct veth *v, int wait_ms)
{
	struct pollfd p = { .fd = v->wire, .events = POLLIN };
	struct hydns_datagram d;
	uint8_t frame[2048];
	uint32_t number;

	while (poll(&p, 1, wait_ms) == 1) {
		ssize_t n = recv(v->wire, frame, sizeof(frame), 0);

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

/* Until the thread has taken so many. */
static void take_until(struct taken *t, unsigned count)
{
	while (t->count < count) {
		assert_true(veth_readable(t->thread, VETH_WAIT_MS));
		hydns_lanes_receive(t->thread, 64, take, t);
	}
}

/* n frames in one call. */
static void take_together(struct veth *v, struct taken *t, unsigned n)
{
	struct hydns_lane_level level[HYDNS_LANES_MOST];

	for (unsigned i = 0; i < n; i++)
		send_number(v, i);
	do
		hydns_lanes_levels(v->lanes, 0, level);
	while (level[0].waiting < n);
	assert_int_equal(hydns_lanes_receive(t->thread, 64, take, t), n);
}

/* --- tests ------------------------------------------------------------------------------------------------ */
static void a_query_is_taken_and_answered(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 1), .reply = true };

	veth_choose(v, 1);
	assert_false(veth_readable(t.thread, 0));
	send_number(v, 17);
	take_until(&t, 1);
	assert_int_equal(t.last, 17);
	assert_int_equal(t.refused, 0);
	assert_int_equal(t.way.ifindex, v->ifindex);
	assert_int_equal(receive_number(v, VETH_WAIT_MS), 17);
	assert_false(veth_readable(t.thread, 0));
	assert_int_equal(hydns_lanes_receive(t.thread, 64, take, &t), 0);
}

/* What hydnsd is shown of a thread's rings. A lane's frames wait, or the kernel may receive into them. */
static void assert_levels(struct veth *v, uint32_t thread, uint32_t waiting, uint64_t dropped)
{
	struct hydns_lane_level level[VETH_THREADS][HYDNS_LANES_MOST] = { 0 };
	uint32_t in_all = 0;

	for (uint32_t i = 0; i < VETH_THREADS; i++) {
		hydns_lanes_levels(v->lanes, i, level[i]);
		in_all += level[i][0].waiting;
	}
	assert_int_equal(level[thread][0].lane, hydns_lane_at(v->lanes, 0)->number + 1);
	assert_int_equal(level[thread][0].waiting, waiting);
	assert_int_equal(level[thread][0].unsent, 0);
	assert_int_equal(level[thread][0].free, VETH_THREADS * VETH_FRAMES - in_all);
	assert_int_equal(level[thread][0].dropped, dropped);
	assert_int_equal(level[thread][1].lane, 0);
}

/* A thread that works on what it has received after the call sends its replies together. */
static void a_corked_thread_sends_at_once(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0) };
	const uint32_t number = 5;

	veth_choose(v, 0);
	take_together(v, &t, 32);
	hydns_lanes_cork(t.thread);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(hydns_lanes_send(t.thread, &t.way, 0, (const uint8_t *)&i, sizeof(i)));
	assert_int_equal(receive_number(v, 20), -1);
	hydns_lanes_uncork(t.thread);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(receive_number(v, VETH_WAIT_MS), i);
	assert_true(hydns_lanes_send(t.thread, &t.way, 0, (const uint8_t *)&number, sizeof(number)));
	assert_int_equal(receive_number(v, VETH_WAIT_MS), number);
}

/* The kernel sends 32 in a call. */
static void all_that_waits_is_sent_at_once(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0) };

	veth_choose(v, 0);
	send_number(v, 17);
	take_until(&t, 1);
	hydns_lanes_cork(t.thread);
	for (uint32_t i = 0; i < 200; i++)
		assert_true(hydns_lanes_send(t.thread, &t.way, 0, (const uint8_t *)&i, sizeof(i)));
	hydns_lanes_uncork(t.thread);
	assert_levels(v, 0, 0, 0);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(receive_number(v, VETH_WAIT_MS), i);
}

/* Of frames that were received together, so many leave together. */
static void expect_together(struct veth *v, unsigned received, uint32_t together)
{
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0) };

	take_together(v, &t, received);
	hydns_lanes_cork(t.thread);
	for (uint32_t i = 0; i < 2 * together - 1; i++)
		assert_true(hydns_lanes_send(t.thread, &t.way, 0, (const uint8_t *)&i, sizeof(i)));
	for (uint32_t i = 0; i < together; i++)
		assert_int_equal(receive_number(v, VETH_WAIT_MS), i);
	assert_int_equal(receive_number(v, 20), -1);
	hydns_lanes_uncork(t.thread);
	for (uint32_t i = together; i < 2 * together - 1; i++)
		assert_int_equal(receive_number(v, VETH_WAIT_MS), i);
}

/* The first client of a turn does not wait for the last. */
static void some_that_wait_are_sent_before_the_end(void **state)
{
	veth_choose(*state, 0);
	expect_together(*state, 1, 1);
	expect_together(*state, 2, 2);
	expect_together(*state, 3, 1);
	expect_together(*state, 7, 1);
	expect_together(*state, 12, 3);
	expect_together(*state, 64, 8);
}

/* The caller may have room for no more. */
static void a_call_keeps_its_budget(void **state)
{
	static const unsigned budget[] = { 1, 32, 64, 100 };        /* below, at and above what is given back at once */
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0) };

	veth_choose(v, 0);
	for (uint32_t i = 0; i < VETH_FRAMES; i++)
		send_number(v, i);
	assert_levels(v, 0, VETH_FRAMES, 0);
	for (size_t i = 0; i < sizeof(budget) / sizeof(budget[0]); i++) {
		t.count = 0;
		assert_int_equal(hydns_lanes_receive(t.thread, budget[i], take, &t), budget[i]);
		assert_int_equal(t.count, budget[i]);
	}
}

/* Many times as many as there are frames: each comes back to the kernel, both ways. */
static void frames_come_back(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0), .reply = true };
	const unsigned many = 10 * VETH_THREADS * (VETH_FRAMES + HYDNS_LANE_SEND_FRAMES);

	veth_choose(v, 0);
	for (unsigned i = 0; i < many; i += 16) {
		for (unsigned k = 0; k < 16; k++)
			send_number(v, i + k);
		take_until(&t, i + 16);
		for (unsigned k = 0; k < 16; k++)
			assert_int_equal(receive_number(v, VETH_WAIT_MS), i + k);
	}
	assert_int_equal(t.refused, 0);
	assert_int_equal(hydns_lanes_counts(t.thread)->bad, 0);
	assert_int_equal(hydns_lanes_counts(t.thread)->sent, many);
}

static void what_is_no_datagram_is_counted(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0) };
	uint8_t junk[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45 };

	veth_choose(v, 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(send(v->wire, junk, sizeof(junk), 0), sizeof(junk));
		while (veth_readable(t.thread, 0))
			hydns_lanes_receive(t.thread, 64, take, &t);
	}
	send_number(v, 1);
	take_until(&t, 1);
	assert_int_equal(hydns_lanes_counts(t.thread)->bad, 1000);
	assert_int_equal(hydns_lanes_counts(t.thread)->received, 1);
}

/* The frames of a thread that reads nothing are not the other's. */
static void a_stopped_thread_stops_no_other(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 1), .reply = true };

	veth_choose(v, 0);
	for (unsigned i = 0; i < 4 * VETH_THREADS * VETH_FRAMES; i++)
		send_number(v, i);
	veth_choose(v, 1);
	for (unsigned i = 0; i < 2 * VETH_THREADS * VETH_FRAMES; i++) {
		send_number(v, i);
		take_until(&t, i + 1);
		assert_int_equal(receive_number(v, VETH_WAIT_MS), i);
	}
	assert_levels(v, 0, VETH_FRAMES, (4 * VETH_THREADS - 1) * VETH_FRAMES);
	assert_levels(v, 1, 0, 0);
	t.thread = hydns_lanes_thread(v->lanes, 0);      /* its ring holds the first ones, and has dropped the rest */
	t.count = 0;
	take_until(&t, VETH_FRAMES);
	assert_int_equal(t.last, VETH_FRAMES - 1);
	assert_int_equal(hydns_lanes_receive(t.thread, 64, take, &t), 0);
	assert_levels(v, 0, 0, (4 * VETH_THREADS - 1) * VETH_FRAMES);
}

/* What the program is told of the rings: a backlog for each thread. */
static void what_lies_in_the_rings_is_told(void **state)
{
	struct veth *v = *state;
	struct hydns_backlog b[HYDNS_THREADS_MAX] = { { 0 } };
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 1) };

	veth_choose(v, 1);
	send_number(v, 0);
	take_until(&t, 1);
	for (uint32_t i = 0; i < 3; i++)
		send_number(v, i);
	assert_true(veth_readable(t.thread, VETH_WAIT_MS));
	hydns_lane_count_backlog(v->lanes, v->place, b);
	assert_int_equal(b[1].taken, 1);
	assert_int_equal(b[1].given - b[1].taken, 3);
	assert_int_equal(b[1].room, VETH_FRAMES * 7 / 8);
	assert_int_equal(b[0].given, 0);
	take_until(&t, 4);
	assert_int_equal(b[1].taken, 4);
	for (unsigned i = 0; i < VETH_FRAMES + 10; i++)     /* this program does not look at the backlog */
		send_number(v, i);
	assert_levels(v, 1, VETH_FRAMES, 10);
	assert_int_equal(b[1].dropped, 10);
	hydns_lane_count_backlog(v->lanes, v->place, b);
	assert_int_equal(b[1].given - b[1].taken - b[1].dropped, VETH_FRAMES);
	hydns_lanes_forget_backlogs(v->lanes);
	take_until(&t, 5);
	assert_int_equal(b[1].taken, 4);
}

/* More than the ring holds within one call: the rest is refused, and nothing is lost for good. */
static void a_full_ring_refuses(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0), .reply = true };
	bool sent = true;
	uint32_t n;

	veth_choose(v, 0);
	send_number(v, 0);
	take_until(&t, 1);
	assert_int_equal(receive_number(v, VETH_WAIT_MS), 0);
	veth_run("ip link set near down");
	for (n = 1; n <= 4 * HYDNS_LANE_SEND_FRAMES && sent; n++)
		sent = hydns_lanes_send(t.thread, &t.way, 0, (const uint8_t *)&n, sizeof(n));
	assert_false(sent);
	assert_int_equal(hydns_lanes_counts(t.thread)->detour[HYDNS_DETOUR_STUCK], 1);
	veth_run("ip link set near up");
	assert_true(veth_readable(t.thread, VETH_WAIT_MS));        /* it is tried again by itself */
	hydns_lanes_receive(t.thread, 64, take, &t);
	for (int tries = 0; tries < 100 && !sent; tries++) {
		if (veth_readable(t.thread, 50))
			hydns_lanes_receive(t.thread, 64, take, &t);
		sent = hydns_lanes_send(t.thread, &t.way, 0, (const uint8_t *)&n, sizeof(n));
	}
	assert_true(sent);
	for (int64_t got = -1; got != n;) {
		got = receive_number(v, VETH_WAIT_MS);
		assert_true(got >= 0);
	}
}

static void too_long_is_left_to_the_socket(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0) };
	const unsigned tries = 2 * VETH_THREADS * HYDNS_LANE_SEND_FRAMES;
	uint8_t payload[VETH_MTU] = { 0 };

	veth_choose(v, 0);
	send_number(v, 0);
	take_until(&t, 1);
	assert_true(hydns_lanes_send(t.thread, &t.way, 0, payload, VETH_MTU - 28));
	for (unsigned i = 0; i < tries; i++)                 /* and its frame can be used again */
		assert_false(hydns_lanes_send(t.thread, &t.way, 0, payload, VETH_MTU - 27));
	assert_int_equal(hydns_lanes_counts(t.thread)->detour[HYDNS_DETOUR_TOO_LONG], tries);
	assert_true(hydns_lanes_send(t.thread, &t.way, 0, payload, VETH_MTU - 28));
}

static void a_closed_lane_is_gone(void **state)
{
	struct veth *v = *state;
	struct taken t = { .thread = hydns_lanes_thread(v->lanes, 0) };
	struct hydns_way other = { 0 };
	const uint8_t payload[4] = { 0 };

	veth_choose(v, 0);
	send_number(v, 0);
	take_until(&t, 1);
	assert_true(hydns_lanes_sender(t.thread, t.way.ifindex, &other));
	hydns_lane_close(v->lanes, v->place, 0, NULL, NULL);
	assert_false(hydns_lanes_send(t.thread, &t.way, 0, payload, sizeof(payload)));
	assert_false(hydns_lanes_sender(t.thread, t.way.ifindex, &other));
	v->place = veth_open_lane(v);
	assert_true(v->place >= 0);
	assert_false(hydns_lanes_send(t.thread, &t.way, 0, payload, sizeof(payload)));
	send_number(v, 5);
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
		if (veth_readable(k->taken.thread, 10))
			hydns_lanes_receive(k->taken.thread, 64, take, &k->taken);
	return NULL;
}

/* What lies in the rings is read first; threads that are at work are waited for. */
static void lanes_close_under_load(void **state)
{
	struct veth *v = *state;
	struct worker k = { .taken = { .thread = hydns_lanes_thread(v->lanes, 0), .reply = true } };
	unsigned sent = 0;
	pthread_t thread;

	veth_choose(v, 0);
	assert_int_equal(pthread_create(&thread, NULL, work, &k), 0);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 200; i++)
			send_number(v, sent++);
		hydns_lane_close(v->lanes, v->place, VETH_WAIT_MS, NULL, NULL);
		v->place = veth_open_lane(v);
		assert_true(v->place >= 0);
	}
	atomic_store(&k.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(k.taken.count, sent);
	/* The far end reads nothing, and on Linux 6.1 what waits there counts for the sender: some replies may be refused. */
	assert_int_equal(hydns_lanes_counts(k.taken.thread)->detour[HYDNS_DETOUR_LANE_GONE], 0);
}

struct slow {
	struct hydns_lane_thread *thread;
	_Atomic bool inside, left;
	_Atomic unsigned beats;
};

static void count_beat(void *arg)
{
	atomic_fetch_add(&((struct slow *)arg)->beats, 1);
}

static void take_slowly(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	struct slow *s = arg;

	(void)d, (void)way;
	atomic_store(&s->inside, true);
	for (unsigned ms = 0; ms < VETH_WAIT_MS && atomic_load(&s->beats) < 5; ms++)
		usleep(1000);
	atomic_store(&s->left, true);
}

static void *receive_slowly(void *arg)
{
	struct slow *s = arg;

	if (veth_readable(s->thread, VETH_WAIT_MS))
		hydns_lanes_receive(s->thread, 64, take_slowly, s);
	return NULL;
}

static void a_lane_waits_for_its_threads(void **state)
{
	struct veth *v = *state;
	struct slow s = { .thread = hydns_lanes_thread(v->lanes, 0) };
	bool left;
	pthread_t thread;

	veth_choose(v, 0);
	assert_int_equal(pthread_create(&thread, NULL, receive_slowly, &s), 0);
	send_number(v, 0);
	for (unsigned ms = 0; ms < VETH_WAIT_MS && !atomic_load(&s.inside); ms++)
		usleep(1000);
	assert_true(atomic_load(&s.inside));
	hydns_lane_close(v->lanes, v->place, 0, count_beat, &s);
	left = atomic_load(&s.left);
	atomic_fetch_add(&s.beats, 5);
	pthread_join(thread, NULL);
	assert_true(left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_query_is_taken_and_answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_corked_thread_sends_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_that_waits_is_sent_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(some_that_wait_are_sent_before_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_call_keeps_its_budget, set_up, tear_down),
		cmocka_unit_test_setup_teardown(frames_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_datagram_is_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_stopped_thread_stops_no_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_lies_in_the_rings_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_ring_refuses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_long_is_left_to_the_socket, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_closed_lane_is_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_lane_waits_for_its_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lanes_close_under_load, set_up, tear_down),
	};

	if (!veth_possible()) {
		fprintf(stderr, "skipped: needs root and AF_XDP\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
