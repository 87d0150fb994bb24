/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/parking/parking.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/forwarding/forwarding.h"
#include "hydnsd/parking/replay.h"

/* A lost OVER (the ring was full) is noticed that late, and a deadline at most so much after it. */
#define LOOK_MS        10
#define LOOK_QUESTIONS 1024            /* each time; 16,384 questions of a resolver in 160 ms */
/* How much later than a query comes its resolver may have read it: so it is dropped so much later than the resolver drops its reply. */
#define DISCARD_SLACK_NS (50 * HYDNS_NS_PER_MS)
#define AD             0x20            /* in the fourth octet of a message */
/* The end of hydnsd: frames pass at the usual pace, then at once. The service manager and the kernel's watch over stale
 * heartbeats bear a second. */
#define STOP_MS        1000
#define STOP_PACED_MS  800

/* -- from the program ------------------------------------------------------------------------------------- */
/* Whether the page has a word of this question, or it was forwarded. Where the page is gone nothing is under way. */
static bool under_way(void *arg, uint32_t i, uint64_t key)
{
	struct hydnsd *d = arg;
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);
	const volatile struct hydns_under_way_bucket *bucket;

	if (hydnsd_forwarding_is_open(d, i, key))
		return true;
	if (!page)
		return false;
	bucket = (const volatile struct hydns_under_way_bucket *)(page + 1) + HYDNS_UNDER_WAY_BUCKET(key);
	for (unsigned n = 0; n < HYDNS_UNDER_WAY_ENTRIES; n++) {
		uint64_t word = bucket->entry[n].word;

		if (word && (word ^ key) >> 32 == 0)
			return true;
	}
	return false;
}

static void subtract(struct hydnsd *d, uint32_t i)
{
	__atomic_sub_fetch(&hydns_kern_parking(d->kern, i)->waiting, 1, __ATOMIC_RELAXED);
	d->parking->of[i].counts.lost++;
}

static void take_record(const struct hydns_parked *record, void *arg)
{
	struct hydnsd *d = arg;
	struct hydnsd_parking *p = d->parking;
	struct hydnsd_parked_asked asked;
	uint32_t i = record->resolver;

	if (i >= HYDNS_RESOLVERS)
		return;
	if (!hydnsd_parked_read(record, &asked))
		subtract(d, i);
	else if (!hydnsd_parked_put(p->parked, record, !p->of[i].park_ms || !under_way(d, i, record->key)))
		hydnsd_replay_now(d, record);
}

static void drain(struct hydnsd *d)
{
	hydns_kern_parked_drain(d->kern, take_record, d);
}

void hydnsd_parking_take(struct hydnsd *d, const struct hydns_parked *record)
{
	take_record(record, d);
}

void hydnsd_parking_drain(struct hydnsd *d)
{
	drain(d);
}

void hydnsd_parking_ended(struct hydnsd *d, uint32_t i, uint64_t key)
{
	if (d->parking)
		hydnsd_parked_over(d->parking->parked, i, key);
}

/* -- limits ------------------------------------------------------------------------------------------------ */
static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Without any, the program need not read packets while the store is empty. */
static void set_most(struct hydnsd *d, uint32_t i, uint32_t most)
{
	bool any = false;

	d->parking->of[i].most = most;
	for (uint32_t n = 0; n < HYDNS_RESOLVERS; n++)
		any |= d->parking->of[n].most != 0;
	hydns_kern_parking_exists(d->kern, any);
	__atomic_store_n(&hydns_kern_parking(d->kern, i)->max, most, __ATOMIC_RELEASE);
}

void hydnsd_parking_forbid(struct hydnsd *d, uint32_t i)
{
	if (!d->parking)
		return;
	set_most(d, i, 0);
	d->parking->of[i].park_ms = 0;
	hydnsd_parked_over_all(d->parking->parked, i);
}

/* The process is ready: what waited for it, at whichever index, goes on. */
static void release(struct hydnsd *d, uint32_t process)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		if (d->parking->of[i].held_for == process)
			d->parking->of[i].held_until_ms = 0;
}

/* Whether another registration of the process, which will answer, is ready already. */
static bool is_ready(const struct hydnsd *d, uint32_t process)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		if (d->parking->of[i].most && d->resolver[i].hello.pid == process)
			return true;
	return false;
}

void hydnsd_parking_hold(struct hydnsd *d, uint32_t i, uint32_t process)
{
	if (!d->parking)
		return;
	hydnsd_parking_forbid(d, i);
	if (is_ready(d, process))
		return;
	d->parking->of[i].held_until_ms = hydnsd_now_ms() + HYDNSD_PARKING_HELD_MS;
	d->parking->of[i].held_for = process;
}

bool hydnsd_parking_holds(const struct hydnsd *d, uint32_t i)
{
	uint64_t until = d->parking->of[i].held_until_ms;

	return until && hydnsd_now_ms() < until;
}

