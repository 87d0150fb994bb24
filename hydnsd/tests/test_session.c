/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What hydnsd sends to a plugin and when, and what it does not take from one. hydnsd can be held here (seams_hydnsd.c), and the
 * plugin is hand-made (client.h): it sends what the plugin library never would.
 */
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hydnsd/tests/client.h"
#include "hydnsd/tests/running.h"
#include "plugin/tests/seams.h"

static const uint8_t www[] = "\3www\7example", other[] = "\5other\7example", example[] = "\7example";

static struct client client;

static int set_up(void **state)
{
	(void)state;
	seams_open();
	atomic_store(&seams->steps, 0);
	atomic_store(&seams->swept, false);
	return 0;
}

/* Expects the next message to acknowledge the request with this number. */
static bool acknowledged(uint32_t seq)
{
	return client_receive(&client) == HYDNS_MSG_ACK && client.in.head.seq == seq;
}

static bool has_message(void *arg)
{
	return client_has_message(arg);
}

/* Lets hydnsd's loop come round, and expects no other message meanwhile: the reply to each STATS is the next one. Returns the
 * number of rules. */
static uint64_t rules_and_no_reply(void)
{
	struct hydns_counts counts = { 0 };

	for (int i = 0; i < 2; i++) {
		client_send(&client, HYDNS_MSG_STATS, NULL, 0);
		assert_int_equal(client_receive(&client), HYDNS_MSG_COUNTS);
		assert_int_equal(client.in.head.seq, client.seq);
		memcpy(&counts, client.in.payload, sizeof(counts));
	}
	return counts.rules;
}

static void start(void)
{
	start_daemon();
	client_open(&client);
}

static void end(void)
{
	client_close(&client);
	end_cleanly();
}

/* -- the doorbell ------------------------------------------------------------------------------------------------ */
/* A plugin can empty the doorbell when it has rung, and whether reading it then waits is the plugin's to say, too: both sides have one
 * file description. */
static void a_doorbell_makes_nobody_wait(void **state)
{
	uint64_t count;

	(void)state;
	start();
	assert_int_equal(fcntl(client.doorbell, F_SETFL, 0), 0);
	seam_hold(SEAM_LOOP, "bell");
	assert_int_equal(eventfd_write(client.doorbell, 1), 0);
	assert_true(seam_wait(SEAM_LOOP, "bell", NULL, NULL));
	assert_int_equal(read(client.doorbell, &count, sizeof(count)), sizeof(count));
	seams_open();
	client_send(&client, HYDNS_MSG_STATS, NULL, 0);
	assert_int_equal(client_receive(&client), HYDNS_MSG_COUNTS);
	end();
}

/* It rings again, though nobody has read it, and only then: another round of the loop does not find it ringing still. */
static void a_doorbell_rings_each_time(void **state)
{
	(void)state;
	start();
	for (unsigned n = 1; n <= 3; n++) {
		seam_hold(SEAM_LOOP, "bell");
		assert_int_equal(eventfd_write(client.doorbell, 1), 0);
		assert_true(seam_wait(SEAM_LOOP, "bell", NULL, NULL));
		seam_go(SEAM_LOOP);
		client_send(&client, HYDNS_MSG_STATS, NULL, 0);
		assert_int_equal(client_receive(&client), HYDNS_MSG_COUNTS);
	}
	seams_open();
	end();
}

/* -- acknowledgements ---------------------------------------------------------------------------------------- */
/* A withdrawal is acknowledged when a barrier has returned that began after the rule had gone; each waits for its own. */
static void withdrawals_wait_for_the_barrier(void **state)
{
	uint32_t first, second;

	(void)state;
	start();
	client_offer(&client, 0, "www.example.", 1);
	client_offer(&client, 0, "other.example.", 1);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 2);
	seam_hold(SEAM_GRACE, "barrier");
	client_withdraw(&client, HYDNS_SCOPE_NAME, www, sizeof(www), 2);
	first = client.seq;
	assert_true(seam_wait(SEAM_GRACE, "barrier", has_message, &client));
	assert_int_equal(rules_and_no_reply(), 1);
	client_withdraw(&client, HYDNS_SCOPE_NAME, other, sizeof(other), 3);
	second = client.seq;
	assert_int_equal(rules_and_no_reply(), 0);
	seam_go(SEAM_GRACE);
	assert_true(acknowledged(first));
	assert_true(seam_wait(SEAM_GRACE, "barrier", has_message, &client));
	assert_int_equal(rules_and_no_reply(), 0);
	seam_go(SEAM_GRACE);
	assert_true(acknowledged(second));
	seams_open();
	end();
}

