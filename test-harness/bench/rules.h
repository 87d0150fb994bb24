/* SPDX-License-Identifier: GPL-2.0-only */
/* The questions of a measurement, and a program under test that has rules for them. */
#ifndef HYDNS_BENCH_RULES_H
#define HYDNS_BENCH_RULES_H

#include "hydns-kern/tests/kernel.h"
#include "pace.h"

struct questions {
	unsigned rules;           /* names number 0 to rules - 1 have a rule */
	unsigned capacity;        /* of the store; 0: as many as there are rules */
	unsigned octets;          /* of a name in wire format */
	unsigned type;
	unsigned records;         /* in an answer */
	bool ipv6, edns, dnssec, cookie;
};

#define OCTETS_LEAST (1 + PACE_LABEL + 1 + 1 + 1)

/* NULL, or what is wrong with them. */
const char *questions_wrong(const struct questions *a);
/* The program with all rules published; NULL: *why says what failed. */
struct kernel *rules_open(const struct questions *a, const char **why);
/* Publishes or refreshes the rule of one name; 0: it had no room. */
__u32 rules_publish(struct kernel *k, const struct questions *a, __u32 number);
/* The query of these questions, with name number 0. */
void question_template(const struct questions *a, struct pace_template *t);

#endif
