/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The set of names, in memory that stands for the program's map: read here as the program reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "hydns/names.h"
#include "plugin/internal.h"
#include "plugin/preload/preload.h"
#include "plugin/tests/wire_name.h"

#define ORIGIN "example.test"
#define ABSENT (-1)
#define ZONES   3U
#define BUCKETS HYDNS_NAMES_BUCKETS_LEAST
#define LEAVES  300U
#define MANY    (1U << 19)               /* names: as many as a set of its size is meant for */

static struct {
	struct hydns_name_set *set;
	struct hydns_names_bucket *map;  /* the same memory */
	size_t octets;
	uint32_t leaves;                 /* of the table of children */
	struct hydns_name_load load;
	enum hydns_proofs signed_with;
} t;

static size_t origin_len(void)
{
	uint8_t out[HYDNS_NAME_MAX];

	return wire(ORIGIN, out);
}

/* HYDNS_NAMES_SAID(), or ABSENT. */
static int said_of(const char *name)
{
	const struct hydns_names_head *head = (const void *)t.map;
	uint8_t out[HYDNS_NAME_MAX];
	struct hydns_names_hash h = hydns_names_hash(out, (uint32_t)wire(name, out), head->seed);

	for (int second = 0; second < 2; second++)
		for (unsigned i = 0; i < HYDNS_NAMES_ENTRIES; i++) {
			const struct hydns_names_entry *e = &t.map[hydns_names_bucket(h.tag, head->mask, second)].entry[i];

			if (e->tag == h.tag && HYDNS_NAMES_CHECK(e->what) == h.check)
				return (int)HYDNS_NAMES_SAID(e->what);
		}
	return ABSENT;
}

static int length_of(const char *name)
{
	int says = said_of(name);

	return says == ABSENT ? ABSENT : (int)HYDNS_NAMES_LENGTH(says);
}

static void has(const char *name, uint16_t types)
{
	assert_int_equal(said_of(name), HYDNS_NAMES_SAYS(types, origin_len()));
}

static void denies_below(const char *name)
{
	assert_int_equal(length_of(name), origin_len());
}

static void passes_below(const char *name)
{
	assert_int_equal(length_of(name), 0);
}

static void is_absent(const char *name)
{
	assert_int_equal(length_of(name), ABSENT);
}

static bool is_open(void)
{
	return ((const struct hydns_names_head *)t.map)->open;
}

static void found_with(const char *name, uint16_t types)
{
	uint8_t out[HYDNS_NAME_MAX];

	hydns_name_set_found(t.set, &t.load, out, wire(name, out), (struct hydns_name_data){ .below = HYDNS_BELOW_NOTHING, .types = types });
}

static void found(const char *name, enum hydns_below below)
{
	uint8_t out[HYDNS_NAME_MAX];

	hydns_name_set_found(t.set, &t.load, out, wire(name, out), (struct hydns_name_data){ .below = below });
}

static void change(const char *name)
{
	uint8_t out[HYDNS_NAME_MAX];

	hydns_name_set_change(t.set, out, wire(name, out), origin_len(), t.load.zone, t.signed_with == HYDNS_PROOFS_NSEC);
}

static void settle_with(const char *name, struct hydns_name_data data, uint32_t since)
{
	uint8_t out[HYDNS_NAME_MAX];

	hydns_name_set_settle(t.set, out, wire(name, out), origin_len(), t.load.zone, data, since);
}

static void settle(const char *name, enum hydns_below below, uint32_t since)
{
	settle_with(name, (struct hydns_name_data){ .below = below }, since);
}

static void begin_load(void)
{
	t.load.number++;
	t.load.since = hydns_name_set_now(t.set);
}

static int begin_with(uint32_t buckets)
{
	const uint32_t leaves = buckets > BUCKETS ? 0 : LEAVES;
	const struct hydns_names_request q = { .buckets = buckets, .leaves = leaves, .zones = ZONES };
	const size_t octets = hydns_soa_element(buckets - 1, leaves, ZONES) * sizeof(struct hydns_names_bucket);
	int fd = memfd_create("names", MFD_CLOEXEC);

	memset(&t, 0, sizeof(t));
	t.octets = octets;
	t.leaves = leaves;
	if (fd < 0 || ftruncate(fd, (off_t)octets))
		return -1;
	t.map = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	t.set = hydns_name_set_new();
	t.load = (struct hydns_name_load){ .origin_len = origin_len() };
	begin_load();
	return t.map == MAP_FAILED || !t.set ? -1 : hydns_name_set_take(t.set, fd, &q);
}

static int begin(void **state)
{
	(void)state;
	return begin_with(BUCKETS);
}

static int begin_for_many(void **state)
{
	(void)state;
	return begin_with(hydns_names_buckets(MANY));
}

