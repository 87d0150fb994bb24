/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which HTTP connections give way, and when, with a clock of the test's own. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "hydnsd/metrics/connections.h"

struct pair {
	int ours, clients;
	struct metrics_connection *c;
};

static struct pair connected(struct metrics_connections *all, const char *address, uint64_t now_ms)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct pair p;
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	inet_pton(AF_INET, address, &from.sin_addr);
	p = (struct pair){ fd[0], fd[1], metrics_connection_begin(all, fd[0], (struct sockaddr *)&from, now_ms) };
	assert_non_null(p.c);
	return p;
}

/* Its client sees the end. */
static bool ended(const struct pair *p)
{
	char octet;

	return recv(p->clients, &octet, 1, 0) == 0;
}

static void closed(struct metrics_connections *all, struct pair *p)
{
	metrics_connection_end(all, p->c);
	close(p->ours);
	close(p->clients);
}

static void none_outlasts_its_bound(void **state)
{
	struct metrics_connections *all = metrics_connections_new();
	struct pair first = connected(all, "192.0.2.1", 1000), second = connected(all, "192.0.2.1", 2000);

	(void)state;
	metrics_connection_asked(all, first.c);
	metrics_connections_expire(all, 1000 + METRICS_CONNECTION_MS - 1);
	assert_false(ended(&first));
	metrics_connections_expire(all, 1000 + METRICS_CONNECTION_MS);
	assert_true(ended(&first));
	assert_false(ended(&second));
	closed(all, &first);
	closed(all, &second);
	metrics_connections_free(all);
}

static void who_has_not_asked_gives_way(void **state)
{
	struct metrics_connections *all = metrics_connections_new();
	struct pair p[METRICS_CONNECTIONS_PER_ADDRESS + 1], other = connected(all, "192.0.2.2", 0);

	(void)state;
	for (unsigned i = 0; i < METRICS_CONNECTIONS_PER_ADDRESS; i++) {
		p[i] = connected(all, "192.0.2.1", 1000 + i);
		if (i < 2)
			metrics_connection_asked(all, p[i].c);
	}
	assert_false(ended(&p[2]));
	p[METRICS_CONNECTIONS_PER_ADDRESS] = connected(all, "192.0.2.1", 5000);
	assert_true(ended(&p[2]));
	for (unsigned i = 0; i <= METRICS_CONNECTIONS_PER_ADDRESS; i++) {
		assert_true(i == 2 || !ended(&p[i]));
		closed(all, &p[i]);
	}
	assert_false(ended(&other));
	closed(all, &other);
	metrics_connections_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_outlasts_its_bound), cmocka_unit_test(who_has_not_asked_gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
