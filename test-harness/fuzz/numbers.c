/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "test-harness/fuzz/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state;

/* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016). */
uint64_t fuzz_next(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

uint32_t fuzz_below(uint32_t n)
{
	return (uint32_t)((fuzz_next() >> 32) * n >> 32);
}

void fuzz_fill(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(fuzz_next() >> 56);
}

static uint64_t argument(int argc, char **argv, const char *name, uint64_t unless)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], name))
			return strtoull(argv[i + 1], NULL, 0);
	return unless;
}

struct fuzz_run fuzz_begin(int argc, char **argv, uint64_t count)
{
	struct fuzz_run r = {
		.count = argument(argc, argv, "--count", count), .seed = argument(argc, argv, "--seed", (uint64_t)time(NULL)),
	};

	state = r.seed * 2 + 1;
	return r;
}

void fuzz_wrong(const struct fuzz_run *r, const char *one, uint64_t number, const char *what)
{
	fprintf(stderr, "%s %" PRIu64 ": %s\n", one, number, what);
	fprintf(stderr, "again with: --count %" PRIu64 " --seed %" PRIu64 "\n", number + 1, r->seed);
}