static int end(void **state)
{
	(void)state;
	hydns_name_set_free(t.set);
	return munmap(t.map, t.octets);
}

/* -- loading ------------------------------------------------------------------------------------------------ */
static void what_a_zone_says(void **state)
{
	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("www." ORIGIN, HYDNS_BELOW_NOTHING);
	found("deep.ent.above." ORIGIN, HYDNS_BELOW_NOTHING);
	found("cut." ORIGIN, HYDNS_BELOW_CUT);
	found("ns.empty.cut." ORIGIN, HYDNS_BELOW_ELSE);
	found("tree." ORIGIN, HYDNS_BELOW_ELSE);
	found("*.wild." ORIGIN, HYDNS_BELOW_ELSE);
	denies_below(ORIGIN);
	denies_below("www." ORIGIN);
	denies_below("ent.above." ORIGIN);
	denies_below("above." ORIGIN);
	assert_int_equal(length_of("cut." ORIGIN), 4 + origin_len());
	passes_below("empty.cut." ORIGIN);
	passes_below("ns.empty.cut." ORIGIN);
	passes_below("tree." ORIGIN);
	passes_below("wild." ORIGIN);
	passes_below("*.wild." ORIGIN);
	is_absent("nothing." ORIGIN);
	is_absent("test");
}

/* Of a name without data, that there are none; of one of which nothing is known, nothing. */
static void what_a_zone_has(void **state)
{
	(void)state;
	found_with("x.ent." ORIGIN, 1);
	has("x.ent." ORIGIN, 1);
	has("ent." ORIGIN, 0);
	found_with("ent." ORIGIN, 6);
	has("ent." ORIGIN, 6);
	found("cut." ORIGIN, HYDNS_BELOW_CUT);
	assert_int_equal(said_of("cut." ORIGIN), HYDNS_NAMES_SAYS(HYDNS_NAMES_TYPES_ALL, 4 + origin_len()) | HYDNS_NAMES_CUT);
	found("else." ORIGIN, HYDNS_BELOW_ELSE);
	assert_int_equal(said_of("else." ORIGIN), 0);
	begin_load();
	found_with("ent." ORIGIN, 8);
	has("ent." ORIGIN, 8);
}

/* In whichever order they are found. */
static void a_wildcard_s_parent(void **state)
{
	(void)state;
	found("*.wild." ORIGIN, HYDNS_BELOW_ELSE);
	found("wild." ORIGIN, HYDNS_BELOW_NOTHING);
	found("x.wild." ORIGIN, HYDNS_BELOW_NOTHING);
	passes_below("wild." ORIGIN);
	found("*." ORIGIN, HYDNS_BELOW_ELSE);
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	passes_below(ORIGIN);
}

static void what_a_zone_has_lost(void **state)
{
	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("gone." ORIGIN, HYDNS_BELOW_NOTHING);
	found("*.wild." ORIGIN, HYDNS_BELOW_ELSE);
	begin_load();
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("x.wild." ORIGIN, HYDNS_BELOW_NOTHING);
	hydns_name_set_loaded(t.set, &t.load);
	denies_below(ORIGIN);
	is_absent("gone." ORIGIN);
	is_absent("*.wild." ORIGIN);
	denies_below("wild." ORIGIN);
	assert_int_equal(hydns_name_set_state(t.set).names, 3);
}

/* Another zone's names are not this one's to lose, nor where it begins to say. */
static void other_zones(void **state)
{
	struct hydns_name_load own = t.load, child = { .zone = 1, .number = 1, .origin_len = 4 + origin_len() };

	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("sub." ORIGIN, HYDNS_BELOW_FOREIGN);
	passes_below("sub." ORIGIN);
	t.load = child;
	found("sub." ORIGIN, HYDNS_BELOW_NOTHING);
	found("a.sub." ORIGIN, HYDNS_BELOW_NOTHING);
	assert_int_equal(length_of("sub." ORIGIN), child.origin_len);
	t.load = own;
	begin_load();
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("sub." ORIGIN, HYDNS_BELOW_FOREIGN);
	hydns_name_set_loaded(t.set, &t.load);
	assert_int_equal(length_of("sub." ORIGIN), child.origin_len);
	assert_int_equal(length_of("a.sub." ORIGIN), child.origin_len);
}

