/* SPDX-License-Identifier: GPL-2.0-only */
/* Names that do not exist: which the set of names says so of, and the replies that the program makes from templates. Exits 77 (skipped)
 * where BPF programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "expect.h"

#define NXDOMAIN (REPLY_FLAGS | REPLY_AA | 3)

/* The head, the buckets and the first leaves, of 128 octets each. */
#define SET_WORDS ((1 + HYDNS_NAMES_BUCKETS_LEAST + 16) * 16)


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

static __u32 publish_at(const struct query *like, const char *name, uint16_t qtype, const char *zone, uint16_t flags)
{
	struct query q = *like;
	uint16_t pointer[2];
	struct answer a = denial(offset_of(name, zone), pointer);
	__u32 handle;

	q.name = name;
	q.qtype = qtype;
	a.flags = flags;
	handle = kernel_publish(kern, &q, &a, 0, NULL);
	assert_true(handle);
	return handle;
}

static __u32 publish(const struct query *like, const char *zone)
{
	char name[HYDNS_NAME_MAX + 1];

	snprintf(name, sizeof(name), "+below+.%s", zone);
	return publish_at(like, name, HYDNS_BELOW_TYPE, zone, NXDOMAIN);
}

static void answered(const struct query *q, const char *zone, uint16_t flags)
{
	uint16_t pointer[2];
	struct answer a = denial(offset_of(q->name, zone), pointer);
	struct frame f;

	a.flags = flags;
	frame_query(&f, q);
	expect_frame(q->name, kern, &f, q, &a, 0, 0);
}

static void denied(const struct query *q, const char *zone)
{
	answered(q, zone, NXDOMAIN);
}

static void passes(const struct query *q, int reason)
{
	struct frame f;

	frame_query(&f, q);
	expect_pass(q->name, kern, &f, reason);
}

static int begin(void **state)
{
	const struct query any = below("x");

	(void)state;
	kernel_anew(kern);
	kernel_name(kern, "example.test", "example.test");
	kernel_name(kern, "host.example.test", "example.test");
	kernel_name(kern, "deep.ent.example.test", "example.test");
	kernel_name(kern, "ent.example.test", "example.test");
	kernel_name(kern, "wild.example.test", NULL);
	publish(&any, "example.test");
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
		kernel_sum(kern, "hydns_below_types", RESOLVER, HYDNS_COUNT_TYPES, before.type);
		q.qtype = rows[i].type;
		denied(&q, "example.test");
		kernel_sum(kern, "hydns_below_types", RESOLVER, HYDNS_COUNT_TYPES, after.type);
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
	e = kernel_name(kern, "new.example.test", NULL);
	passes(&q, HYDNS_R_MISS);
	passes(&deeper, HYDNS_R_MISS);
	kernel_name(kern, "new.example.test", "example.test");
	denied(&deeper, "example.test");
	e->tag = 0;
	denied(&q, "example.test");
}

