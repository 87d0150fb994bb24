/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/guard/guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/control/text.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/resolvers/withdrawals.h"

#define LABELS_LEAST 2                 /* of a suffix that is guarded because of a report: never the root, nor a top-level domain */

struct hydnsd_guard {
	struct hydnsd_guard_suffix suffix[HYDNS_GUARD_RULES];
	struct hydnsd_guard_counts counts;
	uint32_t count;
};

const char *hydnsd_guard_mode_text(const struct hydnsd_options *o)
{
	static const char *const modes[] = {
		[HYDNS_GUARD_OFF] = "off", [HYDNS_GUARD_COUNT] = "count", [HYDNS_GUARD_ENFORCE] = "enforce",
	};

	return modes[o->guard];
}

const char *hydnsd_guard_why_text(enum hydnsd_guard_why why)
{
	static const char *const texts[] = {
		[HYDNSD_GUARD_ORDERED] = "ordered", [HYDNSD_GUARD_FAILURES] = "failures", [HYDNSD_GUARD_WAITING] = "waiting",
	};

	return texts[why];
}

struct hydns_loader_guard hydnsd_guard_limits(const struct hydnsd_options *o)
{
	if (o->guard == HYDNS_GUARD_OFF)
		return (struct hydns_loader_guard){ 0 };
	return (struct hydns_loader_guard){ .mode = o->guard, .queries = o->guard_client_queries, .action = o->guard_client_action,
		.slip = o->guard_client_slip, .exempt = o->guard_cookies == HYDNSD_GUARD_COOKIES_EXEMPT,
		.ipv4_prefix = o->guard_ipv4_prefix, .ipv6_prefix = o->guard_ipv6_prefix };
}

int hydnsd_guard_start(struct hydnsd *d, char *why, size_t room)
{
	int rc = hydns_kern_guard_clear(d->kern);      /* a former hydnsd may have left some, of which this one knows nothing */

	snprintf(why, room, "cannot clear the guard's rules: %s", strerror(-rc));
	if (rc || !d->with.guard)
		return rc;
	d->guard = calloc(1, sizeof(*d->guard));
	if (!d->guard)
		snprintf(why, room, "out of memory");
	return d->guard ? 0 : -ENOMEM;
}

void hydnsd_guard_stop(struct hydnsd *d)
{
	if (!d->guard)
		return;
	(void)hydns_kern_guard_clear(d->kern);         /* the program may go on answering; what is left ends by itself */
	free(d->guard);
	d->guard = NULL;
}

/* -- rules -------------------------------------------------------------------------------------------------- */
static uint8_t count_labels(const uint8_t *name)
{
	uint8_t labels = 0;

	for (; *name; name += 1 + *name)
		labels++;
	return labels;
}

/* The program looks for suffixes of those numbers of labels that rules have. */
static void show_labels(struct hydnsd *d)
{
	uint32_t labels = 0;

	for (uint32_t i = 0; i < HYDNS_GUARD_RULES; i++)
		if (d->guard->suffix[i].len)
			labels |= 1U << d->guard->suffix[i].labels;
	hydns_kern_guard_labels(d->kern, labels);
}

static struct hydnsd_guard_suffix *find(struct hydnsd *d, const uint8_t *name, size_t len, uint32_t resolver)
{
	for (uint32_t i = 0; i < HYDNS_GUARD_RULES; i++) {
		struct hydnsd_guard_suffix *s = &d->guard->suffix[i];

		if (s->len == len && s->resolver == resolver && !memcmp(s->name, name, len))
			return s;
	}
	return NULL;
}

static struct hydnsd_guard_suffix *free_place(struct hydnsd *d)
{
	for (uint32_t i = 0; i < HYDNS_GUARD_RULES; i++)
		if (!d->guard->suffix[i].len)
			return &d->guard->suffix[i];
	return NULL;
}

static uint32_t reported_by(const struct hydnsd *d, uint32_t resolver)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < HYDNS_GUARD_RULES; i++)
		n += d->guard->suffix[i].len && d->guard->suffix[i].resolver == resolver &&
		     d->guard->suffix[i].why != HYDNSD_GUARD_ORDERED;
	return n;
}

