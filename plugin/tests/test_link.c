/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The whole library against the tests' own counterpart, over a real socket, rings and page. */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>
#include "hydns/hash.h"
#include "plugin/internal.h"
#include "plugin/tests/world.h"

#define TYPE_A           1
#define TYPE_CNAME       5
#define CHANGED_LEN      48    /* octets of the CHANGED frame of www */
#define NOTE             "log-queries: kernel answers are not logged"

/* name: in lower case */
static bool touched(struct world *w, const uint8_t *name, size_t len)
{
	uint16_t place = HYDNS_PLACE(hydns_place_hash(name, (uint8_t)len, w->peer.hello.seed));

	return __atomic_load_n(&w->peer.page->marks[place / 64], __ATOMIC_SEQ_CST) >> place % 64 & 1;
}

static unsigned marks(struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < HYDNS_MARK_WORDS; i++)
		n += (unsigned)__builtin_popcountll(__atomic_load_n(&w->peer.page->marks[i], __ATOMIC_SEQ_CST));
	return n;
}

/* Without hydnsd, and every rule counts. */
static void lose(struct world *w)
{
	lose_hydnsd(w);
	assert_false(suspended(w));
}

/* The wall clock as this program's threads see it, set by so much. */
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

/* -- registering ------------------------------------------------------------------------------------ */
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
	assert_string_equal(w->peer.note[HYDNS_NOTE_OBSTACLE], NOTE " ");
	assert_string_equal(w->peer.note[HYDNS_NOTE_CLIENTS], "");
	assert_int_equal(page_epoch(w), w->peer.first_epoch);
	first_beat = page_heartbeat(w);
	assert_true(first_beat > 0);
	assert_true(BECOMES(page_heartbeat(w) > first_beat));
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	first_beat = page_heartbeat(w);
	assert_true(BECOMES(page_heartbeat(w) > first_beat));   /* the page is ours */
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

static bool hot(struct world *w, time_t expires)
{
	return hydns_plugin_sample(w->t, time(NULL)) &&
	       hydns_plugin_hot(w->t, hydns_plugin_prefetch(w->t, &w->reply.question), w->reply.question.fixed, expires,
				 hydns_mono_ns() / HYDNS_NS_PER_MS);
}

/* -- leaving ---------------------------------------------------------------------------------------------- */
/* The library's grace periods, which go through here: how many, and what stood on the page as each began. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool held;                       /* those that begin do not end ... */
	bool given_up;                   /* ... until somebody has waited for too long */
	unsigned begun, ended;
	const struct hydns_resolver_page *page;
	uint32_t epoch;
	uint64_t heartbeat;
} graces = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void begin_grace(void)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += 10;
	pthread_mutex_lock(&graces.lock);
	graces.begun++;
	if (graces.page) {
		graces.epoch = __atomic_load_n(&graces.page->epoch, __ATOMIC_SEQ_CST);
		graces.heartbeat = __atomic_load_n(&graces.page->heartbeat_ns, __ATOMIC_SEQ_CST);
	}
	while (graces.held && !graces.given_up)
		graces.given_up = pthread_cond_timedwait(&graces.changed, &graces.lock, &deadline) != 0;
	pthread_mutex_unlock(&graces.lock);
}

/* In the place of libc's, for this program. */
long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6], result;
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_membarrier)
		begin_grace();
	result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	pthread_mutex_lock(&graces.lock);
	graces.ended += number == SYS_membarrier;
	pthread_mutex_unlock(&graces.lock);
	return result;
}

static void watch_graces(const struct world *w, bool hold)
{
	pthread_mutex_lock(&graces.lock);
	graces.held = hold;
	graces.begun = graces.ended = 0;
	graces.given_up = false;
	graces.page = w->peer.page;
	pthread_mutex_unlock(&graces.lock);
}

static void release_graces(void)
{
	pthread_mutex_lock(&graces.lock);
	graces.held = false;
	pthread_cond_broadcast(&graces.changed);
	pthread_mutex_unlock(&graces.lock);
}

static unsigned graces_begun(void)
{
	unsigned n;

	pthread_mutex_lock(&graces.lock);
	n = graces.begun;
	pthread_mutex_unlock(&graces.lock);
	return n;
}

/* That no kernel answer is sent any more, and after how many grace periods it was said. */
static _Atomic unsigned times_gone, ended_when_gone;

static void gone(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&graces.lock);
	ended_when_gone = graces.ended;
	pthread_mutex_unlock(&graces.lock);
	times_gone++;
}

static int setup_leaving(void **state)
{
	times_gone = ended_when_gone = 0;
	return world_setup(state);
}

static int teardown_leaving(void **state)
{
	release_graces();                      /* a failed test has not */
	graces.page = NULL;
	return world_teardown(state);
}

static void one_grace_period_is_enough(void **state)
{
	struct world *w = *state;

	start_both(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	watch_graces(w, false);
	hydns_plugin_leave(w->p, gone, NULL);
	hydns_plugin_gone(w->p);
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(graces_begun(), 1);
	assert_int_equal(times_gone, 1);
	assert_int_equal(atomic_load(&w->peer.byes), 1);
	peer_stop(&w->peer);
}

/* hydnsd is still asked for what the kernel has answered, when that is no longer growing. */
static void one_that_is_closed_waits_no_more(void **state)
{
	struct world *w = *state;
	struct hydns_counts c;
	uint32_t epoch;

	start_both(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	watch_graces(w, false);
	epoch = page_epoch(w);
	hydns_plugin_close(w->p);
	assert_int_equal(graces_begun(), 1);
	assert_true(page_epoch(w) != epoch);
	atomic_store(&w->p->ready, true);      /* as when the link thread has connected in this moment */
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ENOTCONN);
	atomic_store(&w->peer.answered, 5);
	assert_true(hydns_plugin_counts(w->p, &c, 10000));
	assert_int_equal(c.answered, 5);
	hydns_plugin_withdraw_all(w->p);
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(graces_begun(), 1);
	peer_stop(&w->peer);
}

/* Times with hydnsd and without it go on taking turns. */
static void one_that_is_closed_loses_hydnsd(void **state)
{
	struct world *w = *state;

	start_both(w);
	hydns_plugin_close(w->p);
	lose_hydnsd(w);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_int_equal(atomic_load(&w->p->interval) % 2, 1);
	peer_stop(&w->peer);
}

/* What is withdrawn need not be withdrawn again; but offers go on after that. */
static void one_that_withdrew_all_is_not_closed(void **state)
{
	struct world *w = *state;

	start_both(w);
	watch_graces(w, false);
	hydns_plugin_withdraw_all(w->p);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(graces_begun(), 2);
	peer_stop(&w->peer);
}

static int bound_socket(struct sockaddr_in6 *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)at, len) || getsockname(fd, (struct sockaddr *)at, &len)) {
		close(fd);
		return -1;
	}
	return fd;
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Whoever reloads goes on while the grace period lasts: the rules are dead, no offer is taken, and its addresses can be bound
 * anew. Its successor is there, and connects when the former has said goodbye. */
