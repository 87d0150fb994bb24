/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The HTTP side, by libmicrohttpd: GET and HEAD of a site's figures, and of / for people; nothing else, and no request with a body. */
#ifndef HYDNSD_METRICS_HTTP_H
#define HYDNSD_METRICS_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "hydnsd/metrics/scrape.h"

struct metrics_http;

struct metrics_site {
	const struct metrics_kind *kind;
	const char *path, *type;               /* of its text */
	const char *index, *index_type;        /* what / says */
	size_t index_len;
	const char *elsewhere;                 /* what any other path says */
	bool local;                            /* refuses requests for another host than this one by a loopback address or "localhost" */
	const char *const (*headers)[2];       /* of each response, ends with NULL; or NULL */
};

/* Serves the site at the listening socket, which it takes, with figures from the control socket. NULL: out of memory or descriptors. */
struct metrics_http *metrics_http_start(int listener, const char *control, const struct metrics_site *site);
/* To be called some times a second: ends connections that last too long. */
void metrics_http_tick(struct metrics_http *h);
/* Ends all connections, and frees it. */
void metrics_http_stop(struct metrics_http *h);

#endif