/* A set that is not open says nothing, nor does one with a mask that leads beyond it. */
static void test_closed(void **state)
{
	volatile struct hydns_names_head *head = (void *)kernel_names(kern);
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

/* A resolver gone bad writes any words into its set: what it has a template of may be denied, wrongly too, and nothing else is
 * answered. */
static void test_hostile_set(void **state)
{
	const struct query own = below("x.example.test"), others = { .name = "x.other.test", .qtype = 1, .id = 11, .edns = true, .want_do = true, .edns_size = 1232 };
	volatile __u64 *word = (void *)kernel_names(kern);
	__u64 kept[SET_WORDS];

	(void)state;
	srandom(1);
	for (unsigned i = 0; i < SET_WORDS; i++)
		kept[i] = word[i];
	for (unsigned n = 0; n < 2000; n++) {
		struct frame f;
		int reason, action;

		for (unsigned i = 0; i < 8; i++)
			word[(unsigned)random() % (i % 2 ? SET_WORDS : 16)] = random() % 2 ? (__u64)random() << 33 ^ (__u64)random() : (__u64)random() % 4;
		frame_query(&f, &own);
		action = kernel_run(kern, &f, &reason);
		assert_true(action == XDP_TX || action == XDP_PASS);
		passes(&others, HYDNS_R_MISS);
	}
	for (unsigned i = 0; i < SET_WORDS; i++)
		word[i] = kept[i];
	denied(&own, "example.test");
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
	kernel_name(kern, "plain.test", "plain.test");
	passes(&q, HYDNS_R_MISS);
	handle = publish_address(kern, &probe, &a);
	passes(&q, HYDNS_R_MISS);
	kernel_remove(kern, handle);
	publish(&q, "plain.test");
	denied(&q, "plain.test");
	kernel_page(kern)->epoch = EPOCH + 1;
	passes(&q, HYDNS_R_MISS);
	kernel_page(kern)->epoch = EPOCH;
}

static void test_letter_case(void **state)
{
	struct hydns_resolver_config c = { .flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_KEEPS_CASE, .edns_size = EDNS_SIZE, .max_udp = EDNS_SIZE,
					   .acl_half = 1 };
	struct query q = below("X.example.test");

	(void)state;
	denied(&q, "example.test");
	kernel_config(kern, &c);
	passes(&q, HYDNS_R_MISS);
	kernel_config(kern, NULL);
}

/* A name that exists, and what it has. */
static void kernel_types(const char *name, const char *zone, __u32 types)
{
	kernel_name(kern, name, zone)->what |= types << 8;
}

/* -- types that a name has no data of --------------------------------------------------------------------------- */
static int begin_types(void **state)
{
	const struct query any = below("x");

	(void)state;
	kernel_anew(kern);
	kernel_types("example.test", "example.test", hydns_names_types(HYDNS_TYPE_NS) | hydns_names_types(HYDNS_TYPE_DNSKEY));
	kernel_types("host.example.test", "example.test", hydns_names_types(1) | hydns_names_types(16));
	kernel_types("x.ent.example.test", "example.test", hydns_names_types(1));
	kernel_types("ent.example.test", "example.test", 0);
	kernel_types("alias.example.test", "example.test", hydns_names_types(HYDNS_TYPE_CNAME));
	kernel_types("cut.example.test", "cut.example.test", HYDNS_NAMES_TYPES_ALL);
	kernel_name(kern, "cut.test", "cut.test")->what |= HYDNS_NAMES_CUT | HYDNS_NAMES_TYPES_ALL << 8;
	kernel_name(kern, "wild.example.test", NULL);
	publish(&any, "example.test");
	publish(&any, "cut.test");
	publish_at(&any, "example.test", HYDNS_NODATA_TYPE, "example.test", REPLY_FLAGS | REPLY_AA);
	return 0;
}

static void lacks(const char *name, uint16_t qtype)
{
	struct query q = below(name);

	q.qtype = qtype;
	answered(&q, "example.test", REPLY_FLAGS | REPLY_AA);
	q.ipv6 = q.edns = true;
	q.edns_size = EDNS_SIZE;
	answered(&q, "example.test", REPLY_FLAGS | REPLY_AA);
}

static void is_left_to_named(const char *name, uint16_t qtype)
{
	struct query q = below(name);

	q.qtype = qtype;
	passes(&q, qtype == HYDNS_TYPE_ANY ? HYDNS_R_TYPE_ANY : HYDNS_R_MISS);
}

static void test_types(void **state)
{
	struct query q = below("nothing.example.test");

	(void)state;
	lacks("host.example.test", 28);
	lacks("host.example.test", 65);
	lacks("host.example.test", HYDNS_TYPE_NS);
	lacks("x.ent.example.test", 16);
	lacks("ent.example.test", 1);
	lacks("ent.example.test", 65280);
	lacks("example.test", 1);
	is_left_to_named("host.example.test", 1);
	is_left_to_named("host.example.test", 16);
	is_left_to_named("x.ent.example.test", 1);
	is_left_to_named("example.test", HYDNS_TYPE_NS);
	is_left_to_named("alias.example.test", 28);
	is_left_to_named("cut.example.test", 28);
	is_left_to_named("wild.example.test", 28);
	denied(&q, "example.test");
}

/* Questions that BIND answers in a way of their own, even where there are no such data. */
static void test_types_of_their_own(void **state)
{
	static const uint16_t types[] = { HYDNS_TYPE_SOA, HYDNS_TYPE_SIG, HYDNS_TYPE_KEY, HYDNS_TYPE_RRSIG, HYDNS_TYPE_NSEC, HYDNS_TYPE_NSEC3,
					  HYDNS_TYPE_DS, HYDNS_TYPE_ANY };

	(void)state;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		is_left_to_named("ent.example.test", types[i]);
		is_left_to_named("cut.test", types[i]);
	}
}

