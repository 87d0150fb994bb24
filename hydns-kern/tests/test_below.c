/* SPDX-License-Identifier: GPL-2.0-only */
/* Names that do not exist: which the set of names says so of, and the replies that the program makes from templates. Exits 77 (skipped)
 * where BPF programs can't be loaded. */
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

static struct kernel *named;

/* What a server answers to a question whose zone's name, of zone_len octets, begins at offset zone of the message: the zone's SOA,
 * whose owner and first name are compressed. *pointer: where these pointers are. */
static struct answer denial(unsigned zone, uint16_t *pointer)
{
	uint8_t rdata[64], *p = rdata;
	struct answer a = { .flags = NXDOMAIN, .static_ttl = true, .pointer = pointer, .pointers = 2 };
	const uint16_t at[] = { htons((uint16_t)(0xc000 | zone)) };

	memcpy(p, "\2ns", 3);
	memcpy(p + 3, at, 2);
	p += 5;
	p += name_wire("admin.elsewhere.test", p);
	for (unsigned i = 0; i < 20; i++)
		*p++ = (uint8_t)i;
	answer_add(&a, AUTHORITY, NULL, 6, 300, rdata, (uint16_t)(p - rdata));
	memcpy(a.data, at, 2);           /* the owner, in place of a pointer to the question's name */
	pointer[0] = 0;
	pointer[1] = 2 + 10 + 3;
	return a;
}

static struct query below(const char *name)
{
	return (struct query){ .name = name, .qtype = 1, .id = 11 };
}

/* Offset in a message of the zone's name, which the question's name ends with. */
static unsigned offset_of(const char *name, const char *zone)
{
	uint8_t wire[HYDNS_NAME_MAX + 1];
	size_t len = name_wire(name, wire);

	return (unsigned)(12 + len - name_wire(zone, wire));
}

static __u32 publish(const struct query *like, const char *zone)
{
	char name[HYDNS_NAME_MAX + 1];
	struct query q = *like;
	uint16_t pointer[2];
	struct answer a;
	__u32 handle;

	snprintf(name, sizeof(name), "+below+.%s", zone);
	q.name = name;
	q.qtype = 1;
	a = denial(offset_of(name, zone), pointer);
	handle = kernel_publish(named, &q, &a, 0, NULL);
	assert_true(handle);
	return handle;
}

static void denied(const struct query *q, const char *zone)
{
	uint16_t pointer[2];
	struct answer a = denial(offset_of(q->name, zone), pointer);
	struct frame f;

	frame_query(&f, q);
	expect_frame(q->name, named, &f, q, &a, 0, 0);
}

static void passes(const struct query *q, int reason)
{
	struct frame f;

	frame_query(&f, q);
	expect_pass(q->name, named, &f, reason);
}

static int begin(void **state)
{
	const struct query any = below("x");

	(void)state;
	named = open_with(&(struct kernel_options){ .names = true, .verbose = true });
	kernel_name(named, "example.test", "example.test");
	kernel_name(named, "host.example.test", "example.test");
	kernel_name(named, "deep.ent.example.test", "example.test");
	kernel_name(named, "ent.example.test", "example.test");
	kernel_name(named, "wild.example.test", NULL);
	publish(&any, "example.test");
	return 0;
}

static int end(void **state)
{
	(void)state;
	kernel_close(named);
	return 0;
}

/* Names longer and shorter than the template's, at even and odd distances; and below names that exist. */
static void test_replies(void **state)
{
	static const char *const names[] = {
		"x.example.test", "xy.example.test", "missing.example.test", "a-very-long-label-of-a-name.example.test",
		"x.host.example.test", "y.deep.ent.example.test", "y.ent.example.test", "a.b.c.d.e.f.g.example.test", "+belov+.example.test",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct query q = below(names[i]);

		denied(&q, "example.test");
		q.qtype = 28;
		q.ipv6 = true;
		denied(&q, "example.test");
		q.edns = true;
		q.edns_size = EDNS_SIZE;
		denied(&q, "example.test");
	}
}

static void test_any_type(void **state)
{
	struct query q = below("x.example.test");

	(void)state;
	q.qtype = 255;
	denied(&q, "example.test");
}

