/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * hydnsd itself, in namespaces of its own (running.h). The resolver's side is the real plugin library; bad peers use the
 * sockets by hand. No queries are sent: hydns-kern's tests have packets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hydns/hash.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/tests/running.h"
#include "plugin/internal.h"

/* -- the resolver ------------------------------------------------------------------------------------------- */
static struct hydns_plugin *resolver;

static void stop_resolver(void)
{
	hydns_plugin_stop(resolver);
	resolver = NULL;
}

/* After a test that has failed neither may be left for the next one. */
static int leave(void **state)
{
	if (resolver)
		stop_resolver();
	return clear(state);
}

static void start_resolver(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(53) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	resolver = make_resolver(5000, 10);
	assert_int_equal(hydns_plugin_add_service(resolver, fd), 0);
	assert_int_equal(hydns_plugin_add_note(resolver, HYDNS_NOTE_OTHER, "a note"), 0);
	close(fd);
	begin_resolver(resolver);
}

static int try_offer(unsigned i, const uint8_t *record, size_t record_len)
{
	struct hydns_thread *t = hydns_plugin_thread(resolver, i % 2);
	uint8_t name[HYDNS_NAME_MAX], wire[1400] = { 0, 1, 0x80, 0x80, 0, 1, 0, 1 };
	uint8_t len = make_name(i, name);
	struct hydns_question q = { .name = name, .name_len = len, .qtype = 1 };
	time_t now = time(NULL);

	memcpy(wire + 12, name, len);
	memcpy(wire + 12 + len, "\0\1\0\1", 4);
	memcpy(wire + 16 + len, record, record_len);
	for (int n = 0; n < 10; n++)
		hydns_plugin_hot(t, hydns_plugin_prefetch(t, &q), false, now + 200, hydnsd_now_ms());
	return hydns_plugin_offer(t, &q, wire, 16 + len + record_len, now, now + 200, false,
				   hydns_plugin_stamp(resolver));
}

static void offer(unsigned i)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 200, 0, 4, 192, 0, 2, 1 };

	assert_int_equal(try_offer(i, record, sizeof(record)), 0);
}

static void offer_some(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		offer(i);
	WAIT_FOR(rules() == n);
}

static void withdraw(unsigned i)
{
	uint8_t name[HYDNS_NAME_MAX], len = make_name(i, name);

	hydns_plugin_withdraw(resolver, HYDNS_SCOPE_NAME, name, len);
}

/* -- tests ---------------------------------------------------------------------------------------------------- */
static void offers_become_rules_and_go_again(void **state)
{
	struct hydns_counts counts;

	(void)state;
	start_daemon();
	start_resolver();
	offer_some(20);
	withdraw(3);
	assert_int_equal(rules(), 19); /* at once: withdraw() returns after hydnsd has acknowledged */
	assert_true(hydns_plugin_counts(resolver, &counts, WAIT_MS));
	assert_int_equal(counts.rules, 19);
	assert_int_equal(counts.answered, 0);
	hydns_plugin_withdraw(resolver, HYDNS_SCOPE_SUBTREE, (const uint8_t *)"\7example", 9);
	assert_int_equal(rules(), 0);
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	end_cleanly();
}

static void control_flushes(void **state)
{
	json_t *o;

	(void)state;
	start_daemon();
	start_resolver();
	offer_some(10);
	assert_int_equal(number("{\"cmd\":\"flush\",\"name\":\"N0001.Example\"}", "withdrawn"), 1);
	o = ask("{\"cmd\":\"explain\",\"name\":\"n0002.example\",\"type\":\"A\"}");
	assert_string_equal(json_string_value(json_object_get(o, "where")), "kernel");
	json_decref(o);
	assert_int_equal(number("{\"cmd\":\"flush\",\"zone\":\".\"}", "withdrawn"), 9);
	o = ask("{\"cmd\":\"explain\",\"name\":\"n0002.example\",\"type\":\"A\"}");
	assert_string_equal(json_string_value(json_object_get(o, "where")), "resolver");
	json_decref(o);
	stop_resolver();
	end_cleanly();
}

