/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The link thread: heartbeat, connection to hydnsd, requests of other threads. One request is under way
 * at a time; while anything is waited for, the heart goes on beating, with hydnsd or without.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "plugin/clock.h"
#include "plugin/internal.h"
#include "plugin/log.h"

#define REPLY_TIMEOUT_MS    5000U      /* hydnsd fills whole ACL maps before it answers */
#define BYE_TIMEOUT_MS      200U
#define BACKOFF_MIN_MS      100U
#define BACKOFF_AWAY_MS     200U       /* at most, while nobody listens: asking costs next to nothing */
#define BACKOFF_MAX_MS      1000U      /* otherwise: hydnsd logs each refusal */
/* A listening address that hydnsd refused may be free a moment later, when the process that had it is gone. */
#define SERVICE_RETRY_MIN_MS 50U
#define SERVICE_RETRY_MAX_MS 1000U
#define CLOCK_STEP_NS       (500 * 1000000LL)
/* A CHANGED frame that is still in the ring after this long means that hydnsd hangs. */
#define CHANGED_STUCK_MS    1000U
#define ACL_CHUNK ((HYDNS_MSG_MAX - sizeof(struct hydns_msg) - sizeof(struct hydns_acl_list)) / \
		   sizeof(struct hydns_acl_entry))
#define TOLD_LEN 256
#define GROUP_ROOM 33

struct link {
	struct hydns_plugin *p;
	int sock;
	uint32_t seq;
	uint64_t next_beat_ns;
	int64_t clock_offset;            /* wall clock less monotonic, at the last step */
	bool clock_known;
	uint32_t cookies_told;           /* number of the cookie secrets that hydnsd has; 0: none */
	bool *refused;                   /* by service: hydnsd has not taken it; NULL: out of memory, none is retried */
	size_t refusals;                 /* of those */
	size_t next_service;             /* to be tried again first */
	uint32_t retry_ms;               /* pause between two trials */
	uint64_t retry_ns;               /* time of the next */
	uint32_t notes_told;             /* that of the notes */
	bool ready;                      /* the session is, or was until now; p->ready ends before it when somebody leaves */
	bool lost;                       /* the connection, and the operator was told so */
	bool leaving;                    /* towards a goodbye: the end of the thread no longer cuts waits short */
	struct change_watch {            /* per resolver thread: its CHANGED frames */
		uint32_t settled;        /* those before this ring position have been acted upon */
		uint32_t waiting;        /* frame before this position is being waited for ... */
		uint64_t since_ms;       /* ... since then; 0: none */
	} watch[HYDNS_THREADS_MAX];
	struct hydns_channel_message in;
	char told[TOLD_LEN];             /* last state logged: each is logged once, not per attempt */
};

static void tell(struct link *l, enum hydns_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void tell(struct link *l, enum hydns_log_level level, const char *format, ...)
{
	char text[TOLD_LEN];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!strcmp(text, l->told))
		return;
	memcpy(l->told, text, sizeof(text));
	hydns_log(l->p, level, "%s", text);
}

/* -- heartbeat -------------------------------------------------------------------------------------- */
/* TTLs count wall-clock seconds, rules monotonic ones: when the two part, no rule is right any more. */
static void check_clocks(struct link *l)
{
	struct hydns_moment now = hydns_moment();
	int64_t offset = (int64_t)(now.real_ns - now.mono_ns);
	int64_t moved = offset - l->clock_offset;

	if (l->clock_known && moved < CLOCK_STEP_NS && moved > -CLOCK_STEP_NS)
		return;
	l->clock_offset = offset;
	if (!l->clock_known) {
		l->clock_known = true;
		return;
	}
	hydns_pages_advance_generation(l->p->pages);
	hydns_plugin_kill_rules(l->p);
	hydns_log(l->p, HYDNS_LOG_WARNING, "the wall clock was set by %lld ms: all kernel answers withdrawn",
		  (long long)(moved / 1000000));
}

