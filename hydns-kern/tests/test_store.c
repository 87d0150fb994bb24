/* SPDX-License-Identifier: GPL-2.0-only */
/* The rule store in plain memory: compared with a trivial reference, full, with collisions, reopened, damaged. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "hydns/hash.h"
#include "hydns-kern/store/geometry.h"
#include "hydns-kern/store/store.h"

#define ANSWER_MOST 1400
#define TTL_AT      3            /* an odd offset */

/* -- a store's memory ------------------------------------------------------------------------------------ */
struct world {
	struct hydns_geometry g;
	struct hydns_store_memory m;
	struct hydns_line *hits;
};

static void world_make(struct world *w, const struct hydns_geometry *g)
{
	w->g = *g;
	w->g.seed[0] = 0x1122334455667788ULL;
	w->g.seed[1] = 0x99aabbccddeeff00ULL;
	w->hits = calloc((size_t)hydns_geometry_hit_rows(g) * g->lines, sizeof(*w->hits));
	w->m = (struct hydns_store_memory){ .geometry = &w->g, .hits = w->hits,
		.index = aligned_alloc(64, g->buckets * sizeof(struct hydns_bucket)),
		.claims = calloc(g->lines, sizeof(struct hydns_line)),
		.slots = calloc(hydns_geometry_chunks(g), HYDNS_CHUNK) };
	assert_true(w->m.index && w->m.claims && w->m.slots && w->hits);
	memset(w->m.index, 0, g->buckets * sizeof(struct hydns_bucket));
}

static void world_free(struct world *w)
{
	free(w->hits);
	free(w->m.index);
	free(w->m.claims);
	free(w->m.slots);
}

/* rules: the most at a time, a multiple of 16. */
static struct hydns_geometry sizes(__u32 buckets, __u32 spans, __u32 rules)
{
	return (struct hydns_geometry){ .abi_version = HYDNS_ABI_VERSION, .cpus = 2, .own_hits = 2, .buckets = buckets,
					.spans = spans, .lines = rules / HYDNS_LINE_WORDS };
}

/* -- rules by number and version ------------------------------------------------------------------------- */
struct made {
	struct hydns_rule_parts p;
	__u8 name[HYDNS_NAME_MAX];
	__u8 answer[ANSWER_MOST];
	__u16 ttl[1];
};

static __u8 make_name(__u8 name[HYDNS_NAME_MAX], unsigned key)
{
	__u8 n = (__u8)snprintf((char *)name + 1, 32, "k%u", key);

	name[0] = n;
	memcpy(name + 1 + n, "\4test", 6);
	return n + 1 + 6;
}

static void make_rule(struct made *r, unsigned key, unsigned version, __u16 len)
{
	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < len; i++)
		r->answer[i] = (__u8)(key * 31 + version * 7 + i);
	r->ttl[0] = TTL_AT;
	r->p = (struct hydns_rule_parts){ .name = r->name, .answer = r->answer, .ttl = r->ttl };
	r->p.head.name_len = make_name(r->name, key);
	r->p.head.qtype = htons(1);
	r->p.head.answer_len = len;
	r->p.head.ttl_count = 1;
	r->p.head.epoch = version;
	r->p.head.expire_ms = key;
}

static __u32 find(struct hydns_store *s, unsigned key)
{
	__u8 name[HYDNS_NAME_MAX], len = make_name(name, key);

	return hydns_store_find(s, name, len, htons(1), 0, 0);
}

static int publish(struct hydns_store *s, unsigned key, unsigned version, __u16 len, __u32 *handle,
		   __u32 *replaced)
{
	struct made r;

	make_rule(&r, key, version, len);
	return hydns_store_publish(s, &r.p, handle, replaced);
}

static void check_content(struct hydns_store *s, __u32 handle, unsigned key, unsigned version, __u16 len)
{
	const struct hydns_rule *r = hydns_store_rule(s, handle);
	struct made want;
	__u16 ttl;

	make_rule(&want, key, version, len);
	assert_non_null(r);
	assert_int_equal(r->epoch, version);
	assert_int_equal(r->answer_len, len);
	assert_memory_equal(hydns_rule_name(r), want.name, want.p.head.name_len);
	assert_memory_equal(hydns_rule_name(r) + r->name_len, "\0\1\0\1", 4);
	assert_memory_equal(hydns_rule_answer(r), want.answer, len);
	memcpy(&ttl, (const __u8 *)r + HYDNS_RULE_TTLS(r->name_len, len), 2);
	assert_int_equal(ttl, TTL_AT);
}

static void grace(struct hydns_store *s)
{
	hydns_store_grace_end(s, hydns_store_grace_begin(s));
}

/* -- the index as the program reads it --------------------------------------------------------------------- */
static unsigned entries_of(const struct world *w, __u32 handle)
{
	unsigned n = 0;

	for (__u32 b = 0; b < w->g.buckets; b++)
		for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++)
			n += (__u32)w->m.index[b].entry[i] == handle;
	return n;
}

/* -- against a reference ---------------------------------------------------------------------------------- */
#define KEYS 600
struct expected {
	bool there;
	unsigned version;
	__u16 len;
	__u32 handle;
};
struct reference {
	struct expected key[KEYS];
	bool *retired;               /* by ordinal */
	bool *ticketed;              /* retired when the last ticket was drawn */
	unsigned count;
};

