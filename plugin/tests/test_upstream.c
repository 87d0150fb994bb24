/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Queries to upstream on a real interface (veth.h), with the kernel's routes, neighbours and ICMP errors. The test is the
 * server at the far end, the link thread, and hydnsd: the words of ports are memory, and stray sockets are bound to the only
 * port of the range. The clock is the test's. Skipped where the process may not make namespaces or load programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "plugin/queue/upstream.h"
#include "plugin/queue/lanes_internal.h"
#include "plugin/tests/veth.h"

#define THREAD      1             /* of those two: the one that asks */
#define RESOLVER    3
#define FIRST       20000
#define PORTS       4096
#define SERVER      53
#define UNANSWERED  16            /* queries in a row, ... */
#define SILENCE     1000          /* ... in so many milliseconds at least, then sockets */
#define PROBES      4             /* that try in a suspension, one after the other, ... */
#define PROBE       1000          /* ... for so many milliseconds each */
#define STRAYS      8             /* in a second, then sockets */
#define SEARCHES    4             /* for the queries of errors, in a tick of the clock */
#define TURNS       64            /* with frames, then the sockets are read */

static struct veth veth;
static struct hydns_ways *ways;
static struct hydns_upstream *all;
static struct hydns_upstream_thread *upstream;
static struct hydns_lane_thread *lanes;
static int words;                 /* memory, as the map is */
static uint64_t *word, now_ms;
static const uint8_t question[] = "question", answer[] = "the answer";

static void use_range(uint16_t first, uint16_t count)
{
	const struct hydns_port_range range = { .first = first, .count = count, .resolver = RESOLVER, .seed = { 11, 12 } };

	assert_int_equal(hydns_ports_use(hydns_upstream_ports(all), words, &range), 0);
}

static int set_up(void **state)
{
	(void)state;
	veth_begin(&veth);
	veth_run("for f in near lo; do echo 0 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done; ip link set lo up; "
		 "ip addr add 10.99.0.1/24 dev near && ip addr add fd99::1/64 dev near nodad && "
		 "ip neigh replace 10.99.0.2 lladdr 02:00:00:00:00:02 dev near nud permanent && "
		 "ip neigh replace fd99::2 lladdr 02:00:00:00:00:02 dev near nud permanent");
	ways = hydns_ways_new(VETH_THREADS, (const uint64_t[2]){ 13, 14 });
	assert_non_null(ways);
	all = hydns_upstream_new(veth.lanes, ways, VETH_THREADS);
	assert_non_null(all);
	words = memfd_create("words", MFD_CLOEXEC);
	assert_int_equal(ftruncate(words, HYDNS_PORTS * sizeof(*word)), 0);
	word = mmap(NULL, HYDNS_PORTS * sizeof(*word), PROT_READ | PROT_WRITE, MAP_SHARED, words, 0);
	assert_ptr_not_equal(word, MAP_FAILED);
	use_range(FIRST, PORTS);
	upstream = hydns_upstream_thread(all, THREAD);
	lanes = hydns_lanes_thread(veth.lanes, THREAD);
	veth_choose(&veth, THREAD);
	now_ms = 1000000;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hydns_upstream_end_all(upstream);
	for (uint32_t port = 0; port < HYDNS_PORTS; port++)
		assert_int_equal(word[port], 0);
	hydns_upstream_free(all);
	hydns_ways_free(ways);
	munmap(word, HYDNS_PORTS * sizeof(*word));
	close(words);
	veth_end(&veth);
	return 0;
}

static uint64_t detours(enum hydns_detour why)
{
	return hydns_lanes_counts(lanes)->detour[why];
}

static uint64_t all_detours(void)
{
	uint64_t n = 0;

	for (unsigned why = 0; why < HYDNS_DETOURS; why++)
		n += detours(why);
	return n;
}

/* --- queries ---------------------------------------------------------------------------------------------- */
static uint32_t in_turn(void *arg, uint32_t n)
{
	static uint32_t number;

	(void)arg;
	return number++ % n;
}

static struct hydns_upstream_query query_to(const char *server)
{
	struct hydns_upstream_query q = { .payload = question, .len = sizeof(question), .owner = &all, .random = in_turn,
					  .to.port = SERVER };

	if (inet_pton(AF_INET, server, q.to.remote + 12) == 1)
		q.to.remote[10] = q.to.remote[11] = 0xff;
	else
		assert_int_equal(inet_pton(AF_INET6, server, q.to.remote), 1);
	return q;
}

static uint16_t ask(void)
{
	const struct hydns_upstream_query q = query_to("10.99.0.2");

	return hydns_upstream_send(upstream, &q, now_ms);
}

