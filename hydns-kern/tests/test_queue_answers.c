/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which answers of upstream servers the program gives to the ring of the thread that sent the query, and that it passes all
 * others. Each condition stands alone: the frame is redirected but for it. Exits 77 (skipped) where BPF programs can't be
 * loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include "rings.h"
#include "hydns/hash.h"

#define FIRST       20000           /* of the range of ports */
#define PORTS       4096
#define PORT        20010           /* that the query left from */
#define THREAD      2
#define REMOTE_PORT 53

static struct rings r;

/* An answer from the test's client, which is the server here, to the test's service address, which is the host's own. */
struct datagram {
	bool ipv6;
	unsigned vlan_tags;
	uint16_t port, remote_port;     /* 0: the usual */
	size_t len;                     /* of the message; 0: as the query's */
};

static struct frame answer(const struct datagram *d)
{
	struct query q = plain;
	struct frame f;
	uint16_t port = htons(d->port ? d->port : PORT), remote = htons(d->remote_port ? d->remote_port : REMOTE_PORT);

	q.ipv6 = d->ipv6;
	q.vlan_tags = d->vlan_tags;
	frame_query(&f, &q);
	memcpy(f.data + f.udp, &remote, 2);
	memcpy(f.data + f.udp + 2, &port, 2);
	f.data[f.dns + 2] |= 0x80;
	if (d->len)
		f.len = f.dns + d->len;
	frame_seal(&f);
	return f;
}

static void mapped(__u8 addr[16], const uint8_t ipv4[4])
{
	memset(addr, 0, 10);
	memset(addr + 10, 0xff, 2);
	memcpy(addr + 12, ipv4, 4);
}

/* The word of a query to the test's client: of this thread, resolver and device. */
static __u64 word_of(bool ipv6, unsigned resolver, unsigned device)
{
	__u8 addr[16];
	__u64 half[2];

	mapped(addr, client4);
	memcpy(half, ipv6 ? client6 : addr, 16);
	return HYDNS_PORT_WORD(THREAD, resolver, device, hydns_remote_tag(half, htons(REMOTE_PORT),
									  kernel_geometry(r.k)->tag_seed));
}

static void set_word(__u32 port, __u64 word)
{
	rings_set(&r, "hydns_ports", &port, &word);
}

static void claim(bool ipv6)
{
	set_word(PORT, word_of(ipv6, RESOLVER, DEVICE));
}

static void begin(struct kernel *k)
{
	__u8 own[16];

	rings_open(&r, k, THREADS);
	rings_open_ring(&r, THREAD);
	kernel_upstream(r.k, FIRST, PORTS);
	mapped(own, service4);
	kernel_own(r.k, own, true);
	kernel_own(r.k, service6, true);
	claim(false);
}

static int set_up(void **state)
{
	(void)state;
	begin(kern);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rings_close(&r);
	return 0;
}

static int action_of(const struct datagram *d)
{
	const struct frame f = answer(d);

	return rings_action(&r, &f, HYDNS_R_NOT_SERVICE);
}

static const struct datagram usual, usual6 = { .ipv6 = true };

#define expect_ring(d)  assert_int_equal(action_of(d), XDP_REDIRECT)
#define expect_stack(d) assert_int_equal(action_of(d), XDP_PASS)

/* -- what goes to the ring ------------------------------------------------------------------------------- */
static void an_answer_goes_to_its_threads_ring(void **state)
{
	(void)state;
	expect_ring(&usual);
	assert_int_equal(rings_counts(&r).answers, 1);
	assert_int_equal(rings_counts(&r).queries, 0);
	rings_close_ring(&r, THREAD);
	expect_stack(&usual);
	assert_int_equal(rings_counts(&r).answers, 1);
}

static void a_full_ring_leaves_the_answer_to_the_stack(void **state)
{
	volatile struct hydns_backlog *b = rings_backlog(&r, THREAD);

	(void)state;
	b->room = 1;
	expect_ring(&usual);
	expect_stack(&usual);
	assert_int_equal(rings_counts(&r).full, 1);
	b->taken++;
	expect_ring(&usual);
}

static void an_ipv6_answer_goes_to_its_threads_ring(void **state)
{
	(void)state;
	expect_stack(&usual6);
	claim(true);
	expect_ring(&usual6);
	expect_stack(&usual);
	rings_close_ring(&r, THREAD);
	expect_stack(&usual6);
}

/* Longer than any query that the program reads, up to the longest frame that the sockets take. */
static void a_long_answer_goes_to_the_ring(void **state)
{
	const size_t headers = answer(&usual).dns;
	struct datagram d = { .len = HYDNS_QUERY_MAX + 1 };

	(void)state;
	expect_ring(&d);
	d.len = rings_lane(1).frame_max - headers;
	expect_ring(&d);
	d.len++;
	expect_stack(&d);
}

