/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The table of children, against a plain list in canonical order, and read as the program reads it while children come. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "plugin/preload/children.h"

#define LEAVES   2000U
#define LABELS   3000
#define PARENTS  3

struct label {
	uint64_t parent;
	uint8_t octets[64];              /* with the length */
};

static struct {
	_Alignas(128) struct hydns_names_head head;
	_Alignas(128) struct hydns_leaf leaf[LEAVES];
	struct hydns_children c;
	struct label list[LABELS];       /* in canonical order */
	size_t count;
} t;

static int begin(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	hydns_children_begin(&t.c, &t.head, t.leaf, LEAVES);
	srandom(11);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hydns_children_end(&t.c);
	return 0;
}

static void merge(void)
{
	struct hydns_children_list list;

	assert_true(hydns_children_merge_begins(&t.c, &list));
	hydns_children_merge_ends(&t.c, hydns_children_merge(&t.c, &list));
}

static struct hydns_child child_of(const struct label *l)
{
	return hydns_child_of(l->parent, l->octets);
}

static struct label label_of(uint64_t parent, const char *octets)
{
	struct label l = { .parent = parent, .octets[0] = (uint8_t)strlen(octets) };

	memcpy(l.octets + 1, octets, l.octets[0]);
	return l;
}

static void come(uint64_t parent, const char *octets)
{
	const struct label l = label_of(parent, octets);
	const struct hydns_child child = child_of(&l);

	hydns_children_come(&t.c, &child);
}

/* The label of the last child before these octets, or they themselves. NULL: there is none. */
static const struct hydns_child *before(uint64_t parent, const char *octets)
{
	const struct label l = label_of(parent, octets);
	const struct hydns_child key = child_of(&l);

	return hydns_children_before(&t.c, &key);
}

static void is(const struct hydns_child *found, uint64_t parent, const char *octets)
{
	const struct label l = label_of(parent, octets);
	const struct hydns_child wanted = child_of(&l);

	assert_non_null(found);
	assert_memory_equal(found, &wanted, sizeof(wanted));
}

/* -- a few ---------------------------------------------------------------------------------------------------- */
static void neighbours(void **state)
{
	(void)state;
	come(5, "b");
	come(5, "bb");
	come(5, "d");
	come(4, "z");
	come(6, "a");
	merge();
	assert_null(before(5, "a"));
	assert_null(before(7, "a"));
	is(before(5, "b"), 5, "b");
	is(before(5, "ba"), 5, "b");
	is(before(5, "bb"), 5, "bb");
	is(before(5, "c"), 5, "bb");
	is(before(5, "\377"), 5, "d");
	is(before(4, "zz"), 4, "z");
}

#define X31 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
static void long_labels(void **state)
{
	(void)state;
	come(1, X31);
	come(1, X31 "b");
	merge();
	is(before(1, X31), 1, X31);
	assert_int_equal(hydns_child_len(before(1, X31)), 31);
	assert_int_equal(hydns_child_len(before(1, X31 "a")), HYDNS_CHILD_LONG);    /* nobody knows on which side of the other */
	assert_int_equal(hydns_child_len(before(1, X31 "c")), HYDNS_CHILD_LONG);
	assert_int_equal(hydns_child_len(before(1, "y")), HYDNS_CHILD_LONG);        /* nor which is the last of these */
	come(1, "xz");
	merge();
	is(before(1, "y"), 1, "xz");
}

/* The table is closed from the moment that a child comes which it does not have until it has it. */
static void closed_until_it_has_all(void **state)
{
	struct hydns_children_list list;
	uint32_t former;

	(void)state;
	assert_true(t.head.table & 1);
	merge();                                 /* nothing is there, and all of it */
	assert_false(t.head.table & 1);
	former = t.head.table;
	come(1, "a");
	assert_true(t.head.table & 1);
	assert_true(hydns_children_merge_begins(&t.c, &list));
	come(1, "b");
	hydns_children_merge_ends(&t.c, hydns_children_merge(&t.c, &list));
	assert_true(t.head.table & 1);           /* one has come meanwhile */
	merge();
	assert_false(t.head.table & 1);
	assert_int_not_equal(t.head.table, former);
	former = t.head.table;
	come(1, "a");
	assert_int_equal(t.head.table, former);
}