static void a_reload_waits_for_nothing(void **state)
{
	struct world *w = *state;
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct hydns_plugin_options o = world_options(w);
	struct hydns_plugin *former = w->p;
	int fd = bound_socket(&at), again;
	unsigned descriptors;
	uint32_t epoch;

	start_both(w);
	descriptors = open_descriptors() - 1;
	hydns_plugin_stop(w->p);
	w->p = former = hydns_plugin_new(&o);
	w->t = hydns_plugin_thread(w->p, 0);
	hydns_names_watch(w->p->names);
	assert_int_equal(hydns_plugin_add_service(former, fd), 0);
	close(fd);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
	assert_int_equal(offer(w, hydns_plugin_stamp(former)), 0);
	epoch = page_epoch(w);
	watch_graces(w, true);
	hydns_plugin_leave(former, gone, NULL);
	assert_true(page_epoch(w) != epoch);
	assert_int_equal(page_heartbeat(w), 0);
	assert_int_equal(offer(w, hydns_plugin_stamp(former)), -ENOTCONN);
	again = bound_socket(&at);
	assert_true(again >= 0);
	close(again);
	w->p = hydns_plugin_take_over(&o, former);
	w->t = hydns_plugin_thread(w->p, 0);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(BECOMES(graces_begun() == 1));
	assert_true(graces.epoch != epoch);            /* dead before it began */
	assert_int_equal(graces.heartbeat, 0);
	assert_int_equal(times_gone, 0);
	assert_int_equal(atomic_load(&w->peer.byes), 1);
	assert_false(graces.given_up);                 /* nobody above has waited for one */
	release_graces();
	assert_true(connected(w));
	assert_int_equal(times_gone, 1);
	assert_int_equal(ended_when_gone, 1);
	assert_int_equal(atomic_load(&w->peer.byes_before), 2);
	assert_int_equal(graces_begun(), 1);
	assert_int_equal(open_descriptors(), descriptors);     /* nothing of the former is left */
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	peer_stop(&w->peer);
}

static void succeed(struct world *w, const struct hydns_plugin_options *o)
{
	struct hydns_plugin *former = w->p;

	hydns_plugin_leave(former, NULL, NULL);
	w->p = hydns_plugin_take_over(o, former);
	w->t = hydns_plugin_thread(w->p, 0);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
}

/* A resolver that had two and goes on with one. */
static void a_successor_ends_all_that_it_is_given(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options o = world_options(w);
	struct hydns_plugin *former[2] = { w->p, hydns_plugin_new(&o) };
	unsigned descriptors;

	peer_start(&w->peer);
	for (int i = 0; i < 2; i++) {
		w->p = former[i];
		assert_int_equal(hydns_plugin_start(w->p), 0);
		assert_true(connected(w));
		if (i == 0)
			descriptors = open_descriptors();
		hydns_plugin_leave(w->p, NULL, NULL);
		hydns_plugin_gone(w->p);
	}
	hydns_plugin_take_along(former[0], former[1]);
	w->p = hydns_plugin_take_over(&o, former[0]);
	w->t = hydns_plugin_thread(w->p, 0);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
	assert_int_equal(atomic_load(&w->peer.byes_before), 2);
	assert_true(open_descriptors() < descriptors);
	peer_stop(&w->peer);
}

/* It makes no new ones, which would take a reload tens of milliseconds. What was hot is so at once, and is offered anew
 * although the former has just offered the same. */
static void a_successor_goes_on_with_the_tables(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options o = world_options(w);
	const time_t expires = time(NULL) + TTL;
	const void *names = w->p->names, *offered = w->p->offered, *ends = w->p->ends, *sketch = w->t->hot.sketch;

	start_both(w);
	while (!hot(w, expires))
		;
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	assert_false(hot(w, expires));
	succeed(w, &o);
	assert_ptr_equal(w->p->names, names);
	assert_ptr_equal(w->p->offered, offered);
	assert_ptr_equal(w->p->ends, ends);
	assert_ptr_equal(w->t->hot.sketch, sketch);
	assert_ptr_equal(w->t->hot.offered, offered);
	assert_true(hot(w, expires));
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);

	o.capacity *= 100;                     /* those of another size are new */
	o.threads--;
	succeed(w, &o);
	assert_false(hot(w, expires));
	while (!hot(w, expires))
		;
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ESTALE);        /* nobody watched yet */
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	hydns_plugin_stop(w->p);
	w->p = hydns_plugin_new(&o);          /* without a former one */
	w->t = hydns_plugin_thread(w->p, 0);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	assert_true(connected(w));
	assert_false(hot(w, expires));
	peer_stop(&w->peer);
}

/* One that cannot begin leaves the former to whoever has it. */
static void a_successor_that_fails_takes_nothing(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options bad = world_options(w);

	bad.threads = 0;
	start_both(w);
	watch_graces(w, false);
	hydns_plugin_leave(w->p, gone, NULL);
	assert_null(hydns_plugin_take_over(&bad, w->p));
	hydns_plugin_stop(w->p);
	bad.threads = THREADS;
	w->p = hydns_plugin_new(&bad);
	hydns_plugin_leave(w->p, NULL, NULL);
	w->p = hydns_plugin_take_over(&bad, w->p);
	hydns_plugin_wait_former(w->p);       /* neither was ever started: the teardown stops both */
	assert_int_equal(graces_begun(), 1);
	peer_stop(&w->peer);
}

/* With hydnsd away, or never there, or without a link thread: who asks is told, and nothing hangs. */
static void leaves_whatever_the_link_does(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options o = world_options(w);

	hydns_plugin_leave(w->p, gone, NULL);
	assert_int_equal(times_gone, 1);
	hydns_plugin_gone(w->p);
	hydns_plugin_stop(w->p);
	w->p = hydns_plugin_new(&o);
	assert_int_equal(hydns_plugin_start(w->p), 0);
	hydns_plugin_leave(w->p, gone, NULL);
	hydns_plugin_gone(w->p);
	hydns_plugin_leave(w->p, gone, NULL);         /* a second one wants to know as well */
	hydns_plugin_stop(w->p);
	assert_int_equal(times_gone, 3);
	w->p = hydns_plugin_new(&o);
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	start_both(w);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));      /* given up here; the link thread still waits */
	hydns_plugin_leave(w->p, gone, NULL);
	hydns_plugin_gone(w->p);
	assert_true(BECOMES(times_gone == 4));
	peer_stop(&w->peer);
}

/* Not even one that was never started, as when there is no thread to be had. */
static void no_socket_is_held_after_leaving(void **state)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct world *w = *state;
	int fd = bound_socket(&at);

	assert_int_equal(hydns_plugin_add_service(w->p, fd), 0);
	close(fd);
	assert_int_equal(bound_socket(&at), -1);
	hydns_plugin_leave(w->p, NULL, NULL);
	fd = bound_socket(&at);
	assert_true(fd >= 0);
	close(fd);
}

/* With a hydnsd that hangs just then: the list of addresses empties while it is gone through. */
static void leaves_while_an_address_is_tried_again(void **state)
{
	struct sockaddr_in6 at[2] = { { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT },
				      { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT } };
	struct world *w = *state;

	for (int i = 0; i < 2; i++) {
		int fd = bound_socket(&at[i]);

		assert_int_equal(hydns_plugin_add_service(w->p, fd), 0);
		close(fd);
	}
	atomic_store(&w->peer.behaviour, PEER_OCCUPIED);
	start_both(w);
	assert_int_equal(w->peer.services, 1);
	assert_true(log_has("hydnsd refused a listening address: another resolver has this address"));
	assert_true(BECOMES(atomic_load(&w->peer.retries)));
	hydns_plugin_leave(w->p, gone, NULL);
	hydns_plugin_gone(w->p);
	hydns_plugin_stop(w->p);
	w->p = NULL;
	assert_int_equal(times_gone, 1);
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
	/* However many attempts there were. One more when an attempt came between bind() and listen(). */
	assert_true(BECOMES(log_has("connected to hydnsd")));
	assert_in_range(log_lines, lines + 1, lines + 2);
	assert_int_equal(page_generation(w), 1);  /* carried over to the page that came later */
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);

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

/* A part that hydnsd does not take may be the one that keeps somebody out. */
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