/* -- changes ------------------------------------------------------------------------------------------------ */
static void a_name_that_comes(void **state)
{
	uint32_t since;

	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("b." ORIGIN, HYDNS_BELOW_NOTHING);
	change("new.a.b." ORIGIN);
	passes_below("new.a.b." ORIGIN);
	passes_below("a.b." ORIGIN);
	denies_below("b." ORIGIN);
	denies_below(ORIGIN);
	since = hydns_name_set_now(t.set);
	settle("new.a.b." ORIGIN, HYDNS_BELOW_NOTHING, since);
	settle("a.b." ORIGIN, HYDNS_BELOW_NOTHING, since);
	denies_below("new.a.b." ORIGIN);
	denies_below("a.b." ORIGIN);
	change("new.a.b." ORIGIN);
	settle("new.a.b." ORIGIN, HYDNS_BELOW_ABSENT, since);    /* as it was before the change */
	passes_below("new.a.b." ORIGIN);
	settle("new.a.b." ORIGIN, HYDNS_BELOW_ABSENT, hydns_name_set_now(t.set));
	is_absent("new.a.b." ORIGIN);
}

static void types_that_come(void **state)
{
	const struct hydns_name_data with = { .below = HYDNS_BELOW_NOTHING, .types = 3 };

	(void)state;
	found_with(ORIGIN, 1);
	found_with("www." ORIGIN, 1);
	change("www." ORIGIN);
	passes_below("www." ORIGIN);
	has(ORIGIN, 1);
	settle_with("www." ORIGIN, with, hydns_name_set_now(t.set));
	has("www." ORIGIN, 3);
	change(ORIGIN);
	assert_int_equal(said_of(ORIGIN), 0);
	settle_with(ORIGIN, with, hydns_name_set_now(t.set));
	has(ORIGIN, 3);
}

/* With a name there may go those above it that have no data: of these nothing is said until somebody has looked. */
static void a_name_that_goes(void **state)
{
	(void)state;
	found_with(ORIGIN, 1);
	found_with("www." ORIGIN, 1);
	found_with("x.ent.www." ORIGIN, 1);
	change("x.ent.www." ORIGIN);
	assert_int_equal(said_of("ent.www." ORIGIN), HYDNS_NAMES_SAYS(HYDNS_NAMES_TYPES_ALL, origin_len()));
	has("www." ORIGIN, 1);
	has(ORIGIN, 1);
	settle_with("ent.www." ORIGIN, (struct hydns_name_data){ .below = HYDNS_BELOW_NOTHING }, hydns_name_set_now(t.set));
	has("ent.www." ORIGIN, 0);
}

/* Who has looked at the data before the second change must not take out what that needs. */
static void names_above_one_that_comes(void **state)
{
	uint32_t since;

	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	change("p.q.r." ORIGIN);
	since = hydns_name_set_now(t.set);
	change("other.q.r." ORIGIN);
	settle("q.r." ORIGIN, HYDNS_BELOW_ABSENT, since);
	settle("r." ORIGIN, HYDNS_BELOW_ABSENT, since);
	passes_below("q.r." ORIGIN);
	passes_below("r." ORIGIN);
	denies_below(ORIGIN);
}

/* A set that has replaced another learns of it so. */
static void a_name_that_nobody_has_told(void **state)
{
	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	settle("late." ORIGIN, HYDNS_BELOW_NOTHING, hydns_name_set_now(t.set));
	settle("gone." ORIGIN, HYDNS_BELOW_ABSENT, hydns_name_set_now(t.set));
	denies_below("late." ORIGIN);
	is_absent("gone." ORIGIN);
}

/* What comes in one zone is not what another has lost. */
static void a_name_of_another_zone(void **state)
{
	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	t.load.zone = 1;
	change("other.test");
	t.load.zone = 0;
	begin_load();
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	hydns_name_set_loaded(t.set, &t.load);
	passes_below("other.test");
}

static void a_wildcard_that_comes(void **state)
{
	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("www." ORIGIN, HYDNS_BELOW_NOTHING);
	change("*.www." ORIGIN);
	passes_below("www." ORIGIN);
	denies_below(ORIGIN);
	change("*." ORIGIN);
	passes_below(ORIGIN);
}

/* A load that has read the data before a change must not undo what that says. */
static void a_change_during_a_load(void **state)
{
	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("www." ORIGIN, HYDNS_BELOW_NOTHING);
	begin_load();
	change("www." ORIGIN);
	change("new." ORIGIN);
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("www." ORIGIN, HYDNS_BELOW_NOTHING);
	hydns_name_set_loaded(t.set, &t.load);
	passes_below("www." ORIGIN);
	passes_below("new." ORIGIN);
}

