/* SPDX-License-Identifier: GPL-2.0-only */
/* The monitor's analysers: what each finds, and that a query ends as it would without them. Exits 77 (skipped) where BPF programs
 * can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include "hydns/monitor.h"
#include "hydns-kern/program/stages.h"
#include "offload-policy/monitor.h"
#include "expect.h"

#define ALL ((1U << HYDNS_ANALYSERS) - 1)


static void begin(__u32 analysers)
{
	for (int map = 0; map < HYDNS_ANALYSIS_MAPS; map++)
		assert_non_null(kernel_analysis(kern, map));
	kernel_analyse(kern, analysers);
}

static void ask_from(struct query q, const __u8 addr[16], int reason)
{
	struct frame f;
	int got;

	frame_query(&f, &q);
	memcpy(f.data + f.l3 + (q.ipv6 ? 8 : 12), q.ipv6 ? addr : addr + 12, q.ipv6 ? 16 : 4);
	frame_checksums(&f);
	kernel_run(kern, &f, &got);
	assert_int_equal(got, reason);
}

static void ask(const char *name, unsigned times)
{
	struct query q = plain;
	struct frame f;

	q.name = name;
	while (times--) {
		frame_query(&f, &q);
		expect_pass(name, kern, &f, HYDNS_R_MISS);
	}
}

/* Replies and passed queries are as without analysers, in every combination. */
static void test_nothing_changes(void **state)
{
	struct query miss = plain, v6 = plain;
	struct answer a = { 0 };
	__u32 handle = publish_address(kern, &plain, &a);
	struct frame f;

	(void)state;
	miss.name = "no-rule.example";
	v6.ipv6 = true;
	for (__u32 analysers = 0; analysers <= ALL; analysers = analysers * 2 + 1) {
		begin(analysers);
		frame_query(&f, &plain);
		expect_frame("answered", kern, &f, &plain, &a, 0, kernel_rotation(kern, handle));
		frame_query(&f, &v6);
		expect_frame("answered, IPv6", kern, &f, &v6, &a, 0, kernel_rotation(kern, handle));
		frame_query(&f, &miss);
		expect_pass("no rule", kern, &f, HYDNS_R_MISS);
		f.data[f.dns + 2] |= 0x10;
		frame_checksums(&f);
		expect_pass("opcode", kern, &f, HYDNS_R_DNS_UNUSUAL);
		f.data[f.udp + 7]++;
		expect_pass("checksum", kern, &f, HYDNS_R_BAD_CHECKSUM);
	}
	kernel_remove(kern, handle);
}

static void test_clients(void **state)
{
	const __u8 a[16] = { [12] = 198, 51, 100, 1 }, b[16] = { [12] = 198, 51, 101, 1 };
	const __u8 c[16] = { 0x20, 1, 0xd, 0xb8, 1, 2, 3, 4, [15] = 9 };
	const __u8 key_a[8] = { 198, 51, 100, [7] = HYDNS_NETWORK_IPV4 }, key_c[8] = { 0x20, 1, 0xd, 0xb8, 1, 2, 3, 0 };
	struct hydns_heavy_found top[4];
	struct query v6 = plain;
	__u8 d[16];

	(void)state;
	v6.ipv6 = true;
	begin(1U << HYDNS_ANALYSER_clients);
	for (int i = 0; i < 9; i++) {
		memcpy(d, a, 16);
		d[15] += i;                    /* the same /24 */
		ask_from(plain, d, HYDNS_R_MISS);
	}
	for (int i = 0; i < 5; i++) {
		memcpy(d, c, 16);
		d[7] += i;                     /* the same /56 */
		ask_from(v6, d, HYDNS_R_MISS);
	}
	ask_from(plain, b, HYDNS_R_MISS);
	assert_int_equal(hydns_heavy_top(kernel_analysis(kern, HYDNS_ANALYSIS_CLIENTS), kernel_cpus(kern), top, 4), 3);
	assert_memory_equal(&top[0].key, key_a, 8);
	assert_true(top[0].least == 9 && top[0].most == 9);
	assert_memory_equal(&top[1].key, key_c, 8);
	assert_true(top[1].least == 5 && top[2].least == 1);
	assert_int_equal(hydns_heavy_top(kernel_analysis(kern, HYDNS_ANALYSIS_CLIENTS), kernel_cpus(kern), top, 4), 0);
}

