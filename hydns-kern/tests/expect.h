/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks of what the program does with a frame. They fail with cmocka's messages; what: the case, for the message. */
#ifndef HYDNS_TEST_EXPECT_H
#define HYDNS_TEST_EXPECT_H

#include "kernel.h"

#define SECOND_NS 1000000000ULL
#define SKIPPED   77

extern struct kernel *kern;      /* the program, opened by expect_open() */
extern const struct query plain; /* the usual query: A, without EDNS, over IPv4 */

/* Opens kern with these options. False, with a message, where BPF programs can't be loaded: then the tests are skipped. */
bool expect_open(const struct kernel_options *o);
/* Closes kern and returns failed, main's status. */
int expect_close(int failed);
extern const struct kernel_options expect_usual;
/* Runs an array of tests with kern, opened with these options, or with the usual ones; and returns main's status. */
#define expect_run_with(o, tests) (expect_open(o) ? expect_close(cmocka_run_group_tests(tests, NULL, NULL)) : SKIPPED)
#define expect_run(tests) expect_run_with(&expect_usual, tests)
/* Opens another program, with other options; the caller closes it. */
struct kernel *open_with(const struct kernel_options *o);

/* Appends one address to a and publishes a as the answer to q, of age 0; returns the rule's handle. */
__u32 publish_address(struct kernel *k, const struct query *q, struct answer *a);

/* Runs a command of the shell, which must succeed. */
void command(const char *text);

/* The program passes the frame unchanged and counts this reason; a dry run says so before. */
void expect_pass(const char *what, struct kernel *k, const struct frame *f, int reason);
/* The program answers frame f, made from q, with the message of a; checks every header. A dry run says so before. */
void expect_frame(const char *what, struct kernel *k, const struct frame *f, const struct query *q,
		  const struct answer *a, __u32 seconds, __u32 rotation);
/* The program replies to q with the question alone, these flags beside RD, and an OPT if q has one; it counts this reason. */
void expect_short(struct kernel *k, const struct query *q, int reason, uint16_t flags);
/* As expect_frame(), for the frame of q, in kern, with no rotation. */
void expect_answer(const char *what, const struct query *q, const struct answer *a, __u32 seconds);
/* As expect_pass(), for the frame of q, in kern. */
void expect_query_passes(const char *what, const struct query *q, int reason);

#endif
