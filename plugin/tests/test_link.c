/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The connection to hydnsd and the link thread: registering, losing hydnsd, connecting again, clocks. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>
#include "plugin/tests/world.h"

#define NOTE "log-queries: kernel answers are not logged"

/* By how much the wall clock is set, as this program's threads see it. */
static _Atomic int64_t wall_set_by_ns;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int64_t ns;

	if (syscall(SYS_clock_gettime, clock, t))
		return -1;
	if (clock != CLOCK_REALTIME && clock != CLOCK_TAI)
		return 0;
	ns = (int64_t)t->tv_sec * (int64_t)HYDNS_NS_PER_S + t->tv_nsec + atomic_load(&wall_set_by_ns);
	t->tv_sec = ns / (int64_t)HYDNS_NS_PER_S;
	t->tv_nsec = ns % (int64_t)HYDNS_NS_PER_S;
	return 0;
}

static void registers(void **state)
{
	struct world *w = *state;
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct hydns_acl_entry acl[700] = { { .prefixlen = 96, .action = HYDNS_ACL_ALLOW } };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t first_beat;

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(hydns_plugin_add_service(w->p, fd), 0);
	close(fd);
	assert_int_equal(hydns_plugin_add_acl(w->p, acl, 700), 0);
	assert_int_equal(hydns_plugin_add_acl(w->p, acl, 1), 0);
	assert_int_equal(hydns_plugin_add_note(w->p, HYDNS_NOTE_OBSTACLE, NOTE), 0);
	start_both(w);
	assert_int_equal(w->peer.rings, THREADS);
	assert_string_equal(w->peer.hello.identity, "test");
	assert_int_equal(w->peer.hello.abi_version, HYDNS_ABI_VERSION);
	assert_int_equal(w->peer.hello.pid, getpid());
	assert_int_equal(w->peer.services, 1);
	assert_int_equal(w->peer.service[0].port, at.sin6_port);
	assert_memory_equal(w->peer.service[0].addr, &at.sin6_addr, 16);
	assert_int_equal(w->peer.acl_entries, 701);
	assert_string_equal(peer_note(&w->peer, HYDNS_NOTE_OBSTACLE), NOTE " ");
	assert_string_equal(peer_note(&w->peer, HYDNS_NOTE_CLIENTS), "");
	assert_int_equal(page_epoch(w), w->peer.first_epoch);
	first_beat = page_heartbeat(w);
	assert_true(first_beat > 0);
	assert_true(BECOMES(page_heartbeat(w) > first_beat));
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	first_beat = page_heartbeat(w);
	assert_true(BECOMES(page_heartbeat(w) > first_beat));   /* the page is ours */
}

/* The last that there is room for, and one more. */
static void room_ends(void **state)
{
	struct world *w = *state;
	struct rlimit many;
	struct hydns_acl_entry *acl = calloc(HYDNS_ACL_ENTRIES, sizeof(*acl));
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &many), 0);
	many.rlim_cur = many.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &many), 0);
	for (unsigned i = 0; i < HYDNS_SERVICES; i++)
		assert_int_equal(hydns_plugin_add_service(w->p, fd), 0);
	assert_int_equal(hydns_plugin_add_service(w->p, fd), -E2BIG);
	assert_int_equal(w->p->services, HYDNS_SERVICES);
	assert_int_equal(hydns_plugin_add_acl(w->p, acl, HYDNS_ACL_ENTRIES), 0);
	assert_int_equal(hydns_plugin_add_acl(w->p, acl, 1), -E2BIG);
	assert_int_equal(w->p->acls, HYDNS_ACL_ENTRIES);
	close(fd);
	free(acl);
}

static void stop_takes_the_rules_along(void **state)
{
	struct world *w = *state;
	uint32_t epoch;

	for (int i = 0; i < 2; i++) {          /* a reload: a new object in the same process */
		struct hydns_plugin_options o = world_options(w);

		if (i == 0)
			peer_start(&w->peer);
		assert_int_equal(hydns_plugin_start(w->p), 0);
		assert_true(connected(w));
		epoch = page_epoch(w);
		hydns_plugin_stop(w->p);
		w->p = NULL;
		assert_true(page_epoch(w) != epoch);
		assert_int_equal(page_heartbeat(w), 0);
		assert_int_equal(atomic_load(&w->peer.byes), i + 1);
		w->p = hydns_plugin_new(&o);
		w->t = hydns_plugin_thread(w->p, 0);
	}
	peer_stop(&w->peer);
}