/* The suffix that is counted most, with its count; one of this CPU's. */
static __u64 top_suffix(__u8 name[HYDNS_SUFFIX_MOST])
{
	static struct hydns_heavy_set keys[HYDNS_HEAVY_SETS];
	const struct hydns_suffix_set *all = kernel_analysis(kern, HYDNS_ANALYSIS_SUFFIXES);
	struct hydns_heavy_found top;
	unsigned cpus = kernel_cpus(kern), cpu = 0;

	for (unsigned i = 0; i < HYDNS_HEAVY_SETS * cpus; i++)
		if (all[i].keys.entry[0].count)
			cpu = i % cpus;
	for (unsigned i = 0; i < HYDNS_HEAVY_SETS; i++)
		keys[i] = all[i * cpus + cpu].keys;
	if (!hydns_heavy_top(keys, 1, &top, 1))
		return 0;
	memcpy(name, all[top.set * cpus + cpu].name[top.entry], HYDNS_SUFFIX_MOST);
	return top.least;
}

static void test_suffixes(void **state)
{
	static const struct { const char *name, *suffix; } cases[] = {
		{ "a.b.c.example.com", "example.com" }, { "EXAMPLE.Com", "example.com" }, { "com", "com" }, { ".", "." },
		{ "www.example.co.uk", "example.co.uk" }, { "co.uk", "co.uk" }, { "x.test.example", "test.example" },
		{ "12345678901234567890123456789012.co.uk", "12345678901234567890123456789012.co.uk" },
		{ "123456789012345678901234567890123.co.uk", "co.uk" },
		{ "www.123456789012345678901234567890123456789012345678901234567890.example", "example" },
		{ "1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.ip6.arpa", "1.ip6.arpa" },
	};
	__u8 found[HYDNS_SUFFIX_MOST], expected[HYDNS_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t len = name_wire(cases[i].suffix, expected);

		begin(1U << HYDNS_ANALYSER_suffixes);
		ask(cases[i].name, 3);
		assert_int_equal(top_suffix(found), 3);
		assert_memory_equal(found, expected, len);
	}
	begin(1U << HYDNS_ANALYSER_suffixes);
	ask("a.first.example", 2);
	ask("b.first.example", 2);
	ask("a.other.example", 3);
	assert_int_equal(top_suffix(found), 4);
	begin(1U << HYDNS_ANALYSER_suffixes);          /* longer than a suffix may be: not counted */
	ask("123456789012345678901234567890123456789012345678901234567890", 1);
	assert_int_equal(top_suffix(found), 0);
}

static void sum_figures(struct hydns_figures *sum)
{
	const struct hydns_figures *each = kernel_analysis(kern, HYDNS_ANALYSIS_FIGURES);

	memset(sum, 0, sizeof(*sum));
	for (unsigned cpu = 0; cpu < kernel_cpus(kern); cpu++)
		for (size_t w = 0; w < sizeof(*sum) / sizeof(__u64); w++)
			((__u64 *)sum)[w] += ((const __u64 *)&each[cpu])[w];
}