/* A delegation's referral is the same for its own types and for those of names below it. */
static void test_types_of_a_delegation(void **state)
{
	struct query q = below("cut.test"), further = below("x.cut.test");

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		q.qtype = further.qtype = (uint16_t[]){ 1, 16, 65280 }[i];
		denied(&q, "cut.test");
		denied(&further, "cut.test");
	}
}

static struct query ds_of(const char *name, bool want_do)
{
	struct query q = below(name);

	q.qtype = HYDNS_TYPE_DS;
	q.edns = q.want_do = want_do;
	q.edns_size = EDNS_SIZE;
	return q;
}

/* That a delegation has no DS stands, with a proof, at its own name; else where the zone denies all types. The set says whether it is so. */
static void test_no_ds(void **state)
{
	struct query q = ds_of("out.example.test", false), proved = ds_of("out.example.test", true), other = ds_of("x.out.example.test", false);
	struct hydns_names_entry *e = kernel_name(kern, q.name, q.name);

	(void)state;
	publish(&other, q.name);
	e->what |= HYDNS_NAMES_CUT | HYDNS_NAMES_SAYS(HYDNS_NAMES_TYPES_ALL, 0);
	passes(&q, HYDNS_R_MISS);
	e->what ^= HYDNS_NAMES_SAYS(HYDNS_NAMES_TYPES_ALL ^ HYDNS_NAMES_NO_DS(14), 0);
	answered(&q, "example.test", REPLY_FLAGS | REPLY_AA);
	passes(&proved, HYDNS_R_MISS);
	publish_at(&proved, "example.test", HYDNS_NODATA_TYPE, "example.test", REPLY_FLAGS | REPLY_AA);
	answered(&proved, "example.test", REPLY_FLAGS | REPLY_AA);
	e->what |= HYDNS_NAMES_SAYS(HYDNS_NAMES_NO_DS_SIGNED, 0);
	answered(&q, "example.test", REPLY_FLAGS | REPLY_AA);
	passes(&proved, HYDNS_R_MISS);
	publish_at(&proved, "out.example.test", HYDNS_NODATA_TYPE, "example.test", REPLY_FLAGS | REPLY_AA);
	passes(&proved, HYDNS_R_MISS);
	publish_at(&proved, "out.example.test", HYDNS_TYPE_DS, "example.test", REPLY_FLAGS | REPLY_AA);
	answered(&proved, "example.test", REPLY_FLAGS | REPLY_AA);
	other.qtype = 28;
	denied(&other, q.name);
}

/* A name whose types change is one of which nothing is said, and so are those below it; and a zone may have no such template. */
static void test_types_change(void **state)
{
	struct query q = below("x.host.example.test"), other = below("host.other.test");

	(void)state;
	kernel_name(kern, "host.example.test", NULL);
	is_left_to_named("host.example.test", 28);
	passes(&q, HYDNS_R_MISS);
	kernel_types("host.example.test", "example.test", hydns_names_types(1) | hydns_names_types(28));
	is_left_to_named("host.example.test", 28);
	lacks("host.example.test", 16);
	kernel_types("host.other.test", "other.test", 0);
	passes(&other, HYDNS_R_MISS);
}

/* No two of these have the same bit: else one of them would never be denied where the other is. */
static void test_types_often_asked_for(void **state)
{
	static const uint16_t types[] = { 1, 2, 12, 15, 16, 28, 33, 35, 48, 52, 64, 65, 257 };
	__u32 all = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		__u32 bit = hydns_names_types(types[i]);

		assert_true(bit && !(bit & (bit - 1)) && !(all & bit));
		all |= bit;
	}
	assert_false(all & ~HYDNS_NAMES_TYPES_ALL);
}