static void reconnects(void **state)
{
	struct world *w = *state;
	unsigned lines;
	uint32_t epoch;

	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(BECOMES(log_has("cannot be reached")));
	lines = log_lines;
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ENOTCONN);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_ALL, NULL, 0);         /* with neither hydnsd nor page */
	peer_start(&w->peer);
	assert_true(connected(w));
	/* However many attempts there were; one line more if an attempt came between bind() and listen(). */
	assert_true(BECOMES(log_has("connected to hydnsd")));
	assert_in_range(log_lines, lines + 1, lines + 2);
	assert_int_equal(page_generation(w), 1);  /* carried over to the page that came later */
	epoch = page_epoch(w);
	assert_offered(w);

	peer_stop(&w->peer);
	assert_true(disconnected(w));
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ENOTCONN);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_int_equal(page_epoch(w), epoch);   /* adopted: rules stay valid */
	assert_ptr_equal(w->peer.old_page, NULL);

	peer_stop(&w->peer);
	assert_true(disconnected(w));
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_ALL, NULL, 0);
	assert_int_equal(page_epoch(w), epoch + 1);
	assert_int_equal(page_generation(w), 2);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www)); /* nothing is left to be withdrawn */
	assert_int_equal(page_epoch(w), epoch + 1);
	assert_int_equal(page_generation(w), 3);
	atomic_store(&w->peer.forgetful, true);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_int_equal(page_epoch(w), w->peer.first_epoch);
	assert_int_equal(page_generation(w), 3);
	assert_int_equal(w->peer.old_page->heartbeat_ns, 0);
	assert_true(w->peer.old_page->epoch != epoch + 1);
	peer_stop(&w->peer);
}

static void refusal_is_told(void **state)
{
	struct world *w = *state;

	atomic_store(&w->peer.behaviour, PEER_REFUSING);
	peer_start(&w->peer);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(BECOMES(log_has("no room for another resolver: raise the limit")));
	assert_false(atomic_load(&w->p->ready));
	assert_true(BECOMES(atomic_load(&w->peer.hellos) >= 3));
	assert_int_equal(log_lines, 1);
	atomic_store(&w->peer.behaviour, PEER_WILLING);
	assert_true(connected(w));
	peer_stop(&w->peer);
}

/* It asks no more until that hydnsd has ended: its connection tells, and another hydnsd may be there. */
static void a_hydnsd_of_another_version_is_left_alone(void **state)
{
	struct world *w = *state, *o;
	void *other;

	atomic_store(&w->peer.behaviour, PEER_OTHER_ABI);
	peer_start(&w->peer);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(BECOMES(log_has("answers every query itself: speaks ABI 1: restart the resolver")));
	assert_int_equal(log_lines, 1);
	assert_int_equal(world_setup(&other), 0);
	o = other;
	atomic_store(&o->peer.behaviour, PEER_REFUSING);        /* for another reason: this one comes again */
	peer_start(&o->peer);
	assert_int_equal(hydns_plugin_start(o->p), 0);
	assert_true(BECOMES(atomic_load(&o->peer.hellos) >= 4));
	peer_stop(&o->peer);
	assert_int_equal(world_teardown(&other), 0);
	assert_int_equal(atomic_load(&w->peer.hellos), 1);
	peer_stop(&w->peer);
	atomic_store(&w->peer.behaviour, PEER_WILLING);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_int_equal(atomic_load(&w->peer.hellos), 2);
	assert_offered(w);
	peer_stop(&w->peer);
}

/* The part that hydnsd refuses may be the one with a "deny". */
static void half_an_access_list_is_none(void **state)
{
	struct world *w = *state;
	struct hydns_acl_entry acl[700] = { { .prefixlen = 96, .action = HYDNS_ACL_ALLOW } };

	assert_int_equal(hydns_plugin_add_acl(w->p, acl, 700), 0);
	atomic_store(&w->peer.behaviour, PEER_NO_ACL);
	peer_start(&w->peer);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(BECOMES(atomic_load(&w->peer.hellos) >= 2));
	assert_int_equal(atomic_load(&w->peer.ready), 0);
	atomic_store(&w->peer.behaviour, PEER_WILLING);
	assert_true(connected(w));
	assert_int_equal(w->peer.acl_entries, 700);
	peer_stop(&w->peer);
}

/* TTLs are wall-clock seconds, rules count monotonic ones: when the clock is set, forward or back, every rule is wrong. */
static void a_step_of_the_wall_clock_ends_all(void **state)
{
	static const int64_t steps[] = { 2, -2 };
	struct world *w = *state;

	start_both(w);
	for (size_t i = 0; i < 2; i++) {
		uint64_t beat = page_heartbeat(w), generation = page_generation(w);
		uint32_t epoch = page_epoch(w);

		assert_true(BECOMES(page_heartbeat(w) > beat)); /* the link thread has read the clock as it is */
		atomic_fetch_add(&wall_set_by_ns, steps[i] * (int64_t)HYDNS_NS_PER_S);
		assert_true(BECOMES(page_epoch(w) == epoch + 1));
		assert_true(page_generation(w) > generation);   /* and what was looked up before is not offered */
	}
	assert_true(log_has("the wall clock was set by"));
	peer_stop(&w->peer);
}