static uint32_t tail_of(const struct hydns_thread *t)
{
	return __atomic_load_n(&t->ring.ring->tail, __ATOMIC_ACQUIRE);
}

/* Positions are modulo 2^32: to be asked of a frame that may be in the ring, and at least once a beat. */
static bool consumed(const struct hydns_thread *t, uint32_t position)
{
	return (int32_t)(position - tail_of(t)) <= 0;
}

/* With hydnsd: true when a CHANGED frame has been waiting for too long. */
static bool change_stuck(struct change_watch *w, struct hydns_thread *t, uint64_t now_ms)
{
	uint32_t head = atomic_load(&t->changed_head);

	if (w->since_ms && !consumed(t, w->waiting))
		return now_ms - w->since_ms >= CHANGED_STUCK_MS;
	w->since_ms = 0;
	if (head != w->settled && consumed(t, head)) {
		w->settled = head;
	} else if (head != w->settled) {
		w->waiting = head;
		w->since_ms = now_ms;
	}
	return false;
}

union waiting_frame {
	struct hydns_frame head;
	struct hydns_changed changed;
	uint8_t octet[offsetof(struct hydns_changed, data) + HYDNS_NAME_MAX];
};

/* False: the frame, of this length, is broken. */
static bool touch_named(struct hydns_plugin *p, const union waiting_frame *f, uint32_t len)
{
	const struct hydns_changed *c = &f->changed;

	if (f->head.type != HYDNS_FRAME_CHANGED)
		return true;
	if (len < offsetof(struct hydns_changed, data) + c->name_len || !c->name_len ||
	    hydns_name_length(c->data, c->name_len) != c->name_len)
		return false;
	hydns_plugin_mark(p, c->data, c->name_len);
	return true;
}

/* The rules of all names in CHANGED frames wait with these. False: the ring can't be read. A hydnsd that goes on
 * meanwhile may give back what is being read. */
static bool touch_waiting(struct hydns_plugin *p, const struct hydns_thread *t)
{
	uint32_t end = __atomic_load_n(&t->ring.ring->head, __ATOMIC_SEQ_CST), at = tail_of(t), len;
	union waiting_frame f;

	while ((int32_t)(end - at) > 0) {
		len = hydns_producer_peek(&t->ring, at, end, &f, sizeof(f));
		atomic_thread_fence(memory_order_acquire);
		if ((int32_t)(tail_of(t) - at) > 0) {
			at = tail_of(t);
			continue;
		}
		if (!len || !touch_named(p, &f, len))
			return false;
		at += len;
	}
	return true;
}

/* hydnsd is lost, or hangs. */
static void rest_with_changes(struct link *l)
{
	for (uint32_t i = 0; i < l->p->o.threads; i++)
		if (!touch_waiting(l->p, &l->p->thread[i]))
			hydns_plugin_suspend_rules(l->p);
}

static void check_changes(struct link *l)
{
	uint64_t now_ms = hydns_mono_coarse_ms();

	for (uint32_t i = 0; i < l->p->o.threads; i++)
		if (change_stuck(&l->watch[i], &l->p->thread[i], now_ms)) {
			rest_with_changes(l);
			return;
		}
}

static void beat(struct link *l)
{
	uint64_t mono = hydns_mono_ns();

	if (mono < l->next_beat_ns)
		return;
	l->next_beat_ns = mono + HYDNS_HEARTBEAT_BEAT_NS;
	check_clocks(l);
	hydns_pages_tell_tai(l->p->pages, hydns_tai_offset());
	hydns_pages_beat(l->p->pages, mono);
	if (atomic_load_explicit(&l->p->ready, memory_order_relaxed))
		check_changes(l);
}

/* Waits for events on the socket (if any) or a wake-up (if asked for), until the deadline, beating. True:
 * something has come; false: too late, or the thread is to end. */