/* -- proofs ----------------------------------------------------------------------------------------------------- */
#define Z    "\177"                      /* a zero octet: frame.h */
#define X15  "xxxxxxxxxxxxxxx"
#define X30  X15 X15
#define X31  X30 "x"

static struct query with_do(const char *name)
{
	return (struct query){ .name = name, .qtype = 1, .id = 11, .edns = true, .edns_size = EDNS_SIZE, .want_do = true };
}

static struct hydns_names_entry *is_signed(const char *name, const char *zone, __u32 types)
{
	struct hydns_names_entry *e = kernel_name(kern, name, zone);

	e->what |= HYDNS_NAMES_SIGNED | types << 8;
	return e;
}

/* What the probe's rule answers is known by its flags: each has a reserved bit or none, an authoritative answer or none. */
#define FLAGS(n) (NXDOMAIN | (n) << 6)

static void probe(const char *name, uint16_t flags)
{
	const struct query any = with_do("x");

	publish_at(&any, name, HYDNS_BELOW_TYPE, "example.test", flags);
}

static int begin_proofs(void **state)
{
	static const char *const children[] = {
		"b.example.test", "bb.example.test", "d.example.test", X30 ".example.test", X31 "y.example.test", "z.example.test",
		"host.example.test", "x.host.example.test", "a.other.test",
	};
	const struct query any = below("x");

	(void)state;
	kernel_anew(kern);
	is_signed("example.test", "example.test", hydns_names_types(HYDNS_TYPE_NS));
	for (unsigned i = 0; i < sizeof(children) / sizeof(children[0]) - 1; i++)
		is_signed(children[i], "example.test", hydns_names_types(1));
	for (unsigned i = 0; i < sizeof(children) / sizeof(children[0]); i++)
		kernel_child(kern, children[i]);
	kernel_name(kern, "plain.test", "plain.test");
	kernel_name(kern, "cut.example.test", "cut.example.test");
	publish(&any, "example.test");
	return 0;
}

static void proves(const char *name, uint16_t flags)
{
	struct query q = with_do(name);

	answered(&q, "example.test", flags);
	q.ipv6 = true;
	q.qtype = 28;
	answered(&q, "example.test", flags);
}

static void nobody_proves(const char *name)
{
	struct query q = with_do(name);

	passes(&q, HYDNS_R_MISS);
}

/* Each name between two neighbours has the answer of the probe behind the first of them, and no other. */
static void test_intervals(void **state)
{
	(void)state;
	nobody_proves("a.example.test");
	probe(Z ".example.test", FLAGS(0));
	proves("a.example.test", FLAGS(0));
	proves("deeper.and.deeper.a.example.test", FLAGS(0));
	proves("0.example.test", FLAGS(0));
	proves("+below+.example.test", FLAGS(0));
	nobody_proves("ba.example.test");
	probe("b" Z ".example.test", FLAGS(1));
	proves("ba.example.test", FLAGS(1));
	proves("x.b" Z ".example.test", FLAGS(1));
	nobody_proves("c.example.test");
	probe("bb" Z ".example.test", NXDOMAIN & ~REPLY_AA);
	proves("c.example.test", NXDOMAIN & ~REPLY_AA);
	proves("bb-.example.test", NXDOMAIN & ~REPLY_AA);
	probe("z" Z ".example.test", FLAGS(1));
	proves("zz.example.test", FLAGS(1));
	proves("\377.example.test", FLAGS(1));
	nobody_proves("b.example.test");
	nobody_proves("x.cut.example.test");
}

/* Below another name there are other neighbours. */
static void test_parents(void **state)
{
	(void)state;
	nobody_proves("y.host.example.test");
	probe("x" Z ".host.example.test", FLAGS(1));
	proves("y.host.example.test", FLAGS(1));
	nobody_proves("a.host.example.test");
	probe(Z ".host.example.test", FLAGS(0));
	proves("a.host.example.test", FLAGS(0));
	nobody_proves("a.x.host.example.test");
	probe(Z ".x.host.example.test", NXDOMAIN & ~REPLY_AA);
	proves("a.x.host.example.test", NXDOMAIN & ~REPLY_AA);
	is_signed("x.example.test", "example.test", 0);  /* a name that ends with a word, where a longer one was before */
	probe(Z ".x.example.test", FLAGS(0));
	proves("a.x.example.test", FLAGS(0));
}

