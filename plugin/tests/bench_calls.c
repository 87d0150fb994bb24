/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Prints what hydns_plugin_hot(), _changed() and _offer() cost, without hydnsd. The names come in random order, so the
 * sketch's memory counts too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/internal.h"

#define CALLS (1U << 22)

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

static double hot(struct hydns_thread *t, uint8_t (*name)[32], uint32_t names)
{
	struct hydns_question q = { .name_len = 27, .qtype = 1 };
	uint64_t state = 1, began = hydns_mono_ns();

	for (uint32_t i = 0; i < CALLS; i++) {
		q.name = name[next_random(&state) % names];
		hydns_plugin_hot(t, hydns_question_key(&q, t->plugin->seed), false, 1000, began / HYDNS_NS_PER_MS + i / 100);
	}
	return (double)(hydns_mono_ns() - began) / CALLS;
}

static double changed(struct hydns_thread *t, uint8_t (*name)[32], uint32_t names)
{
	uint64_t state = 2, began = hydns_mono_ns();

	for (uint32_t i = 0; i < CALLS; i++)
		hydns_plugin_changed(t, name[next_random(&state) % names], 27);
	return (double)(hydns_mono_ns() - began) / CALLS;
}

/* www.example.invalid is an alias in another zone, whose server's address comes along: four RRsets, five names. */
static const uint8_t reply[] =
	"\0\0\201\200\0\1\0\2\0\1\0\1"
	"\3www\7example\7invalid\0\0\1\0\1"
	"\300\14\0\5\0\1\0\0\0\74\0\17\4host\4test\3net\0"
	"\300\61\0\1\0\1\0\0\0\74\0\4\300\0\2\1"
	"\300\66\0\2\0\1\0\0\0\74\0\5\2ns\300\66"
	"\300\134\0\1\0\1\0\0\0\74\0\4\300\0\2\2";

/* As if hydnsd were there and read the ring at once. */
static double offered(const struct hydns_plugin_options *o)
{
	struct hydns_plugin *p = hydns_plugin_new(o);
	const struct hydns_question q = { .name = reply + 12, .name_len = 21, .qtype = 1 };
	struct hydns_thread *t = hydns_plugin_thread(p, 0);
	time_t now = time(NULL);
	uint64_t began;

	hydns_names_watch(p->names);
	atomic_store(&p->ready, true);
	began = hydns_mono_ns();
	for (uint32_t i = 0; i < CALLS; i++) {
		if (hydns_plugin_offer(t, &q, reply, sizeof(reply) - 1, now, now + 60, false, hydns_plugin_stamp(p)))
			abort();
		t->ring.ring->tail = t->ring.head;
	}
	began = hydns_mono_ns() - began;
	hydns_plugin_stop(p);
	return (double)began / CALLS;
}

int main(void)
{
	static const uint32_t row[] = { 1, 1000, 100000, 1000000 };
	const struct hydns_plugin_options o = { .socket = "/nonexistent", .identity = "bench", .version = "1",
		.threads = 1, .admission = 4, .window_ms = 10000, .max_ttl = 3600 };
	struct hydns_plugin_options with_zones = o;
	uint8_t (*name)[32] = malloc(1000000 * sizeof(*name));
	struct hydns_plugin *p = hydns_plugin_new(&o);

	with_zones.zones = true;
	if (!p || !name)
		return 1;
	for (uint32_t i = 0; i < 1000000; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%09u", i);
		memcpy(name[i], "\11" "000000000\7Example\7invalid", 27);
		memcpy(name[i] + 1, text, 9);
	}
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		printf("%7u names: hot %.1f ns, changed %.1f ns\n", row[i],
		       hot(hydns_plugin_thread(p, 0), name, row[i]),
		       changed(hydns_plugin_thread(p, 0), name, row[i]));
	printf("offer %.1f ns", offered(&o));
	printf(", of a resolver with zones %.1f ns\n", offered(&with_zones));
	hydns_plugin_stop(p);
	free(name);
	return 0;
}
