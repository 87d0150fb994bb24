/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/former.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/daemon/loop.h"
#include "hydnsd/daemon/sockets.h"
#include "hydnsd/resolvers/accounts.h"
#include "hydnsd/resolvers/cookies.h"
#include "hydnsd/resolvers/intake.h"
#include "hydnsd/resolvers/jobs.h"
#include "hydnsd/resolvers/porter.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/resolvers/session_internal.h"

#define HELLO_WITHIN_MS 5000           /* a connection that says nothing must not keep its place */
#define MESSAGES_PER_EVENT 16
#define DELIVERY_MS    2000            /* within which a porter has looked at descriptors, unless they block */
#define FDS_OUT_MAX    2
#define PAYLOAD_MAX    (HYDNS_MSG_MAX - sizeof(struct hydns_msg))

struct listener {
	struct hydnsd *daemon;
	int fd;
	char *path;
	struct hydnsd_watch *watch;
};

struct hydnsd_sessions {
	struct listener listener[HYDNSD_LIST_MAX];
	uint32_t listeners;
	struct hydnsd_session *first;
	uint32_t count;
	bool full;
	bool exhausted;                /* no descriptor is left for the next one; until the next tick */
	bool hold;                     /* others wait, for either reason */
	uint64_t last_id;
	struct hydnsd_accounts accounts;
};

/* A message as it came, with what its porter has made of the descriptors it brought, if it brought any; those handed
 * on are closed with it. */
struct message {
	struct hydns_msg head;
	uint8_t payload[PAYLOAD_MAX] __attribute__((aligned(8)));
	int fd[HYDNSD_FDS_MAX];
	unsigned fds;
	const struct hydnsd_delivery *delivery; /* NULL: it brought none */
};

static void free_dead(struct hydnsd_sessions *all)
{
	struct hydnsd_session **at = &all->first;

	while (*at) {
		struct hydnsd_session *s = *at;

		if (!s->dead) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		all->count--;
		free(s);
	}
}

struct hydnsd_session *hydnsd_session_find(struct hydnsd *d, uint64_t id)
{
	for (struct hydnsd_session *s = d->sessions->first; s; s = s->next)
		if (s->id == id && !s->dead)
			return s;
	return NULL;
}

/* -- sending ---------------------------------------------------------------------------------------------- */
static void attach_fds(struct msghdr *m, const int *fd, unsigned fds)
{
	struct cmsghdr *c;

	m->msg_controllen = CMSG_SPACE(fds * sizeof(int));
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(fds * sizeof(int));
	memcpy(CMSG_DATA(c), fd, fds * sizeof(int));
}

