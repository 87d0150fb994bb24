/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exchanges the programs for others of another composition, over the same maps, while packets come in. Each interface has the
 * former program or the new one at any moment, so no packet finds none; rules, parked queries and counts are in the maps.
 */
#ifndef HYDNS_KERN_LOADER_COMPOSE_H
#define HYDNS_KERN_LOADER_COMPOSE_H

#include "hydns-kern/loader/open.h"

struct hydns_set;                      /* loaded programs that nothing runs yet, or no more */

/* Loads a set over the maps of k, of which it changes nothing. It takes as long as hydns_kern_open(), and another thread may do it,
 * while nobody else exchanges or closes. Needs the rights for loading. */
int hydns_set_load(const struct hydns_kern *k, const struct hydns_composition *with, struct hydns_set **out, char why[HYDNS_WHY]);
/* Puts the set in the place of the one that runs, on every interface. 0: *set is the former one now, to be closed after a grace
 * period. Else everything is as it was. */
int hydns_kern_exchange(struct hydns_kern *k, struct hydns_set *set, char why[HYDNS_WHY]);
void hydns_set_close(struct hydns_set *set);

/* What the running set consists of, without limits. */
struct hydns_composition hydns_kern_composition(const struct hydns_kern *k);

/* A program of the running set, as the kernel describes it. */
struct hydns_program_state {
	const char *name, *text;       /* text: what it is for */
	bool in;                       /* it is loaded; else the rest is 0 */
	bool stage;                    /* behind a tail call of hydns_xdp */
	__u32 id;                      /* in the kernel */
	__u32 instructions;            /* as the kernel has translated them */
	__u32 verified;                /* that the verifier went through */
	__u32 octets;                  /* of machine code; 0: not compiled */
};
/* Calls fn for each program of the list, loaded or not. */
void hydns_kern_programs_each(const struct hydns_kern *k, void (*fn)(const struct hydns_program_state *p, void *arg), void *arg);

#endif
