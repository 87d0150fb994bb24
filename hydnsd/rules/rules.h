/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The rules in the kernel: what may come in and what must go (the policy decides), what each one
 * depends on, and the hits it had. Sits on a store (hydns-kern/store/store.h), so it works on plain memory
 * too. One thread.
 */
#ifndef HYDNSD_RULES_RULES_H
#define HYDNSD_RULES_RULES_H

#include "hydns/session.h"
#include "hydns-kern/store/store.h"
#include "hydnsd/rules/missing.h"
#include "hydnsd/rules/offer.h"
#include "offload-policy/policy.h"

struct hydnsd_rules;

/* The policy's options that nobody can set, and when the functions below are called: hydnsd and the simulator do
 * it alike. Milliseconds. */
#define HYDNSD_POLICY(most, least_hits) { .capacity = (most), .min_hits = (least_hits), .hysteresis = 10 }
#define HYDNSD_HOUSEKEEPING_MS 50      /* expire */
#define HYDNSD_EXPIRE_RULES    4096    /* a time */
#define HYDNSD_SWEEP_MS        20      /* sweep, while one is under way */
#define HYDNSD_SWEEP_SLOTS     16384   /* a time: 1 M slots in about 1.3 s */
/* From the beginning of one sweep to the next: the sooner, the sooner a change of popularity shows; but a large store
 * changes slowly, and takes more work. */
#define HYDNSD_SWEEP_PAUSE_MIN_MS 200
#define HYDNSD_SWEEP_PAUSE_MAX_MS 1000
#define HYDNSD_SWEEP_SLOTS_MS  64      /* so many slots a millisecond on average, within these limits */

struct hydnsd_rules_counters {
	uint64_t admitted, replaced, evicted, expired, withdrawn, renewed;
};

/*
 * Takes over the rules that the memory holds. policy: capacity and so on. seed: of signatures, secret.
 * NULL without memory. `memory` is borrowed until close.
 */
struct hydnsd_rules *hydnsd_rules_open(const struct hydns_store_memory *memory,
				       const struct hydns_policy_options *policy, uint64_t seed,
				       uint64_t now_ns);
void hydnsd_rules_close(struct hydnsd_rules *r);
/* Where hot rules that leave are noted from now on (borrowed); NULL: nowhere. */
void hydnsd_rules_set_missing(struct hydnsd_rules *r, struct hydnsd_missing_table *missing);
/* As in the policy options, for offers from now on. */
void hydnsd_rules_set_min_hits(struct hydnsd_rules *r, uint32_t min_hits);

/* Fewer rules, or more up to what the memory was made for: the least hit leave, some with each expire(). */
void hydnsd_rules_set_capacity(struct hydnsd_rules *r, uint32_t capacity);
/* Of the capacity, as many rules as there are octets for, by the size of those that are there. */
uint32_t hydnsd_rules_fitting(const struct hydnsd_rules *r);
/* What an answer must promise to be admitted (hydns_policy_bar()), as of the last sweep. */
uint32_t hydnsd_rules_threshold(const struct hydnsd_rules *r);

/* Who offers, and under which terms. */
struct hydnsd_offerer {
	uint32_t resolver;
	uint32_t capacity;             /* most rules of this resolver; 0: no limit of its own */
	uint32_t refresh_percent;
};
/* Has the processor fetch what admit() will need for an answer that passed hydnsd_offer_check(): a million rules are in
 * no cache, so it is called for several answers before the first is admitted. */
void hydnsd_rules_prepare(const struct hydnsd_rules *r, uint32_t resolver, struct hydnsd_answer *answer);
/* Publishes such an answer, or says why not. */
enum hydnsd_rejection hydnsd_rules_admit(struct hydnsd_rules *r, const struct hydnsd_offerer *by,
					 struct hydnsd_answer *answer, uint64_t now_ns);

/* Removes up to budget rules that have expired, or that are above the capacity. */
void hydnsd_rules_expire(struct hydnsd_rules *r, uint64_t now_ns, uint32_t budget);

/*
 * Reads hit counters of the next budget slots: keeps the policy's rates and the counts by authority.
 * True when it has come to the end of the store; the next call begins anew.
 */
bool hydnsd_rules_sweep(struct hydnsd_rules *r, uint64_t now_ns, uint32_t budget);
/* How long after the beginning of a sweep the next should begin. */
uint32_t hydnsd_rules_sweep_pause_ms(const struct hydnsd_rules *r);
/* All slots of one authority at once. */
void hydnsd_rules_sweep_resolver(struct hydnsd_rules *r, uint32_t resolver, uint64_t now_ns);