/* Names and subtrees of one message go before it is acknowledged, and with them older offers. */
static void names_go_together(void **state)
{
	static const uint8_t entries[] = "\1\5other\7example\0" "\2\3www\7example";
	struct { struct hydns_withdraw_names head; uint8_t entry[sizeof(entries)]; } m = { .head = { .generation = 2, .count = 2 } };
	uint32_t asked;

	(void)state;
	_Static_assert(HYDNS_SCOPE_NAME == 1 && HYDNS_SCOPE_SUBTREE == 2, "as in entries");
	start();
	client_offer(&client, 0, "www.example.", 1);
	client_offer(&client, 0, "a.www.example.", 1);
	client_offer(&client, 0, "other.example.", 1);
	client_offer(&client, 0, "a.other.example.", 1);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 4);
	seam_hold(SEAM_LOOP, "step");
	memcpy(m.entry, entries, sizeof(entries));
	client_send(&client, HYDNS_MSG_WITHDRAW_NAMES, &m, sizeof(m.head) + sizeof(entries));
	asked = client.seq;
	assert_true(seam_wait(SEAM_LOOP, "step", has_message, &client));
	assert_int_equal(atomic_load(&seams->rules), 3); /* the name's at once, the subtree's by a scan */
	seam_hold(SEAM_GRACE, "barrier");
	seam_open(SEAM_LOOP);
	WAIT_FOR(atomic_load(&seams->rules) == 1);
	assert_true(seam_wait(SEAM_GRACE, "barrier", has_message, &client));
	assert_int_equal(rules_and_no_reply(), 1);
	seams_open();
	assert_true(acknowledged(asked));
	assert_int_equal(rules_and_no_reply(), 1);     /* and no second reply */
	client_offer(&client, 0, "www.example.", 1);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rejected("GENERATION"), 1);
	end();
}

/* A scan of the store takes several rounds of the loop, of which the second finds rules, too. */
#define CAPACITY "150000"
#define MANY     40000
#define TURNS    4

static bool barrier_over(void *arg)
{
	(void)arg;
	return seam_is_quiet(SEAM_GRACE);
}

static void a_subtree_has_gone_when_it_is_acknowledged(void **state)
{
	unsigned turns = 0;
	char name[32];

	(void)state;
	start_daemon_with((const char *[]){ "--capacity", CAPACITY, NULL });
	client_open(&client);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%u.example.", i);
		client_offer(&client, i % CLIENT_RINGS, name, 1);
	}
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), MANY);
	seam_hold(SEAM_LOOP, "step");
	client_withdraw(&client, HYDNS_SCOPE_SUBTREE, example, sizeof(example), 2);
	while (!atomic_load(&seams->swept)) {
		assert_true(seam_wait(SEAM_LOOP, "step", has_message, &client));
		assert_false(client_has_message(&client));
		WAIT_FOR(barrier_over(NULL));  /* for what has gone so far */
		turns++;
		seam_go(SEAM_LOOP);
		WAIT_FOR(atomic_load(&seams->steps) == turns);
	}
	assert_in_range(turns, TURNS, 2 * TURNS);
	assert_int_equal(atomic_load(&seams->rules), 0);
	seams_open();
	assert_true(acknowledged(client.seq));
	end();
}

/* CATCH_UP waits for the frames that came before it, for the withdrawals that they begin, and for a barrier. */
static void catch_up_waits_for_the_barrier(void **state)
{
	(void)state;
	start();
	client_offer(&client, 0, "www.example.", 1);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 1);
	seam_hold(SEAM_GRACE, "barrier");
	client_changed(&client, 1, www, sizeof(www), 2);
	client_send(&client, HYDNS_MSG_CATCH_UP, NULL, 0);
	assert_true(seam_wait(SEAM_GRACE, "barrier", has_message, &client));
	assert_int_equal(atomic_load(&seams->rules), 0);
	seams_open();
	assert_true(acknowledged(client.seq));
	end();
}

