/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Frame Streams (https://farsightsec.github.io/fstrm), the writer's side. Over a socket: READY, the other side's ACCEPT, START, data,
 * STOP, the other side's FINISH; one way, and in files: START, data, STOP. By TLS, where the resolver has sessions of it. Handshakes wait
 * a bounded time, all their messages together. Data wait as long as the other side takes, until the thread is to stop.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "plugin/clock.h"
#include "plugin/dnstap/dnstap.h"

#define CONTENT_TYPE "protobuf:dnstap.Dnstap"
#define PATIENCE_MS  500
#define OPENING_MS   1500              /* for all that the other side says until it takes data ... */
#define CLOSING_MS   500               /* ... and at the end */
#define CONTROL_MOST 512               /* octets of a control frame, by the specification */
#define FIELD_CONTENT_TYPE 1

enum control { ACCEPT = 1, START, STOP, READY, FINISH };

static bool await(const struct hydns_stream *s, short events, int ms)
{
	struct pollfd f = { .fd = s->fd, .events = events };

	return poll(&f, 1, ms) > 0;
}

static bool await_room(const struct hydns_stream *s)
{
	bool room;

	do {
		room = await(s, POLLOUT, PATIENCE_MS);
	} while (!room && !atomic_load(s->stopping));
	return room;
}

static bool await_data(const struct hydns_stream *s)
{
	uint64_t now = hydns_mono_ns();

	return await(s, POLLIN, now < s->handshake_ends_ns ? (int)((s->handshake_ends_ns - now) / HYDNS_NS_PER_MS) : 0);
}

static void begin_handshake(struct hydns_stream *s, unsigned ms)
{
	s->handshake_ends_ns = hydns_mono_ns() + ms * HYDNS_NS_PER_MS;
}

/* After a call that has moved n octets, or failed: 0, the next may come; or why not. awaited: POLLIN or POLLOUT. */
static int next_may_come(const struct hydns_stream *s, ssize_t n, short awaited)
{
	if (n >= 0 || errno == EINTR)
		return 0;
	if (errno != EAGAIN)
		return -errno;
	return (awaited == POLLIN ? await_data(s) : await_room(s)) ? 0 : -ETIMEDOUT;
}

static ssize_t put(struct hydns_stream *s, const void *octets, size_t len, short *awaited)
{
	if (s->session)
		return s->tls->write(s->session, octets, len, awaited);
	return s->is_socket ? send(s->fd, octets, len, MSG_NOSIGNAL | MSG_DONTWAIT) : write(s->fd, octets, len);
}

static ssize_t take(struct hydns_stream *s, void *octets, size_t len, short *awaited)
{
	return s->session ? s->tls->read(s->session, octets, len, awaited) : recv(s->fd, octets, len, MSG_DONTWAIT);
}

static int write_all(struct hydns_stream *s, const void *octets, size_t len)
{
	const uint8_t *at = octets, *end = at + len;

	while (at < end) {
		short awaited = POLLOUT;
		ssize_t n = put(s, at, (size_t)(end - at), &awaited);
		int rc = next_may_come(s, n, awaited);

		if (rc)
			return rc;
		at += n > 0 ? n : 0;
	}
	return 0;
}

static int read_all(struct hydns_stream *s, void *octets, size_t len)
{
	uint8_t *at = octets, *end = at + len;

	while (at < end) {
		short awaited = POLLIN;
		ssize_t n = take(s, at, (size_t)(end - at), &awaited);
		int rc = n == 0 ? -ECONNRESET : next_may_come(s, n, awaited);

		if (rc)
			return rc;
		at += n > 0 ? n : 0;
	}
	return 0;
}

/* An escape (a data frame of no length), the length, the type, and the content type where there is one. */
static int send_control(struct hydns_stream *s, enum control type)
{
	bool content = type == READY || type == START;
	uint32_t rest = content ? 4 + 4 + 4 + sizeof(CONTENT_TYPE) - 1 : 4;
	uint32_t head[] = { 0, htonl(rest), htonl(type), htonl(FIELD_CONTENT_TYPE), htonl(sizeof(CONTENT_TYPE) - 1) };
	uint8_t frame[sizeof(head) + sizeof(CONTENT_TYPE)];

	memcpy(frame, head, sizeof(head));
	memcpy(frame + sizeof(head), CONTENT_TYPE, sizeof(CONTENT_TYPE) - 1);
	return write_all(s, frame, 8 + rest);
}

static int expect_control(struct hydns_stream *s, enum control type)
{
	uint8_t frame[CONTROL_MOST];
	uint32_t head[2], is;
	int rc = read_all(s, head, sizeof(head));

	if (rc)
		return rc;
	if (head[0] || ntohl(head[1]) < sizeof(is) || ntohl(head[1]) > sizeof(frame))
		return -EPROTO;
	rc = read_all(s, frame, ntohl(head[1]));
	memcpy(&is, frame, sizeof(is));
	return rc ? rc : ntohl(is) == type ? 0 : -EPROTO;
}

static int connect_to(struct hydns_stream *s, const struct sockaddr *to, socklen_t len)
{
	int error = 0;
	socklen_t size = sizeof(error);

	s->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	if (connect(s->fd, to, len) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (!await(s, POLLOUT, PATIENCE_MS))
		return -ETIMEDOUT;
	return getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) ? -errno : -error;
}

/* A file of the same name keeps what it has: a stream can't be continued. */
static int open_file(struct hydns_stream *s, const char *path)
{
	char kept[PATH_MAX];
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size > 0 && S_ISREG(st.st_mode)) {
		unsigned long long at = (unsigned long long)time(NULL);

		do {
			if (snprintf(kept, sizeof(kept), "%s.%llu", path, at++) >= (int)sizeof(kept))
				return -ENAMETOOLONG;
		} while (stat(kept, &st) == 0);
		if (rename(path, kept))
			return -errno;
	}
	s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	return s->fd < 0 ? -errno : 0;
}

