/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/tests/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "hydns-kern/tests/emulated.h"
#include "hydns/hash.h"

#define LIMIT_S 60

const uint8_t www[] = "\3wWw\7exAmple\3org", www_lower[] = "\3www\7example\3org";
static const struct reply_spec spec = { .name = "www.example.org.", .type = 1,
	.answer = { "www.example.org. 30 IN CNAME host.example.net.", "host.example.net. 30 IN A 192.0.2.1" } };

/* What was logged last, by the library's threads. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char logged[4096];
_Atomic unsigned log_lines;

static void take_log(enum hydns_log_level level, const char *text)
{
	(void)level;
	pthread_mutex_lock(&log_lock);
	snprintf(logged + strlen(logged), sizeof(logged) - strlen(logged), "%s\n", text);
	log_lines++;
	pthread_mutex_unlock(&log_lock);
}

bool log_has(const char *text)
{
	bool found;

	pthread_mutex_lock(&log_lock);
	found = strstr(logged, text);
	pthread_mutex_unlock(&log_lock);
	return found;
}

struct hydns_plugin_options world_options(struct world *w)
{
	return (struct hydns_plugin_options){ .socket = w->peer.path, .identity = "test", .version = "1",
		.threads = THREADS, .capacity = 1000, .admission = ADMISSION, .window_ms = 60000, .min_ttl = 2,
		.max_ttl = 3600, .refresh_percent = 10, .flush_timeout_ms = FLUSH_TIMEOUT_MS,
		.edns_size = 1232, .max_udp = 1232, .zones = true, .log = take_log };
}

int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct hydns_plugin_options o;

	alarm(patience(LIMIT_S));                        /* one that hangs has failed: the name printed last is its */
	peer_init(&w->peer);
	o = world_options(w);
	logged[0] = '\0';
	log_lines = 0;
	w->p = hydns_plugin_new(&o);
	w->t = hydns_plugin_thread(w->p, 0);
	hydns_names_watch(w->p->names);        /* else the first offer would be refused */
	reply_make(&w->reply, &spec);
	*state = w;
	return 0;
}

int world_teardown(void **state)
{
	struct world *w = *state;

	hydns_plugin_stop(w->p);
	reply_free(&w->reply);
	peer_destroy(&w->peer);
	free(w);
	alarm(0);
	return 0;
}

bool connected(struct world *w)
{
	return BECOMES(atomic_load(&w->p->ready));
}

bool disconnected(struct world *w)
{
	return BECOMES(!atomic_load(&w->p->ready));
}

void start_both(struct world *w)
{
	peer_start(&w->peer);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
}

void lose_hydnsd(struct world *w)
{
	peer_stop(&w->peer);
	assert_true(BECOMES(atomic_load(&w->p->interval) % 2 == 0));
}

int offer(struct world *w, struct hydns_stamp stamp)
{
	time_t now = time(NULL);

	return hydns_plugin_offer(w->t, &w->reply.question, w->reply.wire, w->reply.len, now, now + TTL, true,
				   stamp);
}

void assert_offered(struct world *w)
{
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
}

uint32_t start_and_offer(struct world *w)
{
	start_both(w);
	assert_offered(w);
	return page_epoch(w);
}

bool hot(struct world *w, time_t expires)
{
	return hydns_plugin_sample(w->t, time(NULL)) &&
	       hydns_plugin_hot(w->t, hydns_plugin_prefetch(w->t, &w->reply.question), w->reply.question.fixed, expires,
				hydns_mono_ns() / HYDNS_NS_PER_MS);
}

bool next_frame(struct world *w, unsigned thread, union ring_frame *f)
{
	return peer_frame(&w->peer, thread, f->room, sizeof(f->room));
}

uint32_t page_epoch(struct world *w)
{
	return __atomic_load_n(&w->peer.page->epoch, __ATOMIC_SEQ_CST);
}

bool suspended(struct world *w)
{
	return page_epoch(w) & HYDNS_EPOCH_FLAGS;
}

bool is_marked(struct world *w, const uint8_t *name, size_t len)
{
	uint16_t place = HYDNS_PLACE(hydns_place_hash(name, (uint8_t)len, w->peer.hello.seed));

	return __atomic_load_n(&w->peer.page->marks[place / 64], __ATOMIC_SEQ_CST) >> place % 64 & 1;
}

unsigned marks(struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < HYDNS_MARK_WORDS; i++)
		n += (unsigned)__builtin_popcountll(__atomic_load_n(&w->peer.page->marks[i], __ATOMIC_SEQ_CST));
	return n;
}

void empty_rings(struct world *w)
{
	union ring_frame f;

	for (unsigned i = 0; i < THREADS; i++)
		while (next_frame(w, i, &f))
			;
}

uint64_t page_generation(struct world *w)
{
	return __atomic_load_n(&w->peer.page->generation, __ATOMIC_SEQ_CST);
}

uint64_t page_heartbeat(struct world *w)
{
	return __atomic_load_n(&w->peer.page->heartbeat_ns, __ATOMIC_SEQ_CST);
}
