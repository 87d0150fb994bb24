/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The choices of which a fuzzer makes its inputs: random numbers, the same again for the same seed; or octets, each choice the next
 * of them, so that a file is an input, and what libFuzzer changes in it changes a choice. One thread.
 */
#ifndef FUZZ_NUMBERS_H
#define FUZZ_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How often, and from which numbers on: of the command line (--count, --seed). */
struct fuzz_run {
	uint64_t count, seed;
};
struct fuzz_run fuzz_begin(int argc, char **argv, uint64_t count);
/* From here on choices come from this seed, ... */
void fuzz_from_seed(uint64_t seed);
/* ... or from these octets, which stay the caller's; when they have ended, each choice is 0. */
void fuzz_from_octets(const uint8_t *octets, size_t len);
/* Whether octets are left; true with a seed. */
bool fuzz_more(void);

uint64_t fuzz_next(void);
/* A number below n, which is not 0. */
uint32_t fuzz_below(uint32_t n);
uint8_t fuzz_octet(void);
void fuzz_fill(uint8_t *to, size_t len);
/* Says what is wrong with the number-th one ("frame", "offer"), and how to see it again. */
void fuzz_wrong(const struct fuzz_run *r, const char *one, uint64_t number, const char *what);

#endif