static int open_end(struct hydns_stream *s, const struct hydns_dnstap_options *o)
{
	struct sockaddr_un u = { .sun_family = AF_UNIX };

	switch (o->to) {
	case HYDNS_DNSTAP_UNIX:
		if (strlen(o->path) >= sizeof(u.sun_path))
			return -ENAMETOOLONG;
		strcpy(u.sun_path, o->path);
		return connect_to(s, (const struct sockaddr *)&u, sizeof(u));
	case HYDNS_DNSTAP_TCP:
		return connect_to(s, (const struct sockaddr *)&o->address, o->address_len);
	default:
		return open_file(s, o->path);
	}
}

static void drop(struct hydns_stream *s)
{
	if (s->session)
		s->tls->close(s->session);
	s->session = NULL;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static int begin_session(struct hydns_stream *s, const struct hydns_dnstap_options *o)
{
	s->tls = o->tls;
	s->session = o->tls ? o->tls->open(o->tls_context, s->fd) : NULL;
	return o->tls && !s->session ? -ENOMEM : 0;
}

int hydns_stream_open(struct hydns_stream *s, const struct hydns_dnstap_options *o)
{
	int rc;

	s->is_socket = o->to != HYDNS_DNSTAP_FILE;
	s->one_way = o->one_way || !s->is_socket;
	rc = open_end(s, o);
	begin_handshake(s, OPENING_MS);
	if (!rc)
		rc = begin_session(s, o);
	if (!rc && !s->one_way)
		rc = send_control(s, READY);
	if (!rc && !s->one_way)
		rc = expect_control(s, ACCEPT);
	if (!rc)
		rc = send_control(s, START);
	if (rc)
		drop(s);
	return rc;
}

int hydns_stream_write(struct hydns_stream *s, const void *frames, size_t len)
{
	int rc = write_all(s, frames, len);

	if (rc)
		drop(s);
	return rc;
}

/* The other side sends nothing while data come; of TLS, no data. */
bool hydns_stream_gone(struct hydns_stream *s)
{
	struct pollfd f = { .fd = s->fd, .events = POLLIN | POLLRDHUP };
	uint8_t octet;
	short awaited;

	if (!s->is_socket || poll(&f, 1, 0) <= 0)
		return false;
	return !s->session || s->tls->read(s->session, &octet, 1, &awaited) >= 0 || errno != EAGAIN;
}

void hydns_stream_close(struct hydns_stream *s)
{
	begin_handshake(s, CLOSING_MS);
	if (s->fd >= 0 && !send_control(s, STOP) && !s->one_way)
		(void)expect_control(s, FINISH);
	drop(s);
}
