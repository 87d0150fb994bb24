/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/forwarding/forwarding.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/netdev/reserved_ports.h"
#include "hydnsd/netdev/rpfilter.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/parking/replay.h"
#include "hydnsd/resolvers/intake.h"

#define LOOK_FOUND_MS  1000            /* for a way that is known */
#define LOOK_MISSING_MS 100
#define LOOK_FILTER_MS 5000            /* for rp_filter: reads all links */
#define TRIES          3               /* upstream servers that are asked for one query */
#define AGAIN_MOST     64              /* queries that are sent to another one in a round: each takes a call of some 20 us */
/* A forwarded answer promises a hit a second (the first of the sightings begins the window). Fewer would make it the coldest rule of a
 * full store, which the next one evicts before its client is answered; the promise fades with each second without a hit. */
#define SIGHTINGS      2
#define WINDOW_MS      1000

/* -- open requests ----------------------------------------------------------------------------------------- */
static struct hydnsd_forward_chain *place_of(struct hydnsd_forwarding *f, uint32_t i, uint64_t key)
{
	return &f->place[(key ^ key >> 32 ^ i) & (HYDNSD_FORWARD_PLACES - 1)];
}

static struct hydnsd_forward_open *find(struct hydnsd_forwarding *f, uint32_t i, uint64_t key)
{
	struct hydnsd_forward_open *o;

	LIST_FOREACH(o, place_of(f, i, key), chain)
		if (o->key == key && o->resolver == i)
			return o;
	return NULL;
}

bool hydnsd_forwarding_is_open(struct hydnsd *d, uint32_t i, uint64_t key)
{
	return d->forwarding && d->forwarding->of[i].open && find(d->forwarding, i, key);
}

const struct hydnsd_upstream *hydnsd_forwarding_asked(struct hydnsd *d, uint32_t i, uint64_t key)
{
	const struct hydnsd_forward_open *o = d->forwarding ? find(d->forwarding, i, key) : NULL;

	return o ? &d->forwarding->of[i].upstream[o->facts.upstream] : NULL;
}

static void forget_request(struct hydnsd *d, struct hydnsd_forward_open *o)
{
	struct hydnsd_forward_resolver *r = &d->forwarding->of[o->resolver];
	struct hydnsd_upstream *u = &r->upstream[o->facts.upstream];

	LIST_REMOVE(o, chain);
	TAILQ_REMOVE(&u->open, o, next);
	u->open_count--;
	r->open--;
	free(o);
}

/* Its port and its question are free. */
static void close_request(struct hydnsd *d, struct hydnsd_forward_open *o)
{
	hydns_kern_forward_close(d->kern, o->resolver, o->key, o->facts.port, o->facts.word);
	forget_request(d, o);
}

/* The questions whose answers this round has taken may be sent again: one call of the kernel for all. */
static void close_answered(struct hydnsd *d)
{
	struct hydnsd_forwarding *f = d->forwarding;

	hydns_kern_forward_may_ask(d->kern, f->answered, f->answered_count);
	f->answered_count = 0;
}

/* As end(), of one whose answer has come and has freed the port. Its question stays open until the round has taken all answers: who
 * asks it meanwhile is parked, and comes in again after that. */
static void end_answered(struct hydnsd *d, struct hydnsd_forward_open *o)
{
	struct hydnsd_forwarding *f = d->forwarding;
	uint32_t i = o->resolver;
	uint64_t key = o->key;

	if (f->answered_count == HYDNSD_FORWARD_ANSWERED)
		close_answered(d);
	f->answered[f->answered_count++] = (struct hydns_forward_question){ .key = key, .resolver = i };
	forget_request(d, o);
	hydnsd_parking_ended(d, i, key);
}

/* The question may be sent again, and what waits for it comes in again. */
static void end(struct hydnsd *d, struct hydnsd_forward_open *o)
{
	uint32_t i = o->resolver;
	uint64_t key = o->key;

	close_request(d, o);
	hydnsd_parking_ended(d, i, key);
}