static void a_tagged_answer_goes_to_the_ring(void **state)
{
	const struct datagram one = { .vlan_tags = 1 }, two = { .vlan_tags = 2, .ipv6 = true };
	struct kernel_options o = rings_kernel;
	struct kernel *tagged;

	(void)state;
	o.vlan = true;
	tagged = open_with(&o);
	begin(tagged);
	expect_ring(&one);
	claim(true);
	expect_ring(&two);
	rings_close(&r);
	kernel_close(tagged);
}

/* Where the program does not read tags, it does not know the frame. */
static void a_tagged_answer_passes_without_vlan(void **state)
{
	const struct datagram one = { .vlan_tags = 1 };
	const struct frame f = answer(&one);

	(void)state;
	assert_int_equal(rings_action(&r, &f, HYDNS_R_NOT_IP), XDP_PASS);
}

/* A stale heartbeat is no reason: the resolver waits for the answer. */
static void a_resolver_without_heartbeat_gets_its_answers(void **state)
{
	(void)state;
	kernel_page(r.k)->heartbeat_ns = 0;
	expect_ring(&usual);
}

static void an_empty_store_hides_no_answer(void **state)
{
	const struct frame f = answer(&usual);

	(void)state;
	kernel_lanes(r.k, true);
	expect_ring(&usual);
	kernel_lanes(r.k, false);
	assert_int_equal(rings_action(&r, &f, HYDNS_R_EMPTY), XDP_PASS);
}

/* -- whose port it is -------------------------------------------------------------------------------------- */
static void a_free_word_passes(void **state)
{
	(void)state;
	set_word(PORT, 0);
	expect_stack(&usual);
}

static void another_port_passes(void **state)
{
	const struct datagram next = { .port = PORT + 1 };

	(void)state;
	expect_stack(&next);
}

