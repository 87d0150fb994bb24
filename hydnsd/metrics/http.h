/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The HTTP side, by libmicrohttpd: GET and HEAD of /metrics, and of / for people; nothing else, and no request with a body. */
#ifndef HYDNSD_METRICS_HTTP_H
#define HYDNSD_METRICS_HTTP_H

struct metrics_http;

/* Serves at the listening socket, which it takes, with figures from the control socket. NULL: out of memory or descriptors. */
struct metrics_http *metrics_http_start(int listener, const char *control);
/* To be called some times a second: ends connections that last too long. */
void metrics_http_tick(struct metrics_http *h);
/* Ends all connections, and frees it. */
void metrics_http_stop(struct metrics_http *h);

#endif