/* The first look at a way makes a place, the link thread asks the kernel, and then it is known. */
static void learn(const char *server)
{
	const struct hydns_upstream_query q = query_to(server);

	assert_int_equal(hydns_upstream_send(upstream, &q, now_ms), 0);
	hydns_ways_follow(ways);
}

static uint16_t ask_well(void)
{
	const uint16_t port = ask();

	assert_int_not_equal(port, 0);
	return port;
}

static void expect_detour(const struct hydns_upstream_query *q, enum hydns_detour why)
{
	const uint64_t before = detours(why), others = all_detours() - before, sent = hydns_lanes_counts(lanes)->sent;

	assert_int_equal(hydns_upstream_send(upstream, q, now_ms), 0);
	assert_int_equal(detours(why), before + 1);
	assert_int_equal(all_detours() - detours(why), others);
	assert_int_equal(hydns_lanes_counts(lanes)->sent, sent);
}

static void expect_no_ports(void)
{
	for (uint32_t port = 0; port < HYDNS_PORTS; port++)
		assert_int_equal(word[port], 0);
}

/* --- the server ------------------------------------------------------------------------------------------- */
static bool wire_has(struct hydns_datagram *d, uint8_t *frame, size_t room, int wait_ms)
{
	struct pollfd p = { .fd = veth.wire, .events = POLLIN };

	while (poll(&p, 1, wait_ms) == 1) {
		ssize_t n = recv(veth.wire, frame, room, 0);

		if (n > 0 && hydns_frame_read(d, frame, (size_t)n, true) && d->path.local_port == SERVER)
			return true;
	}
	return false;
}

/* The query that comes next, without any others. */
static struct hydns_path take_query(uint16_t port)
{
	struct hydns_datagram d;
	uint8_t frame[2048];

	assert_true(wire_has(&d, frame, sizeof(frame), VETH_WAIT_MS));
	assert_int_equal(d.path.remote_port, port);
	assert_int_equal(d.len, sizeof(question));
	assert_memory_equal(d.payload, question, sizeof(question));
	return d.path;
}

static void send_answer(const struct hydns_path *path)
{
	const struct hydns_ip_options o = { .hops = 64, .mtu = VETH_MTU };
	uint8_t frame[2048];
	size_t n = hydns_frame_write(frame, sizeof(frame), path, &o, answer, sizeof(answer));

	assert_int_equal(send(veth.wire, frame, n, 0), n);
}

/* --- answers ---------------------------------------------------------------------------------------------- */
struct taken {
	unsigned datagrams, answers;
	void *owner;
};

static void take(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	struct taken *t = arg;
	void *owner = hydns_upstream_owner(upstream, d, way);

	t->datagrams++;
	if (!owner)
		return;
	t->answers++;
	t->owner = owner;
	assert_int_equal(d->len, sizeof(answer));
	assert_memory_equal(d->payload, answer, sizeof(answer));
	hydns_upstream_end(upstream, d->path.local_port, now_ms);
}

static void take_stray(void *arg, void *owner, const struct hydns_datagram *d)
{
	struct taken *t = arg;

	t->answers++;
	t->owner = owner;
	assert_int_equal(d->len, sizeof(answer));
	assert_memory_equal(d->payload, answer, sizeof(answer));
	hydns_upstream_end(upstream, d->path.local_port, now_ms);
}

/* As a resolver thread when its event loop wakes it. */
static void receive(struct taken *t)
{
	unsigned frames = hydns_lanes_receive(lanes, 64, take, t);

	hydns_upstream_read_strays(upstream, frames, now_ms, take_stray, NULL, t);
}

static void receive_until(struct taken *t, unsigned datagrams)
{
	while (t->datagrams < datagrams) {
		assert_true(veth_readable(lanes, VETH_WAIT_MS));
		receive(t);
	}
}

/* A query from a port, and its answer by the ring. */
static void answered(uint16_t port)
{
	struct hydns_path path = take_query(port);
	struct taken t = { 0 };

	send_answer(&path);
	receive_until(&t, 1);
	assert_int_equal(t.answers, 1);
}