/* Writes the rule to the kernel; its counts go on. */
static int publish(struct hydnsd *d, const struct hydnsd_guard_suffix *s)
{
	struct hydns_guard_rule r = { 0 };

	if (hydns_kern_guard_get(d->kern, s->key, &r))
		memset(&r, 0, sizeof(r));
	r.until_ns = s->until_ms * HYDNS_NS_PER_MS;
	r.queries = s->queries;
	r.action = s->action;
	return hydns_kern_guard_set(d->kern, s->key, &r);
}

static const char *suffix_text(const struct hydnsd_guard_suffix *s, char text[HYDNSD_NAME_TEXT])
{
	return hydnsd_name_text(s->name, s->len, text);
}

static void begin(struct hydnsd *d, const struct hydnsd_guard_suffix *s)
{
	char text[HYDNSD_NAME_TEXT];

	d->guard->count++;
	d->guard->counts.begun++;
	show_labels(d);
	if (s->why == HYDNSD_GUARD_ORDERED)
		hydnsd_log(HYDNSD_LOG_WARNING, "guard: %s is guarded at resolver %u by order of hydnsctl: %u queries a second go on",
			   suffix_text(s, text), s->resolver, s->queries);
	else
		hydnsd_log_client(HYDNSD_LOG_WARNING, "guard: %s is guarded at resolver %u: %u %s; %u queries a second go on",
				  suffix_text(s, text), s->resolver, s->figure,
				  s->why == HYDNSD_GUARD_FAILURES ? "resolutions a second failed" : "resolutions waited", s->queries);
}

static void end(struct hydnsd *d, struct hydnsd_guard_suffix *s, const char *cause)
{
	struct hydns_guard_rule r = { 0 };
	char text[HYDNSD_NAME_TEXT];

	(void)hydns_kern_guard_get(d->kern, s->key, &r);
	(void)hydns_kern_guard_delete(d->kern, s->key);
	hydnsd_log_client(HYDNSD_LOG_INFO, "guard: %s is no longer guarded at resolver %u: %s; %llu queries went on, %llu were above",
			  suffix_text(s, text), s->resolver, cause, (unsigned long long)r.within, (unsigned long long)r.over);
	s->len = 0;
	d->guard->count--;
	show_labels(d);
}

void hydnsd_guard_tick(struct hydnsd *d)
{
	uint64_t now = hydnsd_now_ms();

	for (uint32_t i = 0; d->guard && i < HYDNS_GUARD_RULES; i++)
		if (d->guard->suffix[i].len && d->guard->suffix[i].until_ms <= now)
			end(d, &d->guard->suffix[i], "its time is over");
}

void hydnsd_guard_release(struct hydnsd *d, uint32_t resolver)
{
	for (uint32_t i = 0; d->guard && i < HYDNS_GUARD_RULES; i++)
		if (d->guard->suffix[i].len && d->guard->suffix[i].resolver == resolver)
			end(d, &d->guard->suffix[i], "the resolver leaves");
}

/* Takes a free place for the suffix, or its own. */
static int put(struct hydnsd *d, const struct hydnsd_guard_suffix *want)
{
	struct hydnsd_guard_suffix *s = find(d, want->name, want->len, want->resolver), fresh = *want;
	bool is_new = !s;
	int rc;

	if (is_new)
		s = free_place(d);
	if (!s)
		return -ENOSPC;
	fresh.labels = count_labels(want->name);
	fresh.key = hydns_kern_guard_key(d->kern, want->resolver, want->name, want->len);
	fresh.since_ms = is_new ? hydnsd_now_ms() : s->since_ms;
	rc = publish(d, &fresh);
	if (rc)
		return rc;
	*s = fresh;
	if (is_new)
		begin(d, s);
	return 0;
}

/* -- reports ------------------------------------------------------------------------------------------------ */
void hydnsd_guard_thresholds(const struct hydnsd *d, uint32_t *failures, uint32_t *waiting)
{
	bool wanted = d->options.guard_suffix == HYDNSD_GUARD_AUTOMATIC;

	*failures = wanted ? d->options.guard_suffix_failures : 0;
	*waiting = wanted ? d->options.guard_suffix_waiting : 0;
}

