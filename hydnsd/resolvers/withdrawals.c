/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/withdrawals.h"

#include <errno.h>
#include <stdlib.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"

#define SLOTS_PER_ROUND 65536          /* about a millisecond when few match */
/* A busy cache makes several hundred TTL updates a second. Before a scan for these alone there is a pause, so that they
 * take a tenth of a processor at most. Meanwhile the rules send TTLs that are too low, which is not wrong. */
#define PAUSE_FACTOR    10             /* times the duration of the last scan */
#define PAUSE_MIN_NS    (10 * HYDNS_NS_PER_MS)
#define PAUSE_MAX_NS    (100 * HYDNS_NS_PER_MS)

/* Withdrawals that have one end. */
struct group {
	struct hydnsd *daemon;
	struct hydnsd_withdrawal_end end;
	uint32_t left;                 /* withdrawals under way; the last one frees the group */
	uint32_t withdrawn;            /* rules */
};

struct under_way {
	struct hydnsd_withdrawal withdrawal;
	struct group *group;
	struct under_way *next;
};

struct hydnsd_withdrawals {
	struct under_way *first, **last;
	uint32_t urgent;               /* how many of the list are not patient */
	struct hydnsd_scan scan;       /* serves the first scan.count of the list; newcomers wait for the next scan */
	uint64_t began_ns;             /* that scan */
	uint64_t pause_until_ns;
};

struct hydnsd_withdrawals *hydnsd_withdrawals_new(void)
{
	struct hydnsd_withdrawals *all = calloc(1, sizeof(*all));

	if (all)
		all->last = &all->first;
	return all;
}

static void free_list(struct under_way *u)
{
	while (u) {
		struct under_way *next = u->next;

		free(u);
		u = next;
	}
}

static void free_group_of(struct under_way *u)
{
	if (!--u->group->left)
		free(u->group);
}

void hydnsd_withdrawals_free(struct hydnsd_withdrawals *all)
{
	if (!all)
		return;
	for (struct under_way *u = all->first; u; u = u->next)
		free_group_of(u);
	free_list(all->first);
	free(all);
}

static void finish(void *arg)
{
	struct group *g = arg;

	if (g->end.done)
		g->end.done(g->daemon, g->end.client, g->end.tag, g->withdrawn);
	free(g);
}

/* The last of its group notifies the asker, at once or after a grace period. */
static void close_one(struct under_way *u)
{
	struct group *g = u->group;

	g->withdrawn += u->withdrawal.withdrawn;
	free(u);
	if (--g->left)
		return;
	if (!g->end.grace)
		finish(g);
	else if (hydnsd_grace_after(g->daemon->grace, finish, g))
		free(g);               /* out of memory: the asker waits until its own time limit */
}

static void append(struct hydnsd_withdrawals *all, struct under_way *u)
{
	*all->last = u;
	all->last = &u->next;
	all->urgent += !u->group->end.patient;
}

/* As many as w has, linked. NULL: no memory. */
static struct under_way *copies(const struct hydnsd_withdrawal *w, size_t n)
{
	struct under_way *first = NULL, **end = &first;

	while (n--) {
		struct under_way *u = calloc(1, sizeof(*u));

		if (!u) {
			free_list(first);
			return NULL;
		}
		u->withdrawal = *w++;
		*end = u;
		end = &u->next;
	}
	return first;
}

static void begin(struct hydnsd *d, struct under_way *u)
{
	u->next = NULL;
	/* A TTL update may put a rule's replacement where the scan under way has been already; the scan would miss it. */
	if (!(u->withdrawal.rrtype && d->withdrawals->scan.count) && hydnsd_rules_withdraw(d->rules, &u->withdrawal, hydnsd_now_ns()))
		close_one(u);
	else
		append(d->withdrawals, u);
}