/* Whether the program could know these zones when it sent the request, and the name is in that zone. */
static bool is_sound(const struct hydnsd_forward_resolver *r, const struct hydns_forwarded *f, const uint8_t *name, uint8_t len)
{
	const struct hydnsd_zones *z = r->zones;

	return z && f->number == z->number && f->zone < z->count && f->upstream < z->servers &&
	       (z->zone[f->zone].upstreams >> f->upstream & 1) && hydnsd_zones_find(z, name, len) == (int)f->zone;
}

/* A query was forwarded. One whose request is not sound is the resolver's. */
static void begun(const struct hydns_parked *record, const struct hydns_forwarded *facts, void *arg)
{
	struct hydnsd *d = arg;
	struct hydnsd_forwarding *f = d->forwarding;
	uint32_t i = record->resolver;
	struct hydnsd_parked_asked asked;
	struct hydnsd_forward_open *o = NULL;

	if (i >= HYDNS_RESOLVERS)
		return;
	if (hydnsd_parked_read(record, &asked) && is_sound(&f->of[i], facts, asked.name, record->name_len) &&
	    !find(f, i, record->key))
		o = malloc(sizeof(*o));
	if (o) {
		struct hydnsd_upstream *u = &f->of[i].upstream[facts->upstream];

		*o = (struct hydnsd_forward_open){ .key = record->key, .resolver = i, .facts = *facts, .qtype = asked.qtype,
						   .name_len = record->name_len };
		memcpy(o->name, asked.name, record->name_len);
		LIST_INSERT_HEAD(place_of(f, i, record->key), o, chain);
		TAILQ_INSERT_TAIL(&u->open, o, next);
		u->open_count++;
		u->sent++;
		f->of[i].open++;
	} else {
		f->of[i].counts.ended++;
		hydns_kern_forward_close(d->kern, i, record->key, facts->port, facts->word);
	}
	hydnsd_parking_take(d, record);
}

/* -- answers ------------------------------------------------------------------------------------------------- */
struct zone_question {
	const struct hydnsd_zones *zones;
	int zone;
};

static bool same_zone(void *arg, const uint8_t *name, uint8_t len)
{
	const struct zone_question *q = arg;

	return hydnsd_zones_find(q->zones, name, len) == q->zone;
}

/* The monotonic time at which the second of the wall clock began in which the answer came: TTLs count from there. */
static uint64_t second_begun(uint64_t at_ns)
{
	struct timespec wall;
	uint64_t now = hydnsd_now_ns(), into;

	clock_gettime(CLOCK_REALTIME, &wall);
	into = ((uint64_t)wall.tv_sec * HYDNS_NS_PER_S + (uint64_t)wall.tv_nsec - (now - at_ns)) % HYDNS_NS_PER_S;
	return at_ns - into;
}

/* Makes a rule of the answer. */
static void relay(struct hydnsd *d, struct hydnsd_forward_open *o, const struct hydns_forward_answer *a)
{
	struct hydnsd_forward_resolver *r = &d->forwarding->of[o->resolver];
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, o->resolver);
	struct zone_question q = { r->zones, (int)o->facts.zone };
	const struct hydnsd_relay_terms terms = {
		.name = o->name, .name_len = o->name_len, .qtype = o->qtype, .max_ttl = r->zones->max_ttl,
		.max_negative_ttl = r->zones->max_negative_ttl, .adds = r->zones->flags & HYDNS_FORWARDS_ADDS,
		.soa_ttl = r->zones->flags & HYDNS_FORWARDS_SOA_TTL,
		.keeps_case = d->resolver[o->resolver].hello.flags & HYDNS_RESOLVER_KEEPS_CASE, .same_zone = same_zone, .arg = &q,
	};
	static uint8_t octets[HYDNSD_RELAY_OFFER] __attribute__((aligned(8)));
	struct hydns_offer *offer = (struct hydns_offer *)octets;
	enum hydnsd_relay why = hydnsd_relay((const uint8_t *)(a + 1), a->len, &terms, offer);

	if (why) {
		r->counts.not_relayed[why]++;
		return;
	}
	offer->generation = o->facts.generation;
	offer->epoch = o->facts.epoch;
	offer->base_ns = second_begun(a->at_ns);
	offer->count = SIGHTINGS;
	offer->window_ms = WINDOW_MS;
	/* The plugin takes the number away before it removes anything. */
	if (!page || page->forward != o->facts.number || hydnsd_intake_forwarded(d, o->resolver, offer))
		r->counts.rejected++;
	else
		r->counts.relayed++;
}

