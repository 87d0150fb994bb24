/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hostile packets to ports of open requests: the true answer with some octets, lengths or VLAN tags changed, cut, or made longer, its
 * checksums often made right again. The program takes one exactly when a second opinion, octet by octet, finds that everything fits; what
 * it does not take leaves the request open for the true answer. Otherwise the test fails, and names the seed.
 *
 * fuzz_answers [--count N] [--seed S]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include "forwarding.h"
#include "hydns-kern/loader/kern.h"
#include "test-harness/fuzz/numbers.h"

#define COUNT_DEFAULT 20000         /* a share small enough for every test run */
#define MUTATIONS     3
#define PACKETS       8             /* to a request at most */
#define ROOM          (HYDNS_FORWARD_ANSWER + 200)

/* Of servers, by turns; as they stand in frames. */
static const struct {
	uint8_t octet[8];
	size_t len;
	__u16 tag[HYDNS_FORWARD_TAGS];
} vlan[] = {
	{ .len = 0 },
	{ { 0x81, 0, 0, 7 }, 4, { HYDNS_FORWARD_TAG(7, false) } },
	{ { 0x88, 0xa8, 0, 20, 0x81, 0, 0, 7 }, 8, { HYDNS_FORWARD_TAG(7, false), HYDNS_FORWARD_TAG(20, true) } },
};
#define VLANS (sizeof(vlan) / sizeof(*vlan))

static struct kernel *shared;
static struct fuzz_run run;
static struct hydns_forwarded_query asked;

/* The request that is open. */
static struct {
	unsigned vlan;
	bool ipv6;
	struct frame answer;        /* the true one */
	uint8_t name[HYDNS_NAME_MAX]; /* in the letters of the request */
	size_t name_len;
} open_request;

static int read_query(void *arg, void *data, size_t len)
{
	(void)arg;
	if (len == sizeof(asked))
		memcpy(&asked, data, len);
	return 0;
}

