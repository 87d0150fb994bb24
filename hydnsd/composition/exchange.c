/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/composition/exchange.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hydnsd/composition/wanted.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/daemon/privileges.h"
#include "hydnsd/guard/guard.h"
#include "hydnsd/monitor/monitor.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/netdev/sources.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/resolvers/lane_requests.h"

#define WAITING  2                         /* the service manager and clients of the control socket */
#define RETRY_NS (30 * HYDNS_NS_PER_S)     /* after a failure */

struct hydnsd_exchange {
	int loaded_fd;                 /* eventfd: the thread has ended */
	struct hydnsd_watch *watch;
	bool loading;
	pthread_t thread;
	const struct hydns_kern *kern; /* for the thread, with ... */
	struct hydns_composition with;
	struct hydns_set *set;         /* ... what it leaves */
	int rc;
	char why[HYDNS_WHY];
	uint64_t failed_ns;            /* not 0: the last one failed then */
	uint64_t done;
	uint32_t asking;               /* hydnsd_asking() at the last look */
	void (*settled[WAITING])(struct hydnsd *d); /* who wait; NULL: nobody */
};

static bool same(const struct hydns_composition *a, const struct hydns_composition *b)
{
	return true
#define HYDNS_PART(name, constant, text) && a->name == b->name
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
		&& !memcmp(&a->limits, &b->limits, sizeof(a->limits));
}

