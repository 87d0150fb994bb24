/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/requests.h"

#include <string.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/forwarding/forwarding.h"
#include "hydnsd/guard/guard.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/resolvers/access_list.h"
#include "hydnsd/resolvers/catch_up.h"
#include "hydnsd/resolvers/configuration.h"
#include "hydnsd/resolvers/cookies.h"
#include "hydnsd/resolvers/counts.h"
#include "hydnsd/resolvers/hello.h"
#include "hydnsd/resolvers/hold.h"
#include "hydnsd/resolvers/lane_requests.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/preload.h"
#include "hydnsd/resolvers/registration.h"
#include "hydnsd/resolvers/rings.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/resolvers/session_internal.h"
#include "hydnsd/resolvers/strays.h"
#include "hydnsd/resolvers/withdrawals.h"
#include "hydnsd/rules/signature.h"

/* -- configuration ------------------------------------------------------------------------------------- */
/* A resolver whose process has ended must not hold an address and port. */
static void release_ended(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *socket)
{
	int k;

	while ((k = hydnsd_services_holder(d, i, socket)) >= 0 && hydnsd_resolver_ended(d, (uint32_t)k)) {
		hydnsd_session_drop(d, d->resolver[k].session, NULL); /* which releases it, if it has a session */
		if (d->resolver[k].state != HYDNSD_RESOLVER_CLOSING)
			hydnsd_resolver_release(d, (uint32_t)k, "its process has ended");
	}
}

