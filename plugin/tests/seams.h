/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Seams: named points between two steps of the code under test, at which a test holds the thread that passes. No shipped
 * object has them: a test program is linked from the shipped objects with ld's --wrap, and its wrappers of a function that
 * one file calls in another (seams_plugin.c, hydnsd/tests/seams_hydnsd.c) come here first.
 *
 * A thread that can be held is a party: one that the test has started as such, or one of a daemon, which runs in a process
 * of its own and shares this table. A walk (walk.h) takes the parties through all orders of their points.
 */
#ifndef PLUGIN_TESTS_SEAMS_H
#define PLUGIN_TESTS_SEAMS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "hydns-kern/tests/emulated.h"

enum seam_party {
	SEAM_NOBODY,           /* never held */
	SEAM_FIRST, SEAM_SECOND, SEAM_THIRD, /* threads of the test */
	SEAM_LINK,             /* the plugin's link thread */
	SEAM_LOOP, SEAM_GRACE, /* threads of the daemon */
	SEAM_PARTIES
};

#define SEAM_NAME 24
#define SEAM_LIST 96
#define SEAMS_ENV "HYDNS_TEST_SEAMS"
#define SEAM_LIMIT_MS patience(10000)    /* no wait takes longer */

struct seam_table {
	struct {
		_Atomic uint32_t held; /* futex */
		_Atomic uint32_t mode; /* enum seam_mode */
		_Atomic uint32_t visits; /* how often it was held */
		_Atomic int pid, tid;  /* of the thread that last passed a point; 0: none */
		_Atomic char only[SEAM_LIST];
		char at[SEAM_NAME];    /* while it is held */
	} party[SEAM_PARTIES];
	_Atomic bool no_barrier;       /* membarrier() takes no time: for walks, whose parties are no XDP programs */
	_Atomic uint32_t barriers;     /* begun */
	_Atomic uint32_t withdrawals;  /* begun by the daemon */
	_Atomic uint32_t rules;        /* in the daemon's store */
	_Atomic uint32_t steps;        /* of scans of the store */
	_Atomic bool swept;            /* a scan has ended */
};
extern struct seam_table *seams;       /* never NULL in a test that has called seams_share() */

/* Makes the table; programs that are started from here on have it too. */
void seams_share(void);
/* Starts a thread of the test's own that is this party. Held at the point "begin", it is when this returns. */
pthread_t seam_thread(enum seam_party who, void *(*run)(void *), void *arg);
/* The point: this thread, or if it is nobody, `otherwise`, waits here if it is to be held. */
void seam(enum seam_party otherwise, const char *point);

/* From now on the party is held at these points (names, with blanks between). */
void seam_hold(enum seam_party who, const char *points);
/* Goes on, to the next point where it is to be held. */
void seam_go(enum seam_party who);
/* Goes on, and is no longer held. */
void seam_open(enum seam_party who);
void seams_open(void);
bool seam_is_held(enum seam_party who, const char *point);
/* True when it is held there within the limit, which ends early when unless() becomes true. */
bool seam_wait(enum seam_party who, const char *point, bool (*unless)(void *arg), void *arg);
/* It does not run and will not: held, asleep in the kernel, ended, or never seen. */
bool seam_is_quiet(enum seam_party who);

#endif
