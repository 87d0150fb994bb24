/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * All orders of what several parties do between their seams: one of those that are held goes on to its next point, until
 * none is held; then all is begun anew with another choice, depth first, until every choice has been made.
 */
#ifndef PLUGIN_TESTS_WALK_H
#define PLUGIN_TESTS_WALK_H

#include <stdbool.h>

struct walk {
	const char *what;
	/* Makes the state that all orders start from; parties are held when it returns. */
	void (*begin)(void *arg);
	/* Whenever nobody runs: NULL, or what is wrong. */
	const char *(*fault)(void *arg);
	/* True while something is on its way that the state of no thread shows (a frame in a ring); may be NULL. */
	bool (*busy)(void *arg);
	/* Nobody is held any more: NULL, or what is wrong in the end. Tidies up. */
	const char *(*end)(void *arg);
	void *arg;
};

/* The number of orders. A fault fails the test, with the order that leads to it. */
unsigned walk_all(const struct walk *w);

#endif
