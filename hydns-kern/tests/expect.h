/* SPDX-License-Identifier: GPL-2.0-only */
/* What a frame must come to: failing cmocka assertions say what it was. what: the case, for the message. */
#ifndef HYDNS_TEST_EXPECT_H
#define HYDNS_TEST_EXPECT_H

#include "kernel.h"

#define SECOND_NS 1000000000ULL
#define SKIPPED   77

extern struct kernel *kern;      /* the program with the usual switches, made by expect_open() */
extern const struct query plain; /* the usual query: without EDNS, over IPv4 */

/* False where BPF can't be loaded, and says so: the tests are skipped. */
bool expect_open(void);
/* Closes kern; failed, for main's status. */
int expect_close(int failed);
/* Runs an array of tests with kern, for main's status. */
#define expect_run(tests) (expect_open() ? expect_close(cmocka_run_group_tests(tests, NULL, NULL)) : SKIPPED)
/* One more program, with other switches; the test that asks for it closes it. */
struct kernel *open_with(const struct kernel_options *o);

/* The frame is passed as it came, counted as this reason. */
void expect_pass(const char *what, struct kernel *k, const struct frame *f, int reason);
/* Frame f, made from q, is answered with a's message; every header is looked at. */
void expect_frame(const char *what, struct kernel *k, const struct frame *f, const struct query *q,
		  const struct answer *a, __u32 seconds, __u32 turn);
/* The same for q's own frame and kern. */
void expect_answer(const char *what, const struct query *q, const struct answer *a, __u32 seconds);
void expect_query_passes(const char *what, const struct query *q, int reason);

#endif