/* Words outside of the range have no effect, at both of its ends. */
static void ports_outside_of_the_range_pass(void **state)
{
	static const struct {
		uint16_t port;
		bool inside;
	} c[] = { { FIRST - 1, false }, { FIRST, true }, { FIRST + PORTS - 1, true }, { FIRST + PORTS, false }, { 1, false },
		  { 65535, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		const struct datagram d = { .port = c[i].port };

		set_word(c[i].port, word_of(false, RESOLVER, DEVICE));
		assert_int_equal(action_of(&d), c[i].inside ? XDP_REDIRECT : XDP_PASS);
	}
	kernel_upstream(r.k, FIRST, 0);
	expect_stack(&usual);
	kernel_upstream(r.k, 65535, 1);
	expect_ring((&(const struct datagram){ .port = 65535 }));
}

static void another_remote_port_passes(void **state)
{
	const struct datagram d = { .remote_port = REMOTE_PORT + 1 }, d6 = { .ipv6 = true, .remote_port = REMOTE_PORT + 1 };

	(void)state;
	expect_stack(&d);
	claim(true);
	expect_stack(&d6);
}

/* Each octet of the address counts. */
static void another_remote_address_passes(void **state)
{
	for (int v6 = 0; v6 < 2; v6++) {
		const struct datagram d = { .ipv6 = v6 };

		claim(v6);
		for (int i = 0; i < (v6 ? 16 : 4); i++) {
			struct frame f = answer(&d);

			f.data[f.l3 + (v6 ? 8 : 12) + i] ^= 1;
			frame_checksums(&f);
			assert_int_equal(rings_action(&r, &f, HYDNS_R_NOT_SERVICE), XDP_PASS);
		}
		expect_ring(&d);
	}
	(void)state;
}

/* This host forwards it: the port of another host is not ours. */
static void another_hosts_answer_passes(void **state)
{
	struct frame f = answer(&usual), f6 = answer(&usual6);

	(void)state;
	f.data[f.l3 + 19]++;
	frame_checksums(&f);
	assert_int_equal(rings_action(&r, &f, HYDNS_R_NOT_SERVICE), XDP_PASS);
	claim(true);
	f6.data[f6.l3 + 39]++;
	frame_checksums(&f6);
	assert_int_equal(rings_action(&r, &f6, HYDNS_R_NOT_SERVICE), XDP_PASS);
}

/* -- the lane ------------------------------------------------------------------------------------------------ */
static void another_device_passes(void **state)
{
	(void)state;
	set_word(PORT, word_of(false, RESOLVER, DEVICE + 1));
	expect_stack(&usual);
}

static void another_resolvers_lane_passes(void **state)
{
	struct hydns_lane lane = rings_lane(THREADS);

	(void)state;
	set_word(PORT, word_of(false, RESOLVER + 1, DEVICE));
	expect_stack(&usual);
	claim(false);
	lane.resolver = RESOLVER + 1;
	rings_set_lane(&r, &lane);
	expect_stack(&usual);
}

static void without_a_lane_it_passes(void **state)
{
	struct hydns_lane_key queue = { .ifindex = rings_here.ifindex, .queue = 1 }, link = { .ifindex = 2 };
	struct hydns_lane lane = rings_lane(THREADS);

	(void)state;
	assert_int_equal(bpf_map_delete_elem(kernel_map(r.k, "hydns_lanes"), &rings_here), 0);
	expect_stack(&usual);
	rings_set(&r, "hydns_lanes", &queue, &lane);
	rings_set(&r, "hydns_lanes", &link, &lane);
	expect_stack(&usual);
	rings_set_lane(&r, &lane);
	expect_ring(&usual);
}

static void without_a_gate_it_passes(void **state)
{
	(void)state;
	rings_close_gate(&r);
	expect_stack(&usual);
}

/* The plugin's word on its page ends it at once. */
static void without_the_part_it_passes(void **state)
{
	(void)state;
	kernel_page(r.k)->queue = HYDNS_QUEUE_CLIENTS;
	expect_stack(&usual);
	kernel_page(r.k)->queue = HYDNS_QUEUE_UPSTREAM;
	expect_ring(&usual);
}

/* -- what the program does not read --------------------------------------------------------------------------- */
/* A fragment has the ports of another datagram, or none. */
static void fragments_pass(void **state)
{
	struct frame first = answer(&usual), last = first, six = answer(&usual6);

	(void)state;
	first.data[first.l3 + 6] = 0x20;
	frame_checksums(&first);
	assert_int_equal(rings_action(&r, &first, HYDNS_R_FRAGMENT), XDP_PASS);
	last.data[last.l3 + 7] = 1;
	frame_checksums(&last);
	assert_int_equal(rings_action(&r, &last, HYDNS_R_FRAGMENT), XDP_PASS);
	six.data[six.l3 + 6] = 44;
	assert_int_equal(rings_action(&r, &six, HYDNS_R_FRAGMENT), XDP_PASS);
}

static void options_and_wrong_lengths_pass(void **state)
{
	struct frame options = answer(&usual), length = options, group = options;

	(void)state;
	options.data[options.l3] = 0x46;
	frame_checksums(&options);
	assert_int_equal(rings_action(&r, &options, HYDNS_R_IP_UNUSUAL), XDP_PASS);
	length.data[length.udp + 5]--;
	assert_int_equal(rings_action(&r, &length, HYDNS_R_UDP_LENGTH), XDP_PASS);
	group.data[0] |= 1;
	assert_int_equal(rings_action(&r, &group, HYDNS_R_GROUP_ADDRESS), XDP_PASS);
}

static void paused_it_passes(void **state)
{
	const struct frame f = answer(&usual);

	(void)state;
	kernel_pause(r.k, true);
	assert_int_equal(rings_action(&r, &f, HYDNS_R_PAUSED), XDP_PASS);
}

/* A datagram to a service is a query or nothing, whatever its port's word says. */
static void a_service_in_the_range_keeps_its_queries(void **state)
{
	const struct datagram d = { .port = SERVICE_PORT };
	const struct frame f = answer(&d);

	(void)state;
	kernel_upstream(r.k, 1, 1000);
	set_word(SERVICE_PORT, word_of(false, RESOLVER, DEVICE));
	assert_int_equal(rings_action(&r, &f, HYDNS_R_BAD_SOURCE), XDP_PASS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_goes_to_its_threads_ring),
		TEST(a_full_ring_leaves_the_answer_to_the_stack),
		TEST(an_ipv6_answer_goes_to_its_threads_ring),
		TEST(a_long_answer_goes_to_the_ring),
		cmocka_unit_test(a_tagged_answer_goes_to_the_ring),
		TEST(a_tagged_answer_passes_without_vlan),
		TEST(a_resolver_without_heartbeat_gets_its_answers),
		TEST(an_empty_store_hides_no_answer),
		TEST(a_free_word_passes),
		TEST(another_port_passes),
		TEST(ports_outside_of_the_range_pass),
		TEST(another_remote_port_passes),
		TEST(another_remote_address_passes),
		TEST(another_hosts_answer_passes),
		TEST(another_device_passes),
		TEST(another_resolvers_lane_passes),
		TEST(without_a_lane_it_passes),
		TEST(without_a_gate_it_passes),
		TEST(without_the_part_it_passes),
		TEST(fragments_pass),
		TEST(options_and_wrong_lengths_pass),
		TEST(paused_it_passes),
		TEST(a_service_in_the_range_keeps_its_queries),
	};

	return expect_run_with(&rings_kernel, tests);
}