static void without_room(void **state)
{
	(void)state;
	hydns_children_end(&t.c);
	hydns_children_begin(&t.c, &t.head, t.leaf, 1);
	come(1, "a");
	come(1, "b");
	come(1, "c");
	merge();
	assert_false(t.head.table & 1 || t.c.full);
	is(before(1, "c"), 1, "c");
	come(1, "d");
	merge();
	assert_true((t.head.table & 1) && t.c.full);
	come(1, "a");
	assert_false(hydns_children_merge_begins(&t.c, &(struct hydns_children_list){ 0 }));
	hydns_children_empty(&t.c);              /* what has gone had taken the room */
	assert_true(t.head.table & 1);
	come(1, "d");
	merge();
	assert_false(t.head.table & 1);
	is(before(1, "e"), 1, "d");
	assert_null(before(1, "c"));
	hydns_children_empty(&t.c);
	assert_true(t.head.table & 1);
}

/* -- many ----------------------------------------------------------------------------------------------------- */
/* RFC 4034 section 6.1. */
static int canonical(const struct label *a, const struct label *b)
{
	const uint8_t a_len = a->octets[0], b_len = b->octets[0];
	int differs;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	differs = memcmp(a->octets + 1, b->octets + 1, a_len < b_len ? a_len : b_len);
	return differs ? differs : a_len - b_len;
}

static struct label any_label(void)
{
	static const uint8_t octets[] = { 0, '-', 'a', 0xff };
	const unsigned common = (unsigned)random() % 4 ? 0 : 29 + (unsigned)random() % 3, more = 1 + (unsigned)random() % 4;
	struct label l = { .parent = 1 + (uint64_t)random() % PARENTS, .octets[0] = (uint8_t)(common + more) };

	memset(l.octets + 1, 'x', common);
	for (unsigned i = 0; i < more; i++)
		l.octets[1 + common + i] = octets[(unsigned)random() % sizeof(octets)];
	return l;
}

/* How many of the list come before the label, or are it. */
static size_t count_before(const struct label *l)
{
	size_t n = 0;

	while (n < t.count && canonical(&t.list[n], l) <= 0)
		n++;
	return n;
}

static void add(const struct label *l)
{
	const struct hydns_child child = child_of(l);
	size_t n = count_before(l);

	hydns_children_come(&t.c, &child);
	if (n && !canonical(&t.list[n - 1], l))
		return;
	memmove(t.list + n + 1, t.list + n, (t.count - n) * sizeof(*t.list));
	t.list[n] = *l;
	t.count++;
}

static bool has_long_labels(uint64_t parent)
{
	for (size_t i = 0; i < t.count; i++)
		if (t.list[i].parent == parent && t.list[i].octets[0] > HYDNS_CHILD_OCTETS)
			return true;
	return false;
}

/* Whether the table knew. */
static bool check(const struct label *l)
{
	const struct hydns_child key = child_of(l), *found = hydns_children_before(&t.c, &key);
	const size_t n = count_before(l);
	const struct label *last = n && t.list[n - 1].parent == l->parent ? &t.list[n - 1] : NULL;
	struct hydns_child wanted;

	if (found && hydns_child_len(found) == HYDNS_CHILD_LONG) {
		assert_true(has_long_labels(l->parent));
		return false;
	}
	assert_int_equal(found != NULL, last != NULL);
	if (!last)
		return true;
	wanted = child_of(last);
	assert_memory_equal(found, &wanted, sizeof(wanted));
	return true;
}

static void as_a_plain_list(void **state)
{
	unsigned known = 0, unknown = 0;

	(void)state;
	for (unsigned batch = 0; t.count < 600; batch++) {
		for (unsigned n = (unsigned)random() % 9; n; n--) {
			struct label l = any_label();

			add(&l);
		}
		if (t.head.table & 1)
			merge();
		for (unsigned n = 0; n < 50; n++) {
			struct label l = any_label();

			if (check(&l))
				known++;
			else
				unknown++;
		}
	}
	for (size_t i = 0; i < t.count; i++)
		check(&t.list[i]);
	assert_true(known && unknown);
}

