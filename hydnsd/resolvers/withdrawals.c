/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/withdrawals.h"

#include <errno.h>
#include <stdlib.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"

#define SLOTS_PER_TURN 65536           /* about a millisecond when few match */
/* In a busy cache several hundred RRsets are renewed a second. Passes that only these wait for leave a pause, so that
 * they take a tenth of a processor at most; rules that they will withdraw have TTLs that are too low, no more. */
#define PAUSE_FACTOR   10              /* of the pass before */
#define PAUSE_MIN_NS   (10 * HYDNSD_NS_PER_MS)
#define PAUSE_MAX_NS   (100 * HYDNSD_NS_PER_MS)

struct job {
	struct hydnsd *daemon;
	struct hydnsd_withdrawal withdrawal;
	struct hydnsd_withdrawal_end end;
	struct job *next;
};

struct hydnsd_withdrawals {
	struct job *first, **last;
	uint32_t urgent;               /* of those: not patient */
	struct hydnsd_scan pass;       /* serves the first pass.count jobs; those that come join the next */
	uint64_t began_ns;             /* that pass */
	uint64_t pause_until_ns;
};

struct hydnsd_withdrawals *hydnsd_withdrawals_new(void)
{
	struct hydnsd_withdrawals *j = calloc(1, sizeof(*j));

	if (j)
		j->last = &j->first;
	return j;
}

void hydnsd_withdrawals_free(struct hydnsd_withdrawals *j)
{
	if (!j)
		return;
	while (j->first) {
		struct job *next = j->first->next;

		free(j->first);
		j->first = next;
	}
	free(j);
}

/* The asker is told, or will be after a grace period. */
static void finish(void *arg)
{
	struct job *job = arg;

	if (job->end.done)
		job->end.done(job->daemon, job->end.client, job->end.tag, job->withdrawal.withdrawn);
	free(job);
}

static void close_job(struct job *job)
{
	if (!job->end.grace)
		finish(job);
	else if (hydnsd_grace_after(job->daemon->grace, finish, job))
		free(job);             /* no answer: the asker's own time limit tells it */
}

static void append(struct hydnsd_withdrawals *j, struct job *job)
{
	*j->last = job;
	j->last = &job->next;
	j->urgent += !job->end.patient;
}

int hydnsd_withdrawals_begin(struct hydnsd *d, const struct hydnsd_withdrawal *w,
			 const struct hydnsd_withdrawal_end *end)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job) {
		hydnsd_log(HYDNSD_LOG_ERROR, "out of memory: a withdrawal was not done; the resolver "
			   "advances its epoch instead; give hydnsd more memory");
		return -ENOMEM;
	}
	job->daemon = d;
	job->withdrawal = *w;
	job->end = *end;
	/* A renewed rule's successor may come to stand where a pass that is under way has been, which may be looking for it. */
	if (!(w->rrtype && d->jobs->pass.count) && hydnsd_rules_withdraw(d->rules, &job->withdrawal, hydnsd_now_ns()))
		close_job(job);
	else
		append(d->jobs, job);
	return 0;
}

uint32_t hydnsd_withdrawals_waiting(const struct hydnsd_withdrawals *j)
{
	uint32_t n = 0;

	for (const struct job *job = j->first; job; job = job->next)
		n++;
	return n;
}

static struct job *take(struct hydnsd_withdrawals *j, struct job **at)
{
	struct job *job = *at;

	*at = job->next;
	if (!*at)
		j->last = at;
	j->urgent -= !job->end.patient;
	return job;
}

/* -- turns: who asks much waits for those who ask little ------------------------------------------------------ */
struct turn {
	uint64_t client;
	uint32_t served;
};

/* How many of the client's are in the pass. */
static uint32_t *served(struct turn *turns, uint32_t *count, uint64_t client)
{
	for (uint32_t i = 0; i < *count; i++)
		if (turns[i].client == client)
			return &turns[i].served;
	turns[*count] = (struct turn){ .client = client };
	return &turns[(*count)++].served;
}

/* One more of each client that has another one: the first jobs of the list, which those chosen so far are, become more.
 * False: there was none. */
static bool choose_round(struct hydnsd *d, struct turn *turns, uint32_t *clients, uint32_t round, struct job ***end)
{
	struct hydnsd_scan *p = &d->jobs->pass;
	struct job **at = *end;
	uint32_t before = p->count;

	while (*at && p->count < HYDNSD_SCAN_MAX) {
		struct job *job = *at;
		uint32_t *of = *clients < HYDNSD_SCAN_MAX ? served(turns, clients, job->end.client) : NULL;

		if (round == 0 && hydnsd_rules_withdraw(d->rules, &job->withdrawal, d->jobs->began_ns)) {
			close_job(take(d->jobs, at));
			continue;
		}
		if (!of || *of > round) {
			at = &job->next;
			continue;
		}
		++*of;
		p->of[p->count++] = &job->withdrawal;
		if (at != *end) {      /* behind those chosen before it */
			*at = job->next;
			if (!*at)
				d->jobs->last = at;
			job->next = **end;
			**end = job;
		} else {
			at = &job->next;
		}
		*end = &job->next;
	}
	return p->count > before;
}

/* For those that can't be done at once now either: perhaps none is left. */
static void begin_pass(struct hydnsd *d)
{
	struct turn turns[HYDNSD_SCAN_MAX];
	struct job **end = &d->jobs->first;
	uint32_t clients = 0;

	d->jobs->began_ns = hydnsd_now_ns();
	for (uint32_t round = 0; choose_round(d, turns, &clients, round, &end); round++)
		;
	hydnsd_scan_begin(d->rules, &d->jobs->pass);
}

static void pause_after(struct hydnsd_withdrawals *j, uint64_t now_ns)
{
	uint64_t pause = PAUSE_FACTOR * (now_ns - j->began_ns);

	pause = pause < PAUSE_MIN_NS ? PAUSE_MIN_NS : pause > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause;
	j->pause_until_ns = now_ns + pause;
}

static void end_pass(struct hydnsd *d)
{
	uint32_t served = d->jobs->pass.count;

	pause_after(d->jobs, hydnsd_now_ns());
	d->jobs->pass.count = 0;
	while (served--)
		close_job(take(d->jobs, &d->jobs->first));
}

/* Milliseconds, rounded up, before a pass may begin. */
static int pause_left(const struct hydnsd_withdrawals *j, uint64_t now_ns)
{
	if (j->urgent || now_ns >= j->pause_until_ns)
		return 0;
	return (int)((j->pause_until_ns - now_ns + HYDNSD_NS_PER_MS - 1) / HYDNSD_NS_PER_MS);
}

int hydnsd_withdrawals_work(struct hydnsd *d)
{
	struct hydnsd_withdrawals *j = d->jobs;
	uint64_t now_ns = hydnsd_now_ns();

	if (!j->first)
		return -1;
	if (j->pass.count == 0) {
		int wait = pause_left(j, now_ns);

		if (wait)
			return wait;
		begin_pass(d);
	}
	if (j->pass.count && hydnsd_scan_step(d->rules, &j->pass, now_ns, SLOTS_PER_TURN))
		end_pass(d);
	return j->first ? pause_left(j, hydnsd_now_ns()) : -1;
}
