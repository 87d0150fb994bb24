/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A running hydnsd, and hand-made plugins of another ABI version, whose messages may be of any layout behind their version. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "hydnsd/tests/client.h"
#include "hydnsd/tests/running.h"

#define OLDER (HYDNS_ABI_VERSION - 1)
#define NEWER (HYDNS_ABI_VERSION + 7)

/* Sends HELLO of this version, len octets long, with these descriptors. */
static int hello_of(uint32_t version, uint32_t len, const int *fd, unsigned fds)
{
	uint32_t payload[(HYDNS_MSG_MAX - sizeof(struct hydns_msg)) / sizeof(uint32_t)];
	const struct hydns_msg head = { .type = HYDNS_MSG_HELLO, .seq = 9, .len = len };
	int sock = hydns_channel_connect(plugin_path);

	memset(payload, 0xa5, sizeof(payload));
	payload[0] = version;
	assert_true(sock >= 0);
	assert_int_equal(hydns_channel_send(sock, &head, payload, fd, fds), 0);
	return sock;
}

static void expect_refusal(int sock, const char *text)
{
	struct client c = { .sock = sock };

	assert_int_equal(client_receive(&c), HYDNS_MSG_REFUSED);
	assert_int_equal(c.in.head.seq, 9);
	assert_int_equal(c.in.head.abi, HYDNS_ABI_VERSION);
	if (!strstr((const char *)c.in.payload, text))
		fail_msg("refused for %s", (const char *)c.in.payload);
}

static size_t others(void)
{
	json_t *status = ask("{\"cmd\": \"status\"}");
	size_t n = json_array_size(json_object_get(status, "other_versions"));

	json_decref(status);
	return n;
}

/* A field of the last one in the list. */
static json_int_t last(const char *field)
{
	json_t *status = ask("{\"cmd\": \"status\"}"), *list = json_object_get(status, "other_versions");
	json_int_t n = json_integer_value(json_object_get(json_array_get(list, json_array_size(list) - 1), field));

	json_decref(status);
	return n;
}

static void any_layout_is_refused_for_its_version(void **state)
{
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC), two[] = { null, null };
	const uint32_t most = HYDNS_MSG_MAX - sizeof(struct hydns_msg);
	int sock;

	(void)state;
	start_daemon();
	sock = hello_of(OLDER, sizeof(uint32_t), NULL, 0);
	expect_refusal(sock, "restart the resolver");
	close(sock);
	sock = hello_of(NEWER, most, NULL, 0);
	expect_refusal(sock, "restart hydnsd, or, if you went back to ABI");
	close(sock);
	sock = hello_of(OLDER, 100, two, 2);           /* descriptors that no HELLO of this version has */
	expect_refusal(sock, "restart the resolver");
	close(sock);
	close(null);
	end_cleanly();
}

/* The end of its connection is what tells it to try again. */
static void its_connection_is_kept(void **state)
{
	struct client silent = { 0 };
	int sock;

	(void)state;
	start_daemon();
	sock = hello_of(NEWER, 100, NULL, 0);
	expect_refusal(sock, "restart hydnsd");
	close(sock);                                   /* it does not come again, and is forgotten */
	sock = hello_of(OLDER, 100, NULL, 0);
	expect_refusal(sock, "restart the resolver");
	silent.sock = hydns_channel_connect(plugin_path);
	assert_int_equal(client_receive(&silent), HYDNS_MSG_REFUSED);   /* it has said no HELLO for some seconds */
	WAIT_FOR(others() == 1);
	assert_int_equal(recv(sock, &(char){ 0 }, 1, MSG_DONTWAIT), -1);
	assert_int_equal(last("pid"), getpid());
	assert_int_equal(last("abi"), OLDER);
	close(sock);
	close(silent.sock);
	end_cleanly();
}

/* Also when it comes again and again, as plugins of former releases do. */
static void each_process_is_listed_once(void **state)
{
	int first, second;

	(void)state;
	start_daemon();
	first = hello_of(OLDER, 100, NULL, 0);
	expect_refusal(first, "restart the resolver");
	close(first);
	first = hello_of(OLDER, 100, NULL, 0);
	expect_refusal(first, "restart the resolver");
	assert_int_equal(others(), 1);
	second = hello_of(NEWER, 100, NULL, 0);
	expect_refusal(second, "restart hydnsd");
	assert_int_equal(others(), 2);
	close(first);
	close(second);
	end_cleanly();
}

#define TEST(f) cmocka_unit_test_teardown(f, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(any_layout_is_refused_for_its_version), TEST(its_connection_is_kept), TEST(each_process_is_listed_once),
	};

	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