static bool on_service(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	uint32_t i = (uint32_t)s->resolver;
	char why[HYDNS_WHY];
	bool news;
	int rc;

	if (!m->delivery)
		return hydnsd_session_refuse(s, m->head.seq, "a SERVICE without exactly one socket");
	rc = m->delivery->rc;
	if (rc) {
		memcpy(why, m->delivery->why, sizeof(why));
		news = hydnsd_services_refused(s->daemon, i, &m->delivery->socket, why);
	} else {
		release_ended(s->daemon, i, &m->delivery->socket);
		rc = hydnsd_services_add(s->daemon, i, &m->delivery->socket, why, sizeof(why), &news);
	}
	if (rc) {
		/* One line is enough: the plugin tries again and again. */
		if (news)
			hydnsd_session_complain(s, "refused a listening address", why);
		return hydnsd_session_send_refusal(s, m->head.seq, why);
	}
	if (news)
		hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %d has a listening address that was refused before", s->resolver);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

static bool on_acl(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_acl_list *l = (const struct hydns_acl_list *)m->payload;
	char why[HYDNS_WHY];

	if (m->head.len < sizeof(*l) || l->count > HYDNSD_PAYLOAD_MAX / sizeof(l->entry[0]) ||
	    m->head.len != sizeof(*l) + l->count * sizeof(l->entry[0]))
		return hydnsd_session_refuse(s, m->head.seq, "an ACL whose count does not fit its length");
	if (hydnsd_access_list_add(s->daemon, (uint32_t)s->resolver, l->entry, l->count, why, sizeof(why)))
		return hydnsd_session_refuse(s, m->head.seq, why);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

static void cookies_done(struct hydnsd *d, uint64_t client, uint32_t seq, int error)
{
	struct hydnsd_session *s = hydnsd_session_find(d, client);

	if (s)
		hydnsd_hold_end_pending(s, error ? hydnsd_session_refuse(s, seq, "the cookie secrets could not be written") :
					   hydnsd_session_acknowledge(s, seq));
}

static bool on_cookies(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_cookies *c = (const struct hydns_cookies *)m->payload;
	const char *fault = NULL;

	if (m->head.len != sizeof(*c))
		fault = "COOKIES of another length: install hydnsd and the plugin from one release";
	else if (!c->set || c->count > HYDNS_COOKIE_SECRETS)
		fault = "COOKIES without a number, or with too many secrets";
	if (fault)
		return hydnsd_session_refuse(s, m->head.seq, fault);
	hydnsd_hold_add_pending(s);    /* first: cookies_done() may come before hydnsd_cookies_set() returns */
	if (!hydnsd_cookies_set(s->daemon, (uint32_t)s->resolver, c, cookies_done, s->id, m->head.seq))
		return true;
	s->pending--;
	return hydnsd_session_refuse(s, m->head.seq, "the cookie secrets could not be written");
}

static bool on_note(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_note *n = (const struct hydns_note *)m->payload;
	int rc;

	if (m->head.len < sizeof(*n) || n->kind >= HYDNS_NOTES)
		return hydnsd_session_refuse(s, m->head.seq, "a note of unknown kind: install hydnsd and the plugin from "
					     "one release");
	rc = hydnsd_configuration_add_note(s->daemon, (uint32_t)s->resolver, n, m->head.len - sizeof(*n));
	return rc ? hydnsd_session_refuse(s, m->head.seq, "too many notes") : hydnsd_session_acknowledge(s, m->head.seq);
}

static bool on_ready(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	char why[HYDNS_WHY];

	if (s->daemon->resolver[s->resolver].state != HYDNSD_RESOLVER_CONFIGURING)
		return hydnsd_session_refuse(s, m->head.seq, "READY without a configuration: say RESET before it");
	if (hydnsd_resolver_ready(s->daemon, (uint32_t)s->resolver, why, sizeof(why)))
		return hydnsd_session_refuse(s, m->head.seq, why);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

static bool on_forwards(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	char why[HYDNS_WHY];

	if (s->daemon->resolver[s->resolver].state != HYDNSD_RESOLVER_READY)
		return hydnsd_session_refuse(s, m->head.seq, "FORWARDS before READY");
	if (!hydnsd_forwarding_message(s->daemon, (uint32_t)s->resolver, m->payload, m->head.len, why, sizeof(why)))
		return hydnsd_session_refuse(s, m->head.seq, why);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

/* Sends the resolver its map, whose descriptor is closed. */
static bool send_map(struct hydnsd_session *s, uint32_t type, uint32_t seq, int fd)
{
	bool sent = hydnsd_session_send(s, type, seq, NULL, 0, &fd, 1);

	close(fd);
	return sent;
}

static bool on_log(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_log_request *q = (const struct hydns_log_request *)m->payload;
	struct hydnsd_resolver *r = &s->daemon->resolver[s->resolver];
	char why[HYDNS_WHY];
	int ring;

	if (m->head.len != sizeof(*q))
		return hydnsd_session_refuse(s, m->head.seq, "a LOG of another length: install hydnsd and the plugin from one release");
	if (r->state != HYDNSD_RESOLVER_CONFIGURING || r->has_log_ring)
		return hydnsd_session_refuse(s, m->head.seq, "LOG after READY, or a second one");
	if (hydns_kern_log_ring_new(s->daemon->kern, (uint32_t)s->resolver, q->octets, &ring, why))
		return hydnsd_session_refuse(s, m->head.seq, why);
	r->has_log_ring = true;
	return send_map(s, HYDNS_MSG_LOG_RING, m->head.seq, ring);
}

static bool on_limits(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	struct hydnsd_resolver *r = &s->daemon->resolver[s->resolver];
	char why[HYDNS_WHY];
	int map;

	if (m->head.len || r->state != HYDNSD_RESOLVER_CONFIGURING || r->has_budgets)
		return hydnsd_session_refuse(s, m->head.seq, "LIMITS with a payload, after READY, or a second one");
	if (hydns_kern_budgets_new(s->daemon->kern, (uint32_t)s->resolver, &map, why))
		return hydnsd_session_refuse(s, m->head.seq, why);
	r->has_budgets = true;
	return send_map(s, HYDNS_MSG_BUDGETS, m->head.seq, map);
}

static bool on_names(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_names_request *q = (const struct hydns_names_request *)m->payload;
	char why[HYDNS_WHY];
	int map;

	if (m->head.len != sizeof(*q))
		return hydnsd_session_refuse(s, m->head.seq, "a NAMES of another length: install hydnsd and the plugin from one release");
	if (s->daemon->resolver[s->resolver].state != HYDNSD_RESOLVER_READY)
		return hydnsd_session_refuse(s, m->head.seq, "NAMES before READY");
	if (q->buckets > hydns_names_buckets(s->daemon->options.capacity)) /* kernel memory that a plugin asks for */
		return hydnsd_session_refuse(s, m->head.seq, "NAMES for more names than hydnsd may have rules: raise its capacity");
	if (hydns_kern_names_new(s->daemon->kern, (uint32_t)s->resolver, q, &map, why))
		return hydnsd_session_refuse(s, m->head.seq, why);
	return send_map(s, HYDNS_MSG_NAME_SET, m->head.seq, map);
}

static bool on_guard(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_guard_report *g = (const struct hydns_guard_report *)m->payload;

	if (m->head.len != sizeof(*g) || !hydnsd_name_valid(g->suffix, g->len))
		return hydnsd_session_refuse(s, m->head.seq, "a GUARD of another length, or whose name is malformed or not in lower case");
	if (s->daemon->resolver[s->resolver].state != HYDNSD_RESOLVER_READY)
		return hydnsd_session_refuse(s, m->head.seq, "GUARD before READY");
	hydnsd_guard_report(s->daemon, (uint32_t)s->resolver, g);
	return hydnsd_session_acknowledge(s, m->head.seq);
}

/* -- service ------------------------------------------------------------------------------------------- */
static void withdrawn(struct hydnsd *d, uint64_t client, uint32_t seq, uint32_t rules)
{
	struct hydnsd_session *s = hydnsd_session_find(d, client);

	(void)rules;
	if (s)
		hydnsd_hold_end_pending(s, hydnsd_session_acknowledge(s, seq));
}

static const char *withdraw_fault(const struct hydnsd_request *m)
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

static bool on_withdraw(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_withdraw *w = (const struct hydns_withdraw *)m->payload;
	struct hydnsd_resolver *r = &s->daemon->resolver[s->resolver];
	const struct hydnsd_withdrawal_end end = {
		.done = withdrawn, .client = s->id, .tag = m->head.seq, .grace = true,
	};
	struct hydnsd_withdrawal withdrawal = { .resolver = (uint32_t)s->resolver };
	const char *fault = withdraw_fault(m);

	if (fault)
		return hydnsd_session_refuse(s, m->head.seq, fault);
	if (w->generation > r->min_generation)
		r->min_generation = w->generation;
	withdrawal.scope = w->scope;
	if (w->scope != HYDNS_SCOPE_ALL) {
		withdrawal.name_len = (uint8_t)w->name_len;
		memcpy(withdrawal.name, w->name, w->name_len);
	}
	if (hydnsd_withdrawals_begin(s->daemon, &withdrawal, 1, &end))
		return hydnsd_session_refuse(s, m->head.seq, "out of memory");
	hydnsd_hold_add_pending(s);    /* withdrawn() comes after a grace period, so never before */
	return true;
}

/* Reads the entry at *at, and moves *at behind it. False: malformed. */
static bool read_entry(const uint8_t **at, const uint8_t *end, struct hydnsd_withdrawal *out)
{
	const uint8_t *entry = *at, *name = entry + 1;
	size_t len = 0;

	if (entry == end || (entry[0] != HYDNS_SCOPE_NAME && entry[0] != HYDNS_SCOPE_SUBTREE))
		return false;
	while (name + len < end && name[len])
		len += 1U + name[len];
	if (name + len >= end || !hydnsd_name_valid(name, (uint32_t)len + 1))
		return false;
	out->scope = entry[0];
	out->name_len = (uint8_t)(len + 1);
	memcpy(out->name, name, len + 1);
	*at = name + len + 1;
	return true;
}

/* How many; -1: malformed. */
static int read_names(const struct hydnsd_request *m, uint32_t resolver, struct hydnsd_withdrawal *out)
{
	const struct hydns_withdraw_names *w = (const struct hydns_withdraw_names *)m->payload;
	const uint8_t *at = w->entry, *end = m->payload + m->head.len;

	if (m->head.len < sizeof(*w) || !w->count || w->count > HYDNS_WITHDRAW_NAMES_MOST)
		return -1;
	for (uint32_t i = 0; i < w->count; i++) {
		out[i] = (struct hydnsd_withdrawal){ .resolver = resolver };
		if (!read_entry(&at, end, &out[i]))
			return -1;
	}
	return at == end ? (int)w->count : -1;
}

/* Of the offers that it concerns, as hydnsd_changed_names_record() takes them. A subtree's are those of any name. */
static uint64_t bits_of(const struct hydnsd *d, const struct hydnsd_withdrawal *w)
{
	return w->scope == HYDNS_SCOPE_NAME ? hydnsd_signature_of(w->name, w->name_len, hydnsd_rules_seed(d->rules)) : 0;
}

static bool on_withdraw_names(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	static struct hydnsd_withdrawal withdrawals[HYDNS_WITHDRAW_NAMES_MOST]; /* large; one thread */
	const struct hydnsd_withdrawal_end end = {
		.done = withdrawn, .client = s->id, .tag = m->head.seq, .grace = true,
	};
	struct hydnsd_resolver *r = &s->daemon->resolver[s->resolver];
	int n = read_names(m, (uint32_t)s->resolver, withdrawals);
	uint64_t generation;

	if (n < 0)
		return hydnsd_session_refuse(s, m->head.seq, "a WITHDRAW_NAMES that is malformed, or has a name that is");
	generation = ((const struct hydns_withdraw_names *)m->payload)->generation;
	for (int i = 0; i < n; i++)
		hydnsd_changed_names_record(&r->changed_names, generation, bits_of(s->daemon, &withdrawals[i]));
	if (hydnsd_withdrawals_begin(s->daemon, withdrawals, (size_t)n, &end))
		return hydnsd_session_refuse(s, m->head.seq, "out of memory");
	hydnsd_hold_add_pending(s);    /* as above */
	return true;
}

static bool on_catch_up(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	return hydnsd_catch_up_begin(s, m->head.seq) ? true :
	       hydnsd_session_refuse(s, m->head.seq, "a CATCH_UP before the last is done");
}

static bool on_preload(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	return hydnsd_preload_begin(s, m->head.seq) ? true : hydnsd_session_refuse(s, m->head.seq, "a PRELOAD before the last is done");
}

static bool on_stats(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	struct hydns_counts counts;

	hydnsd_resolver_counts(s->daemon, (uint32_t)s->resolver, &counts);
	return hydnsd_session_send(s, HYDNS_MSG_COUNTS, m->head.seq, &counts, sizeof(counts), NULL, 0);
}

static bool on_bye(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	uint32_t i = (uint32_t)s->resolver;
	bool sent = hydnsd_session_acknowledge(s, m->head.seq);

	s->resolver = -1;
	s->queue_parts = 0;
	s->since_ms = hydnsd_now_ms();  /* the next HELLO has as long as the first */
	hydnsd_rings_close(s);
	hydnsd_parking_hold(s->daemon, i, s->daemon->resolver[i].hello.pid);
	hydnsd_resolver_release(s->daemon, i, "it said goodbye");
	return sent;
}

bool hydnsd_request_handle(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	static bool (*const handlers[])(struct hydnsd_session *, const struct hydnsd_request *) = {
		[HYDNS_MSG_HELLO] = hydnsd_hello, [HYDNS_MSG_SERVICE] = on_service,
		[HYDNS_MSG_ACL] = on_acl, [HYDNS_MSG_RESET] = hydnsd_hello_reset, [HYDNS_MSG_READY] = on_ready,
		[HYDNS_MSG_WITHDRAW] = on_withdraw, [HYDNS_MSG_WITHDRAW_NAMES] = on_withdraw_names,
		[HYDNS_MSG_STATS] = on_stats,
		[HYDNS_MSG_NOTE] = on_note, [HYDNS_MSG_BYE] = on_bye,
		[HYDNS_MSG_COOKIES] = on_cookies, [HYDNS_MSG_CATCH_UP] = on_catch_up,
		[HYDNS_MSG_QUEUE] = hydnsd_lane_requests_queue, [HYDNS_MSG_LANE] = hydnsd_lane_requests_lane,
		[HYDNS_MSG_OPEN] = hydnsd_lane_requests_open, [HYDNS_MSG_CLOSE] = hydnsd_lane_requests_close,
		[HYDNS_MSG_STRAYS] = hydnsd_strays_request, [HYDNS_MSG_FORWARDS] = on_forwards,
		[HYDNS_MSG_LOG] = on_log, [HYDNS_MSG_LIMITS] = on_limits, [HYDNS_MSG_GUARD] = on_guard,
		[HYDNS_MSG_PRELOAD] = on_preload, [HYDNS_MSG_NAMES] = on_names,
	};
	uint32_t type = m->head.type;

	if (type >= sizeof(handlers) / sizeof(handlers[0]) || !handlers[type])
		return hydnsd_session_refuse(s, m->head.seq, "a message of unknown type: install hydnsd and the plugin from "
					     "one release");
	if (s->resolver < 0 && hydnsd_other_abi_is(m))
		return hydnsd_other_abi_refuse(s, m);
	if (type != HYDNS_MSG_HELLO && s->resolver < 0)
		return hydnsd_session_refuse(s, m->head.seq, "the first message must be HELLO");
	if (m->delivery && m->delivery->rc && type != HYDNS_MSG_SERVICE)
		return hydnsd_session_refuse(s, m->head.seq, m->delivery->why);
	return handlers[type](s, m);
}