int hydnsd_withdrawals_begin(struct hydnsd *d, const struct hydnsd_withdrawal *w, size_t n,
			 const struct hydnsd_withdrawal_end *end)
{
	struct group *g = calloc(1, sizeof(*g));
	struct under_way *u = g ? copies(w, n) : NULL;

	if (!u) {
		free(g);
		hydnsd_log(HYDNSD_LOG_ERROR, "out of memory: a withdrawal was not done; the resolver "
			   "advances its epoch instead; give hydnsd more memory");
		return -ENOMEM;
	}
	*g = (struct group){ .daemon = d, .end = *end, .left = (uint32_t)n };
	while (u) {
		struct under_way *next = u->next;

		u->group = g;
		begin(d, u);
		u = next;
	}
	return 0;
}

uint32_t hydnsd_withdrawals_waiting(const struct hydnsd_withdrawals *all)
{
	uint32_t n = 0;

	for (const struct under_way *u = all->first; u; u = u->next)
		n++;
	return n;
}

static struct under_way *take(struct hydnsd_withdrawals *all, struct under_way **at)
{
	struct under_way *u = *at;

	*at = u->next;
	if (!*at)
		all->last = at;
	all->urgent -= !u->group->end.patient;
	return u;
}

/* -- fair shares of a scan: a client that asks for much does not delay the others ------------------------------ */
struct client_share {
	uint64_t client;
	uint32_t served;               /* how many of its withdrawals are in the scan */
};

static uint32_t *served(struct client_share *share, uint32_t *count, uint64_t client)
{
	for (uint32_t i = 0; i < *count; i++)
		if (share[i].client == client)
			return &share[i].served;
	share[*count] = (struct client_share){ .client = client };
	return &share[(*count)++].served;
}

/* Adds one more withdrawal of each client that has another one, and moves it in the list behind those that the scan has
 * already. *end: behind the last of these. Round 0 also does what can be done at once by now. False: none was added. */
static bool choose_round(struct hydnsd *d, struct client_share *share, uint32_t *clients, uint32_t round,
			 struct under_way ***end)
{
	struct hydnsd_scan *p = &d->withdrawals->scan;
	struct under_way **at = *end;
	uint32_t before = p->count;

	while (*at && p->count < HYDNSD_SCAN_MAX) {
		struct under_way *u = *at;
		uint32_t *of = *clients < HYDNSD_SCAN_MAX ? served(share, clients, u->group->end.client) : NULL;

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
		if (at != *end) {
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

/* The scan may be empty: what can be done at once by now needs none. */
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

static void pause_after(struct hydnsd_withdrawals *all, uint64_t now_ns)
{
	uint64_t pause = PAUSE_FACTOR * (now_ns - all->began_ns);

	pause = pause < PAUSE_MIN_NS ? PAUSE_MIN_NS : pause > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause;
	all->pause_until_ns = now_ns + pause;
}

static void end_scan(struct hydnsd *d)
{
	uint32_t served = d->withdrawals->scan.count;

	pause_after(d->withdrawals, hydnsd_now_ns());
	d->withdrawals->scan.count = 0;
	while (served--)
		close_one(take(d->withdrawals, &d->withdrawals->first));
}

/* Milliseconds, rounded up, before a scan may begin. */
static int pause_left(const struct hydnsd_withdrawals *all, uint64_t now_ns)
{
	if (all->urgent || now_ns >= all->pause_until_ns)
		return 0;
	return (int)((all->pause_until_ns - now_ns + HYDNS_NS_PER_MS - 1) / HYDNS_NS_PER_MS);
}

int hydnsd_withdrawals_work(struct hydnsd *d)
{
	struct hydnsd_withdrawals *all = d->withdrawals;
	uint64_t now_ns = hydnsd_now_ns();

	if (!all->first)
		return -1;
	if (all->scan.count == 0) {
		int wait = pause_left(all, now_ns);

		if (wait)
			return wait;
		begin_scan(d);
	}
	if (all->scan.count && hydnsd_scan_step(d->rules, &all->scan, now_ns, SLOTS_PER_ROUND))
		end_scan(d);
	return all->first ? pause_left(all, hydnsd_now_ns()) : -1;
}