/* Whether a report is above a threshold; what of it, and how much. */
static bool above(const struct hydnsd_options *o, const struct hydns_guard_report *r, struct hydnsd_guard_suffix *s)
{
	if (o->guard_suffix_failures && r->failures >= o->guard_suffix_failures) {
		s->why = HYDNSD_GUARD_FAILURES;
		s->figure = r->failures;
		return true;
	}
	s->why = HYDNSD_GUARD_WAITING;
	s->figure = r->waiting;
	return o->guard_suffix_waiting && r->waiting >= o->guard_suffix_waiting;
}

static bool may_be_guarded(const struct hydns_guard_report *r)
{
	uint8_t labels;

	if (r->len > HYDNS_GUARD_SUFFIX_MOST || !hydnsd_name_valid(r->suffix, r->len))
		return false;
	labels = count_labels(r->suffix);
	return labels >= LABELS_LEAST && labels <= HYDNS_GUARD_LABELS_MOST;
}

void hydnsd_guard_report(struct hydnsd *d, uint32_t resolver, const struct hydns_guard_report *r)
{
	const struct hydnsd_options *o = &d->options;
	struct hydnsd_guard_suffix s = { .resolver = (uint8_t)resolver, .queries = o->guard_suffix_queries,
					 .action = o->guard_suffix_action, .until_ms = hydnsd_now_ms() + o->guard_suffix_life * 1000ULL };
	const struct hydnsd_guard_suffix *had;

	if (!d->guard || o->guard_suffix == HYDNSD_GUARD_MANUAL)
		return;
	d->guard->counts.reports++;
	if (!may_be_guarded(r) || !above(o, r, &s)) {
		d->guard->counts.refused++;
		return;
	}
	s.len = (uint8_t)r->len;
	memcpy(s.name, r->suffix, r->len);
	had = find(d, s.name, s.len, resolver);
	if (had && had->why == HYDNSD_GUARD_ORDERED)
		return;
	if ((!had && reported_by(d, resolver) >= HYDNSD_GUARD_REPORTED_MOST) || put(d, &s))
		d->guard->counts.refused++;
}

/* -- orders ------------------------------------------------------------------------------------------------- */
int hydnsd_guard_order(struct hydnsd *d, const struct hydnsd_guard_order *o)
{
	struct hydnsd_guard_suffix s = { .len = o->len, .resolver = (uint8_t)o->resolver, .why = HYDNSD_GUARD_ORDERED,
					 .queries = o->queries, .action = o->action,
					 .until_ms = hydnsd_now_ms() + o->seconds * 1000ULL };

	memcpy(s.name, o->name, o->len);
	return put(d, &s);
}

uint32_t hydnsd_guard_lift(struct hydnsd *d, const uint8_t *name, size_t len, uint32_t resolver)
{
	uint32_t lifted = 0;

	for (uint32_t i = 0; d->guard && i < HYDNS_GUARD_RULES; i++) {
		struct hydnsd_guard_suffix *s = &d->guard->suffix[i];

		if (!s->len || (resolver != HYDNSD_ANY_RESOLVER && s->resolver != resolver) ||
		    (len && (s->len != len || memcmp(s->name, name, len))))
			continue;
		end(d, s, "it was lifted by hydnsctl");
		lifted++;
	}
	return lifted;
}

/* -- figures ------------------------------------------------------------------------------------------------ */
const struct hydnsd_guard_suffix *hydnsd_guard_at(const struct hydnsd *d, uint32_t i)
{
	return d->guard && d->guard->suffix[i].len ? &d->guard->suffix[i] : NULL;
}

uint32_t hydnsd_guard_count(const struct hydnsd *d)
{
	return d->guard ? d->guard->count : 0;
}

const struct hydnsd_guard_counts *hydnsd_guard_counts(const struct hydnsd *d)
{
	static const struct hydnsd_guard_counts none;

	return d->guard ? &d->guard->counts : &none;
}