static uint64_t beat_after(struct world *w, uint64_t beat)
{
	assert_true(BECOMES(page_heartbeat(w) > beat));
	return page_heartbeat(w);
}

/* The heartbeat with which it went to rest, or a later one. */
static uint64_t at_rest(struct world *w)
{
	assert_true(BECOMES(atomic_load(&w->p->rest) == HYDNS_REST_RESTING));
	return page_heartbeat(w);
}

/* Whether act ends a rest before its time. A machine that is busy may do that too late. */
static bool wakes(struct world *w, void (*act)(struct world *w))
{
	for (unsigned i = 0; i < 10; i++) {
		uint64_t beat = at_rest(w);

		act(w);
		if (beat_after(w, beat) - beat < HYDNS_HEARTBEAT_REST_NS)
			return true;
	}
	return false;
}

static void ask_in_vain(struct world *w)
{
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
}

static void rests_while_nothing_happens(void **state)
{
	struct world *w = *state;
	uint64_t beat;

	start_both(w);
	assert_offered(w);
	beat = at_rest(w);
	for (int i = 0; i < 3; i++) {
		uint64_t next = beat_after(w, beat);

		assert_true(next - beat >= HYDNS_HEARTBEAT_REST_NS);
		beat = next;
	}
	assert_true(wakes(w, assert_offered));
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	assert_true(wakes(w, ask_in_vain));                    /* while it waits for hydnsd */
	peer_stop(&w->peer);
}

static void stays_awake(struct world *w)
{
	/* two beats, because it may have rested before */
	uint64_t begun = beat_after(w, beat_after(w, page_heartbeat(w)));

	for (uint64_t beat = begun; beat < begun + 2 * HYDNS_HEARTBEAT_QUIET_NS; beat = beat_after(w, beat))
		assert_int_not_equal(atomic_load(&w->p->rest), HYDNS_REST_RESTING);
}

static void does_not_rest_without_hydnsd(void **state)
{
	struct world *w = *state;

	start_both(w);
	assert_offered(w);
	at_rest(w);
	hydns_plugin_changed(w->t, www, sizeof(www));          /* the test reads no frame, as a hydnsd that hangs */
	stays_awake(w);
	empty_rings(w);
	at_rest(w);
	lose_hydnsd(w);
	stays_awake(w);
}

static void page_tells_the_tai_offset(void **state)
{
	struct world *w = *state;
	struct timex kernel = { 0 };

	start_both(w);
	assert_true(adjtimex(&kernel) >= 0);                    /* reads: no mode is set */
	assert_int_equal(__atomic_load_n(&w->peer.page->tai_offset, __ATOMIC_SEQ_CST), kernel.tai);
	peer_stop(&w->peer);
}

/* A loss is logged once, with what becomes of kernel answers, and no later line contradicts it. */
static void loss_is_told_once(void **state)
{
	struct world *w = *state;

	start_both(w);
	assert_true(BECOMES(log_has("connected to hydnsd")));
	peer_stop(&w->peer);
	assert_true(BECOMES(log_has("connection to hydnsd lost")));
	assert_true(log_has("kernel answers go on, but those of names whose data"));
	peer_start(&w->peer);
	assert_true(connected(w));                              /* after failed attempts */
	assert_true(BECOMES(log_lines == 3));                   /* the link thread says so afterwards */
	assert_false(log_has("cannot be reached"));
	assert_offered(w);
	hydns_plugin_changed(w->t, www, sizeof(www));          /* the peer does not read it */
	peer_stop(&w->peer);
	assert_true(BECOMES(log_lines == 4));
	assert_false(log_has("not confirmed"));
}

static void bad_options(void **state)
{
	struct world w = { .peer.path = "/nowhere" };
	struct hydns_plugin_options good = world_options(&w), o[9];

	(void)state;
	for (size_t i = 0; i < 9; i++)
		o[i] = good;
	o[0].socket = "";
	o[1].identity = NULL;
	o[2].threads = 0;
	o[3].threads = HYDNS_THREADS_MAX + 1;
	o[4].admission = 0;
	o[5].min_ttl = o[5].max_ttl + 1;
	o[6].flags = HYDNS_RESOLVER_READY;
	o[7].refresh_percent = 100;
	o[8].stale.error = "a text that is a little longer than the room for it";
	for (size_t i = 0; i < 9; i++) {
		log_lines = 0;
		assert_null(hydns_plugin_new(&o[i]));
		assert_int_equal(log_lines, 1);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(bad_options), TEST(registers), TEST(room_ends), TEST(stop_takes_the_rules_along),
		TEST(reconnects), TEST(refusal_is_told), TEST(half_an_access_list_is_none),
		TEST(a_hydnsd_of_another_version_is_left_alone),
		TEST(a_step_of_the_wall_clock_ends_all), TEST(page_tells_the_tai_offset),
		TEST(rests_while_nothing_happens), TEST(does_not_rest_without_hydnsd),
		TEST(loss_is_told_once),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