void hydnsd_parking_begin(struct hydnsd *d, uint32_t i)
{
	if (!d->parking)
		return;
	hydnsd_parking_forbid(d, i);
	d->parking->of[i] = (struct hydnsd_parking_resolver){
		.held_until_ms = d->parking->of[i].held_until_ms, .held_for = d->parking->of[i].held_for,
	};
	hydns_kern_parking_counts(d->kern, i, &d->parking->of[i].base);
}

void hydnsd_parking_allow(struct hydnsd *d, uint32_t i)
{
	const struct hydns_hello *h = &d->resolver[i].hello;
	uint32_t most = least(least(h->pending_max, HYDNS_PENDING_MOST), d->options.pending_max);
	struct hydns_parking *shared;

	if (!d->parking)
		return;
	hydnsd_parking_forbid(d, i);
	release(d, h->pid);
	d->parking->of[i].held_until_ms = 0;
	if (!h->park_ms || !most || !h->pending_per_question)
		return;
	shared = hydns_kern_parking(d->kern, i);
	shared->seed[0] = h->seed[0];
	shared->seed[1] = h->seed[1];
	shared->resume = most / 2;
	shared->per_question = h->pending_per_question;
	d->parking->of[i].per_question = h->pending_per_question;
	d->parking->of[i].park_ms = least(h->park_ms, HYDNS_UNDER_WAY_MS);
	d->parking->of[i].discards = (h->flags & HYDNS_RESOLVER_DISCARDS) && h->park_ms < HYDNS_UNDER_WAY_MS;
	__atomic_store_n(&shared->heartbeat_ns, hydnsd_now_ns(), __ATOMIC_RELAXED);
	set_most(d, i, most);
}

/* -- periodic work ------------------------------------------------------------------------------------------ */
void hydnsd_parking_beat(struct hydnsd *d)
{
	uint64_t now = hydnsd_now_ns();

	for (uint32_t i = 0; d->parking && i < HYDNS_RESOLVERS; i++)
		if (d->parking->of[i].most)
			__atomic_store_n(&hydns_kern_parking(d->kern, i)->heartbeat_ns, now, __ATOMIC_RELAXED);
}

void hydnsd_parking_over(struct hydnsd *d, uint32_t i, uint64_t key)
{
	if (!d->parking)
		return;
	drain(d);                      /* a query that was parked before must not wait for the next look */
	hydnsd_parked_over(d->parking->parked, i, key);
}

/* The resolver's own counters lack a query that it has not read. The program parks plain queries alone: what is additional is OPT. */
static void count_discarded(const struct hydns_parked *record, void *arg)
{
	const uint8_t *m = (const uint8_t *)(record + 1) + record->dns_off;
	struct hydns_discards one = {
		.queries = 1, .ipv6 = record->ipv6 != 0, .edns = (m[10] | m[11]) != 0,
		.edns_do = (record->variant & HYDNS_VARIANT_DO) != 0, .ad = (m[3] & AD) != 0,
	};
	struct hydnsd_parked_asked asked;
	struct hydnsd *d = arg;

	if (hydnsd_parked_read(record, &asked))
		hydnsd_rules_discarded(d->rules, record->resolver, ntohs(asked.qtype), &one);
}

/* Returns how many. A resolver that drops its reply to them need not read them; it may have read them later than they came. */
static uint32_t discard(struct hydnsd *d, uint32_t i, uint64_t before_ns)
{
	uint32_t n = hydnsd_parked_discard(d->parking->parked, i, before_ns > DISCARD_SLACK_NS ? before_ns - DISCARD_SLACK_NS : 0,
					   count_discarded, d);

	__atomic_sub_fetch(&hydns_kern_parking(d->kern, i)->waiting, n, __ATOMIC_RELAXED);
	d->parking->of[i].counts.discarded += n;
	return n;
}

static void time_out(struct hydnsd *d, uint64_t now_ns)
{
	struct hydnsd_parking *p = d->parking;

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_parking_resolver *r = &p->of[i];
		uint64_t most_ns = r->park_ms * HYDNS_NS_PER_MS, before_ns = now_ns > most_ns ? now_ns - most_ns : 0;

		if (hydnsd_parked_waiting(p->parked, i))
			r->counts.timed_out += r->discards ? discard(d, i, before_ns) : hydnsd_parked_time_out(p->parked, i, before_ns);
	}
}

static void look(struct hydnsd *d, uint64_t now_ns)
{
	struct hydnsd_parking *p = d->parking;

	if (!hydnsd_parked_count(p->parked) || now_ns / HYDNS_NS_PER_MS - p->looked_ms < LOOK_MS)
		return;
	p->looked_ms = now_ns / HYDNS_NS_PER_MS;
	time_out(d, now_ns);
	hydnsd_parked_look(p->parked, now_ns, LOOK_QUESTIONS, under_way, d);
}

int hydnsd_parking_work(struct hydnsd *d)
{
	int wait;

	if (!d->parking)
		return -1;
	hydnsd_parking_beat(d);
	drain(d);
	look(d, hydnsd_now_ns());
	wait = hydnsd_replay_work(d);
	return hydnsd_parked_count(d->parking->parked) ? hydnsd_sooner(wait, LOOK_MS) : wait;
}

