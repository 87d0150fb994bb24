/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The thread that reads the log ring and writes. A record's room in the ring is free once it is written, not before: what a lost
 * connection has not taken is written again to the next one. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "plugin/clock.h"
#include "plugin/dnstap/dnstap.h"
#include "plugin/start_thread.h"

#define BATCH       (256U * 1024)
#define RINGS       4                  /* a former hydnsd's, and one more for each hydnsd that went while it was full */
#define RETRY_NS    HYDNS_NS_PER_S
#define LOOK_NS     HYDNS_NS_PER_S
#define BUSY_MS     8                  /* records come: they are gathered for so long */
#define IDLE_MS     50                 /* none has come for a second; the program wakes the thread when there are many */
#define LAST_MS     2000               /* what is left at the end is written for so long */

struct hydns_tap {
	const struct hydns_dnstap_options *o;
	struct hydns_tap_level *level;
	pthread_t thread;
	pthread_mutex_t lock;          /* of the rings that wait */
	int waiting[RINGS];
	unsigned rings;
	int wake;
	_Atomic bool stopping;
	struct hydns_dnstap_head head;
	struct hydns_own_frames own;
	bool takes_own;                /* the resolver's own messages */
	/* the thread's own */
	struct hydns_log_reader reader;
	struct hydns_stream stream;
	uint64_t retry_ns, busy_ns, looked_ns;
	ino_t beside;                  /* of the resolver's own file; 0: not known */
	bool failed;                   /* and that has been logged */
	int64_t real_less_mono;
	uint8_t batch[BATCH];
};

static void say(const struct hydns_tap *t, bool bad, const char *format, const char *detail)
{
	char text[256];

	snprintf(text, sizeof(text), format, t->o->path ? t->o->path : "its TCP address", detail);
	if (t->o->log)
		t->o->log(t->o->log_arg, bad, text);
}

/* -- the other side --------------------------------------------------------------------------------------- */
static void connected(struct hydns_tap *t, bool is)
{
	__atomic_store_n(&t->level->connected, is, __ATOMIC_RELAXED);
}

static void lost(struct hydns_tap *t, int rc)
{
	__atomic_fetch_add(&t->level->failures, 1, __ATOMIC_RELAXED);
	connected(t, false);
	t->retry_ns = hydns_mono_ns() + RETRY_NS;
	if (!t->failed)
		say(t, true, "dnstap messages of kernel answers can't be written to %s: %s; tried again each second", strerror(-rc));
	t->failed = true;
}

/* Whether the resolver has begun another file since the last look, by rolling or reopening it. */
static bool other_file(struct hydns_tap *t)
{
	uint64_t now = hydns_mono_ns();
	ino_t before = t->beside;
	struct stat st;

	if (!t->o->beside || now - t->looked_ns < LOOK_NS)
		return false;
	t->looked_ns = now;
	if (stat(t->o->beside, &st) == 0)
		t->beside = st.st_ino;
	return before && t->beside != before;
}

/* True: there is a connection, or none is needed. */
static bool have_stream(struct hydns_tap *t)
{
	int rc;

	if (t->o->to == HYDNS_DNSTAP_NOWHERE)
		return true;
	if (t->stream.fd >= 0 && other_file(t))
		hydns_stream_close(&t->stream);
	if (t->stream.fd >= 0 && hydns_stream_gone(&t->stream)) {
		hydns_stream_close(&t->stream);
		lost(t, -ECONNRESET);
	}
	if (t->stream.fd >= 0)
		return true;
	if (hydns_mono_ns() < t->retry_ns)
		return false;
	rc = hydns_stream_open(&t->stream, t->o);
	if (rc) {
		lost(t, rc);
		return false;
	}
	if (t->failed)
		say(t, false, "dnstap messages of kernel answers are written to %s again%s", "");
	t->failed = false;
	connected(t, true);
	return true;
}

