/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/metrics/sites.h"

#include <string.h>

#include "hydnsd/metrics/page_document.h"
#include "hydnsd/metrics/text.h"
#include "hydnsd/view/view.h"

#define NAMES 20                       /* of the page */

#define ABOUT "hyDNS: the figures of hydnsd for Prometheus are at /metrics\n"

/* -- figures for Prometheus ---------------------------------------------------------------------------------- */
static char *figures_text(json_t *const reply[], const char *why, uint64_t took_ns, size_t *len)
{
	struct metrics_figures f = { .status = reply[0], .stats = reply[1], .took_ns = took_ns };
	char *text = metrics_text(&f, len);

	(void)why;
	json_decref(reply[0]);
	json_decref(reply[1]);
	return text;
}

const struct metrics_site *metrics_site_figures(void)
{
	static const struct metrics_kind kind = {
		.requests = "{\"cmd\":\"status\"}\n{\"cmd\":\"stats\",\"swept\":true}\n", .replies = 2, .fresh_ms = 250, .text = figures_text,
	};
	static const struct metrics_site site = {
		.kind = &kind, .path = "/metrics", .type = "text/plain; version=0.0.4; charset=utf-8", .index = ABOUT,
		.index_len = sizeof(ABOUT) - 1, .index_type = "text/plain; charset=utf-8", .elsewhere = "only /metrics\n",
	};

	return &site;
}

/* -- the page -------------------------------------------------------------------------------------------------- */
static char *page_text(json_t *const reply[], const char *why, uint64_t took_ns, size_t *len)
{
	json_t *view = view_of(reply, why);
	char *text = view ? json_dumps(view, JSON_COMPACT) : NULL;

	(void)took_ns;
	*len = text ? strlen(text) : 0;
	json_decref(view);
	return text;
}

/* Names are chosen by whoever asks the resolver: nothing that came with the data may run, be fetched or be framed. */
static const char *const page_headers[][2] = {
	{ "Content-Security-Policy", METRICS_PAGE_POLICY },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Referrer-Policy", "no-referrer" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Cache-Control", "no-store" },
	{ NULL, NULL },
};

const struct metrics_site *metrics_site_page(void)
{
	static struct metrics_kind kind = { .replies = VIEW_REPLIES, .fresh_ms = 1000, .text = page_text };
	static const struct metrics_site site = {
		.kind = &kind, .path = "/live.json", .type = "application/json", .index = (const char *)metrics_page,
		.index_len = sizeof(metrics_page), .index_type = "text/html; charset=utf-8", .elsewhere = "only / and /live.json\n",
		.local = true, .headers = page_headers,
	};

	kind.requests = view_requests(NAMES);
	return &site;
}