static void explain_says(const char *text)
{
	json_t *o = ask("{\"cmd\":\"explain\",\"name\":\"n0007.example\",\"type\":\"A\"}");
	const char *said = json_string_value(json_object_get(o, "text"));

	assert_string_equal(json_string_value(json_object_get(o, "where")), "resolver");
	if (!strstr(said, text))
		fail_msg("explain says: %s", said);
	json_decref(o);
}

static struct hydns_not_offered *kept_by(struct hydns_thread *t)
{
	return (struct hydns_not_offered *)((uint8_t *)t->ring.ring + HYDNS_RING_DATA + HYDNS_RING_BYTES);
}

/* The last reason of all threads counts, and whatever a plugin writes there does no harm. */
static void explain_tells_what_the_plugin_noted(void **state)
{
	uint8_t name[HYDNS_NAME_MAX];
	struct hydns_question q = { .name = name, .name_len = make_name(7, name), .qtype = 1 };
	struct hydns_thread *t[2];
	uint64_t key;

	(void)state;
	start_daemon();
	start_resolver();
	for (unsigned i = 0; i < 2; i++)
		t[i] = hydns_plugin_thread(resolver, i);
	key = hydns_plugin_key(t[0], &q);
	explain_says("nobody whom the kernel may answer has asked for it lately");
	hydns_plugin_not_offered(t[0], key, HYDNS_NOT_OFFERED_ERROR, 5);
	explain_says("the answer is an error (rcode 5)");
	for (uint64_t then = hydns_mono_coarse_ms(); hydns_mono_coarse_ms() == then; )
		;                              /* until it is later */
	hydns_plugin_not_offered(t[1], key, HYDNS_NOT_OFFERED_LOCAL_DATA, 0);
	explain_says("local data of the resolver answer it");
	for (unsigned i = 0; i < 2; i++)
		kept_by(t[i])[HYDNS_NOT_OFFERED_PLACE(key)].what = UINT32_MAX;
	explain_says("no reason is known");
	for (unsigned i = 0; i < 2; i++)
		memset(kept_by(t[i]), 0xff, HYDNS_NOT_OFFERED_PLACES * sizeof(struct hydns_not_offered));
	explain_says("nobody whom the kernel may answer has asked for it lately");
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	end_cleanly();
}

/* Large answers fill the store before its capacity is reached, and status shows that. */
static void status_tells_how_many_fit(void **state)
{
	uint8_t record[1024] = { 0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 200, 1012 >> 8, 1012 & 0xff };

	(void)state;
	for (size_t at = 12; at < sizeof(record); at += 253)
		record[at] = 252;      /* character strings */
	start_daemon();
	start_resolver();
	offer_some(20);
	assert_int_equal(number("{\"cmd\":\"status\"}", "fitting"), 1000);
	for (unsigned i = 100; i < 1000; i++)
		while (try_offer(i, record, sizeof(record)) == -ENOBUFS)
			usleep(STEP_US);
	WAIT_FOR(number("{\"cmd\":\"status\"}", "fitting") < 1000);
	assert_true(rules() < 1000);
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	end_cleanly();
}

static void a_killed_daemon_leaves_its_rules_to_the_next(void **state)
{
	(void)state;
	start_daemon();
	start_resolver();
	offer_some(20);
	end_daemon(SIGKILL);
	start_daemon();
	assert_int_equal(rules(), 20);
	WAIT_FOR(resolver_is("ready"));
	assert_int_equal(rules(), 20); /* the plugin came back with its page, so its rules stay */
	withdraw(5);
	assert_int_equal(rules(), 19);
	end_daemon(SIGUSR2);
	assert_int_equal(access(pins, F_OK), 0);
	start_daemon();
	WAIT_FOR(resolver_is("ready"));
	assert_int_equal(rules(), 19);
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	WAIT_FOR(rules() == 0);
	end_cleanly();
}