/* --- tests: a query and its answer -------------------------------------------------------------------------- */
static void assert_leaves(const char *server, bool ipv6)
{
	struct hydns_upstream_query q = query_to(server);
	struct hydns_datagram d;
	uint8_t frame[2048], local[16];
	uint16_t port;

	learn(server);
	q.dscp = 10;
	port = hydns_upstream_send(upstream, &q, now_ms);
	assert_in_range(port, FIRST, FIRST + PORTS - 1);
	assert_int_equal(HYDNS_PORT_THREAD(word[port]), THREAD);
	assert_int_equal(HYDNS_PORT_RESOLVER(word[port]), RESOLVER);
	assert_int_equal(HYDNS_PORT_DEVICE(word[port]), VETH_DEVICE);
	assert_true(wire_has(&d, frame, sizeof(frame), VETH_WAIT_MS));
	assert_memory_equal(frame, ((uint8_t[12]){ 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 }), 12);
	assert_int_equal(d.path.ipv6, ipv6);
	assert_int_equal(ipv6 ? frame[14 + 7] : frame[14 + 8], ipv6 ? 61 : 60);        /* the lane's hop limit, TTL */
	assert_int_equal(ipv6 ? (frame[14] & 15) << 2 | frame[15] >> 6 : frame[15] >> 2, 10);
	memset(local, 0, sizeof(local));
	assert_int_equal(inet_pton(ipv6 ? AF_INET6 : AF_INET, ipv6 ? "fd99::1" : "10.99.0.1", local), 1);
	assert_memory_equal(d.path.remote, local, sizeof(local));
	assert_int_equal(d.path.remote_port, port);
	assert_memory_equal(d.payload, question, sizeof(question));
	send_answer(&d.path);
}

static void a_query_leaves_and_its_answer_is_found(void **state)
{
	const struct hydns_queue_counts *n = hydns_lanes_counts(lanes);
	struct taken t = { 0 };

	(void)state;
	assert_leaves("10.99.0.2", false);
	receive_until(&t, 1);
	assert_leaves("fd99::2", true);
	receive_until(&t, 2);
	assert_int_equal(t.answers, 2);
	assert_ptr_equal(t.owner, &all);
	expect_no_ports();
	assert_int_equal(n->upstream, 2);
	assert_int_equal(n->sent, 2);
	assert_int_equal(n->received, 2);
	assert_int_equal(n->answers, 2);
	assert_int_equal(all_detours(), 2);            /* while the ways were learned */
}

static void flip(struct hydns_path *p, unsigned what, unsigned bit)
{
	const uint16_t turned = (uint16_t)(1U << bit % 16);

	switch (what) {
	case 0: p->local[bit / 8] ^= (uint8_t)(1U << bit % 8); break;
	case 1: p->remote[bit / 8] ^= (uint8_t)(1U << bit % 8); break;
	case 2: p->local_port ^= turned; break;
	default: p->remote_port ^= turned; break;
	}
}

/* What somebody sends who does not see the query, each wrong in one bit. */
static void nothing_less_is_its_answer(void **state)
{
	struct hydns_path path, wrong;
	struct taken t = { 0 };
	unsigned sent = 0;
	uint16_t port;

	(void)state;
	learn("10.99.0.2");
	port = ask_well();
	path = take_query(port);
	for (unsigned what = 0; what < 4; what++)
		for (unsigned bit = 0; bit < (what < 2 ? 32 : 16); bit++) {
			wrong = path;
			flip(&wrong, what, bit);
			send_answer(&wrong);
			receive_until(&t, ++sent);
		}
	assert_int_equal(t.answers, 0);
	assert_int_equal(hydns_lanes_counts(lanes)->answers, 0);
	send_answer(&path);
	receive_until(&t, ++sent);
	assert_int_equal(t.answers, 1);
	send_answer(&path);                            /* once more: the query has ended */
	receive_until(&t, ++sent);
	assert_int_equal(t.answers, 1);
}

static void other_device(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	struct hydns_way other = *way;

	other.device++;
	assert_null(hydns_upstream_owner(upstream, d, &other));
	take(arg, d, way);
}

static void an_answer_by_another_interface_is_none(void **state)
{
	struct hydns_path path;
	struct taken t = { 0 };

	(void)state;
	learn("10.99.0.2");
	path = take_query(ask_well());
	send_answer(&path);
	while (t.datagrams == 0) {
		assert_true(veth_readable(lanes, VETH_WAIT_MS));
		hydns_lanes_receive(lanes, 64, other_device, &t);
	}
	assert_int_equal(t.answers, 1);
}

