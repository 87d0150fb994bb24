/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A fuzzer's frame: its command line, the files of its corpus, and the same target under libFuzzer (HYDNS_LIBFUZZER). Each program
 * defines fuzz_target.
 *
 * fuzz_NAME [--count N] [--seed S]     first replays its corpus, a folder of $FUZZ_CORPUS, if that is set
 * fuzz_NAME FILE...                    these inputs alone
 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include "test-harness/fuzz/numbers.h"

struct fuzz_target {
	const char *name;              /* of its folder in the corpus */
	const char *one;               /* what an input is called: "offer" */
	uint64_t count;                /* of inputs, unless --count says another; small enough for every test run */
	/* Before anything else, with main()'s arguments. Not 0: ends with this status, 77 where the target is impossible. */
	int (*begin)(int argc, char **argv);
	/* Makes an input of choices, at least one, and judges what becomes of it. NULL, or what is wrong. */
	const char *(*turn)(void);
	/* What was found, in words, to standard output. Not 0: the inputs have tested nothing. */
	int (*end)(void);
};
extern const struct fuzz_target fuzz_target;

#endif
