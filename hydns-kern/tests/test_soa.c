/* SPDX-License-Identifier: GPL-2.0-only */
/* Templates that show the present SOA of their zone (hydns/soa.h): the program writes it into each reply. Exits 77 (skipped) where BPF
 * programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "expect.h"

#define NXDOMAIN (REPLY_FLAGS | REPLY_AA | 3)
#define ID       0x1122334455667788ULL

static struct kernel *named;
static struct hydns_soa_now *now;
static struct hydns_gap gap;

/* How the zone is signed, and whether the parts of the SOA's record begin at odd offsets. */
struct kind {
	uint16_t signature_len;
	bool odd;
};

static struct query asks(const char *name, const struct kind *k)
{
	return (struct query){ .name = name, .qtype = 1, .id = 11, .edns = true, .edns_size = EDNS_SIZE, .want_do = k->signature_len != 0 };
}

static void add_soa(struct answer *a, const struct kind *k)
{
	uint8_t rdata[64], *p = rdata;

	p += name_wire("ns.elsewhere.test", p);
	p += name_wire(k->odd ? "a.elsewhere.test" : "ad.elsewhere.test", p);
	memcpy(p, now->numbers, sizeof(now->numbers));
	p += sizeof(now->numbers);
	answer_add(a, AUTHORITY, "example.test", 6, 300, rdata, (uint16_t)(p - rdata));
	gap.numbers = (uint16_t)(a->len - sizeof(now->numbers));
}

static void add_signature(struct answer *a, const struct kind *k)
{
	uint8_t rdata[512], *p = rdata;

	memcpy(p, now->fixed, sizeof(now->fixed));
	p += sizeof(now->fixed);
	p += name_wire("example.test", p);
	memcpy(p, now->signature, k->signature_len);
	p += k->signature_len;
	answer_add(a, AUTHORITY, "example.test", HYDNS_TYPE_RRSIG, 300, rdata, (uint16_t)(p - rdata));
	gap.fixed = (uint16_t)(a->len - (p - rdata));
	gap.signature = (uint16_t)(a->len - k->signature_len);
}

/* What the server says with the SOA that it has now; and the gap in it. */
static struct answer denial(const struct kind *k)
{
	static const uint16_t none[1];
	struct answer a = { .flags = NXDOMAIN, .static_ttl = true, .pointer = none, .gap = &gap };

	add_soa(&a, k);
	gap.signature_len = k->signature_len;
	if (k->signature_len)
		add_signature(&a, k);
	answer_add(&a, AUTHORITY, "a.example.test", 16, 300, "\3end", 4);
	return a;
}

static __u32 publish(const struct kind *k)
{
	struct query q = asks(k->signature_len ? "\177.example.test" : "+below+.example.test", k);
	struct answer a = denial(k);
	__u32 handle;

	memset(a.data + gap.numbers, 0, HYDNS_SOA_NUMBERS);
	memset(a.data + gap.fixed, 0, k->signature_len ? HYDNS_RRSIG_FIXED : 0);
	memset(a.data + gap.signature, 0, k->signature_len);
	handle = kernel_publish(named, &q, &a, 0, NULL);
	assert_true(handle);
	return handle;
}

/* As the plugin writes it; each octet is another than in the SOA before. */
static void serves(const struct kind *k, unsigned serial)
{
	uint8_t *part[] = { now->numbers, now->fixed, now->signature };
	const unsigned len[] = { sizeof(now->numbers), sizeof(now->fixed), k->signature_len };
	uint16_t *sum[] = { &now->numbers_sum, &now->fixed_sum, &now->signature_sum };

	for (unsigned i = 0; i < 3; i++) {
		for (unsigned at = 0; at < len[i]; at++)
			part[i][at] = (uint8_t)(serial * 37 + at * 7 + i);
		*sum[i] = hydns_answer_sum(part[i], (__u16)len[i], NULL, 0);
	}
	now->signature_len = k->signature_len;
	now->id = ID;
	for (unsigned i = 0; i < 4; i++)
		gap.id[i] = (uint16_t)(ID >> 16 * i);
}

static void answered(const char *name, const struct kind *k)
{
	struct query q = asks(name, k);
	struct answer a = denial(k);
	struct frame f;

	frame_query(&f, &q);
	expect_frame(q.name, named, &f, &q, &a, 0, 0);
	q.ipv6 = true;
	frame_query(&f, &q);
	expect_frame(q.name, named, &f, &q, &a, 0, 0);
}