/* -- readers ------------------------------------------------------------------------------------------------- */
#define SERVED 4000U                     /* children: as many as there is room for, less a few */

static struct {
	pthread_mutex_t lock;            /* the set's */
	_Atomic uint32_t served;         /* children number 1 to this one exist */
	_Atomic bool over;
	_Atomic unsigned wrong;
} r = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* They come in an order of their own. */
static struct hydns_child numbered(uint32_t n)
{
	return (struct hydns_child){ .parent = 1, .label = { n * 2654435761U, 0, 0, 4 } };
}

static struct hydns_child load(const struct hydns_child *from)
{
	struct hydns_child c = { .parent = __atomic_load_n(&from->parent, __ATOMIC_RELAXED) };

	for (int i = 0; i < HYDNS_CHILD_WORDS; i++)
		c.label[i] = __atomic_load_n(&from->label[i], __ATOMIC_RELAXED);
	return c;
}

/* As the program does. False: it could not rely on the table; or *found is the last child before the key. */
static bool read_table(const struct hydns_child *key, struct hydns_child *found)
{
	const uint32_t before = __atomic_load_n(&t.head.table, __ATOMIC_SEQ_CST);
	uint32_t low = 0, high = __atomic_load_n(&t.head.leaves, __ATOMIC_RELAXED);
	struct hydns_child child;

	if (before & 1)
		return false;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		child = load(&t.leaf[middle].child[0]);
		if (hydns_child_is_behind(&child, key))
			high = middle;
		else
			low = middle + 1;
	}
	memset(found, 0, sizeof(*found));
	for (unsigned i = 0; low && i < HYDNS_LEAF_CHILDREN; i++) {
		child = load(&t.leaf[low - 1].child[i]);
		if (!hydns_child_is_behind(&child, key))
			*found = child;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&t.head.table, __ATOMIC_SEQ_CST) == before;
}

/* A child that is served is in the table, or the table is closed. */
static void *reader(void *arg)
{
	while (!atomic_load(&r.over)) {
		const struct hydns_child key = numbered(atomic_load(&r.served));
		struct hydns_child found;

		if (read_table(&key, &found) && memcmp(&found, &key, sizeof(key)))
			atomic_fetch_add(&r.wrong, 1);
	}
	return arg;
}

static void *merger(void *arg)
{
	while (!atomic_load(&r.over)) {
		struct hydns_children_list list;
		bool any, merged;

		pthread_mutex_lock(&r.lock);
		any = hydns_children_merge_begins(&t.c, &list);
		pthread_mutex_unlock(&r.lock);
		if (!any)
			continue;
		merged = hydns_children_merge(&t.c, &list);
		pthread_mutex_lock(&r.lock);
		hydns_children_merge_ends(&t.c, merged);
		pthread_mutex_unlock(&r.lock);
	}
	return arg;
}

static void serve(uint32_t n)
{
	const struct hydns_child child = numbered(n);

	pthread_mutex_lock(&r.lock);
	hydns_children_come(&t.c, &child);
	pthread_mutex_unlock(&r.lock);
	atomic_store(&r.served, n);
}

static void readers_while_children_come(void **state)
{
	pthread_t thread[3];
	struct hydns_child key, found;

	(void)state;
	serve(1);
	merge();
	assert_int_equal(pthread_create(&thread[0], NULL, merger, NULL), 0);
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, reader, NULL), 0);
	for (uint32_t n = 2; n <= SERVED; n++)
		serve(n);
	atomic_store(&r.over, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	if (t.head.table & 1)
		merge();
	assert_int_equal(r.wrong, 0);
	for (uint32_t n = 1; n <= SERVED; n++) {
		key = numbered(n);
		assert_true(read_table(&key, &found));
		assert_memory_equal(&found, &key, sizeof(key));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(neighbours, begin, end), cmocka_unit_test_setup_teardown(long_labels, begin, end),
		cmocka_unit_test_setup_teardown(closed_until_it_has_all, begin, end),
		cmocka_unit_test_setup_teardown(without_room, begin, end), cmocka_unit_test_setup_teardown(as_a_plain_list, begin, end),
		cmocka_unit_test_setup_teardown(readers_while_children_come, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