static bool await(struct link *l, short events, bool wake, uint64_t deadline_ns)
{
	struct pollfd f[] = { { .fd = l->sock, .events = events },
			      { .fd = wake ? l->p->requests.wake : -1, .events = POLLIN },
			      { .fd = l->leaving ? -1 : l->p->leave.wake, .events = POLLIN } };
	uint64_t now, until;
	bool come;

	for (;;) {
		beat(l);
		now = hydns_mono_ns();
		until = l->next_beat_ns < deadline_ns ? l->next_beat_ns : deadline_ns;
		come = poll(f, sizeof(f) / sizeof(f[0]),
			    until <= now ? 0 : (int)((until - now) / HYDNS_NS_PER_MS) + 1) > 0;
		if (atomic_load(&l->p->stopping) && !l->leaving)
			return false;
		if (come)
			return true;
		if (hydns_mono_ns() >= deadline_ns)
			return false;
	}
}

/* The end of the thread has come: what others wait for, before the goodbye to hydnsd, which may be slow. */
static void go(struct link *l)
{
	l->leaving = true;
	hydns_requests_accept(&l->p->requests, false);
	hydns_leave_go(l->p);
}

/* -- one request, one reply --------------------------------------------------------------------------- */
static int send_message(struct link *l, const struct hydns_msg *head, const void *payload, const int *fd,
			unsigned fds, uint64_t deadline)
{
	int error;

	while ((error = hydns_channel_send(l->sock, head, payload, fd, fds)) == -EAGAIN)
		if (!await(l, POLLOUT, false, deadline))
			return -ETIMEDOUT;
	return error;
}

static void drop_fds(struct hydns_channel_message *m)
{
	for (unsigned i = 0; i < 2; i++) {
		if (m->fd[i] >= 0)
			close(m->fd[i]);
		m->fd[i] = -1;
	}
}

/* The only message that comes unasked: what a hydnsd that ends has counted; or, from the next one before its WELCOME, what the
 * program has counted meanwhile. */
static bool last_counts(struct link *l)
{
	if (l->in.head.type != HYDNS_MSG_COUNTS || l->in.head.seq != 0 || l->in.head.len != sizeof(struct hydns_counts))
		return false;
	drop_fds(&l->in);
	hydns_requests_take_counts(&l->p->requests, (const struct hydns_counts *)l->in.payload);
	return true;
}

/* No reply has come in time: 0 when it is waited for a little longer, so that the connection ends with a goodbye. */
static int late(struct link *l, uint64_t *deadline)
{
	if (l->leaving || !atomic_load(&l->p->stopping))
		return -ETIMEDOUT;
	go(l);
	*deadline = hydns_mono_ns() + BYE_TIMEOUT_MS * HYDNS_NS_PER_MS;
	return 0;
}

/* The reply of this type is in l->in. -EREFUSED stands for REFUSED, its text in l->in; -ECANCELED: nothing was sent, and fd
 * not looked at, for only goodbye is said any more. */
#define EREFUSED ECONNREFUSED
static int call(struct link *l, uint32_t type, const void *payload, size_t len, const int *fd, unsigned fds,
		uint32_t reply, uint32_t timeout_ms)
{
	struct hydns_msg head = { .type = type, .seq = ++l->seq, .len = (uint32_t)len };
	uint64_t deadline = hydns_mono_ns() + timeout_ms * HYDNS_NS_PER_MS;
	int error = l->leaving && type != HYDNS_MSG_BYE ? -ECANCELED :
		    send_message(l, &head, payload, fd, fds, deadline);

	while (!error) {
		error = hydns_channel_receive(l->sock, &l->in);
		if (!error && last_counts(l))
			continue;
		if (error != -EAGAIN)
			break;
		error = await(l, POLLIN, false, deadline) ? 0 : late(l, &deadline);
	}
	if (error)
		return error;
	if (l->in.head.seq == head.seq && l->in.head.type == reply && reply == HYDNS_MSG_WELCOME)
		return 0;
	drop_fds(&l->in);
	if (l->in.head.seq != head.seq)
		return -EPROTO;
	if (l->in.head.type == HYDNS_MSG_REFUSED)
		return -EREFUSED;
	return l->in.head.type == reply ? 0 : -EPROTO;
}

