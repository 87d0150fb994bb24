/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule store (hydns-kern/store/store.c) while its writer changes it and the XDP program looks up: a rule that the program
 * finds is whole and for its question, and stays so until the program ends, even when its slot is reused.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "test-harness/model/model.h"
#include "test-harness/model/program.h"

#define ANSWER_LEN 24
#define TTL_AT     6           /* in an answer */

static const __u8 name[2][8] = { "\1a\4test", "\1b\4test" };

static struct hydns_geometry geometry = { .abi_version = HYDNS_ABI_VERSION, .cpus = 1, .own_hits = 1, .buckets = 1,
					  .spans = HYDNS_CHUNK / HYDNS_SPAN, .lines = 1, .seed = { 1, 2 } };
static struct hydns_store_memory memory = { .geometry = &geometry };
static struct hydns_store *store;
static __u32 handle[2], replaced;

static void *table(size_t count, size_t size)
{
	void *p = aligned_alloc(64, (count * size + 63) & ~63UL);

	if (!p)
		abort();
	return memset(p, 0, count * size);
}

/* Every run uses the same: the addresses of atomic objects must not change. */
static void clear_memory(void)
{
	if (!memory.index) {
		memory.index = table(geometry.buckets, sizeof(struct hydns_bucket));
		memory.claims = table(geometry.lines, sizeof(struct hydns_line));
		memory.hits = table(2, sizeof(struct hydns_line));
		memory.slots = table(1, HYDNS_CHUNK);
		memory.empty = table(1, sizeof(__u32));
	}
	memset(memory.index, 0, geometry.buckets * sizeof(struct hydns_bucket));
	memset(memory.slots, 0, 4 * HYDNS_SPAN);
	store = hydns_store_open(&memory);
	if (!store)
		abort();
	program_set(&memory);
}

/* An answer whose octets, but for the TTL, all hold name and version. */
static void put(unsigned which, __u8 version)
{
	static __u8 answer[ANSWER_LEN];
	static __u16 ttl[1] = { TTL_AT };
	struct hydns_rule_parts p = { .name = name[which], .answer = answer, .ttl = ttl };

	memset(answer, (int)(which << 4 | version), sizeof(answer));
	p.head.name_len = sizeof(name[0]);
	p.head.qtype = htons(1);
	p.head.answer_len = ANSWER_LEN;
	p.head.ttl_count = 1;
	p.head.epoch = version;
	if (hydns_store_publish(store, &p, &handle[which], &replaced))
		abort();
}

/* What the program would send. */
static void look_up(unsigned on, unsigned which)
{
	const struct hydns_rule *r;

	model_program_begin();
	r = program_find(on, name[which], sizeof(name[0]), htons(1));
	if (r) {
		model_require(r->answer_len == ANSWER_LEN && r->name_len == sizeof(name[0]), "a rule of other lengths");
		for (unsigned i = 0; i < ANSWER_LEN; i++)
			model_require(r->data[sizeof(name[0]) + 4 + i] == (__u8)(which << 4 | r->epoch),
				      "an answer of another name, or of another version");
	}
	model_program_end();
}

static void reclaim(void)
{
	__u64 ticket = hydns_store_grace_begin(store);

	model_grace();
	hydns_store_grace_end(store, ticket);
}

static void close_store(bool half)
{
	(void)half;
	hydns_store_close(store);
}

/* -- a new rule ----------------------------------------------------------------------------------------------------- */
static void begin_empty(void)
{
	clear_memory();
}

static void publish_a(void)
{
	put(0, 1);
}

static void look_for_a(void)
{
	look_up(0, 0);
}

static void look_for_a_too(void)
{
	look_up(1, 0);
}

static const struct model publish = { "a new rule is found whole or not at all", begin_empty, { publish_a, look_for_a },
				      close_store };

/* -- a reused slot -------------------------------------------------------------------------------------------------- */
static void begin_with_a(void)
{
	clear_memory();
	put(0, 1);
}

static void replace_a(void)
{
	put(0, 2);
	reclaim();
	put(1, 3);             /* into the slot of the first */
}

static void remove_a(void)
{
	hydns_store_remove(store, handle[0]);
	reclaim();
	put(1, 3);
}

static void replace_a_twice(void)
{
	put(0, 2);
	put(0, 3);             /* not into the slot of the first, which a program may hold */
}

static void remove_a_late(void)
{
	__u64 ticket = hydns_store_grace_begin(store);

	hydns_store_remove(store, handle[0]);
	hydns_store_grace_end(store, ticket);
	put(1, 3);             /* the grace period was too early for a's slot */
}

static const struct model twice = { "a slot is not reused without a grace period", begin_with_a,
				    { replace_a_twice, look_for_a }, close_store };
static const struct model late = { "nor after one that began before its rule was removed", begin_with_a,
				   { remove_a_late, look_for_a }, close_store };
static const struct model replacement = { "a replaced rule stays whole for a program that has found it", begin_with_a,
					  { replace_a, look_for_a }, close_store };
static const struct model removal = { "a removed rule stays whole for a program that has found it", begin_with_a,
				      { remove_a, look_for_a }, close_store };
static const struct model removals = { "and for two of them", begin_with_a, { remove_a, look_for_a, look_for_a_too }, close_store };

/* -- final when it returns --------------------------------------------------------------------------------------------- */
static void remove_and_say(void)
{
	hydns_store_remove(store, handle[0]);
	model_grace();
	model_set_moment(true);
}

/* The reply is sent when the program ends. */
static void answer_a(unsigned on)
{
	const struct hydns_rule *r;

	model_program_begin();
	r = program_find(on, name[0], sizeof(name[0]), htons(1));
	model_require(!r || !model_moment(), "an answer is sent after the removal of its rule has returned");
	model_program_end();
}

static void answer_one(void)
{
	answer_a(0);
}

static void answer_another(void)
{
	answer_a(1);
}

static const struct model final = { "no answer is sent after a removal has returned", begin_with_a,
				    { remove_and_say, answer_one, answer_another }, close_store };

int main(void)
{
	static const struct model_case cases[] = {
		{ &publish, { MODEL_NO_RELEASE, MODEL_NO_DEPENDENCY } },
		{ &replacement, { MODEL_NO_RELEASE, MODEL_NO_DEPENDENCY, MODEL_NO_GRACE } },
		{ &twice, { MODEL_NO_RELEASE } },
		{ &late, { MODEL_SOUND } },
		{ &removal, { MODEL_NO_GRACE } },
		{ &removals, { MODEL_NO_GRACE } },
		{ &final, { MODEL_NO_GRACE } },
	};

	return model_main(cases, sizeof(cases) / sizeof(cases[0]));
}
