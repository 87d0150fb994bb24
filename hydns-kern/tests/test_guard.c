/* SPDX-License-Identifier: GPL-2.0-only */
/* The guard: budgets of client networks, and rules for suffixes. Exits 77 (skipped) where BPF programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include "hydns/cookie.h"
#include "hydns/hash.h"
#include "expect.h"

#define LIMIT 3
#define SET   5

static const struct hydns_loader_guard limits = {
	.mode = HYDNS_GUARD_ENFORCE, .queries = LIMIT, .exempt = 1, .ipv4_prefix = 24, .ipv6_prefix = 56,
};
static struct kernel *drops, *truncates, *counts, *slips, *cookies_count, *suffixes_only;
static struct answer answer;

static const struct query six = { .name = "www.example.com", .qtype = 1, .id = 7, .ipv6 = true };

static struct kernel *guarded(struct hydns_loader_guard g, bool miss_stage)
{
	struct kernel *k = open_with(&(struct kernel_options){ .guard = g, .miss_stage = miss_stage, .verbose = true });

	memset(&answer, 0, sizeof(answer));
	publish_address(k, &plain, &answer);
	memset(&answer, 0, sizeof(answer));
	publish_address(k, &six, &answer);
	return k;
}

static void forget(struct kernel *k)
{
	memset(kernel_guard_cells(k), 0, HYDNS_GUARD_BUCKETS * sizeof(struct hydns_guard_bucket));
}

static struct hydns_guard_count count_of(struct kernel *k)
{
	struct hydns_guard_count n;

	kernel_sum(k, "hydns_gd_counts", RESOLVER, sizeof(n) / sizeof(__u64), (__u64 *)&n);
	return n;
}

/* The query's frame, with the last octets of the client's address changed: an IPv4 octet, or the octet of this place in an IPv6 one. */
static void frame_from(struct frame *f, const struct query *q, unsigned place, unsigned change)
{
	frame_query(f, q);
	f->data[f->l3 + (q->ipv6 ? 8 : 12) + place] ^= (uint8_t)change;
	frame_checksums(f);
}

static void ends(struct kernel *k, const struct frame *f, unsigned times, int reason, int action)
{
	for (unsigned i = 0; i < times; i++) {
		struct frame g = *f;
		int got, did = kernel_run(k, &g, &got);

		assert_string_equal(got < 0 ? "?" : hydns_reason_name((enum hydns_reason)got),
				     hydns_reason_name((enum hydns_reason)reason));
		assert_int_equal(did, action);
	}
}

static void query_ends(struct kernel *k, const struct query *q, unsigned times, int reason, int action)
{
	struct frame f;

	frame_query(&f, q);
	ends(k, &f, times, reason, action);
}

/* -- clients ---------------------------------------------------------------------------------------------- */
/* A network has one budget, by any of its addresses, hits and misses; the next one has its own. */
static void test_networks(void **state)
{
	const struct { const struct query *q; unsigned inside, outside; } rows[] = { { &plain, 3, 2 }, { &six, 7, 6 } };
	struct hydns_guard_count before = count_of(drops);
	struct query miss = plain;
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		forget(drops);
		frame_from(&f, rows[i].q, rows[i].inside, 0x40);
		ends(drops, &f, 1, HYDNS_R_ANSWERED, XDP_TX);
		miss = *rows[i].q;
		miss.name = "other.example";
		query_ends(drops, &miss, LIMIT - 1, HYDNS_R_MISS, XDP_PASS);
		ends(drops, &f, 2, HYDNS_R_GUARDED, XDP_DROP);
		query_ends(drops, &miss, 2, HYDNS_R_GUARDED, XDP_DROP);
		frame_from(&f, rows[i].q, rows[i].outside, 1);
		ends(drops, &f, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
		ends(drops, &f, 1, HYDNS_R_GUARDED, XDP_DROP);
	}
	assert_int_equal(count_of(drops).clients_over - before.clients_over, 10);
}

