/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which queries the program forwards, what the request is, and which packets are its answer. Exits 77 (skipped) where BPF
 * programs can't be loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include "forwarding.h"
#include "hydns-kern/loader/kern.h"


static struct kernel *shared;
static struct forwarding fw;
static struct hydns_forwarding *told;
static struct ring_buffer *answers;

/* What the last drain has read. */
static struct {
	struct hydns_forwarded_query query;
	struct hydns_forward_answer answer;
	uint8_t message[HYDNS_FORWARD_ANSWER];
	unsigned queries, joined, answers;
} got;

static int read_query(void *arg, void *data, size_t len)
{
	(void)arg;
	if (len == sizeof(got.query)) {
		memcpy(&got.query, data, len);
		got.queries++;
	} else {
		got.joined++;
	}
	return 0;
}

static int read_answer(void *arg, void *data, size_t len)
{
	(void)arg;
	memcpy(&got.answer, data, sizeof(got.answer));
	assert_int_equal(len, sizeof(got.answer) + got.answer.len);
	memcpy(got.message, (uint8_t *)data + sizeof(got.answer), got.answer.len);
	got.answers++;
	return 0;
}

static struct ring_buffer *queries;

static void drain(void)
{
	ring_buffer__consume(queries);
	ring_buffer__consume(answers);
}

static int set_up(void **state)
{
	forwarding_open(&fw, shared);
	told = fw.told;
	queries = ring_buffer__new(kernel_map(shared, "hydns_parked"), read_query, NULL, NULL);
	answers = ring_buffer__new(kernel_map(shared, "hydns_answered"), read_answer, NULL, NULL);
	assert_non_null(queries);
	assert_non_null(answers);
	drain();
	memset(&got, 0, sizeof(got));
	*state = &fw.parking;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	drain();
	ring_buffer__free(queries);
	ring_buffer__free(answers);
	forwarding_close(&fw);
	return 0;
}

static struct hydns_forward_count counts(void)
{
	struct hydns_forward_count n;

	kernel_sum(shared, "hydns_fwd_count", RESOLVER, sizeof(n) / sizeof(__u64), (__u64 *)&n);
	return n;
}

/* Runs the query; *f becomes what leaves. */
static int run(const struct query *q, struct frame *f, int reason)
{
	int counted, action;

	frame_query(f, q);
	action = kernel_run(shared, f, &counted);
	if (counted != reason)
		fail_msg("%s: counted as %s, expected %s", q->name, counted < 0 ? "none or several" :
			 hydns_reason_name((enum hydns_reason)counted), hydns_reason_name((enum hydns_reason)reason));
	return action;
}

/* Forwards it; *f is the request. */
static void forward(const struct query *q, struct frame *f)
{
	assert_int_equal(run(q, f, HYDNS_R_FORWARDED), XDP_TX);
	drain();
	assert_int_equal(got.queries, 1);
	got.queries = 0;
}

/* -- requests -------------------------------------------------------------------------------------------- */
static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

static void check_request(struct frame *f, const struct query *q, bool ipv6)
{
	const struct hydns_forwarded *r = &got.query.forwarded;
	const uint8_t *m, *addr = f->data + ETH_HLEN + (ipv6 ? 8 : 12);
	uint8_t name[256];
	size_t len = name_wire(q->name, name), at;

	f->ipv6 = ipv6;
	f->l3 = ETH_HLEN;
	f->udp = ETH_HLEN + (ipv6 ? 40 : 20);
	f->dns = f->udp + 8;
	assert_null(frame_wrong(f));
	assert_int_equal(f->len, f->dns + 12 + len + 4 + 11);
	assert_memory_equal(f->data, hop_mac, 6);
	assert_memory_equal(f->data + 6, own_mac, 6);
	assert_memory_equal(addr, ipv6 ? source6 : source4, ipv6 ? 16 : 4);
	assert_memory_equal(addr + (ipv6 ? 16 : 4), ipv6 ? server6 : server4, ipv6 ? 16 : 4);
	assert_int_equal(f->data[f->udp] << 8 | f->data[f->udp + 1], r->port);
	assert_int_equal(f->data[f->udp + 2] << 8 | f->data[f->udp + 3], 53);
	m = f->data + f->dns;
	assert_memory_equal(m, &r->id, 2);
	assert_memory_equal(m + 2, "\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01", 10);
	for (at = 0; at < len; at++) {
		uint8_t plain = lower(name[at]);
		bool capital = plain >= 'a' && plain <= 'z' && HYDNS_FORWARD_CAPITAL(r->letters, at);

		assert_int_equal(m[12 + at], capital ? plain - 32 : plain);
	}
	m += 12 + len;
	assert_int_equal(m[0] << 8 | m[1], q->qtype);
	assert_memory_equal(m + 2, "\x00\x01\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00", 13);
}