static void reference_publish(struct hydns_store *s, struct reference *ref, unsigned k, unsigned version)
{
	struct expected *e = &ref->key[k];
	__u16 len = (__u16)(8 + rand() % (rand() % 8 ? 150 : ANSWER_MOST - 8));
	__u32 handle = 0, replaced = 0xdead;
	int err = publish(s, k, version, len, &handle, &replaced);

	if (err) {
		assert_true(err == -ENOSPC || err == -ENOBUFS);
		assert_true(handle == 0 && replaced == 0xdead);
		return;
	}
	assert_int_equal(replaced, e->there ? e->handle : 0);
	assert_false(ref->retired[hydns_store_ordinal(s, handle)]);
	if (e->there)
		ref->retired[hydns_store_ordinal(s, replaced)] = true;
	else
		ref->count++;
	*e = (struct expected){ true, version, len, handle };
}

static void reference_remove(struct hydns_store *s, struct reference *ref, unsigned k)
{
	struct expected *e = &ref->key[k];

	if (!e->there)
		return;
	hydns_store_remove(s, e->handle);
	hydns_store_remove(s, e->handle);            /* a second time has no effect */
	ref->retired[hydns_store_ordinal(s, e->handle)] = true;
	e->there = false;
	ref->count--;
}

static void reference_check(struct hydns_store *s, const struct reference *ref, unsigned k)
{
	const struct expected *e = &ref->key[k];

	assert_int_equal(find(s, k), e->there ? e->handle : 0);
	if (e->there)
		check_content(s, e->handle, k, e->version, e->len);
	assert_int_equal(hydns_store_count(s), ref->count);
}

static void reference_check_all(struct hydns_store *s, const struct reference *ref)
{
	unsigned n = 0;

	for (unsigned k = 0; k < KEYS; k++)
		reference_check(s, ref, k);
	for (__u32 h = hydns_store_next(s, 0); h; h = hydns_store_next(s, h)) {
		assert_int_equal(ref->key[hydns_store_rule(s, h)->expire_ms].handle, h);
		assert_int_equal(hydns_store_handle(s, hydns_store_ordinal(s, h)), h);
		n++;
	}
	assert_int_equal(n, ref->count);
}

static void no_slot_is_lost(struct hydns_store *s, struct reference *ref)
{
	__u64 bytes = 0;

	hydns_store_grace_end(s, hydns_store_grace_begin(s));
	for (__u32 h = hydns_store_next(s, 0); h; h = hydns_store_next(s, h))
		bytes += hydns_store_slot_size(s, h);
	assert_int_equal(hydns_store_slot_bytes(s), bytes);
	for (unsigned k = 0; k < KEYS; k++)
		reference_remove(s, ref, k);
	assert_int_equal(hydns_store_slot_bytes(s), bytes);
	hydns_store_grace_end(s, hydns_store_grace_begin(s));
	assert_int_equal(hydns_store_slot_bytes(s), 0);
}

/* Few slots, few buckets, many keys, so that slots or index are often full. */
static void random_operations_match_a_reference(void **state)
{
	struct hydns_geometry g = sizes(64, 6, 416);
	struct reference ref = { 0 };
	struct hydns_store *s;
	struct world w;
	__u64 ticket = 0;
	size_t ordinals;

	(void)state;
	srand(3);
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	ordinals = hydns_store_ordinals(s);
	assert_int_equal(ordinals, 416);
	ref.retired = calloc(ordinals, sizeof(bool));
	ref.ticketed = calloc(ordinals, sizeof(bool));
	for (unsigned op = 1; op <= 400000; op++) {
		unsigned k = (unsigned)rand() % KEYS, what = (unsigned)rand() % 100;

		if (what < 55) {
			reference_publish(s, &ref, k, op);
		} else if (what < 85) {
			reference_remove(s, &ref, k);
		} else if (what < 90) {
			ticket = hydns_store_grace_begin(s);
			memcpy(ref.ticketed, ref.retired, ordinals * sizeof(bool));
		} else if (what < 95) {
			hydns_store_grace_end(s, ticket);
			for (size_t o = 0; o < ordinals; o++)
				ref.retired[o] = ref.retired[o] && !ref.ticketed[o];
			memset(ref.ticketed, 0, ordinals * sizeof(bool));
		}
		reference_check(s, &ref, k);
		if (op % 20000 == 0)
			reference_check_all(s, &ref);
		if (op % 100000 == 0) {
			hydns_store_close(s);
			assert_non_null(s = hydns_store_open(&w.m));
			memset(ref.retired, 0, ordinals * sizeof(bool));
			memset(ref.ticketed, 0, ordinals * sizeof(bool));
			ticket = 0;
			reference_check_all(s, &ref);
		}
	}
	no_slot_is_lost(s, &ref);
	hydns_store_close(s);
	free(ref.retired);
	free(ref.ticketed);
	world_free(&w);
}

/* -- placement -------------------------------------------------------------------------------------------- */
/* Slots are no larger than their rules need, do not overlap, and begin where a read of HYDNS_SLOT_MOST octets stays within the
 * chunk. */
static void slots_are_apart_and_fit(void **state)
{
	struct hydns_geometry g = sizes(256, 64, 1600);  /* four chunks */
	struct hydns_store *s;
	struct world w;
	__u32 handle, replaced;
	__u16 len = 0;
	__u8 *taken;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	assert_non_null(taken = calloc(g.spans, HYDNS_SPAN_UNITS));
	for (unsigned k = 0; publish(s, k, 1, len = (__u16)(8 + (len + 7) % (ANSWER_MOST - 8)), &handle, &replaced) == 0; k++) {
		const struct hydns_rule *r = hydns_store_rule(s, handle);
		__u32 space = HYDNS_RULE_SPACE(r->name_len, len, 1, 0), size = hydns_store_slot_size(s, handle);

		assert_true(size >= space && (size - space < HYDNS_UNIT || size <= 80 || (size - space) * 5 < size));
		assert_true((handle - 1) % HYDNS_CHUNK_UNITS * HYDNS_UNIT + HYDNS_SLOT_MOST <= HYDNS_CHUNK);
		for (__u32 unit = 0; unit < size / HYDNS_UNIT; unit++)
			assert_int_equal(taken[handle - 1 + unit]++, 0);
		if (hydns_store_count(s) > 350)
			break;
	}
	assert_int_equal(hydns_store_count(s), 351);
	free(taken);
	hydns_store_close(s);
	world_free(&w);
}

