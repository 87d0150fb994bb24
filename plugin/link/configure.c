/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The configuration that hydnsd must have before READY; cookie secrets and notes may change later, the rest is replaced whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hydns/abi.h"
#include "plugin/link/thread.h"
#include "plugin/log.h"

#define ACL_CHUNK ((HYDNS_MSG_MAX - sizeof(struct hydns_msg) - sizeof(struct hydns_acl_list)) / \
		   sizeof(struct hydns_acl_entry))

/* Sends a part without which hydnsd only answers less: a refusal is logged and otherwise ignored. */
static int send_optional(struct hydns_link *l, uint32_t type, const void *payload, size_t len, const char *what)
{
	int error = hydns_link_ask(l, type, payload, len);

	if (error != -HYDNS_EREFUSED)
		return error;
	hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused %s: %s", what, hydns_link_refusal(l));
	return 0;
}

void hydns_link_describe(struct hydns_link *l, struct hydns_hello *h)
{
	const struct hydns_plugin_options *o = &l->p->o;

	pthread_mutex_lock(&l->p->configuring);
	l->configuration = l->p->configuration;
	*h = (struct hydns_hello){
		.abi_version = hydns_abi_version(), .threads = o->threads, .capacity = o->capacity,
		.min_ttl = o->min_ttl, .max_ttl = o->max_ttl, .flags = o->flags, .edns_size = o->edns_size,
		.max_udp = o->max_udp, .refresh_percent = (uint16_t)o->refresh_percent,
		.pid = (uint32_t)getpid(), .admission = o->admission, .park_ms = o->park_ms,
		.pending_max = o->pending_max, .pending_per_question = o->pending_per_question, .log_one_in = o->log_one_in,
		.stale_ttl = o->stale.ttl, .stale_longest = o->stale.longest, .stale_error = o->stale.error != NULL,
		.seed = { l->p->seed[0], l->p->seed[1] },
	};
	strcpy(h->stale_text, o->stale.error ? o->stale.error : "");
	pthread_mutex_unlock(&l->p->configuring);
	strcpy(h->identity, o->identity);   /* lengths checked with the options */
	strcpy(h->version, o->version);
}

/* All of it or nothing: a missing "deny" would answer too many clients. */
static int send_entries(struct hydns_link *l, const struct hydns_acl_entry *e, size_t n)
{
	uint8_t payload[HYDNS_MSG_MAX - sizeof(struct hydns_msg)];
	struct hydns_acl_list *list = (struct hydns_acl_list *)payload;
	int error = 0;

	for (size_t at = 0; at < n && !error; at += list->count) {
		size_t left = n - at;

		list->count = (uint32_t)(left < ACL_CHUNK ? left : ACL_CHUNK);
		memcpy(list->entry, e + at, list->count * sizeof(list->entry[0]));
		error = hydns_link_ask(l, HYDNS_MSG_ACL, payload, sizeof(*list) + list->count * sizeof(list->entry[0]));
	}
	return error;
}

/* A copy of the list: it may be replaced while hydnsd takes it. */
static int send_acl(struct hydns_link *l)
{
	struct hydns_acl_entry *copy;
	int error;
	size_t n;

	pthread_mutex_lock(&l->p->configuring);
	n = l->p->acls;
	copy = malloc((n + 1) * sizeof(*copy));
	if (copy && n)
		memcpy(copy, l->p->acl, n * sizeof(*copy));
	pthread_mutex_unlock(&l->p->configuring);
	error = copy ? send_entries(l, copy, n) : -ENOMEM;
	free(copy);
	return error;
}

/* If hydnsd refuses them, queries with a cookie pass. */
int hydns_link_send_cookies(struct hydns_link *l)
{
	struct hydns_cookies c;
	int error = 0;

	hydns_secrets_copy(&l->p->secrets, &c);
	if (c.set != l->cookies_sent)
		error = send_optional(l, HYDNS_MSG_COOKIES, &c, sizeof(c), "the cookie secrets");
	if (!error)
		l->cookies_sent = c.set;
	explicit_bzero(&c, sizeof(c));
	return error;
}

static int send_notes_of(struct hydns_link *l, enum hydns_note_kind kind)
{
	uint8_t payload[HYDNS_MSG_MAX - sizeof(struct hydns_msg)] __attribute__((aligned(8)));
	int error = 0;
	size_t len;

	for (size_t i = 0; !error; i++) {
		len = hydns_notes_message(&l->p->notes, kind, i, (struct hydns_note *)payload, sizeof(payload));
		if (!len)
			break;
		error = send_optional(l, HYDNS_MSG_NOTE, payload, len, "a note");
	}
	return error;
}

int hydns_link_send_notes(struct hydns_link *l)
{
	uint32_t changed = atomic_load(&l->p->notes.changed);
	int error = 0;

	if (changed == l->notes_sent)
		return 0;
	for (unsigned kind = 0; kind < HYDNS_NOTES && !error; kind++)
		error = send_notes_of(l, kind);
	if (!error)
		l->notes_sent = changed;
	return error;
}

int hydns_link_configure(struct hydns_link *l)
{
	int error = hydns_link_send_services(l);

	l->cookies_sent = 0;
	l->forwards_sent = 0;          /* a list that was never replaced is empty, and not sent */
	l->notes_sent = atomic_load(&l->p->notes.changed) - 1;
	if (!error)
		error = send_acl(l);
	if (!error)
		error = hydns_link_send_cookies(l);
	if (!error)
		error = hydns_link_send_notes(l);
	if (!error)
		error = hydns_link_get_log_ring(l);
	if (!error)
		error = hydns_link_get_budgets(l);
	return error ? error : hydns_link_ask(l, HYDNS_MSG_READY, NULL, 0);
}

void hydns_link_set_ready(struct hydns_link *l)
{
	pthread_mutex_lock(&l->p->configuring);
	if (l->configuration == l->p->configuration)
		atomic_store(&l->p->ready, true);
	pthread_mutex_unlock(&l->p->configuring);
}

static bool is_outdated(struct hydns_link *l)
{
	bool is;

	pthread_mutex_lock(&l->p->configuring);
	is = l->configuration != l->p->configuration;
	pthread_mutex_unlock(&l->p->configuring);
	return is;
}

int hydns_link_reconfigure(struct hydns_link *l)
{
	struct hydns_hello h;
	int error = 0;

	while (!error && is_outdated(l)) {
		hydns_link_describe(l, &h);
		error = hydns_link_ask(l, HYDNS_MSG_RESET, &h, sizeof(h));
		if (!error)
			error = hydns_link_configure(l);
		if (!error)
			hydns_link_set_ready(l);
	}
	if (error == -HYDNS_EREFUSED)
		hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused the resolver's new configuration: %s", hydns_link_refusal(l));
	return error;
}
