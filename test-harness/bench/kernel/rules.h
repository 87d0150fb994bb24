/* SPDX-License-Identifier: GPL-2.0-only */
/* The questions of a measurement, and a program under test that has rules for them. */
#ifndef TEST_HARNESS_BENCH_KERNEL_RULES_H
#define TEST_HARNESS_BENCH_KERNEL_RULES_H

#include "hydns-kern/tests/kernel.h"
#include "test-harness/bench/kernel/pace.h"

struct questions {
	unsigned rules;           /* names number 0 to rules - 1 have a rule */
	unsigned capacity;        /* of the store; 0: as many as there are rules */
	unsigned octets;          /* of a name in wire format */
	unsigned type;
	unsigned records;         /* in an answer */
	unsigned port;            /* of the server; the program under test serves 53 alone */
	bool ipv6, edns, dnssec, cookie;
	bool miss_stage;          /* misses go to the program behind a tail call */
	bool monitor;             /* clients and names are counted */
	bool guard;               /* client networks have a limit, which none reaches */
	bool rates;               /* rules have an account, and the program may limit responses */
};

#define OCTETS_LEAST (1 + PACE_LABEL + 1 + 1 + 1)

/* NULL, or what is wrong with them. */
const char *questions_wrong(const struct questions *a);
/* The program with all rules published; NULL: *why says what failed. */
struct kernel *rules_open(const struct questions *a, const char **why);
/* What hydnsd does every second or so for rules that are asked for less often than they may count in their slots. */
void rules_sweep(struct kernel *k);
/* What such a rule is made of, for name number 0; answer and name (HYDNS_NAME_MAX octets) are the caller's
 * and stay in use. The name's label begins at its second octet. */
void rule_parts(struct kernel *k, const struct questions *a, struct answer *answer, __u8 *name,
		struct hydns_rule_parts *p);
/* The query of these questions, with name number 0. */
void question_template(const struct questions *a, struct pace_template *t);

#endif