/* The epoch of the first resolver's page, as the program reads it. */
static uint32_t epoch_in_page(void)
{
	static struct hydns_resolver_page page;

	read_pin("page_0", 0, &page);
	return page.epoch;
}

static void change(unsigned i)
{
	uint8_t name[HYDNS_NAME_MAX], len = make_name(i, name);

	hydns_plugin_changed(hydns_plugin_thread(resolver, i % 2), name, len);
}

static bool answers(unsigned i)
{
	char request[96];
	json_t *o;
	bool does;

	snprintf(request, sizeof(request), "{\"cmd\":\"explain\",\"name\":\"n%04u.example\",\"type\":\"A\"}", i);
	o = ask(request);
	does = o && !strcmp(json_string_value(json_object_get(o, "where")), "kernel");
	json_decref(o);
	return does;
}

/* What top shows of a rule. */
static bool tops(unsigned i)
{
	json_t *o = ask("{\"cmd\":\"top\",\"limit\":100}"), *row;
	bool found = false, does = false;
	char name[32];
	size_t n;

	snprintf(name, sizeof(name), "n%04u.example.", i);
	json_array_foreach(json_object_get(o, "names"), n, row)
		if (!strcmp(json_string_value(json_object_get(row, "name")), name)) {
			found = true;
			does = !strcmp(json_string_value(json_object_get(row, "where")), "kernel");
		}
	json_decref(o);
	assert_true(found);
	return does;
}

/* While a name is marked, explain and top show its rule alone as suspended; while all are suspended, all. */
static void marked_names_are_said_to_wait(void **state)
{
	uint8_t name[HYDNS_NAME_MAX], len = make_name(4, name);
	__u64 seed[2];

	(void)state;
	start_daemon();
	start_resolver();
	offer_some(10);
	assert_true(answers(4) && answers(5) && tops(4) && tops(5));
	seed[0] = resolver->seed[0];
	seed[1] = resolver->seed[1];
	/* without the link thread, which would end this at once */
	hydns_pages_mark(resolver->pages, HYDNS_PLACE(hydns_place_hash(name, len, seed)));
	assert_false(answers(4) || tops(4));
	assert_true(answers(5) && tops(5));
	assert_true(resolver_is("catching up"));
	hydns_pages_suspend(resolver->pages);
	assert_false(answers(4) || tops(4) || answers(5) || tops(5));
	hydns_requests_wake(&resolver->requests);
	WAIT_FOR(answers(4) && answers(5) && tops(4) && tops(5) && resolver_is("ready"));
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	end_cleanly();
}

/* Rules whose data changed while hydnsd was away or hung go before the others count again. */
static void changes_wait_for_the_next_daemon(void **state)
{
	static const int by[] = { SIGKILL, SIGUSR2 };
	uint32_t epoch;

	(void)state;
	start_daemon();
	start_resolver();
	offer_some(20);
	epoch = hydns_plugin_stamp(resolver).epoch;
	assert_int_equal(epoch_in_page(), epoch);
	for (unsigned i = 0; i < 2; i++) {
		end_daemon(by[i]);
		assert_int_equal(epoch_in_page(), epoch);
		change(i);
		WAIT_FOR(epoch_in_page() == (epoch | HYDNS_EPOCH_MARKED));
		start_daemon();
		WAIT_FOR(epoch_in_page() == epoch);
		assert_int_equal(rules(), 19 - i);
		assert_false(answers(i));
		assert_true(answers(10));
	}
	kill(daemon_pid, SIGSTOP);
	offer(30);                     /* may be older than a change that this daemon knew of */
	change(2);
	end_daemon(SIGKILL);
	WAIT_FOR(epoch_in_page() == (epoch | HYDNS_EPOCH_MARKED));
	start_daemon();
	WAIT_FOR(epoch_in_page() == epoch);
	assert_int_equal(rules(), 17);
	assert_false(answers(2) || answers(30));
	kill(daemon_pid, SIGSTOP);     /* it hangs */
	change(3);
	WAIT_FOR(epoch_in_page() == (epoch | HYDNS_EPOCH_MARKED));
	kill(daemon_pid, SIGCONT);
	WAIT_FOR(epoch_in_page() == epoch);
	assert_int_equal(rules(), 16);
	assert_true(answers(10));
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	end_cleanly();
}