/* Names that a template's answer shows, and those between them and the zone. */
static void what_an_answer_shows(void **state)
{
	uint8_t out[HYDNS_NAME_MAX];

	(void)state;
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("ns.servers." ORIGIN, HYDNS_BELOW_NOTHING);
	hydns_name_set_show(t.set, out, wire("ns.servers." ORIGIN, out), origin_len(), 0);
	hydns_name_set_show(t.set, out, wire("admin.nowhere." ORIGIN, out), origin_len(), 0);
	passes_below("ns.servers." ORIGIN);
	passes_below("servers." ORIGIN);
	passes_below("nowhere." ORIGIN);
	denies_below(ORIGIN);
	settle("nowhere." ORIGIN, HYDNS_BELOW_ABSENT, hydns_name_set_now(t.set));
	passes_below("nowhere." ORIGIN);
	begin_load();                          /* the answer is still there */
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	found("ns.servers." ORIGIN, HYDNS_BELOW_NOTHING);
	hydns_name_set_loaded(t.set, &t.load);
	passes_below("ns.servers." ORIGIN);
	passes_below("nowhere." ORIGIN);
	denies_below(ORIGIN);
}

/* -- signed zones ------------------------------------------------------------------------------------------- */
static void found_signed(const char *name, enum hydns_below below, uint16_t types)
{
	uint8_t out[HYDNS_NAME_MAX];

	hydns_name_set_found(t.set, &t.load, out, wire(name, out),
			     (struct hydns_name_data){ .below = below, .types = types, .proofs = t.signed_with });
}

static bool table_is_open(void)
{
	return !(((const struct hydns_names_head *)t.map)->table & 1);
}

static void begin_signed(enum hydns_proofs with)
{
	t.signed_with = with;
	found_signed(ORIGIN, HYDNS_BELOW_NOTHING, 1);
	found_signed("b." ORIGIN, HYDNS_BELOW_NOTHING, hydns_names_types(1));
	found_signed("x.y.d." ORIGIN, HYDNS_BELOW_NOTHING, hydns_names_types(1));
	found_signed("cut." ORIGIN, HYDNS_BELOW_CUT, 0);
	found_signed("cut.e." ORIGIN, HYDNS_BELOW_CUT, 0);
	found_signed("*.wild." ORIGIN, HYDNS_BELOW_ELSE, 0);
	hydns_name_set_open(t.set, true);
	hydns_name_set_merge(t.set);
}

static void which_names_are_signed(void **state)
{
	(void)state;
	begin_signed(HYDNS_PROOFS_NSEC3);
	assert_int_equal(said_of("b." ORIGIN), HYDNS_NAMES_SAYS(hydns_names_types(1), origin_len()) | HYDNS_NAMES_SIGNED);
	assert_int_equal(said_of("y.d." ORIGIN), HYDNS_NAMES_SAYS(0, origin_len()) | HYDNS_NAMES_SIGNED);
	assert_int_equal(said_of("cut." ORIGIN), HYDNS_NAMES_SAYS(HYDNS_NAMES_TYPES_ALL, 4 + origin_len()) | HYDNS_NAMES_CUT);
	assert_int_equal(said_of("e." ORIGIN), HYDNS_NAMES_SAYS(0, origin_len()) | HYDNS_NAMES_SIGNED);  /* above a delegation alone */
	assert_int_equal(said_of("wild." ORIGIN), 0);
	change("y.d." ORIGIN);
	assert_int_equal(said_of("d." ORIGIN), HYDNS_NAMES_SAYS(HYDNS_NAMES_TYPES_ALL, origin_len()) | HYDNS_NAMES_SIGNED);
	settle_with("y.d." ORIGIN, (struct hydns_name_data){ .below = HYDNS_BELOW_NOTHING, .proofs = HYDNS_PROOFS_NSEC3 },
		    hydns_name_set_now(t.set));
	assert_int_equal(said_of("y.d." ORIGIN), HYDNS_NAMES_SAYS(0, origin_len()) | HYDNS_NAMES_SIGNED);
}

/* The template's question for this one; its first label's zero octet, if that is its last, is not shown. NULL: none. */
static const char *template(const char *name, uint16_t qtype)
{
	static char text[HYDNS_NAME_MAX];
	struct hydns_name_template found;
	uint8_t out[HYDNS_NAME_MAX];
	char *to = text;

	if (!hydns_name_set_template(t.set, out, wire(name, out), qtype, &found))
		return NULL;
	assert_int_equal(found.qtype, hydns_is_probe(found.name) ? HYDNS_BELOW_TYPE : HYDNS_NODATA_TYPE);
	assert_int_equal(found.zone, t.load.zone);
	assert_int_equal(hydns_name_length(found.name, HYDNS_NAME_MAX), found.len);
	for (const uint8_t *at = found.name; *at; at += 1 + *at)
		to += sprintf(to, "%.*s.", *at, (const char *)at + 1);
	return text;
}