static void answered(const struct hydns_forward_answer *a, void *arg)
{
	struct hydnsd *d = arg;
	struct hydnsd_forwarding *f = d->forwarding;
	struct hydnsd_forward_resolver *r;
	struct hydnsd_forward_open *o;
	uint64_t took_ns;

	if (a->resolver >= HYDNS_RESOLVERS)
		return;
	r = &f->of[a->resolver];
	o = find(f, a->resolver, a->key);
	if (!o) {                      /* its request may not have been read yet */
		hydnsd_parking_drain(d);
		o = find(f, a->resolver, a->key);
	}
	if (!o || o->facts.word != a->word || o->facts.port != a->port) {
		r->counts.late++;
		return;
	}
	took_ns = a->at_ns > o->facts.sent_ns ? a->at_ns - o->facts.sent_ns : 0;
	hydnsd_upstream_answered(&r->upstream[o->facts.upstream], took_ns);
	hydnsd_histogram_add(&r->counts.took, HYDNSD_SCALE_WAIT, took_ns, 1);
	relay(d, o, a);
	end_answered(d, o);
}

static void ready(void *arg, uint32_t events)
{
	(void)arg;
	(void)events;                  /* the round that follows takes them */
}

/* -- upstream servers ---------------------------------------------------------------------------------------- */
static void tell_usable(struct hydnsd *d, uint32_t i, uint64_t now_ms)
{
	uint32_t usable = hydnsd_upstreams_usable(&d->forwarding->of[i], now_ms);

	__atomic_store_n(&hydns_kern_forwarding(d->kern, i)->usable, usable, __ATOMIC_RELEASE);
}

/* Whether the host's source validation lets a packet of any source come by any interface: no interface is strict. Only where replies
 * are routed do the ways of a packet and its answer differ. */
static void look_at_filter(struct hydnsd *d, uint64_t now_ms)
{
	struct hydnsd_rpfilter rp;

	if (!d->with.fib || now_ms - d->forwarding->filter_ms < LOOK_FILTER_MS)
		return;
	d->forwarding->filter_ms = now_ms;
	d->forwarding->any_way = !hydnsd_rpfilter_read(&d->options.interface, d->with.vlan, &rp) &&
				 rp.mode != HYDNSD_RPFILTER_STRICT;
}

/* What keeps the program from this way. */
static enum hydnsd_way refuse_way(const struct hydnsd *d, const struct hydns_forward_way *way)
{
	if (way->tag[0] && !d->with.vlan)
		return HYDNSD_WAY_TAGGED;
	return hydnsd_interfaces_attached_to(d, way->ifindex) ? HYDNSD_WAY_FOUND : HYDNSD_WAY_DETACHED;
}

/* While it is written the server is not usable; a program that has chosen it before may send one request that reaches nobody. */
static void look_for_way(struct hydnsd *d, uint32_t i, uint32_t n, uint64_t now_ms)
{
	struct hydnsd_upstream *u = &d->forwarding->of[i].upstream[n];
	struct hydns_forwarding *told = hydns_kern_forwarding(d->kern, i);
	struct hydns_forward_way way = { .port = u->server.port };
	enum hydnsd_way found;

	memcpy(way.addr, u->server.addr, sizeof(way.addr));
	u->looked_ms = now_ms;
	found = hydnsd_way_find(&way, &u->device);
	if (found == HYDNSD_WAY_FOUND)
		found = refuse_way(d, &way);
	way.flags = d->forwarding->any_way ? HYDNS_FORWARD_WAY_ANY : 0;
	if (found == HYDNSD_WAY_FOUND && memcmp(&told->way[n], &way, sizeof(way))) {
		__atomic_store_n(&told->usable, told->usable & ~(1U << n), __ATOMIC_RELEASE);
		told->way[n] = way;
	}
	u->way = found;
}