/* Of labels of 32 octets and more nobody knows the order, nor the name of the last of them. */
static void test_long_labels(void **state)
{
	(void)state;
	probe(X31 Z ".example.test", FLAGS(1));
	probe(X30 Z ".example.test", FLAGS(0));
	proves(X30 "a.example.test", FLAGS(0));
	proves(X30 "aa" X31 ".example.test", FLAGS(0));
	nobody_proves(X31 "a.example.test");
	nobody_proves(X31 "z.example.test");
	nobody_proves("y.example.test");
	kernel_child(kern, X31 ".host.example.test");
	probe(X31 Z ".host.example.test", FLAGS(1));
	proves(X31 "a.host.example.test", FLAGS(1));
	proves("y.host.example.test", FLAGS(1));
}

/* A table that is closed says nothing, nor one with more leaves than there are. */
static void test_closed_table(void **state)
{
	volatile struct hydns_names_head *head = (void *)kernel_names(kern);
	const __u32 leaves = head->leaves;

	(void)state;
	proves("a.example.test", FLAGS(0));
	head->table++;
	nobody_proves("a.example.test");
	head->table++;
	proves("a.example.test", FLAGS(0));
	head->leaves = UINT32_MAX;
	nobody_proves("ba.example.test");
	head->leaves = leaves;
}

/* A zone's own templates are for its names without proofs alone; and queries without DO do not get these. */
static void test_what_is_signed(void **state)
{
	const struct query any = with_do("x");
	struct query q = with_do("x.plain.test"), plain = below("a.example.test");

	(void)state;
	denied(&plain, "example.test");
	publish(&any, "plain.test");
	denied(&q, "plain.test");
	publish(&any, "example.test");
	nobody_proves("d-.example.test");
}

/* Of a type the template stands at the name. */
static void test_proofs_of_types(void **state)
{
	const struct query any = with_do("x");
	struct query q = with_do("host.example.test");

	(void)state;
	publish_at(&any, "example.test", HYDNS_NODATA_TYPE, "example.test", REPLY_FLAGS | REPLY_AA);
	q.qtype = 28;
	passes(&q, HYDNS_R_MISS);
	publish_at(&any, "host.example.test", HYDNS_NODATA_TYPE, "example.test", REPLY_FLAGS | REPLY_AA);
	answered(&q, "example.test", REPLY_FLAGS | REPLY_AA);
	q.qtype = 16;
	answered(&q, "example.test", REPLY_FLAGS | REPLY_AA);
	q.qtype = 1;
	passes(&q, HYDNS_R_MISS);
	q.qtype = HYDNS_TYPE_DS;
	passes(&q, HYDNS_R_MISS);
	q.name = "example.test";
	q.qtype = 16;
	answered(&q, "example.test", REPLY_FLAGS | REPLY_AA);
}

/* Names so long that the probe's is one, or too long for one. */
static void test_long_names(void **state)
{
	char name[HYDNS_NAME_MAX + 1], query[2 * HYDNS_NAME_MAX], child[2 * HYDNS_NAME_MAX];

	(void)state;
	for (unsigned label = 41; label <= 42; label++) {      /* the probe's has 255 octets, and 256 */
		snprintf(name, sizeof(name), "%.*s." X31 X31 "." X31 X31 "." X31 X31 ".example.test", (int)label, X31 X31);
		is_signed(name, "example.test", 0);
		snprintf(child, sizeof(child), "abcdefgh.%s", name);
		kernel_child(kern, child);
		snprintf(query, sizeof(query), "ac.%s", name);
		snprintf(child, sizeof(child), "abcdefgh" Z ".%s", name);
		if (label == 41) {
			probe(child, FLAGS(1));
			proves(query, FLAGS(1));
		} else {
			nobody_proves(query);
		}
	}
}

/* -- proofs that are found by hashes -------------------------------------------------------------------------------- */
#define ZONE_LEN 14U                     /* octets of example.test */

static const struct hydns_nsec3 plain_hash;

