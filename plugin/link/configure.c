/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The configuration that hydnsd must have before READY; of this, cookie secrets and notes may change later. */
#include <errno.h>
#include <string.h>
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

/* All of it or nothing: a missing "deny" would answer too many clients. */
static int send_acl(struct hydns_link *l)
{
	uint8_t payload[HYDNS_MSG_MAX - sizeof(struct hydns_msg)];
	struct hydns_acl_list *list = (struct hydns_acl_list *)payload;
	int error = 0;

	for (size_t at = 0; at < l->p->acls && !error; at += list->count) {
		size_t left = l->p->acls - at;

		list->count = (uint32_t)(left < ACL_CHUNK ? left : ACL_CHUNK);
		memcpy(list->entry, l->p->acl + at, list->count * sizeof(list->entry[0]));
		error = hydns_link_ask(l, HYDNS_MSG_ACL, payload, sizeof(*list) + list->count * sizeof(list->entry[0]));
	}
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
	return error ? error : hydns_link_ask(l, HYDNS_MSG_READY, NULL, 0);
}