void hydnsd_forwarding_tick(struct hydnsd *d)
{
	uint64_t now_ms = hydnsd_now_ms();

	for (uint32_t i = 0; d->forwarding && i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_forward_resolver *r = &d->forwarding->of[i];

		if (r->zones)
			look_at_filter(d, now_ms);
		for (uint32_t n = 0; r->zones && n < r->zones->servers; n++) {
			const struct hydnsd_upstream *u = &r->upstream[n];

			if (now_ms - u->looked_ms >= (u->way == HYDNSD_WAY_FOUND ? LOOK_FOUND_MS : LOOK_MISSING_MS))
				look_for_way(d, i, n, now_ms);
		}
		if (r->zones)
			tell_usable(d, i, now_ms);
	}
}

/* -- zones --------------------------------------------------------------------------------------------------- */
static void end_all(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_forward_resolver *r = &d->forwarding->of[i];
	struct hydnsd_forward_open *o;

	for (uint32_t n = 0; n < HYDNS_FORWARD_UPSTREAMS; n++)
		while (r->open && (o = TAILQ_FIRST(&r->upstream[n].open))) {
			r->counts.ended++;
			end(d, o);
		}
}

/* Nothing is forwarded from here on, but by programs that run already. */
static void forget(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_forward_resolver *r = &d->forwarding->of[i];
	struct hydns_forwarding *told = hydns_kern_forwarding(d->kern, i);

	if (!r->zones && !told->number)
		return;
	__atomic_store_n(&told->number, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&told->usable, 0, __ATOMIC_RELEASE);
	end_all(d, i);
	free(r->zones);
	r->zones = NULL;
	hydns_kern_forward_forget(d->kern, i, 0);
}

void hydnsd_forwarding_forbid(struct hydnsd *d, uint32_t i)
{
	if (!d->forwarding)
		return;
	free(d->forwarding->of[i].coming);
	d->forwarding->of[i].coming = NULL;
	forget(d, i);
}

void hydnsd_forwarding_begin(struct hydnsd *d, uint32_t i)
{
	if (!d->forwarding)
		return;
	hydnsd_forwarding_forbid(d, i);
	d->forwarding->of[i] = (struct hydnsd_forward_resolver){ 0 };
	hydnsd_upstreams_set(&d->forwarding->of[i], NULL);
	hydns_kern_forward_counts(d->kern, i, &d->forwarding->of[i].base);
}

/* Whether all holds without which nothing is forwarded; else why says what does not. */
static bool possible(struct hydnsd *d, uint32_t i, char *why, size_t room)
{
	struct hydns_port_run run;

	if (!d->forwarding || !d->parking) {
		snprintf(why, room, "hydnsd forwards nothing: set forwarding: yes and pending-max above 0 in hydnsd.conf, and restart "
			 "it");
		return false;
	}
	if (!d->parking->of[i].most) {
		snprintf(why, room, "no query can wait for an upstream server's answer: set hydns-pending-max and "
			 "hydns-pending-per-question above 0");
		return false;
	}
	if (!d->forwarding->ports)
		d->forwarding->ports = hydnsd_reserved_ports(&run, why, room) && run.count < HYDNS_PORTS &&
				       !hydns_kern_ports_range(d->kern, run.first, run.count);
	return d->forwarding->ports;
}