/* -- loading ---------------------------------------------------------------------------------------------- */
static void *load(void *arg)
{
	struct hydnsd_exchange *e = arg;
	const uint64_t one = 1;

	e->rc = hydnsd_privileges_to_load(e->why, sizeof(e->why));
	if (!e->rc)
		e->rc = hydns_set_load(e->kern, &e->with, &e->set, e->why);
	while (write(e->loaded_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	return NULL;
}

static void begin(struct hydnsd *d, const struct hydns_composition *with)
{
	struct hydnsd_exchange *e = d->exchange;

	e->kern = d->kern;
	e->with = *with;
	e->set = NULL;
	e->loading = !pthread_create(&e->thread, NULL, load, e);
	if (!e->loading)
		e->failed_ns = hydnsd_now_ns();
}

static void tell_waiting(struct hydnsd *d)
{
	for (unsigned i = 0; i < WAITING && hydnsd_composition_settled(d); i++) {
		void (*settled)(struct hydnsd *) = d->exchange->settled[i];

		d->exchange->settled[i] = NULL;
		if (settled)
			settled(d);
	}
}

void hydnsd_composition_follow(struct hydnsd *d)
{
	struct hydnsd_exchange *e = d->exchange;
	struct hydnsd_wanted wanted;
	struct hydns_composition with;

	if (e->loading)
		return;
	e->asking = hydnsd_asking(d);
	hydnsd_wanted(d, &wanted);
	with = hydnsd_composition_of(&wanted);
	if (same(&with, &d->with)) {
		e->failed_ns = 0;
		e->why[0] = '\0';
	} else if (!e->failed_ns || !same(&with, &e->with) || hydnsd_now_ns() - e->failed_ns >= RETRY_NS) {
		begin(d, &with);
	}
	tell_waiting(d);
}

void hydnsd_composition_tick(struct hydnsd *d)
{
	if (hydnsd_asking(d) != d->exchange->asking)
		hydnsd_composition_follow(d);
}

/* -- exchanging ------------------------------------------------------------------------------------------- */
static void log_parts(const struct hydns_composition *with)
{
	char text[HYDNS_WHY] = "";
	size_t used = 0;

#define HYDNS_PART(name, constant, text_) \
	if (with->name && used < sizeof(text)) \
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %s", #name);
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	hydnsd_log(HYDNSD_LOG_INFO, "the program consists of:%s", used ? text : " no part besides the first");
}

/* What hydnsd itself does differently with these programs. */
static void follow_parts(struct hydnsd *d, const struct hydns_composition *former)
{
	char why[HYDNS_WHY];

	if (d->with.monitor && !d->monitor && hydnsd_monitor_start(d, why, sizeof(why)))
		hydnsd_log(HYDNSD_LOG_WARNING, "%s", why);
	if (d->with.guard && !d->guard && hydnsd_guard_start(d, why, sizeof(why)))
		hydnsd_log(HYDNSD_LOG_WARNING, "%s", why);
	if (!d->with.guard)
		hydnsd_guard_stop(d);
	hydnsd_sources_update(d);
	if (d->with.fib != former->fib && d->lanes && d->sessions)
		hydnsd_lane_requests_tell(d);  /* the plan says whether replies are routed */
}

static void exchange(struct hydnsd *d, struct hydnsd_exchange *e)
{
	const struct hydns_composition former = d->with;

	if (!e->with.monitor)
		hydnsd_monitor_stop(d);
	/* Source validation by the new composition must hold before the program answers by it. */
	d->with = e->with;
	hydnsd_sources_update(d);
	e->rc = hydns_kern_exchange(d->kern, e->set, e->why);
	if (e->rc)
		d->with = former;
	hydnsd_grace_wait();           /* nobody runs what goes now */
	hydns_set_close(e->set);
	e->set = NULL;
	follow_parts(d, &former);
}

static void loaded(void *arg, uint32_t events)
{
	struct hydnsd *d = arg;
	struct hydnsd_exchange *e = d->exchange;
	uint64_t n;

	(void)events;
	if (read(e->loaded_fd, &n, sizeof(n)) != sizeof(n))
		return;
	pthread_join(e->thread, NULL);
	e->loading = false;
	if (!e->rc)
		exchange(d, e);
	e->failed_ns = e->rc ? hydnsd_now_ns() : 0;
	if (e->rc)
		hydnsd_log(HYDNSD_LOG_WARNING, "the former programs go on: %s", e->why);
	else
		e->done++;
	if (!e->rc)
		log_parts(&d->with);
	hydnsd_composition_follow(d);
}

/* -- start and end ---------------------------------------------------------------------------------------- */
struct hydns_composition hydnsd_composition_begin(struct hydnsd *d)
{
	struct hydnsd_wanted wanted;

	if (hydns_kern_pinned(d->options.pin_dir))
		for (unsigned p = 0; p < HYDNSD_PARTS; p++)
			d->asked_ns[p] = hydnsd_now_ns();
	hydnsd_interfaces_facts(d);
	hydnsd_wanted(d, &wanted);
	d->with = hydnsd_composition_of(&wanted);
	return d->with;
}

int hydnsd_composition_start(struct hydnsd *d, char *why, size_t room)
{
	struct hydnsd_exchange *e = calloc(1, sizeof(*e));

	d->exchange = e;
	if (e) {
		e->loaded_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (e->loaded_fd >= 0)
			e->watch = hydnsd_loop_watch(d->loop, e->loaded_fd, EPOLLIN, loaded, d);
	}
	if (e && e->watch)
		return 0;
	snprintf(why, room, "out of memory or descriptors");
	return -ENOMEM;
}

void hydnsd_composition_stop(struct hydnsd *d)
{
	struct hydnsd_exchange *e = d->exchange;

	if (!e)
		return;
	if (e->loading)
		pthread_join(e->thread, NULL);
	hydns_set_close(e->set);
	hydnsd_watch_end(e->watch);
	if (e->loaded_fd >= 0)
		close(e->loaded_fd);
	free(e);
	d->exchange = NULL;
}

/* -- looking ---------------------------------------------------------------------------------------------- */
bool hydnsd_composition_settled(const struct hydnsd *d)
{
	return !d->exchange->loading && hydnsd_asking(d) == d->exchange->asking;
}

const char *hydnsd_composition_fault(const struct hydnsd *d)
{
	return d->exchange->failed_ns ? d->exchange->why : "";
}

uint64_t hydnsd_composition_exchanges(const struct hydnsd *d)
{
	return d->exchange->done;
}

void hydnsd_composition_when_settled(struct hydnsd *d, void (*settled)(struct hydnsd *d))
{
	unsigned i = 0;

	while (i < WAITING - 1 && d->exchange->settled[i] && d->exchange->settled[i] != settled)
		i++;
	d->exchange->settled[i] = settled;
}