static void which_template_a_query_misses(void **state)
{
	(void)state;
	begin_signed(HYDNS_PROOFS_NSEC);
	assert_string_equal(template("a." ORIGIN, 1), ".example.test.");
	assert_string_equal(template("c." ORIGIN, 1), "b.example.test.");
	assert_string_equal(template("x.y.c." ORIGIN, 1), "b.example.test.");
	assert_string_equal(template("cuu." ORIGIN, 1), "cut.example.test.");
	assert_string_equal(template("z." ORIGIN, 1), "wild.example.test.");
	assert_string_equal(template("z.d." ORIGIN, 1), "y.d.example.test.");
	assert_string_equal(template("z.x.y.d." ORIGIN, 1), ".x.y.d.example.test.");
	assert_string_equal(template("b." ORIGIN, 28), "b.example.test.");
	assert_string_equal(template("d." ORIGIN, 1), "d.example.test.");
	assert_null(template("b." ORIGIN, 1));
	assert_null(template(ORIGIN, 28));               /* which is preloaded */
	assert_null(template("b." ORIGIN, HYDNS_TYPE_SOA));
	assert_null(template("x.cut." ORIGIN, 1));
	assert_null(template("x.wild." ORIGIN, 1));
	assert_null(template("elsewhere.test", 1));
	hydns_name_set_open(t.set, false);
	assert_null(template("c." ORIGIN, 1));
}

/* A zone that is not signed has the zone's own templates. */
static void no_template_without_signatures(void **state)
{
	(void)state;
	begin_signed(HYDNS_PROOFS_NONE);
	assert_null(template("c." ORIGIN, 1));
	assert_null(template("b." ORIGIN, 28));
}

/* Before a version is served that has a child more, the table is closed; not for one that it knows. */
static void children_that_come(void **state)
{
	(void)state;
	begin_signed(HYDNS_PROOFS_NSEC);
	assert_true(table_is_open());
	change("b." ORIGIN);
	change("x.y.d." ORIGIN);
	assert_true(table_is_open());
	change("c." ORIGIN);
	assert_false(table_is_open());
	assert_null(template("cc." ORIGIN, 1));
	hydns_name_set_merge(t.set);
	assert_true(table_is_open());
	assert_string_equal(template("cc." ORIGIN, 1), "c.example.test.");
	change("x.new.y.d." ORIGIN);                     /* one above it comes with it */
	hydns_name_set_merge(t.set);
	assert_string_equal(template("z.y.d." ORIGIN, 1), "x.y.d.example.test.");
	assert_string_equal(template("o.y.d." ORIGIN, 1), "new.y.d.example.test.");
}

/* Nor is it for a zone whose proofs do not tell children. */
static void children_of_others(void **state)
{
	(void)state;
	begin_signed(HYDNS_PROOFS_NSEC3);
	change("c." ORIGIN);
	assert_true(table_is_open());
	assert_int_equal(((const struct hydns_names_head *)t.map)->leaves, 0);
}

/* -- hashes of NSEC3 ----------------------------------------------------------------------------------------- */
static const struct hydns_nsec3 salted = { .iterations = 3, .salt_len = 2, .salt = { 0xab, 0xcd } };

static void found_hashed(const char *name, enum hydns_below below, uint16_t types)
{
	uint8_t out[HYDNS_NAME_MAX];

	hydns_name_set_found(t.set, &t.load, out, wire(name, out), (struct hydns_name_data){ .below = below, .types = types,
			     .proofs = HYDNS_PROOFS_NSEC3, .hashing = 2 });
}

static void begin_hashed(void)
{
	t.signed_with = HYDNS_PROOFS_NSEC3;
	found_hashed(ORIGIN, HYDNS_BELOW_NOTHING, 1);
	found_hashed("x.y.d." ORIGIN, HYDNS_BELOW_NOTHING, hydns_names_types(1));
	found_hashed("cut." ORIGIN, HYDNS_BELOW_CUT, 0);
	hydns_name_set_hash_so(t.set, 2, &salted);
	hydns_name_set_open(t.set, true);
	hydns_name_set_merge(t.set);
}

static void hash_beside(const char *name, int by, uint8_t hash[HYDNS_SHA1_OCTETS])
{
	uint8_t out[HYDNS_NAME_MAX];

	hydns_nsec3_hash(out, (unsigned)wire(name, out), &salted, hash);
	for (int i = HYDNS_SHA1_OCTETS - 1, carry = by; i >= 0 && carry; i--) {
		carry += hash[i];
		hash[i] = (uint8_t)carry;
		carry = carry < 0 ? -1 : carry > 255;
	}
}

static void hash_comes(const char *name, int by)
{
	uint8_t origin[HYDNS_NAME_MAX], hash[HYDNS_SHA1_OCTETS];

	hash_beside(name, by, hash);
	hydns_name_set_hash_comes(t.set, origin, wire(ORIGIN, origin), hash);
}

