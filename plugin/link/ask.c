/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What any thread sends to hydnsd or asks it for through the link thread: notes, cookie secrets, counts. */
#include "plugin/internal.h"
#include "plugin/log.h"

void hydns_plugin_set_notes(struct hydns_plugin *p, enum hydns_note_kind kind, const char *const *text, size_t n)
{
	struct hydns_request q = { .type = HYDNS_MSG_NOTE };

	if (hydns_notes_set(&p->notes, kind, text, n))
		hydns_log(p, HYDNS_LOG_WARNING, "out of memory: hydnsctl shows too few notes");
	if (p->started)
		(void)hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms);
}

void hydns_plugin_cookie_secrets(struct hydns_plugin *p, const uint8_t (*secret)[HYDNS_COOKIE_SECRET_LEN],
				  size_t n)
{
	struct hydns_request q = { .type = HYDNS_MSG_COOKIES };

	if (!hydns_secrets_change(&p->secrets, p->pages, secret, n) || !p->started)
		return;
	/* From here on the program has no secrets until hydnsd has these. */
	hydns_plugin_grace(p);
	(void)hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms);
}

bool hydns_plugin_counts(struct hydns_plugin *p, struct hydns_counts *out, uint32_t timeout_ms)
{
	struct hydns_request q = { .type = HYDNS_MSG_STATS };
	bool fresh = hydns_requests_ask(&p->requests, &q, timeout_ms);

	hydns_requests_counts(&p->requests, out);
	return fresh;
}