/* type, rcode, edns_do, secure and nodata, as of the last sweep, since the last reset; rules: now. The other
 * fields are left alone. */
void hydnsd_rules_counts(const struct hydnsd_rules *r, uint32_t resolver, struct hydns_counts *out);
void hydnsd_rules_counts_reset(struct hydnsd_rules *r, uint32_t resolver, uint64_t now_ns);

/* A grace period: begin, membarrier(MEMBARRIER_CMD_GLOBAL), end. One at a time. */
bool hydnsd_rules_grace_needed(const struct hydnsd_rules *r);
void hydnsd_rules_grace_begin(struct hydnsd_rules *r);
void hydnsd_rules_grace_end(struct hydnsd_rules *r);

/* -- withdrawing, a piece at a time ----------------------------------------------------------------- */
#define HYDNSD_ANY_RESOLVER HYDNS_RESOLVERS

struct hydnsd_withdrawal {
	uint32_t resolver;            /* or HYDNSD_ANY_RESOLVER */
	enum hydns_scope scope;
	uint32_t keep_epoch;           /* with ALL: rules of this epoch stay; 0: none do */
	uint64_t generation;           /* rules offered at this one or a later stay; 0: none do */
	/* 0: rules that rest on the name in any way. Else (host order) that RRset of the name was renewed and now ends
	 * at end_ns (monotonic): a rule that shows it with another TTL gets this one, or goes when that can't be */
	uint16_t rrtype;
	enum hydns_section section;        /* renewed: elsewhere answers show another copy */
	uint64_t end_ns;
	uint8_t name_len;
	uint8_t name[HYDNS_NAME_MAX];  /* lower case, valid */
	uint64_t bits, below;          /* signatures of the name, and of what is below it; set by begin */
	uint32_t withdrawn;            /* rules so far */
};

/* At once, where that can be: the scope is a name, and it is known which rules depend on it. Otherwise false, and nothing
 * was done: a pass must. As after a pass, a grace period must follow before it is certain that none is sent. */
bool hydnsd_rules_withdraw(struct hydnsd_rules *r, struct hydnsd_withdrawal *w, uint64_t now_ns);

/* Withdrawals that share one pass over the store. */
#define HYDNSD_SCAN_MAX 64             /* bits of a word: a set of them is one */
#define HYDNSD_SCAN_QUICK 4
struct hydnsd_scan {
	struct hydnsd_withdrawal *of[HYDNSD_SCAN_MAX]; /* the caller's, which fills this and count */
	uint32_t count;
	/* the rest is set by begin */
	uint64_t first[32], second[32]; /* by bit of a name: single names that have it */
	uint64_t others;               /* subtrees and everything: looked at for every rule */
	uint32_t cursor;               /* ordinal to go on with */
	uint32_t quick;                /* withdrawals, when they are few and single names; else 0 */
};
void hydnsd_scan_begin(const struct hydnsd_rules *r, struct hydnsd_scan *p);
/* Looks at up to budget slots, fewer when there are others than single names. True when the whole store
 * has been seen: no rule in the index matches that was there at begin; a grace period must follow before
 * it is certain that none is sent. A rule that several withdraw counts for the first of them. */
bool hydnsd_scan_step(struct hydnsd_rules *r, struct hydnsd_scan *p, uint64_t now_ns, uint32_t budget);

/* Removes the rules of one question (qtype in network order, all variants) offered before the generation. */
void hydnsd_rules_withdraw_older(struct hydnsd_rules *r, uint32_t resolver, const uint8_t *name, uint8_t name_len,
			   uint16_t qtype, uint64_t generation, uint64_t now_ns);

/* -- looking ------------------------------------------------------------------------------------------ */
struct hydns_store *hydnsd_rules_store(struct hydnsd_rules *r);
const struct hydnsd_rules_counters *hydnsd_rules_counters(const struct hydnsd_rules *r);
uint32_t hydnsd_rules_retired(const struct hydnsd_rules *r);
uint64_t hydnsd_rules_rate(const struct hydnsd_rules *r, uint32_t handle); /* hits per 10^6 s */
size_t hydnsd_rules_bytes(const struct hydnsd_rules *r);
uint64_t hydnsd_rules_seed(const struct hydnsd_rules *r);
/* The message that a rule makes, for hydnsd/rules/wire.h. */
struct hydnsd_message hydnsd_rule_message(const struct hydns_rule *rule);

#endif
