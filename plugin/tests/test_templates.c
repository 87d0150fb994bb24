/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which answers to the preloading thread's questions may be templates, and what the set says of delegations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "hydns/names.h"
#include "plugin/preload/state.h"
#include "plugin/tests/reply.h"
#include "plugin/tests/wire_name.h"

#define ORIGIN "example.test."
#define CUT    "cut." ORIGIN
#define SOA    ORIGIN " 900 IN SOA ns." ORIGIN " h." ORIGIN " 1 7200 3600 1209600 900"
#define SIGNED(owner, type) owner " 900 IN RRSIG " type " 13 2 900 19700102000000 19700101000000 1 " ORIGIN " AAAA"
#define NSEC   CUT " 900 IN NSEC z." ORIGIN " NS RRSIG NSEC"

static struct {
	struct hydns_preload l;
	struct hydns_preload_zone zone, *by_name;
	struct hydns_names_bucket *map;
	size_t octets;
	struct hydns_name_load load;
} t;

static void found(const char *name, struct hydns_name_data data)
{
	uint8_t out[HYDNS_NAME_MAX];

	data.proofs = t.zone.proofs;
	hydns_name_set_found(t.l.set, &t.load, out, wire(name, out), data);
}

static const struct hydns_name_data no_ds = { .below = HYDNS_BELOW_CUT, .no_ds = true }, with_ds = { .below = HYDNS_BELOW_CUT };

static void its_soa_is(uint16_t signature_len)
{
	hydns_name_set_soa_is(t.l.set, 0, &(struct hydns_zone_soa){ .of = &t, .signature_len = signature_len, .signature = { 1 } });
}

static void load(enum hydns_proofs proofs)
{
	t.zone.proofs = (int)proofs;
	t.load = (struct hydns_name_load){ .number = (uint8_t)(t.load.number + 1), .origin_len = t.zone.len,
					   .since = hydns_name_set_now(t.l.set) };
	found(ORIGIN, (struct hydns_name_data){ .below = HYDNS_BELOW_NOTHING });
	found("www." ORIGIN, (struct hydns_name_data){ .below = HYDNS_BELOW_NOTHING });
	found(CUT, no_ds);
	found("ns." CUT, (struct hydns_name_data){ .below = HYDNS_BELOW_ELSE });
	found("signed." ORIGIN, with_ds);
	hydns_name_set_open(t.l.set, true);
}