static void passes(const char *name, const struct kind *k)
{
	struct query q = asks(name, k);
	struct frame f;

	frame_query(&f, &q);
	expect_pass(q.name, named, &f, HYDNS_R_MISS);
}

static int begin(void **state)
{
	(void)state;
	named = open_with(&(struct kernel_options){ .names = true, .verbose = true });
	now = kernel_soa(named, &gap);
	kernel_name(named, "example.test", "example.test")->what |= HYDNS_NAMES_SIGNED;
	return 0;
}

static int end(void **state)
{
	(void)state;
	kernel_close(named);
	return 0;
}

static const struct kind kinds[] = {
	{ 0, false }, { 0, true }, { 64, false }, { 64, true }, { HYDNS_SOA_FIRST, false }, { HYDNS_SOA_FIRST + 1, true }, { 71, false },
	{ 128, true }, { 199, false }, { HYDNS_SIGNATURE_MOST, true }, { HYDNS_SIGNATURE_MOST, false },
};

/* Each reply has the SOA of its moment, at all lengths of a name. */
static void test_present(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		__u32 handle;

		serves(&kinds[i], i);
		handle = publish(&kinds[i]);
		for (unsigned serial = 0; serial < 3; serial++) {
			serves(&kinds[i], serial);
			answered("x.example.test", &kinds[i]);
			answered("xy.example.test", &kinds[i]);
			answered("missing.and.missing.example.test", &kinds[i]);
		}
		kernel_remove(named, handle);
	}
}

/* It is changing, it is not what the template was made for, or there is none. */
static void test_not_now(void **state)
{
	const struct kind *k = &kinds[2];
	__u32 handle;

	(void)state;
	serves(k, 1);
	handle = publish(k);
	answered("x.example.test", k);
	now->number++;
	passes("x.example.test", k);
	now->number++;
	answered("x.example.test", k);
	now->id++;
	passes("x.example.test", k);
	now->id = 0;
	passes("x.example.test", k);
	now->id = ID;
	now->signature_len--;
	passes("x.example.test", k);
	now->signature_len++;
	answered("x.example.test", k);
	kernel_remove(named, handle);
}

/* An element that is none, or that the signature has no room behind. */
static void test_where(void **state)
{
	const struct kind *k = &kinds[10];
	const uint16_t element = gap.element[0];
	__u32 handle;

	(void)state;
	serves(k, 1);
	for (unsigned i = 1; i < 2 * HYDNS_SOA_ELEMENTS; i++) {
		gap.element[0] = (uint16_t)(element + i);
		handle = publish(k);
		passes("x.example.test", k);
		kernel_remove(named, handle);
	}
	gap.element[0] = element;
	gap.element[1] = 0xffff;
	handle = publish(k);
	passes("x.example.test", k);
	kernel_remove(named, handle);
	kernel_soa(named, &gap);
	handle = publish(k);
	answered("x.example.test", k);
	kernel_remove(named, handle);
}

/* Nobody is answered from a template as if it were the rule of his own question. */
static void test_own_question(void **state)
{
	struct query q = asks("+below+.example.test", &kinds[0]);
	struct frame f;

	(void)state;
	serves(&kinds[0], 1);
	publish(&kinds[0]);
	answered("+below+.example.test", &kinds[0]);
	kernel_name(named, "+below+.example.test", NULL);
	frame_query(&f, &q);
	expect_pass(q.name, named, &f, HYDNS_R_MISS);
}

/* A rule with a gap that is not within its answer is refused. */
static void test_malformed(void **state)
{
	static const struct hydns_gap wrong[] = {
		{ .id = { 1 }, .numbers = 0xffff }, { .id = { 1 }, .numbers = 20, .signature_len = 64, .fixed = 30, .signature = 60 },
		{ .id = { 1 }, .numbers = 20, .signature_len = 64, .fixed = 50, .signature = 0xffff },
		{ .id = { 1 }, .numbers = 0, .signature_len = HYDNS_SIGNATURE_MOST + 1, .fixed = 20, .signature = 38 },
		{ .id = { 0 }, .numbers = 20 },
	};
	struct query q = asks("+below+.example.test", &kinds[0]);

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct answer a = denial(&kinds[10]);

		a.gap = &wrong[i];
		assert_false(kernel_publish(named, &q, &a, 0, NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_present), cmocka_unit_test(test_not_now), cmocka_unit_test(test_where),
		cmocka_unit_test(test_own_question), cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