/* Rules of a former hydnsd that their resolver has withdrawn meanwhile do not stay in the store. */
static void dead_rules_are_not_taken_over(void **state)
{
	(void)state;
	start_daemon();
	start_resolver();
	offer_some(20);
	end_daemon(SIGKILL);
	hydns_plugin_withdraw_all(resolver);
	start_daemon();
	WAIT_FOR(resolver_is("ready"));
	WAIT_FOR(rules() == 0);
	offer_some(5);
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	end_cleanly();
}

/* -- cookie secrets -------------------------------------------------------------------------------------------- */
/* The record in the program's map for set number 0 or 1 of the resolver, read past hydnsd. */
static struct hydns_cookies secrets_in_map(uint32_t set)
{
	struct hydns_cookies c;
	char path[96];
	struct stat st;

	snprintf(path, sizeof(path), "%s/hydns_cookies", pins);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 077, 0);
	read_pin("hydns_cookies", HYDNS_COOKIES_INDEX(0, set), &c);
	return c;
}

static bool wiped(uint32_t set)
{
	const struct hydns_cookies none = { 0 };
	struct hydns_cookies c = secrets_in_map(set);

	return !memcmp(&c, &none, sizeof(c));
}

static void expect_secrets(uint32_t set, const uint8_t (*secret)[HYDNS_COOKIE_SECRET_LEN], uint32_t n)
{
	struct hydns_cookies c = secrets_in_map(set);

	assert_int_equal(c.set, set);
	assert_int_equal(c.count, n);
	assert_memory_equal(c.secret, secret, n * sizeof(*secret));
	assert_true(wiped(set + 1));
}

static void secrets_reach_the_program_and_leave_it(void **state)
{
	static const uint8_t secret[3][HYDNS_COOKIE_SECRET_LEN] = { "first of sixteen", "another secret 2",
								    "and the third 16" };

	(void)state;
	start_daemon();
	start_resolver();
	assert_true(wiped(0) && wiped(1));
	hydns_plugin_cookie_secrets(resolver, secret, 1);
	expect_secrets(1, secret, 1);
	hydns_plugin_cookie_secrets(resolver, secret, 2);
	expect_secrets(2, secret, 2);
	end_daemon(SIGKILL);
	expect_secrets(2, secret, 2);                  /* the program still uses them */
	start_daemon();
	WAIT_FOR(resolver_is("ready"));
	expect_secrets(2, secret, 2);
	end_daemon(SIGKILL);
	hydns_plugin_cookie_secrets(resolver, secret + 1, 2);
	start_daemon();
	WAIT_FOR(resolver_is("ready"));
	expect_secrets(3, secret + 1, 2);
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	WAIT_FOR(wiped(0) && wiped(1));
	start_resolver();                              /* another one with the same index, which has sent none */
	assert_true(wiped(0) && wiped(1));
	stop_resolver();
	WAIT_FOR(resolver_is("none"));
	end_cleanly();
}

/* A resolver is killed while no hydnsd runs, so it does not come back: its rules go. */
static void a_dead_resolver_is_released(void **state)
{
	pid_t child;
	int status;

	(void)state;
	start_daemon();
	child = fork();
	if (child == 0) {
		start_resolver();
		offer_some(5);
		pause();
	}
	WAIT_FOR(rules() == 5);
	end_daemon(SIGKILL);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	start_daemon();
	WAIT_FOR(resolver_is("none"));
	WAIT_FOR(rules() == 0);
	end_cleanly();
}

static void send_bytes(const char *path, int type, const void *data, size_t len)
{
	int fd = connect_to(path, type);

	assert_true(fd >= 0);
	send(fd, data, len, MSG_NOSIGNAL);
	close(fd);
}