static void is_hashed(const char *name, unsigned number)
{
	is_signed(name, "example.test", 0)->what |= HYDNS_NAMES_HASHED(number);
}

static void hash_as(unsigned number, struct hydns_nsec3 how)
{
	((struct hydns_names_head *)kernel_names(kern))->nsec3[number - 1] = how;
}

/* Of a name, lower case. */
static void hash_of(const char *name, const struct hydns_nsec3 *how, uint8_t hash[HYDNS_SHA1_OCTETS])
{
	uint8_t wire[HYDNS_NAME_MAX + 1];
	size_t len = name_wire(name, wire);

	hydns_nsec3_hash(wire, (unsigned)len, how, hash);
}

/* One more, or less. */
static void beside(uint8_t hash[HYDNS_SHA1_OCTETS], int by)
{
	for (int i = HYDNS_SHA1_OCTETS - 1; i >= 0; i--) {
		hash[i] = (uint8_t)(hash[i] + by);
		if (hash[i] != (by > 0 ? 0 : 0xff))
			return;
	}
}

static __u32 publish_hashed(const uint8_t hash[HYDNS_SHA1_OCTETS], const char *encloser, uint16_t flags)
{
	const struct query any = with_do("x");
	uint8_t label[1 + HYDNS_HASHED_LABEL];
	char name[2 * HYDNS_NAME_MAX];

	hydns_hash_to_label(hash, label);
	snprintf(name, sizeof(name), "%.*s.%s.%s", HYDNS_HASHED_LABEL, (const char *)label + 1, &HYDNS_HASHED_MARK[1], encloser);
	return publish_at(&any, name, HYDNS_HASHED_TYPE, "example.test", flags);
}

static int begin_hashes(void **state)
{
	(void)state;
	kernel_anew(kern);
	is_hashed("example.test", 1);
	is_hashed("host.example.test", 1);
	hash_as(1, plain_hash);
	return 0;
}

static int without_hashes(void **state)
{
	(void)state;
	kernel_no_children(kern);
	hash_as(1, plain_hash);
	return 0;
}

/* Labels that are so many octets together, with their lengths: none, or 2 and more. */
static char *put_labels(char *to, unsigned octets)
{
	while (octets) {
		unsigned take = octets > 64 ? octets == 65 ? 63 : 64 : octets;

		memset(to, 'p', take - 1);
		to += take - 1;
		*to++ = '.';
		octets -= take;
	}
	*to = '\0';
	return to;
}

/* The hash of the name is exactly this: of the two hashes in the chain, one after the other, it finds the first. */
static void is_hashed_so(const char *name, const char *encloser, const struct hydns_nsec3 *how)
{
	uint8_t hash[HYDNS_SHA1_OCTETS], next[HYDNS_SHA1_OCTETS];
	__u32 handle;

	hash_of(name, how, hash);
	memcpy(next, hash, sizeof(next));
	beside(next, 1);
	kernel_no_children(kern);
	kernel_hash(kern, "example.test", hash);
	kernel_hash(kern, "example.test", next);
	hash_as(1, *how);
	handle = publish_hashed(hash, encloser, FLAGS(1));
	proves(name, FLAGS(1));
	kernel_remove(kern, handle);
}

/* Names of all lengths that can have a template, and so messages that end at each octet of a block. */
static void test_hashes(void **state)
{
	static const struct hydns_nsec3 ways[] = {
		{ 0 }, { .iterations = 1 }, { .salt_len = 1, .salt = { 0x80 } },
		{ .iterations = 2, .salt_len = 8, .salt = { 1, 2, 3, 4, 5, 6, 7, 0xff } },
		{ .iterations = HYDNS_NSEC3_ITERATIONS_MOST, .salt_len = HYDNS_NSEC3_SALT_MOST,
		  .salt = { 0xff, 0xfe, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0xfd } },
	};
	const unsigned longest = HYDNS_NAME_MAX - HYDNS_HASHED_LEN;

	(void)state;
	for (unsigned len = ZONE_LEN + 2; len <= longest + 64; len++) {
		/* nor is a label right below the origin as long as that of a hash */
		unsigned above = len <= ZONE_LEN + 64 && len != ZONE_LEN + 1 + HYDNS_HASHED_LABEL ? ZONE_LEN :
				 len < ZONE_LEN + 2 + 64 ? ZONE_LEN + 2 : len - 64;
		char name[HYDNS_NAME_MAX + 1], *encloser = name + len - above;

		memset(name, 'q', len - above - 1);
		encloser[-1] = '.';
		strcpy(put_labels(encloser, above - ZONE_LEN), "example.test");
		is_hashed(encloser, 1);
		for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			is_hashed_so(name, encloser, &ways[i]);
	}
}

