/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * hydnsd's view of the rules in the kernel: which offers become rules, which rules must go (the policy decides), what each rule
 * depends on, and the hits it had. It uses a store (hydns-kern/store/store.h), so it works on plain memory too. One thread.
 */
#ifndef HYDNSD_RULES_RULES_H
#define HYDNSD_RULES_RULES_H

#include "hydns/session.h"
#include "hydns-kern/store/store.h"
#include "hydnsd/rules/histogram.h"
#include "hydnsd/rules/missing.h"
#include "hydnsd/rules/offer.h"
#include "offload-policy/policy.h"

struct hydnsd_rules;
#define HYDNSD_ANY_RESOLVER HYDNS_RESOLVERS

/* Options of the policy that no configuration can set, and how often the functions below are called. hydnsd and the simulator
 * share them. Milliseconds. */
#define HYDNSD_POLICY(most, least_hits) { .capacity = (most), .min_hits = (least_hits), .hysteresis = 10 }
#define HYDNSD_HOUSEKEEPING_MS 50      /* expire */
#define HYDNSD_EXPIRE_RULES    4096    /* a time */
#define HYDNSD_SWEEP_MS        20      /* sweep, while one is under way */
#define HYDNSD_SWEEP_SLOTS     16384   /* a time: 1 M slots in about 1.3 s */
/* From the beginning of one sweep to the next. A short pause shows a change of popularity soon; but sweeping a large store is
 * more work, and its popularity changes slowly. */
#define HYDNSD_SWEEP_PAUSE_MIN_MS 200
#define HYDNSD_SWEEP_PAUSE_MAX_MS 1000
#define HYDNSD_SWEEP_SLOTS_MS  64      /* slots a millisecond on average, within these limits */

struct hydnsd_rules_counters {
	uint64_t admitted, replaced, evicted, expired, withdrawn, renewed; /* renewed: by a TTL update */
	uint64_t stale_replies;        /* hits of rules of crashed resolvers, past their own end */
};

/* Takes over the rules that `memory` holds, which it borrows until close. seed: of signatures, secret. NULL: no memory. */
struct hydnsd_rules *hydnsd_rules_open(const struct hydns_store_memory *memory,
				       const struct hydns_policy_options *policy, uint64_t seed,
				       uint64_t now_ns);
void hydnsd_rules_close(struct hydnsd_rules *r);
/* Records hot rules that are removed in this table from now on (borrowed until close); NULL: nowhere. */
void hydnsd_rules_set_missing(struct hydnsd_rules *r, struct hydnsd_missing_table *missing);
/* The option of the policy, for offers from now on. */
void hydnsd_rules_set_min_hits(struct hydnsd_rules *r, uint32_t min_hits);

/* At most as many as the memory was made for. If there are more rules, each expire() removes some of the coldest. */
void hydnsd_rules_set_capacity(struct hydnsd_rules *r, uint32_t capacity);
/* Preloaded rules: of a resolver, and how many all resolvers may have. Popular rules have the rest of the capacity. */
uint32_t hydnsd_rules_kept(const struct hydnsd_rules *r, uint32_t resolver);
uint32_t hydnsd_rules_kept_most(const struct hydnsd_rules *r);
/* Those of a resolver that were withdrawn. */
struct hydnsd_lost;
struct hydnsd_lost *hydnsd_rules_lost(struct hydnsd_rules *r, uint32_t resolver);
/* How many rules there are octets for, at most the capacity, judged by the size of the present rules. */
uint32_t hydnsd_rules_fitting(const struct hydnsd_rules *r);
/* The threshold (hydns_policy_threshold()), as of the last sweep. */
uint32_t hydnsd_rules_threshold(const struct hydnsd_rules *r);

/* The resolver that offers, and its terms. */
struct hydnsd_offerer {
	uint32_t resolver;
	uint32_t capacity;             /* most rules of this resolver; 0: no limit of its own */
	uint32_t refresh_percent;      /* as in HELLO */
	bool awaited;                  /* a client waits for this answer alone: it is admitted in place of the coldest rule */
};
/* Fetches into the CPU's cache what admit() will need for an answer that has passed hydnsd_offer_check(). A million rules fit
 * no cache, so call it for several answers before the first is admitted. */
void hydnsd_rules_prepare(const struct hydnsd_rules *r, uint32_t resolver, struct hydnsd_answer *answer);
/* Publishes such an answer, or returns why not. */
enum hydnsd_rejection hydnsd_rules_admit(struct hydnsd_rules *r, const struct hydnsd_offerer *by,
					 struct hydnsd_answer *answer, uint64_t now_ns);

/* Removes up to budget rules: expired ones, then the coldest if there are more than the capacity. */
void hydnsd_rules_expire(struct hydnsd_rules *r, uint64_t now_ns, uint32_t budget);

/* Reads the hit counters of the next budget ordinals, for the policy's rates and the tallies of resolvers. True at the end of
 * the store; the next call begins with the first ordinal again. */
bool hydnsd_rules_sweep(struct hydnsd_rules *r, uint64_t now_ns, uint32_t budget);
/* How long after the beginning of a sweep the next should begin. */
uint32_t hydnsd_rules_sweep_pause_ms(const struct hydnsd_rules *r);
/* All rules of one resolver, or of HYDNSD_ANY_RESOLVER, at once. */
void hydnsd_rules_sweep_of(struct hydnsd_rules *r, uint32_t resolver, uint64_t now_ns);

/* Sets type, rcode, edns_do, secure, bogus, nodata, referrals, authoritative, no_rd, from_zone and discarded, as of the last sweep,
 * since the last reset; rules: as of now. Leaves the other fields alone. */