/* --- tests: detours ------------------------------------------------------------------------------------------ */
static void what_takes_a_socket(void **state)
{
	const struct hydns_upstream_query none = query_to("198.51.100.1"), fresh = query_to("10.99.0.2");
	uint8_t payload[HYDNS_UPSTREAM_QUERY_MAX + 1] = { 0 };
	struct hydns_upstream_query longer = fresh;

	(void)state;
	expect_detour(&none, HYDNS_DETOUR_NO_WAY);
	expect_detour(&fresh, HYDNS_DETOUR_NO_NEIGHBOUR);
	hydns_ways_follow(ways);
	longer.payload = payload;
	longer.len = sizeof(payload);
	expect_detour(&longer, HYDNS_DETOUR_TOO_LONG);
	longer.len--;
	assert_int_not_equal(hydns_upstream_send(upstream, &longer, now_ms), 0);
	hydns_upstream_end_all(upstream);
	expect_no_ports();
	hydns_ports_pause(hydns_upstream_ports(all));
	expect_detour(&fresh, HYDNS_DETOUR_NO_RANGE);
	use_range(FIRST, 1);
	ask_well();
	expect_detour(&fresh, HYDNS_DETOUR_NO_PORT);
}

/* In a second, one query goes by the socket, and the kernel makes sure that the neighbour is still there. */
static void a_doubtful_neighbour_is_refreshed(void **state)
{
	const struct hydns_upstream_query q = query_to("10.99.0.2");

	(void)state;
	learn("10.99.0.2");
	ask_well();
	veth_run("ip neigh replace 10.99.0.2 lladdr 02:00:00:00:00:02 dev near nud stale");
	hydns_ways_follow(ways);
	expect_detour(&q, HYDNS_DETOUR_REFRESH_NEIGHBOUR);
	ask_well();
}

static void interfaces_without_lanes(void **state)
{
	const struct hydns_upstream_query q = query_to("10.98.0.2"), near = query_to("10.99.0.2");

	(void)state;
	veth_run("ip link add nearer type veth peer name farther && ip link set nearer up && ip link set farther up && "
		 "ip addr add 10.98.0.1/24 dev nearer && "
		 "ip neigh replace 10.98.0.2 lladdr 02:00:00:00:00:03 dev nearer nud permanent");
	hydns_ways_follow(ways);
	learn("10.98.0.2");
	expect_detour(&q, HYDNS_DETOUR_OTHER_DEVICE);
	learn("10.99.0.2");
	ask_well();
	hydns_lane_close(veth.lanes, veth.place, 0, NULL, NULL);
	expect_detour(&near, HYDNS_DETOUR_OTHER_DEVICE);
	veth.place = veth_open_lane(&veth);
	assert_true(veth.place >= 0);
	ask_well();
	veth_run("ip link del nearer");
}

static uint32_t close_lane(void *arg, uint32_t n)
{
	hydns_lane_close(veth.lanes, veth.place, 0, NULL, NULL);
	return in_turn(arg, n);
}

/* While its port is drawn. */
static void the_lane_may_close_meanwhile(void **state)
{
	struct hydns_upstream_query q = query_to("10.99.0.2");

	(void)state;
	learn("10.99.0.2");
	q.random = close_lane;
	expect_detour(&q, HYDNS_DETOUR_LANE_GONE);
	expect_no_ports();
	veth.place = veth_open_lane(&veth);
	assert_true(veth.place >= 0);
	ask_well();
}

/* More queries in one turn than there are frames to send from. Eight would leave at once, and their frames be free again, so there
 * are fewer. */
static void a_full_ring_leaves_no_port_behind(void **state)
{
	static bool seen[HYDNS_PORTS];
	unsigned asked = 0, claimed = 0;

	(void)state;
	learn("10.99.0.2");
	take_query(ask_well());
	atomic_load(&lanes->all->lane[0])->frees = 3;
	lanes->waiting_most = 8;       /* as when many frames have come together */
	hydns_lanes_cork(lanes);
	while (asked < 8 && ask())
		asked++;
	hydns_lanes_uncork(lanes);
	assert_in_range(asked, 3, 7);
	assert_int_equal(detours(HYDNS_DETOUR_RING_FULL), 1);
	for (uint32_t port = FIRST; port < FIRST + PORTS; port++)
		claimed += word[port] != 0;
	assert_int_equal(claimed, asked + 1);
	for (unsigned i = 0; i < asked; i++) {
		struct hydns_datagram d;
		uint8_t frame[2048];

		assert_true(wire_has(&d, frame, sizeof(frame), VETH_WAIT_MS));
		assert_int_not_equal(word[d.path.remote_port], 0);
		assert_false(seen[d.path.remote_port]);
		seen[d.path.remote_port] = true;
	}
	ask_well();
}

/* The link is down, and the link thread has not heard of it yet. */
static void a_stuck_interface_leaves_no_port_behind(void **state)
{
	const struct hydns_upstream_query q = query_to("10.99.0.2");
	uint16_t port;

	(void)state;
	learn("10.99.0.2");
	hydns_upstream_end(upstream, ask_well(), now_ms);
	veth_run("ip link set near down");
	port = ask_well();                             /* it waits in the ring */
	expect_detour(&q, HYDNS_DETOUR_STUCK);
	hydns_upstream_end(upstream, port, now_ms);
	expect_no_ports();
}