/* -- records ------------------------------------------------------------------------------------------------ */
static uint8_t *put_frame(struct hydns_tap *t, const struct hydns_logged *r, bool reply, int64_t real_ns, uint8_t *to)
{
	size_t len = hydns_dnstap_message(t->o, &t->head, r, reply, real_ns, to + 4);
	uint32_t head = htonl((uint32_t)len);

	if (!len)
		return to;
	memcpy(to, &head, sizeof(head));
	return to + 4 + len;
}

static void find_clock(struct hydns_tap *t)
{
	struct hydns_moment now = hydns_moment();

	t->real_less_mono = (int64_t)(now.real_ns - now.mono_ns);
}

/* Fills the batch; returns how many records are in it. */
static unsigned gather(struct hydns_tap *t, size_t *len)
{
	const struct hydns_logged *r;
	uint8_t *to = t->batch;
	unsigned n = 0;
	size_t size;

	find_clock(t);
	while ((size_t)(t->batch + BATCH - to) >= 2 * (HYDNS_DNSTAP_MOST + 4) && (r = hydns_log_reader_next(&t->reader, &size))) {
		int64_t real_ns = (int64_t)r->at_ns + t->real_less_mono;

		if (t->o->to != HYDNS_DNSTAP_NOWHERE) {
			to = put_frame(t, r, false, real_ns, to);
			to = put_frame(t, r, true, real_ns, to);
		}
		n++;
	}
	*len = (size_t)(to - t->batch);
	return n;
}

/* The lines come when the messages are written, so that they come once. */
static void write_lines(struct hydns_tap *t, unsigned n)
{
	const struct hydns_logged *r;
	size_t size;

	if (!t->o->line)
		return;
	hydns_log_reader_again(&t->reader);
	while (n-- && (r = hydns_log_reader_next(&t->reader, &size))) {
		const uint8_t *query = (const uint8_t *)(r + 1);

		t->o->line(t->o, r, query, query + r->query_len);
	}
}

/* Writes a batch; returns its records, 0 also when they could not be written. */
static unsigned write_batch(struct hydns_tap *t)
{
	size_t len;
	unsigned n = gather(t, &len);
	int rc = n && len ? hydns_stream_write(&t->stream, t->batch, len) : 0;

	if (rc) {
		hydns_log_reader_again(&t->reader);
		lost(t, rc);
		return 0;
	}
	write_lines(t, n);
	hydns_log_reader_done(&t->reader);
	__atomic_fetch_add(&t->level->written, n, __ATOMIC_RELAXED);
	return n;
}

/* Writes the resolver's own; false: there were none, or they could not be written. */
static bool write_own(struct hydns_tap *t)
{
	int rc = 0;
	bool some = t->takes_own && hydns_own_frames_write(&t->own, &t->stream, &rc) > 0;

	if (rc)
		lost(t, rc);
	return some;
}

/* The former ring is empty, and gets no more: goes on with the next. */
static bool next_ring(struct hydns_tap *t)
{
	bool there_is;

	pthread_mutex_lock(&t->lock);
	there_is = t->rings > 0;
	if (there_is) {
		hydns_log_reader_close(&t->reader);
		if (!hydns_log_reader_open(&t->reader, t->waiting[0])) {
			close(t->waiting[0]);
			t->reader.fd = -1;
		}
		memmove(t->waiting, t->waiting + 1, --t->rings * sizeof(t->waiting[0]));
	}
	pthread_mutex_unlock(&t->lock);
	return there_is;
}

/* -- the thread ------------------------------------------------------------------------------------------------ */
static void rest(struct hydns_tap *t)
{
	bool idle = hydns_mono_ns() - t->busy_ns > HYDNS_NS_PER_S;
	struct pollfd f[] = { { .fd = t->wake, .events = POLLIN }, { .fd = idle ? t->reader.fd : -1, .events = POLLIN } };
	eventfd_t ignored;

	poll(f, 2, idle ? IDLE_MS : BUSY_MS);
	(void)eventfd_read(t->wake, &ignored);      /* fails only when nobody has written */
}

