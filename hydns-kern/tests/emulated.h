/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Machines under software emulation, of which test-harness/kernel-matrix tells the tests. */
#ifndef HYDNS_KERN_TESTS_EMULATED_H
#define HYDNS_KERN_TESTS_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool is_emulated(void)
{
	return getenv("HYDNS_EMULATED") != NULL;
}

/* A limit for what must come: there all takes ten times as long. */
static inline unsigned patience(unsigned limit)
{
	return is_emulated() ? 10 * limit : limit;
}
#endif