/* A template's hits do not tell the types: the program counts them. */
static void test_types_are_counted(void **state)
{
	static const struct { uint16_t type, place; } rows[] = { { 1, 1 }, { 28, 28 }, { 256, 256 }, { 257, 257 }, { 65280, 257 } };
	struct hydns_type_counts before, after;
	struct query q = below("x.example.test");

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		kernel_sum(named, "hydns_below_types", RESOLVER, HYDNS_COUNT_TYPES, before.type);
		q.qtype = rows[i].type;
		denied(&q, "example.test");
		kernel_sum(named, "hydns_below_types", RESOLVER, HYDNS_COUNT_TYPES, after.type);
		for (unsigned type = 0; type < HYDNS_COUNT_TYPES; type++)
			assert_int_equal(after.type[type] - before.type[type], type == rows[i].place);
	}
}

/* To which BIND gives a TTL of its own. */
static void test_soa(void **state)
{
	struct query q = below("x.example.test");

	(void)state;
	q.qtype = 6;
	passes(&q, HYDNS_R_MISS);
}

static void test_variants(void **state)
{
	struct query q = below("x.example.test");

	(void)state;
	q.norec = true;
	passes(&q, HYDNS_R_MISS);
	publish(&q, "example.test");
	denied(&q, "example.test");
	q.edns = q.want_do = true;
	passes(&q, HYDNS_R_MISS);
}

/* Names that exist, or of which the set says nothing; and other zones. */
static void test_others_pass(void **state)
{
	static const char *const names[] = {
		"host.example.test", "ent.example.test", "example.test", "x.wild.example.test", "wild.example.test", "x.other.test",
		"example.tes", "xexample.test", ".",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct query q = below(names[i]);

		passes(&q, HYDNS_R_MISS);
	}
}

/* A name that comes is in the set from its entry on, and one that goes until it is empty. */
static void test_changes(void **state)
{
	struct query q = below("new.example.test"), deeper = below("x.new.example.test");
	struct hydns_names_entry *e;

	(void)state;
	denied(&q, "example.test");
	e = kernel_name(named, "new.example.test", NULL);
	passes(&q, HYDNS_R_MISS);
	passes(&deeper, HYDNS_R_MISS);
	kernel_name(named, "new.example.test", "example.test");
	denied(&deeper, "example.test");
	e->tag = 0;
	denied(&q, "example.test");
}

/* A set that is not open says nothing, nor does one with a mask that leads beyond it. */
static void test_closed(void **state)
{
	volatile struct hydns_names_head *head = (void *)kernel_names(named);
	struct query q = below("x.example.test");

	(void)state;
	head->open = 0;
	passes(&q, HYDNS_R_MISS);
	head->open = 1;
	head->mask = UINT32_MAX;
	passes(&q, HYDNS_R_MISS);
	head->mask = HYDNS_NAMES_BUCKETS_LEAST - 1;
	denied(&q, "example.test");
}

/* The program looks up so many labels and no more. */
static void test_depth(void **state)
{
	struct query near = below("1.2.3.4.5.6.7.8.9.10.11.example.test"), far = below("0.1.2.3.4.5.6.7.8.9.10.11.example.test");

	(void)state;
	denied(&near, "example.test");
	passes(&far, HYDNS_R_MISS);
}

/* A template that does not count, and a rule of its name that is none. */
static void test_templates(void **state)
{
	struct query q = below("x.plain.test"), probe = below("+below+.plain.test");
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	kernel_name(named, "plain.test", "plain.test");
	passes(&q, HYDNS_R_MISS);
	handle = publish_address(named, &probe, &a);
	passes(&q, HYDNS_R_MISS);
	kernel_remove(named, handle);
	publish(&q, "plain.test");
	denied(&q, "plain.test");
	kernel_page(named)->epoch = EPOCH + 1;
	passes(&q, HYDNS_R_MISS);
	kernel_page(named)->epoch = EPOCH;
}

static void test_letter_case(void **state)
{
	struct hydns_resolver_config c = { .flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_KEEPS_CASE, .edns_size = EDNS_SIZE, .max_udp = EDNS_SIZE,
					   .acl_half = 1 };
	struct query q = below("X.example.test");

	(void)state;
	denied(&q, "example.test");
	kernel_config(named, &c);
	passes(&q, HYDNS_R_MISS);
	kernel_config(named, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies), cmocka_unit_test(test_any_type), cmocka_unit_test(test_soa), cmocka_unit_test(test_types_are_counted), cmocka_unit_test(test_variants),
		cmocka_unit_test(test_others_pass), cmocka_unit_test(test_changes), cmocka_unit_test(test_closed), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_templates), cmocka_unit_test(test_letter_case),
	};

	return expect_open() ? expect_close(cmocka_run_group_tests(tests, begin, end)) : SKIPPED;
}