/* -- offers -------------------------------------------------------------------------------------------- */
static void offers_what_is_hot(void **state)
{
	struct world *w = *state;
	const time_t expires = time(NULL) + TTL;
	union { struct hydns_offer offer; uint8_t room[2048]; } f;
	unsigned seen = 1;
	uint64_t woken;

	assert_int_equal(hydns_plugin_start(w->p), 0);
	for (int i = 0; i < 2 * ADMISSION; i++)
		assert_false(hot(w, expires));          /* nobody to offer it to */
	peer_start(&w->peer);
	assert_true(connected(w));
	w->reply.question.variant = HYDNS_VARIANT_DO;           /* another question */
	while (!hot(w, expires))
		seen++;
	assert_in_range(seen, ADMISSION, ADMISSION + 1);        /* a doorkeeper may hide the first */
	w->reply.question.variant = 0;
	assert_true(hot(w, expires));

	while (read(w->peer.doorbell, &woken, sizeof(woken)) > 0)
		;
	w->peer.ring[0]->need_wakeup = 1;
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	assert_int_equal(read(w->peer.doorbell, &woken, sizeof(woken)), sizeof(woken));
	assert_non_null(peer_frame(&w->peer, 0, f.room, sizeof(f.room)));
	assert_int_equal(f.offer.frame.type, HYDNS_FRAME_OFFER);
	assert_int_equal(f.offer.epoch, page_epoch(w));
	assert_int_equal(f.offer.generation, page_generation(w));
	assert_int_equal(f.offer.ttl, TTL);
	assert_in_range(f.offer.count, ADMISSION, 100);
	assert_int_equal(ntohs(f.offer.qtype), 1);
	assert_int_equal(ntohs(f.offer.ancount), 2);
	assert_int_equal(f.offer.flags, HYDNS_RULE_SECURE);
	assert_int_equal(f.offer.name_len, sizeof(www));
	assert_memory_equal(f.offer.data, www_lower, sizeof(www));
	assert_memory_equal(f.offer.data + sizeof(www), w->reply.wire + 12 + sizeof(www) + 4,
			    f.offer.answer_len);
	/* base: the wall second began less than a second (and a test's stall) ago */
	assert_in_range(hydns_mono_ns() - f.offer.base_ns, 0, 5 * HYDNS_NS_PER_S);
	assert_null(peer_frame(&w->peer, 0, f.room, sizeof(f.room)));
	assert_int_equal(w->peer.ring[0]->offered, 1);
	assert_in_range(w->peer.ring[0]->queries, 2 * ADMISSION + seen + 1, 2 * ADMISSION + seen + 1);
	peer_stop(&w->peer);
}

static void does_not_repeat_offers(void **state)
{
	struct world *w = *state;
	const time_t now = time(NULL), expires = now + TTL;
	struct hydns_question *q = &w->reply.question;

	start_both(w);
	while (!hot(w, expires))
		;
	assert_false(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 1)); /* never offered */
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, expires, false,
					     hydns_plugin_stamp(w->p)), 0);
	assert_false(hot(w, expires));
	assert_true(hot(w, expires + TTL));       /* renewed: at once */
	assert_true(BECOMES(hot(w, expires)));    /* after a while again */
	assert_false(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 4));
	assert_true(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 3)); /* the last tenth */
	assert_false(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 3));
	assert_true(BECOMES(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 1)));
	assert_false(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires));
	hydns_plugin_withdraw_all(w->p);
	assert_true(hot(w, expires));             /* hydnsd has it no more */
	peer_stop(&w->peer);
}

/* Questions that are counted before their answers are known, and answers that are offered later; what nobody was told
 * spares its look-ups and loses nothing. */
static void counts_before_the_answer(void **state)
{
	struct world *w = *state;
	const time_t now = time(NULL), expires = now + TTL;
	const struct hydns_question *q = &w->reply.question;
	uint64_t key, now_ms = hydns_mono_coarse_ms();
	uint32_t sightings = 0;

	start_both(w);
	key = hydns_plugin_prefetch(w->t, q);
	for (unsigned seen = 1; seen < ADMISSION; seen++) {
		assert_true(hydns_plugin_sample(w->t, now));
		assert_int_equal(hydns_plugin_sighted(w->t, key, now_ms), 0);
	}
	assert_false(hydns_plugin_due(w->t, q, 0, expires, now_ms));
	while (!sightings)
		sightings = hydns_plugin_sighted(w->t, key, now_ms);
	assert_true(hydns_plugin_due(w->t, q, sightings, expires, now_ms));
	assert_false(hydns_plugin_offered(w->t, q, expires + TTL, now, hydns_plugin_stamp(w->p)));
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	now_ms = hydns_mono_coarse_ms();
	assert_false(hydns_plugin_due(w->t, q, sightings, expires, now_ms));
	assert_true(hydns_plugin_due(w->t, q, sightings, expires + TTL, now_ms));
	assert_true(hydns_plugin_offered(w->t, q, expires + TTL, now, hydns_plugin_stamp(w->p)));
	peer_stop(&w->peer);
}

/* Nothing is noted of changes before the first offer, which is refused for that. */
static void the_first_offer_begins_to_watch(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options o = world_options(w);
	struct hydns_plugin *p = w->p;

	w->p = hydns_plugin_new(&o);
	w->t = hydns_plugin_thread(w->p, 0);
	start_both(w);
	assert_false(hydns_plugin_watches(w->p));
	hydns_plugin_changed(w->t, www_lower, sizeof(www));
	assert_false(hydns_plugin_watches(w->p));
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ESTALE);
	assert_true(hydns_plugin_watches(w->p));
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	peer_stop(&w->peer);
	hydns_plugin_stop(p);
}

/* A renewed answer is offered unasked while the former one stands, and not when a removal lies between. */
static void asks_for_renewed(void **state)
{
	struct world *w = *state;
	const time_t now = time(NULL), expires = now + TTL, renewed = expires + TTL;
	struct hydns_question *q = &w->reply.question, other = *q;
	struct hydns_stamp begun;

	start_both(w);
	begun = hydns_plugin_stamp(w->p);
	assert_false(hydns_plugin_offered(w->t, q, renewed, now, begun));     /* never told */
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, expires, false, begun), 0);
	assert_true(hydns_plugin_offered(w->t, q, renewed, now, begun));
	assert_false(hydns_plugin_offered(w->t, q, expires, now, begun));     /* told just now */
	assert_false(hydns_plugin_offered(w->t, q, renewed, renewed, begun)); /* no rule any more */
	other.variant = HYDNS_VARIANT_DO;
	assert_false(hydns_plugin_offered(w->t, &other, renewed, now, begun));
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_false(hydns_plugin_offered(w->t, q, renewed, now, begun));
	begun = hydns_plugin_stamp(w->p);     /* a later resolution, but the removal may hide the cache */
	assert_false(hydns_plugin_offered(w->t, q, renewed, now, begun));
	assert_int_equal(offer(w, begun), 0);
	assert_true(hydns_plugin_offered(w->t, q, renewed, now, begun));
	hydns_plugin_withdraw_all(w->p);
	assert_false(hydns_plugin_offered(w->t, q, renewed, now, hydns_plugin_stamp(w->p)));
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	assert_false(hydns_plugin_offered(w->t, q, renewed, now, hydns_plugin_stamp(w->p)));
}

/* An answer from a zone: it lives as long as it is said to, whatever its TTLs, and is told anew after a withdrawal. */
static void offers_what_is_fixed(void **state)
{
	struct world *w = *state;
	struct hydns_question *q = &w->reply.question;
	const time_t now = time(NULL);
	union { struct hydns_offer offer; uint8_t room[2048]; } f;

	start_both(w);
	q->fixed = true;
	while (!hot(w, now))
		;
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, now + 9 * TTL, false,
					     hydns_plugin_stamp(w->p)), 0);
	assert_non_null(peer_frame(&w->peer, 0, f.room, sizeof(f.room)));
	assert_int_equal(f.offer.flags, HYDNS_RULE_STATIC_TTL);
	assert_int_equal(f.offer.ttl, 9 * TTL);
	assert_false(hot(w, now + TTL));
	hydns_plugin_zone_changed(w->p);
	assert_true(hot(w, now + TTL));
	peer_stop(&w->peer);
}

