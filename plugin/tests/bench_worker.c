/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Prints what hydns_plugin_hot() and hydns_plugin_changed() cost, without hydnsd. Names are met in a
 * random order, so the sketch's memory counts too. */
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

int main(void)
{
	static const uint32_t row[] = { 1, 1000, 100000, 1000000 };
	const struct hydns_plugin_options o = { .socket = "/nonexistent", .identity = "bench", .version = "1",
		.threads = 1, .admission = 4, .window_ms = 10000, .max_ttl = 3600 };
	uint8_t (*name)[32] = malloc(1000000 * sizeof(*name));
	struct hydns_plugin *p = hydns_plugin_new(&o);

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
	hydns_plugin_stop(p);
	free(name);
	return 0;
}