static bool send_message(struct hydnsd_session *s, uint32_t type, uint32_t seq, const void *payload,
			 size_t len, const int *fd, unsigned fds)
{
	struct hydns_msg head = { .type = type, .seq = seq, .len = (uint32_t)len };
	struct iovec part[] = { { &head, sizeof(head) }, { (void *)payload, len } };
	char control[CMSG_SPACE(FDS_OUT_MAX * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct msghdr m = { .msg_iov = part, .msg_iovlen = 2, .msg_control = control };

	if (fds)
		attach_fds(&m, fd, fds);
	else
		m.msg_control = NULL;
	/* Replies are few and small: a socket that has no room for one belongs to a plugin that hangs. */
	return sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool hydnsd_session_acknowledge(struct hydnsd_session *s, uint32_t seq)
{
	return send_message(s, HYDNS_MSG_ACK, seq, NULL, 0, NULL, 0);
}

static void complain(const struct hydnsd_session *s, const char *what, const char *why)
{
	hydnsd_log_client(HYDNSD_LOG_WARNING, "%s of process %d: %s", what, (int)s->pid, why);
}

static bool send_refusal(struct hydnsd_session *s, uint32_t seq, const char *why)
{
	return send_message(s, HYDNS_MSG_REFUSED, seq, why, strlen(why), NULL, 0);
}

static bool refuse(struct hydnsd_session *s, uint32_t seq, const char *why)
{
	complain(s, "refused a request", why);
	return send_refusal(s, seq, why);
}

/* -- ending ------------------------------------------------------------------------------------------------ */
/* Everything but the memory, which goes when nothing on the stack can hold it any more. */
static void bury(struct hydnsd_session *s)
{
	s->dead = true;
	hydnsd_watch_end(s->watch);
	hydnsd_watch_end(s->bell_watch);
	hydnsd_watch_end(s->porter_watch);
	hydnsd_connection_close(s->fd);
	hydnsd_porter_end(s->porter);
	if (s->doorbell >= 0)
		close(s->doorbell);
	hydnsd_rings_close(s);
	if (s->authority >= 0 && s->daemon->authority[s->authority].session == s->id)
		hydnsd_authority_leave(s->daemon, (uint32_t)s->authority);
}

void hydnsd_session_end(struct hydnsd_session *s, const char *why)
{
	if (s->dead)
		return;
	if (why) {
		complain(s, "dropped the connection", why);
		send_message(s, HYDNS_MSG_REFUSED, 0, why, strlen(why), NULL, 0);
	}
	bury(s);
}

void hydnsd_session_drop(struct hydnsd *d, uint64_t id, const char *why)
{
	struct hydnsd_session *s = hydnsd_session_find(d, id);

	if (s)
		hydnsd_session_end(s, why);
}

/* -- looking ----------------------------------------------------------------------------------------------- */
void hydnsd_session_ring_counts(struct hydnsd *d, uint64_t id, struct hydnsd_ring_counts *out)
{
	const struct hydnsd_session *s = hydnsd_session_find(d, id);

	*out = (struct hydnsd_ring_counts){ 0 };
	if (s)
		hydnsd_rings_count(s, out);
}

bool hydnsd_session_kept(struct hydnsd *d, uint64_t id, uint64_t key, struct hydns_kept *out)
{
	const struct hydnsd_session *s = hydnsd_session_find(d, id);

	return s && hydnsd_rings_kept(s, key, out);
}

/* -- HELLO ------------------------------------------------------------------------------------------------- */
static bool text_valid(const char text[HYDNS_IDENTITY_LEN])
{
	size_t len = strnlen(text, HYDNS_IDENTITY_LEN);

	if (len == HYDNS_IDENTITY_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

static const char *hello_fault(const struct message *m)
{
	const struct hydns_hello *h = (const struct hydns_hello *)m->payload;
	const uint16_t flags = HYDNS_AUTH_IGNORES_COOKIE | HYDNS_AUTH_ROTATES | HYDNS_AUTH_KEEPS_CASE |
			       HYDNS_AUTH_STRICT_EDNS | HYDNS_AUTH_OWN_PROOFS | HYDNS_AUTH_SHUFFLES;

	if (m->head.len >= sizeof(h->abi_version) && h->abi_version != HYDNS_ABI_VERSION)
		return "another ABI version: install hydnsd and the plugin from one release";
	if (m->head.len != sizeof(*h))
		return "a HELLO of another length: install hydnsd and the plugin from one release";
	if (h->threads < 1 || h->threads > HYDNS_THREADS_MAX)
		return "the number of threads is out of range: run fewer threads";
	if (h->flags & ~flags)
		return "unknown flags: install hydnsd and the plugin from one release";
	if (h->edns_size < 512 || h->max_udp < 512)
		return "a UDP size below 512 octets: correct the resolver's configuration";
	if (h->refresh_percent > 100)
		return "refresh is more than 100 percent: correct the resolver's configuration";
	if (h->max_ttl && h->max_ttl < h->min_ttl)
		return "max-ttl is below min-ttl: correct the resolver's configuration";
	if (!text_valid(h->identity) || !text_valid(h->version))
		return "identity or version is not printable text: use a plugin of this version";
	return NULL;
}

static int open_rings(struct hydnsd_session *s, const struct message *m, char *why, size_t room)
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

static int make_doorbell(struct hydnsd_session *s, char *why, size_t room)
{
	s->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->doorbell >= 0)
		s->bell_watch = hydnsd_loop_watch(s->daemon->loop, s->doorbell, EPOLLIN, bell, s);
	if (s->bell_watch)
		return 0;
	snprintf(why, room, "cannot make a doorbell: %s", strerror(errno));
	return -EMFILE;
}

/* What the program has counted for the page that the plugin held until now; before WELCOME, which brings a new one. */
static bool tell_former_counts(struct hydnsd_session *s, int page)
{
	struct hydns_counts counts;

	return !hydnsd_former_take(s->daemon, page, &counts) ||
	       send_message(s, HYDNS_MSG_COUNTS, 0, &counts, sizeof(counts), NULL, 0);
}

/* Holding the page proves it is the same resolver: its former connection is stale. */
static void drop_former(struct hydnsd_session *s, int page)
{
	uint64_t former = hydnsd_authority_session(s->daemon, page);

	if (former && former != s->id)
		hydnsd_session_drop(s->daemon, former, "the same resolver has connected anew");
}

static bool welcome(struct hydnsd_session *s, const struct message *m, char *why, size_t room)
{
	const struct hydns_hello *h = (const struct hydns_hello *)m->payload;
	struct hydns_welcome w;
	int page = m->fds > h->threads ? m->fd[h->threads] : -1, new_page, fds[FDS_OUT_MAX];
	bool sent;

	drop_former(s, page);
	s->authority = hydnsd_authority_begin(s->daemon, s->id, h, page, &w, &new_page, why, room);
	if (s->authority < 0) {
		s->authority = -1;
		return refuse(s, m->head.seq, why);
	}
	fds[0] = s->doorbell;
	fds[1] = new_page;
	sent = tell_former_counts(s, page) &&
	       send_message(s, HYDNS_MSG_WELCOME, m->head.seq, &w, sizeof(w), fds, new_page < 0 ? 1 : 2);
	if (new_page >= 0)
		close(new_page);
	return sent;
}

static bool on_hello(struct hydnsd_session *s, const struct message *m)
{
	const char *fault = s->authority >= 0 ? "a second HELLO: say RESET instead" : hello_fault(m);
	char why[HYDNS_WHY];

	if (fault)
		return refuse(s, m->head.seq, fault);
	if (open_rings(s, m, why, sizeof(why)) ||
	    (s->doorbell < 0 && make_doorbell(s, why, sizeof(why)))) {
		hydnsd_rings_close(s);
		return refuse(s, m->head.seq, why);
	}
	if (!welcome(s, m, why, sizeof(why)))
		return false;
	if (s->authority < 0)
		hydnsd_rings_close(s);
	return true;
}

/* -- configuration ------------------------------------------------------------------------------------------- */
/* Resolvers whose processes have ended hold no place. */
static void release_ended(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *socket)
{
	int k;

	while ((k = hydnsd_services_holder(d, i, socket)) >= 0 && hydnsd_authority_ended(d, (uint32_t)k)) {
		hydnsd_session_drop(d, d->authority[k].session, NULL); /* and so it is released, if it has one */
		if (d->authority[k].state != HYDNSD_AUTHORITY_CLOSING)
			hydnsd_authority_release(d, (uint32_t)k, "its process has ended");
	}
}

static bool on_service(struct hydnsd_session *s, const struct message *m)
{
	uint32_t i = (uint32_t)s->authority;
	char why[HYDNS_WHY];
	bool news;
	int rc;

	if (!m->delivery)
		return refuse(s, m->head.seq, "a SERVICE without exactly one socket");
	rc = m->delivery->rc;
	if (rc) {
		memcpy(why, m->delivery->why, sizeof(why));
		news = hydnsd_services_refused(s->daemon, i, &m->delivery->socket, why);
	} else {
		release_ended(s->daemon, i, &m->delivery->socket);
		rc = hydnsd_services_add(s->daemon, i, &m->delivery->socket, why, sizeof(why), &news);
	}
	if (rc) {
		/* The plugin tries again and again: one line is enough. */
		if (news)
			complain(s, "refused a listening address", why);
		return send_refusal(s, m->head.seq, why);
	}
	if (news)
		hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %d has a listening address that was refused before", s->authority);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

static bool on_acl(struct hydnsd_session *s, const struct message *m)
{
	const struct hydns_acl_list *l = (const struct hydns_acl_list *)m->payload;
	char why[HYDNS_WHY];

	if (m->head.len < sizeof(*l) || l->count > PAYLOAD_MAX / sizeof(l->entry[0]) ||
	    m->head.len != sizeof(*l) + l->count * sizeof(l->entry[0]))
		return refuse(s, m->head.seq, "an ACL whose count does not fit its length");
	if (hydnsd_authority_add_acl(s->daemon, (uint32_t)s->authority, l->entry, l->count, why,
				     sizeof(why)))
		return refuse(s, m->head.seq, why);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

static void watch_again(struct hydnsd_session *s);

/* One more of its requests is answered later. */
static void add_pending(struct hydnsd_session *s)
{
	s->pending++;
	s->daemon->reached.plugin_requests += s->pending >= s->daemon->options.plugin_requests;
}

/* One of its requests has come to its end, and is answered. */
static void settle_pending(struct hydnsd_session *s, bool answered)
{
	s->pending--;
	if (!answered)
		hydnsd_session_end(s, "it does not read its replies");
	watch_again(s);
}

static void cookies_done(struct hydnsd *d, uint64_t client, uint32_t seq, int error)
{
	struct hydnsd_session *s = hydnsd_session_find(d, client);

	if (s)
		settle_pending(s, error ? refuse(s, seq, "the cookie secrets could not be written") : hydnsd_session_acknowledge(s, seq));
}

static bool on_cookies(struct hydnsd_session *s, const struct message *m)
{
	const struct hydns_cookies *c = (const struct hydns_cookies *)m->payload;
	const char *fault = NULL;

	if (m->head.len != sizeof(*c))
		fault = "COOKIES of another length: install hydnsd and the plugin from one release";
	else if (!c->set || c->count > HYDNS_COOKIE_SECRETS)
		fault = "COOKIES without a number, or with too many secrets";
	if (fault)
		return refuse(s, m->head.seq, fault);
	add_pending(s);                /* before, for it may be done at once */
	if (!hydnsd_cookies_set(s->daemon, (uint32_t)s->authority, c, cookies_done, s->id, m->head.seq))
		return true;
	s->pending--;
	return refuse(s, m->head.seq, "the cookie secrets could not be written");
}

static bool on_reset(struct hydnsd_session *s, const struct message *m)
{
	const struct hydns_hello *h = (const struct hydns_hello *)m->payload;
	const char *fault = hello_fault(m);

	if (!fault && h->threads != s->rings)
		fault = "another number of threads: connect anew";
	if (fault)
		return refuse(s, m->head.seq, fault);
	hydnsd_authority_reset(s->daemon, (uint32_t)s->authority, h);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

static bool on_note(struct hydnsd_session *s, const struct message *m)
{
	const struct hydns_note *n = (const struct hydns_note *)m->payload;
	int rc;

	if (m->head.len < sizeof(*n) || n->kind >= HYDNS_NOTES)
		return refuse(s, m->head.seq, "a note of unknown kind: install hydnsd and the plugin from one release");
	rc = hydnsd_authority_add_note(s->daemon, (uint32_t)s->authority, n, m->head.len - sizeof(*n));
	return rc ? refuse(s, m->head.seq, "too many notes") : hydnsd_session_acknowledge(s, m->head.seq);
}

static bool on_ready(struct hydnsd_session *s, const struct message *m)
{
	char why[HYDNS_WHY];

	if (s->daemon->authority[s->authority].state != HYDNSD_AUTHORITY_CONFIGURING)
		return refuse(s, m->head.seq, "READY without a configuration: say RESET before it");
	if (hydnsd_authority_ready(s->daemon, (uint32_t)s->authority, why, sizeof(why)))
		return refuse(s, m->head.seq, why);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

/* -- service ---------------------------------------------------------------------------------------------------- */
static void withdrawn(struct hydnsd *d, uint64_t client, uint32_t seq, uint32_t rules)
{
	struct hydnsd_session *s = hydnsd_session_find(d, client);

	(void)rules;
	if (s)
		settle_pending(s, hydnsd_session_acknowledge(s, seq));
}

static const char *withdraw_fault(const struct message *m)
{
	const struct hydns_withdraw *w = (const struct hydns_withdraw *)m->payload;

	if (m->head.len != sizeof(*w))
		return "a WITHDRAW of another length";
	if (w->scope != HYDNS_SCOPE_NAME && w->scope != HYDNS_SCOPE_SUBTREE && w->scope != HYDNS_SCOPE_ALL)
		return "a WITHDRAW of unknown scope";
	if (w->scope != HYDNS_SCOPE_ALL && !hydnsd_name_valid(w->name, w->name_len))
		return "a WITHDRAW whose name is malformed or not in lower case";
	return NULL;
}

static bool on_withdraw(struct hydnsd_session *s, const struct message *m)
{
	const struct hydns_withdraw *w = (const struct hydns_withdraw *)m->payload;
	struct hydnsd_authority *a = &s->daemon->authority[s->authority];
	const struct hydnsd_job_end end = {
		.done = withdrawn, .client = s->id, .tag = m->head.seq, .grace = true,
	};
	struct hydnsd_withdrawal job = { .authority = (uint32_t)s->authority };
	const char *fault = withdraw_fault(m);

	if (fault)
		return refuse(s, m->head.seq, fault);
	if (w->generation > a->min_generation)
		a->min_generation = w->generation;
	job.scope = w->scope;
	if (w->scope != HYDNS_SCOPE_ALL) {
		job.name_len = (uint8_t)w->name_len;
		memcpy(job.name, w->name, w->name_len);
	}
	if (hydnsd_jobs_withdraw(s->daemon, &job, &end))
		return refuse(s, m->head.seq, "out of memory");
	add_pending(s);                /* it ends after a grace period at the earliest */
	return true;
}

static bool on_settle(struct hydnsd_session *s, const struct message *m)
{
	return hydnsd_settle_begin(s, m->head.seq) ? true : refuse(s, m->head.seq, "a SETTLE before the last is done");
}

static bool on_stats(struct hydnsd_session *s, const struct message *m)
{
	struct hydns_counts counts;

	hydnsd_authority_counts(s->daemon, (uint32_t)s->authority, &counts);
	return send_message(s, HYDNS_MSG_COUNTS, m->head.seq, &counts, sizeof(counts), NULL, 0);
}

static bool on_bye(struct hydnsd_session *s, const struct message *m)
{
	uint32_t i = (uint32_t)s->authority;
	bool sent = hydnsd_session_acknowledge(s, m->head.seq);

	s->authority = -1;
	s->since_ms = hydnsd_now_ms();  /* the next HELLO has as long as the first */
	hydnsd_rings_close(s);
	hydnsd_authority_release(s->daemon, i, "it said goodbye");
	return sent;
}

/* False: the connection is to be dropped. */
static bool dispatch(struct hydnsd_session *s, const struct message *m)
{
	static bool (*const handlers[])(struct hydnsd_session *, const struct message *) = {
		[HYDNS_MSG_HELLO] = on_hello, [HYDNS_MSG_SERVICE] = on_service,
		[HYDNS_MSG_ACL] = on_acl, [HYDNS_MSG_RESET] = on_reset, [HYDNS_MSG_READY] = on_ready,
		[HYDNS_MSG_WITHDRAW] = on_withdraw, [HYDNS_MSG_STATS] = on_stats,
		[HYDNS_MSG_NOTE] = on_note, [HYDNS_MSG_BYE] = on_bye,
		[HYDNS_MSG_COOKIES] = on_cookies, [HYDNS_MSG_SETTLE] = on_settle,
	};
	uint32_t type = m->head.type;

	if (type >= sizeof(handlers) / sizeof(handlers[0]) || !handlers[type])
		return refuse(s, m->head.seq, "a message of unknown type: install hydnsd and the plugin from "
			      "one release");
	if (type != HYDNS_MSG_HELLO && s->authority < 0)
		return refuse(s, m->head.seq, "the first message must be HELLO");
	if (m->delivery && m->delivery->rc && type != HYDNS_MSG_SERVICE)
		return refuse(s, m->head.seq, m->delivery->why);
	return handlers[type](s, m);
}

/* -- receiving --------------------------------------------------------------------------------------------------- */
static void close_fds(struct message *m)
{
	while (m->fds)
		close(m->fd[--m->fds]);
}

/* True while its next message has to wait. */
static bool held(const struct hydnsd_session *s)
{
	return s->asked_ms || s->pending >= s->daemon->options.plugin_requests || s->rest_until_ms;
}

/* While it is held only the end of the connection is looked for, which the loop tells anyhow. */
static void watch_again(struct hydnsd_session *s)
{
	bool hold = held(s);

	if (!s->dead && s->on_hold != hold)
		hydnsd_watch_change(s->watch, hold ? 0 : EPOLLIN);
	s->on_hold = hold;
}

/* What the message asks for is done; then it is forgotten. */
static void handle(struct hydnsd_session *s, struct message *m)
{
	bool good = dispatch(s, m);

	close_fds(m);
	explicit_bzero(m->payload, m->head.len); /* secrets, perhaps */
	if (!good)
		hydnsd_session_end(s, "it does not read its replies");
}

static bool length_wrong(const struct message *m, ssize_t n)
{
	return n < (ssize_t)sizeof(m->head) || m->head.len != (size_t)n - sizeof(m->head);
}

static void drop_broken(struct hydnsd_session *s)
{
	s->daemon->sessions_dropped++;
	hydnsd_session_end(s, "a message whose length is wrong");
}

/* 1 a message, 0 none now, -1 the end of the connection or a broken message. */
static int receive(struct hydnsd_session *s, struct message *m)
{
	struct iovec part[] = { { &m->head, sizeof(m->head) }, { m->payload, sizeof(m->payload) } };
	struct msghdr h = { .msg_iov = part, .msg_iovlen = 2 };
	ssize_t n = recvmsg(s->fd, &h, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	m->fds = 0;
	m->delivery = NULL;
	if (n == 0)
		return -1;
	if (h.msg_flags & MSG_TRUNC || length_wrong(m, n)) {
		drop_broken(s);
		return -1;
	}
	return 1;
}

static void delivered(void *arg, uint32_t events)
{
	static struct hydnsd_delivery d; /* large; one thread */
	static struct message m;
	struct hydnsd_session *s = arg;
	int fds = hydnsd_porter_receive(s->porter, &d, m.fd);

	(void)events;
	if (fds == -EAGAIN)
		return;
	if (fds < 0) {
		hydnsd_session_end(s, "the process that takes its descriptors has ended");
		return;
	}
	m.fds = (unsigned)fds;
	m.delivery = &d;
	s->asked_ms = 0;
	if (d.len <= sizeof(m.head) + sizeof(m.payload)) {
		memcpy(&m.head, d.message, sizeof(m.head));
		memcpy(m.payload, d.message + sizeof(m.head), sizeof(m.payload));
	}
	if (d.rc == -EPROTO || length_wrong(&m, (ssize_t)d.len)) {
		close_fds(&m);
		drop_broken(s);
		return;
	}
	handle(s, &m);
	watch_again(s);
}

/* The next message brings descriptors: the porter takes it. */
static bool ask_porter(struct hydnsd_session *s)
{
	if (!s->porter) {
		s->porter = hydnsd_porter_new(s->fd);
		if (s->porter)
			s->porter_watch = hydnsd_loop_watch(s->daemon->loop, hydnsd_porter_fd(s->porter), EPOLLIN, delivered, s);
	}
	s->asked_ms = hydnsd_now_ms();
	return s->porter_watch && hydnsd_porter_ask(s->porter);
}

/* Those that walk all rules, fill maps, start a process, or write lines. */
static bool dear(const struct hydnsd_session *s, uint32_t type, bool has_fds)
{
	switch (type) {
	case HYDNS_MSG_WITHDRAW:
	case HYDNS_MSG_ACL:
	case HYDNS_MSG_NOTE:
		return has_fds;
	case HYDNS_MSG_SERVICE:
		return s->authority < 0;
	default:
		return true;
	}
}

/* True when the session's user has had too many of these of late: it rests. */
static bool must_rest(struct hydnsd_session *s)
{
	const struct hydnsd_options *o = &s->daemon->options;
	uint64_t now = hydnsd_now_ns(), wait_ms;

	wait_ms = (hydnsd_accounts_take(&s->daemon->sessions->accounts, s->uid, o->plugin_burst,
					hydnsd_tokens_each_ns(o->plugin_rate), now) + HYDNSD_NS_PER_MS - 1) / HYDNSD_NS_PER_MS;
	if (!wait_ms)
		return false;
	s->daemon->reached.plugin_rate++;
	s->rest_until_ms = now / HYDNSD_NS_PER_MS + wait_ms;
	s->since_ms += wait_ms;        /* its HELLO may be what waits */
	return true;
}

/* Ends a rest that is over; how long one has still to last, in ms, or -1. */
static int rest_left(struct hydnsd_session *s)
{
	uint64_t now = hydnsd_now_ms();

	if (!s->rest_until_ms)
		return -1;
	if (s->rest_until_ms > now)
		return (int)(s->rest_until_ms - now);
	s->rest_until_ms = 0;
	watch_again(s);
	return 0;
}

/* One that is dear is the last of its turn. */
static void read_messages(struct hydnsd_session *s)
{
	static struct message m;       /* large; one thread */
	bool last = false;

	for (int n = 0; n < MESSAGES_PER_EVENT && !last && !s->dead && !held(s); n++) {
		bool has_fds;
		uint32_t type;
		int got;

		if (hydnsd_connection_peek(s->fd, &type, &has_fds)) {
			last = dear(s, type, has_fds);
			if (last && must_rest(s))
				return;
		} else {
			has_fds = false;
		}
		if (has_fds) {
			if (!ask_porter(s))
				hydnsd_session_end(s, "no process can be started that takes its descriptors: try again");
			return;
		}
		got = receive(s, &m);
		if (got == 0)
			return;
		if (got < 0) {
			hydnsd_session_end(s, NULL);
			return;
		}
		handle(s, &m);
	}
}

static void readable(void *arg, uint32_t events)
{
	struct hydnsd_session *s = arg;

	if (held(s) && events & (EPOLLHUP | EPOLLERR)) {
		hydnsd_session_end(s, NULL);
		return;
	}
	read_messages(s);
	watch_again(s);
}

/* -- connecting --------------------------------------------------------------------------------------------------- */

static unsigned sessions_of(const struct hydnsd_sessions *all, uid_t uid)
{
	unsigned n = 0;

	for (const struct hydnsd_session *s = all->first; s; s = s->next)
		n += s->uid == uid;
	return n;
}

static void add_session(struct hydnsd *d, int fd)
{
	struct hydnsd_sessions *all = d->sessions;
	struct hydnsd_session *s = calloc(1, sizeof(*s));
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (!s || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
		free(s);
		hydnsd_connection_close(fd);
		return;
	}
	if (sessions_of(all, peer.uid) >= d->options.plugin_connections_per_user) {
		d->reached.plugin_connections_per_user++;
		hydnsd_log_client(HYDNSD_LOG_WARNING, "refused a connection of process %d: user %u has %u already: stop "
				  "some of its resolvers, or raise plugin-connections-per-user", (int)peer.pid, peer.uid,
				  d->options.plugin_connections_per_user);
		free(s);
		hydnsd_connection_close(fd);
		return;
	}
	*s = (struct hydnsd_session){
		.daemon = d, .id = ++all->last_id, .fd = fd, .doorbell = -1, .authority = -1,
		.uid = peer.uid, .pid = peer.pid, .since_ms = hydnsd_now_ms(), .next = all->first,
	};
	s->watch = hydnsd_loop_watch(d->loop, fd, EPOLLIN, readable, s);
	if (!s->watch) {
		free(s);
		hydnsd_connection_close(fd);
		return;
	}
	all->first = s;
	all->count++;
}

/* Those for which there is no place, or no descriptor, wait to be accepted. */
static void watch_listeners(struct hydnsd *d)
{
	struct hydnsd_sessions *all = d->sessions;
	bool full = all->count + hydnsd_porters_leaving() >= d->options.plugin_connections, hold = full || all->exhausted;

	for (uint32_t i = 0; i < all->listeners && hold != all->hold; i++)
		hydnsd_watch_change(all->listener[i].watch, hold ? 0 : EPOLLIN);
	if (full && !all->full) {
		d->reached.plugin_connections++;
		hydnsd_log_client(HYDNSD_LOG_WARNING, "%u plugins are connected, as many as plugin-connections allows: "
				  "others wait until one leaves", all->count);
	}
	all->hold = hold;
	all->full = full;
}

static void acceptable(void *arg, uint32_t events)
{
	struct listener *l = arg;
	int fd = hydnsd_socket_accept(l->fd, &l->daemon->sessions->exhausted);

	(void)events;
	if (fd >= 0)
		add_session(l->daemon, fd);
	else if (l->daemon->sessions->exhausted)
		hydnsd_log_client(HYDNSD_LOG_WARNING, "cannot accept a connection of a plugin: %s: raise LimitNOFILE of hydnsd, or "
				  "lower plugin-connections", strerror(errno));
	watch_listeners(l->daemon);
}

static void drop_silent(void *arg)
{
	struct hydnsd *d = arg;
	uint64_t now = hydnsd_now_ms();

	hydnsd_porters_tick();
	d->sessions->exhausted = false;
	watch_listeners(d);
	for (struct hydnsd_session *s = d->sessions->first; s; s = s->next) {
		if (!s->dead && s->authority < 0 && now > s->since_ms + HELLO_WITHIN_MS)
			hydnsd_session_end(s, "no HELLO");
		if (!s->dead && s->asked_ms && now - s->asked_ms > DELIVERY_MS)
			hydnsd_session_end(s, "its descriptors block whoever takes them");
	}
}

static int add_listener(struct hydnsd *d, const char *path, char *why, size_t room)
{
	struct listener *l = &d->sessions->listener[d->sessions->listeners];
	int fd = hydnsd_socket_listen(path, SOCK_SEQPACKET, d->options.plugin_group, why, room);

	if (fd < 0)
		return fd;
	d->sessions->listeners++;
	*l = (struct listener){ .daemon = d, .fd = fd, .path = strdup(path) };
	l->watch = hydnsd_loop_watch(d->loop, fd, EPOLLIN, acceptable, l);
	if (l->watch && l->path)
		return 0;
	snprintf(why, room, "out of memory");
	return -ENOMEM;
}

int hydnsd_sessions_start(struct hydnsd *d, char *why, size_t room)
{
	const struct hydnsd_list *paths = &d->options.plugin_socket;

	d->sessions = calloc(1, sizeof(*d->sessions));
	if (!d->sessions) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < paths->count; i++) {
		int rc = add_listener(d, paths->item[i], why, room);

		if (rc)
			return rc;
	}
	return hydnsd_loop_every(d->loop, HELLO_WITHIN_MS / 5, drop_silent, d);
}

/* The resolvers' own statistics would lack what they have not asked for. */
static void tell_last_counts(struct hydnsd_session *s)
{
	struct hydns_counts counts;

	if (s->dead || s->authority < 0)
		return;
	hydnsd_authority_counts(s->daemon, (uint32_t)s->authority, &counts);
	send_message(s, HYDNS_MSG_COUNTS, 0, &counts, sizeof(counts), NULL, 0);
}

uint32_t hydnsd_sessions_count(const struct hydnsd *d)
{
	return d->sessions->count;
}

void hydnsd_sessions_stop(struct hydnsd *d)
{
	struct hydnsd_sessions *all = d->sessions;

	if (!all)
		return;
	for (struct hydnsd_session *s = all->first; s; s = s->next) {
		tell_last_counts(s);
		hydnsd_session_end(s, NULL);
	}
	free_dead(all);
	for (uint32_t i = 0; i < all->listeners; i++) {
		hydnsd_watch_end(all->listener[i].watch);
		/* What waits to be accepted there is closed when this process ends, which does not linger. */
		unlink(all->listener[i].path);
		free(all->listener[i].path);
	}
	free(all);
	d->sessions = NULL;
}

int hydnsd_sessions_turn(struct hydnsd *d)
{
	int wait = -1;

	free_dead(d->sessions);
	for (struct hydnsd_session *s = d->sessions->first; s; s = s->next)
		if (!s->dead) {
			wait = hydnsd_sooner(wait, rest_left(s));
			wait = hydnsd_sooner(wait, hydnsd_intake_turn(s));
		}
	return wait;
}