static __u32 fill(struct hydns_store *s, unsigned first, __u16 len)
{
	__u32 n = 0, handle, replaced;
	int err;

	while ((err = publish(s, first + n, 1, len, &handle, &replaced)) == 0)
		n++;
	assert_int_equal(err, -ENOSPC);
	return n;
}

/* A span that slots of one size have left can hold slots of another; a rule takes a larger slot if none of its size is left. */
static void any_mix_of_sizes_fits(void **state)
{
	struct hydns_geometry g = sizes(256, 4, 1600);
	struct hydns_store *s;
	struct world w;
	__u32 large, small, handle, replaced;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	large = fill(s, 0, 1400);
	assert_int_equal(large, 4 * (HYDNS_SPAN / 1536));
	assert_false(hydns_store_grace_needed(s));
	hydns_store_remove(s, find(s, 3));
	assert_true(hydns_store_grace_needed(s));
	assert_int_equal(publish(s, 3, 1, 16, &handle, &replaced), -ENOSPC);
	grace(s);
	assert_int_equal(publish(s, 3, 1, 16, &handle, &replaced), 0);
	assert_int_equal(hydns_store_slot_size(s, handle), 1536);
	for (unsigned k = 0; k < large; k++)
		hydns_store_remove(s, find(s, k));
	grace(s);
	small = fill(s, 1000, 16);
	assert_int_equal(small, 4 * (HYDNS_SPAN / 96));
	/* One of the four spans becomes empty. */
	for (unsigned k = 0; k < small / 4; k++)
		hydns_store_remove(s, find(s, 1000 + k));
	grace(s);
	assert_int_equal(fill(s, 0, 1400), HYDNS_SPAN / 1536);
	hydns_store_close(s);
	assert_non_null(s = hydns_store_open(&w.m));
	assert_int_equal(hydns_store_count(s), small - small / 4 + HYDNS_SPAN / 1536);
	hydns_store_remove(s, find(s, 2000 - 1));
	assert_int_equal(publish(s, 5000, 1, 16, &handle, &replaced), -ENOSPC);
	for (unsigned k = 0; k < small; k++)
		hydns_store_remove(s, find(s, 1000 + k));
	grace(s);
	assert_int_equal(fill(s, 100, 1400), 3 * (HYDNS_SPAN / 1536));
	hydns_store_close(s);
	world_free(&w);
}

/* The store reserves a share of the spans for large slots, however many small rules there are. */
static void large_rules_find_a_place_among_small_ones(void **state)
{
	struct hydns_geometry g = sizes(2048, 64, 12288);
	struct hydns_store *s;
	struct world w;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	assert_true(fill(s, 0, 16) > 60 * (HYDNS_SPAN / 96));
	assert_true(fill(s, 20000, 1400) > 0);
	hydns_store_close(s);
	world_free(&w);
}

static void what_is_no_rule_is_refused(void **state)
{
	struct hydns_geometry g = sizes(16, 16, 64);
	struct hydns_store *s;
	struct world w;
	struct made r;
	__u32 handle, replaced;
	__u16 bad[2] = { 14, 13 };

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	make_rule(&r, 1, 1, 16);
	r.p.ttl = bad;                       /* reaches past the answer */
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -EINVAL);
	make_rule(&r, 1, 1, 16);
	r.name[1] = 'K';                     /* not lower-cased */
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -EINVAL);
	make_rule(&r, 1, 1, 16);
	r.p.head.name_len--;                 /* no root label */
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -EINVAL);
	make_rule(&r, 1, 1, 16);
	r.p.head.resolver = HYDNS_RESOLVERS;
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -EINVAL);
	make_rule(&r, 1, 1, 16);
	r.p.head.rotation_count = 1;
	r.p.rotation[0] = (struct hydns_rotation){ .start = 8, .len = 32, .first = 0, .last = 1 };
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -EINVAL);
	make_rule(&r, 1, 1, 16);
	r.p.head.place_count = HYDNS_RULE_PLACES_MAX + 1;
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -EINVAL);
	make_rule(&r, 1, 1, 16);
	r.p.head.place_count = 1;
	r.p.place[0] = HYDNS_PLACES;
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -EINVAL);
	make_rule(&r, 1, 1, ANSWER_MOST);
	r.p.head.answer_len = 1600;          /* refused before the answer is read */
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -E2BIG);
	assert_int_equal(hydns_store_count(s), 0);
	assert_null(hydns_store_rule(s, 0));
	assert_null(hydns_store_rule(s, 0xffffffffU));
	hydns_store_remove(s, 0xffffffffU);
	hydns_store_close(s);
	world_free(&w);
}

static void add_errors(struct made *r, const __u8 *options, __u16 len)
{
	r->p.head.flags |= HYDNS_RULE_ERRORS;
	r->p.errors = options;
	r->p.errors_len = len;
}