/* An offer lives no longer than the resolver's max-ttl, whatever its TTLs. */
static void a_life_ends_with_max_ttl(void **state)
{
	static const struct reply_spec lasting = { .name = "www.example.org.", .type = TYPE_A,
		.answer = { "www.example.org. 7200 IN A 192.0.2.1" } };
	union { struct hydns_offer offer; uint8_t room[2048]; } f;
	struct world *w = *state;
	const time_t now = time(NULL);
	struct reply reply;

	start_both(w);
	reply_make(&reply, &lasting);
	assert_int_equal(hydns_plugin_offer(w->t, &reply.question, reply.wire, reply.len, now, now + 7200, false,
					     hydns_plugin_stamp(w->p)), 0);
	reply_free(&reply);
	assert_non_null(peer_frame(&w->peer, 0, f.room, sizeof(f.room)));
	assert_int_equal(f.offer.ttl, 3600);
	peer_stop(&w->peer);
}

/* What the answer rests on without showing it is watched as what it shows. */
static void changes_of_what_is_left_out_are_told(void **state)
{
	static const uint8_t hidden[] = "\6hidden\7example\3org";
	union { struct hydns_frame frame; struct hydns_changed changed; uint8_t room[2048]; } f;
	struct world *w = *state;
	struct hydns_stamp early;

	start_both(w);
	early = hydns_plugin_stamp(w->p);
	hydns_plugin_depends_on(w->t, hidden, sizeof(hidden));
	assert_int_equal(offer(w, early), 0);
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), hidden, sizeof(hidden));
	assert_non_null(peer_frame(&w->peer, 1, f.room, sizeof(f.room)));
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_memory_equal(f.changed.data, hidden, sizeof(hidden));
	hydns_plugin_depends_on(w->t, hidden, sizeof(hidden));
	assert_int_equal(offer(w, early), -ESTALE);
	assert_int_equal(offer(w, early), 0);     /* the same answer, which does not rest on it */
	peer_stop(&w->peer);
}

/* A zone's change waits for hydnsd if something was offered below the origin, and makes what was looked up before the
 * end of the change too old. */
static void zone_changes(void **state)
{
	static const uint8_t root[] = "";
	struct world *w = *state;
	struct hydns_stamp before, between;
	uint32_t epoch;

	start_both(w);
	before = hydns_plugin_stamp(w->p);
	hydns_plugin_zone_changing(w->p, www, sizeof(www));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 0);        /* nothing was offered */
	assert_int_equal(offer(w, before), -ESTALE);
	hydns_plugin_zone_changed(w->p);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	before = hydns_plugin_stamp(w->p);
	hydns_plugin_zone_changing(w->p, root, sizeof(root));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	assert_int_equal(w->peer.last_withdrawal.scope, HYDNS_SCOPE_SUBTREE);
	assert_int_equal(w->peer.last_withdrawal.name_len, sizeof(root));
	between = hydns_plugin_stamp(w->p);
	hydns_plugin_zone_changed(w->p);
	assert_int_equal(offer(w, before), -ESTALE);
	assert_int_equal(offer(w, between), -ESTALE);
	hydns_plugin_zone_changing(w->p, root, sizeof(root));         /* refused offers count, for safety's sake */
	assert_int_equal(atomic_load(&w->peer.withdrawals), 2);
	hydns_plugin_zone_changing(w->p, root, sizeof(root));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 2);
	hydns_plugin_zone_changed(w->p);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	epoch = page_epoch(w);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	hydns_plugin_zone_changing(w->p, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_SUSPENDED); /* without hydnsd: all of it, for now */
	hydns_plugin_zone_changed(w->p);
}

static void refuses_offers(void **state)
{
	struct world *w = *state;
	const time_t now = time(NULL);
	struct hydns_question *q = &w->reply.question;
	struct hydns_stamp s;

	start_both(w);
	s = hydns_plugin_stamp(w->p);
	/* entry about to end, ended, of the future; answer cut short */
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, now + 1, true, s), -EINVAL);
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, now - 1, true, s), -EINVAL);
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now - TTL, now + TTL, true, s),
			 -EINVAL);
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now + 9, now + TTL, true, s),
			 -EINVAL);
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len - 1, now, now + TTL, true, s),
			 -EINVAL);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_int_equal(offer(w, s), -ESTALE);
	s = hydns_plugin_stamp(w->p);
	hydns_plugin_withdraw_all(w->p);
	assert_int_equal(offer(w, s), -ESTALE);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	assert_int_equal(w->peer.ring[0]->offered, 1);
	s = hydns_plugin_stamp(w->p);
	hydns_plugin_kill_rules(w->p);        /* hydnsd would refuse it: another epoch */
	assert_int_equal(offer(w, s), -ESTALE);
	peer_stop(&w->peer);
}

static void full_ring_drops(void **state)
{
	static const uint8_t host[] = "\4host\7example\3net";
	struct world *w = *state;
	union { struct hydns_frame frame; uint8_t room[2048]; } f;
	uint32_t epoch, n = 0, changes = 0;
	int error;

	start_both(w);
	epoch = page_epoch(w);
	while ((error = offer(w, hydns_plugin_stamp(w->p))) == 0)
		n++;
	assert_int_equal(error, -ENOBUFS);
	assert_int_equal(w->peer.ring[0]->dropped, 1);
	assert_true(n > 1000);
	assert_int_equal(page_epoch(w), epoch);
	/* A change or renewal may not be lost for offers, which come again; only for others of their kind. */
	hydns_plugin_ttl_update(w->t, host, sizeof(host), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000, 1000 + TTL);
	assert_int_equal(w->peer.ring[0]->dropped, 1);
	for (n++; changes < HYDNS_RING_BYTES / CHANGED_LEN && page_epoch(w) == epoch; changes++)
		hydns_plugin_changed(w->t, www, sizeof(www));
	assert_true(changes > 1000);
	n += changes;
	n--;
	assert_int_equal(page_epoch(w), epoch + 1);
	while (peer_frame(&w->peer, 0, f.room, sizeof(f.room)))
		n--;
	assert_int_equal(n, 0);
	peer_stop(&w->peer);
}

/* -- changes ---------------------------------------------------------------------------------------------- */
static void changes_are_told(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org", target[] = "\4host\7Example\3net";
	struct world *w = *state;
	union { struct hydns_frame frame; struct hydns_changed changed; uint8_t room[2048]; } f;
	struct hydns_stamp early;
	uint64_t generation;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	early = hydns_plugin_stamp(w->p);
	assert_int_equal(offer(w, early), 0);
	generation = page_generation(w);
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), other, sizeof(other));
	assert_int_equal(page_generation(w), generation);
	assert_null(peer_frame(&w->peer, 1, f.room, sizeof(f.room)));
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), target, sizeof(target));
	assert_int_equal(page_generation(w), generation + 1);
	assert_non_null(peer_frame(&w->peer, 1, f.room, sizeof(f.room)));
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_int_equal(f.changed.generation, generation + 1);
	assert_int_equal(f.changed.name_len, sizeof(target));
	assert_memory_equal(f.changed.data, "\4host\7example\3net", sizeof(target));
	assert_int_equal(offer(w, early), -ESTALE);
	assert_int_equal(page_epoch(w), epoch);
	hydns_plugin_changed(w->t, (const uint8_t *)"\377", 1);          /* no name: everything */
	assert_int_equal(page_epoch(w), ++epoch);

	/* a hydnsd that hangs: the rules wait with what it has not taken */
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_true(BECOMES(suspended(w)));
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	assert_true(suspended(w));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch));
	peer_stop(&w->peer);
}

