/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * At the end of a window the program is told to count in the other one; a second later, when no program can still write the ended
 * one, it is read and cleared. So a window's figures are there a second after its end, and nothing waits.
 */
#include "hydnsd/monitor/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "offload-policy/monitor.h"

struct hydnsd_monitor {
	struct hydnsd_condition condition[HYDNSD_CONDITIONS];
	struct hydnsd_analyses analyses;
	struct hydnsd_window past[HYDNSD_MONITOR_WINDOWS];
	uint32_t windows;              /* so far; the last one is at (windows - 1) % HYDNSD_MONITOR_WINDOWS */
	uint64_t begun_ms;             /* the window under way ... */
	uint64_t queries, answered;    /* ... and the counters then */
	bool ended;                    /* `last', the program's window `number', has not been read yet */
	struct hydnsd_window last;
	__u32 number;
	struct hydnsd_hook *hook;      /* NULL: none */
	bool failing;                  /* the log has said so */
};

static void count(struct hydnsd *d, uint64_t *queries, uint64_t *answered)
{
	__u64 reasons[HYDNS_REASONS] = { 0 };

	hydns_kern_stats(d->kern, reasons);
	*queries = 0;
	*answered = reasons[HYDNS_R_ANSWERED];
	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		if (hydns_reason_of((enum hydns_reason)i) == HYDNS_OF_QUERY)
			*queries += reasons[i];
}

static int read_options(const struct hydnsd_options *o, struct hydnsd_monitor *m, char error[HYDNSD_OPTION_ERROR])
{
	if (hydnsd_conditions_read(&o->monitor_condition, m->condition, error) ||
	    hydnsd_analyses_read(&o->monitor_analyser, &m->analyses, error))
		return -EINVAL;
	if (!o->monitor_hook || o->monitor_hook[0] == '/')
		return 0;
	snprintf(error, HYDNSD_OPTION_ERROR, "monitor-hook: %s is no absolute path: write one", o->monitor_hook);
	return -EINVAL;
}

int hydnsd_monitor_check(const struct hydnsd_options *o, char error[HYDNSD_OPTION_ERROR])
{
	struct hydnsd_monitor *m = o->monitor ? calloc(1, sizeof(*m)) : NULL;
	int rc = m ? read_options(o, m, error) : 0;

	free(m);
	return rc;
}

static int configure(struct hydnsd *d, struct hydnsd_monitor *m, char *why, size_t room)
{
	const struct hydnsd_options *o = &d->options;
	char error[HYDNSD_OPTION_ERROR];

	if (read_options(o, m, error)) {
		snprintf(why, room, "%s", error);
		return -EINVAL;
	}
	if (!o->monitor_hook)
		return 0;
	m->hook = hydnsd_hook_new(d->loop, o->monitor_hook, o->monitor_hook_seconds);
	return m->hook ? 0 : -ENOMEM;
}

int hydnsd_monitor_start(struct hydnsd *d, char *why, size_t room)
{
	struct hydns_window former;
	struct hydnsd_monitor *m;
	int rc;

	if (!d->options.monitor)
		return 0;
	snprintf(why, room, "out of memory");
	d->monitor = m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	rc = configure(d, m, why, room);
	if (rc)
		return rc;
	for (__u32 w = 0; w < HYDNS_WINDOWS && !rc; w++)       /* a former hydnsd may have left some */
		rc = hydns_kern_window_take(d->kern, w, &former);
	if (rc)
		snprintf(why, room, "cannot clear the monitor's windows: %s", strerror(-rc));
	count(d, &m->queries, &m->answered);
	m->begun_ms = hydnsd_now_ms();
	return rc;
}

void hydnsd_monitor_stop(struct hydnsd *d)
{
	if (!d->monitor)
		return;
	hydns_kern_analyse(d->kern, 0);        /* the program may go on answering */
	hydnsd_hook_free(d->monitor->hook);
	free(d->monitor);
	d->monitor = NULL;
}

/* -- conditions ------------------------------------------------------------------------------------------------- */
static void say(enum hydnsd_condition_id id, const struct hydnsd_condition *c, bool begins)
{
	hydnsd_log(begins ? HYDNSD_LOG_WARNING : HYDNSD_LOG_INFO, "monitor: condition %s %s: %.0f %s; before, %.0f on average; it %s %.0f",
		   hydnsd_condition_name(id), begins ? "begins" : "has ended", c->value, hydnsd_condition_text(id), c->past,
		   begins ? "ends below" : "begins with", hydnsd_condition_threshold(id, c));
}