static void a_query_in_a_zone_becomes_a_request(void **state)
{
	struct query q = plain, many = plain;
	struct parking *p = *state;
	struct frame f, client;

	many.name = "a.B3.c-d.e.f.g.h.i.j.k.l.m.n.Example.COM";
	frame_query(&client, &q);
	forward(&q, &f);
	check_request(&f, &q, false);
	assert_int_equal(got.query.parked.frame_len, client.len);
	assert_memory_equal(got.query.frame, client.data, client.len);
	assert_true(got.query.parked.key == parking_key(&q));
	assert_true(got.query.forwarded.generation == GENERATION);
	assert_int_equal(got.query.forwarded.epoch, EPOCH);
	assert_int_equal(got.query.forwarded.number, NUMBER);
	assert_int_equal(got.query.forwarded.zone, ZONE);
	assert_int_equal(got.query.forwarded.upstream, SERVER);
	assert_in_range(got.query.forwarded.port, FIRST, FIRST + PORTS - 1);
	assert_int_equal(p->bounds->waiting, 1);
	forward(&many, &f);
	check_request(&f, &many, false);
}

static void both_families_lead_to_both(void **state)
{
	struct query q = plain;
	struct frame f;

	(void)state;
	q.ipv6 = q.edns = true;
	forward(&q, &f);
	check_request(&f, &q, false);
	forwarding_zone(&fw, "example.com", 1U << SERVER6, true);
	forwarding_way(&fw, SERVER6, true);
	q.name = "other.example.com";
	forward(&q, &f);
	check_request(&f, &q, true);
	q.ipv6 = false;
	q.name = "third.example.com";
	forward(&q, &f);
	check_request(&f, &q, true);
}

static void expect_left(const struct query *q, int left)
{
	struct hydns_forward_count before = counts(), after;
	struct frame f, sent;

	frame_query(&sent, q);
	assert_int_equal(run(q, &f, HYDNS_R_MISS), XDP_PASS);
	assert_int_equal(f.len, sent.len);
	assert_memory_equal(f.data, sent.data, f.len);
	after = counts();
	assert_true(after.sent == before.sent);
	for (int i = 0; i < HYDNS_FORWARD_LEFTS; i++)
		if (after.left[i] != before.left[i] + (i == left))
			fail_msg("%s: left[%d] rose by %llu", q->name, i, (unsigned long long)(after.left[i] - before.left[i]));
}

static void other_queries_pass(void **state)
{
	struct query q = plain, with_do = plain, norec = plain, ds = plain, outside = plain, above = plain, labels = plain;
	struct parking *p = *state;
	__u32 here = PARKED_HERE;

	with_do.edns = with_do.want_do = true;
	norec.norec = true;
	ds.qtype = 43;
	outside.name = "www.example.net";
	above.name = "com";
	labels.name = "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.example.com";
	expect_left(&with_do, HYDNS_FORWARD_LEFT_QUESTION);
	expect_left(&norec, HYDNS_FORWARD_LEFT_QUESTION);
	expect_left(&ds, HYDNS_FORWARD_LEFT_QUESTION);
	expect_left(&labels, HYDNS_FORWARD_LEFT_QUESTION);
	expect_left(&outside, -1);
	expect_left(&above, -1);
	forwarding_zone(&fw, "www.example.com", 0, true);
	expect_left(&q, -1);
	forwarding_zone(&fw, "www.example.com", 0, false);
	kernel_page(shared)->forward = NUMBER + 1;
	expect_left(&q, -1);
	kernel_page(shared)->forward = NUMBER;
	kernel_page(shared)->epoch = EPOCH | HYDNS_EPOCH_MARKED;
	expect_left(&q, -1);
	kernel_page(shared)->epoch = EPOCH;
	told->usable = 0;
	expect_left(&q, HYDNS_FORWARD_LEFT_UPSTREAM);
	told->usable = 1U << SERVER;
	p->bounds->heartbeat_ns = NOW_NS - HYDNS_PARKING_STALE_NS;
	expect_left(&q, HYDNS_FORWARD_LEFT_HYDNSD);
	p->bounds->heartbeat_ns = NOW_NS;
	p->bounds->max = 0;
	expect_left(&q, -1);
	p->bounds->max = 100;
	p->bounds->waiting = 100;
	expect_left(&q, HYDNS_FORWARD_LEFT_MAX);
	p->bounds->waiting = 0;
	kernel_upstream(shared, 0, 0);
	expect_left(&q, HYDNS_FORWARD_LEFT_PORT);
	kernel_upstream(shared, FIRST, PORTS);
	bpf_map_delete_elem(kernel_map(shared, "hydns_park_at"), &here);
	expect_left(&q, HYDNS_FORWARD_LEFT_INTERFACE);
}

