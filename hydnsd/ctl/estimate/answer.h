/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What named would answer to a question about a zone, as lengths. It follows named with recursion no and minimal-responses at its
 * default: with RD no authority section, without RD the origin's NS and their addresses. These are left out of the estimate:
 *   - that a wildcard stands for what an alias leads to: such answers are taken to be negative, and so not kept;
 *   - what a DNAME makes of the names below it;
 *   - addresses that HTTPS and SVCB records ask for;
 *   - ends that names share with others than their owner and the name before them;
 *   - capital letters in the file, whose answers named may not offer;
 *   - of the proofs of NSEC3, their very records: each is as long as the zone's are on average.
 */
#ifndef HYDNSD_CTL_ESTIMATE_ANSWER_H
#define HYDNSD_CTL_ESTIMATE_ANSWER_H

#include "hydnsd/ctl/estimate/zone.h"

/* Why an answer becomes no rule. */
enum ctl_unkept {
	CTL_KEPT,
	CTL_UNKEPT_NEGATIVE,           /* there is no data; or an alias leads to what is not there, or with RD to another zone */
	CTL_UNKEPT_ORDER,              /* records in an order that changes, and other records that point into them */
	CTL_UNKEPT_SIZE,               /* larger than a UDP response of named's, or than a slot */
	CTL_UNKEPT_REASONS
};

struct ctl_answer {
	enum ctl_unkept why;
	uint32_t octets;               /* after the question */
	uint32_t records;
	uint32_t rotations;
	uint32_t places;               /* names that it depends on */
	uint32_t pointers;             /* of a template, */
	bool gap;                      /* which shows the zone's present SOA */
	uint32_t left_out;             /* octets of those among them that it does not show */
	bool a, aaaa;                  /* in the additional section: where both are, only preferred-glue makes it a rule */
};

void ctl_answer(const struct ctl_zone *z, uint32_t name, uint16_t type, unsigned variant, struct ctl_answer *out);

/* The answer to the question for all names below this one, the origin or a delegation, that do not exist or are delegated (names.h). */
void ctl_answer_below(const struct ctl_zone *z, uint32_t name, unsigned variant, struct ctl_answer *out);

/* Octets of the rule that the answer becomes: below, of that one. */
uint32_t ctl_answer_space(const struct ctl_zone *z, uint32_t name, bool below, const struct ctl_answer *a);

#endif