/* The program uses the new zones when their number is there; the former ones go after that. */
static int tell_zones(struct hydnsd *d, uint32_t i, const struct hydnsd_zones *z)
{
	struct hydns_forwarding *told = hydns_kern_forwarding(d->kern, i);
	uint32_t depths = 0, labels;
	int rc = 0;

	for (uint32_t n = 0; n < z->count && !rc; n++) {
		const struct hydns_forward_zone zone = { .upstreams = z->zone[n].upstreams, .zone = n };

		rc = hydns_kern_forward_zone(d->kern, i, z->number, z->zone[n].name, z->zone[n].name_len, &zone, &labels);
		if (rc == -E2BIG)      /* names below it have too many labels, too */
			rc = 0;
		else
			depths |= 1U << labels;
	}
	told->depths = depths;
	if (!rc)
		__atomic_store_n(&told->number, z->number, __ATOMIC_RELEASE);
	return rc;
}

static bool use(struct hydnsd *d, uint32_t i, char *why, size_t room)
{
	struct hydnsd_forward_resolver *r = &d->forwarding->of[i];
	struct hydnsd_zones *z = r->coming;
	int rc;

	r->coming = NULL;
	forget(d, i);
	if (!z->forwarded) {
		free(z);
		return true;
	}
	hydnsd_upstreams_set(r, z);
	r->zones = z;
	rc = tell_zones(d, i, z);
	if (rc) {
		forget(d, i);
		snprintf(why, room, "cannot tell the program which zones are forwarded: %s", strerror(-rc));
		return false;
	}
	hydnsd_forwarding_tick(d);
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u: %u zones may be forwarded, to %u upstream servers", i, z->forwarded, z->servers);
	return true;
}

/* Whether a message asks for any zone. */
static bool asks(const void *message, size_t len)
{
	const struct hydns_forwards *f = message;

	return len >= sizeof(*f) && f->upstreams;
}

bool hydnsd_forwarding_message(struct hydnsd *d, uint32_t i, const void *message, size_t len, char *why, size_t room)
{
	const struct hydns_forwards *f = message;
	struct hydnsd_forward_resolver *r;
	const char *fault;

	if (asks(message, len) && !possible(d, i, why, room))
		return false;
	if (!d->forwarding)
		return true;           /* nothing is forwarded, as asked */
	r = &d->forwarding->of[i];
	fault = hydnsd_zones_add(&r->coming, message, len);
	if (!fault)
		return f->flags & HYDNS_FORWARDS_LAST ? use(d, i, why, room) : true;
	free(r->coming);
	r->coming = NULL;
	snprintf(why, room, "%s: install hydnsd and the plugin from one release", fault);
	return false;
}

/* -- another server ------------------------------------------------------------------------------------------ */
/* Its server has not answered: has the query come in again, to be sent to another one. What waits beside it goes on waiting. False:
 * there is no other, or it was tried often enough. */
static bool try_another(struct hydnsd *d, struct hydnsd_forward_open *o, uint64_t now_ms)
{
	struct hydnsd_forward_resolver *r = &d->forwarding->of[o->resolver];
	uint32_t tried = o->facts.tried | 1U << o->facts.upstream, i = o->resolver;
	uint64_t key = o->key;

	if (d->forwarding->again >= AGAIN_MOST || __builtin_popcount(tried) >= TRIES ||
	    !(r->zones->zone[o->facts.zone].upstreams & hydnsd_upstreams_usable(r, now_ms) & ~tried))
		return false;
	d->forwarding->again++;
	tell_usable(d, i, now_ms);
	close_request(d, o);
	if (hydnsd_replay_forward(d, i, key, tried))
		r->counts.again++;
	hydnsd_parking_drain(d);       /* the new request */
	if (!find(d->forwarding, i, key))
		hydnsd_parking_ended(d, i, key);
	return true;
}