void hydnsd_rules_counts(const struct hydnsd_rules *r, uint32_t resolver, struct hydns_counts *out);
/* How old its answers were that the program gave, as of the last sweep, since the last reset or the start of hydnsd. */
const struct hydnsd_histogram *hydnsd_rules_ages(const struct hydnsd_rules *r, uint32_t resolver);
/* Adds queries of this type (host order) that were parked and dropped. */
void hydnsd_rules_discarded(struct hydnsd_rules *r, uint32_t resolver, uint16_t qtype, const struct hydns_discards *more);
void hydnsd_rules_counts_reset(struct hydnsd_rules *r, uint32_t resolver, uint64_t now_ns);

/* A grace period: begin, wait (hydnsd/daemon/grace.h), end. One at a time. */
bool hydnsd_rules_grace_needed(const struct hydnsd_rules *r);
void hydnsd_rules_grace_begin(struct hydnsd_rules *r);
void hydnsd_rules_grace_end(struct hydnsd_rules *r);

/* -- stale answers (doc/coherence.md, "Stale answers after a crash") ------------------------------------------- */
#define HYDNSD_STALE_ERROR_MOST 64     /* octets of an option */
struct hydnsd_stale_terms {
	uint32_t ttl;                  /* seconds, of each record */
	uint32_t longest;              /* seconds from a rule's own end to its last */
	uint8_t error[HYDNSD_STALE_ERROR_MOST]; /* the extended error, an EDNS option */
	uint16_t error_len;            /* octets; 0: none */
};
/* From now on the resolver's rules outlive their own end by these terms. The caller withdraws the others (keep_stale). */
void hydnsd_rules_stale_begin(struct hydnsd_rules *r, uint32_t resolver, const struct hydnsd_stale_terms *terms);
/* Returns how many stale replies there were since. */
uint64_t hydnsd_rules_stale_end(struct hydnsd_rules *r, uint32_t resolver);
uint64_t hydnsd_rules_stale_replies(const struct hydnsd_rules *r, uint32_t resolver);

/* -- withdrawing ------------------------------------------------------------------------------------ */
struct hydnsd_withdrawal {
	uint32_t resolver;             /* or HYDNSD_ANY_RESOLVER */
	enum hydns_scope scope;
	uint32_t keep_epoch;           /* with ALL: rules of this epoch stay; 0: none do */
	bool keep_stale;               /* ... of these only such as outlive their resolver (hydnsd_rules_stale_begin()) */
	uint64_t generation;           /* rules offered at this one or a later stay; 0: none do */
	/* 0: rules that depend on the name. Else (host order) a TTL update: this RRset of the name now ends at end_ns
	 * (monotonic). A rule that shows it with another TTL gets the new one; where that is impossible, the rule goes. */
	uint16_t rrtype;
	enum hydns_section section;    /* of a TTL update: other sections show another copy of the RRset */
	uint64_t end_ns;
	uint8_t name_len;
	uint8_t name[HYDNS_NAME_MAX];  /* lower case, valid */
	uint64_t bits, below;          /* signatures of the name, and of names below it; set by begin */
	uint32_t withdrawn;            /* rules so far */
};

/* Withdraws at once, if the scope is a name and it is known which rules depend on it. False: nothing was done, and it takes a
 * scan. After either a grace period must pass before no program sends such a rule. */
bool hydnsd_rules_withdraw(struct hydnsd_rules *r, struct hydnsd_withdrawal *w, uint64_t now_ns);

/* Withdrawals that share one scan of the store. */
#define HYDNSD_SCAN_MAX   64           /* a set of them is a word of 64 bits */
#define HYDNSD_SCAN_QUICK 4
struct hydnsd_scan {
	struct hydnsd_withdrawal *of[HYDNSD_SCAN_MAX]; /* borrowed; the caller sets this and count */
	uint32_t count;
	/* begin sets the rest */
	uint64_t first[32], second[32]; /* by bit of a signature: withdrawals of single names that have it */
	uint64_t others;               /* withdrawals of subtrees and everything: compared with every rule */
	uint32_t cursor;               /* ordinal to go on with */
	uint32_t quick;                /* count, if they are few and of single names; else 0 */
};
void hydnsd_scan_begin(const struct hydnsd_rules *r, struct hydnsd_scan *p);
/* Scans up to budget ordinals, fewer when there are others than single names. True at the end of the store: of the rules that
 * were in the index at begin, none that matches is there now. A rule that several withdraw counts for the first of them. */
bool hydnsd_scan_step(struct hydnsd_rules *r, struct hydnsd_scan *p, uint64_t now_ns, uint32_t budget);

/* Removes the rules of one question, all variants, that were offered before the generation. qtype: network order. */
void hydnsd_rules_withdraw_older(struct hydnsd_rules *r, uint32_t resolver, const uint8_t *name, uint8_t name_len,
			   uint16_t qtype, uint64_t generation, uint64_t now_ns);

/* -- looking ------------------------------------------------------------------------------------------ */
struct hydns_store *hydnsd_rules_store(struct hydnsd_rules *r);
const struct hydnsd_rules_counters *hydnsd_rules_counters(const struct hydnsd_rules *r);
uint32_t hydnsd_rules_retired(const struct hydnsd_rules *r);
uint32_t hydnsd_rules_of(const struct hydnsd_rules *r, uint32_t resolver); /* how many it has */
uint64_t hydnsd_rules_rate(const struct hydnsd_rules *r, uint32_t handle); /* hits per 10^6 s */
size_t hydnsd_rules_bytes(const struct hydnsd_rules *r);
uint64_t hydnsd_rules_seed(const struct hydnsd_rules *r);
/* The rule as a message, for hydnsd/rules/wire.h. */
struct hydnsd_message hydnsd_rule_message(const struct hydns_rule *rule);

#endif