/* The parts of a rule after the answer can be read back, also when the store is opened again. */
static void all_parts_are_read_back(void **state)
{
	static const __u8 left_out[] = "\1\1z\4test", errors[] = "\0\17\0\3\0\6x";
	struct hydns_geometry g = sizes(16, 16, 32);
	const struct hydns_rule *rule;
	__u32 handle, replaced;
	struct hydns_store *s;
	struct made r;
	struct world w;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	for (__u8 count = 0; count <= HYDNS_RULE_PLACES_MAX; count++) {
		__u16 len = 32 + count;        /* odd ones, too */

		make_rule(&r, count, 1, len);
		r.p.head.place_count = count;
		for (unsigned i = 0; i < count; i++)
			r.p.place[i] = (__u16)(HYDNS_PLACES - 1 - i);
		add_errors(&r, errors, sizeof(errors) - 1);
		r.p.head.flags |= HYDNS_RULE_LEFT_OUT;
		r.p.left_out = left_out;
		r.p.left_out_len = sizeof(left_out);
		assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), 0);
		for (int again = 0; again < 2; again++) {
			check_content(s, handle, count, 1, len);
			rule = hydns_store_rule(s, handle);
			assert_int_equal(rule->place_count, count);
			for (unsigned i = 0; i < count; i++)
				assert_int_equal(hydns_rule_place(rule, i), HYDNS_PLACES - 1 - i);
			assert_int_equal(hydns_rule_errors(rule)->len, sizeof(errors) - 1);
			assert_memory_equal(hydns_rule_errors(rule)->options, errors, sizeof(errors) - 1);
			assert_memory_equal(hydns_rule_left_out(rule), left_out, sizeof(left_out));
			hydns_store_close(s);
			assert_non_null(s = hydns_store_open(&w.m));
		}
	}
	hydns_store_close(s);
	world_free(&w);
}

/* What a killed hydnsd has left half-written is not taken over, nor is more read than the slot has. */
static void damaged_errors_are_refused(void **state)
{
	static const __u8 errors[] = "\0\17\0\3\0\6x";
	static const struct { const char *what; size_t at; __u8 octet; } damage[] = {
		{ "length", 0, 6 }, { "length beyond the slot", 1, 0xff }, { "sum", 2, 0x55 }, { "code", 5, 10 },
		{ "option's length", 7, 4 }, { "text", 10, 'y' },
	};
	struct hydns_geometry g = sizes(16, 16, 32);
	__u32 handle, replaced;
	struct hydns_store *s;
	struct made r;
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
		world_make(&w, &g);
		assert_non_null(s = hydns_store_open(&w.m));
		make_rule(&r, 1, 1, 32);
		add_errors(&r, errors, sizeof(errors) - 1);
		assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), 0);
		((__u8 *)hydns_rule_errors(hydns_store_rule(s, handle)))[damage[i].at] = damage[i].octet;
		hydns_store_close(s);
		assert_non_null(s = hydns_store_open(&w.m));
		if (hydns_store_count(s))
			fail_msg("%s: taken over", damage[i].what);
		hydns_store_close(s);
		world_free(&w);
	}
}

static void errors_are_bounded(void **state)
{
	__u8 errors[HYDNS_ERRORS_MOST + 1] = { 0, 15, (HYDNS_ERRORS_MOST - 4) >> 8, (HYDNS_ERRORS_MOST - 4) & 0xff };
	struct hydns_geometry g = sizes(16, 16, 32);
	__u32 handle, replaced;
	struct hydns_store *s;
	struct made r;
	struct world w;

	(void)state;
	assert_true(hydns_errors_valid(errors, HYDNS_ERRORS_MOST));
	assert_false(hydns_errors_valid(errors, HYDNS_ERRORS_MOST - 1));
	errors[3]++;
	assert_false(hydns_errors_valid(errors, HYDNS_ERRORS_MOST + 1));
	assert_false(hydns_errors_valid(errors, 0));
	assert_true(hydns_errors_valid((const __u8 *)"\0\17\0\2\0\26\0\17\0\3\0\6x", 13));
	assert_false(hydns_errors_valid((const __u8 *)"\0\17\0\2\0\26\0\17\0\1\0", 11));
	assert_false(hydns_errors_valid((const __u8 *)"\0\12\0\2\0\26", 6));
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	make_rule(&r, 1, 1, ANSWER_MOST);        /* too far for the program */
	add_errors(&r, (const __u8 *)"\0\17\0\2\0\6", 6);
	assert_int_equal(hydns_store_publish(s, &r.p, &handle, &replaced), -EINVAL);
	hydns_store_close(s);
	world_free(&w);
}

/* More slots than the index has entries: publishing moves entries until no move is left, and every rule in the index stays
 * reachable by exactly one entry. */
static void full_index_moves_entries(void **state)
{
	struct hydns_geometry g = sizes(32, 16, 560);
	__u32 handle[512], replaced, n = 0;
	struct hydns_store *s;
	struct world w;
	int err;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	while ((err = publish(s, n, 1, 16, &handle[n], &replaced)) == 0)
		n++;
	assert_int_equal(err, -ENOBUFS);
	assert_true(n > 32 * HYDNS_BUCKET_ENTRIES * 95 / 100);
	for (__u32 k = 0; k < n; k++) {
		assert_int_equal(find(s, k), handle[k]);
		assert_int_equal(entries_of(&w, handle[k]), 1);
	}
	/* Replacing needs no room in the index. */
	assert_int_equal(publish(s, 5, 2, 16, &handle[5], &replaced), 0);
	assert_true(replaced != 0);
	for (__u32 k = 0; k < n; k++)
		hydns_store_remove(s, handle[k]);
	for (__u32 b = 0; b < g.buckets; b++)
		for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++)
			assert_true(w.m.index[b].entry[i] == 0);
	hydns_store_close(s);
	world_free(&w);
}