static int begin(void **state)
{
	const struct hydns_names_request q = { .buckets = HYDNS_NAMES_BUCKETS_LEAST, .leaves = HYDNS_LEAVES_LEAST, .zones = 1 };
	int fd = memfd_create("names", MFD_CLOEXEC);

	(void)state;
	memset(&t, 0, sizeof(t));
	t.octets = hydns_soa_element(q.buckets - 1, q.leaves, q.zones) * sizeof(*t.map);
	if (fd < 0 || ftruncate(fd, (off_t)t.octets))
		return -1;
	t.map = mmap(NULL, t.octets, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	t.by_name = &t.zone;
	t.zone.len = wire(ORIGIN, t.zone.name);
	t.zone.complete = true;
	t.l.zone = &t.zone;
	t.l.by_name = &t.by_name;
	t.l.o.zones = 1;
	t.l.set = hydns_name_set_new();
	pthread_mutex_init(&t.l.lock, NULL);
	return t.map == MAP_FAILED || !t.l.set ? -1 : hydns_name_set_take(t.l.set, fd, &q);
}

static int end(void **state)
{
	(void)state;
	hydns_name_set_free(t.l.set);
	pthread_mutex_destroy(&t.l.lock);
	return munmap(t.map, t.octets);
}

/* -- answers -------------------------------------------------------------------------------------------------- */
static struct hydns_preload_template at; /* of the last one */

/* Whether the reply, with AA if it denies, may be a template; then it stands at the question's own name. */
static bool is_template(const struct reply_spec *spec, bool denies)
{
	uint8_t name[HYDNS_NAME_MAX];
	struct reply r;
	bool is;

	reply_make(&r, spec);
	r.wire[2] = (uint8_t)(r.wire[2] | (denies ? HYDNS_FLAG_AA >> 8 : 0));
	memcpy(name, r.name, r.question.name_len);
	memset(&at, 0, sizeof(at));
	is = hydns_preload_is_of_template(name, r.question.name_len, spec->type) &&
	     hydns_preload_is_template(&t.l, &r.question, name, r.wire, r.len, &at);
	if (is)
		assert_memory_equal(name, r.name, r.question.name_len);
	reply_free(&r);
	return is;
}

static const struct reply_spec proves = { .name = CUT, .type = HYDNS_TYPE_DS, .dnssec_ok = true, .authority = {
	SOA, SIGNED(ORIGIN, "SOA"), NSEC, SIGNED(CUT, "NSEC") } };
static const struct reply_spec denies_alone = { .name = CUT, .type = HYDNS_TYPE_DS, .authority = { SOA } };

static void no_ds_is_proved_at_the_delegation(void **state)
{
	struct reply_spec other = proves;

	(void)state;
	load(HYDNS_PROOFS_NSEC);
	assert_true(is_template(&proves, true));
	assert_int_equal(at.qtype, HYDNS_TYPE_DS);
	assert_int_equal(at.soa.id, 0);
	other.name = "signed." ORIGIN;
	assert_false(is_template(&other, true));
	other.name = "www." ORIGIN;
	assert_false(is_template(&other, true));
	other.name = ORIGIN;
	assert_false(is_template(&other, true));
	other = proves;
	other.answer[0] = CUT " 900 IN DS 1 13 2 00";
	assert_false(is_template(&other, false));
	t.zone.complete = false;
	assert_false(is_template(&proves, true));
}

/* The zone's own template says that. */
static void without_a_proof_it_is_not(void **state)
{
	struct reply_spec with_do = denies_alone;

	(void)state;
	load(HYDNS_PROOFS_NSEC);
	assert_false(is_template(&denies_alone, true));
	load(HYDNS_PROOFS_NONE);
	with_do.dnssec_ok = true;
	assert_false(is_template(&denies_alone, true));
	assert_false(is_template(&with_do, true));
	with_do.name = ORIGIN;
	with_do.type = HYDNS_NODATA_TYPE;
	assert_true(is_template(&with_do, true));
}

/* Or each version would withdraw one for each delegation. */
static void it_shows_the_present_soa(void **state)
{
	(void)state;
	load(HYDNS_PROOFS_NSEC);
	its_soa_is(64);
	assert_true(is_template(&proves, true));
	assert_int_not_equal(at.soa.id, 0);
	its_soa_is(0);
	assert_false(is_template(&proves, true));
	hydns_name_set_soa_closes(t.l.set, 0);         /* it is not known whether it has a signature */
	assert_true(is_template(&proves, true));
}

/* What the set says now of a name: where the template stands that denies its DS, with a proof and without. */
static void denied_at(const char *name, size_t proved, size_t plain)
{
	const struct hydns_names_head *head = (const void *)t.map;
	uint8_t out[HYDNS_NAME_MAX];
	const size_t len = wire(name, out);
	const struct hydns_names_hash h = hydns_names_hash(out, (uint32_t)len, head->seed);
	uint32_t says = 0;

	for (int second = 0; second < 2; second++)
		for (unsigned i = 0; i < HYDNS_NAMES_ENTRIES; i++) {
			const struct hydns_names_entry *e = &t.map[hydns_names_bucket(h.tag, head->mask, second)].entry[i];

			if (e->tag == h.tag)
				says = HYDNS_NAMES_SAID(e->what);
		}
	assert_int_equal(hydns_names_denies_ds(says, true), proved);
	assert_int_equal(hydns_names_denies_ds(says, false), plain);
	assert_int_equal(hydns_name_set_proves_no_ds(t.l.set, out, len), proved == len);
}

static void what_the_set_says_of_ds(void **state)
{
	uint8_t out[HYDNS_NAME_MAX];

	(void)state;
	load(HYDNS_PROOFS_NONE);
	denied_at(CUT, t.zone.len, t.zone.len);
	load(HYDNS_PROOFS_NSEC3);
	denied_at(CUT, wire(CUT, out), t.zone.len);
	denied_at("signed." ORIGIN, 0, 0);
	denied_at("www." ORIGIN, 0, 0);
	denied_at(ORIGIN, 0, 0);
	denied_at("nothing." ORIGIN, 0, 0);
}

/* Before a version is served in which it has DS; what comes or goes below it says nothing of that. */
static void versions_change_what_the_set_says(void **state)
{
	uint8_t out[HYDNS_NAME_MAX];
	const size_t len = wire(CUT, out);

	(void)state;
	load(HYDNS_PROOFS_NSEC);
	hydns_name_set_change(t.l.set, out, wire("ns." CUT, out), t.zone.len, 0, true);
	denied_at(CUT, len, t.zone.len);
	hydns_name_set_change(t.l.set, out, wire(CUT, out), t.zone.len, 0, true);
	denied_at(CUT, 0, 0);
	assert_false(is_template(&proves, true));
	hydns_name_set_settle(t.l.set, out, len, t.zone.len, 0, with_ds, hydns_name_set_now(t.l.set));
	denied_at(CUT, 0, 0);
	hydns_name_set_change(t.l.set, out, len, t.zone.len, 0, true);
	hydns_name_set_settle(t.l.set, out, len, t.zone.len, 0, no_ds, hydns_name_set_now(t.l.set));
	denied_at(CUT, t.zone.len, t.zone.len);        /* what is settled here is of a zone without proofs */
}

static const struct hydns_preload_entry *only_entry(const struct hydns_preload_list *list)
{
	size_t begin_at = 0;
	const struct hydns_preload_entry *e = hydns_preload_list_next(list, &begin_at);

	assert_non_null(e);
	assert_int_equal(begin_at, list->len);
	return e;
}

/* In the two variants with DO, of delegations of signed zones alone. */
static void what_is_asked_of_delegations(void **state)
{
	const struct hydns_preload_found cut = { .ns = true }, has_ds = { .ns = true, .ds = true }, none = { 0 };
	struct hydns_preload_list list = { 0 };

	(void)state;
	assert_true(hydns_preload_no_ds(&cut, false, true));
	assert_false(hydns_preload_no_ds(&cut, false, false));
	assert_false(hydns_preload_no_ds(&cut, true, true));
	assert_false(hydns_preload_no_ds(&has_ds, false, true));
	assert_false(hydns_preload_no_ds(&none, false, true));
	assert_true(hydns_preload_add_no_ds(&list, t.zone.name, t.zone.len));
	assert_int_equal(list.questions, 2);
	assert_int_equal(only_entry(&list)->qtype, HYDNS_TYPE_DS);
	assert_int_equal(only_entry(&list)->variants, 1 << HYDNS_VARIANT_DO | 1 << (HYDNS_VARIANT_DO | HYDNS_VARIANT_NO_RD));
	hydns_preload_list_free(&list);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(no_ds_is_proved_at_the_delegation),
		TEST(without_a_proof_it_is_not),
		TEST(it_shows_the_present_soa),
		TEST(what_the_set_says_of_ds),
		TEST(versions_change_what_the_set_says),
		TEST(what_is_asked_of_delegations),
	};

	return cmocka_run_group_tests_name("templates", tests, NULL, NULL);
}