/* hydnsd's text, as far as it is printable. */
static const char *refusal(struct link *l)
{
	size_t n = l->in.head.len;
	char *text = (char *)l->in.payload;

	if (n >= sizeof(l->in.payload))
		n = sizeof(l->in.payload) - 1;
	text[n] = '\0';
	for (size_t i = 0; text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	return text;
}

/* -- session -------------------------------------------------------------------------------------------- */
static int take_page(struct link *l, const struct hydns_welcome *w, int map_fd)
{
	bool had = hydns_pages_fd(l->p->pages) >= 0;
	int error;

	if (w->adopted) {
		if (map_fd >= 0)
			close(map_fd);
		return had ? 0 : -EPROTO;
	}
	if (map_fd < 0)
		return -EPROTO;
	error = hydns_pages_switch(l->p->pages, map_fd, w->epoch, hydns_mono_ns());
	if (error)
		return error;
	hydns_requests_new_page(&l->p->requests);
	hydns_pending_forget(&l->p->owed);
	hydns_pages_tell_tai(l->p->pages, hydns_tai_offset());
	hydns_secrets_tell(&l->p->secrets, l->p->pages);
	atomic_fetch_add(&l->p->session, 1);
	return 0;
}

static int take_welcome(struct link *l)
{
	struct hydns_welcome w;
	int doorbell = l->in.fd[0], page = l->in.fd[1], error = 0;

	if (l->in.head.len != sizeof(w) || doorbell < 0) {
		drop_fds(&l->in);
		return -EPROTO;
	}
	memcpy(&w, l->in.payload, sizeof(w));
	/* Onto the same number: workers may be writing to it at this moment. */
	if (dup3(doorbell, l->p->doorbell, O_CLOEXEC) < 0)
		error = -errno;
	close(doorbell);
	if (!error)
		return take_page(l, &w, page);
	if (page >= 0)
		close(page);
	return error;
}

static int hello(struct link *l)
{
	const struct hydns_plugin_options *o = &l->p->o;
	struct hydns_hello h = {
		.abi_version = HYDNS_ABI_VERSION, .threads = o->threads, .capacity = o->capacity,
		.min_ttl = o->min_ttl, .max_ttl = o->max_ttl, .flags = o->flags, .edns_size = o->edns_size,
		.max_udp = o->max_udp, .refresh_percent = (uint16_t)o->refresh_percent,
		.pid = (uint32_t)getpid(), .admission = o->admission,
		.seed = { l->p->seed[0], l->p->seed[1] },
	};
	int fd[HYDNS_THREADS_MAX + 1];
	unsigned fds = o->threads;
	int error;

	strcpy(h.identity, o->identity);   /* lengths checked with the options */
	strcpy(h.version, o->version);
	for (uint32_t i = 0; i < o->threads; i++)
		fd[i] = l->p->thread[i].ring.fd;
	if (hydns_pages_fd(l->p->pages) >= 0)
		fd[fds++] = hydns_pages_fd(l->p->pages);
	error = call(l, HYDNS_MSG_HELLO, &h, sizeof(h), fd, fds, HYDNS_MSG_WELCOME, REPLY_TIMEOUT_MS);
	return error ? error : take_welcome(l);
}

/* A part of the configuration: refused, it is told and left out, which only keeps answers from the kernel. */
static int configure(struct link *l, uint32_t type, const void *payload, size_t len, const char *what)
{
	int error = call(l, type, payload, len, NULL, 0, HYDNS_MSG_ACK, REPLY_TIMEOUT_MS);

	if (error != -EREFUSED)
		return error;
	hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused %s: %s", what, refusal(l));
	return 0;
}

/* -- listening addresses -------------------------------------------------------------------------------------- */
/* One that is refused is left to the resolver, and tried again. */
static int send_service(struct link *l, size_t i)
{
	int error = call(l, HYDNS_MSG_SERVICE, NULL, 0, &l->p->service[i], 1, HYDNS_MSG_ACK, REPLY_TIMEOUT_MS);
	bool refused = error == -EREFUSED;

	if (error && !refused)
		return error;
	if (l->refused && l->refused[i] != refused) {
		l->refused[i] = refused;
		l->refusals += refused ? 1 : (size_t)-1;
	}
	return error;
}

static void forget_refusals(struct link *l)
{
	if (l->refused)
		memset(l->refused, 0, l->p->services * sizeof(*l->refused));
	l->refusals = l->next_service = 0;
	l->retry_ms = SERVICE_RETRY_MIN_MS;
}

static void plan_retry(struct link *l)
{
	l->retry_ns = hydns_mono_ns() + l->retry_ms * HYDNS_NS_PER_MS;
	l->retry_ms = l->retry_ms * 2 < SERVICE_RETRY_MAX_MS ? l->retry_ms * 2 : SERVICE_RETRY_MAX_MS;
}

static int send_services(struct link *l)
{
	int error = 0;

	forget_refusals(l);
	for (size_t i = 0; i < l->p->services && (!error || error == -EREFUSED); i++) {
		error = send_service(l, i);
		if (error == -EREFUSED)
			hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused a listening address: %s; it is tried again",
				  refusal(l));
	}
	plan_retry(l);
	return error == -EREFUSED ? 0 : error;
}