static void test_figures(void **state)
{
	struct query q = plain;
	struct answer a = { 0 };
	__u32 handle = publish_address(kern, &plain, &a);
	size_t query_len, reply_len;
	struct hydns_figures sum;
	__u8 message[FRAME_MAX];
	struct frame f;

	(void)state;
	begin(ALL);
	frame_query(&f, &plain);
	query_len = f.len - f.dns;
	expect_frame("answered", kern, &f, &plain, &a, 0, 0);
	reply_len = answer_message(&a, &plain, 0, 0, EDNS_SIZE, message);
	q.qtype = 28;
	frame_query(&f, &q);
	expect_pass("AAAA", kern, &f, HYDNS_R_MISS);
	q.qtype = 257;
	frame_query(&f, &q);
	expect_pass("CAA", kern, &f, HYDNS_R_MISS);
	sum_figures(&sum);
	assert_true(sum.type[1] == 1 && sum.type[28] == 1 && sum.type[HYDNS_FIGURE_TYPES - 1] == 1);
	assert_true(sum.rcode[0] == 1 && sum.replies == 1);
	assert_int_equal(sum.query_octets, query_len);
	assert_int_equal(sum.reply_octets, reply_len);
	assert_true(query_len > 32 && query_len <= 64 && sum.query_size[6] == 3);
	assert_true(reply_len > 32 && reply_len <= 64 && sum.reply_size[6] == 1);
	kernel_remove(kern, handle);
}

static void test_sample(void **state)
{
	const struct hydns_query_sample *s;
	__u8 wire[HYDNS_NAME_MAX];
	__u64 number = 0;
	unsigned found = 0;

	(void)state;
	begin(1U << HYDNS_ANALYSER_sample);
	ask("Sampled.example", 100);
	s = kernel_analysis(kern, HYDNS_ANALYSIS_SAMPLE);
	for (unsigned i = 0; i < HYDNS_QUERY_SAMPLES * kernel_cpus(kern); i++) {
		if (!s[i].number)
			continue;
		found++;
		number = s[i].number > number ? s[i].number : number;
		assert_int_equal(s[i].reason, HYDNS_R_MISS);
		assert_int_equal(ntohs(s[i].qtype), plain.qtype);
		assert_int_equal(s[i].name_len, name_wire("sampled.example", wire));
		assert_memory_equal(s[i].name, wire, s[i].name_len);
		assert_memory_equal(s[i].client + 12, client4, 4);
	}
	assert_int_equal(found, HYDNS_QUERY_SAMPLES);
	assert_int_equal(number, 100);
}

/* A query whose checksum or source is wrong is in no analysis, and none is while nothing holds. */
static void test_not_analysed(void **state)
{
	const __u8 loopback[16] = { [12] = 127, 0, 0, 1 };
	struct hydns_heavy_found top[1];

	(void)state;
	begin(ALL);
	ask_from(plain, loopback, HYDNS_R_BAD_SOURCE);
	begin(0);
	ask(plain.name, 2);
	assert_int_equal(hydns_heavy_top(kernel_analysis(kern, HYDNS_ANALYSIS_CLIENTS), kernel_cpus(kern), top, 1), 0);
}

/* hydnsd ends, and the kernel empties the table of stages: queries go on without analysers. Last: the table stays empty. */
static void test_stages_gone(void **state)
{
	struct answer a = { 0 };
	__u32 handle = publish_address(kern, &plain, &a);
	struct frame f;

	(void)state;
	begin(ALL);
	for (__u32 stage = HYDNS_STAGE_LEFT; stage < HYDNS_STAGE_GUARD; stage++) {
		assert_int_equal(bpf_map_delete_elem(kernel_map(kern, "hydns_stages"), &stage), 0);
		frame_query(&f, &plain);
		expect_frame("answered", kern, &f, &plain, &a, 0, kernel_rotation(kern, handle));
		ask("no-rule.example", 1);
	}
	kernel_remove(kern, handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_changes), cmocka_unit_test(test_clients), cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_figures), cmocka_unit_test(test_sample), cmocka_unit_test(test_not_analysed),
		cmocka_unit_test(test_stages_gone),
	};

	return expect_run_with(&((const struct kernel_options){ .monitor = true, .miss_stage = true, .verbose = true }), tests);
}
