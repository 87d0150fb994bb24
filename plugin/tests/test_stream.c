/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Frame Streams to collectors that are slow, silent or gone, by sessions that move little at a time. Real TLS has test_dnstap.py. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "plugin/dnstap/dnstap.h"

#define CONTENT "protobuf:dnstap.Dnstap"
#define DRIP_MS 20                     /* 512 octets take longer than a collector gets */
enum { ACCEPT = 1, START, STOP, READY, FINISH };

/* -- sessions ----------------------------------------------------------------------------------------------- */
/* One octet a call, after a call that must wait. */
struct session {
	int fd;
	bool waited;
	bool ended;                    /* the other side has said that it ends */
};

static struct session only_session;
static int open_sessions;

static void *session_open(void *context, int fd)
{
	if (!context)
		return NULL;
	open_sessions++;
	only_session = (struct session){ .fd = fd };
	return &only_session;
}

static bool must_wait(struct session *s, short what, short *awaited)
{
	s->waited = !s->waited;
	*awaited = what;
	errno = EAGAIN;
	return s->waited;
}

static ssize_t session_read(void *session, void *octets, size_t len, short *awaited)
{
	struct session *s = session;

	if (s->ended)
		return 0;
	if (must_wait(s, POLLIN, awaited))
		return -1;
	return recv(s->fd, octets, len ? 1 : 0, MSG_DONTWAIT);
}

static ssize_t session_write(void *session, const void *octets, size_t len, short *awaited)
{
	struct session *s = session;

	if (must_wait(s, POLLOUT, awaited))
		return -1;
	return send(s->fd, octets, len ? 1 : 0, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void session_close(void *session)
{
	(void)session;
	open_sessions--;
}

static const struct hydns_dnstap_tls by_octet = {
	.open = session_open, .read = session_read, .write = session_write, .close = session_close,
};

/* -- collectors ----------------------------------------------------------------------------------------------- */
struct collector {
	struct sockaddr_un at;
	int fd;
	pthread_t thread;
	uint8_t data[64];
	size_t len;
};

static void take(int fd, void *octets, size_t len)
{
	if (len)                       /* for none recv() waits for the end */
		assert_int_equal(recv(fd, octets, len, MSG_WAITALL), len);
}

static void expect(int fd, uint32_t type)
{
	uint32_t head[3];
	char rest[64];

	take(fd, head, sizeof(head));
	assert_int_equal(head[0], 0);
	assert_int_equal(ntohl(head[2]), type);
	assert_in_range(ntohl(head[1]), 4, 4 + sizeof(rest));
	take(fd, rest, ntohl(head[1]) - 4);
	if (type == READY || type == START)
		assert_memory_equal(rest + 8, CONTENT, strlen(CONTENT));
}

static void say(int fd, uint32_t type)
{
	const uint32_t frame[] = { 0, htonl(4), htonl(type) };

	assert_int_equal(send(fd, frame, sizeof(frame), MSG_NOSIGNAL), sizeof(frame));
}

static void *collect(void *collector)
{
	struct collector *c = collector;
	int fd = accept(c->fd, NULL, NULL);

	assert_true(fd >= 0);
	expect(fd, READY);
	say(fd, ACCEPT);
	expect(fd, START);
	take(fd, c->data, c->len);
	expect(fd, STOP);
	say(fd, FINISH);
	close(fd);
	return NULL;
}

/* Frames that never end: what comes is always part of the answer. */
static void *drip(void *collector)
{
	struct collector *c = collector;
	int fd = accept(c->fd, NULL, NULL);
	const uint32_t head[] = { 0, htonl(512) };
	struct pollfd gone = { .fd = fd, .events = POLLRDHUP };

	assert_true(fd >= 0);
	for (size_t i = 0; i < 512 && !poll(&gone, 1, DRIP_MS); i++)
		if (send(fd, i < sizeof(head) ? (const char *)head + i : "", 1, MSG_NOSIGNAL) != 1)
			break;
	close(fd);
	return NULL;
}

static void begin(struct collector *c, void *(*does)(void *))
{
	char dir[] = "/tmp/hydns-test-stream-XXXXXX";

	assert_non_null(mkdtemp(dir));
	c->at.sun_family = AF_UNIX;
	snprintf(c->at.sun_path, sizeof(c->at.sun_path), "%s/s", dir);
	c->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(c->fd, (struct sockaddr *)&c->at, sizeof(c->at)), 0);
	assert_int_equal(listen(c->fd, 1), 0);
	assert_int_equal(pthread_create(&c->thread, NULL, does, c), 0);
}

static void finish(struct collector *c)
{
	assert_int_equal(pthread_join(c->thread, NULL), 0);
	close(c->fd);
	unlink(c->at.sun_path);
	*strrchr(c->at.sun_path, '/') = 0;
	rmdir(c->at.sun_path);
}

static _Atomic bool stopping;
static int context;

static struct hydns_dnstap_options options(const struct collector *c, const struct hydns_dnstap_tls *tls)
{
	return (struct hydns_dnstap_options){ .to = HYDNS_DNSTAP_UNIX, .path = c->at.sun_path, .tls = tls, .tls_context = &context };
}

/* -- tests ------------------------------------------------------------------------------------------------- */
static void test_all_comes_in_order(void **state)
{
	static const uint8_t data[] = "each octet once, in its place";
	const struct hydns_dnstap_tls *ways[] = { NULL, &by_octet };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct collector c = { .len = sizeof(data) };
		struct hydns_stream s = { .fd = -1, .stopping = &stopping };
		struct hydns_dnstap_options o;

		begin(&c, collect);
		o = options(&c, ways[i]);
		assert_int_equal(hydns_stream_open(&s, &o), 0);
		assert_int_equal(open_sessions, i);
		assert_int_equal(hydns_stream_write(&s, data, sizeof(data)), 0);
		assert_false(hydns_stream_gone(&s));
		hydns_stream_close(&s);
		assert_int_equal(s.fd, -1);
		assert_int_equal(open_sessions, 0);
		finish(&c);
		assert_memory_equal(c.data, data, sizeof(data));
	}
}

