/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/withdrawals.h"

#include <errno.h>
#include <stdlib.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"

#define SLOTS_PER_ROUND 65536           /* about a millisecond when few match */
/* In a busy cache several hundred RRsets are renewed a second. Passes that only these wait for leave a pause, so that
 * they take a tenth of a processor at most; rules that they will withdraw have TTLs that are too low, no more. */
#define PAUSE_FACTOR   10              /* of the pass before */
#define PAUSE_MIN_NS   (10 * HYDNSD_NS_PER_MS)
#define PAUSE_MAX_NS   (100 * HYDNSD_NS_PER_MS)

struct under_way {
	struct hydnsd *daemon;
	struct hydnsd_withdrawal withdrawal;
	struct hydnsd_withdrawal_end end;
	struct under_way *next;
};

struct hydnsd_withdrawals {
	struct under_way *first, **last;
	uint32_t urgent;               /* of those: not patient */
	struct hydnsd_scan scan;       /* serves the first pass.count jobs; those that come join the next */
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
		struct under_way *next = j->first->next;

		free(j->first);
		j->first = next;
	}
	free(j);
}

/* The asker is told, or will be after a grace period. */
static void finish(void *arg)
{
	struct under_way *u = arg;

	if (u->end.done)
		u->end.done(u->daemon, u->end.client, u->end.tag, u->withdrawal.withdrawn);
	free(u);
}

static void close_one(struct under_way *u)
{
	if (!u->end.grace)
		finish(u);
	else if (hydnsd_grace_after(u->daemon->grace, finish, u))
		free(u);             /* no answer: the asker's own time limit tells it */
}

static void append(struct hydnsd_withdrawals *j, struct under_way *u)
{
	*j->last = u;
	j->last = &u->next;
	j->urgent += !u->end.patient;
}

int hydnsd_withdrawals_begin(struct hydnsd *d, const struct hydnsd_withdrawal *w,
			 const struct hydnsd_withdrawal_end *end)
{
	struct under_way *u = calloc(1, sizeof(*u));

	if (!u) {
		hydnsd_log(HYDNSD_LOG_ERROR, "out of memory: a withdrawal was not done; the resolver "
			   "advances its epoch instead; give hydnsd more memory");
		return -ENOMEM;
	}
	u->daemon = d;
	u->withdrawal = *w;
	u->end = *end;
	/* A renewed rule's successor may come to stand where a pass that is under way has been, which may be looking for it. */
	if (!(w->rrtype && d->withdrawals->scan.count) && hydnsd_rules_withdraw(d->rules, &u->withdrawal, hydnsd_now_ns()))
		close_one(u);
	else
		append(d->withdrawals, u);
	return 0;
}

uint32_t hydnsd_withdrawals_waiting(const struct hydnsd_withdrawals *j)
{
	uint32_t n = 0;

	for (const struct under_way *u = j->first; u; u = u->next)
		n++;
	return n;
}

static struct under_way *take(struct hydnsd_withdrawals *j, struct under_way **at)
{
	struct under_way *u = *at;

	*at = u->next;
	if (!*at)
		j->last = at;
	j->urgent -= !u->end.patient;
	return u;
}

/* -- share: who asks much waits for those who ask little ------------------------------------------------------ */
struct client_share {
	uint64_t client;
	uint32_t served;
};

/* How many of the client's are in the pass. */
static uint32_t *served(struct client_share *share, uint32_t *count, uint64_t client)
{
	for (uint32_t i = 0; i < *count; i++)
		if (share[i].client == client)
			return &share[i].served;
	share[*count] = (struct client_share){ .client = client };
	return &share[(*count)++].served;
}

/* One more of each client that has another one: the first jobs of the list, which those chosen so far are, become more.
 * False: there was none. */
static bool choose_round(struct hydnsd *d, struct client_share *share, uint32_t *clients, uint32_t round, struct under_way ***end)
{
	struct hydnsd_scan *p = &d->withdrawals->scan;
	struct under_way **at = *end;
	uint32_t before = p->count;

	while (*at && p->count < HYDNSD_SCAN_MAX) {
		struct under_way *u = *at;
		uint32_t *of = *clients < HYDNSD_SCAN_MAX ? served(share, clients, u->end.client) : NULL;

		if (round == 0 && hydnsd_rules_withdraw(d->rules, &u->withdrawal, d->withdrawals->began_ns)) {
			close_one(take(d->withdrawals, at));
			continue;
		}
		if (!of || *of > round) {
			at = &u->next;
			continue;
		}
		++*of;
		p->of[p->count++] = &u->withdrawal;
		if (at != *end) {      /* behind those chosen before it */
			*at = u->next;
			if (!*at)
				d->withdrawals->last = at;
			u->next = **end;
			**end = u;
		} else {
			at = &u->next;
		}
		*end = &u->next;
	}
	return p->count > before;
}

/* For those that can't be done at once now either: perhaps none is left. */
static void begin_scan(struct hydnsd *d)
{
	struct client_share share[HYDNSD_SCAN_MAX];
	struct under_way **end = &d->withdrawals->first;
	uint32_t clients = 0;

	d->withdrawals->began_ns = hydnsd_now_ns();
	for (uint32_t round = 0; choose_round(d, share, &clients, round, &end); round++)
		;
	hydnsd_scan_begin(d->rules, &d->withdrawals->scan);
}

static void pause_after(struct hydnsd_withdrawals *j, uint64_t now_ns)
{
	uint64_t pause = PAUSE_FACTOR * (now_ns - j->began_ns);

	pause = pause < PAUSE_MIN_NS ? PAUSE_MIN_NS : pause > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause;
	j->pause_until_ns = now_ns + pause;
}

static void end_scan(struct hydnsd *d)
{
	uint32_t served = d->withdrawals->scan.count;

	pause_after(d->withdrawals, hydnsd_now_ns());
	d->withdrawals->scan.count = 0;
	while (served--)
		close_one(take(d->withdrawals, &d->withdrawals->first));
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
	struct hydnsd_withdrawals *j = d->withdrawals;
	uint64_t now_ns = hydnsd_now_ns();

	if (!j->first)
		return -1;
	if (j->scan.count == 0) {
		int wait = pause_left(j, now_ns);

		if (wait)
			return wait;
		begin_scan(d);
	}
	if (j->scan.count && hydnsd_scan_step(d->rules, &j->scan, now_ns, SLOTS_PER_ROUND))
		end_scan(d);
	return j->first ? pause_left(j, hydnsd_now_ns()) : -1;
}