/* Before the change that CATCH_UP follows there are more frames than hydnsd takes in one round. */
static void catch_up_waits_for_the_rings(void **state)
{
	char name[32];

	(void)state;
	start();
	seam_hold(SEAM_LOOP, "take_offer");
	for (unsigned i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "n%u.example.", i);
		client_offer(&client, 0, name, 1);
	}
	client_changed(&client, 0, www, sizeof(www), 2);
	client_send(&client, HYDNS_MSG_CATCH_UP, NULL, 0);
	assert_true(seam_wait(SEAM_LOOP, "take_offer", NULL, NULL));
	atomic_store(&seams->withdrawals, 0);
	seam_hold(SEAM_LOOP, "take_changed");
	seam_go(SEAM_LOOP);
	assert_true(seam_wait(SEAM_LOOP, "take_changed", has_message, &client));
	assert_int_equal(atomic_load(&seams->withdrawals), 0);
	seams_open();
	assert_true(acknowledged(client.seq));
	end();
}

/* -- preloading ------------------------------------------------------------------------------------------------ */
static const struct hydns_preloaded *preloaded(uint32_t *lost)
{
	assert_int_equal(client_receive(&client), HYDNS_MSG_PRELOADED);
	assert_int_equal(client.in.head.seq, client.seq);
	assert_true(client.in.head.len >= sizeof(struct hydns_preloaded));
	*lost = (uint32_t)(client.in.head.len - sizeof(struct hydns_preloaded));
	return (const struct hydns_preloaded *)client.in.payload;
}

static const struct hydns_preloaded *ask_preloaded(uint32_t *lost)
{
	client_send(&client, HYDNS_MSG_PRELOAD, NULL, 0);
	return preloaded(lost);
}

/* What became of the offers that the rings held when it was asked for; and which of the rules were withdrawn since. */
static void preload_is_told_what_became_of_it(void **state)
{
	static const struct build_spec refused = {
		.name = "zone.example.", .type = 252 /* AXFR */, .generation = 6, .flags = HYDNS_RULE_STATIC_TTL | HYDNS_RULE_KEPT,
		.answer[0] = "zone.example. 300 IN A 192.0.2.1",
	};
	const struct hydns_preloaded *m;
	char name[32];
	uint32_t lost;

	(void)state;
	start();
	m = ask_preloaded(&lost);
	assert_int_equal(m->names, 0);
	assert_int_equal(m->all, 1);           /* of a former hydnsd's withdrawals nothing is known */
	client_withdraw(&client, HYDNS_SCOPE_NAME, www, sizeof(www), 6);
	assert_true(acknowledged(client.seq));
	seam_hold(SEAM_LOOP, "take_offer");
	client_preload(&client, 0, "www.example.", 6);
	client_preload(&client, 0, "old.example.", 5);
	client_preload(&client, 1, "other.example.", 6);
	client_offer_spec(&client, 1, &refused);
	client_offer(&client, 1, "popular.example.", 5);
	for (unsigned i = 0; i < 200; i++) {           /* more than hydnsd takes in one round */
		snprintf(name, sizeof(name), "n%u.example.", i);
		client_preload(&client, 0, name, 6);
	}
	assert_true(seam_wait(SEAM_LOOP, "take_offer", NULL, NULL));
	client_send(&client, HYDNS_MSG_PRELOAD, NULL, 0);
	seams_open();
	m = preloaded(&lost);
	assert_int_equal(m->refused, 1);
	assert_int_equal(m->full + m->all, 0);
	assert_int_equal(lost, sizeof(struct hydns_lost) + 13);        /* what a withdrawal has overtaken: old.example. */
	assert_memory_equal(((const struct hydns_lost *)m->lost)->name, "\3old", 4);
	assert_int_equal(rules_and_no_reply(), 202);
	client_withdraw(&client, HYDNS_SCOPE_NAME, www, sizeof(www), 7);
	assert_true(acknowledged(client.seq));
	m = ask_preloaded(&lost);
	assert_int_equal(m->refused, 0);
	assert_int_equal(lost, sizeof(struct hydns_lost) + sizeof(www));
	assert_memory_equal(((const struct hydns_lost *)m->lost)->name, www, sizeof(www));
	ask_preloaded(&lost);
	assert_int_equal(lost, 0);
	end();
}

static bool readable(void *arg)
{
	struct pollfd f = { .fd = *(int *)arg, .events = POLLIN };

	return poll(&f, 1, 0) > 0;
}