/* --- tests: suspension ---------------------------------------------------------------------------------------- */
static void unanswered_within(unsigned queries, uint64_t ms)
{
	uint16_t port[2 * UNANSWERED];

	for (unsigned i = 0; i < queries; i++) {
		port[i] = ask_well();
		take_query(port[i]);
	}
	now_ms += ms;
	for (unsigned i = 0; i < queries; i++)
		hydns_upstream_end(upstream, port[i], now_ms);
}

static void unanswered(unsigned queries)
{
	unanswered_within(queries, SILENCE);
}

static void expect_suspended(uint64_t at_ms)
{
	const struct hydns_upstream_query q = query_to("10.99.0.2");
	const uint64_t now = now_ms;

	now_ms = at_ms;
	expect_detour(&q, HYDNS_DETOUR_SUSPENDED);
	now_ms = now;
}

static void without_answers_queries_take_sockets(void **state)
{
	(void)state;
	learn("10.99.0.2");
	unanswered(UNANSWERED - 1);
	answered(ask_well());                          /* in a row, it says */
	unanswered(UNANSWERED - 1);
	answered(ask_well());
	unanswered(UNANSWERED);
	expect_suspended(now_ms);
	expect_suspended(now_ms + 999);
	now_ms += 1000;
	answered(ask_well());                          /* it is over */
	unanswered(UNANSWERED - 1);
	answered(ask_well());
}

static void take_for_later(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	struct taken *t = arg;

	t->answers += hydns_upstream_owner(upstream, d, way) != NULL;
}

/* A resolver may take many answers before the first of their queries ends. */
static void answered_queries_may_end_together(void **state)
{
	uint16_t port[2 * UNANSWERED], later;
	struct taken t = { 0 };

	(void)state;
	learn("10.99.0.2");
	for (unsigned i = 0; i < 2 * UNANSWERED; i++) {
		struct hydns_path path;

		port[i] = ask_well();
		path = take_query(port[i]);
		send_answer(&path);
	}
	while (t.answers < 2 * UNANSWERED) {
		assert_true(veth_readable(lanes, VETH_WAIT_MS));
		hydns_lanes_receive(lanes, 64, take_for_later, &t);
	}
	later = ask_well();
	now_ms += SILENCE;                             /* a long time, if those had not been answered */
	for (unsigned i = 0; i < 2 * UNANSWERED; i++)
		hydns_upstream_end(upstream, port[i], now_ms);
	answered(later);
	answered(ask_well());
}

/* A server that a busy machine lets wait leaves many queries without an answer, but not for long. */
static void a_moment_without_answers_is_none(void **state)
{
	(void)state;
	learn("10.99.0.2");
	unanswered_within(2 * UNANSWERED, SILENCE - 1);
	answered(ask_well());
	now_ms += 1000000;                             /* nothing was asked: that is no silence */
	unanswered_within(UNANSWERED - 1, 0);
	unanswered_within(2, SILENCE - 1);
	unanswered_within(1, 1);                       /* a second after the first one */
	expect_suspended(now_ms);
}

/* One probe tries, the others wait for it. */
static uint16_t probe(void)
{
	uint16_t port = ask_well();

	take_query(port);
	expect_suspended(now_ms);
	expect_suspended(now_ms + PROBE - 1);
	return port;
}

static void suspensions_last_twice_as_long_each_time(void **state)
{
	(void)state;
	learn("10.99.0.2");
	unanswered(UNANSWERED);
	for (uint64_t ms = 1000; ms <= 256000; ms *= 2) {
		const uint64_t lasts = ms < 64000 ? ms : 64000;

		expect_suspended(now_ms + lasts - 1);
		now_ms += lasts;
		for (unsigned i = 0; i < PROBES; i++)
			hydns_upstream_end(upstream, probe(), now_ms);
	}
	now_ms += 64000;
	answered(ask_well());
	unanswered(UNANSWERED);
	expect_suspended(now_ms + 999);
	now_ms += 1000;
	answered(ask_well());                          /* as at first */
}

