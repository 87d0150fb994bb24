/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The resolver's notes, by kind. All notes of a kind may be replaced at any time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/page/page.h"

void hydns_notes_init(struct hydns_notes *n)
{
	memset(n, 0, sizeof(*n));
	pthread_mutex_init(&n->lock, NULL);
}

static void forget(struct hydns_notes *n, enum hydns_note_kind kind)
{
	for (size_t i = 0; i < n->count[kind]; i++)
		free(n->text[kind][i]);
	free(n->text[kind]);
	n->text[kind] = NULL;
	n->count[kind] = 0;
}

void hydns_notes_destroy(struct hydns_notes *n)
{
	for (unsigned kind = 0; kind < HYDNS_NOTES; kind++)
		forget(n, kind);
	pthread_mutex_destroy(&n->lock);
}

static int add(struct hydns_notes *n, enum hydns_note_kind kind, const char *text)
{
	char **more = realloc(n->text[kind], (n->count[kind] + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	n->text[kind] = more;
	more[n->count[kind]] = strdup(text);
	if (!more[n->count[kind]])
		return -ENOMEM;
	n->count[kind]++;
	return 0;
}

int hydns_notes_add(struct hydns_notes *n, enum hydns_note_kind kind, const char *text)
{
	int error;

	pthread_mutex_lock(&n->lock);
	error = add(n, kind, text);
	pthread_mutex_unlock(&n->lock);
	return error;
}

int hydns_notes_set(struct hydns_notes *n, enum hydns_note_kind kind, const char *const *text, size_t count)
{
	int error = 0;

	pthread_mutex_lock(&n->lock);
	forget(n, kind);
	for (size_t i = 0; i < count && !error; i++)
		error = add(n, kind, text[i]);
	atomic_fetch_add(&n->changed, 1);
	pthread_mutex_unlock(&n->lock);
	return error;
}

size_t hydns_notes_message(struct hydns_notes *n, enum hydns_note_kind kind, size_t i, struct hydns_note *out,
			   size_t room)
{
	size_t len = 0;

	pthread_mutex_lock(&n->lock);
	if (i < n->count[kind] || i == 0) {
		const char *text = i < n->count[kind] ? n->text[kind][i] : "";
		size_t text_len = strlen(text), most = room - sizeof(*out);

		if (text_len > most)
			text_len = most;
		*out = (struct hydns_note){ .kind = kind, .anew = i == 0 };
		memcpy(out->text, text, text_len);
		len = sizeof(*out) + text_len;
	}
	pthread_mutex_unlock(&n->lock);
	return len;
}