/* When hydnsctl flush returns, no program holds a flushed rule. */
static void a_flush_waits_for_the_barrier(void **state)
{
	static const char request[] = "{\"cmd\":\"flush\",\"name\":\"www.example\"}\n";
	char reply[64] = "";
	int fd;

	(void)state;
	start();
	client_offer(&client, 0, "www.example.", 1);
	WAIT_FOR(client_taken(&client));
	seam_hold(SEAM_GRACE, "barrier");
	fd = connect_to(control_path, SOCK_STREAM);
	assert_true(fd >= 0 && write(fd, request, strlen(request)) > 0);
	assert_true(seam_wait(SEAM_GRACE, "barrier", readable, &fd));
	assert_int_equal(rules_and_no_reply(), 0);
	assert_false(readable(&fd));
	seams_open();
	WAIT_FOR(readable(&fd));
	assert_true(read(fd, reply, sizeof(reply) - 1) > 0);
	assert_non_null(strstr(reply, "\"withdrawn\":1"));
	close(fd);
	end();
}

static bool is_acknowledging(void *arg)
{
	(void)arg;
	return seam_is_held(SEAM_LOOP, "acknowledge");
}

/* A rule's slot is not used again until a barrier has returned that began after the rule had gone. */
static void slots_wait_for_the_barrier(void **state)
{
	(void)state;
	start();
	client_offer(&client, 0, "www.example.", 1);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 1);
	seam_hold(SEAM_LOOP, "acknowledge");
	seam_hold(SEAM_GRACE, "barrier");
	client_withdraw(&client, HYDNS_SCOPE_NAME, www, sizeof(www), 2);
	assert_true(seam_wait(SEAM_GRACE, "barrier", is_acknowledging, NULL));
	assert_false(is_acknowledging(NULL));
	seam_open(SEAM_GRACE);
	assert_true(seam_wait(SEAM_LOOP, "acknowledge", NULL, NULL));
	seams_open();
	assert_true(acknowledged(client.seq));
	end();
}

/* A program may be reading the secrets that are overwritten: the set has no number until none does. */
static void secrets_count_after_the_barrier(void **state)
{
	struct hydns_cookies secrets = { .set = 4, .count = 1, .secret = { { 1, 2 } } }, seen;

	(void)state;
	start();
	seam_hold(SEAM_GRACE, "barrier");
	client_send(&client, HYDNS_MSG_COOKIES, &secrets, sizeof(secrets));
	assert_true(seam_wait(SEAM_GRACE, "barrier", has_message, &client));
	read_pin("hydns_cookies", HYDNS_COOKIES_INDEX(0, 4), &seen);
	assert_int_equal(seen.set, 0);
	assert_int_equal(seen.count, 1);
	seams_open();
	assert_true(acknowledged(client.seq));
	read_pin("hydns_cookies", HYDNS_COOKIES_INDEX(0, 4), &seen);
	assert_memory_equal(&seen, &secrets, sizeof(seen));
	seam_hold(SEAM_GRACE, "barrier");
	secrets.set = 5;                       /* the next set, in the other place */
	client_send(&client, HYDNS_MSG_COOKIES, &secrets, sizeof(secrets));
	assert_true(seam_wait(SEAM_GRACE, "barrier", has_message, &client));
	seams_open();
	assert_true(acknowledged(client.seq));
	read_pin("hydns_cookies", HYDNS_COOKIES_INDEX(0, 4), &seen);
	assert_int_equal(seen.count, 0);       /* the former set is gone */
	end();
}

/* -- what is older than a withdrawal --------------------------------------------------------------------------- */
static void an_offer_from_before_a_withdrawal_is_refused(void **state)
{
	(void)state;
	start();
	client_withdraw(&client, HYDNS_SCOPE_NAME, other, sizeof(other), 6);
	assert_true(acknowledged(client.seq));
	client_offer(&client, 0, "www.example.", 5);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 0);
	assert_int_equal(rejected("GENERATION"), 1);
	client_offer(&client, 0, "www.example.", 6);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 1);
	end();
}

/* Older offers of the changed name are rejected, from every ring; other names stay. */
static void an_offer_from_before_a_change_is_refused(void **state)
{
	(void)state;
	start();
	client_changed(&client, 1, www, sizeof(www), 7);
	WAIT_FOR(client_taken(&client));
	client_offer(&client, 0, "www.example.", 6);
	client_offer(&client, 0, "other.example.", 6);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 1);
	assert_int_equal(rejected("GENERATION"), 1);
	client_offer(&client, 0, "www.example.", 7);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 2);
	end();
}