/* An entry has a key's fingerprint, but its rule's key differs in one thing: a look-up of the key does not find that rule, and
 * publishing the key's rule does not replace it. */
static void a_fingerprint_is_no_key(void **state)
{
	static const struct { unsigned key; __u16 qtype; __u8 variant, resolver; } other[] = {
		{ 8, 1, 0, 0 }, { 77, 1, 0, 0 }, { 7, 28, 0, 0 }, { 7, 1, HYDNS_VARIANT_DO, 0 }, { 7, 1, 0, 1 },
	};
	struct hydns_geometry g = sizes(16, 16, 64);

	(void)state;
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
		__u32 impostor, own, replaced, bucket;
		struct hydns_store *s;
		struct world w;
		struct made r;
		__u64 hash;

		world_make(&w, &g);
		assert_non_null(s = hydns_store_open(&w.m));
		make_rule(&r, other[i].key, 1, 16);
		r.p.head.qtype = htons(other[i].qtype);
		r.p.head.variant = other[i].variant;
		r.p.head.resolver = other[i].resolver;
		assert_int_equal(hydns_store_publish(s, &r.p, &impostor, &replaced), 0);
		make_rule(&r, 7, 1, 16);
		hash = hydns_store_key(s, &r.p);
		bucket = hydns_bucket_first(hash, g.buckets - 1);
		w.m.index[bucket].entry[7] = (__u64)hydns_fingerprint(hash) << 32 | impostor;
		assert_int_equal(find(s, 7), 0);
		assert_int_equal(hydns_store_publish(s, &r.p, &own, &replaced), 0);
		assert_int_equal(replaced, 0);
		assert_int_equal(find(s, 7), own);
		hydns_store_close(s);
		world_free(&w);
	}
}

/* -- TTLs in place -------------------------------------------------------------------------------------------- */
/* A reader must see the former TTL or the new one, so the store changes a TTL only if a single octet differs. */
static void a_ttl_changes_by_one_octet_or_not_at_all(void **state)
{
	static const struct { __u32 ttl; bool set; } c[] = {
		{ 0x01020304, true }, { 0x01020305, true }, { 0x01020505, true }, { 0x01ff0505, true }, { 0xfeff0505, true },
		{ 0xfeff0606, false }, { 0x01020304, false }, { 0xfeff0506, true },
	};
	struct hydns_geometry g = sizes(16, 16, 64);
	__u8 before[16], *at;
	struct hydns_store *s;
	__u32 h, replaced, past;
	struct world w;
	struct made r;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	make_rule(&r, 1, 1, 16);
	memcpy(r.answer + TTL_AT, "\1\2\3\4", 4);
	assert_int_equal(hydns_store_publish(s, &r.p, &h, &replaced), 0);
	at = (__u8 *)(uintptr_t)hydns_rule_answer(hydns_store_rule(s, h));
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		__u32 field = htonl(c[i].ttl);

		memcpy(before, at, sizeof(before));
		assert_int_equal(hydns_store_set_ttl(s, h, TTL_AT, c[i].ttl), c[i].set);
		if (c[i].set)
			memcpy(before + TTL_AT, &field, sizeof(field));
		assert_memory_equal(at, before, sizeof(before));
	}
	memcpy(&past, at + 12, sizeof(past));
	assert_true(hydns_store_set_ttl(s, h, 12, ntohl(past)));
	memcpy(&past, at + 13, sizeof(past));                  /* reaches past the answer, by one octet */
	assert_false(hydns_store_set_ttl(s, h, 13, ntohl(past) ^ 1));
	hydns_store_remove(s, h);
	assert_false(hydns_store_set_ttl(s, h, TTL_AT, 0xfeff0507));
	hydns_store_close(s);
	world_free(&w);
}

/* -- grace ------------------------------------------------------------------------------------------------- */
static void slot_waits_for_its_ticket(void **state)
{
	struct hydns_geometry g = sizes(16, 16, 64);
	__u32 first, second, other, replaced;
	struct hydns_store *s;
	struct world w;
	__u64 early, late;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	early = hydns_store_grace_begin(s);
	for (unsigned k = 0; k < 64; k++)
		assert_int_equal(publish(s, k, 1, 16, &first, &replaced), 0);
	first = find(s, 0);
	second = find(s, 1);
	hydns_store_remove(s, first);
	late = hydns_store_grace_begin(s);
	hydns_store_remove(s, second);
	hydns_store_grace_end(s, early);
	assert_int_equal(publish(s, 80, 1, 16, &other, &replaced), -ENOSPC);
	hydns_store_grace_end(s, late);
	assert_int_equal(publish(s, 80, 1, 16, &other, &replaced), 0);
	assert_int_equal(other, first);
	assert_int_equal(publish(s, 81, 1, 16, &other, &replaced), -ENOSPC);
	hydns_store_grace_end(s, late);
	assert_int_equal(publish(s, 81, 1, 16, &other, &replaced), -ENOSPC);
	assert_true(hydns_store_grace_needed(s));
	grace(s);
	assert_false(hydns_store_grace_needed(s));
	assert_int_equal(publish(s, 81, 1, 16, &other, &replaced), 0);
	assert_int_equal(other, second);
	hydns_store_close(s);
	world_free(&w);
}

/* -- hits and claims ---------------------------------------------------------------------------------------- */
static struct hydns_rule *rule_of(struct hydns_store *s, __u32 handle)
{
	return (struct hydns_rule *)(uintptr_t)hydns_store_rule(s, handle);
}