/* Whether the template stands at this hash and the encloser, and what is asked for it is the name or below it. */
static bool stands_at(const char *name, const char *encloser, const uint8_t hash[HYDNS_SHA1_OCTETS])
{
	struct hydns_name_template found;
	uint8_t out[HYDNS_NAME_MAX], at[HYDNS_HASHED_LEN], of[HYDNS_NAME_MAX];
	size_t len = wire(name, out), of_len = wire(encloser, of), first = 0;

	if (!hydns_name_set_template(t.set, out, len, 1, &found))
		return false;
	hydns_hashed_name(hash, at);
	assert_int_equal(found.qtype, HYDNS_HASHED_TYPE);
	assert_int_equal(found.asked_qtype, HYDNS_BELOW_TYPE);
	assert_int_equal(found.zone, t.load.zone);
	assert_int_equal(found.len, HYDNS_HASHED_LEN + of_len);
	assert_memory_equal(found.name + HYDNS_HASHED_LEN, of, of_len);
	assert_int_equal(hydns_name_length(found.asked, HYDNS_NAME_MAX), found.len);
	assert_true(hydns_is_probe(found.asked));
	while (len - first - 1 - out[first] > of_len)    /* the first label that is not there */
		first += 1U + out[first];
	assert_memory_equal(found.asked + 1 + found.asked[0], out + first, len - first);
	return !memcmp(found.name, at, HYDNS_HASHED_LEN);
}

static bool no_template(const char *name)
{
	struct hydns_name_template found;
	uint8_t out[HYDNS_NAME_MAX];

	return !hydns_name_set_template(t.set, out, wire(name, out), 1, &found);
}

#define L31 "lllllllllllllllllllllllllllllll"

static void which_hash_a_query_misses(void **state)
{
	static const char *const names[] = { "a." ORIGIN, "z." ORIGIN, L31 "." ORIGIN, L31 "ll." ORIGIN, L31 L31 "l." ORIGIN };
	const uint8_t none[HYDNS_SHA1_OCTETS] = { 0 };
	uint8_t hash[HYDNS_SHA1_OCTETS];

	(void)state;
	begin_hashed();
	assert_int_equal(said_of("d." ORIGIN), HYDNS_NAMES_SAYS(0, origin_len()) | HYDNS_NAMES_SIGNED | HYDNS_NAMES_HASHED(2));
	assert_int_equal(said_of("cut." ORIGIN), HYDNS_NAMES_SAYS(HYDNS_NAMES_TYPES_ALL, 4 + origin_len()) | HYDNS_NAMES_CUT);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(stands_at(names[i], ORIGIN, none));
	hash_comes("a." ORIGIN, 1);
	hydns_name_set_merge(t.set);
	assert_true(stands_at("a." ORIGIN, ORIGIN, none));
	hash_comes("a." ORIGIN, -1);
	assert_true(no_template("a." ORIGIN));           /* the table is closed */
	hydns_name_set_merge(t.set);
	hash_beside("a." ORIGIN, -1, hash);
	assert_true(stands_at("a." ORIGIN, ORIGIN, hash));
	assert_true(stands_at("b.c.a." ORIGIN, ORIGIN, hash));
	hash_comes("a." ORIGIN, 0);
	hydns_name_set_merge(t.set);
	hash_beside("a." ORIGIN, 0, hash);
	assert_true(stands_at("a." ORIGIN, ORIGIN, hash));
	hash_comes("e.y.d." ORIGIN, 0);
	hydns_name_set_merge(t.set);
	hash_beside("e.y.d." ORIGIN, 0, hash);
	assert_true(stands_at("e.y.d." ORIGIN, "y.d." ORIGIN, hash));
	assert_true(no_template(L31 "l." ORIGIN));       /* which may be the owner name of a record */
	assert_true(no_template("x." L31 "l." ORIGIN));
	hydns_name_set_open(t.set, false);
	assert_true(no_template("a." ORIGIN));
}

static void found_unproved(const char *name, uint8_t hashing)
{
	uint8_t out[HYDNS_NAME_MAX];

	hydns_name_set_found(t.set, &t.load, out, wire(name, out), (struct hydns_name_data){ .below = HYDNS_BELOW_NOTHING, .unproved = true,
			     .proofs = HYDNS_PROOFS_NSEC3, .hashing = hashing });
}

