/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * libmicrohttpd's one thread reads and writes all connections and never waits: a request for figures is suspended until the
 * scraper has them. Every connection carries one request.
 */
#include "config.h"

#include "hydnsd/metrics/http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/metrics/connections.h"
#include "hydnsd/metrics/host.h"

#define REQUEST_BYTES (8U << 10)       /* of a connection: request and header of the response */
#define IDLE_S        5U               /* that a client may be silent */

#define PLAIN "text/plain; charset=utf-8"

struct metrics_http {
	const struct metrics_site *site;
	struct MHD_Daemon *daemon;
	struct metrics_scraper *scraper;
	struct metrics_connections *connections;
};

struct request {
	struct metrics_wish wish;      /* first: ready() gets its address */
	struct metrics_http *http;
	struct MHD_Connection *connection;
	bool asked;                    /* the scraper has it, or had it */
};

struct body {
	struct metrics_http *http;
	struct metrics_page *page;
};

/* -- responses ----------------------------------------------------------------------------------------------- */
/* Sends the response, and gives it up. */
static enum MHD_Result send_response(const struct metrics_http *h, struct MHD_Connection *c, unsigned status, struct MHD_Response *r,
				     const char *type)
{
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	for (const char *const (*header)[2] = h->site->headers; header && (*header)[0]; header++)
		MHD_add_response_header(r, (*header)[0], (*header)[1]);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result send_static(const struct metrics_http *h, struct MHD_Connection *c, unsigned status, const char *text, size_t len,
				   const char *type)
{
	return send_response(h, c, status, MHD_create_response_from_buffer(len, (void *)text, MHD_RESPMEM_PERSISTENT), type);
}

static enum MHD_Result send_text(const struct metrics_http *h, struct MHD_Connection *c, unsigned status, const char *text)
{
	return send_static(h, c, status, text, strlen(text), PLAIN);
}

static void release_body(void *arg)
{
	struct body *b = arg;

	metrics_scraper_release(b->http->scraper, b->page);
	free(b);
}

/* Sends the page that the request has got. */
static enum MHD_Result send_page(struct request *r)
{
	struct body *b = r->wish.page ? malloc(sizeof(*b)) : NULL;
	struct MHD_Response *response;

	if (!b)
		return send_text(r->http, r->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	*b = (struct body){ r->http, r->wish.page };
	response = MHD_create_response_from_buffer_with_free_callback_cls(b->page->len, b->page->text, release_body, b);
	if (response)
		r->wish.page = NULL;   /* the response's now */
	else
		free(b);
	return send_response(r->http, r->connection, MHD_HTTP_OK, response, r->http->site->type);
}

/* -- requests ------------------------------------------------------------------------------------------------ */
static void resume(struct metrics_wish *w)
{
	MHD_resume_connection(((struct request *)w)->connection);
}

static void suspend(struct metrics_wish *w)
{
	MHD_suspend_connection(((struct request *)w)->connection);
}

static enum MHD_Result ask(struct request *r)
{
	r->asked = true;
	r->wish.ready = resume;
	switch (metrics_scraper_wish(r->http->scraper, &r->wish, suspend)) {
	case METRICS_HERE:
		return send_page(r);
	case METRICS_COMES:
		return MHD_YES;
	default:
		return send_text(r->http, r->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "hydns-metrics ends\n");
	}
}

static bool has_body(struct MHD_Connection *c)
{
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && strcmp(length, "0")) ||
	       MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static enum MHD_Result look_at_host(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	bool *local = arg;

	(void)kind;
	if (!strcasecmp(name, MHD_HTTP_HEADER_HOST) && !metrics_host_is_local(value))
		*local = false;
	return MHD_YES;
}

/* A page of somewhere else can have a browser ask us by a name of its own that leads here, but not by another Host than that. */
static bool for_this_host(struct MHD_Connection *c)
{
	bool local = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	MHD_get_connection_values(c, MHD_HEADER_KIND, look_at_host, &local);
	return local;
}

static bool is_one_of(const char *method, const char *a, const char *b)
{
	return !strcmp(method, a) || !strcmp(method, b);
}

/* Called with the header, and again when the request is complete or resumed; asked for is what *request says. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *c, const char *url, const char *method, const char *version,
			      const char *upload, size_t *upload_size, void **request)
{
	struct metrics_http *h = cls;
	struct request *r = *request;

	(void)version;
	(void)upload;
	*upload_size = 0;
	if (r)
		return r->asked ? send_page(r) : ask(r);
	metrics_connection_asked(h->connections, MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
	if (h->site->local && !for_this_host(c))
		return send_text(h, c, MHD_HTTP_MISDIRECTED_REQUEST, "only by a loopback address, or localhost\n");
	if (!is_one_of(method, MHD_HTTP_METHOD_GET, MHD_HTTP_METHOD_HEAD))
		return send_text(h, c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (has_body(c))
		return send_text(h, c, MHD_HTTP_CONTENT_TOO_LARGE, "only requests without a body\n");
	if (!strcmp(url, "/"))
		return send_static(h, c, MHD_HTTP_OK, h->site->index, h->site->index_len, h->site->index_type);
	if (strcmp(url, h->site->path))
		return send_text(h, c, MHD_HTTP_NOT_FOUND, h->site->elsewhere);
	r = calloc(1, sizeof(*r));
	if (!r)
		return MHD_NO;
	r->http = h;
	r->connection = c;
	*request = r;
	return MHD_YES;
}

static void request_over(void *cls, struct MHD_Connection *c, void **request, enum MHD_RequestTerminationCode how)
{
	struct request *r = *request;

	(void)cls;
	(void)c;
	(void)how;
	if (r && r->wish.page)
		metrics_scraper_release(r->http->scraper, r->wish.page);
	free(r);
	*request = NULL;
}

/* -- connections --------------------------------------------------------------------------------------------- */
static void connection_changed(void *cls, struct MHD_Connection *c, void **slot, enum MHD_ConnectionNotificationCode how)
{
	struct metrics_http *h = cls;

	if (how == MHD_CONNECTION_NOTIFY_STARTED)
		*slot = metrics_connection_begin(h->connections, MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
			MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr, hydnsd_now_ms());
	else if (*slot)
		metrics_connection_end(h->connections, *slot);
}

/* -- start and end ------------------------------------------------------------------------------------------- */
struct metrics_http *metrics_http_start(int listener, const char *control, const struct metrics_site *site)
{
	struct metrics_http *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->site = site;
	h->connections = metrics_connections_new();
	h->scraper = h->connections ? metrics_scraper_start(control, site->kind) : NULL;
	if (h->scraper)
		h->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, h,
			MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, METRICS_SLOTS,
			MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
			MHD_OPTION_NOTIFY_COMPLETED, request_over, h, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, h,
			MHD_OPTION_END);
	if (h->daemon)
		return h;
	if (h->scraper) {
		metrics_scraper_stop(h->scraper);
		metrics_scraper_free(h->scraper);
	}
	if (h->connections)
		metrics_connections_free(h->connections);
	free(h);
	return NULL;
}

void metrics_http_tick(struct metrics_http *h)
{
	metrics_connections_expire(h->connections, hydnsd_now_ms());
}

/* First the scraper: the library must not be stopped while a connection is suspended. */
void metrics_http_stop(struct metrics_http *h)
{
	metrics_scraper_stop(h->scraper);
	MHD_stop_daemon(h->daemon);
	metrics_scraper_free(h->scraper);
	metrics_connections_free(h->connections);
	free(h);
}
