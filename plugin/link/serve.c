/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A READY connection: the requests of other threads, and catching up. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include "plugin/link/thread.h"
#include "plugin/log.h"

/* What the link thread keeps up to date by itself: the request waits until it is. */
static int serve_update(struct hydns_link *l, const struct hydns_request *q)
{
	int error = q->type == HYDNS_MSG_COOKIES ? hydns_link_send_cookies(l) :
		    q->type == HYDNS_MSG_RESET ? hydns_link_reconfigure(l) :
		    q->type == HYDNS_MSG_FORWARDS ? hydns_link_send_forwards(l) : hydns_link_send_notes(l);

	hydns_requests_finish(&l->p->requests, q->id, !error, NULL);
	return error;
}

static void log_refusal(struct hydns_link *l)
{
	hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused a request: %s", hydns_link_refusal(l));
}

static uint32_t reply_to(uint32_t type)
{
	return type == HYDNS_MSG_STATS ? HYDNS_MSG_COUNTS : type == HYDNS_MSG_PRELOAD ? HYDNS_MSG_PRELOADED : HYDNS_MSG_ACK;
}

/* A request whose reply is a descriptor. */
static int serve_fetch(struct hydns_link *l, const struct hydns_request *q)
{
	int fd, error = hydns_link_fetch(l, q->type, q->octets, q->len, HYDNS_MSG_NAME_SET, &fd);

	if (error == -HYDNS_EREFUSED)
		log_refusal(l);
	if (!error)
		hydns_requests_give(&l->p->requests, q->id, fd);
	hydns_requests_finish(&l->p->requests, q->id, !error, NULL);
	return error == -HYDNS_EREFUSED ? 0 : error;
}

static int serve_request(struct hydns_link *l, const struct hydns_request *q)
{
	const struct hydns_counts *counts = NULL;
	bool stats = q->type == HYDNS_MSG_STATS;
	int error;

	if (q->type == HYDNS_MSG_COOKIES || q->type == HYDNS_MSG_NOTE || q->type == HYDNS_MSG_FORWARDS || q->type == HYDNS_MSG_RESET)
		return serve_update(l, q);
	if (q->type == HYDNS_MSG_NAMES)
		return serve_fetch(l, q);
	error = hydns_link_call(l, q->type, q->len ? q->octets : NULL, q->len, NULL, 0,
				reply_to(q->type), HYDNS_REPLY_TIMEOUT_MS);
	if (!error && stats && l->in.head.len != sizeof(*counts))
		error = -EPROTO;
	if (!error && stats)
		counts = (const struct hydns_counts *)l->in.payload;
	if (error == -HYDNS_EREFUSED)
		log_refusal(l);
	if (!error && q->type == HYDNS_MSG_PRELOAD)
		hydns_requests_reply(&l->p->requests, q->id, l->in.payload, l->in.head.len);
	hydns_requests_finish(&l->p->requests, q->id, !error, counts);
	return error == -HYDNS_EREFUSED ? 0 : error;
}

/* One request of catching up. What hydnsd refuses to do, a new epoch does. */
static int catch_up_with(struct hydns_link *l, uint32_t type, const void *payload, size_t len)
{
	int error = hydns_link_ask(l, type, payload, len);

	if (error != -HYDNS_EREFUSED)
		return error;
	log_refusal(l);
	hydns_plugin_kill_rules(l->p);
	return 0;
}

/*
 * Once hydnsd has acted upon everything that waited for it, the rules that are left count again. Another thread may be
 * about to mark a name at this moment. If it found hydnsd away, it did so before this connection, so its frame was in the
 * ring before CATCH_UP was sent. If it found the rules suspended, it has put its frame into a ring that hydnsd reads. So
 * a mark that is lost here was no longer needed, and one that is left ends the next time this is called.
 */
static int resume(struct hydns_link *l)
{
	struct hydns_withdraw w;
	int error = 0;

	if (!hydns_pages_suspended(l->p->pages) || hydns_pending_held(&l->p->pending))
		return 0;
	do {
		while (!error && hydns_pending_first(&l->p->pending, &w)) {
			error = catch_up_with(l, HYDNS_MSG_WITHDRAW, &w, sizeof(w));
			if (!error)
				hydns_pending_done(&l->p->pending, &w);
		}
		if (!error)
			error = catch_up_with(l, HYDNS_MSG_CATCH_UP, NULL, 0);
		if (hydns_pending_held(&l->p->pending))
			return error;  /* since then; what is pending waits with it */
	} while (!error && !hydns_pending_resume(&l->p->pending, l->p->pages));
	if (error)
		return error;
	hydns_log(l->p, HYDNS_LOG_INFO, "hydnsd has withdrawn what changed meanwhile: kernel answers go on");
	return 0;
}

static int serve_all(struct hydns_link *l)
{
	struct hydns_request q;
	int error = 0;

	while (!error && hydns_requests_take(&l->p->requests, &q))
		error = serve_request(l, &q);
	/* Again: their requests may have timed out before they were served. */
	if (!error)
		error = hydns_link_reconfigure(l);
	if (!error)
		error = hydns_link_send_cookies(l);
	if (!error)
		error = hydns_link_send_forwards(l);
	if (!error)
		error = hydns_link_send_notes(l); /* also those of the zones */
	if (!error)
		error = hydns_link_retry_services(l);
	if (!error)
		error = hydns_link_report_zones(l);
	if (!error)
		error = resume(l);
	return error ? error : hydns_link_work_lanes(l);
}

/* When something is to be tried again. */
static uint64_t due(const struct hydns_link *l)
{
	const uint64_t services = l->refusals ? l->retry_ns : UINT64_MAX, lanes = hydns_link_lanes_due(l);
	const uint64_t zones = hydns_link_guard_due(l), first = services < lanes ? services : lanes;

	return first < zones ? first : zones;
}

int hydns_link_serve(struct hydns_link *l)
{
	eventfd_t ignored;
	int error = 0;

	hydns_link_begin_lanes(l);
	while (!error && !atomic_load(&l->p->stopping)) {
		if (eventfd_read(l->p->requests.wake, &ignored) && errno != EAGAIN)
			return -errno;
		error = serve_all(l);
		if (error || atomic_load(&l->p->stopping))
			break;
		hydns_link_await(l, POLLIN, true, due(l));
		/* Mostly the end of the connection: hydnsd sends nothing else unasked but counts. */
		error = hydns_link_read_unasked(l);
	}
	return error;
}