static bool stands_below(const char *missing, const char *name)
{
	struct hydns_name_template found;
	uint8_t out[HYDNS_NAME_MAX], of[HYDNS_NAME_MAX];
	size_t of_len = wire(name, of);

	return hydns_name_set_template(t.set, out, wire(missing, out), 1, &found) && found.qtype == HYDNS_BELOW_TYPE &&
	       found.asked_qtype == HYDNS_BELOW_TYPE && found.len == HYDNS_BELOW_LABEL_LEN + of_len &&
	       !memcmp(found.name, HYDNS_BELOW_LABEL, HYDNS_BELOW_LABEL_LEN) && !memcmp(found.name + HYDNS_BELOW_LABEL_LEN, of, of_len) &&
	       !memcmp(found.asked, found.name, found.len);
}

/* Names without data that prove nothing of those below them. */
static void names_that_prove_nothing(void **state)
{
	const uint32_t all = HYDNS_NAMES_SAYS(0, origin_len());
	const uint8_t none[HYDNS_SHA1_OCTETS] = { 0 };

	(void)state;
	begin_hashed();
	found_unproved("e." ORIGIN, 2);
	found_unproved("g.e." ORIGIN, 2);
	found_hashed("z.f.g.e." ORIGIN, HYDNS_BELOW_NOTHING, 1);
	found_unproved("k.j." ORIGIN, 2);
	found_unproved("plain." ORIGIN, 0);    /* hashed as nobody computes it */
	assert_int_equal(said_of("e." ORIGIN), all | HYDNS_NAMES_UNPROVED);
	assert_int_equal(said_of("f.g.e." ORIGIN), all | HYDNS_NAMES_SIGNED | HYDNS_NAMES_HASHED(2));
	assert_int_equal(said_of("j." ORIGIN), all | HYDNS_NAMES_SIGNED | HYDNS_NAMES_HASHED(2));
	assert_int_equal(said_of("plain." ORIGIN), all | HYDNS_NAMES_SIGNED);
	assert_true(stands_below("x.e." ORIGIN, "e." ORIGIN));
	assert_true(stands_below("y.x.g.e." ORIGIN, "g.e." ORIGIN));
	assert_true(stands_at("x.f.g.e." ORIGIN, "f.g.e." ORIGIN, none));
	assert_false(stands_below("e." ORIGIN, "e." ORIGIN));
}

/* A name behind which that of the template would be too long. */
static void too_long_for_a_hash(void **state)
{
	static const char *const above = L31 L31 "." L31 L31 "." L31 "lllll." ORIGIN;    /* 189 octets with one more label of 12 */
	char name[HYDNS_NAME_MAX], missing[HYDNS_NAME_MAX + 2];

	(void)state;
	begin_hashed();
	for (unsigned len = HYDNS_NAME_MAX - HYDNS_HASHED_LEN; len <= HYDNS_NAME_MAX - HYDNS_HASHED_LEN + 1; len++) {
		uint8_t out[HYDNS_NAME_MAX];

		snprintf(name, sizeof(name), "%.*s.%s", (int)(len - wire(above, out) - 1), L31 L31, above);
		assert_int_equal(wire(name, out), len);
		found_hashed(name, HYDNS_BELOW_NOTHING, 1);
		snprintf(missing, sizeof(missing), "m.%s", name);
		assert_int_equal(no_template(missing), len > HYDNS_NAME_MAX - HYDNS_HASHED_LEN);
	}
}

/* Before a version is served that has a hash more, the table is closed; not for one that it knows. */
static void hashes_that_come(void **state)
{
	(void)state;
	begin_hashed();
	hash_comes("a." ORIGIN, 0);
	hydns_name_set_merge(t.set);
	assert_true(table_is_open());
	hash_comes("a." ORIGIN, 0);
	assert_true(table_is_open());
	hash_comes("a." ORIGIN, 1);
	assert_false(table_is_open());
	hydns_name_set_merge(t.set);
	assert_true(table_is_open());
}

static void ways_of_hashing(void **state)
{
	struct hydns_nsec3 found;

	(void)state;
	hydns_name_set_hash_so(t.set, 2, &salted);
	assert_true(hydns_name_set_hashing(t.set, 2, &found));
	assert_memory_equal(&found, &salted, sizeof(salted));
	assert_true(hydns_name_set_hashing(t.set, HYDNS_NAMES_NSEC3, &found));
	assert_false(hydns_name_set_hashing(t.set, HYDNS_NAMES_NSEC3 + 1, &found));
	assert_false(hydns_name_set_hashing(t.set, 0, &found));
	hydns_name_set_drop(t.set);
	assert_false(hydns_name_set_hashing(t.set, 2, &found));
	hydns_name_set_hash_so(t.set, 2, &salted);
	hash_comes("a." ORIGIN, 0);
}

