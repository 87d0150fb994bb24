/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the clients written in C share. */
#ifndef HYDNS_HARNESS_COMMON_H
#define HYDNS_HARNESS_COMMON_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS 1000000000LL

/* Prints the program's name and the message, and exits. */
static inline void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	exit(1);
}

/* CLOCK_MONOTONIC in ns, as Python's time.monotonic_ns(). */
static inline int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

static inline unsigned get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

#endif
