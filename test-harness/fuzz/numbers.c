/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "test-harness/fuzz/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state;
static const uint8_t *at, *end;        /* at: NULL: choices come from the state */

void fuzz_from_seed(uint64_t seed)
{
	state = seed * 2 + 1;
	at = end = NULL;
}

void fuzz_from_octets(const uint8_t *octets, size_t len)
{
	static const uint8_t none[1];

	at = len ? octets : none;
	end = at + len;
}

bool fuzz_more(void)
{
	return !at || at < end;
}

/* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016). */
static uint64_t random_number(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

/* The next so many octets as a number. */
static uint64_t taken(unsigned octets)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < octets && at < end; i++)
		n |= (uint64_t)*at++ << 8 * i;
	return n;
}

uint64_t fuzz_next(void)
{
	return at ? taken(sizeof(uint64_t)) : random_number();
}

uint32_t fuzz_below(uint32_t n)
{
	if (!at)
		return (uint32_t)((random_number() >> 32) * n >> 32);
	return (uint32_t)(taken(n <= 1U << 8 ? 1 : n <= 1U << 16 ? 2 : 4) % n);
}

uint8_t fuzz_octet(void)
{
	return (uint8_t)(at ? taken(1) : random_number() >> 56);
}

void fuzz_fill(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = fuzz_octet();
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

	fuzz_from_seed(r.seed);
	return r;
}

void fuzz_wrong(const struct fuzz_run *r, const char *one, uint64_t number, const char *what)
{
	fprintf(stderr, "%s %" PRIu64 ": %s\n", one, number, what);
	fprintf(stderr, "again with: --count %" PRIu64 " --seed %" PRIu64 "\n", number + 1, r->seed);
}