static void the_zone_with_most_labels_counts(void **state)
{
	struct query q = plain;
	struct frame f;

	(void)state;
	forwarding_way(&fw, SERVER6, true);
	forwarding_zone(&fw, ".", 1U << SERVER6, true);
	forward(&q, &f);
	check_request(&f, &q, false);
	q.name = "example.org";
	forward(&q, &f);
	check_request(&f, &q, true);
}

static void a_question_is_open_once(void **state)
{
	struct query capitals = plain, type = plain;
	struct parking *p = *state;
	struct frame f;

	capitals.name = "WWW.example.COM";
	type.qtype = 28;
	forward(&plain, &f);
	assert_int_equal(run(&capitals, &f, HYDNS_R_PARKED), XDP_DROP);
	drain();
	assert_int_equal(got.queries, 0);
	assert_int_equal(got.joined, 1);
	forward(&type, &f);
	assert_int_equal(p->bounds->waiting, 3);
	p->bounds->per_question = 1;
	expect_left(&plain, HYDNS_FORWARD_LEFT_PER_QUESTION);
}

/* -- answers --------------------------------------------------------------------------------------------- */
/* Tags as they stand in a frame. */
static const uint8_t in_7[] = { 0x81, 0, 0, 7 }, in_8[] = { 0x81, 0, 0, 8 }, in_providers_7[] = { 0x88, 0xa8, 0, 7 };
static const uint8_t in_7_of_20[] = { 0x88, 0xa8, 0, 20, 0x81, 0, 0, 7 }, in_7_of_21[] = { 0x88, 0xa8, 0, 21, 0x81, 0, 0, 7 };

/* The frame, whose offsets are those without tags, has these. */
static void take_tags(struct frame *f, const uint8_t *tags, size_t len)
{
	if (!len)
		return;
	assert_memory_equal(f->data + 12, tags, len);
	f->len -= len;
	memmove(f->data + 12, f->data + 12 + len, f->len - 12);
}

static void expect_end(const struct frame *f, int reason)
{
	struct frame g = *f;
	int counted, action;

	got.answers = 0;
	action = kernel_run(shared, &g, &counted);
	drain();
	if (counted != reason)
		fail_msg("counted as %s, expected %s", counted < 0 ? "none or several" :
			 hydns_reason_name((enum hydns_reason)counted), hydns_reason_name((enum hydns_reason)reason));
	assert_int_equal(action, reason == HYDNS_R_NOT_SERVICE ? XDP_PASS : XDP_DROP);
	assert_int_equal(got.answers, reason == HYDNS_R_UPSTREAM_ANSWER);
}

static void an_answer_is_taken_once(void **state)
{
	struct query q = plain;
	struct frame f, reply;

	(void)state;
	q.name = "a-longer-name-than-eight.example.com";
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		q.qtype = ipv6 ? 28 : 1;
		if (ipv6) {
			forwarding_way(&fw, SERVER6, true);
			forwarding_zone(&fw, "example.com", 1U << SERVER6, true);
		}
		forward(&q, &f);
		check_request(&f, &q, ipv6);
		reply = forwarding_reply(&f, ipv6);
		expect_end(&reply, HYDNS_R_UPSTREAM_ANSWER);
		assert_true(got.answer.key == parking_key(&q));
		assert_int_equal(got.answer.len, reply.len - reply.dns);
		assert_memory_equal(got.message, reply.data + reply.dns, got.answer.len);
		assert_true(got.answer.word == got.query.forwarded.word);
		assert_int_equal(got.answer.resolver, RESOLVER);
		expect_end(&reply, HYDNS_R_NOT_SERVICE);   /* its port is nobody's by now */
	}
}

