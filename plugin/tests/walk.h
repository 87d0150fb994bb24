/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * All orders of what several parties do between their seams: one of those that are held goes on to its next point, until
 * none is held; then all begins again with another choice, depth first, until every choice has been made.
 */
#ifndef PLUGIN_TESTS_WALK_H
#define PLUGIN_TESTS_WALK_H

#include <stdbool.h>

struct walk {
	const char *what;
	/* Makes the state that all orders start from; parties are held when it returns. */
	void (*begin)(void *arg);
	/* Called whenever no party runs. NULL, or what is wrong. */
	const char *(*fault)(void *arg);
	/* True while something is under way that no thread's state shows (a frame in a ring); may be NULL. */
	bool (*busy)(void *arg);
	/* Called when no party is held any more; tidies up. NULL, or what is wrong in the end. */
	const char *(*end)(void *arg);
	void *arg;
};

/* The number of orders. A fault fails the test, with the order that leads to it. */
unsigned walk_all(const struct walk *w);

#endif