/* The frame of thread 1's next renewal of a name's RRset; false: it told hydnsd nothing. */
static bool told_renewed(struct world *w, const uint8_t *name, size_t len, uint16_t type, bool *shared)
{
	union { struct hydns_frame frame; struct hydns_changed changed; uint8_t room[2048]; } f;

	time_t now = time(NULL);
	uint64_t before, apart, ends;

	do {                                            /* again if held up between the two clocks */
		before = hydns_mono_ns();
		apart = hydns_real_ns() - before;
	} while (hydns_mono_ns() - before > HYDNS_NS_PER_MS);
	ends = (uint64_t)(now + TTL) * HYDNS_NS_PER_S - apart;
	hydns_plugin_ttl_update(hydns_plugin_thread(w->p, 1), name, len, type, HYDNS_SECTION_AUTHORITY, now, now + TTL);
	if (!peer_frame(&w->peer, 1, f.room, sizeof(f.room)))
		return false;
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_int_equal(f.changed.generation, page_generation(w));
	assert_int_equal(ntohs(f.changed.ttl_of), type);
	assert_int_equal(f.changed.section, HYDNS_SECTION_AUTHORITY);
	assert_int_equal(f.changed.name_len, len);
	assert_in_range(f.changed.end_ns, ends - HYDNS_NS_PER_S / 4, ends + HYDNS_NS_PER_S / 4);
	*shared = f.changed.shared;
	return true;
}

/* www's answer is a CNAME to host.example.net with its address. */
static void renewals_are_told(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org", target[] = "\4host\7example\3net";
	struct world *w = *state;
	struct hydns_stamp early;
	uint32_t epoch;
	bool shared;

	start_both(w);
	epoch = page_epoch(w);
	early = hydns_plugin_stamp(w->p);
	assert_int_equal(offer(w, early), 0);
	assert_false(told_renewed(w, other, sizeof(other), TYPE_A, &shared));
	assert_true(told_renewed(w, target, sizeof(target), TYPE_A, &shared));
	assert_true(shared);
	assert_true(told_renewed(w, www, sizeof(www), TYPE_CNAME, &shared));
	assert_true(shared);
	assert_true(told_renewed(w, www, sizeof(www), TYPE_A, &shared)); /* the question's own */
	assert_false(shared);
	assert_int_equal(offer(w, early), -ESTALE);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	/* nothing is killed when hydnsd cannot be told: the name's rules wait */
	empty_rings(w);
	lose(w);
	hydns_plugin_ttl_update(w->t, www, sizeof(www), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000 + TTL, 1000 + 2 * TTL);
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	assert_true(touched(w, www_lower, sizeof(www)) && marks(w) == 1);
}

/* A second is within what may differ, two are not; and back is earlier than a rule may have been built from. */
static void small_moves_add_up(void **state)
{
	static const uint8_t target[] = "\4host\7example\3net";
	union { struct hydns_frame frame; struct hydns_changed changed; uint8_t room[2048]; } f;
	struct world *w = *state;

	start_both(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	hydns_plugin_ttl_update(hydns_plugin_thread(w->p, 1), target, sizeof(target), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000, 1001);
	assert_null(peer_frame(&w->peer, 1, f.room, sizeof(f.room)));
	hydns_plugin_ttl_update(hydns_plugin_thread(w->p, 1), target, sizeof(target), TYPE_A, HYDNS_SECTION_ANYWHERE, 1001, 1002);
	assert_non_null(peer_frame(&w->peer, 1, f.room, sizeof(f.room)));
	assert_int_equal(ntohs(f.changed.ttl_of), TYPE_A);
	hydns_plugin_ttl_update(hydns_plugin_thread(w->p, 1), target, sizeof(target), TYPE_A, HYDNS_SECTION_ANYWHERE, 1002, 1001);
	assert_non_null(peer_frame(&w->peer, 1, f.room, sizeof(f.room)));
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_int_equal(f.changed.ttl_of, 0);
	assert_memory_equal(f.changed.data, target, sizeof(target));
}

static void change_before_the_offer_is_seen(void **state)
{
	struct world *w = *state;
	struct hydns_stamp stamp;

	start_both(w);
	stamp = hydns_plugin_stamp(w->p);
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), www, sizeof(www)); /* no rule yet: no generation */
	assert_int_equal(page_generation(w), stamp.generation);
	assert_int_equal(offer(w, stamp), -ESTALE);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	peer_stop(&w->peer);
}

/* Changes that hydnsd has not acted upon when it dies wait for the next one, and the rules with them. */
static void loss_suspends_rules(void **state)
{
	union { struct hydns_frame frame; struct hydns_changed changed; uint8_t room[2048]; } f;
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	empty_rings(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_false(suspended(w));
	peer_stop(&w->peer);
	assert_true(BECOMES(page_epoch(w) == (epoch | HYDNS_EPOCH_MARKED)));
	assert_true(touched(w, www_lower, sizeof(www)) && marks(w) == 1);
	peer_start(&w->peer);
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	assert_true(suspended(w) && touched(w, www_lower, sizeof(www)));
	assert_int_equal(hydns_plugin_stamp(w->p).epoch, epoch);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	assert_non_null(peer_frame(&w->peer, 0, f.room, sizeof(f.room)));
	assert_int_equal(f.frame.type, HYDNS_FRAME_CHANGED);
	assert_memory_equal(f.changed.data, www_lower, sizeof(www));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch));
	assert_true(BECOMES(marks(w) == 0));
	peer_stop(&w->peer);
}

/* All that waits in any ring when hydnsd is lost, whatever stands between. */
static void loss_marks_all_that_waits(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org", host[] = "\4host\7example\3net";
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	hydns_names_offer(w->p->names, other, sizeof(other), HYDNS_NAMES_ALL, UINT64_MAX, hydns_names_changes(w->p->names));
	empty_rings(w);
	hydns_plugin_ttl_update(w->t, www, sizeof(www), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000, 1002);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	hydns_plugin_changed(w->t, host, sizeof(host));
	hydns_plugin_changed(hydns_plugin_thread(w->p, 1), other, sizeof(other));
	peer_stop(&w->peer);
	assert_true(BECOMES(marks(w) == 3));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	assert_true(touched(w, www_lower, sizeof(www)) && touched(w, host, sizeof(host)) && touched(w, other, sizeof(other)));
}

/* Nobody knows what a ring that can't be read holds. */
static void a_broken_ring_suspends_all(void **state)
{
	struct hydns_frame *f;
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	empty_rings(w);
	f = (struct hydns_frame *)((uint8_t *)w->peer.ring[0] + HYDNS_RING_DATA + w->peer.ring[0]->head % HYDNS_RING_BYTES);
	hydns_plugin_changed(w->t, www, sizeof(www));
	f->len += 8;
	peer_stop(&w->peer);
	assert_true(BECOMES(page_epoch(w) == (epoch | HYDNS_EPOCH_SUSPENDED)));
}

/* A hydnsd that hangs: what waits for it too long is marked, and what comes behind it. */
static void hanging_marks_what_waits(void **state)
{
	static const uint8_t host[] = "\4host\7example\3net";
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	empty_rings(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_true(BECOMES(page_epoch(w) == (epoch | HYDNS_EPOCH_MARKED)));
	assert_true(touched(w, www_lower, sizeof(www)) && marks(w) == 1);
	hydns_plugin_changed(w->t, host, sizeof(host));
	assert_true(touched(w, host, sizeof(host)));            /* at once, until hydnsd has caught up */
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch && marks(w) == 0));
	peer_stop(&w->peer);
}

/* What was acted upon before the loss, and what concerns no rule, does not suspend them. */
static void loss_alone_suspends_nothing(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org";
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	hydns_plugin_changed(w->t, www, sizeof(www));
	empty_rings(w);
	lose_hydnsd(w);
	hydns_plugin_changed(w->t, other, sizeof(other));
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_int_equal(page_epoch(w), epoch);
	assert_int_equal(atomic_load(&w->peer.catch_ups), 0);
	peer_stop(&w->peer);
}

/* Changes while hydnsd is away wait in the ring as long as it has room. When it has none, and only then, the rules are
 * dead, and what changes after that concerns none. */
