/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/guard/guard.h"
#include "hydnsd/resolvers/hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hydnsd/daemon/former.h"
#include "hydnsd/daemon/loop.h"
#include "hydnsd/resolvers/registration.h"
#include "hydnsd/resolvers/rings.h"
#include "hydnsd/resolvers/session_internal.h"

static bool text_valid(const char *text, size_t room)
{
	size_t len = strnlen(text, room);

	if (len == room)
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

static const char *hello_fault(const struct hydnsd_request *m)
{
	const struct hydns_hello *h = (const struct hydns_hello *)m->payload;

	if (m->head.len != sizeof(*h))
		return "a HELLO of another length: install hydnsd and the plugin from one release";
	if (!h->abi_version)
		return "no ABI version: install hydnsd and the plugin from one release";
	if (h->threads < 1 || h->threads > HYDNS_THREADS_MAX)
		return "the number of threads is out of range: run fewer threads";
	if (h->flags & ~HYDNS_RESOLVER_HELLO_FLAGS)
		return "unknown flags: install hydnsd and the plugin from one release";
	if (h->edns_size < 512 || h->max_udp < 512)
		return "a UDP size below 512 octets: correct the resolver's configuration";
	if (h->refresh_percent > 100)
		return "refresh is more than 100 percent: correct the resolver's configuration";
	if (h->max_ttl && h->max_ttl < h->min_ttl)
		return "max-ttl is below min-ttl: correct the resolver's configuration";
	if (h->stale_ttl > HYDNS_TTL_MAX)
		return "a stale TTL above 2^31-1: correct the resolver's configuration";
	if (!text_valid(h->stale_text, sizeof(h->stale_text)))
		return "the text of the extended error is not printable: use a plugin of this version";
	if (!text_valid(h->identity, sizeof(h->identity)) || !text_valid(h->version, sizeof(h->version)))
		return "identity or version is not printable text: use a plugin of this version";
	return NULL;
}

static int open_rings(struct hydnsd_session *s, const struct hydnsd_request *m, char *why, size_t room)
{
	const struct hydns_hello *h = (const struct hydns_hello *)m->payload;

	if (m->fds < h->threads || m->fds > h->threads + 1) {
		snprintf(why, room, "%u descriptors came with %u threads: one ring each, and the page if "
			 "there is one", m->fds, h->threads);
		return -EINVAL;
	}
	return hydnsd_rings_open(s, m->fd, h->threads, why, room);
}

static void bell(void *arg, uint32_t events)
{
	(void)events;
	hydnsd_rings_wake(arg);
}

/* Nobody reads it: both sides share the file description, so a plugin could clear O_NONBLOCK, and a read here would wait. Edge-triggered,
 * each write wakes hydnsd once. */
static int make_doorbell(struct hydnsd_session *s, char *why, size_t room)
{
	s->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->doorbell >= 0)
		s->bell_watch = hydnsd_loop_watch(s->daemon->loop, s->doorbell, EPOLLIN | EPOLLET, bell, s);
	if (s->bell_watch)
		return 0;
	snprintf(why, room, "cannot make a doorbell: %s", strerror(errno));
	return -EMFILE;
}

/* Sends what the program has counted for the page that the plugin held until now, before WELCOME brings a new one. */
static bool send_former_counts(struct hydnsd_session *s, int page)
{
	struct hydns_counts counts;

	return !hydnsd_former_take(s->daemon, page, &counts) ||
	       hydnsd_session_send(s, HYDNS_MSG_COUNTS, 0, &counts, sizeof(counts), NULL, 0);
}

/* Who holds the page is the same resolver: its former connection is stale. */
static void drop_former(struct hydnsd_session *s, int page)
{
	uint64_t former = hydnsd_resolver_session(s->daemon, page);

	if (former && former != s->id)
		hydnsd_session_drop(s->daemon, former, "the same resolver has connected again");
}

static bool welcome(struct hydnsd_session *s, const struct hydnsd_request *m, char *why, size_t room)
{
	const struct hydns_hello *h = (const struct hydns_hello *)m->payload;
	struct hydns_welcome w;
	int page = m->fds > h->threads ? m->fd[h->threads] : -1, new_page, fds[HYDNSD_FDS_OUT_MAX];
	bool sent;

	drop_former(s, page);
	s->resolver = hydnsd_resolver_begin(s->daemon, s->id, h, page, &w, &new_page, why, room);
	if (s->resolver < 0) {
		s->resolver = -1;
		return hydnsd_session_refuse(s, m->head.seq, why);
	}
	hydnsd_guard_thresholds(s->daemon, &w.guard_failures, &w.guard_waiting);
	fds[0] = s->doorbell;
	fds[1] = new_page;
	sent = send_former_counts(s, page) &&
	       hydnsd_session_send(s, HYDNS_MSG_WELCOME, m->head.seq, &w, sizeof(w), fds, new_page < 0 ? 1 : 2);
	if (new_page >= 0)
		close(new_page);
	return sent;
}

bool hydnsd_hello(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const char *fault = s->resolver >= 0 ? "a second HELLO: say RESET instead" : hello_fault(m);
	char why[HYDNS_WHY];

	if (fault)
		return hydnsd_session_refuse(s, m->head.seq, fault);
	if (open_rings(s, m, why, sizeof(why)) ||
	    (s->doorbell < 0 && make_doorbell(s, why, sizeof(why)))) {
		hydnsd_rings_close(s);
		return hydnsd_session_refuse(s, m->head.seq, why);
	}
	s->other_abi = 0;
	if (!welcome(s, m, why, sizeof(why)))
		return false;
	if (s->resolver < 0)
		hydnsd_rings_close(s);
	return true;
}

bool hydnsd_hello_reset(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_hello *h = (const struct hydns_hello *)m->payload;
	const char *fault = hello_fault(m);

	if (!fault && h->threads != s->rings)
		fault = "another number of threads: connect again";
	if (fault)
		return hydnsd_session_refuse(s, m->head.seq, fault);
	hydnsd_resolver_reset(s->daemon, (uint32_t)s->resolver, h);
	return hydnsd_session_acknowledge(s, m->head.seq);
}