static void hits_are_counted_in_slots_while_few(void **state)
{
	struct hydns_geometry g = sizes(16, 16, 64);
	struct hydns_store *s;
	struct world w;
	__u32 h, replaced;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	assert_int_equal(publish(s, 1, 1, 16, &h, &replaced), 0);
	assert_int_equal(rule_of(s, h)->hits_end - rule_of(s, h)->hits, HYDNS_HITS_IN_SLOT);
	rule_of(s, h)->hits = 3;
	hydns_store_count_in_slot(s, h);
	assert_int_equal(rule_of(s, h)->hits_end, HYDNS_HITS_IN_SLOT);      /* too few hits for a change */
	rule_of(s, h)->hits = UINT32_MAX - 2;                               /* about to wrap around */
	rule_of(s, h)->hits_end = UINT16_MAX - 2;
	hydns_store_count_in_slot(s, h);
	assert_int_equal(rule_of(s, h)->hits_end, HYDNS_HITS_IN_SLOT - 3);
	rule_of(s, h)->hits = 1;
	hydns_store_remove(s, h);
	hydns_store_count_in_slot(s, h);
	grace(s);
	assert_int_equal(publish(s, 1, 1, 16, &h, &replaced), 0);
	assert_int_equal(rule_of(s, h)->hits, 0);
	assert_int_equal(rule_of(s, h)->hits_end, HYDNS_HITS_IN_SLOT);
	hydns_store_close(s);
	world_free(&w);
}

static void hits_count_from_publication(void **state)
{
	struct hydns_geometry g = sizes(16, 16, 64);
	__u32 a, b, replaced, o;
	struct hydns_store *s;
	struct world w;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	assert_int_equal(publish(s, 1, 1, 16, &a, &replaced), 0);
	o = hydns_store_ordinal(s, a);
	w.hits[o / 16].word[o % 16] += 3;                  /* CPU 0 */
	w.hits[g.lines + o / 16].word[o % 16] -= 1;        /* CPU 1, a counter that wraps */
	assert_int_equal(hydns_store_hits(s, a), 2);
	rule_of(s, a)->hits += 4;
	assert_int_equal(hydns_store_hits(s, a), 6);
	hydns_store_close(s);
	assert_non_null(s = hydns_store_open(&w.m));
	assert_int_equal(hydns_store_hits(s, a), 0);       /* counts from 0 once the store is opened again */
	rule_of(s, a)->hits++;
	assert_int_equal(hydns_store_hits(s, a), 1);
	w.m.claims[o / 16].word[o % 16] = 12345;
	assert_int_equal(publish(s, 1, 2, 16, &b, &replaced), 0);
	assert_int_equal(hydns_store_hits(s, b), 0);
	hydns_store_remove(s, b);
	grace(s);
	while (publish(s, 2, 1, 16, &b, &replaced) == 0 && hydns_store_ordinal(s, b) != o)
		grace(s);
	assert_int_equal(hydns_store_hits(s, b), 0);
	assert_int_equal(w.m.claims[o / 16].word[o % 16], 0);
	hydns_store_close(s);
	world_free(&w);
}

/* -- adopting damaged memory ---------------------------------------------------------------------------------- */
static __u64 *entry_of(struct world *w, __u32 handle)
{
	for (__u32 b = 0; b < w->g.buckets; b++)
		for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++)
			if ((__u32)w->m.index[b].entry[i] == handle)
				return &w->m.index[b].entry[i];
	return NULL;
}

static __u64 *empty_entry(struct world *w, __u32 bucket)
{
	for (int i = 0; i < HYDNS_BUCKET_ENTRIES; i++)
		if (!w->m.index[bucket].entry[i])
			return &w->m.index[bucket].entry[i];
	return NULL;
}

static void damage_is_removed(void **state)
{
	struct hydns_geometry g = sizes(16, 16, 80);
	__u32 handle[24], replaced, bucket, other;
	struct hydns_store *s;
	struct world w;
	__u64 *e;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	for (unsigned k = 0; k < 24; k++)
		assert_int_equal(publish(s, k, 1, 40, &handle[k], &replaced), 0);
#define RULE(k) ((struct hydns_rule *)(uintptr_t)hydns_store_rule(s, handle[k]))
	RULE(0)->data[RULE(0)->name_len + 4 + 20] ^= 1;    /* one octet of the answer differs */
	RULE(1)->answer_len = 0xffff;
	RULE(2)->name_len = 0;
	RULE(3)->data[0] = 63;                             /* a label past the name's end */
	RULE(4)->ttl_count = 255;
	RULE(5)->resolver = 200;
	RULE(6)->qtype = htons(28);                        /* another key than the hash's */
	RULE(7)->rotation_count = 9;
	RULE(8)->flags = 0x80;
	RULE(19)->place_count = HYDNS_RULE_PLACES_MAX + 1;
	*entry_of(&w, handle[9]) ^= 1ULL << 40;            /* fingerprint */
	e = entry_of(&w, handle[10]);
	*e = (*e & ~0xffffffffULL) | (g.spans * HYDNS_SPAN_UNITS + 1);     /* no such slot */
	e = entry_of(&w, handle[11]);
	*e = (*e & ~0xffffffffULL) | handle[12];           /* two entries of one slot */
	e = entry_of(&w, handle[13]);                      /* the writer died while it moved an entry */
	bucket = (__u32)(((__u8 *)e - (__u8 *)w.m.index) / sizeof(struct hydns_bucket));
	other = hydns_bucket_other(bucket, (__u32)(*e >> 32), g.buckets - 1);
	*empty_entry(&w, other) = *e;
	*empty_entry(&w, 15) = 1ULL << 63;                 /* handle 0 */
	RULE(20)->ordinal = 80;                            /* more than there are */
	RULE(21)->ordinal = RULE(13)->ordinal;             /* of these two, opening removes the one that it reads second */
	RULE(22)->size_class++;                            /* no slot of that size begins there */
	e = entry_of(&w, handle[23]);                      /* a valid rule where no slot begins */
	memmove((__u8 *)RULE(23) + 2 * HYDNS_UNIT, RULE(23), 112);
	*e += 2;
	hydns_store_close(s);

	assert_non_null(s = hydns_store_open(&w.m));
	assert_true(!find(s, 13) != !find(s, 21));
	for (unsigned k = 0; k < 24; k++) {
		bool good = k >= 12 && k < 19;

		if (k == 13 || k == 21)
			continue;
		assert_int_equal(find(s, k), good ? handle[k] : 0);
		assert_int_equal(entries_of(&w, handle[k]), good);
		if (good)
			check_content(s, handle[k], k, 1, 40);
	}
	assert_int_equal(hydns_store_count(s), 7);
	assert_true(hydns_store_grace_needed(s));
	grace(s);
	for (unsigned k = 100; hydns_store_count(s) < 80; k++)
		assert_int_equal(publish(s, k, 1, 16, &handle[0], &replaced), 0);
	hydns_store_close(s);
	world_free(&w);
}