/* All that is there. */
static void work(struct hydns_tap *t)
{
	bool more = true;

	while (more && have_stream(t)) {
		bool own = write_own(t);
		unsigned n = have_stream(t) ? write_batch(t) : 0;

		if (own || n)
			t->busy_ns = hydns_mono_ns();
		more = own || n || (t->stream.fd >= 0 || t->o->to == HYDNS_DNSTAP_NOWHERE ? next_ring(t) : false);
		if (atomic_load(&t->stopping) && hydns_mono_ns() >= t->retry_ns + LAST_MS * HYDNS_NS_PER_MS)
			more = false;
	}
}

static void *tap_main(void *tap)
{
	struct hydns_tap *t = tap;

	if (t->o->thread_begins)
		t->o->thread_begins();
	while (!atomic_load(&t->stopping)) {
		work(t);
		rest(t);
	}
	t->retry_ns = hydns_mono_ns();
	work(t);
	hydns_stream_close(&t->stream);
	connected(t, false);
	if (t->o->thread_ends)
		t->o->thread_ends();
	return NULL;
}

/* -- for other threads ----------------------------------------------------------------------------------------- */
static void tap_free(struct hydns_tap *t)
{
	while (t->rings)
		close(t->waiting[--t->rings]);
	hydns_log_reader_close(&t->reader);
	hydns_own_frames_destroy(&t->own);
	if (t->wake >= 0)
		close(t->wake);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* The tap has another file than the resolver. */
static bool may_take_own(const struct hydns_dnstap_options *o)
{
	return (o->to == HYDNS_DNSTAP_UNIX || o->to == HYDNS_DNSTAP_TCP) &&
	       (!o->identity || strlen(o->identity) <= HYDNS_DNSTAP_TEXT_MOST) &&
	       (!o->version || strlen(o->version) <= HYDNS_DNSTAP_TEXT_MOST);
}

struct hydns_tap *hydns_tap_start(const struct hydns_dnstap_options *o, struct hydns_tap_level *level)
{
	struct hydns_tap *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->o = o;
	t->level = level;
	t->reader.fd = t->stream.fd = -1;
	t->stream.stopping = &t->stopping;
	pthread_mutex_init(&t->lock, NULL);
	hydns_dnstap_begin(&t->head, o);
	t->takes_own = hydns_own_frames_init(&t->own) && may_take_own(o);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	connected(t, o->to == HYDNS_DNSTAP_NOWHERE);
	errno = t->wake < 0 ? errno : hydns_start_thread(&t->thread, tap_main, t);
	if (!errno)
		return t;
	tap_free(t);
	return NULL;
}

static void wake(struct hydns_tap *t)
{
	if (eventfd_write(t->wake, 1))
		return;                /* it is awake */
}

bool hydns_tap_ring(struct hydns_tap *t, int map_fd)
{
	bool taken;

	pthread_mutex_lock(&t->lock);
	taken = t->rings < RINGS;
	if (taken)
		t->waiting[t->rings++] = map_fd;
	pthread_mutex_unlock(&t->lock);
	wake(t);
	return taken;
}

bool hydns_tap_own(struct hydns_tap *t, const struct hydns_tap_message *m)
{
	uint8_t frame[4 + HYDNS_DNSTAP_MOST];
	enum hydns_own_put put = HYDNS_OWN_FULL;
	size_t len;

	if (!t->takes_own || !__atomic_load_n(&t->level->connected, __ATOMIC_RELAXED))
		return false;
	len = hydns_own_frame(t->o, &t->head, m, frame);
	if (len)
		put = hydns_own_frames_put(&t->own, frame, len);
	if (put == HYDNS_OWN_FULL)
		return false;
	if (put == HYDNS_OWN_HALF)
		wake(t);
	__atomic_fetch_add(&t->level->own, 1, __ATOMIC_RELAXED);
	return true;
}

void hydns_tap_stop(struct hydns_tap *t)
{
	if (!t)
		return;
	atomic_store(&t->stopping, true);
	wake(t);
	pthread_join(t->thread, NULL);
	tap_free(t);
}
