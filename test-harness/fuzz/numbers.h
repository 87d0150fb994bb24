/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Random numbers of a fuzzer, the same again for the same seed, and its command line. One thread. */
#ifndef FUZZ_NUMBERS_H
#define FUZZ_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* How often, and from which numbers on: of the command line (--count, --seed). */
struct fuzz_run {
	uint64_t count, seed;
};
struct fuzz_run fuzz_begin(int argc, char **argv, uint64_t count);
uint64_t fuzz_next(void);
/* A random number below n. */
uint32_t fuzz_below(uint32_t n);
void fuzz_fill(uint8_t *to, size_t len);
/* Says what is wrong with the number-th one ("frame", "offer"), and how to see it again. */
void fuzz_wrong(const struct fuzz_run *r, const char *one, uint64_t number, const char *what);

#endif