/* It gets so much time, however often it says something. */
static void test_answer_without_end(void **state)
{
	const struct hydns_dnstap_tls *ways[] = { NULL, &by_octet };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct collector c = { 0 };
		struct hydns_stream s = { .fd = -1, .stopping = &stopping };
		struct hydns_dnstap_options o;

		begin(&c, drip);
		o = options(&c, ways[i]);
		assert_int_equal(hydns_stream_open(&s, &o), -ETIMEDOUT);
		assert_int_equal(s.fd, -1);
		assert_int_equal(open_sessions, 0);
		finish(&c);
	}
}

static void test_no_session(void **state)
{
	struct collector c = { 0 };
	struct hydns_stream s = { .fd = -1, .stopping = &stopping };
	struct hydns_dnstap_options o;

	(void)state;
	begin(&c, drip);
	o = options(&c, &by_octet);
	o.tls_context = NULL;
	assert_int_equal(hydns_stream_open(&s, &o), -ENOMEM);
	assert_int_equal(s.fd, -1);
	finish(&c);
}

/* What a session itself is told (tickets, keys) is no word of the collector's; data and an end are. */
static void test_gone(void **state)
{
	struct session session = { 0 };
	struct hydns_stream s = { .is_socket = true, .one_way = true, .stopping = &stopping };
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	s.fd = session.fd = fd[0];
	assert_false(hydns_stream_gone(&s));
	assert_int_equal(send(fd[1], "x", 1, 0), 1);
	assert_true(hydns_stream_gone(&s));
	s.tls = &by_octet;
	s.session = &session;
	assert_false(hydns_stream_gone(&s));   /* the session has nothing for us as yet */
	assert_true(hydns_stream_gone(&s));    /* it has */
	assert_int_equal(send(fd[1], "x", 1, 0), 1);
	session.ended = true;
	assert_true(hydns_stream_gone(&s));
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_comes_in_order), cmocka_unit_test(test_answer_without_end), cmocka_unit_test(test_no_session),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
