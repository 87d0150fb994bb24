/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Sockets for stray answers, as hydnsd gives them to a plugin: what they are, when the program that fills them is attached,
 * and that they outlive hydnsd. hydns-kern/tests/test_strays has what comes to such sockets.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "hydns/hash.h"
#include "hydnsd/tests/client.h"
#include "hydnsd/tests/running.h"

#define FIRST       20000
#define PORTS       100
#define SERVER      "127.0.0.2"
#define SERVER_PORT 5353
#define LOOK_MS     1000

static struct client client;

static int pinned_map(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", pins, name);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	return fd;
}

static void write_pin(const char *name, uint32_t key, const void *value)
{
	int fd = pinned_map(name);

	assert_int_equal(bpf_map_update_elem(fd, &key, value, BPF_ANY), 0);
	close(fd);
}

static bool attached(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/stray_link", pins);
	return access(path, F_OK) == 0;
}

static void ask_sockets(int fd[2 * CLIENT_RINGS])
{
	client_send(&client, HYDNS_MSG_STRAYS, NULL, 0);
	assert_int_equal(client_receive(&client), HYDNS_MSG_STRAY_SOCKETS);
	assert_int_equal(client.in.head.seq, client.seq);
	assert_int_equal(client.in.head.len, 0);
	assert_int_equal(client.in.fds, 2 * CLIENT_RINGS);
	memcpy(fd, client.in.fd, sizeof(int) * 2 * CLIENT_RINGS);
}