static void changes_wait_for_hydnsd(void **state)
{
	struct world *w = *state;
	uint32_t epoch, n = 0, head, room;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	room = HYDNS_RING_BYTES - w->peer.ring[0]->head;
	lose_hydnsd(w);
	assert_int_equal(page_epoch(w), epoch);
	for (; hydns_plugin_stamp(w->p).epoch == epoch; n++) {
		hydns_plugin_changed(w->t, www, sizeof(www));
		assert_true(suspended(w));
	}
	assert_int_equal(n, room / CHANGED_LEN + 1);
	head = w->peer.ring[0]->head;
	hydns_plugin_changed(w->t, www, sizeof(www));
	empty_rings(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_int_equal(w->peer.ring[0]->head, head);
	assert_int_equal(hydns_plugin_stamp(w->p).epoch, epoch + 1);
	assert_int_equal(marks(w), 1);
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch + 1));
	peer_stop(&w->peer);
}

/* Renewals leave half of the ring to changes; their rules wait whether they find room or not. */
static void renewals_wait_while_there_is_room(void **state)
{
	static const uint8_t target[] = "\4host\7example\3net";
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	empty_rings(w);
	lose(w);
	for (time_t at = 1000; at < 1000 + 2 * HYDNS_RING_BYTES / CHANGED_LEN; at += 2)
		hydns_plugin_ttl_update(w->t, www, sizeof(www), TYPE_A, HYDNS_SECTION_ANYWHERE, at, at + 2);
	assert_in_range(w->peer.ring[0]->head - w->peer.ring[0]->tail, HYDNS_RING_BYTES / 2, HYDNS_RING_BYTES / 2 + CHANGED_LEN);
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	assert_true(touched(w, www_lower, sizeof(www)) && marks(w) == 1);
	hydns_plugin_ttl_update(w->t, target, sizeof(target), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000, 1002);
	assert_true(touched(w, target, sizeof(target)));
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	peer_start(&w->peer);
	assert_true(BECOMES(atomic_load(&w->peer.catch_ups) == 1));
	empty_rings(w);
	assert_true(BECOMES(page_epoch(w) == epoch));
	peer_stop(&w->peer);
}

/* A flush without hydnsd is final: nothing comes back with it. */
static void a_flush_outlives_suspension(void **state)
{
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	lose_hydnsd(w);
	hydns_plugin_changed(w->t, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_ALL, NULL, 0);
	assert_int_equal(page_epoch(w), (epoch + 1) | HYDNS_EPOCH_MARKED);
	empty_rings(w);
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch + 1));
	peer_stop(&w->peer);
}

/* -- withdrawals ---------------------------------------------------------------------------------------------- */
static uint64_t timed_withdraw(struct world *w, enum hydns_scope scope, const uint8_t *name, size_t len)
{
	uint64_t began = hydns_mono_ns();

	hydns_plugin_withdraw(w->p, scope, name, len);
	return (hydns_mono_ns() - began) / HYDNS_NS_PER_MS;
}

static void withdraws(void **state)
{
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch);                 /* hydnsd has done it */
	assert_int_equal(w->peer.last_withdrawal.generation, 1);
	assert_int_equal(page_generation(w), 1);
	assert_int_equal(w->peer.last_withdrawal.scope, HYDNS_SCOPE_SUBTREE);
	assert_int_equal(w->peer.last_withdrawal.name_len, sizeof(www));
	assert_memory_equal(w->peer.last_withdrawal.name, www_lower, sizeof(www));

	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, (const uint8_t *)"\377", 1); /* no name: everything */
	assert_int_equal(page_epoch(w), epoch + 1);
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	hydns_plugin_withdraw_all(w->p);
	assert_int_equal(page_epoch(w), epoch + 2);
	assert_int_equal(page_generation(w), 3);
	peer_stop(&w->peer);
}

static void withdraw_times_out(void **state)
{
	struct world *w = *state;
	uint32_t epoch;
	uint64_t took;

	start_both(w);
	epoch = page_epoch(w);
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	took = timed_withdraw(w, HYDNS_SCOPE_NAME, www, sizeof(www));
	assert_true(took >= FLUSH_TIMEOUT_MS);
	assert_int_equal(page_epoch(w), epoch + 1);
	/* the link still waits for the first one's reply; this one is not even sent */
	timed_withdraw(w, HYDNS_SCOPE_NAME, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch + 2);
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	hydns_plugin_stop(w->p);                               /* returns without it, too */
	w->p = NULL;
	peer_stop(&w->peer);
}

/* The reply to another request says nothing of this one. */
static void withdraw_takes_its_own_reply_alone(void **state)
{
	struct world *w = *state;

	start_both(w);
	atomic_store(&w->peer.behaviour, PEER_MUDDLED);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
	assert_true(suspended(w));
	atomic_store(&w->peer.behaviour, PEER_WILLING);
	assert_true(BECOMES(!suspended(w)));
	peer_stop(&w->peer);
}

/* TTLs are seconds of the wall clock, rules count monotonic ones: set forward or back, no rule is right any more. */
static void a_step_of_the_wall_clock_ends_all(void **state)
{
	static const int64_t steps[] = { 2, -2 };
	struct world *w = *state;

	start_both(w);
	for (size_t i = 0; i < 2; i++) {
		uint64_t beat = page_heartbeat(w), generation = page_generation(w);
		uint32_t epoch = page_epoch(w);

		assert_true(BECOMES(page_heartbeat(w) > beat)); /* it has seen the clock as it is */
		atomic_fetch_add(&wall_set_by_ns, steps[i] * (int64_t)HYDNS_NS_PER_S);
		assert_true(BECOMES(page_epoch(w) == epoch + 1));
		assert_true(page_generation(w) > generation);   /* and so is nothing that was looked up before */
	}
	assert_true(log_has("the wall clock was set by"));
	peer_stop(&w->peer);
}

static void withdraw_survives_a_dying_hydnsd(void **state)
{
	struct world *w = *state;

	start_both(w);
	for (int i = 0; i < 5; i++) {
		uint32_t epoch = page_epoch(w);

		assert_true(connected(w));
		atomic_store(&w->peer.behaviour, PEER_DYING);
		hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, www, sizeof(www));
		assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
		assert_true(touched(w, www_lower, sizeof(www)));
		assert_int_equal(page_generation(w), i + 1);
		atomic_store(&w->peer.behaviour, PEER_WILLING);
		assert_true(BECOMES(atomic_load(&w->peer.ready) >= i + 2));
		assert_true(BECOMES(page_epoch(w) == epoch));
		assert_int_equal(w->peer.last_withdrawal.generation, i + 1);
	}
	peer_stop(&w->peer);
}

/* Without hydnsd a few withdrawals wait as changes do, each once; with more of them the rules are dead. */
/* Another page, as a hydnsd of another capacity gives: what was suspended and owed was that of the former. */
static void a_new_page_owes_nothing(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org";
	struct world *w = *state;
	uint32_t epoch;

	start_both(w);
	lose_hydnsd(w);
	watch_graces(w, false);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_int_equal(graces_begun(), 1);
	atomic_store(&w->peer.forgetful, true);
	peer_start(&w->peer);
	assert_true(connected(w));
	epoch = page_epoch(w);
	assert_int_equal(epoch, w->peer.first_epoch);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	empty_rings(w);
	lose_hydnsd(w);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, other, sizeof(other));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_SUSPENDED);
	assert_int_equal(graces_begun(), 2);
	atomic_store(&w->peer.forgetful, false);
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	peer_stop(&w->peer);
}