static void bad_clients_do_no_harm(void **state)
{
	static uint8_t noise[HYDNS_MSG_MAX * 2];
	const struct hydns_msg early = { .type = HYDNS_MSG_STATS, .seq = 9 };
	struct hydns_msg reply;
	int fd;

	(void)state;
	start_daemon();
	start_resolver();
	offer_some(5);
	srandom(1);
	for (int round = 0; round < 200; round++) {
		size_t len = (size_t)random() % sizeof(noise) + 1;

		for (size_t i = 0; i < len; i++)
			noise[i] = (uint8_t)random();
		if (round % 2) {       /* a head that fits, so that hydnsd handles the message */
			struct hydns_msg head = { .type = (uint32_t)random() % 16 };

			len = sizeof(head) + (size_t)random() % (HYDNS_MSG_MAX - sizeof(head));
			head.len = (uint32_t)(len - sizeof(head));
			memcpy(noise, &head, sizeof(head));
		}
		send_bytes(plugin_path, SOCK_SEQPACKET, noise, len);
		send_bytes(control_path, SOCK_STREAM, noise, len);
	}
	send_bytes(control_path, SOCK_STREAM, "{\"cmd\":\"rules\",\"limit\":-5}\n{}\n[]\n", 33);
	fd = connect_to(plugin_path, SOCK_SEQPACKET);
	assert_int_equal(send(fd, &early, sizeof(early), 0), sizeof(early));
	assert_true(recv(fd, &reply, sizeof(reply), MSG_TRUNC) > (ssize_t)sizeof(reply));
	assert_int_equal(reply.type, HYDNS_MSG_REFUSED);
	assert_int_equal(reply.seq, 9);
	close(fd);
	assert_int_equal(rules(), 5);
	assert_true(resolver_is("ready"));
	stop_resolver();
	end_cleanly();
}

static int ends_with(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void starts_that_cannot_be_fail(void **state)
{
	char stale[64];
	int fd;
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	(void)state;
	assert_int_equal(ends_with(spawn("lo", (const char *[]){ "--user", "no-such-user", NULL })), 1);
	assert_int_not_equal(access(pins, F_OK), 0); /* nothing is left of it */
	start_daemon();
	assert_int_equal(ends_with(spawn("lo", NULL)), 1); /* a second one, while the first lives */
	assert_int_equal(rules(), 0);
	end_cleanly();

	snprintf(stale, sizeof(stale), "%s", control_path); /* a socket file without a listener */
	strcpy(a.sun_path, stale);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	start_daemon();
	end_cleanly();
}

static void another_user_will_do(void **state)
{
	(void)state;
	start_daemon_with((const char *[]){ "--user", "nobody", NULL });
	start_resolver();              /* a new page needs CAP_BPF and a pin */
	offer_some(5);
	withdraw(1);
	assert_int_equal(rules(), 4);
	stop_resolver();
	assert_int_equal(end_daemon(SIGTERM), 0);
	/* the empty directory belongs to root, so hydnsd cannot remove it any more */
	rmdir(pins);
	assert_int_not_equal(access(pins, F_OK), 0);
	unlink(plugin_path);
	unlink(control_path);
}

#define TEST(f) cmocka_unit_test_teardown(f, leave)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(offers_become_rules_and_go_again),
		TEST(control_flushes), TEST(explain_tells_what_the_plugin_noted),
		TEST(status_tells_how_many_fit),
		TEST(a_killed_daemon_leaves_its_rules_to_the_next),
		TEST(changes_wait_for_the_next_daemon), TEST(marked_names_are_said_to_wait),
		TEST(dead_rules_are_not_taken_over),
		TEST(secrets_reach_the_program_and_leave_it),
		TEST(a_dead_resolver_is_released),
		TEST(bad_clients_do_no_harm),
		TEST(starts_that_cannot_be_fail),
		TEST(another_user_will_do),
	};

	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
