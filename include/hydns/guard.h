/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The guard, between hydnsd and the program: budgets of client networks, and rules for suffixes of names. Both in fixed memory: a new
 * client network takes the place of one that has asked less (budgets.h), and a new suffix is refused when there is no room.
 */
#ifndef HYDNS_GUARD_H
#define HYDNS_GUARD_H

#include "hydns/budgets.h"
#include "hydns/rule.h"

enum hydns_guard_mode {
	HYDNS_GUARD_OFF,
	HYDNS_GUARD_COUNT,       /* all is counted, and every query goes on */
	HYDNS_GUARD_ENFORCE,
};
/* What becomes of a query above a limit. */
enum hydns_guard_action {
	HYDNS_GUARD_DROP,
	HYDNS_GUARD_TRUNCATE,    /* an empty reply with TC */
	HYDNS_GUARD_FAIL,        /* an empty reply with SERVFAIL; of suffixes alone */
};

/* Configuration of the program, set when it is loaded. */
struct hydns_guard_config {
	__u64 seed[HYDNS_BUDGET_SEEDS];  /* of clients' cells; secret */
	__u64 mask[2][2];        /* of a client's address, IPv4-mapped, in memory order: its network; IPv4, IPv6 */
	__u32 mode;              /* enum hydns_guard_mode */
	__u32 queries;           /* a second of one client network; 0: no limit */
	__u32 action;            /* enum hydns_guard_action */
	__u32 slip;              /* with HYDNS_GUARD_DROP one in so many is truncated instead, by chance; 0: none */
	__u32 exempt;            /* not 0: queries with a valid server cookie are neither counted nor limited */
	__u32 reserved;
};

/* --- clients --------------------------------------------------------------------------------------------- */
#define HYDNS_GUARD_BUCKETS    16384 /* power of two */
struct hydns_guard_bucket {
	struct hydns_budget_bucket budgets;     /* passed[] is not used */
	__u64 network[HYDNS_BUDGET_CELLS][2];   /* of each cell, for hydnsctl: may be another's for a moment */
};

/* --- suffixes ---------------------------------------------------------------------------------------------- */
#define HYDNS_GUARD_RULES       1024
#define HYDNS_GUARD_SUFFIX_MOST 64   /* octets of a guarded suffix in wire format, with the root label; a multiple of 8 */
#define HYDNS_GUARD_LABELS_MOST 31   /* labels of one, without the root: bits of hydns_guard_labels */

/* In hydns_gd_rules, by HYDNS_GUARD_KEY() of suffix and resolver. */
struct hydns_guard_rule {
	struct hydns_budget spent;   /* what of it went on; tag and passed[] are not used */
	__u64 until_ns;              /* monotonic: it holds no longer */
	__u64 within, over;          /* queries that went on; that were above the budget. By atomic operations */
	__u32 queries;               /* that go on in a second */
	__u32 action;                /* enum hydns_guard_action, with those above */
};

/* --- counts ------------------------------------------------------------------------------------------------ */
/* Of a resolver, per CPU. In both modes: with HYDNS_GUARD_COUNT those that are over would have been stopped. */
struct hydns_guard_count {
	__u64 clients_over;      /* queries above their network's limit */
	__u64 clients_exempt;    /* with a valid cookie */
	__u64 clients_uncounted; /* whose network had no cell, because all it may have are those of networks at their limit */
	__u64 suffix_within;     /* of guarded suffixes: within the budget ... */
	__u64 suffix_over;       /* ... and above it */
};

HYDNS_STATIC_ASSERT(sizeof(struct hydns_guard_bucket) == 192, "three cache lines");
HYDNS_STATIC_ASSERT(HYDNS_GUARD_SUFFIX_MOST % 8 == 0 && HYDNS_GUARD_LABELS_MOST < 32, "words and bits");

#endif