static void close_sockets(const int *fd)
{
	for (unsigned i = 0; i < 2 * CLIENT_RINGS; i++)
		close(fd[i]);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void expect_socket(int fd, bool ipv6)
{
	struct sockaddr_in6 at = { 0 };
	socklen_t len = sizeof(at);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(at.sin6_family, ipv6 ? AF_INET6 : AF_INET);
	assert_int_not_equal(at.sin6_port, 0);
	assert_int_equal(option(fd, SOL_SOCKET, SO_TYPE), SOCK_DGRAM);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	if (ipv6) {
		assert_int_equal(option(fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
		assert_int_equal(option(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR), 1);
		assert_int_equal(option(fd, IPPROTO_IPV6, IPV6_RECVERR), 1);
	} else {
		assert_int_equal(option(fd, IPPROTO_IP, IP_RECVORIGDSTADDR), 1);
		assert_int_equal(option(fd, IPPROTO_IP, IP_RECVERR), 1);
	}
}

static void a_plugin_gets_two_sockets_a_thread(void **state)
{
	int fd[2 * CLIENT_RINGS], again[2 * CLIENT_RINGS];

	(void)state;
	start_daemon_with((const char *[]){ "--user", "nobody", NULL });       /* which has CAP_BPF and CAP_NET_ADMIN alone */
	client_open(&client);
	assert_false(attached());
	ask_sockets(fd);
	WAIT_FOR(attached());
	for (unsigned i = 0; i < 2 * CLIENT_RINGS; i++)
		expect_socket(fd[i], i % 2);
	ask_sockets(again);
	close_sockets(fd);
	close_sockets(again);
	WAIT_FOR(!attached());                 /* nobody has a socket: every look-up would run the program for nothing */
	client_close(&client);
	end_daemon(SIGTERM);
}

/* What a resolver had claimed is free for others; what others have claimed stays theirs. */
static void who_leaves_has_no_ports_and_no_sockets(void **state)
{
	const uint64_t own = HYDNS_PORT_WORD(1, 0, 0, 7), others = HYDNS_PORT_WORD(1, 1, 0, 7);
	int fd[2 * CLIENT_RINGS];
	uint64_t word;

	(void)state;
	start_daemon();
	client_open(&client);
	ask_sockets(fd);
	write_pin("hydns_ports", FIRST, &own);
	write_pin("hydns_ports", FIRST + 1, &others);
	client_close(&client);
	read_pin("hydns_ports", FIRST, &word);
	assert_true(word == 0);
	read_pin("hydns_ports", FIRST + 1, &word);
	assert_true(word == others);
	WAIT_FOR(!attached());                 /* though the sockets are still open */
	close_sockets(fd);
	end_cleanly();
}

/* As a hydnsd leaves it that has set a range. */
static struct hydns_geometry leave_range(void)
{
	struct hydns_geometry meta;

	read_pin("hydns_meta", 0, &meta);
	meta.port_range = HYDNS_PORT_RANGE(FIRST, PORTS);
	write_pin("hydns_meta", 0, &meta);
	return meta;
}

static void claim(unsigned port, unsigned thread, const struct hydns_geometry *meta)
{
	uint8_t octets[16] = { [10] = 0xff, [11] = 0xff };
	uint64_t half[2], word;

	assert_int_equal(inet_pton(AF_INET, SERVER, octets + 12), 1);
	memcpy(half, octets, sizeof(half));
	word = HYDNS_PORT_WORD(thread, 0, 0, hydns_remote_tag((__u64 *)half, htons(SERVER_PORT), meta->tag_seed));
	write_pin("hydns_ports", port, &word);
}

static void expect_stray(int socket_of_thread, unsigned port)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(SERVER_PORT) },
			   to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct pollfd p = { .fd = socket_of_thread, .events = POLLIN };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char answer[8];

	assert_int_equal(inet_pton(AF_INET, SERVER, &from.sin_addr), 1);
	assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(sendto(fd, "answer", 6, 0, (struct sockaddr *)&to, sizeof(to)), 6);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(recv(socket_of_thread, answer, sizeof(answer), 0), 6);
	close(fd);
}

/* How long ago hydnsd first looked at what is counted and used, which it does each second. */
static uint64_t looks_since_ms(void)
{
	json_t *reply = ask("{\"cmd\":\"top\"}");
	const uint64_t ms = (uint64_t)json_integer_value(json_object_get(reply, "window_ms"));

	json_decref(reply);
	return ms;
}

/* The resolver lives, without a connection, until hydnsd has looked twice. */
static bool looked_twice(void)
{
	hydns_pages_beat(client.pages, hydns_mono_ns());
	if (looks_since_ms() < LOOK_MS)
		return false;
	looks_since_ms();                      /* the second look was due before hydnsd reads this request */
	return true;
}

static void strays_come_while_hydnsd_is_away(void **state)
{
	struct hydns_geometry meta;
	int fd[2 * CLIENT_RINGS];

	(void)state;
	start_daemon();
	leave_range();
	end_daemon(SIGUSR2);                   /* leaves all, also the range, for the next one */
	start_daemon();
	client_open(&client);
	ask_sockets(fd);
	read_pin("hydns_meta", 0, &meta);
	claim(FIRST, 0, &meta);
	claim(FIRST + PORTS - 1, 1, &meta);
	expect_stray(fd[0], FIRST);
	end_daemon(SIGKILL);
	expect_stray(fd[2], FIRST + PORTS - 1);
	hydns_pages_beat(client.pages, hydns_mono_ns());
	start_daemon();
	WAIT_FOR(looked_twice());
	assert_true(attached());
	expect_stray(fd[0], FIRST);
	close_sockets(fd);
	WAIT_FOR(!attached());
	end_daemon(SIGTERM);
}

/* A HELLO of another version; hydnsd refuses it. */
static int refused_plugin(void)
{
	const struct hydns_msg head = { .type = HYDNS_MSG_HELLO, .seq = 1, .len = sizeof(uint32_t) };
	const uint32_t version = HYDNS_ABI_VERSION - 1;
	struct client c = { .sock = hydns_channel_connect(plugin_path) };

	assert_int_equal(hydns_channel_send(c.sock, &head, &version, NULL, 0), 0);
	assert_int_equal(client_receive(&c), HYDNS_MSG_REFUSED);
	return c.sock;
}

/* hydnsd has run for as long as it gives answers that are under way, and has looked since. */
static void wait_for_former_end(void)
{
	struct client silent = { .sock = hydns_channel_connect(plugin_path) };

	assert_int_equal(client_receive(&silent), HYDNS_MSG_REFUSED);   /* it has said no HELLO for as long */
	close(silent.sock);
	looks_since_ms();
	WAIT_FOR(looks_since_ms() >= LOOK_MS);
	looks_since_ms();
}

/* The maps are of another version. A plugin of that version may not know that the program brings nothing to its rings any more. */
static void former_strays_stay_for_a_refused_plugin(void **state)
{
	struct hydns_geometry meta;
	int fd[2 * CLIENT_RINGS], plugin;

	(void)state;
	start_daemon();
	leave_range();
	end_daemon(SIGUSR2);
	start_daemon();
	client_open(&client);
	ask_sockets(fd);
	read_pin("hydns_meta", 0, &meta);
	claim(FIRST, 0, &meta);
	end_daemon(SIGKILL);
	meta.abi_version--;
	write_pin("hydns_meta", 0, &meta);
	start_daemon();
	plugin = refused_plugin();
	wait_for_former_end();
	expect_stray(fd[0], FIRST);
	close(plugin);
	WAIT_FOR(!attached());
	close_sockets(fd);
	end_daemon(SIGTERM);
}

#define TEST(f) cmocka_unit_test_teardown(f, clear)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plugin_gets_two_sockets_a_thread), TEST(who_leaves_has_no_ports_and_no_sockets),
		TEST(strays_come_while_hydnsd_is_away), TEST(former_strays_stay_for_a_refused_plugin),
	};

	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