/* -- a second opinion -------------------------------------------------------------------------------------------- */
static unsigned get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static bool tags_fit(const struct frame *f)
{
	const uint8_t *want = vlan[open_request.vlan].octet;
	size_t len = vlan[open_request.vlan].len;

	if (f->len < 14 + len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (i % 4 == 2 ? (f->data[12 + i] & 15) != want[i] : f->data[12 + i] != want[i])
			return false;
	return get16(f->data + 12 + len) == (open_request.ipv6 ? 0x86ddU : 0x0800U);
}

/* *len: octets of the UDP datagram, at *at. */
static bool ip_fits(const struct frame *f, size_t *at, size_t *len)
{
	const uint8_t *ip = f->data + 14 + vlan[open_request.vlan].len;
	size_t there = f->len - (size_t)(ip - f->data);

	if (open_request.ipv6) {
		*len = there >= 40 ? get16(ip + 4) : 0;
		*at = (size_t)(ip - f->data) + 40;
		return there >= 40 && ip[0] >> 4 == 6 && ip[6] == 17 && *len >= 8 && *len + 40 <= there &&
		       !memcmp(ip + 8, server6, 16) && !memcmp(ip + 24, source6, 16);
	}
	*len = there >= 20 ? get16(ip + 2) : 0;
	*at = (size_t)(ip - f->data) + 20;
	if (there < 20 || ip[0] != 0x45 || ip[9] != 17 || (get16(ip + 6) & ~0x4000U) || *len < 28 || *len > there ||
	    sum16(ip, 20, 0) != 0xffff || memcmp(ip + 12, server4, 4) || memcmp(ip + 16, source4, 4))
		return false;
	*len -= 20;
	return true;
}

static bool udp_fits(const struct frame *f, size_t at, size_t len)
{
	const uint8_t *udp = f->data + at, *ip = f->data + 14 + vlan[open_request.vlan].len;
	uint32_t pseudo = sum16(open_request.ipv6 ? ip + 8 : ip + 12, open_request.ipv6 ? 32 : 8, 17 + (uint32_t)len);

	if (get16(udp) != 53 || get16(udp + 2) != asked.forwarded.port || get16(udp + 4) != len)
		return false;
	return (!get16(udp + 6) && !open_request.ipv6) || (get16(udp + 6) && sum16(udp, len, pseudo) == 0xffff);
}

static bool message_fits(const uint8_t *m, size_t len)
{
	static const uint8_t a_in[4] = { 0, 1, 0, 1 };

	return len >= 12 + open_request.name_len + 4 && len <= HYDNS_FORWARD_ANSWER && !memcmp(m, &asked.forwarded.id, 2) &&
	       (m[2] & 0x80) && get16(m + 4) == 1 && !memcmp(m + 12, open_request.name, open_request.name_len) &&
	       !memcmp(m + 12 + open_request.name_len, a_in, 4);
}

static bool fits(const struct frame *f)
{
	size_t at, len;

	if (f->len < 14 || ((f->data[0] | f->data[6]) & 1))
		return false;
	return tags_fit(f) && ip_fits(f, &at, &len) && udp_fits(f, at, len) && message_fits(f->data + at + 8, len - 8);
}

/* -- hostile packets ----------------------------------------------------------------------------------------------- */
static void change_octet(struct frame *f)
{
	size_t at = fuzz_below((uint32_t)f->len);

	f->data[at] = fuzz_below(2) ? f->data[at] ^ (uint8_t)(1U << fuzz_below(8)) : (uint8_t)fuzz_next();
}

static void change_tags(struct frame *f)
{
	const unsigned other = fuzz_below(VLANS);

	if (fuzz_below(2))
		forwarding_tags(f, vlan[other].octet, vlan[other].len);
	else if (f->len > 18)
		memmove(f->data + 12, f->data + 16, f->len -= 4);
}

static void change_length(struct frame *f)
{
	size_t len = fuzz_below(2) ? fuzz_below((uint32_t)f->len + 1) : fuzz_below(ROOM);

	if (len > f->len)
		fuzz_fill(f->data + f->len, len - f->len);
	f->len = len < 14 ? 14 : len;
}

static bool has_headers(const struct frame *f)
{
	return f->len >= f->dns && f->udp == f->l3 + (f->ipv6 ? 40 : 20);
}

static void mutate(struct frame *f)
{
	unsigned kind = fuzz_below(3);

	for (unsigned n = fuzz_below(MUTATIONS + 1); n; n--)
		switch (fuzz_below(12)) {
		case 0: change_tags(f); break;
		case 1: change_length(f); break;
		default: change_octet(f); break;
		}
	if (kind == 0 && has_headers(f))
		frame_seal(f);
	else if (kind == 1 && has_headers(f))
		frame_checksums(f);
}

/* -- runs ------------------------------------------------------------------------------------------------------------ */
static void ask(struct forwarding *fw, struct ring_buffer *queries, uint64_t number)
{
	struct query q = { .name = "", .qtype = 1, .id = 7 };
	struct frame f;
	char name[64];
	int reason;

	snprintf(name, sizeof(name), "some-Letters-%llu.example.com", (unsigned long long)number);
	q.name = name;
	open_request.vlan = fuzz_below(VLANS);
	open_request.ipv6 = fuzz_below(2);
	memcpy(fw->told->way[open_request.ipv6 ? SERVER6 : SERVER].tag, vlan[open_request.vlan].tag, sizeof(vlan->tag));
	forwarding_zone(fw, "example.com", 1U << (open_request.ipv6 ? SERVER6 : SERVER), true);
	fw->parking.bounds->waiting = 0;
	frame_query(&f, &q);
	assert_int_equal(kernel_run(shared, &f, &reason), XDP_TX);
	assert_int_equal(reason, HYDNS_R_FORWARDED);
	ring_buffer__consume(queries);
	f.ipv6 = open_request.ipv6;
	f.l3 = 14 + vlan[open_request.vlan].len;
	f.udp = f.l3 + (f.ipv6 ? 40 : 20);
	f.dns = f.udp + 8;
	open_request.name_len = name_wire(name, open_request.name);
	memcpy(open_request.name, f.data + f.dns + 12, open_request.name_len);
	open_request.answer = forwarding_reply(&f, f.ipv6);
}

/* Whether the program takes the packet. */
static bool is_taken(const struct frame *f)
{
	struct frame g = *f;
	int reason;

	kernel_run(shared, &g, &reason);
	return reason == HYDNS_R_UPSTREAM_ANSWER;
}

/* The question may be asked again, and its port is free. */
static void end_request(void)
{
	struct hydns_forward_question q = { .key = asked.parked.key, .resolver = RESOLVER };
	__u32 port = asked.forwarded.port;
	const __u64 none = 0;

	bpf_map_delete_elem(kernel_map(shared, "hydns_fwd_open"), &q);
	bpf_map_update_elem(kernel_map(shared, "hydns_ports"), &port, &none, BPF_ANY);
}

/* NULL, or what is wrong. *taken: the request has ended. */
static const char *one_packet(bool last, bool *taken)
{
	struct frame f = open_request.answer;

	mutate(&f);
	*taken = fits(&f);
	if (is_taken(&f) != *taken)
		return *taken ? "it fits, and is not taken" : "it does not fit, and is taken";
	if (*taken || !last)
		return NULL;
	return is_taken(&open_request.answer) ? NULL : "after it the true answer is not taken";
}

static uint64_t run_all(struct forwarding *fw, struct ring_buffer *queries, struct ring_buffer *answers, const char **wrong)
{
	uint64_t taken = 0;
	bool ended = true;

	*wrong = NULL;
	for (uint64_t i = 0; i < run.count && !*wrong; i++) {
		if (ended)
			ask(fw, queries, i);
		*wrong = one_packet(i % PACKETS == PACKETS - 1, &ended);
		taken += ended;
		ended |= i % PACKETS == PACKETS - 1;
		if (ended)
			end_request();
		ring_buffer__consume(answers);
		if (*wrong)
			fuzz_wrong(&run, "packet", i, *wrong);
	}
	return taken;
}

static void only_what_fits_is_taken(void **state)
{
	static struct forwarding fw;
	struct ring_buffer *queries, *answers;
	const char *wrong;
	uint64_t taken;

	(void)state;
	forwarding_open(&fw, shared);
	forwarding_way(&fw, SERVER6, true);
	queries = ring_buffer__new(kernel_map(shared, "hydns_parked"), read_query, NULL, NULL);
	answers = ring_buffer__new(kernel_map(shared, "hydns_answered"), read_query, NULL, NULL);
	assert_true(queries && answers);
	taken = run_all(&fw, queries, answers, &wrong);
	printf("%llu packets, %llu of them taken (seed %llu)\n", (unsigned long long)run.count, (unsigned long long)taken,
	       (unsigned long long)run.seed);
	ring_buffer__free(queries);
	ring_buffer__free(answers);
	forwarding_close(&fw);
	assert_null(wrong);
	assert_true(taken > 0 && taken < run.count);   /* else the test tests nothing */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(only_what_fits_is_taken) };
	const char *why;
	int failed;

	run = fuzz_begin(argc, argv, COUNT_DEFAULT);
	shared = kernel_open(&(struct kernel_options){ .miss_stage = true, .forward = true, .vlan = true }, &why);
	if (!shared) {
		printf("SKIP: %s\n", why);
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kernel_close(shared);
	return failed;
}