static void test_hash_of_lower_case(void **state)
{
	struct query q = with_do("Z.MissinG.Example.TEST");
	uint8_t hash[HYDNS_SHA1_OCTETS];

	(void)state;
	hash_of("missing.example.test", &plain_hash, hash);
	publish_hashed(hash, "example.test", FLAGS(1));
	kernel_hash(kern, "example.test", hash);
	answered(&q, "example.test", FLAGS(1));
}

/* The template of the last hash before the name's; before the first one that of none. */
static void test_chain(void **state)
{
	const uint8_t none[HYDNS_SHA1_OCTETS] = { 0 };
	uint8_t own[HYDNS_SHA1_OCTETS], less[HYDNS_SHA1_OCTETS], more[HYDNS_SHA1_OCTETS];

	(void)state;
	hash_of("missing.example.test", &plain_hash, own);
	memcpy(less, own, sizeof(less));
	beside(less, -1);
	memcpy(more, own, sizeof(more));
	beside(more, 1);
	kernel_hash(kern, "example.test", more);
	nobody_proves("missing.example.test");
	publish_hashed(none, "example.test", FLAGS(0));
	proves("missing.example.test", FLAGS(0));
	proves("below.and.below.missing.example.test", FLAGS(0));
	kernel_hash(kern, "example.test", less);
	nobody_proves("missing.example.test");
	publish_hashed(less, "example.test", FLAGS(1));
	proves("missing.example.test", FLAGS(1));
	nobody_proves("missing.host.example.test");      /* another closest encloser, and another hash */
	kernel_no_children(kern);
	kernel_hash(kern, "example.net", less);         /* of another zone */
	proves("missing.example.test", FLAGS(0));
}

/* A name that may be the owner of an NSEC3 record is shown by answers, perhaps. */
static void test_names_like_hashes(void **state)
{
	const uint8_t none[HYDNS_SHA1_OCTETS] = { 0 };

	(void)state;
	publish_hashed(none, "example.test", FLAGS(0));
	publish_hashed(none, "host.example.test", FLAGS(1));
	nobody_proves(X31 "x.example.test");
	nobody_proves("below." X31 "x.example.test");
	proves(X31 ".example.test", FLAGS(0));
	proves(X31 "xx.example.test", FLAGS(0));
	proves(X31 "x.host.example.test", FLAGS(1));
}

/* What the program does not compute; a child of the chain that is no hash; and a table that is closed. */
static void test_unknown_hashes(void **state)
{
	volatile struct hydns_names_head *head = (void *)kernel_names(kern);
	const uint8_t none[HYDNS_SHA1_OCTETS] = { 0 };
	struct query plain = below("missing.example.test");

	(void)state;
	publish_hashed(none, "example.test", FLAGS(0));
	proves("missing.example.test", FLAGS(0));
	passes(&plain, HYDNS_R_MISS);
	head->table++;
	nobody_proves("missing.example.test");
	head->table++;
	hash_as(1, (struct hydns_nsec3){ .iterations = HYDNS_NSEC3_ITERATIONS_MOST + 1 });
	nobody_proves("missing.example.test");
	hash_as(1, plain_hash);
	is_hashed("example.test", HYDNS_NAMES_NSEC3 + 1);
	nobody_proves("missing.example.test");
	is_hashed("example.test", 0);
	nobody_proves("missing.example.test");
	is_hashed("example.test", HYDNS_NAMES_NSEC3);
	proves("missing.example.test", FLAGS(0));
	is_hashed("example.test", 1);
}