/* One after the other, until one is refused again: mostly they have a common cause, which costs one message then. */
static int retry_services(struct link *l)
{
	const size_t n = l->p->services;       /* as this begins: whoever leaves meanwhile closes them, see call() */
	size_t left = l->refusals ? n : 0;
	int error = 0;

	if (!left || hydns_mono_ns() < l->retry_ns)
		return 0;
	for (; left-- && !error; l->next_service = (l->next_service + 1) % n) {
		if (!l->refused[l->next_service])
			continue;
		error = send_service(l, l->next_service);
		if (!error)
			hydns_log(l->p, HYDNS_LOG_INFO, "hydnsd has taken a listening address that it had refused");
	}
	plan_retry(l);
	return error == -EREFUSED ? 0 : error;
}

/* -- the rest of the configuration ---------------------------------------------------------------------------- */
static int send_acl(struct link *l)
{
	uint8_t payload[HYDNS_MSG_MAX - sizeof(struct hydns_msg)];
	struct hydns_acl_list *list = (struct hydns_acl_list *)payload;
	int error = 0;

	for (size_t at = 0; at < l->p->acls && !error; at += list->count) {
		size_t left = l->p->acls - at;

		list->count = (uint32_t)(left < ACL_CHUNK ? left : ACL_CHUNK);
		memcpy(list->entry, l->p->acl + at, list->count * sizeof(list->entry[0]));
		error = call(l, HYDNS_MSG_ACL, payload, sizeof(*list) + list->count * sizeof(list->entry[0]),
			     NULL, 0, HYDNS_MSG_ACK, REPLY_TIMEOUT_MS);
	}
	return error;
}

/* The current cookie secrets, if hydnsd does not have them. Refused, queries with a cookie pass. */
static int send_cookies(struct link *l)
{
	struct hydns_cookies c;
	int error = 0;

	hydns_secrets_copy(&l->p->secrets, &c);
	if (c.set != l->cookies_told)
		error = configure(l, HYDNS_MSG_COOKIES, &c, sizeof(c), "the cookie secrets");
	if (!error)
		l->cookies_told = c.set;
	explicit_bzero(&c, sizeof(c));
	return error;
}