/* Everything has to fit; after each false answer the true one is still taken. */
static void false_answers_are_dropped(void **state)
{
	static const struct {
		const char *what;
		int offset;         /* in the message, or before it */
		uint8_t flip;
		int reason;
	} change[] = {
		{ "source address", -13, 1, HYDNS_R_NOT_SERVICE }, { "own address", -9, 1, HYDNS_R_UPSTREAM_FALSE },
		{ "source port", -7, 1, HYDNS_R_NOT_SERVICE }, { "own port", -5, 1, HYDNS_R_NOT_SERVICE },
		{ "id", 0, 0x80, HYDNS_R_UPSTREAM_FALSE }, { "id", 1, 1, HYDNS_R_UPSTREAM_FALSE },
		{ "a query", 2, 0x80, HYDNS_R_UPSTREAM_FALSE }, { "two questions", 5, 3, HYDNS_R_UPSTREAM_FALSE },
		{ "letter", 13, 0x20, HYDNS_R_UPSTREAM_FALSE }, { "last letter", 27, 0x20, HYDNS_R_UPSTREAM_FALSE },
		{ "name", 13, 1, HYDNS_R_UPSTREAM_FALSE }, { "type", 30, 28, HYDNS_R_UPSTREAM_FALSE },
		{ "class", 32, 2, HYDNS_R_UPSTREAM_FALSE },
	};
	struct frame f, reply;

	(void)state;
	for (unsigned i = 0; i < sizeof(change) / sizeof(*change); i++) {
		struct query q = plain;
		char name[32];

		snprintf(name, sizeof(name), "w%02u.example.com", i);
		q.name = name;
		forward(&q, &f);
		check_request(&f, &q, false);
		reply = forwarding_reply(&f, false);
		reply.data[(int)reply.dns + change[i].offset] ^= change[i].flip;
		frame_seal(&reply);
		expect_end(&reply, change[i].reason);
		reply.data[(int)reply.dns + change[i].offset] ^= change[i].flip;
		frame_seal(&reply);
		reply.data[reply.udp + 7] ^= 1;
		expect_end(&reply, HYDNS_R_UPSTREAM_FALSE);  /* its checksum */
		frame_seal(&reply);
		expect_end(&reply, HYDNS_R_UPSTREAM_ANSWER);
	}
}

static void answers_by_another_interface_are_dropped(void **state)
{
	struct frame f, reply;

	(void)state;
	forward(&plain, &f);
	check_request(&f, &plain, false);
	reply = forwarding_reply(&f, false);
	told->way[SERVER].ifindex = PARKED_HERE + 1;
	expect_end(&reply, HYDNS_R_UPSTREAM_FALSE);
	told->way[SERVER].ifindex = PARKED_HERE;
	expect_end(&reply, HYDNS_R_UPSTREAM_ANSWER);
}

/* Where no interface filters sources, an answer may come by any of them, but not in a VLAN. */
static void an_answer_by_any_interface(void **state)
{
	struct frame f, reply, tagged;

	(void)state;
	told->way[SERVER].flags = HYDNS_FORWARD_WAY_ANY;
	forward(&plain, &f);
	check_request(&f, &plain, false);
	tagged = reply = forwarding_reply(&f, false);
	forwarding_tags(&tagged, in_7, sizeof(in_7));
	told->way[SERVER].ifindex = PARKED_HERE + 1;
	expect_end(&tagged, HYDNS_R_UPSTREAM_FALSE);
	expect_end(&reply, HYDNS_R_UPSTREAM_ANSWER);
}