/* -- periodic work ------------------------------------------------------------------------------------------- */
/* Ends the requests to an upstream server that have waited too long. Returns in how many ms the next has; -1: none waits. */
static int time_out(struct hydnsd *d, struct hydnsd_forward_resolver *r, struct hydnsd_upstream *u, uint64_t now_ns)
{
	struct hydnsd_forward_open *o;

	while ((o = TAILQ_FIRST(&u->open))) {
		uint64_t due = o->facts.sent_ns + hydnsd_upstream_timeout_ms(u) * HYDNS_NS_PER_MS;

		if (now_ns < due)
			return (int)((due - now_ns) / HYDNS_NS_PER_MS) + 1;
		r->counts.timed_out++;
		hydnsd_upstream_timed_out(u, now_ns / HYDNS_NS_PER_MS);
		if (!try_another(d, o, now_ns / HYDNS_NS_PER_MS))
			end(d, o);
	}
	return -1;
}

int hydnsd_forwarding_work(struct hydnsd *d)
{
	struct hydnsd_forwarding *f = d->forwarding;
	uint64_t now_ns;
	int wait = -1;

	if (!f)
		return -1;
	hydns_kern_answered_drain(d->kern, answered, d);
	close_answered(d);
	f->again = 0;
	now_ns = hydnsd_now_ns();
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_forward_resolver *r = &f->of[i];
		uint64_t before = r->counts.timed_out;

		for (uint32_t n = 0; r->open && n < HYDNS_FORWARD_UPSTREAMS; n++)
			wait = hydnsd_sooner(wait, time_out(d, r, &r->upstream[n], now_ns));
		if (r->counts.timed_out != before)
			tell_usable(d, i, now_ns / HYDNS_NS_PER_MS);
	}
	return wait;
}

/* -- start and end -------------------------------------------------------------------------------------------- */
/* Of a former hydnsd: its zones do not count, and its requests have ended. */
static void take_over(struct hydnsd *d)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		*hydns_kern_forwarding(d->kern, i) = (struct hydns_forwarding){ 0 };
		hydns_kern_forward_forget(d->kern, i, 0);
		hydnsd_upstreams_set(&d->forwarding->of[i], NULL);
		hydns_kern_forward_counts(d->kern, i, &d->forwarding->of[i].base);
	}
	hydns_kern_forward_close_all(d->kern);
}

int hydnsd_forwarding_start(struct hydnsd *d, char *why, size_t room)
{
	struct hydnsd_forwarding *f;

	if (!d->parking || !d->options.forwarding || !d->options.pending_max)
		return 0;
	f = calloc(1, sizeof(*f));
	if (f)
		f->watch = hydnsd_loop_watch(d->loop, hydns_kern_answered_fd(d->kern), EPOLLIN, ready, NULL);
	d->forwarding = f;
	if (!f || !f->watch) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	take_over(d);
	hydns_kern_forwarded_to(d->kern, begun, d);
	return 0;
}

void hydnsd_forwarding_stop(struct hydnsd *d)
{
	if (!d->forwarding)
		return;
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		hydnsd_forwarding_forbid(d, i);
	hydnsd_grace_wait();
	hydnsd_parking_drain(d);       /* queries that were forwarded meanwhile: their zones are forgotten */
	hydns_kern_forwarded_to(d->kern, NULL, NULL);
	hydnsd_watch_end(d->forwarding->watch);
	free(d->forwarding);
	d->forwarding = NULL;
}

/* -- looking -------------------------------------------------------------------------------------------------- */
void hydnsd_forwarding_program_counts(struct hydnsd *d, uint32_t i, struct hydns_forward_count *out)
{
	const struct hydns_forward_count *base;

	memset(out, 0, sizeof(*out));
	if (!d->forwarding || hydns_kern_forward_counts(d->kern, i, out))
		return;
	base = &d->forwarding->of[i].base;
	out->sent -= base->sent;
	out->joined -= base->joined;
	out->answers -= base->answers;
	out->mismatched -= base->mismatched;
	for (unsigned n = 0; n < HYDNS_FORWARD_LEFTS; n++)
		out->left[n] -= base->left[n];
}