/* -- start and end ------------------------------------------------------------------------------------------ */
/* The ring buffer fills. The round that follows takes what is there; else it is read every 50 ms, and with each OVER. */
static void readable(void *arg, uint32_t events)
{
	(void)arg;
	(void)events;
}

/* What a former hydnsd has allowed ends. Then no program parks anything, and what is in the ring buffer is all that waits. */
static void take_over(struct hydnsd *d)
{
	bool parked = false;

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydns_parking *shared = hydns_kern_parking(d->kern, i);

		parked |= shared->max || shared->waiting;
		__atomic_store_n(&shared->max, 0, __ATOMIC_RELEASE);
	}
	hydns_kern_parking_exists(d->kern, false);
	if (!parked)
		return;
	hydnsd_grace_wait();
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		hydns_kern_parking(d->kern, i)->waiting = UINT32_MAX / 2; /* until it is known, more than drain() can subtract */
	drain(d);
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		hydns_kern_parking(d->kern, i)->waiting = hydnsd_parked_of(d->parking->parked, i);
	if (hydnsd_parked_count(d->parking->parked))
		hydnsd_log(HYDNSD_LOG_INFO, "%u queries that the former hydnsd had parked go to their resolvers",
			   hydnsd_parked_count(d->parking->parked));
}

int hydnsd_parking_start(struct hydnsd *d, char *why, size_t room)
{
	struct hydnsd_parking *p;
	int fd = hydns_kern_parked_fd(d->kern);
	uint64_t secret;

	if (fd < 0)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p && getrandom(&secret, sizeof(secret), 0) == (ssize_t)sizeof(secret))
		p->parked = hydnsd_parked_new(d->options.pending_max ? d->options.pending_max : HYDNS_PENDING_MOST, secret);
	if (p && p->parked)
		p->watch = hydnsd_loop_watch(d->loop, fd, EPOLLIN, readable, NULL);
	d->parking = p;
	if (p && p->watch) {
		take_over(d);
		return 0;
	}
	snprintf(why, room, "out of memory");
	return -ENOMEM;
}

/* ms: what hydnsd_replay_work() returns; not 0: there is nothing to do before the next millisecond. */
static void nap(int ms)
{
	const struct timespec t = { .tv_nsec = (long)HYDNS_NS_PER_MS };

	if (ms)
		nanosleep(&t, NULL);
}

static void replay_all(struct hydnsd *d)
{
	uint64_t begun = hydnsd_now_ms(), now = begun;
	struct hydnsd_parking *p = d->parking;

	hydnsd_grace_wait();           /* no program parks any more */
	drain(d);
	for (; hydnsd_parked_count(p->parked) && now - begun < STOP_MS; now = hydnsd_now_ms()) {
		p->hurry = now - begun >= STOP_PACED_MS;
		nap(hydnsd_replay_work(d));
	}
	if (hydnsd_parked_count(p->parked))
		hydnsd_log(HYDNSD_LOG_WARNING, "%u parked queries are lost: they could not be replayed within a second",
			   hydnsd_parked_count(p->parked));
}

void hydnsd_parking_leave(struct hydnsd *d)
{
	struct hydnsd_parking *p = d->parking;

	if (!p)
		return;
	drain(d);
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		hydnsd_parked_over_all(p->parked, i);
		p->of[i].held_until_ms = 0;
	}
	p->hurry = true;
	for (int wait; (wait = hydnsd_replay_work(d)) >= 0; )
		nap(wait);
	p->hurry = false;
}

void hydnsd_parking_stop(struct hydnsd *d)
{
	struct hydnsd_parking *p = d->parking;
	bool used = false;

	if (!p)
		return;
	for (uint32_t i = 0; p->watch && i < HYDNS_RESOLVERS; i++) {
		used |= p->of[i].most != 0 || hydnsd_parking_pending(d, i);
		hydnsd_parking_forbid(d, i);
		p->of[i].held_until_ms = 0;
	}
	if (used)
		replay_all(d);
	hydnsd_watch_end(p->watch);
	hydnsd_parked_free(p->parked);
	free(p);
	d->parking = NULL;
}

/* -- looking ------------------------------------------------------------------------------------------------ */
uint32_t hydnsd_parking_pending(struct hydnsd *d, uint32_t i)
{
	return d->parking ? __atomic_load_n(&hydns_kern_parking(d->kern, i)->waiting, __ATOMIC_RELAXED) : 0;
}

void hydnsd_parking_program_counts(struct hydnsd *d, uint32_t i, struct hydns_parking_count *out)
{
	const struct hydns_parking_count *base;

	memset(out, 0, sizeof(*out));
	if (!d->parking || hydns_kern_parking_counts(d->kern, i, out))
		return;
	base = &d->parking->of[i].base;
	out->parked -= base->parked;
	for (unsigned n = 0; n < HYDNS_SPILLS; n++)
		out->spilled[n] -= base->spilled[n];
}