/* A resolver may wait for minutes for a server that is dead. */
static void a_probe_is_not_waited_for_long(void **state)
{
	uint16_t port[PROBES];

	(void)state;
	learn("10.99.0.2");
	for (unsigned last = 0; last < 2; last++) {
		unanswered(UNANSWERED);
		now_ms += 1000;
		for (unsigned i = 0; i < PROBES; i++) {
			port[i] = probe();
			now_ms += PROBE;
		}
		expect_suspended(now_ms);              /* twice as long, from this query on */
		expect_suspended(now_ms + 1999);
		now_ms += 2000;
		for (unsigned i = 0; i < PROBES; i++)
			hydns_upstream_end(upstream, port[i], now_ms);
		hydns_upstream_end(upstream, probe(), now_ms);
		hydns_upstream_end(upstream, probe(), now_ms);
		answered(ask_well());                  /* two dead servers do not matter */
		answered(ask_well());
	}
}

/* Its server is slow. */
static void a_late_answer_ends_the_suspension(void **state)
{
	struct hydns_path path;
	struct taken t = { 0 };

	(void)state;
	learn("10.99.0.2");
	unanswered(UNANSWERED);
	now_ms += 1000;
	path = take_query(ask_well());
	now_ms += PROBE;
	probe();
	send_answer(&path);
	receive_until(&t, 1);
	assert_int_equal(t.answers, 1);
	answered(ask_well());
	answered(ask_well());
}

/* Whatever becomes of queries that left before. */
static void only_probes_decide(void **state)
{
	uint16_t before[2 * UNANSWERED], port;

	(void)state;
	learn("10.99.0.2");
	for (unsigned i = 0; i < 2 * UNANSWERED; i++) {
		before[i] = ask_well();
		take_query(before[i]);
	}
	unanswered(UNANSWERED);
	for (unsigned i = 0; i < UNANSWERED; i++)
		hydns_upstream_end(upstream, before[i], now_ms);
	now_ms += 1000;
	port = ask_well();
	for (unsigned i = UNANSWERED; i < 2 * UNANSWERED; i++)
		hydns_upstream_end(upstream, before[i], now_ms);
	expect_suspended(now_ms);
	answered(port);
	answered(ask_well());

	unanswered(UNANSWERED);
	now_ms += 1000;
	probe();
	hydns_upstream_end_all(upstream);              /* the resolver reloads: another one may try */
	answered(ask_well());
	answered(ask_well());
}

/* --- tests: strays -------------------------------------------------------------------------------------------- */
static int stray_socket(bool ipv6, uint16_t port)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), yes = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);      /* the next one follows */
	if (ipv6) {
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)), 0);
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &yes, sizeof(yes)), 0);
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &yes, sizeof(yes)), 0);
		assert_int_equal(bind(fd, (const struct sockaddr *)&v6, sizeof(v6)), 0);
	} else {
		assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &yes, sizeof(yes)), 0);
		assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof(yes)), 0);
		assert_int_equal(bind(fd, (const struct sockaddr *)&v4, sizeof(v4)), 0);
	}
	return fd;
}

/* This thread's are bound to this port; returns both. */
static const int *use_strays(uint16_t port)
{
	static int fd[2 * VETH_THREADS];

	for (int i = 0; i < 2 * VETH_THREADS; i++)
		fd[i] = stray_socket(i & 1, i / 2 == THREAD ? port : 0);
	assert_int_equal(hydns_upstream_use_strays(all, fd), 0);
	return fd + 2 * THREAD;
}

static void receive_answers(struct taken *t, unsigned answers)
{
	while (t->answers < answers) {
		assert_true(veth_readable(lanes, VETH_WAIT_MS));
		receive(t);
	}
}

static struct hydns_path ask_server(const char *server)
{
	const struct hydns_upstream_query q = query_to(server);
	uint16_t port = hydns_upstream_send(upstream, &q, now_ms);

	assert_int_equal(port, FIRST);
	return take_query(port);
}

static void strays_find_their_owner(void **state)
{
	const char *const server[] = { "10.99.0.2", "fd99::2" };
	struct hydns_path path, wrong;
	struct taken t = { 0 };

	(void)state;
	use_range(FIRST, 1);
	for (unsigned i = 0; i < 2; i++) {
		use_strays(FIRST);                     /* hydnsd's next ones, the second time */
		veth_choose(&veth, THREAD);
		learn(server[i]);
		path = ask_server(server[i]);
		veth_choose(&veth, VETH_PASS);
		wrong = path;
		wrong.local_port = SERVER + 1;
		send_answer(&wrong);
		send_answer(&path);
		receive_answers(&t, i + 1);
		assert_ptr_equal(t.owner, &all);
		assert_int_equal(hydns_lanes_counts(lanes)->strays, i + 1);
		send_answer(&path);                    /* its query has ended */
		assert_true(veth_readable(lanes, VETH_WAIT_MS));
		receive(&t);
		assert_false(veth_readable(lanes, 0));
		assert_int_equal(t.answers, i + 1);
	}
	assert_int_equal(hydns_lanes_counts(lanes)->strays, 2);
	assert_int_equal(hydns_lanes_counts(lanes)->answers, 0);
}