static int send_notes_of(struct link *l, enum hydns_note_kind kind)
{
	uint8_t payload[HYDNS_MSG_MAX - sizeof(struct hydns_msg)] __attribute__((aligned(8)));
	int error = 0;
	size_t len;

	for (size_t i = 0; !error; i++) {
		len = hydns_notes_message(&l->p->notes, kind, i, (struct hydns_note *)payload, sizeof(payload));
		if (!len)
			break;
		error = configure(l, HYDNS_MSG_NOTE, payload, len, "a note");
	}
	return error;
}

/* The current notes, if hydnsd does not have them. */
static int send_notes(struct link *l)
{
	uint32_t changed = atomic_load(&l->p->notes.changed);
	int error = 0;

	if (changed == l->notes_told)
		return 0;
	for (unsigned kind = 0; kind < HYDNS_NOTES && !error; kind++)
		error = send_notes_of(l, kind);
	if (!error)
		l->notes_told = changed;
	return error;
}

static int send_configuration(struct link *l)
{
	struct hydns_plugin *p = l->p;
	int error = send_services(l);

	l->cookies_told = 0;
	l->notes_told = atomic_load(&p->notes.changed) - 1;
	if (!error)
		error = send_acl(l);   /* all of it or nothing: a missing "deny" would answer too many */
	if (!error)
		error = send_cookies(l);
	if (!error)
		error = send_notes(l);
	return error ? error : call(l, HYDNS_MSG_READY, NULL, 0, NULL, 0, HYDNS_MSG_ACK, REPLY_TIMEOUT_MS);
}

/* From the file alone: a service of names that does not answer would stop the heart. */
static const char *group_name(gid_t gid, char out[GROUP_ROOM])
{
	char text[4096];
	struct group entry, *g = NULL;
	FILE *f = fopen("/etc/group", "re");
	bool found = false;

	snprintf(out, GROUP_ROOM, "%u", (unsigned)gid);
	while (f && !found && fgetgrent_r(f, &entry, text, sizeof(text), &g) == 0)
		found = g->gr_gid == gid;
	if (found)
		snprintf(out, GROUP_ROOM, "%s", g->gr_name);
	if (f)
		fclose(f);
	return out;
}

/* Whoever was told that the connection is lost need not be told that there is none. */
static void tell_unreachable(struct link *l, int error)
{
	const char *path = l->p->o.socket;
	char group[GROUP_ROOM];
	struct stat st;

	if (l->lost && (error == -ECONNREFUSED || error == -ENOENT))
		return;
	if (error == -EACCES && stat(path, &st) == 0 && (st.st_mode & S_IWGRP))
		tell(l, HYDNS_LOG_WARNING, "hydnsd's socket %s may not be used by this process (user %u): every query goes "
		     "through the resolver until it may; add the resolver's user to group %s, which is hydnsd's plugin-group, "
		     "and restart the resolver", path, (unsigned)geteuid(), group_name(st.st_gid, group));
	else if (error == -EACCES && stat(path, &st) == 0)
		tell(l, HYDNS_LOG_WARNING, "hydnsd's socket %s is open to root alone, and this process is user %u: every query "
		     "goes through the resolver until it may; set plugin-group in hydnsd.conf to a group of that user, and "
		     "restart hydnsd", path, (unsigned)geteuid());
	else if (error == -EACCES)
		tell(l, HYDNS_LOG_WARNING, "hydnsd's socket %s is in a directory that this process (user %u) may not enter: "
		     "every query goes through the resolver until it may; let the resolver's user, or a group of its, pass "
		     "there", path, (unsigned)geteuid());
	else
		tell(l, HYDNS_LOG_WARNING, "hydnsd cannot be reached at %s (%s): every query goes through the "
		     "resolver until it can; start hydnsd or correct the path", path, strerror(-error));
}

static void say_goodbye(struct link *l)
{
	go(l);
	call(l, HYDNS_MSG_BYE, NULL, 0, NULL, 0, HYDNS_MSG_ACK, BYE_TIMEOUT_MS);
}

