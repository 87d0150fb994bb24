/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a resolver shows to the XDP program and to the operator. Nothing here is for resolvers. */
#ifndef HYDNS_PLUGIN_PAGE_PAGE_H
#define HYDNS_PLUGIN_PAGE_PAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include "plugin/plugin.h"

/* -- page.c: the resolver page ------------------------------------------------------------------------ */
struct hydns_pages;
struct hydns_pages *hydns_pages_new(void);
void hydns_pages_free(struct hydns_pages *g);            /* unmaps; no thread may read them any more */
uint64_t hydns_pages_generation(const struct hydns_pages *g);
uint32_t hydns_pages_epoch(const struct hydns_pages *g); /* suspended or not */
uint64_t hydns_pages_advance_generation(struct hydns_pages *g); /* the new one */
void hydns_pages_advance_epoch(struct hydns_pages *g);
/* Until _resume() no rule counts, or none that depends on a name of this place (HYDNS_PLACE). True: until now all did. */
bool hydns_pages_suspend(struct hydns_pages *g);
bool hydns_pages_mark(struct hydns_pages *g, uint32_t place);
bool hydns_pages_suspended(const struct hydns_pages *g); /* some rules or all */
void hydns_pages_resume(struct hydns_pages *g);          /* link thread only */
void hydns_pages_beat(struct hydns_pages *g, uint64_t mono_ns); /* 0: gone, for good */
/* How far the wall clock is ahead of the monotonic one, and CLOCK_TAI of the wall clock. */
void hydns_pages_set_clocks(struct hydns_pages *g, int64_t wall_ns, int32_t tai_offset);
/* Before there is a shared page. seed: as below. */
void hydns_pages_set_rates(struct hydns_pages *g, const struct hydns_rates *r, const uint64_t seed[HYDNS_BUDGET_SEEDS]);
/* seed: of the clients' hashes. At any time, by one thread at a time; they go along to the next page. */
void hydns_pages_set_limits(struct hydns_pages *g, const struct hydns_limits *l, const uint64_t seed[HYDNS_BUDGET_SEEDS]);
void hydns_pages_set_cookies(struct hydns_pages *g, uint32_t set); /* not by two threads at once */
/* Parts of the resolver's packet rings that the program may use: HYDNS_QUEUE_*. Link thread only. */
void hydns_pages_set_queue(struct hydns_pages *g, uint32_t parts);
void hydns_pages_set_forward(struct hydns_pages *g, uint32_t number); /* not by two threads at once */
int hydns_pages_fd(const struct hydns_pages *g);         /* of the shared page's map; -1: none yet */
/* Link thread only. Takes map_fd over (closed on failure too). The former page is dead from here on. */
int hydns_pages_switch(struct hydns_pages *g, int map_fd, uint32_t epoch, uint64_t mono_ns);
/* The page that the program reads; NULL: hydnsd has given none yet. */
struct hydns_resolver_page *hydns_pages_shared(struct hydns_pages *g);
/* The backlogs of the lane at a place, one for each thread (HYDNS_THREADS_MAX): behind that page; NULL: there is none yet. */
struct hydns_backlog *hydns_pages_backlogs(struct hydns_pages *g, int place);
/* Waits until every XDP program that was running has ended. False: the kernel cannot do that, and a conservative
 * time was waited. */
bool hydns_grace(void);

/* -- under_way.c: questions that clients wait for ------------------------------------------------------- */
/* Writes the question's word (ms: monotonic), unless it has one. False: there is no place, or no page. */
bool hydns_pages_under_way(struct hydns_pages *g, uint64_t key, uint32_t ms);
bool hydns_pages_is_under_way(struct hydns_pages *g, uint64_t key);
/* Queries that were parked for it so far. */
uint32_t hydns_pages_parked(struct hydns_pages *g, uint64_t key);
/* Clears its word, if it has one; and the words of all. */
void hydns_pages_over(struct hydns_pages *g, uint64_t key);
/* Clears all words. */
void hydns_pages_all_over(struct hydns_pages *g);