/* A request has the tags of its server's way, and so must the answer. */
static void servers_in_vlans(void **state)
{
	static const struct {
		const uint8_t *tags;
		size_t len;
		__u16 tag[HYDNS_FORWARD_TAGS];
	} vlan[] = {
		{ .len = 0 },
		{ in_7, sizeof(in_7), { HYDNS_FORWARD_TAG(7, false) } },
		{ in_8, sizeof(in_8), { HYDNS_FORWARD_TAG(8, false) } },
		{ in_providers_7, sizeof(in_providers_7), { HYDNS_FORWARD_TAG(7, true) } },
		{ in_7_of_20, sizeof(in_7_of_20), { HYDNS_FORWARD_TAG(7, false), HYDNS_FORWARD_TAG(20, true) } },
		{ in_7_of_21, sizeof(in_7_of_21), { HYDNS_FORWARD_TAG(7, false), HYDNS_FORWARD_TAG(21, true) } },
	};
	const unsigned vlans = sizeof(vlan) / sizeof(*vlan);

	(void)state;
	forwarding_way(&fw, SERVER6, true);
	for (unsigned i = 0; i < 2 * vlans; i++) {
		bool ipv6 = i >= vlans;
		struct query q = plain;
		struct frame f, reply, other;
		char name[32];

		snprintf(name, sizeof(name), "v%02u.example.com", i);
		q.name = name;
		q.vlan_tags = i % 3;   /* the client may be in a VLAN, too */
		forwarding_zone(&fw, "example.com", 1U << (ipv6 ? SERVER6 : SERVER), true);
		memcpy(told->way[ipv6 ? SERVER6 : SERVER].tag, vlan[i % vlans].tag, sizeof(vlan->tag));
		forward(&q, &f);
		take_tags(&f, vlan[i % vlans].tags, vlan[i % vlans].len);
		check_request(&f, &q, ipv6);
		reply = forwarding_reply(&f, ipv6);
		for (unsigned k = 0; k < vlans; k++) {
			other = reply;
			forwarding_tags(&other, vlan[k].tags, vlan[k].len);
			if (k != i % vlans)
				expect_end(&other, HYDNS_R_UPSTREAM_FALSE);
		}
		forwarding_tags(&reply, vlan[i % vlans].tags, vlan[i % vlans].len);
		if (vlan[i % vlans].len)
			reply.data[14] |= 0x70; /* the priority may differ */
		expect_end(&reply, HYDNS_R_UPSTREAM_ANSWER);
	}
}

/* A message is taken up to the size that requests say, and no longer one. */
static void long_answers(void **state)
{
	struct query q = plain;
	struct frame f, reply;

	(void)state;
	for (int more = 0; more < 2; more++) {
		q.name = more ? "more.example.com" : "most.example.com";
		forward(&q, &f);
		check_request(&f, &q, false);
		reply = forwarding_reply(&f, false);
		reply.len = reply.dns + HYDNS_FORWARD_ANSWER + more;
		for (size_t i = f.len; i < reply.len; i++)
			reply.data[i] = (uint8_t)(i * 7);
		frame_seal(&reply);
		expect_end(&reply, more ? HYDNS_R_UPSTREAM_FALSE : HYDNS_R_UPSTREAM_ANSWER);
	}
}

/* -- what cannot be guessed --------------------------------------------------------------------------------- */
/* Ports, ids and letters take all values evenly: chi-square over 16 bins each, which chance exceeds once in a million. */
static void ports_ids_and_letters_are_even(void **state)
{
	enum { RUNS = 4096, BINS = 16 };
	unsigned bin[3][BINS] = { 0 };
	struct query q = plain;
	struct frame f;
	char name[64];

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		const struct hydns_forwarded *r = &got.query.forwarded;
		struct hydns_forward_question key = { .resolver = RESOLVER };

		snprintf(name, sizeof(name), "n%d.example.com", i);
		q.name = name;
		forward(&q, &f);
		bin[0][(r->port - FIRST) * BINS / PORTS]++;
		bin[1][r->id % BINS]++;
		bin[2][(r->letters >> 4) % BINS]++;
		key.key = got.query.parked.key;
		bpf_map_delete_elem(kernel_map(shared, "hydns_fwd_open"), &key);
		bpf_map_update_elem(kernel_map(shared, "hydns_ports"), &(__u32){ r->port }, &(__u64){ 0 }, BPF_ANY);
		((struct parking *)*state)->bounds->waiting = 0;
	}
	for (int k = 0; k < 3; k++) {
		double sum = 0;

		for (int i = 0; i < BINS; i++)
			sum += (bin[k][i] - (double)RUNS / BINS) * (bin[k][i] - (double)RUNS / BINS) / ((double)RUNS / BINS);
		if (sum > 56.5)
			fail_msg("%s: chi-square %f with 15 degrees of freedom", k == 0 ? "ports" : k == 1 ? "ids" : "letters", sum);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(a_query_in_a_zone_becomes_a_request), TEST(both_families_lead_to_both), TEST(other_queries_pass),
		TEST(the_zone_with_most_labels_counts), TEST(a_question_is_open_once), TEST(an_answer_is_taken_once),
		TEST(false_answers_are_dropped), TEST(answers_by_another_interface_are_dropped), TEST(an_answer_by_any_interface),
		TEST(servers_in_vlans), TEST(long_answers),
		TEST(ports_ids_and_letters_are_even),
#undef TEST
	};
	const char *why;
	int failed;

	shared = kernel_open(&(struct kernel_options){ .miss_stage = true, .forward = true, .vlan = true, .verbose = true }, &why);
	if (!shared) {
		printf("SKIP: %s\n", why);
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kernel_close(shared);
	return failed;
}