static void withdrawals_wait_for_hydnsd(void **state)
{
	static const uint8_t other[] = "\5other\7example\3org";
	struct world *w = *state;
	uint8_t name[] = "\1a\7example\3org";
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	empty_rings(w);
	lose_hydnsd(w);
	watch_graces(w, false);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_SUSPENDED);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, other, sizeof(other));
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, other, sizeof(other));
	assert_int_equal(graces_begun(), 1);                    /* one suspension, one grace period */
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch));
	assert_int_equal(atomic_load(&w->peer.catch_ups), 1);
	assert_int_equal(atomic_load(&w->peer.withdrawals), 2);
	assert_int_equal(w->peer.last_withdrawal.generation, 3);
	assert_memory_equal(w->peer.last_withdrawal.name, other, sizeof(other));

	lose_hydnsd(w);
	watch_graces(w, false);
	for (; name[1] < 'a' + HYDNS_PENDING_MAX; name[1]++) {
		hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, name, sizeof(name));
		assert_int_equal(page_epoch(w), epoch | HYDNS_EPOCH_MARKED);
		assert_true(touched(w, name, sizeof(name)));
		assert_int_equal(marks(w), name[1] - 'a' + 1);
		assert_int_equal(graces_begun(), name[1] - 'a' + 1); /* other rules count: each waits for its own */
	}
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_NAME, name, sizeof(name));
	assert_int_equal(page_epoch(w), (epoch + 1) | HYDNS_EPOCH_MARKED);
	peer_start(&w->peer);
	assert_true(BECOMES(page_epoch(w) == epoch + 1));
	peer_stop(&w->peer);
}

struct flusher {
	struct world *w;
	unsigned flushes;
};

static void *flush_often(void *arg)
{
	struct flusher *f = arg;

	for (unsigned i = 0; i < f->flushes; i++) {
		struct hydns_counts c;

		hydns_plugin_withdraw(f->w->p, i % 3 ? HYDNS_SCOPE_NAME : HYDNS_SCOPE_ALL, www, sizeof(www));
		hydns_plugin_counts(f->w->p, &c, 10);
	}
	return NULL;
}

/* Several flushing threads and an offering one while hydnsd dies and comes back, sometimes without memory. */
static void concurrent_withdrawals(void **state)
{
	struct world *w = *state;
	struct flusher f = { .w = w, .flushes = 40 };
	pthread_t thread[3];

	start_both(w);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, flush_often, &f), 0);
	for (int i = 0; i < 6; i++) {
		int before = atomic_load(&w->peer.ready);

		for (int k = 0; k < 200; k++) {
			offer(w, hydns_plugin_stamp(w->p));
			hydns_plugin_changed(w->t, www, sizeof(www));
		}
		atomic_store(&w->peer.behaviour, i % 2 ? PEER_DYING : PEER_SILENT);
		peer_stop(&w->peer);
		atomic_store(&w->peer.forgetful, i % 3 == 2);
		atomic_store(&w->peer.behaviour, PEER_WILLING);
		peer_start(&w->peer);
		assert_true(BECOMES(atomic_load(&w->peer.ready) > before));
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_true(connected(w));
	assert_true(page_generation(w) >= 3 * f.flushes);
	assert_int_equal(page_generation(w), hydns_plugin_stamp(w->p).generation);
	empty_rings(w);
	assert_true(BECOMES(!suspended(w)));
	assert_int_equal(page_epoch(w), hydns_plugin_stamp(w->p).epoch);
	peer_stop(&w->peer);
}

/* -- cookie secrets ----------------------------------------------------------------------------------- */
static const uint8_t secret[3][HYDNS_COOKIE_SECRET_LEN] = { "first of sixteen", "another secret 2", "and the third 16" };

static uint32_t page_cookies(struct world *w)
{
	return __atomic_load_n(&w->peer.page->cookies, __ATOMIC_SEQ_CST);
}

static void expect_secrets(struct world *w, uint32_t set, unsigned from, unsigned n)
{
	assert_int_equal(page_cookies(w), set);
	assert_int_equal(w->peer.cookies.set, set);
	assert_int_equal(w->peer.cookies.count, n);
	assert_memory_equal(w->peer.cookies.secret, secret[from], n * sizeof(secret[0]));
}

static void secrets_are_told(void **state)
{
	struct world *w = *state;
	uint32_t epoch;

	hydns_plugin_cookie_secrets(w->p, secret, 1);
	start_both(w);
	expect_secrets(w, 1, 0, 1);
	epoch = page_epoch(w);
	hydns_plugin_cookie_secrets(w->p, secret, 1);          /* the same: no news */
	hydns_plugin_cookie_secrets(w->p, secret, 2);
	expect_secrets(w, 2, 0, 2);
	hydns_plugin_cookie_secrets(w->p, secret + 1, 2);
	expect_secrets(w, 3, 1, 2);
	hydns_plugin_cookie_secrets(w->p, secret, 0);
	expect_secrets(w, 4, 0, 0);
	assert_int_equal(atomic_load(&w->peer.secrets), 4);
	assert_int_equal(page_epoch(w), epoch);                 /* answers stay */
	peer_stop(&w->peer);
}