static void stray(struct taken *t, uint64_t at_ms)
{
	struct hydns_path path;

	now_ms = at_ms;
	path = ask_server("10.99.0.2");
	send_answer(&path);
	receive_answers(t, t->answers + 1);
}

static void strays_suspend(void **state)
{
	const uint64_t begin = now_ms;
	struct taken t = { 0 };

	(void)state;
	use_range(FIRST, 1);
	use_strays(FIRST);
	learn("10.99.0.2");
	veth_choose(&veth, VETH_PASS);
	for (unsigned i = 0; i < STRAYS - 1; i++)
		stray(&t, begin);
	veth_choose(&veth, THREAD);
	now_ms = begin + 1000;
	answered(ask_well());
	veth_choose(&veth, VETH_PASS);
	for (unsigned i = 0; i < STRAYS; i++)
		stray(&t, begin + 1500);
	expect_suspended(begin + 1500);
	expect_suspended(begin + 2499);
	stray(&t, begin + 2500);                       /* the probe's answer is a stray, too */
	expect_suspended(begin + 4499);
	veth_choose(&veth, THREAD);
	now_ms = begin + 4500;
	answered(ask_well());
	answered(ask_well());
}

/* The answers that are under way when a suspension begins do not make it longer. */
static void late_strays_change_nothing(void **state)
{
	struct hydns_path path[4 * STRAYS];
	struct taken t = { 0 };
	int fd[2 * VETH_THREADS];

	(void)state;
	learn("10.99.0.2");
	for (unsigned i = 0; i < 4 * STRAYS; i++)
		path[i] = take_query(ask_well());
	veth_choose(&veth, VETH_PASS);
	for (unsigned i = 0; i < 4 * STRAYS; i++) {
		for (unsigned k = 0; k < 2 * VETH_THREADS; k++)
			fd[k] = stray_socket(k & 1, k == 2 * THREAD ? path[i].remote_port : 0);
		assert_int_equal(hydns_upstream_use_strays(all, fd), 0);
		send_answer(&path[i]);
		receive_answers(&t, i + 1);
		now_ms += i == 2 * STRAYS ? 1000 : 0;
	}
	veth_choose(&veth, THREAD);
	answered(ask_well());
}

/* Frames have woken the thread: then the sockets are not looked at each time. */
static void sockets_wait_while_frames_come(void **state)
{
	struct hydns_path path;
	struct taken t = { 0 };

	(void)state;
	use_range(FIRST, 1);
	use_strays(FIRST);
	learn("10.99.0.2");
	path = ask_server("10.99.0.2");
	veth_choose(&veth, VETH_PASS);
	send_answer(&path);
	assert_true(veth_readable(lanes, VETH_WAIT_MS));
	for (unsigned turn = 1; turn < TURNS; turn++)
		hydns_upstream_read_strays(upstream, 1, now_ms, take_stray, NULL, &t);
	assert_int_equal(t.answers, 0);
	hydns_upstream_read_strays(upstream, 1, now_ms, take_stray, NULL, &t);
	assert_int_equal(t.answers, 1);
}

/* --- tests: ICMP errors ---------------------------------------------------------------------------------------- */
static bool has_error(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

/* Port unreachable, in answer to what it sends itself: the kernel's own, at once. */
static void make_errors(int fd, bool ipv6, unsigned count)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	for (unsigned i = 0; i < count; i++)           /* it reports an earlier error first */
		for (int tries = 0; tries < 2; tries++)
			if (sendto(fd, question, sizeof(question), 0, ipv6 ? (const void *)&v6 : (const void *)&v4,
				   ipv6 ? sizeof(v6) : sizeof(v4)) >= 0)
				break;
}

/* The thread sleeps again after so many turns at most. */
static void assert_sleeps(unsigned turns)
{
	struct taken t = { 0 };

	while (veth_readable(lanes, 0)) {
		assert_true(turns-- > 0);
		receive(&t);
	}
	assert_int_equal(t.answers, 0);
}