static void a_full_table(void **state)
{
	char name[64];

	(void)state;
	begin_signed(HYDNS_PROOFS_NSEC);
	for (unsigned i = 0; i < LEAVES * HYDNS_LEAF_CHILDREN; i++) {
		snprintf(name, sizeof(name), "n%u." ORIGIN, i);
		change(name);
	}
	assert_false(hydns_name_set_state(t.set).table_full);
	hydns_name_set_merge(t.set);
	assert_true(hydns_name_set_state(t.set).table_full);
	assert_false(table_is_open());
	hydns_name_set_empty_table(t.set);
	begin_load();
	begin_signed(HYDNS_PROOFS_NSEC);
	assert_true(table_is_open());
	assert_string_equal(template("c." ORIGIN, 1), "b.example.test.");
}

/* -- the map ------------------------------------------------------------------------------------------------ */
static void open_and_closed(void **state)
{
	(void)state;
	assert_false(is_open());
	hydns_name_set_open(t.set, true);
	assert_true(is_open());
	hydns_name_set_open(t.set, false);
	assert_false(is_open());
	hydns_name_set_open(t.set, true);
	hydns_name_set_drop(t.set);
	assert_false(is_open());
	found(ORIGIN, HYDNS_BELOW_NOTHING);
	change(ORIGIN);
	assert_false(hydns_name_set_state(t.set).exists);
}

/* A name that finds no place is absent, which would be wrong: the set is closed before that, for good. */
static void a_full_set(void **state)
{
	char name[64];

	(void)state;
	hydns_name_set_open(t.set, true);
	for (unsigned i = 0; i <= BUCKETS * HYDNS_NAMES_ENTRIES && is_open(); i++) {
		snprintf(name, sizeof(name), "n%u." ORIGIN, i);
		change(name);
	}
	assert_false(is_open());
	assert_true(hydns_name_set_state(t.set).full);
	assert_true(hydns_name_set_state(t.set).names > BUCKETS * HYDNS_NAMES_ENTRIES / 2);
	hydns_name_set_open(t.set, true);
	assert_false(is_open());
}

/* Each finds a place. */
static void as_many_names_as_it_is_meant_for(void **state)
{
	char name[64];

	(void)state;
	hydns_name_set_open(t.set, true);
	for (unsigned i = 0; i < MANY - 2; i++) {       /* and the origin, and what is above it */
		snprintf(name, sizeof(name), "n%u." ORIGIN, i);
		found(name, HYDNS_BELOW_NOTHING);
	}
	assert_true(is_open());
	assert_int_equal(hydns_name_set_state(t.set).names, MANY - 2);
	assert_int_equal(hydns_name_set_state(t.set).room, 2 * MANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_zone_says, begin, end), cmocka_unit_test_setup_teardown(a_wildcard_s_parent, begin, end),
		cmocka_unit_test_setup_teardown(what_a_zone_has, begin, end), cmocka_unit_test_setup_teardown(types_that_come, begin, end),
		cmocka_unit_test_setup_teardown(a_name_that_goes, begin, end),
		cmocka_unit_test_setup_teardown(what_a_zone_has_lost, begin, end), cmocka_unit_test_setup_teardown(other_zones, begin, end),
		cmocka_unit_test_setup_teardown(a_name_that_comes, begin, end), cmocka_unit_test_setup_teardown(names_above_one_that_comes, begin, end),
		cmocka_unit_test_setup_teardown(a_name_that_nobody_has_told, begin, end),
		cmocka_unit_test_setup_teardown(a_name_of_another_zone, begin, end),
		cmocka_unit_test_setup_teardown(a_wildcard_that_comes, begin, end),
		cmocka_unit_test_setup_teardown(a_change_during_a_load, begin, end),
		cmocka_unit_test_setup_teardown(what_an_answer_shows, begin, end), cmocka_unit_test_setup_teardown(open_and_closed, begin, end),
		cmocka_unit_test_setup_teardown(a_full_set, begin, end),
		cmocka_unit_test_setup_teardown(which_names_are_signed, begin, end),
		cmocka_unit_test_setup_teardown(which_template_a_query_misses, begin, end),
		cmocka_unit_test_setup_teardown(no_template_without_signatures, begin, end),
		cmocka_unit_test_setup_teardown(which_hash_a_query_misses, begin, end), cmocka_unit_test_setup_teardown(too_long_for_a_hash, begin, end),
		cmocka_unit_test_setup_teardown(names_that_prove_nothing, begin, end),
		cmocka_unit_test_setup_teardown(hashes_that_come, begin, end), cmocka_unit_test_setup_teardown(ways_of_hashing, begin, end),
		cmocka_unit_test_setup_teardown(children_that_come, begin, end), cmocka_unit_test_setup_teardown(children_of_others, begin, end),
		cmocka_unit_test_setup_teardown(a_full_table, begin, end),
		cmocka_unit_test_setup_teardown(as_many_names_as_it_is_meant_for, begin_for_many, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
