/* SPDX-License-Identifier: GPL-2.0-only */
/* Times the installation, replacement and removal of rules. */
#ifndef TEST_HARNESS_BENCH_KERNEL_INSTALLS_H
#define TEST_HARNESS_BENCH_KERNEL_INSTALLS_H

#include "test-harness/bench/kernel/rules.h"

struct installs {
	double installed, replaced, removed;  /* a second, with grace periods */
};

/* For names number first to first + count - 1, which have no rule before and none after. False when the store had no room. */
bool installs_run(struct kernel *k, const struct questions *a, unsigned first, unsigned count, struct installs *out);

#endif
