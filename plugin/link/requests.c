/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Requests of other threads, for the link thread to send. A request is on its caller's stack, and the caller removes it
 * from the list before it returns, in time or not. So the link thread keeps no pointer to one: it works on a copy, and
 * finds the request again by its number, if it is still there.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "plugin/clock.h"
#include "plugin/link/link.h"

int hydns_requests_init(struct hydns_requests *r)
{
	pthread_condattr_t attr;

	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake < 0)
		return -errno;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);   /* a step of the wall clock is no timeout */
	pthread_cond_init(&r->done, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void hydns_requests_destroy(struct hydns_requests *r)
{
	pthread_cond_destroy(&r->done);
	pthread_mutex_destroy(&r->lock);
	close(r->wake);
}

void hydns_requests_wake(struct hydns_requests *r)
{
	/* Fails only when the counter is full, and then the thread is awake. */
	if (eventfd_write(r->wake, 1))
		return;
}

static void append(struct hydns_requests *r, struct hydns_request *q)
{
	q->id = ++r->next_id;
	q->state = HYDNS_REQUEST_WAITING;
	q->next = NULL;
	if (r->last)
		r->last->next = q;
	else
		r->first = q;
	r->last = q;
}

static void unlink_request(struct hydns_requests *r, struct hydns_request *q)
{
	struct hydns_request *before = NULL;

	for (struct hydns_request *i = r->first; i != q; i = i->next)
		before = i;
	if (before)
		before->next = q->next;
	else
		r->first = q->next;
	if (r->last == q)
		r->last = before;
}

bool hydns_requests_ask(struct hydns_requests *r, struct hydns_request *q, uint32_t timeout_ms)
{
	uint64_t end = hydns_mono_ns() + timeout_ms * HYDNS_NS_PER_MS;
	struct timespec deadline = { .tv_sec = (time_t)(end / HYDNS_NS_PER_S),
				     .tv_nsec = (long)(end % HYDNS_NS_PER_S) };
	bool done = false;

	pthread_mutex_lock(&r->lock);
	q->state = HYDNS_REQUEST_FAILED;
	if (r->accepting) {
		int late = 0;

		append(r, q);
		hydns_requests_wake(r);
		while (!late && (q->state == HYDNS_REQUEST_WAITING || q->state == HYDNS_REQUEST_SENT))
			late = pthread_cond_timedwait(&r->done, &r->lock, &deadline);
		done = q->state == HYDNS_REQUEST_DONE;
		unlink_request(r, q);
	}
	pthread_mutex_unlock(&r->lock);
	return done;
}

bool hydns_requests_take(struct hydns_requests *r, struct hydns_request *copy)
{
	struct hydns_request *q;

	pthread_mutex_lock(&r->lock);
	for (q = r->first; q && q->state != HYDNS_REQUEST_WAITING; q = q->next)
		;
	if (q) {
		q->state = HYDNS_REQUEST_SENT;
		*copy = *q;
	}
	pthread_mutex_unlock(&r->lock);
	return q;
}

static struct hydns_request *find(struct hydns_requests *r, uint64_t id)
{
	struct hydns_request *q = r->first;

	while (q && q->id != id)
		q = q->next;
	return q;
}

void hydns_requests_reply(struct hydns_requests *r, uint64_t id, const void *payload, size_t len)
{
	struct hydns_request *q;

	pthread_mutex_lock(&r->lock);
	q = find(r, id);
	if (q && len <= sizeof(q->octets)) {
		memcpy(q->octets, payload, len);
		q->len = (uint32_t)len;
	}
	pthread_mutex_unlock(&r->lock);
}

void hydns_requests_give(struct hydns_requests *r, uint64_t id, int fd)
{
	struct hydns_request *q;

	pthread_mutex_lock(&r->lock);
	q = find(r, id);
	if (q)
		q->fd = fd;
	pthread_mutex_unlock(&r->lock);
	if (!q)
		close(fd);
}

void hydns_requests_finish(struct hydns_requests *r, uint64_t id, bool done,
			   const struct hydns_counts *counts)
{
	struct hydns_request *q;

	pthread_mutex_lock(&r->lock);
	if (counts)
		r->counts = *counts;
	q = find(r, id);
	if (q) {
		q->state = done ? HYDNS_REQUEST_DONE : HYDNS_REQUEST_FAILED;
		pthread_cond_broadcast(&r->done);
	}
	pthread_mutex_unlock(&r->lock);
}

void hydns_requests_take_counts(struct hydns_requests *r, const struct hydns_counts *counts)
{
	pthread_mutex_lock(&r->lock);
	r->counts = *counts;
	pthread_mutex_unlock(&r->lock);
}

/* All members are 64-bit words. The number of rules is one of now, and is not added. */
static void add_counts(struct hydns_counts *to, const struct hydns_counts *more)
{
	uint64_t sum[sizeof(*to) / sizeof(uint64_t)], of[sizeof(*to) / sizeof(uint64_t)];
	const uint64_t rules = more->rules;

	memcpy(sum, to, sizeof(sum));
	memcpy(of, more, sizeof(of));
	for (size_t i = 0; i < sizeof(sum) / sizeof(sum[0]); i++)
		sum[i] += of[i];
	memcpy(to, sum, sizeof(sum));
	to->rules = rules;
}

void hydns_requests_new_page(struct hydns_requests *r)
{
	pthread_mutex_lock(&r->lock);
	add_counts(&r->before, &r->counts);
	memset(&r->counts, 0, sizeof(r->counts));
	pthread_mutex_unlock(&r->lock);
}

void hydns_requests_counts(struct hydns_requests *r, struct hydns_counts *out)
{
	pthread_mutex_lock(&r->lock);
	*out = r->before;
	add_counts(out, &r->counts);
	pthread_mutex_unlock(&r->lock);
}

void hydns_requests_accept(struct hydns_requests *r, bool accepting)
{
	pthread_mutex_lock(&r->lock);
	r->accepting = accepting;
	for (struct hydns_request *q = r->first; q && !accepting; q = q->next)
		if (q->state != HYDNS_REQUEST_DONE)
			q->state = HYDNS_REQUEST_FAILED;
	pthread_cond_broadcast(&r->done);
	pthread_mutex_unlock(&r->lock);
}