/* Of two slots with one key, opening keeps one; otherwise removing that one would make the other visible. */
static void second_slot_of_a_key_is_removed(void **state)
{
	struct hydns_geometry g = sizes(16, 16, 80);
	__u32 kept, twin, replaced, ordinal;
	struct hydns_rule *twin_rule;
	struct hydns_store *s;
	struct world w;
	__u64 *e;

	(void)state;
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	assert_int_equal(publish(s, 1, 1, 40, &kept, &replaced), 0);
	assert_int_equal(publish(s, 2, 1, 40, &twin, &replaced), 0);
	ordinal = hydns_store_ordinal(s, twin);
	twin_rule = (struct hydns_rule *)(uintptr_t)hydns_store_rule(s, twin);
	memcpy(twin_rule, hydns_store_rule(s, kept), hydns_store_slot_size(s, kept));
	twin_rule->ordinal = ordinal & (HYDNS_ORDINALS_MOST - 1);
	hydns_store_close(s);
	*entry_of(&w, twin) = 0;
	e = entry_of(&w, kept);
	*empty_entry(&w, (__u32)(((__u8 *)e - (__u8 *)w.m.index) / sizeof(struct hydns_bucket))) =
		(*e & ~0xffffffffULL) | twin;

	assert_non_null(s = hydns_store_open(&w.m));
	assert_int_equal(hydns_store_count(s), 1);
	hydns_store_remove(s, find(s, 1));
	assert_int_equal(find(s, 1), 0);
	assert_int_equal(entries_of(&w, kept) + entries_of(&w, twin), 0);
	hydns_store_close(s);
	world_free(&w);
}

/* With random memory, opening the store ends, and every rule that it keeps can be found. */
static void noise_is_survived(void **state)
{
	struct hydns_geometry g = sizes(16, 16, 80);
	struct hydns_store *s;
	struct world w;
	__u32 handle, replaced;

	(void)state;
	srand(4);
	world_make(&w, &g);
	for (int round = 0; round < 3000; round++) {
		assert_non_null(s = hydns_store_open(&w.m));
		for (unsigned k = 0; k < 60; k++)
			publish(s, (unsigned)rand() % 200, 1, 40, &handle, &replaced);
		for (__u32 h = hydns_store_next(s, 0); h; h = hydns_store_next(s, h)) {
			const struct hydns_rule *r = hydns_store_rule(s, h);

			assert_int_equal(hydns_store_find(s, hydns_rule_name(r), r->name_len, r->qtype, r->variant,
							  r->resolver), h);
		}
		grace(s);
		hydns_store_close(s);
		for (int n = 0; n < 60; n++)
			if (n % 5)
				w.m.slots[(unsigned)rand() % (2 * HYDNS_SPAN)] ^= (__u8)rand();
			else
				((__u8 *)w.m.index)[(unsigned)rand() % (16 * 64)] ^= (__u8)rand();
	}
	world_free(&w);
}

/* -- sums ----------------------------------------------------------------------------------------------------- */
/* RFC 1071 section 4.1, octet by octet. */
static __u16 naive_sum(const __u8 *data, unsigned len)
{
	unsigned long sum = 0;

	for (unsigned i = 0; i < len; i++)
		sum += i % 2 ? data[i] : data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((__u16)sum);
}

static void sum_is_the_naive_one_without_ttls(void **state)
{
	__u8 answer[1500], zeroed[1500];

	(void)state;
	srand(5);
	for (int round = 0; round < 100000; round++) {
		__u16 len = (__u16)(rand() % (round % 10 ? 200 : 1500)), ttl[HYDNS_TTLS_MAX];
		unsigned n = 0, at = (unsigned)rand() % 12;

		for (unsigned i = 0; i < len; i++)
			answer[i] = round % 3 ? (__u8)rand() : round % 2 ? 0xff : 0;
		memcpy(zeroed, answer, len);
		for (; n < HYDNS_TTLS_MAX && at + 4 <= len; at += 4 + (unsigned)rand() % 30) {
			memset(zeroed + at, 0, 4);
			ttl[n++] = (__u16)at;
		}
		assert_int_equal(hydns_answer_sum(answer, len, ttl, n), naive_sum(zeroed, len));
	}
}