/* -- budgets.c: how often clients have asked --------------------------------------------------------------- */
struct hydns_budgets {
	_Atomic(struct hydns_budget_bucket *) bucket;    /* HYDNS_BUDGET_BUCKETS; NULL: none yet */
};
void hydns_budgets_close(struct hydns_budgets *b);       /* no thread may use them any more */
/* Link thread only. Takes over a map from hydnsd (closed on failure too), in place of a former one, whose contents it then has with keep.
 * Negative errno. */
int hydns_budgets_use(struct hydns_budgets *b, int map_fd, bool keep);
/* As hydns_plugin_charge() and hydns_plugin_spent(). */
enum hydns_charge hydns_budgets_charge(struct hydns_budgets *b, struct hydns_pages *g, const uint8_t addr[16], uint32_t second,
				       struct hydns_spent *spent);
bool hydns_budgets_spent(struct hydns_budgets *b, struct hydns_pages *g, const uint8_t addr[16], uint32_t second, uint32_t *spent);

/* -- rates.c: how many responses they have had, in the same memory ------------------------------------------- */
/* Link thread only, after a first map was taken over: what the resolver has counted alone so far still counts. */
void hydns_rates_begin(struct hydns_budgets *b, const struct hydns_rates *r, uint32_t second);
/* As hydns_plugin_rate_debit(), _look() and _logged(). */
bool hydns_rates_debit(struct hydns_budgets *b, struct hydns_pages *g, const struct hydns_rate_key *k, uint32_t second,
		       struct hydns_rate_own *own, enum hydns_rate_verdict *verdict);
bool hydns_rates_look(struct hydns_budgets *b, struct hydns_pages *g, const struct hydns_rate_key *k, struct hydns_rate_own *own);
void hydns_rates_logged(struct hydns_budgets *b, struct hydns_pages *g, const struct hydns_rate_key *k, uint32_t second, bool any);

/* -- cookies.c: the secrets of DNS cookies --------------------------------------------------------------- */
struct hydns_secrets {
	pthread_mutex_t lock;
	struct hydns_cookies cookies;    /* set 0: the resolver has given none so far */
};
void hydns_secrets_init(struct hydns_secrets *s);
void hydns_secrets_destroy(struct hydns_secrets *s);     /* wipes them */
/* True: these n secrets differ from those before. Then they have a new number, which is on the page. */
bool hydns_secrets_change(struct hydns_secrets *s, struct hydns_pages *g,
			  const uint8_t (*secret)[HYDNS_COOKIE_SECRET_LEN], size_t n);
/* Writes the number to a new page. */
void hydns_secrets_publish(struct hydns_secrets *s, struct hydns_pages *g);
/* The caller wipes the copy. */
void hydns_secrets_copy(struct hydns_secrets *s, struct hydns_cookies *out);

/* -- notes.c: notes for the operator ------------------------------------------------------------------------ */
struct hydns_notes {
	pthread_mutex_t lock;
	char **text[HYDNS_NOTES];        /* by kind */
	size_t count[HYDNS_NOTES];
	_Atomic uint32_t changed;        /* how often they were replaced */
};
void hydns_notes_init(struct hydns_notes *n);
void hydns_notes_destroy(struct hydns_notes *n);
int hydns_notes_add(struct hydns_notes *n, enum hydns_note_kind kind, const char *text);    /* negative errno */
int hydns_notes_set(struct hydns_notes *n, enum hydns_note_kind kind, const char *const *text, size_t count);
/* Writes the message for note number i of the kind, or that there is none (i: 0), of at most room octets; returns its length,
 * 0: there is no such note. */
size_t hydns_notes_message(struct hydns_notes *n, enum hydns_note_kind kind, size_t i, struct hydns_note *out,
			   size_t room);

#endif