/* An encloser behind which the template's name is too long for one. */
static void test_long_enclosers(void **state)
{
	const uint8_t none[HYDNS_SHA1_OCTETS] = { 0 };
	const unsigned longest = HYDNS_NAME_MAX - HYDNS_HASHED_LEN;
	char name[HYDNS_NAME_MAX + 3] = "q.";

	(void)state;
	for (unsigned len = longest; len <= longest + 1; len++) {
		strcpy(put_labels(name + 2, len - ZONE_LEN), "example.test");
		is_hashed(name + 2, 1);
		if (len == longest) {
			publish_hashed(none, name + 2, FLAGS(0));
			proves(name, FLAGS(0));
		} else {
			nobody_proves(name);
		}
	}
}

/* Below a name that proves nothing of them all names have the template that stands there, whatever their hashes. */
static void test_unproved(void **state)
{
	const uint8_t none[HYDNS_SHA1_OCTETS] = { 0 };
	const struct query any = with_do("x"), own = with_do("ent.example.test");
	struct query plain = below("x.ent.example.test");

	(void)state;
	is_signed("ent.example.test", "example.test", 0)->what |= HYDNS_NAMES_UNPROVED;
	is_signed("deep.ent.example.test", "example.test", 0)->what |= HYDNS_NAMES_UNPROVED;
	publish_hashed(none, "ent.example.test", FLAGS(0));
	publish_hashed(none, "example.test", FLAGS(0));
	publish(&any, "example.test");
	nobody_proves("x.ent.example.test");
	publish_at(&any, "+below+.ent.example.test", HYDNS_BELOW_TYPE, "example.test", FLAGS(1));
	publish_at(&any, "+below+.deep.ent.example.test", HYDNS_BELOW_TYPE, "example.test", FLAGS(2));
	proves("x.ent.example.test", FLAGS(1));
	proves("z.y.ent.example.test", FLAGS(1));
	proves("x.deep.ent.example.test", FLAGS(2));
	passes(&own, HYDNS_R_MISS);
	passes(&plain, HYDNS_R_MISS);                    /* without DO it is the zone's */
	publish(&plain, "example.test");
	denied(&plain, "example.test");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies), cmocka_unit_test(test_any_type), cmocka_unit_test(test_soa), cmocka_unit_test(test_types_are_counted), cmocka_unit_test(test_variants),
		cmocka_unit_test(test_others_pass), cmocka_unit_test(test_changes), cmocka_unit_test(test_closed), cmocka_unit_test(test_hostile_set), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_templates), cmocka_unit_test(test_letter_case),
	};
	const struct CMUnitTest types[] = {
		cmocka_unit_test(test_types), cmocka_unit_test(test_types_of_their_own), cmocka_unit_test(test_types_change),
		cmocka_unit_test(test_types_of_a_delegation), cmocka_unit_test(test_no_ds), cmocka_unit_test(test_types_often_asked_for),
	};

	const struct CMUnitTest proofs[] = {
		cmocka_unit_test(test_intervals), cmocka_unit_test(test_parents), cmocka_unit_test(test_long_labels),
		cmocka_unit_test(test_closed_table), cmocka_unit_test(test_what_is_signed), cmocka_unit_test(test_proofs_of_types),
		cmocka_unit_test(test_long_names),
	};

	const struct CMUnitTest hashes[] = {
		cmocka_unit_test_setup(test_hashes, without_hashes), cmocka_unit_test_setup(test_hash_of_lower_case, without_hashes),
		cmocka_unit_test_setup(test_chain, without_hashes), cmocka_unit_test_setup(test_names_like_hashes, without_hashes),
		cmocka_unit_test_setup(test_unknown_hashes, without_hashes), cmocka_unit_test_setup(test_long_enclosers, without_hashes),
		cmocka_unit_test_setup(test_unproved, without_hashes),
	};

	int failed;

	if (!expect_open(&(struct kernel_options){ .names = true, .verbose = true }))   /* once: with the dry run a million instructions to verify */
		return SKIPPED;
	failed = cmocka_run_group_tests(tests, begin, NULL) + cmocka_run_group_tests(types, begin_types, NULL) +
		 cmocka_run_group_tests(proofs, begin_proofs, NULL) + cmocka_run_group_tests(hashes, begin_hashes, NULL);
	return expect_close(failed);
}