/* -- a million ------------------------------------------------------------------------------------------------ */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __u64 octets_of_maps(const struct hydns_geometry *g)
{
	return (__u64)g->buckets * sizeof(struct hydns_bucket) +
	       (__u64)g->lines * (hydns_geometry_hit_rows(g) + 1) * sizeof(struct hydns_line) +
	       (__u64)hydns_geometry_chunks(g) * HYDNS_CHUNK;
}

/* Each possible CPU has a row while there are few. Otherwise each present one has, up to HYDNS_HITS_OWN of them, and all others
 * share. */
static void hits_take_bounded_memory(void **state)
{
	static const struct {
		__u32 cpus, present, rows, own;
	} c[] = {
		{ 1, 1, 1, 1 }, { 2, 2, 2, 2 }, { 16, 2, 16, 16 }, { 240, 2, 18, 2 }, { 48, 48, 48, 48 }, { 64, 64, 48, 32 },
		{ 256, 256, 48, 32 }, { 1024, 1024, 48, 32 },
	};
	struct hydns_geometry g;

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		hydns_geometry_for(1000000, c[i].cpus, c[i].present, &g);
		assert_int_equal(g.own_hits, c[i].own);
		assert_int_equal(hydns_geometry_hit_rows(&g), c[i].rows);
		assert_true(octets_of_maps(&g) <= 400000000);
		for (__u32 cpu = 0; cpu < c[i].cpus; cpu++) {
			struct hydns_counting at = hydns_geometry_counting(&g, cpu);

			assert_int_equal(at.shared, cpu >= c[i].own);
			assert_int_equal(at.first % g.lines, 0);
			if (at.shared)
				assert_in_range(at.first / g.lines, c[i].own, c[i].rows - 1);
			else
				assert_int_equal(at.first / g.lines, cpu);
		}
	}
}

static void a_million_rules_fit(void **state)
{
	const unsigned million = 1000000;
	struct hydns_geometry g;
	struct hydns_store *s;
	struct world w;
	__u32 handle, replaced;
	__u64 octets;
	double begun;

	(void)state;
	hydns_geometry_for(million, 2, 2, &g);
	octets = octets_of_maps(&g);
	world_make(&w, &g);
	assert_non_null(s = hydns_store_open(&w.m));
	octets += hydns_store_bytes(s);
	print_message("%.1f octets a rule, with the store's own memory\n", (double)octets / million);
	assert_true(octets <= 210ULL * million);
	begun = seconds();
	for (unsigned k = 0; k < million; k++)
		assert_int_equal(publish(s, k, 1, 32, &handle, &replaced), 0);
	print_message("%.2f M publishes a second\n", million / 1e6 / (seconds() - begun));
	hydns_store_close(s);
	begun = seconds();
	assert_non_null(s = hydns_store_open(&w.m));
	print_message("%.2f s to adopt a million rules\n", seconds() - begun);
	assert_int_equal(hydns_store_count(s), million);
	for (unsigned k = 0; k < million; k += 997)
		check_content(s, find(s, k), k, 1, 32);
	hydns_store_close(s);
	world_free(&w);
}

/* The flag that the store is empty, which the program reads first. */
static void says_whether_it_is_empty(void **state)
{
	struct hydns_geometry g = sizes(16, 16, 64);
	__u32 a, b, replaced, empty = 7;
	struct hydns_store *s;
	struct world w;

	(void)state;
	world_make(&w, &g);
	w.m.empty = &empty;
	assert_non_null(s = hydns_store_open(&w.m));
	assert_int_equal(empty, 1);
	assert_int_equal(publish(s, 1, 1, 32, &a, &replaced), 0);
	assert_int_equal(empty, 0);
	assert_int_equal(publish(s, 1, 2, 32, &a, &replaced), 0);
	assert_int_equal(publish(s, 2, 1, 32, &b, &replaced), 0);
	hydns_store_remove(s, a);
	hydns_store_remove(s, a);
	assert_int_equal(empty, 0);
	hydns_store_close(s);
	empty = 1;
	assert_non_null(s = hydns_store_open(&w.m));
	assert_int_equal(empty, 0);
	hydns_store_remove(s, find(s, 2));
	assert_int_equal(empty, 1);
	hydns_store_close(s);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations_match_a_reference),
		cmocka_unit_test(slots_are_apart_and_fit),
		cmocka_unit_test(any_mix_of_sizes_fits),
		cmocka_unit_test(says_whether_it_is_empty),
		cmocka_unit_test(large_rules_find_a_place_among_small_ones),
		cmocka_unit_test(what_is_no_rule_is_refused), cmocka_unit_test(all_parts_are_read_back),
		cmocka_unit_test(damaged_errors_are_refused), cmocka_unit_test(errors_are_bounded),
		cmocka_unit_test(full_index_moves_entries),
		cmocka_unit_test(a_fingerprint_is_no_key), cmocka_unit_test(a_ttl_changes_by_one_octet_or_not_at_all),
		cmocka_unit_test(slot_waits_for_its_ticket),
		cmocka_unit_test(hits_count_from_publication),
		cmocka_unit_test(hits_are_counted_in_slots_while_few),
		cmocka_unit_test(damage_is_removed),
		cmocka_unit_test(second_slot_of_a_key_is_removed),
		cmocka_unit_test(noise_is_survived),
		cmocka_unit_test(sum_is_the_naive_one_without_ttls),
		cmocka_unit_test(hits_take_bounded_memory), cmocka_unit_test(a_million_rules_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