static int open_session(struct link *l)
{
	int error;

	l->sock = hydns_channel_connect(l->p->o.socket);
	if (l->sock < 0) {
		tell_unreachable(l, l->sock);
		return l->sock;
	}
	error = hello(l);
	if (!error)
		error = send_configuration(l);
	if (error == -EREFUSED)
		tell(l, HYDNS_LOG_ERROR, "hydnsd refused this resolver: %s", refusal(l));
	else if (error == -ECANCELED)
		say_goodbye(l);
	else if (error && !atomic_load(&l->p->stopping))
		tell(l, HYDNS_LOG_WARNING, "registering with hydnsd failed: %s", strerror(-error));
	return error;
}

/* -- serving ----------------------------------------------------------------------------------------------- */
/* Requests for what the link thread keeps up to date by itself: they wait until it is. */
static int serve_update(struct link *l, const struct hydns_request *q)
{
	int error = q->type == HYDNS_MSG_COOKIES ? send_cookies(l) : send_notes(l);

	hydns_requests_finish(&l->p->requests, q->id, !error, NULL);
	return error;
}

static int serve_request(struct link *l, const struct hydns_request *q)
{
	const struct hydns_counts *counts = NULL;
	bool stats = q->type == HYDNS_MSG_STATS;
	int error;

	if (q->type == HYDNS_MSG_COOKIES || q->type == HYDNS_MSG_NOTE)
		return serve_update(l, q);
	error = call(l, q->type, stats ? NULL : &q->withdraw, stats ? 0 : sizeof(q->withdraw), NULL, 0,
		     stats ? HYDNS_MSG_COUNTS : HYDNS_MSG_ACK, REPLY_TIMEOUT_MS);
	if (!error && stats && l->in.head.len != sizeof(*counts))
		error = -EPROTO;
	if (!error && stats)
		counts = (const struct hydns_counts *)l->in.payload;
	if (error == -EREFUSED)
		hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused a request: %s", refusal(l));
	hydns_requests_finish(&l->p->requests, q->id, !error, counts);
	return error == -EREFUSED ? 0 : error;
}

/* What hydnsd refuses, the epoch does. */
static int settle_one(struct link *l, uint32_t type, const void *payload, size_t len)
{
	int error = call(l, type, payload, len, NULL, 0, HYDNS_MSG_ACK, REPLY_TIMEOUT_MS);

	if (error != -EREFUSED)
		return error;
	hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused a request: %s", refusal(l));
	hydns_plugin_kill_rules(l->p);
	return 0;
}

/*
 * The rules that are left when hydnsd has acted upon all that waits for it count again. Another thread may be about to
 * mark a name at this moment: one that found hydnsd away did so before this session, with its frame in the ring already,
 * which SETTLE comes behind; one that found the rules suspended has put its frame into a ring that hydnsd reads. So a mark
 * that is lost here was not needed any more, and a flag that is left is taken back by the next turn.
 */
static int resume(struct link *l)
{
	struct hydns_withdraw w;
	int error = 0;

	if (!hydns_pages_suspended(l->p->pages))
		return 0;
	do {
		while (!error && hydns_pending_first(&l->p->owed, &w)) {
			error = settle_one(l, HYDNS_MSG_WITHDRAW, &w, sizeof(w));
			if (!error)
				hydns_pending_done(&l->p->owed, &w);
		}
		if (!error)
			error = settle_one(l, HYDNS_MSG_CATCH_UP, NULL, 0);
	} while (!error && !hydns_pending_resume(&l->p->owed, l->p->pages));
	if (error)
		return error;
	hydns_log(l->p, HYDNS_LOG_INFO, "hydnsd has withdrawn what changed meanwhile: kernel answers go on");
	return 0;
}