/* hydnsctl shows the network of a cell. */
static void test_shown(void **state)
{
	const struct hydns_guard_bucket *b = kernel_guard_cells(drops);
	uint8_t want[16] = { [10] = 0xff, [11] = 0xff };
	unsigned found = 0;

	(void)state;
	forget(drops);
	memcpy(want + 12, client4, 3);
	query_ends(drops, &plain, 1, HYDNS_R_ANSWERED, XDP_TX);
	for (unsigned i = 0; i < HYDNS_GUARD_BUCKETS; i++)
		for (unsigned j = 0; j < HYDNS_BUDGET_CELLS; j++)
			if (b[i].budgets.cell[j].tag) {
				assert_memory_equal(b[i].network[j], want, sizeof(want));
				found++;
			}
	assert_int_equal(found, 1);
}

/* A second later the network asks again: what was counted is of an older second. */
static void test_next_second(void **state)
{
	struct hydns_guard_bucket *b = kernel_guard_cells(drops);

	(void)state;
	forget(drops);
	query_ends(drops, &plain, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	query_ends(drops, &plain, 1, HYDNS_R_GUARDED, XDP_DROP);
	for (unsigned i = 0; i < HYDNS_GUARD_BUCKETS; i++)
		for (unsigned j = 0; j < HYDNS_BUDGET_CELLS; j++)
			for (unsigned s = 0; s < 2; s++)
				if (b[i].budgets.cell[j].used[s])
					b[i].budgets.cell[j].used[s] -= 1ULL << 32;
	query_ends(drops, &plain, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	query_ends(drops, &plain, 1, HYDNS_R_GUARDED, XDP_DROP);
}

static void test_counts_only(void **state)
{
	struct hydns_guard_count before = count_of(counts);

	(void)state;
	query_ends(counts, &plain, LIMIT + 5, HYDNS_R_ANSWERED, XDP_TX);
	assert_int_equal(count_of(counts).clients_over - before.clients_over, 5);
}

static void test_truncates(void **state)
{
	struct query q = plain;

	(void)state;
	forget(truncates);
	query_ends(truncates, &plain, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	expect_short(truncates, &plain, HYDNS_R_GUARD_TRUNCATED, 0x8280);
	q.name = "WwW.Example.com";
	q.edns = q.want_do = true;
	expect_short(truncates, &q, HYDNS_R_GUARD_TRUNCATED, 0x8280);
	q.norec = true;
	expect_short(truncates, &q, HYDNS_R_GUARD_TRUNCATED, 0x8200);
	query_ends(truncates, &six, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	expect_short(truncates, &six, HYDNS_R_GUARD_TRUNCATED, 0x8280);
	q = six;
	q.name = ".";
	q.edns = true;
	expect_short(truncates, &q, HYDNS_R_GUARD_TRUNCATED, 0x8280);
}

static void test_slip(void **state)
{
	(void)state;
	forget(slips);
	query_ends(slips, &plain, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	query_ends(slips, &plain, 5, HYDNS_R_GUARD_TRUNCATED, XDP_TX);
}

static const struct hydns_cookies secrets = { .set = SET, .count = 1, .secret = { { 0x1111, 0x2222 } } };

/* The option with a valid server cookie of the client. */
static void make_option(uint8_t out[4 + HYDNS_COOKIE_LEN])
{
	uint8_t addr[16] __attribute__((aligned(8))) = { [10] = 0xff, [11] = 0xff };
	const struct hydns_cookie_client c = { .addr = addr };
	__u64 cookie[HYDNS_COOKIE_WORDS] = { 0x0807060504030201ULL };

	memcpy(addr + 12, client4, 4);
	hydns_cookie_make(secrets.secret[0], cookie, &c, WALL_S);
	memcpy(out, (uint8_t[]){ 0, 10, 0, HYDNS_COOKIE_LEN }, 4);
	memcpy(out + 4, cookie, HYDNS_COOKIE_LEN);
}

static void judges_cookies(struct kernel *k)
{
	static const struct hydns_resolver_config judging = {
		.flags = HYDNS_RESOLVER_READY, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1,
	};

	kernel_config(k, &judging);
	kernel_cookies(k, SET, &secrets);
	kernel_page(k)->cookies = SET;
	forget(k);
}

/* A valid cookie is exempt, another one is not, and gets one with the truncated reply. */
static void test_cookies(void **state)
{
	uint8_t option[4 + HYDNS_COOKIE_LEN], fresh[4 + HYDNS_COOKIE_LEN];
	struct query q = { .name = "www.example.com", .qtype = 1, .id = 9, .edns = true, .options = option, .options_len = sizeof(option) };
	struct hydns_guard_count before;

	(void)state;
	make_option(option);
	judges_cookies(truncates);
	before = count_of(truncates);
	query_ends(truncates, &q, 3 * LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	assert_int_equal(count_of(truncates).clients_exempt - before.clients_exempt, 3 * LIMIT);
	memcpy(fresh, option, sizeof(fresh));
	option[4 + 20] ^= 1;
	query_ends(truncates, &q, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	q.cookie = fresh + 4;
	expect_short(truncates, &q, HYDNS_R_GUARD_TRUNCATED, 0x8280);
	option[3] = HYDNS_COOKIE_CLIENT_LEN;           /* the client's part alone: the reply is longer than the query */
	q.options_len = 4 + HYDNS_COOKIE_CLIENT_LEN;
	expect_short(truncates, &q, HYDNS_R_GUARD_TRUNCATED, 0x8280);
	judges_cookies(cookies_count);
	q.options = fresh;
	q.options_len = sizeof(fresh);
	query_ends(cookies_count, &q, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	query_ends(cookies_count, &q, LIMIT, HYDNS_R_GUARDED, XDP_DROP);
	kernel_config(truncates, NULL);
}

/* A dry run says what would happen, and counts nothing (kernel_dry() compares). */
static void test_dry(void **state)
{
	struct frame f;

	(void)state;
	forget(drops);
	frame_query(&f, &plain);
	assert_int_equal(kernel_dry(drops, &f).reason, HYDNS_R_ANSWERED);
	query_ends(drops, &plain, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	assert_int_equal(kernel_dry(drops, &f).reason, HYDNS_R_GUARDED);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_MISS);
}

static void frame_strange(struct frame *f, const struct query *q, unsigned octet, unsigned change)
{
	frame_query(f, q);
	f->data[f->dns + octet] ^= (uint8_t)change;
	frame_checksums(f);
}

/* So many of this frame end as they would without a guard, and then they are dropped. */
static void is_limited(struct kernel *k, const struct frame *f, int reason)
{
	forget(k);
	ends(k, f, LIMIT, reason, XDP_PASS);
	ends(k, f, 2, HYDNS_R_GUARDED, XDP_DROP);
}

/* What the program can't read counts as well, and is dropped also where others are truncated. */
static void test_unread(void **state)
{
	struct query with_opt = six;
	struct frame f;

	(void)state;
	with_opt.edns = true;
	for (unsigned i = 0; i < 2; i++) {
		frame_strange(&f, i ? &six : &plain, 2, 0x80);                    /* a response */
		is_limited(drops, &f, HYDNS_R_DNS_UNUSUAL);
		is_limited(truncates, &f, HYDNS_R_DNS_UNUSUAL);
		frame_strange(&f, i ? &six : &plain, 12, 0xc0);                   /* a compressed name */
		is_limited(drops, &f, HYDNS_R_QUESTION_UNUSUAL);
		assert_int_equal(kernel_dry(drops, &f).reason, HYDNS_R_GUARDED);
	}
	f.len = f.dns + 12;
	frame_seal(&f);
	is_limited(drops, &f, HYDNS_R_DNS_UNUSUAL);
	forget(counts);
	ends(counts, &f, 3 * LIMIT, HYDNS_R_DNS_UNUSUAL, XDP_PASS);
	frame_query(&f, &with_opt);
	f.data[f.len - 5] ^= 1;                                                   /* of EDNS version 1 */
	frame_checksums(&f);
	is_limited(cookies_count, &f, HYDNS_R_EDNS_UNUSUAL);
	frame_query(&f, &plain);
	f.len = f.dns + HYDNS_QUERY_MAX + 1;
	memset(f.data + f.dns + 12, 0, HYDNS_QUERY_MAX - 11);
	frame_seal(&f);
	is_limited(cookies_count, &f, HYDNS_R_TOO_LONG);
}

/* ... but not what may hold a valid cookie where these are exempt, nor what the resolver does not get, or the stack drops. */
static void test_unread_exempt(void **state)
{
	static const __u8 everybody[16];
	struct query with_opt = plain;
	struct frame f;

	(void)state;
	forget(drops);
	with_opt.edns = true;
	frame_strange(&f, &with_opt, 3, 0x10);                                    /* CD */
	ends(drops, &f, 3 * LIMIT, HYDNS_R_DNS_UNUSUAL, XDP_PASS);
	f.len = f.dns + HYDNS_QUERY_MAX + 1;
	frame_seal(&f);
	ends(drops, &f, 3 * LIMIT, HYDNS_R_TOO_LONG, XDP_PASS);
	frame_query(&f, &plain);
	f.data[f.dns + 13] ^= 1;
	ends(drops, &f, 3 * LIMIT, HYDNS_R_BAD_CHECKSUM, XDP_PASS);
	frame_strange(&f, &plain, 2, 0x80);
	kernel_acl(drops, everybody, 0, -1);
	ends(drops, &f, 3 * LIMIT, HYDNS_R_DNS_UNUSUAL, XDP_PASS);
	kernel_acl(drops, everybody, 0, HYDNS_ACL_ALLOW);
	is_limited(drops, &f, HYDNS_R_DNS_UNUSUAL);
}

static void test_empty_store(void **state)
{
	(void)state;
	forget(drops);
	kernel_empty(drops, true);
	query_ends(drops, &(struct query){ .name = "other.example", .qtype = 1 }, LIMIT, HYDNS_R_MISS, XDP_PASS);
	query_ends(drops, &(struct query){ .name = "other.example", .qtype = 1 }, 2, HYDNS_R_GUARDED, XDP_DROP);
	kernel_empty(drops, false);
}

static void test_off(void **state)
{
	(void)state;
	query_ends(kern, &plain, 5 * LIMIT, HYDNS_R_MISS, XDP_PASS);
	assert_int_equal(count_of(kern).clients_over + count_of(kern).clients_uncounted, 0);
}

/* -- suffixes --------------------------------------------------------------------------------------------- */
static __u64 key_of(struct kernel *k, const char *suffix, unsigned resolver)
{
	uint8_t wire[256];
	size_t len = name_wire(suffix, wire);

	return hydns_key_hash(wire, (__u8)len, 0, 0, (__u8)resolver, kernel_geometry(k)->seed);
}

static void guard(struct kernel *k, const char *suffix, unsigned resolver, struct hydns_guard_rule r)
{
	__u64 key = key_of(k, suffix, resolver);

	assert_int_equal(bpf_map_update_elem(kernel_map(k, "hydns_gd_rules"), &key, &r, BPF_ANY), 0);
}

static struct hydns_guard_rule rule_of(struct kernel *k, const char *suffix)
{
	__u64 key = key_of(k, suffix, RESOLVER);
	struct hydns_guard_rule r = { 0 };

	bpf_map_lookup_elem(kernel_map(k, "hydns_gd_rules"), &key, &r);
	return r;
}

static void lift(struct kernel *k, const char *suffix, unsigned resolver)
{
	__u64 key = key_of(k, suffix, resolver);

	bpf_map_delete_elem(kernel_map(k, "hydns_gd_rules"), &key);
}

static const struct hydns_guard_rule rule_drop = { .until_ns = NOW_NS + 1, .queries = 2, .action = HYDNS_GUARD_DROP };

static void test_suffix(void **state)
{
	struct kernel *k = suffixes_only;
	struct query below = { .name = "a.b.C.flooded.example", .qtype = 1 }, at = { .name = "flooded.example", .qtype = 28, .ipv6 = true };
	struct query other = { .name = "notflooded.example", .qtype = 1 };

	(void)state;
	guard(k, "flooded.example", RESOLVER, rule_drop);
	query_ends(k, &below, 1, HYDNS_R_MISS, XDP_PASS);              /* no rule of so many labels, as far as the program knows */
	kernel_guard_labels(k, 1 << 2);
	query_ends(k, &below, 1, HYDNS_R_MISS, XDP_PASS);
	query_ends(k, &at, 1, HYDNS_R_MISS, XDP_PASS);
	query_ends(k, &below, 2, HYDNS_R_GUARDED, XDP_DROP);
	query_ends(k, &at, 1, HYDNS_R_GUARDED, XDP_DROP);
	query_ends(k, &other, 5, HYDNS_R_MISS, XDP_PASS);
	assert_int_equal(rule_of(k, "flooded.example").within, 2);
	assert_int_equal(rule_of(k, "flooded.example").over, 3);
	query_ends(k, &plain, 5, HYDNS_R_ANSWERED, XDP_TX);
	lift(k, "flooded.example", RESOLVER);
	query_ends(k, &below, 3, HYDNS_R_MISS, XDP_PASS);
	kernel_guard_labels(k, 0);
}

/* What a rule answers goes on, though its suffix is guarded. */
static void test_suffix_hits(void **state)
{
	(void)state;
	kernel_guard_labels(suffixes_only, 1 << 2);
	guard(suffixes_only, "example.com", RESOLVER, rule_drop);
	query_ends(suffixes_only, &plain, 10, HYDNS_R_ANSWERED, XDP_TX);
	lift(suffixes_only, "example.com", RESOLVER);
	kernel_guard_labels(suffixes_only, 0);
}

/* Of several suffixes the longest counts; another resolver's does not. */
static void test_longest_suffix(void **state)
{
	struct kernel *k = suffixes_only;
	struct query q = { .name = "x.sub.flooded.example", .qtype = 1 };
	struct hydns_guard_rule wide = rule_drop;

	(void)state;
	wide.queries = 100;
	kernel_guard_labels(k, 1 << 2 | 1 << 3);
	guard(k, "flooded.example", RESOLVER, rule_drop);
	guard(k, "sub.flooded.example", RESOLVER, wide);
	query_ends(k, &q, 10, HYDNS_R_MISS, XDP_PASS);
	lift(k, "sub.flooded.example", RESOLVER);
	guard(k, "sub.flooded.example", RESOLVER + 1, (struct hydns_guard_rule){ .until_ns = NOW_NS + 1 });
	query_ends(k, &q, 2, HYDNS_R_MISS, XDP_PASS);
	query_ends(k, &q, 1, HYDNS_R_GUARDED, XDP_DROP);
	lift(k, "flooded.example", RESOLVER);
	query_ends(k, &q, 1, HYDNS_R_MISS, XDP_PASS);
	lift(k, "sub.flooded.example", RESOLVER + 1);
	kernel_guard_labels(k, 0);
}

static void test_suffix_replies(void **state)
{
	struct kernel *k = suffixes_only;
	struct query q = { .name = "x.Flooded.example", .qtype = 1, .id = 0x1234, .edns = true };

	(void)state;
	kernel_guard_labels(k, 1 << 2);
	guard(k, "flooded.example", RESOLVER, (struct hydns_guard_rule){ .until_ns = NOW_NS + 1, .action = HYDNS_GUARD_FAIL });
	expect_short(k, &q, HYDNS_R_GUARD_FAILED, 0x8082);
	q.edns = false;
	q.ipv6 = true;
	expect_short(k, &q, HYDNS_R_GUARD_FAILED, 0x8082);
	guard(k, "flooded.example", RESOLVER, (struct hydns_guard_rule){ .until_ns = NOW_NS + 1, .action = HYDNS_GUARD_TRUNCATE });
	expect_short(k, &q, HYDNS_R_GUARD_TRUNCATED, 0x8280);
	guard(k, "flooded.example", RESOLVER, (struct hydns_guard_rule){ .until_ns = NOW_NS, .action = HYDNS_GUARD_FAIL });
	query_ends(k, &q, 1, HYDNS_R_MISS, XDP_PASS);          /* its life is over */
	lift(k, "flooded.example", RESOLVER);
	kernel_guard_labels(k, 0);
}

static void test_suffix_counts_only(void **state)
{
	struct hydns_guard_count before = count_of(counts);

	(void)state;
	forget(counts);
	kernel_guard_labels(counts, 1 << 2);
	guard(counts, "flooded.example", RESOLVER, rule_drop);
	query_ends(counts, &(struct query){ .name = "x.flooded.example", .qtype = 1 }, 5, HYDNS_R_MISS, XDP_PASS);
	assert_int_equal(count_of(counts).suffix_over - before.suffix_over, 3);
	assert_int_equal(count_of(counts).suffix_within - before.suffix_within, 2);
	kernel_guard_labels(counts, 0);
}

/* Type ANY counts as other types do, for a network and for a suffix. */
static void test_any(void **state)
{
	struct query any = { .name = "a.flooded.example", .qtype = 255 };

	(void)state;
	forget(drops);
	query_ends(drops, &any, LIMIT, HYDNS_R_TYPE_ANY, XDP_PASS);
	query_ends(drops, &any, 1, HYDNS_R_GUARDED, XDP_DROP);
	forget(truncates);
	query_ends(truncates, &any, LIMIT, HYDNS_R_TYPE_ANY, XDP_PASS);
	expect_short(truncates, &any, HYDNS_R_GUARD_TRUNCATED, 0x8280);
	kernel_guard_labels(suffixes_only, 1 << 2);
	guard(suffixes_only, "flooded.example", RESOLVER, rule_drop);
	query_ends(suffixes_only, &any, rule_drop.queries, HYDNS_R_TYPE_ANY, XDP_PASS);
	query_ends(suffixes_only, &any, 1, HYDNS_R_GUARDED, XDP_DROP);
	lift(suffixes_only, "flooded.example", RESOLVER);
	kernel_guard_labels(suffixes_only, 0);
}

/* Suffixes of all lengths that may be guarded, below the longest names; longer ones are never looked for. */
static void test_suffix_lengths(void **state)
{
	char name[256], label[] = "abcdefg.";
	unsigned most = HYDNS_GUARD_SUFFIX_MOST / 8;

	(void)state;
	for (unsigned labels = 1; labels <= most; labels++) {
		name[0] = 0;
		for (unsigned i = 0; i < 31; i++)
			strcat(name, label);
		name[strlen(name) - 1] = 0;
		kernel_guard_labels(suffixes_only, 1U << labels);
		guard(suffixes_only, name + strlen(name) + 1 - 8 * labels, RESOLVER, (struct hydns_guard_rule){ .until_ns = NOW_NS + 1 });
		query_ends(suffixes_only, &(struct query){ .name = name, .qtype = 1 }, 1,
			   labels < most ? HYDNS_R_GUARDED : HYDNS_R_MISS, labels < most ? XDP_DROP : XDP_PASS);
		lift(suffixes_only, name + strlen(name) + 1 - 8 * labels, RESOLVER);
	}
	kernel_guard_labels(suffixes_only, 0);
}

/* -- exhaustion ------------------------------------------------------------------------------------------- */
/* HYDNS_GUARD_PREFIXES (10,000,000 in the full test) networks ask once each: the limit of one that is above it stays. */
static void test_many_networks(void **state)
{
	unsigned long many = getenv("HYDNS_GUARD_PREFIXES") ? strtoul(getenv("HYDNS_GUARD_PREFIXES"), NULL, 10) : 300000;
	struct query miss = { .name = "other.example", .qtype = 1, .ipv6 = true };
	LIBBPF_OPTS(bpf_test_run_opts, o, .repeat = 1);
	struct frame f;

	(void)state;
	forget(drops);
	query_ends(drops, &plain, LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	frame_query(&f, &miss);
	for (unsigned long i = 0; i < many; i++) {
		uint32_t n = htonl((uint32_t)i + 1);

		/* the sum of the two words stays, so that the checksum does */
		memcpy(f.data + f.l3 + 8, (uint8_t[]){ 0x20, 0x01 }, 2);
		memcpy(f.data + f.l3 + 10, &n, 4);
		n = ~n;
		memcpy(f.data + f.l3 + 16, &n, 4);
		if (!i)
			frame_checksums(&f);
		o.data_in = f.data;
		o.data_size_in = (__u32)f.len;
		assert_int_equal(bpf_prog_test_run_opts(kernel_prog_fd(drops), &o), 0);
		assert_int_equal(o.retval, XDP_PASS);
		if (i % (many / 16) == 0)
			query_ends(drops, &plain, 1, HYDNS_R_GUARDED, XDP_DROP);
	}
	query_ends(drops, &plain, 1, HYDNS_R_GUARDED, XDP_DROP);
}

/* Where all cells are those of networks at their limit, another one is not limited. */
static void test_uncounted(void **state)
{
	struct hydns_guard_bucket *b = kernel_guard_cells(drops);
	struct hydns_guard_count before = count_of(drops);

	(void)state;
	for (unsigned i = 0; i < HYDNS_GUARD_BUCKETS; i++)
		for (unsigned j = 0; j < HYDNS_BUDGET_CELLS; j++)
			b[i].budgets.cell[j] = (struct hydns_budget){ .tag = j + 1, .used = { (NOW_NS / SECOND_NS) << 32 | LIMIT } };
	query_ends(drops, &plain, 2 * LIMIT, HYDNS_R_ANSWERED, XDP_TX);
	assert_int_equal(count_of(drops).clients_uncounted - before.clients_uncounted, 2 * LIMIT);
	forget(drops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_networks), cmocka_unit_test(test_shown), cmocka_unit_test(test_next_second),
		cmocka_unit_test(test_counts_only), cmocka_unit_test(test_truncates), cmocka_unit_test(test_slip),
		cmocka_unit_test(test_cookies), cmocka_unit_test(test_dry), cmocka_unit_test(test_empty_store), cmocka_unit_test(test_off),
		cmocka_unit_test(test_unread), cmocka_unit_test(test_unread_exempt), cmocka_unit_test(test_any),
		cmocka_unit_test(test_suffix), cmocka_unit_test(test_suffix_hits), cmocka_unit_test(test_longest_suffix),
		cmocka_unit_test(test_suffix_replies), cmocka_unit_test(test_suffix_counts_only), cmocka_unit_test(test_suffix_lengths),
		cmocka_unit_test(test_many_networks), cmocka_unit_test(test_uncounted),
	};
	struct hydns_loader_guard g = limits;
	int failed;

	if (!expect_open(&expect_usual))
		return SKIPPED;
	drops = guarded(g, false);
	g.slip = 1;
	slips = guarded(g, false);
	g.slip = 0;
	g.action = HYDNS_GUARD_TRUNCATE;
	truncates = guarded(g, false);
	g.action = HYDNS_GUARD_DROP;
	g.exempt = 0;
	cookies_count = guarded(g, false);
	g.mode = HYDNS_GUARD_COUNT;
	counts = guarded(g, false);
	g.mode = HYDNS_GUARD_ENFORCE;
	g.queries = 0;
	suffixes_only = guarded(g, true);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kernel_close(drops), kernel_close(slips), kernel_close(truncates);
	kernel_close(cookies_count), kernel_close(counts), kernel_close(suffixes_only);
	return expect_close(failed);
}