static void errors_do_not_keep_the_thread_awake(void **state)
{
	const int smallest = 1;
	const int *fd;

	(void)state;
	veth_run("echo 0 >/proc/sys/net/ipv4/icmp_ratelimit; echo 0 >/proc/sys/net/ipv6/icmp/ratelimit");
	fd = use_strays(FIRST);
	for (int family = 0; family < 2; family++) {
		for (unsigned count = 1; count <= 100; count += 33) {
			make_errors(fd[family], family, count);
			assert_true(has_error(fd[family]));
			assert_true(veth_readable(lanes, 0));
			assert_sleeps(count + 1);
			assert_false(has_error(fd[family]));
		}
		/* No room for any: the error is the socket's alone. */
		assert_int_equal(setsockopt(fd[family], SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest)), 0);
		make_errors(fd[family], family, 20);
		assert_true(has_error(fd[family]));
		assert_sleeps(21);
	}
}

/* Datagrams behind errors are delivered. */
static void strays_come_among_errors(void **state)
{
	struct hydns_path path;
	struct taken t = { 0 };
	const int *fd;

	(void)state;
	use_range(FIRST, 1);
	fd = use_strays(FIRST);
	learn("10.99.0.2");
	path = ask_server("10.99.0.2");
	make_errors(fd[0], false, 1);
	veth_choose(&veth, VETH_PASS);
	send_answer(&path);
	receive_answers(&t, 1);
	assert_sleeps(2);
}

struct failed {
	unsigned errors;
	int error;
	uint16_t port;
};

static void note_failure(void *arg, const struct hydns_path *path, int error)
{
	struct failed *f = arg;

	f->errors++;
	f->error = error;
	f->port = path->local_port;
}

/* From this host, to which the kernel's own errors go: by the way to another server. */
static uint16_t ask_this_host(bool ipv6)
{
	const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
	const struct hydns_upstream_query q = query_to(ipv6 ? "fd99::2" : "10.99.0.2");
	struct hydns_way way;
	uint16_t port;

	learn(ipv6 ? "fd99::2" : "10.99.0.2");
	assert_true(hydns_upstream_find(upstream, &q.to, now_ms, &way));
	memcpy(way.path.remote, ipv6 ? loopback.s6_addr : (const uint8_t[]){ 127, 0, 0, 1 }, ipv6 ? 16 : 4);
	way.path.remote_port = 9;
	port = hydns_upstream_send_by(upstream, &way, &q, now_ms);
	assert_int_not_equal(port, 0);
	return port;
}

/* As many as may be searched for in a tick of the clock. */
static void errors_fail_their_query(void **state)
{
	const int *fd;

	(void)state;
	veth_run("echo 0 >/proc/sys/net/ipv4/icmp_ratelimit; echo 0 >/proc/sys/net/ipv6/icmp/ratelimit");
	fd = use_strays(FIRST);
	for (int family = 0; family < 2; family++) {
		const uint16_t port = ask_this_host(family);
		struct failed f = { 0 };

		now_ms++;
		make_errors(fd[family], family, SEARCHES + 2);
		for (int turn = 0; turn < SEARCHES + 3; turn++)
			hydns_upstream_read_strays(upstream, 0, now_ms, take_stray, note_failure, &f);
		assert_int_equal(f.errors, SEARCHES);
		assert_int_equal(f.error, ECONNREFUSED);
		assert_int_equal(f.port, port);
		hydns_upstream_end(upstream, port, now_ms);
		make_errors(fd[family], family, 1);            /* it has ended: nobody's */
		hydns_upstream_read_strays(upstream, 0, ++now_ms, take_stray, note_failure, &f);
		assert_int_equal(f.errors, SEARCHES);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_query_leaves_and_its_answer_is_found),
		TEST(nothing_less_is_its_answer),
		TEST(an_answer_by_another_interface_is_none),
		TEST(what_takes_a_socket),
		TEST(a_doubtful_neighbour_is_refreshed),
		TEST(interfaces_without_lanes),
		TEST(the_lane_may_close_meanwhile),
		TEST(a_full_ring_leaves_no_port_behind),
		TEST(a_stuck_interface_leaves_no_port_behind),
		TEST(without_answers_queries_take_sockets),
		TEST(answered_queries_may_end_together),
		TEST(a_moment_without_answers_is_none),
		TEST(suspensions_last_twice_as_long_each_time),
		TEST(a_probe_is_not_waited_for_long),
		TEST(a_late_answer_ends_the_suspension),
		TEST(only_probes_decide),
		TEST(strays_find_their_owner),
		TEST(strays_suspend),
		TEST(late_strays_change_nothing),
		TEST(sockets_wait_while_frames_come),
		TEST(errors_do_not_keep_the_thread_awake),
		TEST(strays_come_among_errors),
		TEST(errors_fail_their_query),
	};

	if (!veth_possible()) {
		fprintf(stderr, "skipped: needs root and AF_XDP\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
