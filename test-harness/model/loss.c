/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A change (plugin/offers/worker.c) while the link thread loses hydnsd (plugin/link/link.c): either the link thread sees the
 * frame that hydnsd has not acted upon, or the changing thread sees that hydnsd is away.
 */
#include "plugin/link/link.c"

#include "test-harness/model/model.h"

#define LIFE_MS 60000

static const uint8_t name[] = "\3www\7example";

static struct hydns_plugin *publish;
static struct link link_thread;

static void quiet(enum hydns_log_level level, const char *text)
{
	(void)level;
	(void)text;
}

static void make(void)
{
	const struct hydns_plugin_options o = { .socket = "/nowhere", .identity = "model", .version = "1", .threads = 1,
						 .capacity = 16, .admission = 1, .window_ms = 1000, .log = quiet };

	publish = hydns_plugin_new(&o);
	if (!publish)
		abort();
}

/* Connected, with a rule of the name and nothing in the ring. */
static void begin(void)
{
	struct hydns_thread *t;

	if (!publish)
		make();
	t = &publish->thread[0];
	atomic_store(&publish->ready, true);
	atomic_store(&publish->interval, 1);
	atomic_store(&publish->dead_in, 0);
	atomic_store(&t->changed_head, 0);
	t->ring.head = t->ring.ring->head = t->ring.ring->tail = t->ring.ring->need_wakeup = 0;
	hydns_pages_resume(publish->pages);
	link_thread = (struct link){ .p = publish, .sock = -1, .ready = true };
	if (!hydns_names_offer(publish->names, name, sizeof(name), HYDNS_NAMES_ALL, hydns_mono_coarse_ms() + LIFE_MS,
			       hydns_names_changes(publish->names)))
		abort();
}

static void change(void)
{
	hydns_plugin_changed(&publish->thread[0], name, sizeof(name));
}

static void lose(void)
{
	close_session(&link_thread, 0);
}

static void somebody_has_seen(bool half)
{
	model_require(half || hydns_pages_suspended(publish->pages),
		      "the frame waits in the ring, and the rules still count");
}

static const struct model loss = { "a change and a loss", begin, { change, lose }, somebody_has_seen };

int main(void)
{
	static const struct model_case cases[] = { { &loss, { MODEL_NO_ORDER } } };

	return model_main(cases, sizeof(cases) / sizeof(cases[0]));
}
