/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How far a ring can be given back to its plugin: up to the first frame that has begun a withdrawal which is not done. A
 * hydnsd that comes after a crash begins there, so that none of them is lost.
 */
#ifndef HYDNSD_RESOLVERS_PROGRESS_H
#define HYDNSD_RESOLVERS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define HYDNSD_BEGUN_MAX 128           /* withdrawals of one session that are under way */

/* Withdrawals by number. They may end in another order. Zero: none was begun. */
struct hydnsd_begun {
	uint32_t next;
	uint32_t oldest;               /* that is not done; next: all are */
	bool done[HYDNSD_BEGUN_MAX];   /* by number, modulo the size */
};

static inline bool hydnsd_begun_full(const struct hydnsd_begun *b)
{
	return b->next - b->oldest >= HYDNSD_BEGUN_MAX;
}

/* The number of a new one; b must not be full. */
uint32_t hydnsd_begun_add(struct hydnsd_begun *b);
void hydnsd_begun_done(struct hydnsd_begun *b, uint32_t number);

/* Of one ring; positions as in struct hydns_ring. */
struct hydnsd_progress {
	uint32_t given;                /* the plugin's again up to here */
	uint32_t mark;                 /* and soon up to here, ... */
	uint32_t mark_next;            /* ... when all withdrawals below this number are done */
};
/* The ring was taken up to here before this session. */
void hydnsd_progress_start(struct hydnsd_progress *p, uint32_t position, const struct hydnsd_begun *b);
/* Frames before `taken` have been taken, and have begun what is in b. True when given has moved. */
bool hydnsd_progress_advance(struct hydnsd_progress *p, uint32_t taken, const struct hydnsd_begun *b);

#endif
