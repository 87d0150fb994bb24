/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Tells hydnsd which zones the program may forward. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/link/thread.h"
#include "plugin/log.h"

#define PAYLOAD_MOST (HYDNS_MSG_MAX - sizeof(struct hydns_msg))

/* Writes the next message of the list; *zones: how many came before, and then how many with it. */
static size_t write_message(uint8_t *payload, const struct hydns_plugin_forwards *of, uint32_t number, uint32_t *zones)
{
	struct hydns_forwards f = { .number = number, .max_ttl = of->max_ttl, .max_negative_ttl = of->max_negative_ttl };
	size_t at = sizeof(f), room, n = of->zones - *zones;

	if (*zones == 0) {
		f.flags |= (uint16_t)(HYDNS_FORWARDS_FIRST | of->flags);
		f.upstreams = (uint16_t)of->servers;
		if (of->servers)
			memcpy(payload + at, of->server, of->servers * sizeof(of->server[0]));
		at += of->servers * sizeof(of->server[0]);
	}
	room = (PAYLOAD_MOST - at) / sizeof(of->zone[0]);
	n = n < room ? n : room;
	if (n)                         /* a list without zones has no memory of them */
		memcpy(payload + at, of->zone + *zones, n * sizeof(of->zone[0]));
	f.zones = (uint16_t)n;
	*zones += (uint32_t)n;
	if (*zones == of->zones)
		f.flags |= HYDNS_FORWARDS_LAST;
	memcpy(payload, &f, sizeof(f));
	return at + n * sizeof(of->zone[0]);
}

static int send_all(struct hydns_link *l, const struct hydns_plugin_forwards *of, uint32_t number)
{
	uint8_t payload[PAYLOAD_MOST] __attribute__((aligned(8)));
	uint32_t zones = 0;
	int error;

	do {
		size_t len = write_message(payload, of, number, &zones);

		error = hydns_link_ask(l, HYDNS_MSG_FORWARDS, payload, len);
	} while (!error && zones < of->zones);
	return error;
}

/* One line in the log for a cause, and a note as long as it holds. */
static void note_refusal(struct hydns_link *l, const char *cause)
{
	char text[HYDNS_LOGGED_LEN];
	const char *note = text;

	snprintf(text, sizeof(text), "no zone is forwarded in the kernel: %s", cause ? cause : "");
	if (cause && strcmp(text, l->forwards_refused))
		hydns_log(l->p, HYDNS_LOG_WARNING, "%s", text);
	if (cause || l->forwards_refused[0])
		(void)hydns_notes_set(&l->p->notes, HYDNS_NOTE_FORWARD_REFUSED, &note, cause != NULL);
	snprintf(l->forwards_refused, sizeof(l->forwards_refused), "%s", cause ? text : "");
}

int hydns_link_send_forwards(struct hydns_link *l)
{
	struct hydns_plugin_forwards copy;
	uint32_t number, changed;
	int error = 0;

	if (atomic_load(&l->p->forwards.changed) == l->forwards_sent)
		return 0;
	number = hydns_forward_list_begin(&l->p->forwards, l->p->pages, &changed, &copy);
	error = send_all(l, &copy, number);
	if (!error)
		hydns_forward_list_known(&l->p->forwards, l->p->pages, number, changed);
	if (!error || error == -HYDNS_EREFUSED) {
		note_refusal(l, error ? hydns_link_refusal(l) : NULL);
		l->forwards_sent = changed;
		error = 0;
	}
	free(copy.zone);
	return error;
}