/* Also when an offer and its withdrawal are in one batch of frames. */
static void a_change_withdraws(void **state)
{
	(void)state;
	start();
	client_offer(&client, 0, "www.example.", 1);
	client_offer(&client, 0, "other.example.", 1);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 2);
	client_changed(&client, 0, www, sizeof(www), 2);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 1);
	client_offer(&client, 0, "www.example.", 2);
	client_changed(&client, 0, www, sizeof(www), 3);
	WAIT_FOR(client_taken(&client));
	assert_int_equal(rules_and_no_reply(), 1);
	end();
}

/* -- rings ------------------------------------------------------------------------------------------------------ */
static int make_ring(size_t size, int seals)
{
	int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* A ring that could be cut short is refused: reading it beyond its end would kill hydnsd. */
static void expect_refused(size_t size, int seals)
{
	int fd = make_ring(size, seals);

	client = (struct client){ .sock = hydns_channel_connect(plugin_path) };
	assert_true(client.sock >= 0);
	assert_int_equal(client_hello(&client, &fd, 1), HYDNS_MSG_REFUSED);
	assert_non_null(strstr((char *)client.in.payload, "sealed memfd"));
	if (!(seals & F_SEAL_SHRINK))
		assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	close(client.sock);
	assert_int_equal(rules(), 0);          /* hydnsd lives */
}

static void rings_must_be_sealed(void **state)
{
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int fd[2];

	(void)state;
	start_daemon();
	expect_refused(HYDNS_RING_SIZE, 0);
	expect_refused(HYDNS_RING_SIZE, all & ~F_SEAL_SHRINK);
	expect_refused(HYDNS_RING_SIZE, all & ~F_SEAL_GROW);
	expect_refused(HYDNS_RING_SIZE, all & ~F_SEAL_SEAL);
	expect_refused(HYDNS_RING_SIZE - 4096, all);
	expect_refused(HYDNS_RING_SIZE + 4096, all);
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);  /* a pipe, not a memfd */
	client = (struct client){ .sock = hydns_channel_connect(plugin_path) };
	assert_int_equal(client_hello(&client, fd, 1), HYDNS_MSG_REFUSED);
	close(client.sock);
	close(fd[0]);
	close(fd[1]);
	end_cleanly();
}

/* -- sockets ------------------------------------------------------------------------------------------------------ */
static void assert_open_to(const char *path, mode_t mode, gid_t group)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_gid, group);
}

static void sockets_are_open_to_their_groups(void **state)
{
	const struct group *g = getgrnam("nogroup");
	gid_t group;

	(void)state;
	assert_non_null(g);
	group = g->gr_gid;
	start_daemon();
	assert_open_to(plugin_path, 0600, getegid());
	assert_open_to(control_path, 0600, getegid());
	end_cleanly();
	start_daemon_with((const char *[]){ "--plugin-group", "nogroup", NULL });
	assert_open_to(plugin_path, 0660, group);
	assert_open_to(control_path, 0600, getegid());
	end_cleanly();
	start_daemon_with((const char *[]){ "--control-group", "nogroup", NULL });
	assert_open_to(plugin_path, 0600, getegid());
	assert_open_to(control_path, 0660, group);
	end_cleanly();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, clear)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(withdrawals_wait_for_the_barrier), TEST(names_go_together), TEST(a_subtree_has_gone_when_it_is_acknowledged),
		TEST(a_flush_waits_for_the_barrier), TEST(slots_wait_for_the_barrier), TEST(secrets_count_after_the_barrier),
		TEST(catch_up_waits_for_the_barrier), TEST(catch_up_waits_for_the_rings), TEST(preload_is_told_what_became_of_it),
		TEST(an_offer_from_before_a_withdrawal_is_refused),
		TEST(an_offer_from_before_a_change_is_refused), TEST(a_change_withdraws), TEST(rings_must_be_sealed),
		TEST(sockets_are_open_to_their_groups), TEST(a_doorbell_makes_nobody_wait), TEST(a_doorbell_rings_each_time),
	};

	seams_share();
	take_held_daemon();
	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}