/* The page outdates them whether hydnsd answers or not; it is told as soon as it listens, on a new page too. */
static void secrets_without_an_answer(void **state)
{
	struct world *w = *state;
	uint64_t took;

	hydns_plugin_cookie_secrets(w->p, secret, 1);
	start_both(w);
	atomic_store(&w->peer.behaviour, PEER_SILENT);
	took = hydns_mono_ns();
	hydns_plugin_cookie_secrets(w->p, secret + 1, 1);
	took = (hydns_mono_ns() - took) / HYDNS_NS_PER_MS;
	assert_true(took >= FLUSH_TIMEOUT_MS);
	assert_int_equal(page_cookies(w), 2);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	hydns_plugin_cookie_secrets(w->p, secret + 2, 1);
	assert_int_equal(page_cookies(w), 3);
	for (int forgetful = 0; forgetful < 2; forgetful++) {
		memset(&w->peer.cookies, 0, sizeof(w->peer.cookies));
		atomic_store(&w->peer.forgetful, forgetful);
		atomic_store(&w->peer.behaviour, PEER_WILLING);
		peer_start(&w->peer);
		assert_true(connected(w));
		expect_secrets(w, 3, 2, 1);
		peer_stop(&w->peer);
		assert_true(disconnected(w));
	}
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

static void counts(void **state)
{
	struct world *w = *state;
	struct hydns_counts c;

	atomic_store(&w->peer.answered, 42);
	start_both(w);
	assert_true(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 42);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	memset(&c, 0, sizeof(c));
	assert_false(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 42);                       /* the last known */
}

/* A hydnsd that knows the page goes on counting; one that does not begins anew, and what was before still counts. */
static void counts_never_fall(void **state)
{
	struct world *w = *state;
	struct hydns_counts c;

	atomic_store(&w->peer.answered, 42);
	start_both(w);
	assert_true(hydns_plugin_counts(w->p, &c, 5000));
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	atomic_store(&w->peer.answered, 50);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_true(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 50);
	atomic_store(&w->peer.answered, 57);                    /* what nobody has asked for, said at the end */
	atomic_store(&w->peer.last_words, true);
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	assert_false(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 57);
	atomic_store(&w->peer.forgetful, true);
	atomic_store(&w->peer.answered, 5);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_true(hydns_plugin_counts(w->p, &c, 5000));
	assert_int_equal(c.answered, 62);
	assert_int_equal(c.ipv6, 14);
	assert_int_equal(c.rules, 3);                           /* of now */
	peer_stop(&w->peer);
}

/* What hydnsd shows of the configuration follows it, whether it is there or not. */
static void notes_follow(void **state)
{
	static const char *const logged[] = { "queries are logged", "responses are logged" };
	struct world *w = *state;
	const char *shown = w->peer.note[HYDNS_NOTE_OBSTACLE];

	assert_int_equal(hydns_plugin_add_note(w->p, HYDNS_NOTE_CLIENTS, "some clients"), 0);
	start_both(w);
	assert_string_equal(shown, "");
	hydns_plugin_set_notes(w->p, HYDNS_NOTE_OBSTACLE, logged, 2);
	assert_string_equal(shown, "queries are logged responses are logged ");
	hydns_plugin_set_notes(w->p, HYDNS_NOTE_OBSTACLE, logged + 1, 1);
	assert_string_equal(shown, "responses are logged ");
	hydns_plugin_set_notes(w->p, HYDNS_NOTE_OBSTACLE, NULL, 0);
	assert_string_equal(shown, "");
	assert_string_equal(w->peer.note[HYDNS_NOTE_CLIENTS], "some clients ");
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	hydns_plugin_set_notes(w->p, HYDNS_NOTE_OBSTACLE, logged, 1);
	peer_start(&w->peer);
	assert_true(connected(w));
	assert_string_equal(shown, "queries are logged ");
	peer_stop(&w->peer);
}

/* As hydnsd would find it: by its own hash of the question. */
static struct hydns_not_offered kept(struct world *w, const struct hydns_question *q)
{
	const struct hydns_not_offered *table = (const void *)((uint8_t *)w->peer.ring[0] + HYDNS_RING_DATA + HYDNS_RING_BYTES);
	uint8_t lower[HYDNS_NAME_MAX];
	uint64_t key;

	hydns_name_lower(lower, q->name, q->name_len);
	key = hydns_key_hash(lower, (uint8_t)q->name_len, htons(q->qtype), q->variant, 0, w->peer.hello.seed);
	return table[HYDNS_NOT_OFFERED_PLACE(key)].key == key ? table[HYDNS_NOT_OFFERED_PLACE(key)] : (struct hydns_not_offered){ 0 };
}

static void assert_kept(struct world *w, const struct hydns_question *q, enum hydns_not_offered_why why, uint32_t value)
{
	assert_int_equal(kept(w, q).what, HYDNS_NOT_OFFERED_WHAT(why, value));
}

static void says_why_it_does_not_offer(void **state)
{
	struct world *w = *state;
	struct hydns_question q = w->reply.question;
	struct hydns_stamp stamp;
	time_t now = time(NULL);

	start_both(w);
	assert_int_equal(kept(w, &q).key, 0);
	stamp = hydns_plugin_stamp(w->p);
	assert_int_equal(offer(w, stamp), 0);
	assert_int_equal(kept(w, &q).key, 0);                   /* an offer costs nothing there */
	assert_int_equal(hydns_plugin_offer(w->t, &q, w->reply.wire, w->reply.len, now, now + 1, true, stamp), -EINVAL);
	assert_kept(w, &q, HYDNS_NOT_OFFERED_SHORT_TTL, 1);
	w->reply.wire[2] |= 0x02;
	assert_int_equal(offer(w, stamp), -EINVAL);
	assert_kept(w, &q, HYDNS_NOT_OFFERED_TRUNCATED, 0);
	w->reply.wire[2] ^= 0x02;
	w->reply.wire[3] |= 2;
	assert_int_equal(offer(w, stamp), -EINVAL);
	assert_kept(w, &q, HYDNS_NOT_OFFERED_ERROR, 2);
	w->reply.wire[3] ^= 2;
	hydns_plugin_withdraw_all(w->p);
	assert_int_equal(offer(w, stamp), -ESTALE);
	assert_kept(w, &q, HYDNS_NOT_OFFERED_CHANGED, 0);
	hydns_plugin_not_offered(w->t, hydns_plugin_key(w->t, &q), HYDNS_NOT_OFFERED_LOCAL_DATA, 0);
	assert_kept(w, &q, HYDNS_NOT_OFFERED_LOCAL_DATA, 0);
	q.variant = HYDNS_VARIANT_DO;
	assert_int_equal(kept(w, &q).key, 0);
	hydns_plugin_not_offered(w->t, hydns_plugin_key(w->t, &q), HYDNS_NOT_OFFERED_SHORT_TTL, UINT32_MAX);
	assert_kept(w, &q, HYDNS_NOT_OFFERED_SHORT_TTL, HYDNS_NOT_OFFERED_VALUE_MOST);
	peer_stop(&w->peer);
}

/* One line says what has become of the kernel's answers, and none that follows contradicts it. */
static void loss_is_told_once(void **state)
{
	struct world *w = *state;

	start_both(w);
	assert_true(BECOMES(log_has("connected to hydnsd")));
	peer_stop(&w->peer);
	assert_true(BECOMES(log_has("connection to hydnsd lost")));
	assert_true(log_has("kernel answers go on, but those of names whose data"));
	peer_start(&w->peer);
	assert_true(connected(w));                              /* after attempts that found nobody */
	assert_int_equal(log_lines, 3);
	assert_false(log_has("cannot be reached"));
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), 0);
	hydns_plugin_changed(w->t, www, sizeof(www));          /* which the peer does not read */
	peer_stop(&w->peer);
	assert_true(BECOMES(log_lines == 4));
	assert_false(log_has("not confirmed"));
}

static void bad_options(void **state)
{
	struct world w = { .peer.path = "/nowhere" };
	struct hydns_plugin_options good = world_options(&w), o[8];

	(void)state;
	for (size_t i = 0; i < 8; i++)
		o[i] = good;
	o[0].socket = "";
	o[1].identity = NULL;
	o[2].threads = 0;
	o[3].threads = HYDNS_THREADS_MAX + 1;
	o[4].admission = 0;
	o[5].min_ttl = o[5].max_ttl + 1;
	o[6].flags = HYDNS_RESOLVER_READY;
	o[7].refresh_percent = 100;
	for (size_t i = 0; i < 8; i++) {
		log_lines = 0;
		assert_null(hydns_plugin_new(&o[i]));
		assert_int_equal(log_lines, 1);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
#define LEAVING(f) cmocka_unit_test_setup_teardown(f, setup_leaving, teardown_leaving)
int main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(bad_options), TEST(registers), TEST(stop_takes_the_rules_along),
		LEAVING(one_grace_period_is_enough), LEAVING(one_that_is_closed_waits_no_more),
		TEST(one_that_is_closed_loses_hydnsd), LEAVING(one_that_withdrew_all_is_not_closed),
		LEAVING(a_reload_waits_for_nothing), LEAVING(a_successor_ends_all_that_it_is_given),
		LEAVING(a_successor_goes_on_with_the_tables), LEAVING(a_successor_that_fails_takes_nothing),
		LEAVING(leaves_whatever_the_link_does), LEAVING(no_socket_is_held_after_leaving),
		LEAVING(leaves_while_an_address_is_tried_again), TEST(reconnects), TEST(refusal_is_told),
		TEST(half_an_access_list_is_none), TEST(offers_what_is_hot), TEST(does_not_repeat_offers),
		TEST(counts_before_the_answer), TEST(the_first_offer_begins_to_watch), TEST(asks_for_renewed),
		TEST(refuses_offers), TEST(offers_what_is_fixed), TEST(a_life_ends_with_max_ttl),
		TEST(changes_of_what_is_left_out_are_told), TEST(zone_changes), TEST(full_ring_drops),
		TEST(changes_are_told), TEST(renewals_are_told), TEST(small_moves_add_up),
		TEST(change_before_the_offer_is_seen), TEST(loss_suspends_rules), TEST(loss_marks_all_that_waits),
		TEST(a_broken_ring_suspends_all), TEST(hanging_marks_what_waits), TEST(loss_alone_suspends_nothing),
		TEST(changes_wait_for_hydnsd), TEST(renewals_wait_while_there_is_room),
		TEST(a_flush_outlives_suspension), TEST(withdraws), TEST(withdraw_times_out),
		TEST(withdraw_takes_its_own_reply_alone), TEST(a_step_of_the_wall_clock_ends_all),
		TEST(withdraw_survives_a_dying_hydnsd), LEAVING(withdrawals_wait_for_hydnsd),
		LEAVING(a_new_page_owes_nothing), TEST(concurrent_withdrawals), TEST(secrets_are_told),
		TEST(secrets_without_an_answer), TEST(page_tells_the_tai_offset), TEST(counts), TEST(counts_never_fall),
		TEST(notes_follow), TEST(says_why_it_does_not_offer), TEST(loss_is_told_once),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