static void run_hook(struct hydnsd *d, enum hydnsd_condition_id id, const struct hydnsd_condition *c, bool begins)
{
	struct hydnsd_hook_event e = { 0 };

	if (!d->monitor->hook)
		return;
	snprintf(e.env[0], HYDNSD_HOOK_TEXT, "HYDNS_EVENT=%s", begins ? "begin" : "end");
	snprintf(e.env[1], HYDNSD_HOOK_TEXT, "HYDNS_CONDITION=%s", hydnsd_condition_name(id));
	snprintf(e.env[2], HYDNSD_HOOK_TEXT, "HYDNS_VALUE=%.0f", c->value);
	snprintf(e.env[3], HYDNSD_HOOK_TEXT, "HYDNS_PAST=%.0f", c->past);
	snprintf(e.env[4], HYDNSD_HOOK_TEXT, "HYDNS_WORST=%.0f", c->worst);
	snprintf(e.env[5], HYDNSD_HOOK_TEXT, "HYDNS_CONTROL_SOCKET=%s", d->options.control_socket);
	hydnsd_hook_tell(d->monitor->hook, &e);
}

/* Returns the conditions that hold, by bit. */
static uint32_t judge(struct hydnsd *d, const struct hydnsd_window *w)
{
	struct hydnsd_monitor *m = d->monitor;
	const double value[HYDNSD_MEASURES] = {
		[HYDNSD_MEASURE_RATE] = hydnsd_window_rate(w), [HYDNSD_MEASURE_MISSES] = hydnsd_window_misses(w),
		[HYDNSD_MEASURE_CLIENTS] = w->clients, [HYDNSD_MEASURE_NAMES] = w->names,
	};
	uint32_t holding = 0;

	for (enum hydnsd_condition_id id = 0; id < HYDNSD_CONDITIONS; id++) {
		enum hydnsd_condition_event e = hydnsd_condition_step(id, &m->condition[id], value);

		holding |= (uint32_t)m->condition[id].holds << id;
		if (e == HYDNSD_CONDITION_STAYS)
			continue;
		say(id, &m->condition[id], e == HYDNSD_CONDITION_BEGINS);
		run_hook(d, id, &m->condition[id], e == HYDNSD_CONDITION_BEGINS);
	}
	return holding;
}

/* -- windows ------------------------------------------------------------------------------------------------------ */
static void end_window(struct hydnsd *d, uint64_t now)
{
	struct hydnsd_monitor *m = d->monitor;
	uint64_t queries, answered;

	m->number = hydns_kern_window_next(d->kern);
	count(d, &queries, &answered);
	m->last = (struct hydnsd_window){ .ended_ms = now, .length_ms = now - m->begun_ms, .queries = queries - m->queries,
					  .answered = answered - m->answered };
	m->begun_ms = now;
	m->queries = queries;
	m->answered = answered;
	m->ended = true;
}

static void read_window(struct hydnsd *d)
{
	struct hydnsd_monitor *m = d->monitor;
	static struct hydns_window w;
	int rc = hydns_kern_window_take(d->kern, m->number, &w);

	m->ended = false;
	if (rc && !m->failing)
		hydnsd_log(HYDNSD_LOG_WARNING, "monitor: cannot read a window: %s", strerror(-rc));
	m->failing = rc != 0;
	if (rc)
		return;
	m->last.clients = hydns_distinct_estimate(w.clients);
	m->last.names = hydns_distinct_estimate(w.names);
	m->past[m->windows++ % HYDNSD_MONITOR_WINDOWS] = m->last;
	hydnsd_analyses_window(&m->analyses, d->kern, judge(d, &m->last), hydnsd_now_ms());
}

void hydnsd_monitor_tick(struct hydnsd *d)
{
	struct hydnsd_monitor *m = d->monitor;
	uint64_t now = hydnsd_now_ms();

	if (!m)
		return;
	if (m->ended)
		read_window(d);
	else if (now - m->begun_ms >= d->options.monitor_window * 1000ULL)
		end_window(d, now);
}

/* -- figures ------------------------------------------------------------------------------------------------------ */
const struct hydnsd_window *hydnsd_monitor_window(const struct hydnsd *d, uint32_t ago)
{
	const struct hydnsd_monitor *m = d->monitor;

	if (ago >= m->windows || ago >= HYDNSD_MONITOR_WINDOWS)
		return NULL;
	return &m->past[(m->windows - 1 - ago) % HYDNSD_MONITOR_WINDOWS];
}

const struct hydnsd_condition *hydnsd_monitor_condition(const struct hydnsd *d, enum hydnsd_condition_id id)
{
	return &d->monitor->condition[id];
}

const struct hydnsd_analysis *hydnsd_monitor_analysis(const struct hydnsd *d, enum hydns_analyser a)
{
	return &d->monitor->analyses.of[a];
}

void hydnsd_monitor_hook_counts(const struct hydnsd *d, struct hydnsd_hook_counts *out)
{
	*out = (struct hydnsd_hook_counts){ 0 };
	if (d->monitor && d->monitor->hook)
		hydnsd_hook_counts(d->monitor->hook, out);
}

double hydnsd_window_rate(const struct hydnsd_window *w)
{
	return w->length_ms ? (double)w->queries * 1000 / (double)w->length_ms : 0;
}

double hydnsd_window_misses(const struct hydnsd_window *w)
{
	return w->queries ? (double)(w->queries - w->answered) * 100 / (double)w->queries : 0;
}
