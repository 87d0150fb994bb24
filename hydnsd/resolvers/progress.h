/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How much of a ring can be given back to its plugin: up to the first frame that has begun a withdrawal which is not done.
 * After a crash the next hydnsd begins there, so that no withdrawal is lost.
 */
#ifndef HYDNSD_RESOLVERS_PROGRESS_H
#define HYDNSD_RESOLVERS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define HYDNSD_BEGUN_MAX 128           /* withdrawals of one session that are under way */

/* The withdrawals that frames have begun, by number. They may end in any order. Zero: none was begun. */
struct hydnsd_begun {
	uint32_t next;
	uint32_t oldest;               /* of those that are not done; equal to next: all are done */
	bool done[HYDNSD_BEGUN_MAX];   /* by number, modulo the size */
};

static inline bool hydnsd_begun_full(const struct hydnsd_begun *b)
{
	return b->next - b->oldest >= HYDNSD_BEGUN_MAX;
}

/* Returns the number of a new one; b must not be full. */
uint32_t hydnsd_begun_add(struct hydnsd_begun *b);
void hydnsd_begun_done(struct hydnsd_begun *b, uint32_t number);

/* Of one ring. Positions are those of struct hydns_ring. */
struct hydnsd_progress {
	uint32_t given;                /* given back up to here */
	uint32_t mark;                 /* next: up to here, ... */
	uint32_t mark_next;            /* ... when all withdrawals below this number are done */
};
/* position: where this session begins to read the ring. */
void hydnsd_progress_start(struct hydnsd_progress *p, uint32_t position, const struct hydnsd_begun *b);
/* Frames before `taken` have been taken, and have begun what is in b. True when `given` has moved. */
bool hydnsd_progress_advance(struct hydnsd_progress *p, uint32_t taken, const struct hydnsd_begun *b);

#endif