static int serve(struct link *l)
{
	struct hydns_request q;
	eventfd_t ignored;
	int error = 0;

	while (!error && !atomic_load(&l->p->stopping)) {
		if (eventfd_read(l->p->requests.wake, &ignored) && errno != EAGAIN)
			return -errno;
		while (!error && hydns_requests_take(&l->p->requests, &q))
			error = serve_request(l, &q);
		if (!error)
			error = send_cookies(l);   /* whose request was given up before its turn came, */
		if (!error)
			error = send_notes(l);     /* as these */
		if (!error)
			error = retry_services(l);
		if (!error)
			error = resume(l);
		if (error || atomic_load(&l->p->stopping))
			break;
		await(l, POLLIN, true, l->refusals ? l->retry_ns : UINT64_MAX);
		/* hydnsd says hardly anything of itself: what can be read is mostly the end of the connection. */
		error = hydns_channel_receive(l->sock, &l->in);
		if (!error && !last_counts(l)) {
			drop_fds(&l->in);
			error = -EPROTO;
		} else if (error == -EAGAIN) {
			error = 0;
		}
	}
	return error;
}

/* error: the connection was lost by it; 0: it was not, or there was none. */
static void close_session(struct link *l, int error)
{
	bool was_ready = l->ready;

	l->ready = false;
	atomic_store(&l->p->ready, false);
	hydns_requests_accept(&l->p->requests, false);
	if (was_ready)
		atomic_fetch_add(&l->p->interval, 1);
	if (l->sock >= 0)
		close(l->sock);
	l->sock = -1;
	if (was_ready)
		rest_with_changes(l);
	if (error)
		tell(l, HYDNS_LOG_WARNING, "connection to hydnsd lost (%s): kernel answers go on, but those of names whose data "
		     "change wait until it is back", strerror(-error));
	l->lost |= error != 0;
}

/* Negative errno: the connection is lost; 0: the resolver leaves. */
static int run_session(struct link *l)
{
	int error;

	atomic_fetch_add(&l->p->interval, 1);
	hydns_requests_accept(&l->p->requests, true);
	l->ready = true;
	atomic_store(&l->p->ready, true);
	l->lost = false;
	tell(l, HYDNS_LOG_INFO, "connected to hydnsd at %s", l->p->o.socket);
	/* A hydnsd that died asleep left no need_wakeup behind for its successor's first look. */
	if (eventfd_write(l->p->doorbell, 1) && errno != EAGAIN)
		hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd's doorbell does not work: %s", strerror(errno));
	error = serve(l);
	if (error && error != -ECANCELED)
		return atomic_load(&l->p->stopping) ? 0 : error;
	say_goodbye(l);
	return 0;
}

static void *link_main(void *plugin)
{
	struct link l = { .p = plugin, .sock = -1 };
	uint32_t backoff = BACKOFF_MIN_MS, most;
	eventfd_t ignored;

	hydns_plugin_stop(l.p->former);       /* first: hydnsd takes no address from two at a time */
	l.p->former = NULL;
	l.refused = calloc(l.p->services + 1, sizeof(*l.refused));
	while (!atomic_load(&l.p->stopping)) {
		int lost = 0;

		if (open_session(&l) == 0) {
			backoff = BACKOFF_MIN_MS;
			lost = run_session(&l);
		}
		most = l.sock < 0 ? BACKOFF_AWAY_MS : BACKOFF_MAX_MS;
		close_session(&l, lost);
		(void)eventfd_read(l.p->requests.wake, &ignored);      /* fails only when nobody has written */
		if (!atomic_load(&l.p->stopping))
			await(&l, 0, true, hydns_mono_ns() + backoff * HYDNS_NS_PER_MS);
		backoff = backoff * 2 < most ? backoff * 2 : most;
	}
	go(&l);
	free(l.refused);
	return NULL;
}

int hydns_plugin_start(struct hydns_plugin *p)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);   /* inherited: signals are the resolver's to handle */
	error = pthread_create(&p->link, NULL, link_main, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		hydns_log(p, HYDNS_LOG_ERROR, "cannot start the link thread: %s", strerror(error));
		return -error;
	}
	p->started = true;
	return 0;
}
